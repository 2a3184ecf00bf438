<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** An argument is outside what is allowed; nothing was sent. */
class InvalidArgument extends \InvalidArgumentException implements StanchionException
{
    use Facts;
}
