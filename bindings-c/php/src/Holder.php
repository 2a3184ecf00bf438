<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Times;

/** Who holds a lock, for people and dashboards: out of date as soon as it is read. */
final class Holder
{
    private function __construct(
        public readonly HeldAs $heldAs,
        /** The holder's label; empty if unknown. */
        public readonly string $label,
        /** The holder's host; empty if unknown. */
        public readonly string $host,
        /** The holder's process id; 0 if unknown. */
        public readonly int $pid,
        /** The last fence granted or offered; 0 if there was none. Of a lock with several holders: this holder's. */
        public readonly int $fence,
        /** When it was granted, in seconds since 1970; null if unknown. */
        public readonly ?float $since,
        /** What is left of the holder's time, in seconds; null if it never ends by itself. */
        public readonly ?float $remaining,
        /** How many wait for the lock. */
        public readonly int $waiters,
        /** How many permits it has: 1 if the lock is exclusive; of a read-write lock all of them if it writes. */
        public readonly int $weight,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            HeldAs::fromNative($record->held_as),
            \FFI::string($record->label),
            \FFI::string($record->host),
            $record->pid,
            $record->fence,
            $record->since_ms === 0 ? null : Times::seconds($record->since_ms),
            Times::maybeSeconds($record->remaining_ms),
            $record->waiters,
            $record->weight,
        );
    }
}
