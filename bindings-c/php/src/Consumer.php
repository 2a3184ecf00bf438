<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;

/** A process that works on a queue, for people and dashboards: out of date as soon as it is read. */
final class Consumer
{
    private function __construct(
        /** Its client's label; empty if it has none. */
        public readonly string $label,
        /** Its host; empty if unknown. */
        public readonly string $host,
        /** Its process id; 0 if unknown. */
        public readonly int $pid,
        /** How many of its calls wait for a task. */
        public readonly int $waiters,
        /** How many tasks it has claimed. */
        public readonly int $claims,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            \FFI::string($record->label),
            \FFI::string($record->host),
            $record->pid,
            $record->waiters,
            $record->claims,
        );
    }
}
