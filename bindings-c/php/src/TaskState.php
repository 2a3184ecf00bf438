<?php

declare(strict_types=1);

namespace Stanchion;

/** Where a task is. */
enum TaskState: string
{
    /** Somewhere that this package does not know. */
    case Other = 'other';
    /** Due later. */
    case Scheduled = 'scheduled';
    /** Due now. */
    case Ready = 'ready';
    /** Given to a worker. */
    case Claimed = 'claimed';
    /** Given up; kept for a while. */
    case Dead = 'dead';
    /** Due now, and held by a limit of its key. */
    case Held = 'held';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
