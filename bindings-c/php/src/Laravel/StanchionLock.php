<?php

declare(strict_types=1);

namespace Stanchion\Laravel;

use Illuminate\Cache\Lock;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LeaseLost;
use Stanchion\HeldAs;
use Stanchion\Internal\Hold;

/**
 * A lock for Laravel. block() waits in line instead of polling.
 *
 * owner() detaches the lease: who has that text can release or refresh the lock, here or by restoreLock() in another
 * process, whoever is first.
 */
final class StanchionLock extends Lock
{
    /** What Laravel's 0 seconds, for ever, are here: a dead holder does not block for longer. */
    private const FOR_EVER = 86_400;
    /** Between the id of an owner and what continues its lease. */
    private const SEPARATOR = '|';

    private ?Hold $hold = null;

    /** What continues the lease, if it was detached. */
    private ?string $handle = null;

    /** Stands in the store beside the lease as long as whoever acquired it holds it, or nobody has restored it. */
    private readonly string $id;

    public function __construct(private readonly Client $client, string $name, int $seconds, ?string $owner = null)
    {
        parent::__construct($name, $seconds, $owner);
        $parts = explode(self::SEPARATOR, $this->owner, 2);
        $this->id = $parts[0];
        $this->handle = $parts[1] ?? null;
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

    /**
     * Has the lock expire so many seconds from now: whether it was ours until now.
     *
     * @param ?int $seconds those of the lock if null; 0 is a day
     */
    public function refresh($seconds = null): bool
    {
        try {
            $this->hold()?->extendExact(self::ttl((int) ($seconds ?? $this->seconds)));
            return $this->hold !== null;
        } catch (LeaseLost | InvalidArgument) {
            return false;
        }
    }

    /** Whether it was ours until now. */
    public function release(): bool
    {
        try {
            $hold = $this->hold();
            $this->hold = $this->handle = null;
            $hold?->release();
            return $hold !== null;
        } catch (LeaseLost | InvalidArgument) {
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
            $this->handle = $this->hold->detach();
            $this->owner = $this->id . self::SEPARATOR . $this->handle;
            $this->hold = null;
        }
        return $this->owner;
    }

    /** This one's owner() if it holds the lock by the store's reply, or the holder's label; empty if nobody does. */
    protected function getCurrentOwner(): string
    {
        if ($this->hold?->isOurs()) {
            return $this->owner;
        }
        $holder = $this->client->lock($this->name)->holder();
        if ($holder?->heldAs !== HeldAs::Lease) {
            return '';
        }
        return $holder->label === $this->id && $this->handle !== null ? $this->owner : $holder->label;
    }

    private function take(int $wait): bool
    {
        $lock = $this->client->lock($this->name, ttl: self::ttl($this->seconds), label: $this->id);
        $hold = Hold::of($lock, $wait);
        if ($hold !== null) {
            $this->hold = $hold;
            $this->handle = null;
        }
        return $hold !== null;
    }

    /** What is held: detached, it is continued. Null if nothing is. */
    private function hold(): ?Hold
    {
        if ($this->hold === null && $this->handle !== null) {
            $this->hold = Hold::resume($this->client, $this->handle);
            $this->handle = null;
        }
        return $this->hold;
    }

    private static function ttl(int $seconds): int
    {
        return $seconds > 0 ? $seconds : self::FOR_EVER;
    }
}
