<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The key holds a value of another kind. */
class WrongType extends \RuntimeException implements StanchionException
{
    use Facts;
}
