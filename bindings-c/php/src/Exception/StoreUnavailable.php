<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The store could not be reached, or refused to work, within the time given. */
class StoreUnavailable extends \RuntimeException implements StanchionException
{
    use Facts;
}
