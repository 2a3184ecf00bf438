<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Times;

/** One of those who wait for a lock, for people and dashboards: out of date as soon as it is read. */
final class Waiter
{
    private function __construct(
        /** The waiter's label; empty if unknown. */
        public readonly string $label,
        /** The waiter's host; empty if unknown. */
        public readonly string $host,
        /** The waiter's process id; 0 if unknown. */
        public readonly int $pid,
        /** When it got in line, by the store's clock, in seconds since 1970; null if unknown. */
        public readonly ?float $since,
        /** For how long it has waited, by the store's clock, in seconds; null if unknown. */
        public readonly ?float $waiting,
        /** How many permits it waits for: 1 if the lock is exclusive; of a read-write lock all if it wants to write. */
        public readonly int $weight,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            \FFI::string($record->label),
            \FFI::string($record->host),
            $record->pid,
            $record->since_ms === 0 ? null : Times::seconds($record->since_ms),
            Times::maybeSeconds($record->waiting_ms),
            $record->weight,
        );
    }
}
