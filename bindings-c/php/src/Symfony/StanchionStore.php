<?php

declare(strict_types=1);

namespace Stanchion\Symfony;

use Stanchion\Client;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\StanchionException;
use Stanchion\Internal\Hold;
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
 * Symfony first saves a key for the initial ttl, and then refreshes it for the lock's own, which here never shortens
 * it: a lock lasts for the longer of the two, if it is not released. A key that is held cannot be serialized; hand over
 * a lease with Lease::intoHandle() instead.
 */
final class StanchionStore implements BlockingStoreInterface
{
    /** One wait, in seconds; then another one begins. */
    private const PATIENCE = 3600;

    /** @param int|float $initialTtl how long a lock lasts whose ttl is null, and any lock at least, in seconds */
    public function __construct(private readonly Client $client, private readonly int|float $initialTtl = 30.0)
    {
        if ($initialTtl <= 0) {
            throw new InvalidTtlException("a ttl of $initialTtl seconds is none");
        }
    }

    public function save(Key $key): void
    {
        $this->take($key, 0) || throw new LockConflictedException();
    }

    public function waitAndSave(Key $key): void
    {
        while (!$this->take($key, self::PATIENCE)) {
            // Symfony waits for ever.
        }
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        $hold = self::held($key) ?? throw new LockConflictedException();
        try {
            $hold->extend($ttl);
        } catch (LeaseLost $lost) {
            throw new LockConflictedException($lost->getMessage(), 0, $lost);
        } catch (StanchionException $error) {
            throw new LockStorageException($error->getMessage(), 0, $error);
        }
        self::limit($key, $hold);
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

    private function take(Key $key, int $wait): bool
    {
        // Symfony saves a key again that it holds, to prolong it.
        if ($this->exists($key)) {
            $this->putOffExpiration($key, (float) $this->initialTtl);
            return true;
        }
        try {
            $hold = Hold::take($this->client, (string) $key, $wait, $this->initialTtl);
        } catch (StanchionException $error) {
            throw new LockStorageException($error->getMessage(), 0, $error);
        }
        if ($hold !== null) {
            $key->setState(self::class, $hold);
            $key->markUnserializable();
            self::limit($key, $hold);
        }
        return $hold !== null;
    }

    private static function held(Key $key): ?Hold
    {
        return $key->hasState(self::class) ? $key->getState(self::class) : null;
    }

    /** Tells Symfony how long the lock lasts. */
    private static function limit(Key $key, Hold $hold): void
    {
        $key->resetLifetime();
        $key->reduceLifetime($hold->remaining());
        if ($key->isExpired()) {
            throw new LockExpiredException("the lock \"$key\" was over before it could be used");
        }
    }
}
