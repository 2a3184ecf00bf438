<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Client;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\LockTimeout;
use Stanchion\Exception\StanchionException;
use Stanchion\HeldAs;
use Stanchion\Lease;
use Stanchion\Lock;

/**
 * A lock that stays until it is released or expires, also when the object is gone or the script has ended, as users of
 * other lockers know it: some lock for an hour, and never unlock, to do a thing once an hour.
 *
 * @internal
 */
final class Hold
{
    /** The least that can be asked for, in seconds. A lease is never shortened, so nothing changes. */
    private const UNCHANGED = 0.05;
    /** How many holders the store returns at most. */
    private const HOLDERS_TOLD = 100;

    /** @var ?\WeakMap<self, true> */
    private static ?\WeakMap $all = null;

    private function __construct(private readonly Lock $lock, private readonly Lease $lease)
    {
        if (self::$all === null) {
            self::$all = new \WeakMap();
            Ending::precede(self::leaveAll(...));
        }
        self::$all[$this] = true;
    }

    /** Waits for the lock, in seconds; null if it stayed busy. `$called` is what the program calls the ttl. */
    public static function take(
        Client $client,
        string $name,
        int|float $wait,
        int|float $ttl,
        int|float|null $adoptUnexpiring = null,
        bool $failFast = false,
        string $called = 'ttl',
    ): ?self {
        if (Times::span($called, $ttl) < self::UNCHANGED * 1000) {
            throw Errors::argument($called, 'at least ' . self::UNCHANGED . ' s (it is the ttl)', $ttl);
        }
        $lock = $client->lock($name, ttl: $ttl, adoptUnexpiring: $adoptUnexpiring, failFast: $failFast);
        return self::of($lock, $wait);
    }

    /** As take(), of a lock of any kind. */
    public static function of(Lock $lock, int|float $wait): ?self
    {
        try {
            $lease = $wait > 0 ? $lock->acquire(wait: $wait) : $lock->tryAcquire();
        } catch (LockTimeout) {
            return null;
        }
        return $lease === null ? null : new self($lock, $lease);
    }

    /** Continues what detach() let go of. */
    public static function resume(Client $client, string $handle): self
    {
        $lease = $client->resumeLease($handle);
        return new self($client->lock($lease->name()), $lease);
    }

    /** Whether it is ours as far as is known without asking. */
    public function isValid(): bool
    {
        return $this->lease->isValid();
    }

    /** Whether this one holds the lock, by the store's reply. */
    public function isOurs(): bool
    {
        if (!$this->lease->isValid()) {
            return false;
        }
        $fence = $this->lease->fence();
        $holders = $this->lock->holders();
        foreach ($holders as $holder) {
            if ($holder->heldAs === HeldAs::Lease && $holder->fence === $fence) {
                return true;
            }
        }
        // Of many readers the store returns those that end first.
        return count($holders) >= self::HOLDERS_TOLD;
    }

    /** For how many seconds it is surely ours. */
    public function remaining(): float
    {
        return $this->lease->remaining();
    }

    /** @throws LeaseLost */
    public function extend(int|float $ttl): void
    {
        $this->lease->extend($ttl);
    }

    /**
     * Has it end so many seconds from now, also earlier than it would.
     *
     * @throws LeaseLost
     */
    public function extendExact(int|float $ttl): void
    {
        $this->lease->extendExact($ttl);
    }

    /**
     * A reader becomes the writer, if nobody else holds the lock: whether it could.
     *
     * @throws LeaseLost
     */
    public function upgrade(): bool
    {
        return $this->lease->upgrade();
    }

    /**
     * A writer becomes a reader.
     *
     * @throws LeaseLost
     */
    public function downgrade(): void
    {
        $this->lease->downgrade();
    }

    /** @throws LeaseLost */
    public function release(int|float|null $cooldown = null): void
    {
        unset(self::$all[$this]);
        $this->lease->release($cooldown);
    }

    /**
     * Lets it be continued with Client::resumeLease(): a text for that, which is a secret.
     *
     * @throws LeaseLost
     */
    public function detach(): string
    {
        unset(self::$all[$this]);
        return $this->lease->detach(self::UNCHANGED);
    }

    public function __destruct()
    {
        $this->leave();
    }

    /** Has the lock stay until it expires. */
    private function leave(): void
    {
        if (!isset(self::$all[$this])) {
            return;
        }
        try {
            $this->detach();
        } catch (StanchionException) {
            // It is over already, or the parent's; or the store is not there, and no caller is left for the error.
        }
    }

    private static function leaveAll(): void
    {
        foreach (self::$all ?? [] as $hold => $_) {
            $hold->leave();
        }
    }
}
