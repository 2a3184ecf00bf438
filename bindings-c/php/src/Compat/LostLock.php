<?php

declare(strict_types=1);

namespace Stanchion\Compat;

use Stanchion\Exception\LeaseLost;

/** The lock is not this process's any more, or never was. */
final class LostLock extends LeaseLost
{
}
