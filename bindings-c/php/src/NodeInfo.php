<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Native;

/** A node of a flow. */
final class NodeInfo
{
    /**
     * @param list<string> $after
     * @param list<string> $afterEnd
     * @param list<string> $afterFailure
     */
    private function __construct(
        public readonly string $name,
        /** What it is doing. */
        public readonly NodeState $state,
        /** The queue of its task; null if that is the flow's. */
        public readonly ?string $queue,
        /** The nodes that must have succeeded. */
        public readonly array $after,
        /** The nodes that must have ended. */
        public readonly array $afterEnd,
        /** The nodes of which one must have ended without success. */
        public readonly array $afterFailure,
        /** What it waits for of all others: `then`, `failed` or `finally`; null if it does not. */
        public readonly ?string $afterAll,
    ) {
    }

    /** @internal */
    public static function fromNative(Native $native, CData $record): self
    {
        return new self(
            $native->text($record->name),
            NodeState::fromNative($record->state),
            $native->maybeText($record->queue),
            $native->texts($record->after, $record->after_count),
            $native->texts($record->after_end, $record->after_end_count),
            $native->texts($record->after_failure, $record->after_failure_count),
            Internal\NodeRecords::AFTER_ALL[$record->after_all] ?? null,
        );
    }
}
