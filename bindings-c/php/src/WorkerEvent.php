<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;

/** Something that happened to a worker. */
final class WorkerEvent
{
    private function __construct(
        public readonly WorkerEventKind $kind,
        /** The task; empty if it is about none. */
        public readonly string $id,
        /** Counts deliveries of the task from one; 0 if it is about no task. */
        public readonly int $attempt,
        /** Why; empty if there is no reason. */
        public readonly string $reason,
    ) {
    }

    /** @internal */
    public static function unknownKind(Claim $claim, string $reason): self
    {
        return new self(WorkerEventKind::UnknownKind, $claim->id(), $claim->attempt(), $reason);
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            WorkerEventKind::fromNative($record->kind),
            \FFI::string($record->id, $record->id_len),
            $record->attempt,
            \FFI::string($record->reason, $record->reason_len),
        );
    }
}
