<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Client;
use Stanchion\Exception\StanchionException;

/**
 * What is done when the request or the program ends: leases and claims that are left are let go of.
 *
 * @internal
 */
final class Ending
{
    /** How long the end of a program may be delayed, in seconds. Under FPM the process lives on. */
    private const FAREWELL = 0.5;

    private static bool $registered = false;
    /** @var array<int, string> Handles, and the functions that free them. */
    private static array $open = [];
    /** @var ?\WeakMap<Client, true> */
    private static ?\WeakMap $clients = null;

    public static function noteClient(Client $client): void
    {
        self::$clients ??= new \WeakMap();
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

    public static function forget(int $handle): void
    {
        unset(self::$open[$handle]);
    }

    public static function free(int $handle, string $free): void
    {
        unset(self::$open[$handle]);
        Native::get()->ffi->$free($handle);
    }

    private static function farewell(): void
    {
        foreach (self::$open as $handle => $free) {
            self::free($handle, $free);
        }
        if (PHP_SAPI !== 'cli' && PHP_SAPI !== 'phpdbg') {
            return;
        }
        $until = microtime(true) + self::FAREWELL;
        foreach (self::$clients ?? [] as $client => $_) {
            try {
                $client->linger(max(0.0, $until - microtime(true)));
            } catch (StanchionException) {
                // In a forked child they are the parent's.
            }
        }
    }
}
