<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** A flow as it is in a queue. */
final class FlowInfo
{
    /**
     * @param array<string, int> $counts
     * @param list<NodeInfo> $nodes
     */
    private function __construct(
        public readonly string $id,
        /** How it is. */
        public readonly FlowState $state,
        /** When it was put in, in seconds since 1970. */
        public readonly float $created,
        /** When it was noted that its last node had ended, in seconds since 1970; null while it runs. */
        public readonly ?float $ended,
        /** How many nodes are in each state, by the values of NodeState; states without any are left out. */
        public readonly array $counts,
        /** Its nodes, each behind those that it waits for. A page of flows comes without them. */
        public readonly array $nodes,
    ) {
    }

    /**
     * Every flow of a stanchion_flows, which is freed.
     *
     * @internal
     * @return list<self>
     */
    public static function allFromNative(int $flows): array
    {
        $native = Native::get();
        try {
            $infos = [];
            $record = $native->record('stanchion_flow_info');
            for ($i = 0, $count = $native->ffi->stanchion_flows_len($flows); $i < $count; $i++) {
                $native->call('stanchion_flows_at', $flows, $i, FFI::addr($record));
                $infos[] = self::fromNative($native, $record, self::nodes($native, $flows, $i, $record->node_count));
            }
            return $infos;
        } finally {
            $native->ffi->stanchion_flows_free($flows);
        }
    }

    /** @return list<NodeInfo> */
    private static function nodes(Native $native, int $flows, int $index, int $count): array
    {
        $nodes = [];
        $record = $native->record('stanchion_node_info');
        for ($i = 0; $i < $count; $i++) {
            $native->call('stanchion_flows_node_at', $flows, $index, $i, FFI::addr($record));
            $nodes[] = NodeInfo::fromNative($native, $record);
        }
        return $nodes;
    }

    /** @param list<NodeInfo> $nodes */
    private static function fromNative(Native $native, CData $record, array $nodes): self
    {
        $counts = [];
        foreach (NodeState::cases() as $state) {
            // The fields of the record have the names of the states.
            $count = $state === NodeState::Other ? 0 : $record->{$state->value};
            if ($count > 0) {
                $counts[$state->value] = $count;
            }
        }
        return new self(
            $native->text($record->id),
            FlowState::fromNative($record->state),
            Times::seconds($record->created_ms),
            Times::maybeSeconds($record->ended_ms),
            $counts,
            $nodes,
        );
    }
}
