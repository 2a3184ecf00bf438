<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The store or its version cannot do this. */
class Unsupported extends \RuntimeException implements StanchionException
{
    use Facts;
}
