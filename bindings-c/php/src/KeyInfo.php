<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** What is known of a key. */
final class KeyInfo
{
    private function __construct(
        public readonly string $key,
        /** How many of its tasks are claimed. */
        public readonly int $running,
        /** How many stand in line. */
        public readonly int $inLine,
        /** How many are due, and held by its limits. */
        public readonly int $held,
        /** In how many seconds its rate, or a throttle, lets more of it go; null if neither is in the way. */
        public readonly ?float $opensIn,
        /** What it has of its own; null if that is nothing. */
        public readonly ?KeyLimits $limits,
    ) {
    }

    /**
     * Every key of a stanchion_keys, which is freed.
     *
     * @internal
     * @return list<self>
     */
    public static function allFromNative(int $keys): array
    {
        $native = Native::get();
        try {
            $infos = [];
            $record = $native->record('stanchion_key_info');
            for ($i = 0, $count = $native->ffi->stanchion_keys_len($keys); $i < $count; $i++) {
                $native->call('stanchion_keys_at', $keys, $i, \FFI::addr($record));
                $infos[] = self::fromNative($native, $record);
            }
            return $infos;
        } finally {
            $native->ffi->stanchion_keys_free($keys);
        }
    }

    private static function fromNative(Native $native, CData $record): self
    {
        return new self(
            $native->text($record->key),
            $record->running,
            $record->in_line,
            $record->held,
            Times::maybeSeconds($record->opens_in_ms),
            KeyLimits::fromNative($record),
        );
    }
}
