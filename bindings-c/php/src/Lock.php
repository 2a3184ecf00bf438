<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Exception\LockTimeout;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Handles;
use Stanchion\Internal\LockOptions;
use Stanchion\Internal\Named;
use Stanchion\Internal\Native;

/**
 * A named lock. Made by Client::lock(), of which one holder at a time may hold it, and by rwLock(), semaphore() and
 * multiLock(). Having it does not mean holding it.
 */
final class Lock
{
    /** @internal */
    public function __construct(
        private readonly Client $client,
        private readonly Named $named,
        private readonly LockOptions $options,
    ) {
    }

    /** The lock's name; of several locks the first. */
    public function name(): string
    {
        return $this->named->name;
    }

    /**
     * The same lock for an owner that may come in again: an acquire by an owner that is inside returns at once, with
     * the same fence, and the lock is given back when the owner has released as often as it acquired. What it asked for
     * when it first came in stays. Owners are known to this connection only. An owner that wants more than it has gets
     * InvalidArgument: a reader does not become a writer.
     */
    public function reentrant(string $owner): self
    {
        return new self($this->client, $this->named, $this->options->ownedBy($owner));
    }

    /**
     * Acquires the lock, waiting in line for it. What is not given is as in Client::lock().
     *
     * Keep the lease: the lock is released when nothing refers to it any more, so `$lock->acquire();` releases at once.
     *
     * @param int|float|null $wait in seconds
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $adoptUnexpiring in seconds
     * @param ?int $weight how many permits of a semaphore (1); invalid for other locks
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
        ?int $weight = null,
    ): Lease {
        $options = $this->options->with($ttl, $renew, $maxHold, $wait, $failFast, $adoptUnexpiring, $label, $weight);
        return $this->take($options) ?? throw Errors::timeout($this->name());
    }

    /**
     * Acquires the lock if it is free; null if it is busy. What is not given is as in Client::lock().
     *
     * Keep the lease, as that of acquire(): `if ($lease = $lock->tryAcquire())`.
     *
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $adoptUnexpiring in seconds
     * @param ?int $weight how many permits of a semaphore (1); invalid for other locks
     */
    public function tryAcquire(
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        mixed $adoptUnexpiring = null,
        ?string $label = null,
        ?int $weight = null,
    ): ?Lease {
        return $this->take($this->options->with($ttl, $renew, $maxHold, 0, null, $adoptUnexpiring, $label, $weight));
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
     * @param ?int $weight how many permits of a semaphore (1); invalid for other locks
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
        ?int $weight = null,
    ): mixed {
        $lease = $this->acquire($wait, $ttl, $renew, $maxHold, $failFast, $adoptUnexpiring, $label, $weight);
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
        return $this->named->call('is_locked', $this->client) !== 0;
    }

    /** Who holds the lock now, if anybody does; of several holders the one whose lease ends first. */
    public function holder(): ?Holder
    {
        return $this->holders()[0] ?? null;
    }

    /**
     * Who holds the lock now: one at most if it is exclusive, else up to 100, those whose leases end first.
     *
     * @return list<Holder>
     */
    public function holders(): array
    {
        return $this->listed('holder', Holder::fromNative(...));
    }

    /**
     * Who waits for the lock now, in the order of the line: up to 100. One that has not polled for 2.5 s, or for
     * 22 s far back in a long line, counts as dead and is left out.
     *
     * @return list<Waiter>
     */
    public function waiters(): array
    {
        return $this->listed('waiter', Waiter::fromNative(...));
    }

    /**
     * Takes the lock from whoever has it, and hands it to the next waiter; false if it was free.
     *
     * The old holder learns of it at its next renewal, and may work on until then: its fence is smaller than the next
     * one.
     */
    public function breakLease(): bool
    {
        return $this->named->call('break_lease', $this->client) === 0;
    }

    private function take(LockOptions $options): ?Lease
    {
        $native = Native::get();
        $record = $options->record();
        $lease = new Handles($native, 1, Lease::FREE);
        $status = $this->named->acquire($this->client, $record, $lease->places);
        return $status === 0 ? new Lease($this->client, $lease->places[0], $this->name()) : null;
    }

    /**
     * @template T
     * @param callable(\FFI\CData): T $fromNative
     * @return list<T>
     */
    private function listed(string $what, callable $fromNative): array
    {
        $native = Native::get();
        $list = $native->make('int64_t');
        $this->named->call("{$what}s", $this->client, FFI::addr($list));
        return $native->listed($what, $list->cdata, $fromNative);
    }
}
