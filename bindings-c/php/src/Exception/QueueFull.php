<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The queue is at its limit. */
class QueueFull extends \RuntimeException implements StanchionException
{
    use Facts;
}
