<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** A defect in the library. */
class Internal extends \RuntimeException implements StanchionException
{
    use Facts;
}
