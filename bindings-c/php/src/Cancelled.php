<?php

declare(strict_types=1);

namespace Stanchion;

/** What a cancelled task was doing, from Queue::cancel(). */
enum Cancelled: string
{
    /** It did not run, and is gone. */
    case Removed = 'removed';
    /** It runs: it ends with this run. */
    case Running = 'running';
    /** There is none. */
    case Absent = 'absent';
}
