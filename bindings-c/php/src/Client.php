<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Exception\LockTimeout;
use Stanchion\Exception\StanchionException;
use Stanchion\Exception\StoreUnavailable;
use Stanchion\Internal\Arguments;
use Stanchion\Internal\Computation;
use Stanchion\Internal\Ending;
use Stanchion\Internal\Handles;
use Stanchion\Internal\LockOptions;
use Stanchion\Internal\Memory;
use Stanchion\Internal\Named;
use Stanchion\Internal\Names;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;
use Stanchion\Testing\Clock;

/** An opened store. A forked child may go on using it: it connects anew there. */
final class Client
{
    private function __construct(private readonly int $handle)
    {
        Ending::noteClient($handle);
    }

    /**
     * Opens a store: redis://, redis+unix://, redis-sentinel://, redis-cluster://, redis-quorum://, with TLS
     * rediss:// and so on, sqlite:PATH or memory:.
     *
     * The connection stays with the process: the same URL and options give it again, also in later requests of an FPM
     * process. A memory: store without a name is a new one each time.
     *
     * @param ?string $url without one, the environment variable STANCHION_URL names it
     * @param ?string $lockPrefix put before a lock's name to make its key ("Lock:")
     * @param ?string $queuePrefix put before a queue's name to make its key ("Queue:")
     * @param int|float|null $timeout how many seconds a call may take, beyond any wait for a lock or a task (5)
     * @param ?bool $foreignShare after some hand-offs in a row leave a lock free for a moment, for polling lockers of
     *     other
     *     programs; Redis only (false)
     * @param ?string $label shown to others as the holder, and as who claimed a task; 256 bytes at most (none)
     * @param ?string $tlsCa PEM file with the certificate authorities to trust instead of the system's
     * @param ?string $tlsCert PEM file with the client's certificate chain; goes with $tlsKey
     * @param ?string $tlsKey PEM file with the client's key
     * @param ?Clock $clock for tests on memory: stores
     * @throws StoreUnavailable
     * @throws StanchionException
     */
    public static function connect(
        #[\SensitiveParameter] ?string $url = null,
        ?string $lockPrefix = null,
        ?string $queuePrefix = null,
        mixed $timeout = null,
        ?bool $foreignShare = null,
        ?string $label = null,
        ?string $tlsCa = null,
        ?string $tlsCert = null,
        ?string $tlsKey = null,
        ?Clock $clock = null,
    ): self {
        $millis = Times::span('timeout', $timeout);
        $native = Native::get();
        $memory = new Memory($native);
        $options = $native->defaults('stanchion_connect_options', 'stanchion_connect_options_init');
        $memory->setText($options->lock_prefix, $lockPrefix);
        $memory->setText($options->queue_prefix, $queuePrefix);
        $memory->setText($options->label, $label);
        $memory->setText($options->tls_ca, $tlsCa);
        $memory->setText($options->tls_cert, $tlsCert);
        $memory->setText($options->tls_key, $tlsKey);
        $options->timeout_ms = $millis;
        $options->foreign_share = Arguments::flag($foreignShare);
        $options->clock = $clock?->handle() ?? 0;
        $client = $native->make('int64_t');
        $native->call('stanchion_connect_shared', $url, strlen($url ?? ''), FFI::addr($options), FFI::addr($client));
        return new self($client->cdata);
    }

    public function __destruct()
    {
        Ending::freeClient($this->handle);
    }

    /** The version of the native library, such as "0.1.0". */
    public static function version(): string
    {
        return Native::get()->ffi->stanchion_version();
    }

    /**
     * The lock with this name, and the default options of its acquires. No I/O.
     *
     * @param int|float|null $ttl for how many seconds the store keeps the lease without renewal: 0.05 s to 365 days;
     *     with a
     *     ttl given, the lease is not renewed, unless $renew is true (30, renewed until it is released)
     * @param ?bool $renew whether the lease is renewed until it is released
     * @param int|float|null $maxHold for how many seconds a lease is renewed at most; then it is lost (3600)
     * @param int|float|null $wait how many seconds to wait for the lock (10)
     * @param ?bool $failFast do not wait at all if the holder's time is longer than the wait (false)
     * @param int|float|null $adoptUnexpiring take over another program's value that never expires, once it has not
     *     changed
     *     for so many seconds; unsound if that program still runs (never)
     * @param ?string $label shown to others as the holder; 256 bytes at most (the client's)
     */
    public function lock(
        string $name,
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        mixed $wait = null,
        ?bool $failFast = null,
        mixed $adoptUnexpiring = null,
        ?string $label = null,
    ): Lock {
        $options = LockOptions::of($ttl, $renew, $maxHold, $wait, $failFast, $adoptUnexpiring, $label);
        return new Lock($this, Named::exclusive($name), $options);
    }

