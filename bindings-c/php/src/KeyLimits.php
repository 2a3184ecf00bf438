<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;

/** What a key has of its own: see Queue::limitKey(). Null is as the queue has it. */
final class KeyLimits
{
    private function __construct(
        /** How many of its tasks are in line and running at most. */
        public readonly ?int $concurrency,
        /** How many of its tasks are delivered per time. */
        public readonly ?Rate $rate,
        /** Its share beside other keys. */
        public readonly int $weight,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): ?self
    {
        if ($record->weight < 0) {
            return null;
        }
        $concurrency = $record->concurrency < 0 ? null : $record->concurrency;
        return new self($concurrency, Rate::fromNative($record->rate), $record->weight);
    }
}
