<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Arguments;
use Stanchion\Internal\Times;

/** So many per time: over any time `$per` at most `$count + $burst`. 20 per second is `new Rate(20, 1)`. */
final class Rate
{
    /**
     * @param int $count how many
     * @param int|float $per in how many seconds: a millisecond to 366 days
     * @param int $burst how many may come at once after a pause
     */
    public function __construct(
        public readonly int $count,
        public readonly mixed $per,
        public readonly int $burst = 1,
    ) {
    }

    /** @internal */
    public static function fromNative(CData $record): ?self
    {
        return $record->count < 0 ? null : new self($record->count, Times::seconds($record->per_ms), $record->burst);
    }

    /**
     * Writes it into a stanchion_rate. C could not distinguish -1 from "not given".
     *
     * @internal
     */
    public function toNative(string $what, CData $record): void
    {
        $record->count = Arguments::number("the count of $what", $this->count, 0);
        $record->per_ms = Times::needed("the time of $what", $this->per);
        $record->burst = Arguments::number("the burst of $what", $this->burst, 0);
    }
}
