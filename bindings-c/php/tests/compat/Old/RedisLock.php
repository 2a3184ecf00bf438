<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat\Old;

/**
 * The pattern of many hand-written lock classes, with their faults: SETNX with the time of expiry as the value, then
 * EXPIRE. `$at` is told where a call stands, so that a test can act there.
 */
final class RedisLock
{
    /** @var array<string, string> the values written, by name */
    private array $values = [];

    public function __construct(private \Redis $redis, private ?\Closure $at = null)
    {
    }

    public function lock(string $name, int $timeout = 0, int $expire = 15, int $waitIntervalUs = 100000): bool
    {
        $giveUp = microtime(true) + $timeout;
        do {
            $until = time() + $expire;
            if ($this->redis->setnx("Lock:$name", (string) $until)) {
                $this->at('set');
                // Fault: EXPIRE takes a duration.
                $this->redis->expire("Lock:$name", $until);
                $this->values[$name] = (string) $until;
                return true;
            }
            if ($this->redis->ttl("Lock:$name") < 0) {
                // Faults: it may be between the SETNX and the EXPIRE of its holder; and it does not expire now either.
                $this->redis->set("Lock:$name", (string) $until);
                $this->values[$name] = (string) $until;
                return true;
            }
            usleep($timeout > 0 ? $waitIntervalUs : 0);
        } while (microtime(true) < $giveUp);
        return false;
    }

    public function isLocking(string $name): bool
    {
        // Fault: an assignment, where a comparison was meant.
        return isset($this->values[$name]) && (bool) ($this->values[$name] = $this->redis->get("Lock:$name"));
    }

    public function unlock(string $name): bool
    {
        if (!$this->isLocking($name)) {
            return false;
        }
        $this->at('checked');
        // Fault: by now it may be another's.
        return (bool) $this->redis->del("Lock:$name");
    }

    private function at(string $place): void
    {
        if ($this->at !== null) {
            ($this->at)($place);
        }
    }
}
