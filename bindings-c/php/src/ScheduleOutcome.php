<?php

declare(strict_types=1);

namespace Stanchion;

/** What became of a schedule that was put into a queue. */
enum ScheduleOutcome: string
{
    /** Something that this package does not know. */
    case Other = 'other';
    /** It is new. */
    case Added = 'added';
    /** It was there, and is changed. */
    case Changed = 'changed';
    /** It was there as it is. */
    case Kept = 'kept';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
