<?php

declare(strict_types=1);

namespace Stanchion\Symfony;

use Stanchion\Claim;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** The claim that a message came with. */
final class ClaimStamp implements NonSendableStampInterface
{
    public function __construct(public readonly Claim $claim)
    {
    }
}
