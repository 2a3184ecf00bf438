<?php

declare(strict_types=1);

namespace Stanchion;

/**
 * Says of which kind the tasks are that a class handles: `#[Handles('send-welcome')]`; it may say so of several. The
 * class has `__invoke(array $payload, Claim $claim): mixed`, and a worker calls it through a Router.
 */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::IS_REPEATABLE)]
final class Handles
{
    /** @param string $kind 1 to 128 bytes of UTF-8 without control characters, as of Queue::enqueueKind() */
    public function __construct(public readonly string $kind)
    {
    }
}
