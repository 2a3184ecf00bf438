<?php

declare(strict_types=1);

namespace Stanchion\Exception;

use Stanchion\Internal\Caller;

/**
 * How an exception is made by this package. Its file and line are those where the program calls the package: what PHP
 * prints of an exception that nobody catches leads to the program. The trace has the rest.
 *
 * @internal
 */
trait Facts
{
    private bool $retryable = false;
    private ?string $operation = null;
    private ?string $name = null;

    public function __construct(string $message = '', int $code = 0, ?\Throwable $previous = null)
    {
        parent::__construct($message, $code, $previous);
        $caller = Caller::find();
        if ($caller !== null) {
            [$this->file, $this->line] = [$caller->file, $caller->line];
        }
    }

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
