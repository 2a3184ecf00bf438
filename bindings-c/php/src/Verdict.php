<?php

declare(strict_types=1);

namespace Stanchion;

/** How a claim ended, for Queue::settle(). Made by Claim::acked(), nacked(), buried(), returned() and throttled(). */
final class Verdict
{
    /** @internal */
    public function __construct(
        public readonly Claim $claim,
        public readonly int $kind,
        public readonly int $delayMillis = -1,
        public readonly ?string $reason = null,
        public readonly ?string $result = null,
    ) {
    }
}
