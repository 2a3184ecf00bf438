<?php

declare(strict_types=1);

namespace Stanchion;

/** What becomes of slots of a Schedule that nobody fired in time. A number n stands for: all, at most the newest n. */
enum Missed: string
{
    /** The last of them is fired, late. */
    case Last = 'last';
    /** None that is more than a minute late. */
    case Skip = 'skip';

    private const ALL = 2;

    /**
     * The number of stanchion_missed, and how many at most; null for what a newer version has put.
     *
     * @internal
     */
    public static function fromNative(int $number, int $max): self|int|null
    {
        return $number === self::ALL ? $max : self::cases()[$number] ?? null;
    }

    /**
     * As fromNative() takes them.
     *
     * @internal
     * @return array{int, int}
     */
    public static function toNative(self|int $missed): array
    {
        return is_int($missed) ? [self::ALL, $missed] : [array_search($missed, self::cases(), true), -1];
    }
}