    /**
     * The read-write lock with this name: many readers, or one writer. Those who wait are served in the order in which
     * they came, so that neither readers nor writers starve. Options as in lock(): by default a lease of
     * 30 s that is renewed, a wait of 10 s. No I/O.
     *
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $wait in seconds
     */
    public function rwLock(
        string $name,
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        mixed $wait = null,
        ?bool $failFast = null,
        ?string $label = null,
    ): RwLock {
        $options = LockOptions::of($ttl, $renew, $maxHold, $wait, $failFast, null, $label);
        return new RwLock($this, $name, $options);
    }

    /**
     * The semaphore with this name and so many permits. An acquire takes one, or acquire(weight: ...). While anybody
     * holds or waits for permits, all must agree on their number; another one is InvalidArgument. Options as in lock():
     * by default a lease of 30 s that is renewed, a wait of 10 s.
     * No I/O.
     *
     * @param int $permits 1 to 1,000,000
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $wait in seconds
     */
    public function semaphore(
        string $name,
        int $permits,
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        mixed $wait = null,
        ?bool $failFast = null,
        ?string $label = null,
    ): Lock {
        $options = LockOptions::of($ttl, $renew, $maxHold, $wait, $failFast, null, $label);
        return new Lock($this, Named::semaphore($name, $permits), $options);
    }

    /**
     * Several locks that are acquired together, all or none: one after another in the order of their names, so that two
     * callers never wait for each other. Names that come twice count once; without any name an acquire is
     * InvalidArgument. Its holder() is that of the first. Options as in lock(): by default a lease of 30 s that is
     * renewed, a wait of 10 s. No I/O.
     *
     * @param array<string> $names
     * @param int|float|null $ttl in seconds
     * @param int|float|null $maxHold in seconds
     * @param int|float|null $wait in seconds
     * @param int|float|null $adoptUnexpiring in seconds
     */
    public function multiLock(
        array $names,
        mixed $ttl = null,
        ?bool $renew = null,
        mixed $maxHold = null,
        mixed $wait = null,
        ?bool $failFast = null,
        mixed $adoptUnexpiring = null,
        ?string $label = null,
    ): Lock {
        $options = LockOptions::of($ttl, $renew, $maxHold, $wait, $failFast, $adoptUnexpiring, $label);
        return new Lock($this, Named::several(Arguments::texts('names', $names)), $options);
    }

    /**
     * The cached value with this name; if there is none, the function makes it, for one caller at a time. The others
     * wait, and get what it made: any JSON value, as JSON returns it (objects as arrays), of at most 16 MiB. If the
     * function throws, this caller gets the exception, and the next one computes.
     *
     * A value that could not be stored, because the lease was lost or the store did not answer, is still returned.
     *
     * @param int|float $ttl for how many seconds the value is fresh
     * @param callable(): mixed $compute
     * @param int|float|null $stale for how many seconds after that the old value is still returned while one caller
     *     computes a new one (0)
     * @param int|float|null $beta before its time is over one caller, chosen at random, computes the value anew: the
     *     earlier, the longer that takes and the larger beta is; 0 turns it off (1)
     * @param int|float|null $wait how many seconds to wait for the value that another computes (10)
     * @param int|float|null $lease if the computing caller dies, another may compute after so many seconds (30; renewed
     *     while it lives)
     * @param int|float|null $maxRun how many seconds a computation may take (3600)
     * @param ?bool $withoutStore whether every caller computes by itself, and stores nothing, when the store has not
     *     answered for a second; the store is then not asked for five seconds; false: wait, and fail (true)
     * @param ?string $label shown to others as who computes; 256 bytes at most (the client's)
     * @throws LockTimeout another computed for the whole wait
     * @throws StanchionException
     */
    public function cached(
        string $name,
        mixed $ttl,
        callable $compute,
        mixed $stale = null,
        mixed $beta = null,
        mixed $wait = null,
        mixed $lease = null,
        mixed $maxRun = null,
        ?bool $withoutStore = null,
        ?string $label = null,
    ): mixed {
        return Computation::cached(
            $this->handle,
            $name,
            $compute,
            Times::needed('ttl', $ttl),
            Times::span('stale', $stale),
            $beta,
            Times::span('wait', $wait),
            Times::span('lease', $lease),
            Times::span('maxRun', $maxRun),
            $withoutStore,
            $label,
        );
    }

    /**
     * Forgets the cached value with this name. A computation that has begun does not count either: its caller gets its
     * value, but the next one computes anew.
     */
    public function invalidate(string $name): void
    {
        Native::get()->call('stanchion_invalidate', $this->handle, $name, strlen($name));
    }

