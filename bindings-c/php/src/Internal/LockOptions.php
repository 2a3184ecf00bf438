<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI\CData;

/**
 * How to acquire a lock. Immutable; checked when it is made.
 *
 * @internal
 */
final class LockOptions
{
    private ?CData $record = null;
    private ?Memory $memory = null;

    private function __construct(
        private readonly int $ttl,
        private readonly int $renew,
        private readonly int $maxHold,
        private readonly int $wait,
        private readonly int $failFast,
        private readonly int $adoptUnexpiring,
        private readonly ?string $label,
        private readonly int $weight = -1,
        private ?string $owner = null,
    ) {
    }

    public static function of(
        mixed $ttl,
        ?bool $renew,
        mixed $maxHold,
        mixed $wait,
        ?bool $failFast,
        mixed $adoptUnexpiring,
        ?string $label,
    ): self {
        return new self(
            Times::span('ttl', $ttl),
            Arguments::flag($renew),
            Times::span('maxHold', $maxHold),
            Times::span('wait', $wait),
            Arguments::flag($failFast),
            Times::span('adoptUnexpiring', $adoptUnexpiring),
            $label,
        );
    }

    /** These options, changed by what is given. */
    public function with(
        mixed $ttl,
        ?bool $renew,
        mixed $maxHold,
        mixed $wait,
        ?bool $failFast,
        mixed $adoptUnexpiring,
        ?string $label,
        ?int $weight,
    ): self {
        if (($ttl ?? $renew ?? $maxHold ?? $wait ?? $failFast ?? $adoptUnexpiring ?? $label ?? $weight) === null) {
            return $this;
        }
        return new self(
            $ttl === null ? $this->ttl : Times::span('ttl', $ttl),
            $renew === null ? $this->renew : (int) $renew,
            $maxHold === null ? $this->maxHold : Times::span('maxHold', $maxHold),
            $wait === null ? $this->wait : Times::span('wait', $wait),
            $failFast === null ? $this->failFast : (int) $failFast,
            $adoptUnexpiring === null ? $this->adoptUnexpiring : Times::span('adoptUnexpiring', $adoptUnexpiring),
            $label ?? $this->label,
            $weight === null ? $this->weight : Arguments::number('weight', $weight, 0),
            $this->owner,
        );
    }

    /** These options, for an owner that may come in again. */
    public function ownedBy(string $owner): self
    {
        $owned = clone $this;
        $owned->owner = $owner;
        $owned->record = $owned->memory = null;
        return $owned;
    }

    /** The same as C has them; it lives as long as this object. */
    public function record(): CData
    {
        return $this->record ??= $this->makeRecord();
    }

    private function makeRecord(): CData
    {
        $native = Native::get();
        $this->memory = new Memory($native);
        $record = $native->defaults('stanchion_lock_options', 'stanchion_lock_options_init');
        $record->ttl_ms = $this->ttl;
        $record->renew = $this->renew;
        $record->max_hold_ms = $this->maxHold;
        $record->wait_ms = $this->wait;
        $record->fail_fast = $this->failFast;
        $record->adopt_unexpiring_ms = $this->adoptUnexpiring;
        $record->weight = $this->weight;
        $this->memory->setText($record->label, $this->label);
        $this->memory->setText($record->owner, $this->owner);
        return $record;
    }
}
