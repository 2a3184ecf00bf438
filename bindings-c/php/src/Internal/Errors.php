<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Exception;
use Stanchion\Exception\StanchionException;

/**
 * Makes exceptions.
 *
 * @internal
 */
final class Errors
{
    private const INVALID_ARGUMENT = -6;
    private const INTERNAL = -16;
    private const MOST_SHOWN = 8;

    /** By the numbers of stanchion_status. */
    private const CLASSES = [
        -1 => Exception\LockTimeout::class,
        -2 => Exception\LeaseLost::class,
        -3 => Exception\LeaseExpired::class,
        -4 => Exception\StaleReceipt::class,
        -5 => Exception\QueueFull::class,
        self::INVALID_ARGUMENT => Exception\InvalidArgument::class,
        -7 => Exception\Unsupported::class,
        -8 => Exception\StoreUnavailable::class,
        -9 => Exception\Indeterminate::class,
        -10 => Exception\WrongType::class,
        -11 => Exception\Denied::class,
        -12 => Exception\Corrupt::class,
        -13 => Exception\Cancelled::class,
        -14 => Exception\Closed::class,
        -15 => Exception\Forked::class,
        self::INTERNAL => Exception\Internal::class,
        // A handle that this package has freed.
        -100 => Exception\Closed::class,
    ];

    public static function of(
        int $status,
        string $message,
        bool $retryable,
        ?string $operation,
        ?string $name,
    ): StanchionException {
        $class = self::CLASSES[$status] ?? Exception\Internal::class;
        return $class::of($status, $message, $retryable, $operation, $name);
    }

    /** Names the method that the program called. */
    public static function invalid(string $message, int $status = self::INVALID_ARGUMENT): StanchionException
    {
        $call = Caller::find()?->call();
        return self::of($status, $call === null ? $message : "$call: $message", false, null, null);
    }

    /** Of an argument that is not what it must be. */
    public static function argument(string $name, string $must, mixed $given): StanchionException
    {
        return self::invalid("argument $name must be $must, got " . self::shown($given));
    }

    /** A value in messages. Long texts are not shown: somebody may have mistaken the place of a secret. */
    private static function shown(mixed $value): string
    {
        return match (true) {
            is_string($value) && strlen($value) > self::MOST_SHOWN => 'string of ' . strlen($value) . ' bytes',
            is_string($value) => 'string ' . json_encode($value, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE),
            is_bool($value), is_int($value), is_float($value) => var_export($value, true),
            default => get_debug_type($value),
        };
    }

    public static function timeout(string $name): Exception\LockTimeout
    {
        return Exception\LockTimeout::of(-1, "acquire \"$name\": the lock is busy", true, 'acquire', $name);
    }

    public static function noJson(string $message, string $name): Exception\WrongType
    {
        return Exception\WrongType::of(-10, $message, false, 'cached', $name);
    }

    public static function library(string $message, ?\Throwable $cause = null): Exception\LibraryUnavailable
    {
        return new Exception\LibraryUnavailable($message, self::INTERNAL, $cause);
    }
}
