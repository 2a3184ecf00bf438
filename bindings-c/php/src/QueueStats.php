<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Times;

/** How many tasks there are, what happened so far, and the settings. */
final class QueueStats
{
    private function __construct(
        /** Due later, those of the intake included. */
        public readonly int $scheduled,
        /** Due now, those of the intake included. */
        public readonly int $ready,
        /** Claimed, lease not ended. */
        public readonly int $claimed,
        /** Dead records. */
        public readonly int $dead,
        /** Tasks that wait for the end of a run of the same id. */
        public readonly int $successors,
        /** Whether the queue gives out no tasks. */
        public readonly bool $paused,
        /** In how many seconds the next task becomes due or a lease ends; 0 if something is due now; null: nothing. */
        public readonly ?float $nextDue,
        /** Since the queue was made or its record forgotten: enqueues accepted. */
        public readonly int $enqueued,
        /** Acks accepted, pops included. */
        public readonly int $acked,
        /** Failures that another try follows; the last one of a task that dies is not among them. */
        public readonly int $retried,
        /** Tasks that died. */
        public readonly int $died,
        /** New ids are refused when so many tasks are live; null: no limit. */
        public readonly ?int $maxLen,
        /** Dead tasks kept at most. */
        public readonly int $deadMax,
        /** For how many seconds dead tasks are kept. */
        public readonly float $deadAge,
        /** Bytes of dead tasks' payloads kept at most. */
        public readonly int $deadBytes,
        /** Whether plain ZADDs to the queue's key are taken in (Redis only). */
        public readonly bool $intake,
        /** How many calls wait for a task. */
        public readonly int $waiters,
        /** How many schedules there are. */
        public readonly int $schedules,
        /** For how many seconds the first has been due: more than a moment means that nobody works on the queue. */
        public readonly float $schedulesLate,
        /** Events kept at most, for Queue::events(); 0: none. */
        public readonly int $events,
    ) {
    }

    /** All tasks that are not dead. */
    public function live(): int
    {
        return $this->scheduled + $this->ready + $this->claimed + $this->successors;
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        return new self(
            $record->scheduled,
            $record->ready,
            $record->claimed,
            $record->dead,
            $record->successors,
            $record->paused === 1,
            Times::maybeSeconds($record->next_due_ms),
            $record->enqueued,
            $record->acked,
            $record->retried,
            $record->died,
            $record->max_len < 0 ? null : $record->max_len,
            $record->dead_max,
            Times::seconds($record->dead_age_ms),
            $record->dead_bytes,
            $record->intake === 1,
            $record->waiters,
            $record->schedules,
            Times::seconds($record->schedules_late_ms),
            $record->events,
        );
    }
}
