<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The store's user lacks a right. */
class Denied extends \RuntimeException implements StanchionException
{
    use Facts;
}
