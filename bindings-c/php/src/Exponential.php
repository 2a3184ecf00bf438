<?php

declare(strict_types=1);

namespace Stanchion;

/** Pauses that grow: `$base` seconds after the first failed attempt, `$factor` times as long after each further one. */
final class Exponential
{
    /**
     * @param int|float $base in seconds
     * @param int|float $factor 1 to 1000
     * @param int|float $max the longest pause, in seconds (7 h)
     * @param int|float $jitter by which part of itself a pause may be drawn shorter: 0 to 1
     */
    public function __construct(
        public readonly mixed $base,
        public readonly mixed $factor = 2,
        public readonly mixed $max = 25200,
        public readonly mixed $jitter = 0.5,
    ) {
    }
}
