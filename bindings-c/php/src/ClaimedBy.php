<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** Who claimed a task last. */
final class ClaimedBy
{
    private function __construct(
        /** The client's label; empty if it has none. */
        public readonly string $label,
        /** Its host; empty if unknown. */
        public readonly string $host,
        /** Its process id; 0 if unknown. */
        public readonly int $pid,
        /** When, by the store's clock, in seconds since 1970; null if the delivery was settled and the task lives. */
        public readonly ?float $since,
    ) {
    }

    /**
     * Of a stanchion_task_info; null if nobody claimed the task.
     *
     * @internal
     */
    public static function fromNative(Native $native, CData $record): ?self
    {
        if ($record->claimed_by_pid < 0) {
            return null;
        }
        return new self(
            $native->text($record->claimed_by_label),
            $native->text($record->claimed_by_host),
            $record->claimed_by_pid,
            Times::maybeSeconds($record->claimed_at_ms),
        );
    }
}
