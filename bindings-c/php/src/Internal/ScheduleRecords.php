<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI\CData;
use Stanchion\Missed;
use Stanchion\Overlap;
use Stanchion\Schedule;

/**
 * Schedules as C has them. They live as long as this object.
 *
 * @internal
 */
final class ScheduleRecords
{
    public readonly CData $array;
    private readonly Memory $memory;

    /** @param list<Schedule> $schedules */
    public function __construct(private readonly Native $native, array $schedules)
    {
        $this->memory = new Memory($native);
        $this->array = $native->makeMany('stanchion_schedule', count($schedules));
        foreach ($schedules as $index => $schedule) {
            $this->fill($this->array[$index], $schedule);
        }
    }

    /** A schedule, given as a Schedule, or an array of a Schedule's fields, in order or by name. */
    public static function from(mixed $item): Schedule
    {
        if ($item instanceof Schedule) {
            return $item;
        }
        if (!is_array($item)) {
            throw Errors::argument('schedules', 'Schedules or arrays', $item);
        }
        try {
            return new Schedule(...$item);
        } catch (\Error $error) {
            throw Errors::invalid("this makes no schedule: {$error->getMessage()}");
        }
    }

    private function fill(#[\SensitiveParameter] CData $record, Schedule $schedule): void
    {
        [$payload, $headers] = Payload::encode($schedule->payload, $schedule->headers);
        $this->native->init($record, 'stanchion_schedule_init');
        $this->memory->setText($record->id, $schedule->id);
        $this->memory->setText($record->when, $schedule->when);
        $this->memory->setText($record->tz, $schedule->tz);
        if (is_int($schedule->missed)) {
            // C could not distinguish -1 from "not given".
            Arguments::number('missed', $schedule->missed, 1);
        }
        [$record->missed, $record->missed_max] = Missed::toNative($schedule->missed);
        $record->overlap = array_search($schedule->overlap, Overlap::cases(), true);
        $record->jitter_ms = Times::span('jitter', $schedule->jitter);
        $record->starts_ms = Times::since1970('starts', $schedule->starts);
        $record->ends_ms = Times::since1970('ends', $schedule->ends);
        $record->paused = (int) $schedule->paused;
        $this->memory->setPayload($record, $payload);
        $this->memory->setHeaders($record, $headers);
        $record->priority = Arguments::number('priority', $schedule->priority, 0, 255);
        $record->max_attempts = Arguments::number('maxAttempts', $schedule->maxAttempts, 1);
        $record->expires_ms = Times::span('expires', $schedule->expires);
        $this->memory->setText($record->key, $schedule->key);
    }
}
