<?php

declare(strict_types=1);

namespace Stanchion;

/** What became of a task whose result was asked for. */
enum ResultOutcome: string
{
    /** It is done, with a result. */
    case Done = 'done';
    /** It is not done yet. */
    case Pending = 'pending';
    /** It is dead. */
    case Dead = 'dead';
    /** It was done without a result, or removed, or cancelled, or never there; or its result is not kept any more. */
    case Gone = 'gone';
}
