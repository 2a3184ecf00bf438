<?php

declare(strict_types=1);

namespace Stanchion\Compat;

use Stanchion\Exception\LockTimeout;

/** HashLock::getLock() waited in vain. */
final class Timeout extends LockTimeout
{
}
