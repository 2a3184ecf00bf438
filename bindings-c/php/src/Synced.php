<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;

/** What became of an owner's list of schedules. */
final class Synced
{
    private function __construct(
        /** How many are new. */
        public readonly int $added,
        /** How many were changed. */
        public readonly int $changed,
        /** How many are as they were. */
        public readonly int $kept,
        /** How many the owner had and has no more. */
        public readonly int $removed,
        /** If the queue has a list of a later generation, that one: then nothing was changed. Otherwise null. */
        public readonly ?int $newer,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            $record->added,
            $record->changed,
            $record->kept,
            $record->removed,
            $record->newer < 0 ? null : $record->newer,
        );
    }
}
