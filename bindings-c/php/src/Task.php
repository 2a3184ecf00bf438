<?php

declare(strict_types=1);

namespace Stanchion;

/** A task to put into a queue with Queue::enqueueMany(). */
final class Task
{
    /**
     * @param ?string $id 1 to 512 bytes of UTF-8 without control characters; without one it gets a random id
     * @param mixed $payload a string is stored as it is, anything else as JSON; with the headers, as JSON,
     *     16 MiB at most
     * @param int|float|null $delay deliver it so many seconds after the store accepted it (at once)
     * @param int|float|\DateTimeInterface|null $due deliver it from this time on, in seconds since 1970 (at once)
     * @param ?int $priority 0 to 255, higher ones first (0)
     * @param ?int $maxAttempts after so many deliveries without success it is dead (20: about two days)
     * @param int|float|null $expires do not deliver it later than so many seconds after now (never)
     * @param ?OnDuplicate $onDuplicate what to do if the id is in the queue already (keep)
     * @param array<string, string> $headers texts that travel along; names that begin with `stanchion-` are refused
     * @param ?string $kind what kind of work it is, 1 to 128 bytes (none)
     * @param int|float|null $timeout how many seconds a run may take; one that takes longer has failed (no limit)
     * @param array<int|float>|Exponential|null $backoff how many seconds it waits after each failed attempt (see
     *     Claim::nack())
     * @param int|float|null $keepResult for how many seconds what its run gives with ack() is kept (3600)
     * @param ?string $key whose task it is, such as `tenant:7`, 1 to 512 bytes without control characters: tasks with a
     *     key in common share the limits that the queue gives each key, see Queue::configure(), and keys share the
     *     queue alike: one with a million tasks does not hold up another with ten. Without any limit one task of each
     *     key stands in line, and the next one when that is delivered (none)
     */
    public function __construct(
        public readonly ?string $id = null,
        public readonly mixed $payload = '',
        public readonly mixed $delay = null,
        public readonly mixed $due = null,
        public readonly ?int $priority = null,
        public readonly ?int $maxAttempts = null,
        public readonly mixed $expires = null,
        public readonly ?OnDuplicate $onDuplicate = null,
        public readonly array $headers = [],
        public readonly ?string $kind = null,
        public readonly mixed $timeout = null,
        public readonly array|Exponential|null $backoff = null,
        public readonly mixed $keepResult = null,
        public readonly ?string $key = null,
    ) {
    }
}
