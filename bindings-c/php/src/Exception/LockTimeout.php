<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The lock stayed busy for the whole wait. */
class LockTimeout extends \RuntimeException implements StanchionException
{
    use Facts;
}
