<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Internal\Native;
use Stanchion\Internal\Payload;

/** What became of a task, from Queue::result(). */
final class TaskResult
{
    private function __construct(
        public readonly ResultOutcome $outcome,
        /** What came of it; null if it is not done. */
        public readonly ?string $result = null,
        /** The version of the task that had the result; null if it is not done. */
        public readonly ?int $version = null,
        /** Why it is dead; null if it is not. */
        public readonly ?string $reason = null,
    ) {
    }

    /**
     * The result, read as JSON; objects become arrays. Null if there is none.
     *
     * @throws \JsonException
     */
    public function json(): mixed
    {
        return $this->result === null ? null : Payload::decode($this->result);
    }

    /** @internal */
    public static function fromNative(ResultOutcome $outcome, int $result): self
    {
        $native = Native::get();
        if ($result === 0) {
            return new self($outcome);
        }
        try {
            $info = $native->record('stanchion_result_info');
            $native->call('stanchion_result_get', $result, FFI::addr($info));
            return $outcome === ResultOutcome::Done
                ? new self($outcome, $native->bytes($info->result, $info->result_len), $info->version)
                : new self($outcome, reason: $native->text($info->reason));
        } finally {
            $native->ffi->stanchion_result_free($result);
        }
    }
}
