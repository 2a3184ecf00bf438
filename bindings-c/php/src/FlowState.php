<?php

declare(strict_types=1);

namespace Stanchion;

/** How a flow is. */
enum FlowState: string
{
    /** In a way that this package does not know. */
    case Other = 'other';
    /** Nodes wait, or are in their queues. */
    case Running = 'running';
    /** All nodes have ended, and all that were to run have succeeded. */
    case Done = 'done';
    /** All nodes have ended, and one that was to run did not succeed. */
    case Failed = 'failed';
    /** It was cancelled, and all nodes have ended. */
    case Cancelled = 'cancelled';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
