<?php

declare(strict_types=1);

namespace Stanchion;

/** How a limiter counts. Each kind has names of its own. */
enum LimitKind: string
{
    /** Evenly spaced, with bursts: a leaky bucket, a token bucket. */
    case Gcra = 'gcra';
    /** So many in each window of the store's clock. */
    case FixedWindow = 'fixed-window';
    /** So many in any window, wherever it begins. */
    case SlidingWindow = 'sliding-window';
}
