<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The lease is no longer ours: taken, broken, overwritten, or forgotten by the store. */
class LeaseLost extends \RuntimeException implements StanchionException
{
    use Facts;
}
