<?php

declare(strict_types=1);

namespace Stanchion;

/** What a node of a flow is doing. */
enum NodeState: string
{
    /** Something that this package does not know. */
    case Other = 'other';
    /** It waits for others. */
    case Waiting = 'waiting';
    /** Its task is in its queue. */
    case Put = 'put';
    /** The same, and the task was told to end. */
    case Ending = 'ending';
    /** Its task was acked. */
    case Done = 'done';
    /** Its task is dead. */
    case Dead = 'dead';
    /** Its task was cancelled, removed, or lost, or the flow was cancelled before it was put into its queue. */
    case Cancelled = 'cancelled';
    /** What it needs did not succeed, so it never runs. */
    case Skipped = 'skipped';
    /** What it waited to fail has not, so it never runs. */
    case Unneeded = 'unneeded';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
