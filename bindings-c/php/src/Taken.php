<?php

declare(strict_types=1);

namespace Stanchion;

/** How a take of a limiter ended. */
final class Taken
{
    /** @internal */
    public function __construct(
        /** Whether it was taken. */
        public readonly bool $allowed,
        /** If not, the seconds after which a try would succeed, if nobody else takes any meanwhile; otherwise null. */
        public readonly ?float $retryAfter = null,
    ) {
    }
}
