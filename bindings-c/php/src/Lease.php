<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Exception\LeaseExpired;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\StanchionException;
use Stanchion\Internal\Ending;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;
use Stanchion\Internal\Unkept;

/**
 * A lock that is ours until it is released, expires, or is lost.
 *
 * One that is never released is released with the last reference to it, before the next line runs, and with the request
 * at the latest. One that nothing keeps ends at once, which raises an E_USER_WARNING. In a forked child it is the
 * parent's: calls throw Forked there.
 */
final class Lease
{
    /** @internal */
    public const FREE = 'stanchion_lease_free';

    /** Whether it was released or detached, or that was tried. */
    private bool $over = false;
    private readonly Unkept $unkept;

    /** @internal */
    public function __construct(
        /** Kept, so that it goes after the lease. */
        private readonly Client $client,
        private readonly int $handle,
        private readonly ?string $lockName = null,
    ) {
        Ending::note($handle, self::FREE);
        $this->unkept = new Unkept();
    }

    public function __destruct()
    {
        $warning = $this->unkept->warning();
        $name = $warning === null ? '' : $this->name();
        Ending::freeLease($this->handle, self::FREE);
        if ($warning !== null) {
            // Last: a handler of the program may throw.
            trigger_error("stanchion: the lock \"$name\" was $warning", E_USER_WARNING);
        }
    }

    /** The lock's name; of several locks the first. */
    public function name(): string
    {
        return $this->lockName ?? $this->info('name');
    }

    /** The secret that proves the lease is ours. Keep it out of logs. */
    public function token(): string
    {
        return $this->info('token');
    }

    /** The number of this grant: larger than that of every earlier grant of the lock. */
    public function fence(): int
    {
        return Native::get()->ffi->stanchion_lease_fence($this->handle);
    }

    /**
     * The fence of each lock, by its name: of Client::multiLock() there are several, in the order of their names.
     *
     * @return array<string, int> as always in PHP, a name that is a whole number is a key that is one
     */
    public function fences(): array
    {
        $native = Native::get();
        $fences = [];
        for ($i = 0, $count = $native->ffi->stanchion_lease_fences_len($this->handle); $i < $count; $i++) {
            $name = $native->make('stanchion_text');
            $fence = $native->make('int64_t');
            $native->call('stanchion_lease_fences_at', $this->handle, $i, FFI::addr($name), FFI::addr($fence));
            $fences[$native->text($name)] = $fence->cdata;
        }
        return $fences;
    }

    /** For how many seconds the lease is surely ours from now on, without further renewal. */
    public function remaining(): float
    {
        return Times::seconds(Native::get()->ffi->stanchion_lease_remaining_ms($this->handle));
    }

    /** Whether the lease is ours now. */
    public function isValid(): bool
    {
        return Native::get()->ffi->stanchion_lease_is_valid($this->handle) === 1;
    }

    /** Why the lease was lost; null if it is not. */
    public function loss(): ?Loss
    {
        return Loss::fromNative(Native::get()->ffi->stanchion_lease_loss($this->handle));
    }

    /**
     * Throws if the lease is known to be gone. Does not ask the store.
     *
     * @throws LeaseLost
     * @throws LeaseExpired
     */
    public function check(): void
    {
        Native::get()->call('stanchion_lease_check', $this->handle);
    }

    /**
     * Waits for the lease to be lost or released: whether it is. It is at its deadline at the latest.
     *
     * @param int|float $time at most, in seconds
     */
    public function waitLost(mixed $time): bool
    {
        return Native::get()->call('stanchion_lease_wait_lost', $this->handle, Times::needed('time', $time)) !== 0;
    }

    /**
     * Prolongs the lease to at least `$ttl` from now; never shortens it.
     *
     * @param int|float $ttl in seconds
     * @throws LeaseLost
     * @throws LeaseExpired
     */
    public function extend(mixed $ttl): void
    {
        Native::get()->call('stanchion_lease_extend', $this->handle, Times::needed('ttl', $ttl));
    }

    /**
     * Has the lease end `$ttl` from now, also earlier than it would. It is not renewed any more. If the store does not
     * answer, the lease goes on to the earlier of both ends.
     *
     * @param int|float $ttl in seconds, 0.001 at least
     * @throws LeaseLost
     * @throws LeaseExpired also if it was over before the answer came: its validity is up to 2 ms and 1 % shorter
     */
    public function extendExact(mixed $ttl): void
    {
        Native::get()->call('stanchion_lease_extend_exact', $this->handle, Times::needed('ttl', $ttl));
    }

    /**
     * Turns the lease of a reader into that of a writer if nobody else holds the lock: whether it is a writer's now.
     * Never waits: two readers that both wait to become the writer would wait for each other for ever. The lease gets
     * a new fence; its end stays. Of another kind of lock it throws InvalidArgument.
     *
     * @throws LeaseLost
     * @throws LeaseExpired
     */
    public function upgrade(): bool
    {
        return Native::get()->call('stanchion_lease_upgrade', $this->handle) === 0;
    }

    /**
     * Turns the lease of a writer into that of a reader, with the same fence: other readers may come in. A reader's
     * lease stays as it is. Of another kind of lock it throws InvalidArgument.
     *
     * @throws LeaseLost
     * @throws LeaseExpired
     */
    public function downgrade(): void
    {
        Native::get()->call('stanchion_lease_downgrade', $this->handle);
    }

    /**
     * Gives the lock back; with a cooldown, keeps it closed for so long before anybody can get it.
     *
     * @param int|float|null $cooldown in seconds (none)
     * @throws LeaseLost another got the lock meanwhile; the lease is over in any case
     * @throws LeaseExpired it had run out
     */
    public function release(mixed $cooldown = null): void
    {
        $millis = Times::span('cooldown', $cooldown);
        $this->over = true;
        if ($millis === Times::NONE) {
            Native::get()->call('stanchion_lease_release', $this->handle);
        } else {
            Native::get()->call('stanchion_lease_release_with_cooldown', $this->handle, $millis);
        }
    }

    /**
     * Detaches the lease: a text with which another process can resume it, once. A secret.
     *
     * @param int|float $ttl for how many seconds the lease then lives
     * @throws LeaseLost
     * @throws LeaseExpired
     */
    public function detach(mixed $ttl = 30.0): string
    {
        $native = Native::get();
        $text = $native->make('stanchion_text');
        $native->call(
            'stanchion_lease_detach',
            $this->handle,
            Times::needed('ttl', $ttl),
            FFI::addr($text),
        );
        $this->over = true;
        return $native->text($text);
    }

    /**
     * Releases the lease at the end of what was held, unless that released it itself.
     *
     * @internal
     */
    public function finish(bool $quietly): void
    {
        if ($this->over) {
            return;
        }
        try {
            $this->release();
        } catch (StanchionException $error) {
            if (!$quietly) {
                throw $error;
            }
        }
    }

    private function info(string $field): string
    {
        $native = Native::get();
        // Kept to the end: what is read from it points into it.
        $info = $native->record('stanchion_lease_info');
        $native->call('stanchion_lease_get', $this->handle, FFI::addr($info));
        return $native->text($info->$field);
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw Internal\Errors::invalid(
            'a lease cannot be serialized; detach() makes a text that another process can resume'
        );
    }
    /** @param array<mixed> $data */
    public function __unserialize(array $data): void
    {
        throw Internal\Errors::invalid('a lease cannot be unserialized');
    }
}
