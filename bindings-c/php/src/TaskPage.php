<?php

declare(strict_types=1);

namespace Stanchion;

/**
 * Some of the tasks of one state.
 *
 * @implements \IteratorAggregate<int, TaskInfo>
 */
final class TaskPage implements \Countable, \IteratorAggregate
{
    /**
     * @internal
     * @param list<TaskInfo> $tasks
     */
    public function __construct(
        public readonly array $tasks,
        /** Gets the next page; null if this was the last. */
        public readonly ?int $next,
    ) {
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
