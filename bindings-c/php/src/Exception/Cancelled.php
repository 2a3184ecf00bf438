<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The caller gave up. */
class Cancelled extends \RuntimeException implements StanchionException
{
    use Facts;
}
