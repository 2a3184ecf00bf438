<?php

declare(strict_types=1);

namespace Stanchion;

/**
 * Some names, in no order.
 *
 * @implements \IteratorAggregate<int, string>
 */
final class NamePage implements \Countable, \IteratorAggregate
{
    /**
     * @internal
     * @param list<string> $names
     */
    public function __construct(
        public readonly array $names,
        /** Gets the next page; null if this was the last. */
        public readonly ?int $next,
    ) {
    }

    public function count(): int
    {
        return count($this->names);
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->names);
    }
}
