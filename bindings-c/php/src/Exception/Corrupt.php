<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The store answered something that makes no sense, or its file is damaged. */
class Corrupt extends \RuntimeException implements StanchionException
{
    use Facts;
}
