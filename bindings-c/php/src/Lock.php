<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Exception\LockTimeout;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Handles;
use Stanchion\Internal\LockOptions;
use Stanchion\Internal\Native;

/** A named lock that one holder at a time may hold. Made by Client::lock(); having it does not mean holding it. */
final class Lock
{
    /** @internal */
    public function __construct(
        private readonly Client $client,
        private readonly string $name,
        private readonly LockOptions $options,
    ) {
    }

    /** The lock's name. */
    public function name(): string
    {
        return $this->name;
    }

    /**
     * Acquires the lock, waiting in line for it. What is not given is as in Client::lock().
     *
     * @param int|float|null $wait in seconds
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $adoptUnexpiring in seconds
     * @throws LockTimeout the lock stayed busy
     */
    public function acquire(
        mixed $wait = null,
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        ?bool $failFast = null,
        mixed $adoptUnexpiring = null,
        ?string $label = null,
    ): Lease {
        $options = $this->options->with($ttl, $renew, $maxHold, $wait, $failFast, $adoptUnexpiring, $label);
        return $this->take($options) ?? throw Errors::timeout($this->name);
    }

    /**
     * Acquires the lock if it is free; null if it is busy. What is not given is as in Client::lock().
     *
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $adoptUnexpiring in seconds
     */
    public function tryAcquire(
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        mixed $adoptUnexpiring = null,
        ?string $label = null,
    ): ?Lease {
        return $this->take($this->options->with($ttl, $renew, $maxHold, 0, null, $adoptUnexpiring, $label));
    }

    /**
     * Acquires the lock, calls the function with the lease, and releases it: what the function returns.
     *
     * If the function throws, that goes on; otherwise a lease that was not ours to the end throws LeaseLost or
     * LeaseExpired. The function may release the lease itself.
     *
     * @template T
     * @param callable(Lease): T $body
     * @param int|float|null $wait in seconds
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $adoptUnexpiring in seconds
     * @return T
     * @throws LockTimeout the lock stayed busy
     */
    public function hold(
        callable $body,
        mixed $wait = null,
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        ?bool $failFast = null,
        mixed $adoptUnexpiring = null,
        ?string $label = null,
    ): mixed {
        $lease = $this->acquire($wait, $ttl, $renew, $maxHold, $failFast, $adoptUnexpiring, $label);
        try {
            $result = $body($lease);
        } catch (\Throwable $thrown) {
            $lease->finish(quietly: true);
            throw $thrown;
        }
        $lease->finish(quietly: false);
        return $result;
    }

    /** Whether the lock is held, offered to a waiter, cooling down, or in foreign hands. */
    public function isLocked(): bool
    {
        return $this->call('stanchion_lock_is_locked') !== 0;
    }

    /** Who holds the lock now, if anybody does. */
    public function holder(): ?Holder
    {
        $record = Native::get()->record('stanchion_holder');
        return $this->call('stanchion_lock_holder', FFI::addr($record)) === 0 ? Holder::fromNative($record) : null;
    }

    /**
     * Takes the lock from whoever has it, and hands it to the next waiter; false if it was free.
     *
     * The old holder learns of it at its next renewal, and may work on until then: its fence is smaller than the next
     * one.
     */
    public function breakLease(): bool
    {
        return $this->call('stanchion_lock_break_lease') === 0;
    }

    private function take(LockOptions $options): ?Lease
    {
        $native = Native::get();
        $record = $options->record();
        $lease = new Handles($native, 1, Lease::FREE);
        $status = $this->call('stanchion_lock_acquire', FFI::addr($record), $lease->places);
        return $status === 0 ? new Lease($this->client, $lease->places[0], $this->name) : null;
    }

    private function call(string $function, #[\SensitiveParameter] mixed ...$arguments): int
    {
        return Native::get()->call($function, $this->client->handle(), $this->name, strlen($this->name), ...$arguments);
    }
}
