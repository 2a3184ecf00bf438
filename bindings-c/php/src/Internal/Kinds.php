<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Enqueued;
use Stanchion\Exception\Indeterminate;
use Stanchion\Exception\QueueFull;
use Stanchion\Exponential;
use Stanchion\OnDuplicate;

/**
 * What a Queue does with kinds of tasks.
 *
 * @internal
 */
trait Kinds
{
    /**
     * Puts a task of a kind in, for the handler of that kind (see Router), in whatever language. The payload becomes a
     * JSON object. Other arguments and defaults are those of Task.
     *
     * @param array<mixed> $payload with names as its keys
     * @param int|float|null $delay in seconds
     * @param int|float|\DateTimeInterface|null $due in seconds since 1970
     * @param int|float|null $expires in seconds
     * @param array<string, string> $headers
     * @param int|float|null $timeout in seconds
     * @param array<int|float>|Exponential|null $backoff in seconds
     * @param int|float|null $keepResult in seconds
     * @throws QueueFull the queue is at its limit
     * @throws Indeterminate no answer came in time
     */
    public function enqueueKind(
        string $kind,
        array $payload = [],
        ?string $id = null,
        mixed $delay = null,
        mixed $due = null,
        ?int $priority = null,
        ?int $maxAttempts = null,
        mixed $expires = null,
        ?OnDuplicate $onDuplicate = null,
        array $headers = [],
        mixed $timeout = null,
        array|Exponential|null $backoff = null,
        mixed $keepResult = null,
        ?string $key = null,
    ): Enqueued {
        if ($payload !== [] && array_is_list($payload)) {
            throw Errors::invalid('argument payload must be an array with names as its keys, got a list');
        }
        return $this->enqueue(
            $id,
            (object) $payload,
            $delay,
            $due,
            $priority,
            $maxAttempts,
            $expires,
            $onDuplicate,
            $headers,
            $kind,
            $timeout,
            $backoff,
            $keepResult,
            $key,
        );
    }
}
