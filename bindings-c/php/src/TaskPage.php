<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Native;

/**
 * Some of the tasks of one state.
 *
 * @implements \IteratorAggregate<int, TaskInfo>
 */
final class TaskPage implements \Countable, \IteratorAggregate
{
    /** A status of the library: this was not the last page. */
    private const OK = 0;

    /**
     * @internal
     * @param list<TaskInfo> $tasks
     */
    public function __construct(
        public readonly array $tasks,
        /** Gets the next page; null if this was the last. */
        public readonly ?string $next,
    ) {
    }

    /**
     * A stanchion_tasks, which is freed.
     *
     * @internal
     */
    public static function fromNative(int $tasks): self
    {
        $native = Native::get();
        try {
            $text = $native->make('stanchion_text');
            $status = $native->call('stanchion_tasks_next', $tasks, \FFI::addr($text));
            $next = $status === self::OK ? $native->text($text) : null;
        } catch (\Throwable $error) {
            $native->ffi->stanchion_tasks_free($tasks);
            throw $error;
        }
        return new self(TaskInfo::allFromNative($tasks), $next);
    }

    public function count(): int
    {
        return count($this->tasks);
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->tasks);
    }
}
