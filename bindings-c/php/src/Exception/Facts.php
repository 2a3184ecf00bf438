<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/**
 * How an exception is made by this package.
 *
 * @internal
 */
trait Facts
{
    private bool $retryable = false;
    private ?string $operation = null;
    private ?string $name = null;

    public function isRetryable(): bool
    {
        return $this->retryable;
    }

    public function operation(): ?string
    {
        return $this->operation;
    }

    public function name(): ?string
    {
        return $this->name;
    }

    /** @internal */
    public static function of(
        int $code,
        string $message,
        bool $retryable = false,
        ?string $operation = null,
        ?string $name = null,
    ): static {
        $error = new static($message, $code);
        $error->retryable = $retryable;
        $error->operation = $operation;
        $error->name = $name;
        return $error;
    }
}
