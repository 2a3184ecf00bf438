<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Backoff;
use Stanchion\Internal\Native;
use Stanchion\Internal\Payload;
use Stanchion\Internal\Times;

/** A task as it is in a queue. Times are seconds since 1970. */
final class TaskInfo
{
    /** @param array<string, string> $headers */
    private function __construct(
        public readonly string $id,
        public readonly TaskState $state,
        /** Empty in a listing without payloads; the headers, too. */
        public readonly string $payload,
        public readonly array $headers,
        /** Bytes of payload and headers, as stored. */
        public readonly int $size,
        /** Grows with every accepted enqueue of the id. 0: a plain ZADD, not taken in yet. */
        public readonly int $version,
        /** When it is or was due. */
        public readonly float $due,
        public readonly int $priority,
        /** Deliveries so far. */
        public readonly int $attempts,
        public readonly int $maxAttempts,
        /** Not delivered after this; null if it does not expire. */
        public readonly ?float $expires,
        /** Of the last delivery that is not settled, or of the dead record; 0 if there is none. */
        public readonly int $receipt,
        /** What is left of the lease, in seconds; 0 if it is not claimed. */
        public readonly float $leaseLeft,
        /** Why the last attempt failed, or why it is dead; empty if nothing failed. */
        public readonly string $reason,
        /** When it died; null if it lives. */
        public readonly ?float $died,
        /** When the task that waits for the end of this one's run is due; null if there is none. */
        public readonly ?float $successorDue,
        /** Who claimed it last; null if nobody did. */
        public readonly ?ClaimedBy $claimedBy,
        /** Its kind; null if it has none, or in a listing without payloads. */
        public readonly ?string $kind,
        /** How many seconds a run may take; null if it does not say, or in a listing without payloads. */
        public readonly ?float $timeout,
        /** How many seconds it waits after failures; null if it does not say, or in a listing without payloads. */
        public readonly array|Exponential|null $backoff,
        /** @var list<TaskFailure> the last five failed attempts, the latest last */
        public readonly array $failures,
        /** How far its run has come, as that said; empty if it did not, or does not run. */
        public readonly string $progress,
        /** Whether it was cancelled while it runs: this run is its last. */
        public readonly bool $cancelled,
        /** Its key; null if it has none. */
        public readonly ?string $key,
    ) {
    }

    /**
     * The payload, read as JSON; objects become arrays.
     *
     * @throws \JsonException
     */
    public function json(): mixed
    {
        return Payload::decode($this->payload);
    }

    /**
     * Every task of a stanchion_tasks, which is freed.
     *
     * @internal
     * @return list<self>
     */
    public static function allFromNative(int $tasks): array
    {
        $native = Native::get();
        try {
            $infos = [];
            $record = $native->record('stanchion_task_info');
            for ($i = 0, $count = $native->ffi->stanchion_tasks_len($tasks); $i < $count; $i++) {
                $native->call('stanchion_tasks_at', $tasks, $i, \FFI::addr($record));
                $infos[] = self::fromNative($native, $record, TaskFailure::allFromNative($native, $tasks, $i, $record));
            }
            return $infos;
        } finally {
            $native->ffi->stanchion_tasks_free($tasks);
        }
    }

    /** @param list<TaskFailure> $failures */
    private static function fromNative(Native $native, CData $record, array $failures): self
    {
        return new self(
            $native->text($record->id),
            TaskState::fromNative($record->state),
            $native->bytes($record->payload, $record->payload_len),
            $native->headers($record),
            $record->size,
            $record->version,
            Times::seconds($record->due_ms),
            $record->priority,
            $record->attempts,
            $record->max_attempts,
            Times::maybeSeconds($record->expires_ms),
            $record->receipt,
            Times::seconds($record->lease_left_ms),
            $native->text($record->reason),
            Times::maybeSeconds($record->died_ms),
            Times::maybeSeconds($record->successor_due_ms),
            ClaimedBy::fromNative($native, $record),
            $native->maybeText($record->kind),
            Times::maybeSeconds($record->timeout_ms),
            Backoff::decode($native->text($record->backoff)),
            $failures,
            $native->bytes($record->progress, $record->progress_len),
            (bool) $record->cancelled,
            $native->maybeText($record->key),
        );
    }
}
