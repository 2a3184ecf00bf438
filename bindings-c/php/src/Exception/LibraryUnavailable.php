<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The native library cannot be used: PHP's FFI is missing or disabled, or the file was not found or does not fit. */
class LibraryUnavailable extends \RuntimeException implements StanchionException
{
    use Facts;
}
