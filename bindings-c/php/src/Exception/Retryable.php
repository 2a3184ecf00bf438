<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/**
 * How an exception is made by this package.
 *
 * @internal
 */
trait Retryable
{
    private bool $retryable = false;

    public function isRetryable(): bool
    {
        return $this->retryable;
    }

    /** @internal */
    public static function of(int $code, string $message, bool $retryable): static
    {
        $error = new static($message, $code);
        $error->retryable = $retryable;
        return $error;
    }
}
