<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * What is done when an object ends that has a handle, and when the request or the program ends: leases and claims that
 * are left are let go of.
 *
 * @internal
 */
final class Ending
{
    /** How long the end of a program may be delayed, in seconds. Under FPM the process lives on. */
    private const FAREWELL = 0.5;
    /** For so many nanoseconds no lease waits for its release after one has waited in vain; as for cached values. */
    private const SILENCE = 5_000_000_000;
    /** Of stanchion_status: StoreUnavailable and Indeterminate. */
    private const UNANSWERED = [-8, -9];

    private static int $silentUntil = 0;
    private static bool $registered = false;
    /** @var list<\Closure(): void> */
    private static array $before = [];
    /** @var array<int, string> Handles, and the functions that free them. */
    private static array $open = [];
    /** @var array<int, true> Handles of clients. */
    private static array $clients = [];

    public static function noteClient(int $client): void
    {
        self::$clients[$client] = true;
        if (!self::$registered) {
            self::$registered = true;
            // Registered again at the end, so as to run after what the program registers.
            register_shutdown_function(static fn () => register_shutdown_function(self::farewell(...)));
        }
    }

    public static function note(int $handle, string $free): void
    {
        self::$open[$handle] = $free;
    }

    public static function free(int $handle, string $free): void
    {
        unset(self::$open[$handle]);
        Native::get()->ffi->$free($handle);
    }

    /**
     * Frees the handle of a lease that nothing refers to any more. One that is ours is released first, so that the lock
     * is free when the next line runs. If the store does not answer, that goes on in the background.
     */
    public static function freeLease(int $lease, string $free): void
    {
        $ffi = Native::get()->ffi;
        // What is over, lost or a parent's has nothing to wait for.
        if (hrtime(true) >= self::$silentUntil && $ffi->stanchion_lease_is_valid($lease) === 1) {
            $status = $ffi->stanchion_lease_release($lease, null);
            if (in_array($status, self::UNANSWERED, true)) {
                self::$silentUntil = hrtime(true) + self::SILENCE;
            }
        }
        self::free($lease, $free);
    }

    /** Frees a handle unless an object has it. */
    public static function freeUnnoted(int $handle, string $free): void
    {
        if (!isset(self::$open[$handle])) {
            Native::get()->ffi->$free($handle);
        }
    }

    /** Frees a client when what it does in the background is done. */
    public static function freeClient(int $client): void
    {
        unset(self::$clients[$client]);
        self::linger($client, self::FAREWELL);
        Native::get()->ffi->stanchion_client_free($client);
    }

    /** Has a function be called before anything is let go of. */
    public static function precede(\Closure $function): void
    {
        self::$before[] = $function;
    }

    private static function farewell(): void
    {
        foreach (self::$before as $function) {
            $function();
        }
        Handles::freeAll();
        foreach (self::$open as $handle => $free) {
            self::free($handle, $free);
        }
        $until = microtime(true) + self::FAREWELL;
        foreach (self::$clients as $client => $_) {
            self::linger($client, max(0.0, $until - microtime(true)));
        }
    }

    /** Under FPM the process lives on, and nobody need wait. */
    private static function linger(int $client, float $time): void
    {
        if (PHP_SAPI === 'cli' || PHP_SAPI === 'phpdbg') {
            // An error is one of a forked child, whose leases are the parent's.
            $millis = Times::span('time', $time);
            Native::get()->ffi->stanchion_client_linger($client, $millis, null, null);
        }
    }
}
