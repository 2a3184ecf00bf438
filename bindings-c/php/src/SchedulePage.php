<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Native;

/**
 * Some of a queue's schedules, in the order in which they are due; those that are paused or over come last.
 *
 * @implements \IteratorAggregate<int, ScheduleInfo>
 */
final class SchedulePage implements \Countable, \IteratorAggregate
{
    /** A status of the library: this was not the last page. */
    private const OK = 0;

    /**
     * @internal
     * @param list<ScheduleInfo> $schedules
     */
    public function __construct(
        public readonly array $schedules,
        /** Gets the next page; null if this was the last. */
        public readonly ?string $next,
    ) {
    }

    /**
     * A stanchion_schedules, which is freed.
     *
     * @internal
     */
    public static function fromNative(int $schedules): self
    {
        $native = Native::get();
        try {
            $text = $native->make('stanchion_text');
            $status = $native->call('stanchion_schedules_next', $schedules, \FFI::addr($text));
            $next = $status === self::OK ? $native->text($text) : null;
        } catch (\Throwable $error) {
            $native->ffi->stanchion_schedules_free($schedules);
            throw $error;
        }
        return new self(ScheduleInfo::allFromNative($schedules), $next);
    }

    public function count(): int
    {
        return count($this->schedules);
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->schedules);
    }
}
