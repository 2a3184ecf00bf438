<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** A schedule as it is in a queue. Times are seconds since 1970. */
final class ScheduleInfo
{
    private function __construct(
        public readonly string $id,
        /** When its slots are. If a newer version has put it, what that has stored: it is left alone by this one. */
        public readonly string $when,
        public readonly string $tz,
        /** What becomes of missed slots; a number n: all, at most the newest n; null if a newer version has put it. */
        public readonly Missed|int|null $missed,
        /** What becomes of a slot while the task of the one before lives; null: this package does not know it. */
        public readonly ?Overlap $overlap,
        /** By how many seconds its slots are delayed at most. */
        public readonly float $jitter,
        /** No slot before; null if that is not set. */
        public readonly ?float $starts,
        /** No slot after; null if that is not set. */
        public readonly ?float $ends,
        /** Whether it fires nothing. */
        public readonly bool $paused,
        /** When its next slot is due; null if it is paused, or none comes any more. */
        public readonly ?float $next,
        /** For how many seconds that has been due: more than a moment means that nobody works on the queue. */
        public readonly float $late,
        /** Whose list it is in; null if it is in none. */
        public readonly ?string $owner,
        /** How many tasks it has made. */
        public readonly int $fired,
        /** How many slots got no task: the one before was running, or the queue was full. */
        public readonly int $skipped,
        /** How many slots were past and were not fired. */
        public readonly int $missedSlots,
        /** The id of the last task that it made; null if it has made none. */
        public readonly ?string $lastTask,
        /** Of its tasks, and so are the two behind. */
        public readonly int $priority,
        public readonly int $maxAttempts,
        /** In seconds; null if they do not expire. */
        public readonly ?float $expires,
        /** Bytes of its tasks' payload and headers, as stored. */
        public readonly int $size,
        /** Of its tasks; null if they have none. */
        public readonly ?string $key,
    ) {
    }

    /**
     * Every schedule of a stanchion_schedules, which is freed.
     *
     * @internal
     * @return list<self>
     */
    public static function allFromNative(int $schedules): array
    {
        $native = Native::get();
        try {
            $infos = [];
            $record = $native->record('stanchion_schedule_info');
            for ($i = 0, $count = $native->ffi->stanchion_schedules_len($schedules); $i < $count; $i++) {
                $native->call('stanchion_schedules_at', $schedules, $i, \FFI::addr($record));
                $infos[] = self::fromNative($native, $record);
            }
            return $infos;
        } finally {
            $native->ffi->stanchion_schedules_free($schedules);
        }
    }

    private static function fromNative(Native $native, CData $record): self
    {
        $owner = $native->text($record->owner);
        $last = $native->text($record->last_task);
        return new self(
            $native->text($record->id),
            $native->text($record->when),
            $native->text($record->tz),
            Missed::fromNative($record->missed, $record->missed_max),
            Overlap::fromNative($record->overlap),
            Times::seconds($record->jitter_ms),
            Times::maybeSeconds($record->starts_ms),
            Times::maybeSeconds($record->ends_ms),
            $record->paused === 1,
            Times::maybeSeconds($record->next_ms),
            Times::seconds($record->late_ms),
            $owner === '' ? null : $owner,
            $record->fired,
            $record->skipped,
            $record->missed_slots,
            $last === '' ? null : $last,
            $record->priority,
            $record->max_attempts,
            Times::maybeSeconds($record->expires_ms),
            $record->size,
            $native->maybeText($record->key),
        );
    }
}