    /**
     * The limiter with this name: `n` in `per` seconds, for all who use it. The limit is code of its callers, and
     * travels with each call: all should give the same. For "so many at the same time" there is semaphore(). No I/O;
     * a limit that cannot be is refused by the first take.
     *
     * @param int $n 1 to 1,000,000, of a sliding window 10,000; no more than one per microsecond
     * @param int|float $per in seconds: 0.001 to 365 days
     * @param ?int $burst of LimitKind::Gcra, how many may come at once after a calm time (1)
     */
    public function limiter(
        string $name,
        int $n,
        mixed $per,
        ?int $burst = null,
        LimitKind $kind = LimitKind::Gcra,
    ): Limiter {
        $perMicros = Times::needed('per', $per) * 1000;
        $n = Arguments::number('n', $n, 0);
        return new Limiter($this, $name, $n, $perMicros, Arguments::number('burst', $burst, 0), $kind);
    }

    /** The queue with this name. No I/O. */
    public function queue(string $name): Queue
    {
        return new Queue($this, $name);
    }

    /**
     * Several queues, to claim from in this order. No I/O.
     *
     * @param array<string> $names
     */
    public function queues(array $names): Queues
    {
        return new Queues($this, Arguments::texts('names', $names));
    }

    /** Continues a lease that Lease::detach() ended, here or in another process. A handle works once. */
    public function resumeLease(#[\SensitiveParameter] string $handle): Lease
    {
        $native = Native::get();
        $lease = new Handles($native, 1, Lease::FREE);
        $native->call('stanchion_client_resume_lease', $this->handle, $handle, strlen($handle), $lease->places);
        return new Lease($this, $lease->places[0]);
    }

    /** Releases every lease that this process holds through this connection; returns how many. For shutdown. */
    public function releaseAll(): int
    {
        $native = Native::get();
        $count = $native->make('size_t');
        $native->call('stanchion_client_release_all', $this->handle, FFI::addr($count));
        return $count->cdata;
    }

    /**
     * Releases all leases, puts back all claims, and closes the connections: how many leases were released. Every later
     * call is refused with `Closed`, also those of other objects that `connect` has made from the same URL and options:
     * they share one connection. The next `connect` makes a new one.
     */
    public function close(): int
    {
        $native = Native::get();
        $count = $native->make('size_t');
        $native->call('stanchion_client_close', $this->handle, FFI::addr($count));
        return $count->cdata;
    }

    /**
     * Waits for what this client does in the background, such as releasing leases that were let go of: whether
     * nothing is left. Done at the end of a program, too, for half a second.
     *
     * @param int|float $time at most, in seconds
     */
    public function linger(mixed $time): bool
    {
        $native = Native::get();
        $done = $native->make('int32_t');
        $native->call('stanchion_client_linger', $this->handle, Times::needed('time', $time), FFI::addr($done));
        return $done->cdata === 1;
    }

    /**
     * What this client has counted since it was opened in this process, by the names of the Prometheus samples, such as
     * `stanchion_lock_acquires_total{outcome="granted"}`. No I/O. docs/METRICS.md has the names.
     *
     * @return array<string, float>
     */
    public function metrics(): array
    {
        return $this->counted(function (Native $native, int $metrics): array {
            $samples = [];
            for ($i = 0, $count = $native->ffi->stanchion_metrics_len($metrics); $i < $count; $i++) {
                $name = $native->make('stanchion_text');
                $value = $native->make('double');
                $native->call('stanchion_metrics_at', $metrics, $i, FFI::addr($name), FFI::addr($value));
                $samples[$native->text($name)] = $value->cdata;
            }
            return $samples;
        });
    }

    /** The same in Prometheus' text format, to be served as `text/plain; version=0.0.4`. No I/O. */
    public function metricsText(): string
    {
        return $this->counted(function (Native $native, int $metrics): string {
            $text = $native->make('stanchion_text');
            $native->call('stanchion_metrics_text', $metrics, FFI::addr($text));
            return $native->text($text);
        });
    }

    /** Names of locks that are held now, a page at a time. */
    public function locks(?int $page = null): NamePage
    {
        return Names::page('stanchion_client_locks', $this->handle, $page);
    }

    /** Names of queues that have tasks or settings, or had some in the last 7 days, a page at a time. */
    public function queueNames(?int $page = null): NamePage
    {
        return Names::page('stanchion_client_queues', $this->handle, $page);
    }

    /** @internal */
    public function handle(): int
    {
        return $this->handle;
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw Internal\Errors::invalid('a client cannot be serialized');
    }
    /** @param array<mixed> $data */
    public function __unserialize(array $data): void
    {
        throw Internal\Errors::invalid('a client cannot be unserialized');
    }

    /**
     * @template T
     * @param callable(Native, int): T $read
     * @return T
     */
    private function counted(callable $read): mixed
    {
        $native = Native::get();
        $metrics = $native->make('int64_t');
        $native->call('stanchion_client_metrics', $this->handle, FFI::addr($metrics));
        try {
            return $read($native, $metrics->cdata);
        } finally {
            $native->ffi->stanchion_metrics_free($metrics->cdata);
        }
    }
}
