<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Times;

/** What to do if the id is in the queue already. */
final class OnDuplicate
{
    private function __construct(
        /** @internal */
        public readonly int $policy,
        /** @internal */
        public readonly int $windowMillis = Times::NONE,
    ) {
    }

    /** The task that is there stays as it is. */
    public static function keep(): self
    {
        return new self(0);
    }

    /** As keep(), but if the id is running nothing comes after it. */
    public static function skip(): self
    {
        return new self(4);
    }

    /** The new task takes its place, attempts start again. */
    public static function replace(): self
    {
        return new self(1);
    }

    /**
     * As replace(); the due time moves on with every enqueue, until `$maxWait` after the first.
     *
     * @param int|float $maxWait in seconds
     */
    public static function debounce(mixed $maxWait): self
    {
        return new self(2, Times::needed('maxWait', $maxWait));
    }

    /**
     * At most one enqueue of the id is accepted per window, whatever became of the task; otherwise as keep().
     *
     * @param int|float $window in seconds
     */
    public static function throttle(mixed $window): self
    {
        return new self(3, Times::needed('window', $window));
    }
}
