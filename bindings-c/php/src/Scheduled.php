<?php

declare(strict_types=1);

namespace Stanchion;

/**
 * Says when a method is to be called: `#[Scheduled('0 3 * * *', tz: 'Europe/Berlin')]`. Schedule::of() collects those
 * of an object; a worker finds the method by the id of the task. Arguments and defaults are those of Schedule, but for
 * the id: without one it is `Class::method`.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Scheduled
{
    /**
     * @param ?string $id needed by the second one of a method (`Class::method`)
     * @param int|float|null $jitter in seconds
     * @param int|float|\DateTimeInterface|null $starts in seconds since 1970
     * @param int|float|\DateTimeInterface|null $ends in seconds since 1970
     * @param array<string, string> $headers
     * @param int|float|null $expires in seconds
     */
    public function __construct(
        public readonly string $when,
        public readonly mixed $payload = '',
        public readonly ?string $id = null,
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
     * The schedule of the method of this name.
     *
     * @internal
     */
    public function schedule(string $method): Schedule
    {
        return new Schedule(...['id' => $this->id ?? $method] + get_object_vars($this));
    }
}
