<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** A newer delivery of the task exists, or it was settled otherwise. */
class StaleReceipt extends \RuntimeException implements StanchionException
{
    use Facts;
}
