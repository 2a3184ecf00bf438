<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The object was made before a fork and belongs to the parent process. */
class Forked extends \RuntimeException implements StanchionException
{
    use Facts;
}
