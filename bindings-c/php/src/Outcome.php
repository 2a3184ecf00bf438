<?php

declare(strict_types=1);

namespace Stanchion;

/** What an enqueue did. */
enum Outcome: string
{
    /** In a way that this package does not know. */
    case Other = 'other';
    /** A new task. */
    case Added = 'added';
    /** The id was pending and stays as it is. */
    case Kept = 'kept';
    /** The id was pending and has been replaced. */
    case Replaced = 'replaced';
    /** The id is running: this task comes after it. */
    case Successor = 'successor';
    /** Within the throttle window: nothing was changed. */
    case Throttled = 'throttled';
    /** The id is running, and the policy is skip(): nothing was changed. */
    case Skipped = 'skipped';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
