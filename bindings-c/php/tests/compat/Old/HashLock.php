<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat\Old;

/** The pattern of a lock that others take over, with SETNX and GETSET, when the time in its value has passed. */
final class HashLock
{
    /** @var array<string, string> the values written, by key */
    private static array $values = [];

    /** What this machine takes for the time. */
    public static ?\Closure $clock = null;

    public static function getLock(\Redis $redis, string $key, int $maxExecuteTime = 3600): bool
    {
        $until = (string) (self::now() + $maxExecuteTime);
        if (!$redis->setnx("Lock:$key", $until)) {
            $found = (string) $redis->get("Lock:$key");
            // Faults: compares with this machine's clock; and whoever comes second overwrites the value of the first.
            if ((float) $found >= self::now() || $redis->getSet("Lock:$key", $until) !== $found) {
                return false;
            }
        }
        self::$values[$key] = $until;
        return true;
    }

    public static function releaseLock(\Redis $redis, string $key): void
    {
        // Fault: the wrong way round. It removes what has expired, which may be another's, and leaves what has not.
        if ((float) (self::$values[$key] ?? 0) < self::now()) {
            $redis->del("Lock:$key");
        }
        unset(self::$values[$key]);
    }

    private static function now(): float
    {
        return self::$clock === null ? microtime(true) : (self::$clock)();
    }
}
