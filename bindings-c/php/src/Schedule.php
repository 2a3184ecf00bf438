<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Internal\Arguments;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Native;
use Stanchion\Internal\ScheduleRecords;
use Stanchion\Internal\Times;

/**
 * Tasks at set times, for Queue::syncSchedules(). Each time is a slot, and each slot makes one task with the id
 * `schedule@2027-01-31T02:00:00Z`. Whoever claims from the queue fires what is due; the store's clock counts.
 */
final class Schedule
{
    /**
     * @param string $id 1 to 480 bytes of UTF-8 without control characters; a queue has one schedule of each id
     * @param string $when a cron text of 5 fields, or 6 with seconds first, or `@hourly`, `@daily`, `@weekly`,
     *     `@monthly`, `@yearly`; `every 90s`, `every 1h 30m`; or `at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00`
     * @param mixed $payload of each of its tasks, as in Task, and so are the headers and what comes behind
     * @param string $tz the time zone of a cron text, by its IANA name
     * @param Missed|int $missed what becomes of slots that nobody fired in time; a number n: all, at most the newest n
     * @param Overlap $overlap what becomes of a slot while the task of the one before lives
     * @param int|float|null $jitter delays all slots by the same time, which is drawn from the id and is shorter than
     *     so many seconds, a day at most (none)
     * @param int|float|\DateTimeInterface|null $starts no slot before, in seconds since 1970 (none)
     * @param int|float|\DateTimeInterface|null $ends no slot after, in seconds since 1970 (none)
     * @param bool $paused it fires nothing for now; only a new one begins so, one that is there stays as it is
     * @param array<string, string> $headers
     * @param ?int $priority 0 to 255, higher ones first (0)
     * @param ?int $maxAttempts after so many deliveries without success a task is dead (20: about two days)
     * @param int|float|null $expires do not deliver a task later than so many seconds after it was made (never)
     * @param ?string $key of each of its tasks (none)
     */
    public function __construct(
        public readonly string $id,
        public readonly string $when,
        public readonly mixed $payload = '',
        public readonly string $tz = 'UTC',
        public readonly Missed|int $missed = Missed::Last,
        public readonly Overlap $overlap = Overlap::Queue,
        public readonly mixed $jitter = null,
        public readonly mixed $starts = null,
        public readonly mixed $ends = null,
        public readonly bool $paused = false,
        public readonly array $headers = [],
        public readonly ?int $priority = null,
        public readonly ?int $maxAttempts = null,
        public readonly mixed $expires = null,
        public readonly ?string $key = null,
    ) {
    }

    /**
     * When the slots after this time are due, in seconds since 1970: fewer if the schedule ends. Asks no store. One
     * with a period begins at this time.
     *
     * @param int|float|\DateTimeInterface $after in seconds since 1970
     * @param int $count at most so many, 1 to 1000
     * @return list<float>
     */
    public function preview(mixed $after, int $count): array
    {
        if ($after === null) {
            throw Errors::argument('after', 'a time', null);
        }
        $after = Times::since1970('after', $after);
        Arguments::max('count', $count);
        $native = Native::get();
        $records = new ScheduleRecords($native, [$this]);
        $record = FFI::addr($records->array[0]);
        $times = $native->makeMany('int64_t', $count);
        $found = $native->make('size_t');
        $native->call('stanchion_schedule_preview', $record, $after, $times, $count, FFI::addr($found));
        $slots = [];
        for ($i = 0; $i < $found->cdata; $i++) {
            $slots[] = Times::seconds($times[$i]);
        }
        return $slots;
    }

    /**
     * The schedules of an object's methods, of those with the attribute Scheduled: for Queue::syncSchedules().
     *
     * @return list<self>
     */
    public static function of(object $object): array
    {
        $found = [];
        foreach ((new \ReflectionObject($object))->getMethods() as $method) {
            foreach ($method->getAttributes(Scheduled::class) as $attribute) {
                $found[] = $attribute->newInstance()->schedule($object::class . "::{$method->getName()}");
            }
        }
        return $found;
    }
}
