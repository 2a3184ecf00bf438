<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * Between seconds and the library's milliseconds.
 *
 * @internal
 */
final class Times
{
    /** Stands for "not given". */
    public const NONE = -1;
    /** What waits longer is asked for in parts of so many milliseconds, between which handlers of signals run. */
    public const SLICE = 1_000;
    /** The library refuses to wait longer: 365 days. */
    public const LONGEST_WAIT = 31_536_000_000;
    /** Milliseconds up to here are exact in a float. */
    private const MOST = 2 ** 53;

    /** Seconds as milliseconds: to the nearest, but 0 only for 0. Null is "not given". */
    public static function span(string $what, mixed $seconds): int
    {
        if ($seconds === null) {
            return self::NONE;
        }
        if (!is_int($seconds) && !is_float($seconds)) {
            throw Errors::argument($what, 'a number of seconds', $seconds);
        }
        $millis = $seconds * 1000.0;
        if (is_nan($millis) || $millis < 0) {
            throw Errors::argument($what, 'at least 0 seconds', $seconds);
        }
        if ($millis > self::MOST) {
            throw Errors::argument($what, 'at most 2 ** 53 milliseconds', $seconds);
        }
        return $millis > 0 ? max(1, (int) round($millis)) : 0;
    }

    /** As span(), of one that must be given. */
    public static function needed(string $what, mixed $seconds): int
    {
        if ($seconds === null) {
            throw Errors::argument($what, 'a number of seconds', null);
        }
        return self::span($what, $seconds);
    }

    /** A point in time as milliseconds since 1970. */
    public static function since1970(string $what, mixed $time): int
    {
        return self::span($what, $time instanceof \DateTimeInterface ? (float) $time->format('U.u') : $time);
    }

    public static function seconds(int $millis): float
    {
        return $millis / 1000.0;
    }

    /** Null for "not given". */
    public static function maybeSeconds(int $millis): ?float
    {
        return $millis < 0 ? null : $millis / 1000.0;
    }
}
