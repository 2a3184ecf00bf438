<?php

declare(strict_types=1);

namespace Stanchion;

/** What keeps a queue from giving out tasks that are ready. */
enum Gate: string
{
    /** Something that this package does not know. */
    case Other = 'other';
    /** Nothing. */
    case Open = 'open';
    /** It is paused. */
    case Paused = 'paused';
    /** As many run as may at once. */
    case MaxRunning = 'max_running';
    /** Its rate. */
    case Rate = 'rate';
    /** A throttle. */
    case Throttled = 'throttled';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
