<?php

declare(strict_types=1);

namespace Stanchion\Laravel;

use Illuminate\Cache\Lock;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LeaseLost;
use Stanchion\Internal\Hold;

/**
 * A lock for Laravel. block() waits in line instead of polling.
 *
 * owner() detaches the lease: restoreLock() in another process takes it over, once.
 */
final class StanchionLock extends Lock
{
    /** What Laravel's 0 seconds, for ever, are here: a dead holder does not block for longer. */
    private const FOR_EVER = 86_400;

    private ?Hold $hold = null;

    public function __construct(private readonly Client $client, string $name, int $seconds, ?string $owner = null)
    {
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        return $this->take(0);
    }

    /**
     * @param int $seconds how long to wait at most
     * @param ?callable $callback what to do with the lock, which is then released
     */
    public function block($seconds, $callback = null): mixed
    {
        if (!$this->take((int) $seconds)) {
            throw new LockTimeoutException("the lock \"$this->name\" stayed busy");
        }
        if (!is_callable($callback)) {
            return true;
        }
        try {
            return $callback();
        } finally {
            $this->release();
        }
    }

    /** Whether it was ours until now. */
    public function release(): bool
    {
        $hold = $this->hold;
        $this->hold = null;
        try {
            $hold === null ? $this->client->resumeLease($this->owner)->release() : $hold->release();
            return true;
        } catch (LeaseLost | InvalidArgument) {
            // Lost, or never acquired: then the owner is not a lease's.
            return false;
        }
    }

    public function forceRelease(): void
    {
        $this->client->lock($this->name)->breakLease();
    }

    /** A text with which restoreLock() in another process can release the lock. A secret. */
    public function owner(): string
    {
        if ($this->hold !== null) {
            $this->owner = $this->hold->detach();
            $this->hold = null;
        }
        return $this->owner;
    }

    protected function getCurrentOwner(): string
    {
        return $this->hold?->isOurs() ? $this->owner : '';
    }

    private function take(int $wait): bool
    {
        $ttl = $this->seconds > 0 ? $this->seconds : self::FOR_EVER;
        $hold = Hold::take($this->client, $this->name, $wait, $ttl);
        $this->hold = $hold ?? $this->hold;
        return $hold !== null;
    }
}
