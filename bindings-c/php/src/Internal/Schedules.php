<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Exception\Indeterminate;
use Stanchion\Exception\QueueFull;
use Stanchion\Missed;
use Stanchion\Overlap;
use Stanchion\Schedule;
use Stanchion\ScheduleInfo;
use Stanchion\ScheduleOutcome;
use Stanchion\SchedulePage;
use Stanchion\Synced;

/**
 * What a Queue does with schedules.
 *
 * @internal
 */
trait Schedules
{
    /**
     * Adds a schedule, or changes the one with its id: its slots go on as they are, unless what says when they are is
     * another. Arguments and defaults are those of Schedule.
     *
     * @param int|float|null $jitter in seconds
     * @param int|float|\DateTimeInterface|null $starts in seconds since 1970
     * @param int|float|\DateTimeInterface|null $ends in seconds since 1970
     * @param array<string, string> $headers
     * @param int|float|null $expires in seconds
     * @throws Indeterminate no answer came in time
     */
    public function schedule(
        string $id,
        string $when,
        mixed $payload = '',
        string $tz = 'UTC',
        Missed|int $missed = Missed::Last,
        Overlap $overlap = Overlap::Queue,
        mixed $jitter = null,
        mixed $starts = null,
        mixed $ends = null,
        bool $paused = false,
        array $headers = [],
        ?int $priority = null,
        ?int $maxAttempts = null,
        mixed $expires = null,
        ?string $key = null,
    ): ScheduleOutcome {
        $native = Native::get();
        $records = new ScheduleRecords($native, [new Schedule(
            $id,
            $when,
            $payload,
            $tz,
            $missed,
            $overlap,
            $jitter,
            $starts,
            $ends,
            $paused,
            $headers,
            $priority,
            $maxAttempts,
            $expires,
            $key,
        )]);
        $outcome = $native->make('int32_t');
        $this->call('stanchion_queue_schedule', FFI::addr($records->array[0]), FFI::addr($outcome));
        return ScheduleOutcome::fromNative($outcome->cdata);
    }

    /**
     * Makes these all the schedules of this owner, an application for example, 1,000 at most: adds what is new, changes
     * what is other, removes what the owner has no more. What others have put stays. To be called at each start, with
     * a number that grows with each deploy: a list of an older generation changes nothing, so that programs of the old
     * deploy that still run, or start once more, do no harm.
     *
     * @param iterable<Schedule|array<mixed>> $schedules each a Schedule, or an array of a Schedule's fields, in order
     *     or by name; Schedule::of() makes some of an object's methods
     */
    public function syncSchedules(string $owner, int $generation, iterable $schedules): Synced
    {
        $list = [];
        foreach ($schedules as $schedule) {
            $list[] = ScheduleRecords::from($schedule);
        }
        $native = Native::get();
        $records = new ScheduleRecords($native, $list);
        $synced = $native->record('stanchion_synced');
        $this->call(
            'stanchion_queue_sync_schedules',
            $owner,
            strlen($owner),
            $generation,
            $records->array,
            count($list),
            FFI::addr($synced),
        );
        return Synced::fromNative($synced);
    }

    /** One schedule. */
    public function getSchedule(string $id): ?ScheduleInfo
    {
        $found = Native::get()->make('int64_t');
        $status = $this->call('stanchion_queue_get_schedule', $id, strlen($id), FFI::addr($found));
        return $status === self::OK ? ScheduleInfo::allFromNative($found->cdata)[0] : null;
    }

    /**
     * The schedules, a page at a time, in the order in which they are due.
     *
     * @param ?string $page what the last page had in `next` (the first)
     * @param int $max 1 to 1000, and never more than 100
     */
    public function listSchedules(?string $page = null, int $max = 100): SchedulePage
    {
        Arguments::max('max', $max);
        $found = Native::get()->make('int64_t');
        $length = $page === null ? 0 : strlen($page);
        $this->call('stanchion_queue_list_schedules', $page, $length, $max, FFI::addr($found));
        return SchedulePage::fromNative($found->cdata);
    }

    /** Lets a schedule fire nothing until it is resumed: whether there is such a schedule. */
    public function pauseSchedule(string $id): bool
    {
        return $this->call('stanchion_queue_pause_schedule', $id, strlen($id)) === self::OK;
    }

    /** Lets a schedule go on; the slots of the pause are not fired. Whether there is such a schedule. */
    public function resumeSchedule(string $id): bool
    {
        return $this->call('stanchion_queue_resume_schedule', $id, strlen($id)) === self::OK;
    }

    /**
     * Makes a task of a schedule now, also if it is paused; its slots stay as they are. The task's id, or null if there
     * is no such schedule.
     *
     * @throws QueueFull the queue is at its limit
     * @throws Indeterminate no answer came: the task may be there
     */
    public function runSchedule(string $id): ?string
    {
        $ran = Native::get()->record('stanchion_ran');
        $status = $this->call('stanchion_queue_run_schedule', $id, strlen($id), FFI::addr($ran));
        return $status === self::OK ? FFI::string($ran->id, $ran->id_len) : null;
    }

    /**
     * Drops a schedule: whether there was one. The tasks that it has made stay.
     *
     * @throws Indeterminate no answer came: it may be gone
     */
    public function removeSchedule(string $id): bool
    {
        return $this->call('stanchion_queue_remove_schedule', $id, strlen($id)) === self::OK;
    }
}
