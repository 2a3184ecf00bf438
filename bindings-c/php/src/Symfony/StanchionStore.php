<?php

declare(strict_types=1);

namespace Stanchion\Symfony;

use Stanchion\Client;
use Stanchion\Exception\LeaseExpired;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\StanchionException;
use Stanchion\Internal\Hold;
use Stanchion\Lock;
use Symfony\Component\Lock\BlockingSharedLockStoreInterface;
use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\Exception\LockStorageException;
use Symfony\Component\Lock\Key;

/**
 * A store for symfony/lock. A blocking acquire waits in line instead of polling.
 *
 * A lock is the writer of the read-write lock of its name, and a lock for reading a reader. A reader is promoted to the
 * writer only if nobody else reads; one that blocks for that asks again and again. A key that is held cannot be
 * serialized; hand over a lease with Lease::detach() instead.
 */
final class StanchionStore implements BlockingSharedLockStoreInterface, BlockingStoreInterface
{
    /** One wait, in seconds; then another one begins. */
    private const PATIENCE = 3600;
    /** How often a reader that is to be promoted asks again, in microseconds; half as long as Symfony's own stores. */
    private const ASK_AGAIN = [40_000, 60_000];
    /** The shortest time that can be set. */
    private const LEAST_TTL = 0.001;

    /**
     * @param int|float $initialTtl how long a lock lasts whose ttl is null, in seconds
     * @param bool $exclusive all locks are those of Client::lock(), also those for reading, of which then there is one
     *     at a time. For a quorum, which has no others, and for names that programs share which use such locks
     */
    public function __construct(
        private readonly Client $client,
        private readonly int|float $initialTtl = 30.0,
        private readonly bool $exclusive = false,
    ) {
        if ($initialTtl <= 0) {
            throw new InvalidTtlException("the initial ttl must be more than 0 seconds, not $initialTtl");
        }
    }

    public function save(Key $key): void
    {
        $this->take($key, false, 0) || throw new LockConflictedException();
    }

    public function saveRead(Key $key): void
    {
        $this->take($key, true, 0) || throw new LockConflictedException();
    }

    public function waitAndSave(Key $key): void
    {
        while (!$this->take($key, false, self::PATIENCE)) {
            // Symfony waits for ever; who holds the lock for reading does not wait in line.
            if (self::held($key) !== null) {
                usleep(random_int(...self::ASK_AGAIN));
            }
        }
    }

    public function waitAndSaveRead(Key $key): void
    {
        while (!$this->take($key, true, self::PATIENCE)) {
            // Symfony waits for ever.
        }
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        $hold = self::held($key);
        if (!$hold?->isValid()) {
            throw new LockConflictedException();
        }
        try {
            $this->set($key, $hold, $ttl);
        } catch (LeaseLost $lost) {
            throw new LockConflictedException($lost->getMessage(), 0, $lost);
        } catch (StanchionException $error) {
            throw new LockStorageException($error->getMessage(), 0, $error);
        }
    }

    public function delete(Key $key): void
    {
        $hold = self::held($key);
        $key->removeState(self::class);
        try {
            $hold?->release();
        } catch (LeaseLost) {
            // What is there is another's.
        } catch (StanchionException $error) {
            throw new LockReleasingException($error->getMessage(), 0, $error);
        }
    }

    public function exists(Key $key): bool
    {
        try {
            return self::held($key)?->isOurs() ?? false;
        } catch (StanchionException $error) {
            throw new LockStorageException($error->getMessage(), 0, $error);
        }
    }

    private function take(Key $key, bool $read, int $wait): bool
    {
        try {
            // Symfony saves a key again that it holds: to prolong, to promote or to demote it.
            $hold = self::held($key);
            if ($hold?->isValid()) {
                try {
                    return $this->change($key, $hold, $read);
                } catch (LeaseLost) {
                    // It was ours until a moment ago.
                }
            }
            $hold = Hold::of($this->lock((string) $key, $read), $wait);
        } catch (StanchionException $error) {
            throw new LockStorageException($error->getMessage(), 0, $error);
        }
        if ($hold === null) {
            return false;
        }
        $key->setState(self::class, $hold);
        $key->markUnserializable();
        $this->limit($key, $hold);
        return true;
    }

    /**
     * Makes what is held one for reading or for writing, for the initial ttl from now: whether it could.
     *
     * @throws LeaseLost
     */
    private function change(Key $key, Hold $hold, bool $read): bool
    {
        if (!$this->exclusive) {
            if ($read) {
                $hold->downgrade();
            } elseif (!$hold->upgrade()) {
                return false;
            }
        }
        $this->set($key, $hold, $this->initialTtl);
        return true;
    }

    /** @throws LeaseLost */
    private function set(Key $key, Hold $hold, int|float $ttl): void
    {
        try {
            $hold->extendExact(max($ttl, self::LEAST_TTL));
        } catch (LeaseExpired) {
            // So short that it was over before the answer came, or before it was asked for.
        }
        $this->limit($key, $hold);
    }

    private function lock(string $name, bool $read): Lock
    {
        if ($this->exclusive) {
            return $this->client->lock($name, ttl: $this->initialTtl);
        }
        $both = $this->client->rwLock($name, ttl: $this->initialTtl);
        return $read ? $both->read() : $both->write();
    }

    private static function held(Key $key): ?Hold
    {
        return $key->hasState(self::class) ? $key->getState(self::class) : null;
    }

    /** Tells Symfony how long the lock lasts; a key's lifetime may have been over before. */
    private function limit(Key $key, Hold $hold): void
    {
        $key->reduceLifetime($hold->remaining());
        if (!$key->isExpired()) {
            return;
        }
        try {
            $this->delete($key);
        } catch (LockReleasingException) {
            // It expires by itself; the exception is why it is not used.
        }
        throw new LockExpiredException("the lock \"$key\" was over before it could be used");
    }
}
