<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Exception\StaleReceipt;
use Stanchion\Internal\Caller;
use Stanchion\Internal\Ending;
use Stanchion\Internal\Native;
use Stanchion\Internal\Payload;
use Stanchion\Internal\Times;

/**
 * A task that is ours until it is settled, or its lease ends.
 *
 * One that is never settled counts as failed when the last reference to it is gone, and at the end of the request at
 * the latest. If nothing keeps what claim() returns, an E_USER_WARNING is raised. In a forked child it is the parent's:
 * calls throw Forked there.
 */
final class Claim
{
    /** @internal */
    public const FREE = 'stanchion_claim_free';
    private const ACK = 1;
    private const NACK = 2;
    private const BURY = 3;
    private const PUT_BACK = 4;
    private const THROTTLE = 5;

    private readonly string $id;
    private readonly string $queue;
    private readonly string $payload;
    /** @var array<string, string> */
    private readonly array $headers;
    private readonly ?string $kind;
    private readonly ?string $key;
    private readonly ?string $flow;
    private readonly int $attempt;
    private readonly int $maxAttempts;
    private readonly int $receipt;
    private readonly int $version;
    private readonly int $priority;
    private readonly int $dueMillis;

    /** @internal */
    public function __construct(
        /** Kept, so that it goes after the claim. */
        private readonly Client $client,
        private readonly int $handle,
    ) {
        $native = Native::get();
        $info = $native->record('stanchion_claim_info');
        $native->call('stanchion_claim_get', $handle, FFI::addr($info));
        $this->id = $native->text($info->id);
        $this->queue = $native->text($info->queue);
        $this->payload = $native->bytes($info->payload, $info->payload_len);
        $this->headers = $native->headers($info);
        $this->kind = $native->maybeText($info->kind);
        $this->key = $native->maybeText($info->key);
        $this->flow = $native->maybeText($info->flow);
        $this->attempt = $info->attempt;
        $this->maxAttempts = $info->max_attempts;
        $this->receipt = $info->receipt;
        $this->version = $info->version;
        $this->priority = $info->priority;
        $this->dueMillis = $info->due_ms;
        // Last: a constructor that throws leaves no object whose end would free it.
        Ending::note($handle, self::FREE);
    }

    public function __destruct()
    {
        $caller = Caller::find();
        Ending::free($this->handle, self::FREE);
        // Still within claim(), PHP drops what that returns. Last: a handler of the program may throw.
        if ($caller?->method === 'claim') {
            $where = "{$caller->file} on line {$caller->line}";
            $what = "nothing keeps what claim() returns in $where, so it counts as failed";
            trigger_error("stanchion: task \"$this->id\" of queue \"$this->queue\": $what", E_USER_WARNING);
        }
    }

    /** The task's id. */
    public function id(): string
    {
        return $this->id;
    }

    /** The queue's name. */
    public function queue(): string
    {
        return $this->queue;
    }

    /** The payload's bytes. */
    public function payload(): string
    {
        return $this->payload;
    }

    /**
     * The payload, read as JSON; objects become arrays.
     *
     * @throws \JsonException
     */
    public function json(): mixed
    {
        return Payload::decode($this->payload);
    }

    /**
     * What travels with the task.
     *
     * @return array<string, string>
     */
    public function headers(): array
    {
        return $this->headers;
    }

    /** The task's kind; null if it has none. */
    public function kind(): ?string
    {
        return $this->kind;
    }

    /** The task's key; null if it has none. */
    public function key(): ?string
    {
        return $this->key;
    }

    /** The id of the flow that the task is of; null if it is of none. */
    public function flow(): ?string
    {
        return $this->flow;
    }

    /**
     * What has become of the nodes that this one comes after, with the results that they gave, in the order in which it
     * names them; if it comes after all, of all. Of a flow 64 MiB of results are kept. Empty if the task is of no flow.
     *
     * @return list<FlowInput>
     */
    public function inputs(): array
    {
        $native = Native::get();
        $list = $native->make('int64_t');
        $native->call('stanchion_claim_inputs', $this->handle, FFI::addr($list));
        return $native->listed('input', $list->cdata, FlowInput::fromNative(...));
    }

    /** Counts deliveries from one. */
    public function attempt(): int
    {
        return $this->attempt;
    }

    /** After so many attempts the task is dead. */
    public function maxAttempts(): int
    {
        return $this->maxAttempts;
    }

    /** The number of this delivery: larger than that of every earlier one of the task. */
    public function receipt(): int
    {
        return $this->receipt;
    }

    /** The task's version. */
    public function version(): int
    {
        return $this->version;
    }

    /** 0 to 255, higher ones first. */
    public function priority(): int
    {
        return $this->priority;
    }

    /** When the task was due, in seconds since 1970. */
    public function due(): float
    {
        return Times::seconds($this->dueMillis);
    }

    /** For how many seconds the claim is surely ours from now on, without further renewal. */
    public function remaining(): float
    {
        return Times::seconds(Native::get()->ffi->stanchion_claim_remaining_ms($this->handle));
    }

