<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** Something that happened to a task, from Queue::events(). */
final class TaskEvent
{
    private function __construct(
        /** One more than that of the event before: events() can go on after it. */
        public readonly int $number,
        /** When, by the clock of the store, in seconds since 1970. */
        public readonly float $at,
        public readonly Happened $what,
        /** Of the task. */
        public readonly string $id,
        /** Of its enqueue, as in Enqueued. */
        public readonly int $version,
        /** Which attempt it was; 0 before the first. */
        public readonly int $attempt,
        /** Why, if it failed or is dead; else null. */
        public readonly ?string $reason,
        /** Whether there were others before this one that are not kept any more. */
        public readonly bool $missed,
    ) {
    }

    /** @internal */
    public static function fromNative(Native $native, CData $record, bool $missed): self
    {
        return new self(
            $record->number,
            Times::seconds($record->at_ms),
            Happened::fromNative($record->what),
            $native->text($record->id),
            $record->version,
            $record->attempt,
            $native->maybeText($record->reason),
            $missed,
        );
    }
}
