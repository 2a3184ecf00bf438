<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;
use Stanchion\Cancelled;
use Stanchion\Exception\Indeterminate;
use Stanchion\Rate;
use Stanchion\TaskState;

/**
 * How a Queue is looked after.
 *
 * @internal
 */
trait Managing
{
    /**
     * Drops a task, also while it is claimed: whether there was one.
     *
     * @param ?int $version remove it only if this is still the task's version (any)
     * @param ?int $otherVersion gets the version that the task has instead; null otherwise
     */
    public function remove(string $id, ?int $version = null, ?int &$otherVersion = null): bool
    {
        $found = Native::get()->make('int64_t');
        $version = Arguments::number('version', $version, 0);
        $status = $this->call('stanchion_queue_remove', $id, strlen($id), $version, FFI::addr($found));
        $otherVersion = $status === self::OTHER_VERSION ? $found->cdata : null;
        return $status === self::OK;
    }

    /**
     * Gives a waiting task another due time: whether it was moved.
     *
     * @param int|float|\DateTimeInterface $due in seconds since 1970
     * @param ?TaskState $otherState gets the state in which it cannot be moved: Claimed or Dead; null otherwise
     */
    public function reschedule(string $id, mixed $due, ?TaskState &$otherState = null): bool
    {
        if ($due === null) {
            throw Errors::argument('due', 'a time', null);
        }
        $status = $this->call('stanchion_queue_reschedule', $id, strlen($id), Times::since1970('due', $due), null);
        $otherState = match ($status) {
            self::CLAIMED => TaskState::Claimed,
            self::DEAD => TaskState::Dead,
            default => null,
        };
        return $status === self::OK;
    }

    /**
     * Ends a task. One that waits is dropped. One that runs is told at the next renewal of its claim, within a third
     * of its lease, which is lost then (Loss::Cancelled); an ack of that run is still accepted, and whatever else it
     * ends with, the task is not tried again. What is enqueued later is a new task.
     *
     * @throws Indeterminate no answer came
     */
    public function cancel(string $id): Cancelled
    {
        return match ($this->call('stanchion_queue_cancel', $id, strlen($id))) {
            self::OK => Cancelled::Removed,
            self::RUNNING => Cancelled::Running,
            default => Cancelled::Absent,
        };
    }

    /** Stops giving out tasks. Claims that are out go on. */
    public function pause(): void
    {
        $this->call('stanchion_queue_pause');
    }

    /** Goes on giving out tasks. */
    public function resume(): void
    {
        $this->call('stanchion_queue_resume');
    }

    /**
     * Moves dead tasks back to ready, with all their attempts, unless their ids live. How many were moved.
     *
     * Ids, receipts or a count, not several of them; of these only those that match the filters. Filters alone:
     * all that match. It goes in steps: after an error, what earlier ones have moved stays moved.
     *
     * @param int|string|array<string>|null $ids the newest dead record of each; a number is a count
     * @param ?int $count so many of the oldest
     * @param ?array<int> $receipts of TaskInfo: an id that died more than once has several
     * @param string $reason only those whose reason begins so
     * @param string $prefix only those whose id begins so
     * @param int|float|null $olderThan only those that died so many seconds ago, or longer
     * @throws Indeterminate no answer came: they may be moved
     */
    public function kick(
        int|string|array|null $ids = null,
        ?int $count = null,
        ?array $receipts = null,
        string $reason = '',
        string $prefix = '',
        mixed $olderThan = null,
    ): int {
        $dead = new DeadTasks(Native::get(), $ids, $count, $receipts, $reason, $prefix, $olderThan);
        return $this->sweep('stanchion_queue_kick', $dead);
    }