    /** Whether the claim is ours now. */
    public function isValid(): bool
    {
        return Native::get()->ffi->stanchion_claim_is_valid($this->handle) === 1;
    }

    /** Why the claim was lost; null if it is not. */
    public function loss(): ?Loss
    {
        return Loss::fromNative(Native::get()->ffi->stanchion_claim_loss($this->handle));
    }

    /**
     * Waits for the claim to be lost or settled: whether it is. It is at its deadline at the latest.
     *
     * @param int|float $time at most, in seconds
     */
    public function waitLost(mixed $time): bool
    {
        return Native::get()->call('stanchion_claim_wait_lost', $this->handle, Times::needed('time', $time)) !== 0;
    }

    /**
     * Done: the task leaves the queue. A second ack repeats the answer of the first.
     *
     * @param ?string $result what came of it, 1 MiB at most: Queue::result() gives it for as long as the task
     *     says (1 h)
     * @throws StaleReceipt the task was delivered again or settled meanwhile
     */
    public function ack(?string $result = null): void
    {
        if ($result === null) {
            Native::get()->call('stanchion_claim_ack', $this->handle);
        } else {
            Native::get()->call('stanchion_claim_ack_with', $this->handle, $result, strlen($result));
        }
    }

    /**
     * Notes how far the work has come, for Queue::get() and listings to show until the run ends, and renews the lease.
     *
     * @param string $progress 4 KiB at most
     */
    public function progress(string $progress): void
    {
        Native::get()->call('stanchion_claim_progress', $this->handle, $progress, strlen($progress));
    }

    /**
     * Not done: the task is tried again, or is dead after its last attempt.
     *
     * @param int|float|null $delay in seconds (1, 16, 81, 256 ... after the first, second, ... attempt: the fourth
     *     power of its number, less up to half of it by chance, 7 h at most)
     * @param string $reason kept with the task; 1 KiB at most, the rest is cut off
     * @throws StaleReceipt
     */
    public function nack(mixed $delay = null, string $reason = ''): void
    {
        $millis = Times::span('delay', $delay);
        Native::get()->call('stanchion_claim_nack', $this->handle, $millis, $reason, strlen($reason));
    }

    /**
     * Not done, and not to be tried again: the task is dead.
     *
     * @param string $reason as in nack()
     * @throws StaleReceipt
     */
    public function bury(string $reason = ''): void
    {
        Native::get()->call('stanchion_claim_bury', $this->handle, $reason, strlen($reason));
    }

    /**
     * Not tried: the task goes back without counting an attempt.
     *
     * @param int|float|null $delay in seconds; without one it comes back to its place in line, so the next claim gets
     *                              it again
     * @throws StaleReceipt
     */
    public function putBack(mixed $delay = null): void
    {
        Native::get()->call('stanchion_claim_put_back', $this->handle, Times::span('delay', $delay));
    }

    /**
     * Not tried, because whoever it calls has had enough (a 429, `Retry-After`): the task goes back to its place
     * without counting an attempt, and nothing more of its key is given out for so long; if it has no key, nothing of
     * the queue. A later throttle makes that longer, never shorter.
     *
     * @param int|float $time in seconds
     * @throws StaleReceipt
     */
    public function throttle(mixed $time): void
    {
        Native::get()->call('stanchion_claim_throttle', $this->handle, Times::needed('time', $time));
    }

    /**
     * Prolongs the lease to at least `$lease` from now; never shortens it.
     *
     * @param int|float $lease in seconds
     */
    public function extend(mixed $lease): void
    {
        Native::get()->call('stanchion_claim_extend', $this->handle, Times::needed('lease', $lease));
    }

    /** The verdict "done", for Queue::settle(), with a result as in ack(). */
    public function acked(?string $result = null): Verdict
    {
        return new Verdict($this, self::ACK, result: $result);
    }

    /**
     * The verdict "try again", for Queue::settle().
     *
     * @param int|float|null $delay as in nack()
     */
    public function nacked(mixed $delay = null, string $reason = ''): Verdict
    {
        return new Verdict($this, self::NACK, Times::span('delay', $delay), $reason);
    }

    /** The verdict "dead", for Queue::settle(). */
    public function buried(string $reason = ''): Verdict
    {
        return new Verdict($this, self::BURY, Times::NONE, $reason);
    }

    /**
     * The verdict "not tried", for Queue::settle().
     *
     * @param int|float|null $delay as in putBack()
     */
    public function returned(mixed $delay = null): Verdict
    {
        return new Verdict($this, self::PUT_BACK, Times::span('delay', $delay));
    }

    /**
     * The verdict "not tried, and nothing more of its key for so long", for Queue::settle().
     *
     * @param int|float $time as in throttle()
     */
    public function throttled(mixed $time): Verdict
    {
        return new Verdict($this, self::THROTTLE, Times::needed('time', $time));
    }

    /** @internal */
    public function handle(): int
    {
        return $this->handle;
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw Internal\Errors::invalid('a claim cannot be serialized; it belongs to this process');
    }
    /** @param array<mixed> $data */
    public function __unserialize(array $data): void
    {
        throw Internal\Errors::invalid('a claim cannot be unserialized');
    }
}
