<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;

/**
 * Cached values: JSON on both sides of the store.
 *
 * @internal
 */
final class Computation
{
    private const FREE = 'stanchion_cached_free';
    /** Of stanchion_status. */
    private const COMPUTE = 10;

    /** @see \Stanchion\Client::cached() */
    public static function cached(
        int $client,
        string $name,
        callable $compute,
        int $ttl,
        int $stale,
        mixed $beta,
        int $wait,
        int $lease,
        int $maxRun,
        ?bool $withoutStore,
        ?string $label,
    ): mixed {
        $native = Native::get();
        $memory = new Memory($native);
        $options = $native->defaults('stanchion_cached_options', 'stanchion_cached_options_init');
        $options->ttl_ms = $ttl;
        $options->stale_ms = $stale;
        $options->beta = self::beta($beta);
        $options->wait_ms = $wait;
        $options->lease_ms = $lease;
        $options->max_run_ms = $maxRun;
        $options->without_store = $withoutStore === null ? -1 : (int) $withoutStore;
        $memory->setText($options->label, $label);
        $found = new Handles($native, 1, self::FREE);
        $address = FFI::addr($options);
        $length = strlen($name);
        $status = $native->call('stanchion_cached_begin', $client, $name, $length, $address, $found->places);
        if ($status !== self::COMPUTE) {
            return self::decoded($name, self::value($native, $found));
        }
        // If this throws, or the program ends in it, the next caller computes: the handle is freed then.
        $value = self::encoded($name, $compute());
        $native->call('stanchion_cached_store', $found->places[0], $value, strlen($value));
        return self::decoded($name, $value);
    }

    private static function beta(mixed $beta): float
    {
        if ($beta === null) {
            return -1.0;
        }
        if (!is_int($beta) && !is_float($beta)) {
            throw Errors::argument('beta', 'a number', $beta);
        }
        if ($beta < 0) {
            throw Errors::argument('beta', 'at least 0', $beta);
        }
        return (float) $beta;
    }

    private static function value(Native $native, Handles $found): string
    {
        $data = $native->make('void *');
        $length = $native->make('size_t');
        $native->call('stanchion_cached_get', $found->places[0], FFI::addr($data), FFI::addr($length));
        return $native->bytes($data, $length->cdata);
    }

    private static function encoded(string $name, mixed $value): string
    {
        try {
            return Payload::json($value);
        } catch (\JsonException $error) {
            throw Errors::invalid("\"$name\": the computed value is no JSON value: {$error->getMessage()}");
        }
    }

    /** The value as everybody gets it, the one who computed it included. */
    private static function decoded(string $name, string $stored): mixed
    {
        try {
            return json_decode($stored, true, 512, JSON_THROW_ON_ERROR);
        } catch (\JsonException) {
            $message = "cached \"$name\": what is stored is no JSON value; another program stores bytes there";
            throw Errors::noJson($message, $name);
        }
    }
}
