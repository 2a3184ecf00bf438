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
        /** Tasks that run at once at most; null: no limit. */
        public readonly ?int $maxRunning,
        /** Deliveries per time; null: no limit. */
        public readonly ?Rate $rate,
        /** Tasks of each key that are in line and running at most; null: no limit. */
        public readonly ?int $keyConcurrency,
        /** Deliveries of each key per time; null: no limit. */
        public readonly ?Rate $keyRate,
        /** Due, and held by the limits of their keys. */
        public readonly int $held,
        /** How many keys wait for a time, by their rate or a throttle. */
        public readonly int $keysWaiting,
        /** In how many seconds the first of them may go on; null if none waits. */
        public readonly ?float $nextKey,
        /** What keeps the queue from giving out tasks that are ready. */
        public readonly Gate $gate,
        /** Of Gate::Rate and Gate::Throttled, in how many seconds it opens; null otherwise. */
        public readonly ?float $opensIn,
        /** How many flows have begun and not ended. */
        public readonly int $flows,
    ) {
    }

    /** All tasks that are not dead. */
    public function live(): int
    {
        return $this->scheduled + $this->ready + $this->claimed + $this->held + $this->successors;
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
            $record->max_running < 0 ? null : $record->max_running,
            Rate::fromNative($record->rate),
            $record->key_concurrency < 0 ? null : $record->key_concurrency,
            Rate::fromNative($record->key_rate),
            $record->held,
            $record->keys_waiting,
            Times::maybeSeconds($record->next_key_ms),
            Gate::fromNative($record->gate),
            Times::maybeSeconds($record->opens_in_ms),
            $record->flows,
        );
    }
}
