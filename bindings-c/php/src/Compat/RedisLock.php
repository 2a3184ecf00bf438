<?php

declare(strict_types=1);

namespace Stanchion\Compat;

use Stanchion\Client;
use Stanchion\Exception\LeaseLost;
use Stanchion\Internal\Hold;
use Stanchion\Internal\OlderClient;

/**
 * For code written against a class with these methods, on keys `Lock:` + name. New code uses Client::lock().
 *
 * An object may hold several names, each once: locking a name again that it holds fails. A lock that is not unlocked
 * stays until it expires, also after the end of the script. docs/MIGRATING.md lists what differs from older classes.
 */
final class RedisLock
{
    private readonly Client $client;

    /** @var array<string|int, Hold> by name */
    private array $holds = [];

    /**
     * @param object|string|null $client a connection of phpredis or Predis, a client, or a URL (STANCHION_URL)
     * @param int|float|null $adoptUnexpiring take over a value of older code that never expires, or not within a year,
     *   if it stays the same for so many seconds (never); unsound if its owner still runs
     */
    public function __construct(
        #[\SensitiveParameter] object|string|null $client = null,
        private readonly int|float|null $adoptUnexpiring = null,
    ) {
        $this->client = OlderClient::open($client, foreignShare: true);
    }

    /**
     * Locks a name: whether it could.
     *
     * @param int|float $timeout how long to wait in line, in seconds; 0 does not wait
     * @param int|float $expire after so many seconds the lock is free again, if it is not unlocked or prolonged
     * @param int|float $waitIntervalUs not used: a waiter is woken when its turn comes
     */
    public function lock(
        string|int|null $name,
        int|float $timeout = 0,
        int|float $expire = 15,
        int|float $waitIntervalUs = 100_000,
    ): bool {
        if ($name === null || $name === '') {
            return false;
        }
        $adopt = $this->adoptUnexpiring;
        $hold = Hold::take($this->client, (string) $name, $timeout, $expire, $adopt, called: 'expire');
        if ($hold === null) {
            return false;
        }
        $this->holds[$name] = $hold;
        return true;
    }

    /** Unlocks a name: whether this object held it until now. Another's lock is left alone. */
    public function unlock(string|int|null $name): bool
    {
        $hold = $this->holds[$name ?? ''] ?? null;
        unset($this->holds[$name ?? '']);
        try {
            $hold?->release();
            return $hold !== null;
        } catch (LeaseLost) {
            return false;
        }
    }

    /** Unlocks all names that this object holds: whether it held each of them until now. */
    public function unlockAll(): bool
    {
        $all = true;
        foreach (array_keys($this->holds) as $name) {
            $all = $this->unlock($name) && $all;
        }
        return $all;
    }

    /** Has a lock expire in so many seconds, but not earlier than it would: whether this object still held it. */
    public function expire(string|int|null $name, int|float $expire): bool
    {
        try {
            ($this->holds[$name ?? ''] ?? null)?->extend($expire);
            return isset($this->holds[$name ?? '']);
        } catch (LeaseLost) {
            return false;
        }
    }

    /** Whether this object holds the name. Asks the store. */
    public function isLocking(string|int|null $name): bool
    {
        return ($this->holds[$name ?? ''] ?? null)?->isOurs() ?? false;
    }
}
