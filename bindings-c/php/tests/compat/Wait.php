<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

final class Wait
{
    /** Asks again and again until it is so; fails after ten seconds. */
    public static function until(string $what, \Closure $condition): void
    {
        $deadline = hrtime(true) + 10_000_000_000;
        while (!$condition()) {
            if (hrtime(true) > $deadline) {
                throw new \RuntimeException("waited in vain: $what");
            }
            usleep(1000);
        }
    }
}
