<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;

/** What a worker has done so far. */
final class WorkerReport
{
    private function __construct(
        /** Tasks acked. */
        public readonly int $completed,
        /** Attempts that failed, those that killed the task included. */
        public readonly int $failed,
        /** Tasks that died. */
        public readonly int $dead,
        /** Claims that were lost. */
        public readonly int $lost,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self($record->completed, $record->failed, $record->dead, $record->lost);
    }
}