    /**
     * Drops dead tasks. How many there were.
     *
     * @param int|string|array<string>|null $ids as in kick(), and so are the others
     * @param ?array<int> $receipts
     * @param int|float|null $olderThan
     * @throws Indeterminate no answer came: they may be gone
     */
    public function removeDead(
        int|string|array|null $ids = null,
        ?int $count = null,
        ?array $receipts = null,
        string $reason = '',
        string $prefix = '',
        mixed $olderThan = null,
    ): int {
        $dead = new DeadTasks(Native::get(), $ids, $count, $receipts, $reason, $prefix, $olderThan);
        return $this->sweep('stanchion_queue_remove_dead', $dead);
    }

    /** Drops every task, live and dead; claims that are out are lost. Settings stay. How many there were. */
    public function purge(): int
    {
        $dropped = Native::get()->make('uint64_t');
        $this->call('stanchion_queue_purge', FFI::addr($dropped));
        return $dropped->cdata;
    }

    /**
     * Changes settings; what is not given stays.
     *
     * @param int|false|null $maxLen refuse new ids when so many tasks are live; false: no limit (no limit)
     * @param ?int $deadMax keep so many dead tasks at most; the oldest go first (10000)
     * @param int|float|null $deadAge keep dead tasks for so many seconds (90 days)
     * @param ?int $deadBytes keep so many bytes of dead tasks' payloads at most (256 MiB)
     * @param ?bool $intake whether plain ZADDs to the queue's key are taken in; Redis only (true)
     * @param ?int $events keep so many events for events(), up to 100000; the oldest go first. What processes of 0.1.0
     *     do is not among them (0: none)
     * @param int|false|null $maxRunning run so many tasks at once at most, whoever runs them; false: no limit (no
     *     limit)
     * @param Rate|false|null $rate deliver so many tasks per time; every delivery counts, also a retry and one that is
     *     put back; false: no limit (no limit)
     * @param int|false|null $keyConcurrency so many tasks of each key are in line and running at most, unless the key
     *     has limits of its own, see limitKey(); false: no limit (no limit)
     * @param Rate|false|null $keyRate deliver so many tasks of each key per time, unless the key has limits of its own;
     *     false: no limit (no limit)
     */
    public function configure(
        int|false|null $maxLen = null,
        ?int $deadMax = null,
        mixed $deadAge = null,
        ?int $deadBytes = null,
        ?bool $intake = null,
        ?int $events = null,
        int|false|null $maxRunning = null,
        Rate|false|null $rate = null,
        int|false|null $keyConcurrency = null,
        Rate|false|null $keyRate = null,
    ): void {
        $native = Native::get();
        $settings = $native->defaults('stanchion_queue_config', 'stanchion_queue_config_init');
        $settings->max_len = self::limit('maxLen', $maxLen);
        $settings->dead_max = Arguments::number('deadMax', $deadMax, 0);
        $settings->dead_age_ms = Times::span('deadAge', $deadAge);
        $settings->dead_bytes = Arguments::number('deadBytes', $deadBytes, 0);
        $settings->intake = Arguments::flag($intake);
        $settings->events = Arguments::number('events', $events, 0);
        $settings->max_running = self::limit('maxRunning', $maxRunning);
        self::setRate('rate', $rate, $settings->rate);
        $settings->key_concurrency = self::limit('keyConcurrency', $keyConcurrency);
        self::setRate('keyRate', $keyRate, $settings->key_rate);
        $this->call('stanchion_queue_configure', FFI::addr($settings));
    }

    private static function limit(string $what, int|false|null $limit): int
    {
        return $limit === false ? self::NO_LIMIT : Arguments::number($what, $limit, 0);
    }

    private static function setRate(string $what, Rate|false|null $rate, CData $record): void
    {
        if ($rate === false) {
            $record->count = self::NO_LIMIT;
        } else {
            $rate?->toNative($what, $record);
        }
    }

    private function sweep(string $function, DeadTasks $dead): int
    {
        $count = Native::get()->make('uint64_t');
        $this->call($function, FFI::addr($dead->record), FFI::addr($count));
        return $count->cdata;
    }
}
