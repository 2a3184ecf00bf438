<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/**
 * Something went wrong in the store or in this library. getCode() is a stable number, the same in every language.
 */
interface StanchionException extends \Throwable
{
    /** Whether the same call may succeed later without any other change. */
    public function isRetryable(): bool;

    /** What was attempted, such as "acquire"; null if it is not known. */
    public function operation(): ?string;

    /** The lock or queue that it is about; null if it is about none. */
    public function name(): ?string;
}
