<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Times;

/** What an enqueue did. */
final class Enqueued
{
    private function __construct(
        /** The task's id; a random one if none was given. */
        public readonly string $id,
        public readonly Outcome $outcome,
        /** Grows with every accepted enqueue of the id; 0 if throttled. */
        public readonly int $version,
        /** When the task is due, in seconds since 1970; null if throttled. */
        public readonly ?float $due,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            \FFI::string($record->id, $record->id_len),
            Outcome::fromNative($record->outcome),
            $record->version,
            Times::maybeSeconds($record->due_ms),
        );
    }
}
