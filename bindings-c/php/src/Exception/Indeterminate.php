<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The request may or may not have been carried out. */
class Indeterminate extends \RuntimeException implements StanchionException
{
    use Facts;
}
