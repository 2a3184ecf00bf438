<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * Checks of arguments that C could not distinguish from "not given", or that are costly before it sees them.
 *
 * @internal
 */
final class Arguments
{
    /** What one call may ask for at most. */
    public const MOST = 1000;

    /** Null is "not given". */
    public static function flag(?bool $flag): int
    {
        return $flag === null ? -1 : (int) $flag;
    }

    /** Null is "not given"; negative numbers would be, too. */
    public static function number(string $what, ?int $number, int $least, int $most = PHP_INT_MAX): int
    {
        if ($number === null) {
            return -1;
        }
        if ($number < $least || $number > $most) {
            throw Errors::argument($what, $most === PHP_INT_MAX ? "at least $least" : "$least to $most", $number);
        }
        return $number;
    }

    public static function max(string $what, int $count): int
    {
        return self::number($what, $count, 1, self::MOST);
    }

    /**
     * A list of texts, such as names of queues.
     *
     * @param array<mixed> $texts
     * @return list<string>
     */
    public static function texts(string $what, array $texts): array
    {
        foreach ($texts as $text) {
            if (!is_string($text)) {
                throw Errors::argument($what, 'an array of strings', $text);
            }
        }
        return array_values($texts);
    }

    /**
     * A list of receipts.
     *
     * @param array<mixed> $receipts
     * @return list<int>
     */
    public static function receipts(array $receipts): array
    {
        foreach ($receipts as $receipt) {
            if (!is_int($receipt)) {
                throw Errors::argument('receipts', 'an array of integers', $receipt);
            }
        }
        return array_values($receipts);
    }
}
