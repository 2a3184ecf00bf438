<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The lease ran out; nobody is known to have taken the lock since. */
class LeaseExpired extends LeaseLost
{
}
