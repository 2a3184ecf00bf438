<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\NodeRecords;

/** Makes nodes for Queue::enqueueFlow(). */
final class Flow
{
    private function __construct()
    {
    }

    /**
     * Nodes of which each runs when the one before it has succeeded.
     *
     * @param iterable<Task|string|array<mixed>> $tasks as Queue::enqueueFlow() takes nodes; each has an id
     * @return list<array<mixed>>
     */
    public static function chain(iterable $tasks): array
    {
        $nodes = [];
        $before = null;
        foreach ($tasks as $task) {
            $node = NodeRecords::named($task);
            if ($before !== null) {
                $node['after'] = [...(array) ($node['after'] ?? []), $before];
            }
            $before = $node['id'] ?? $node[0];
            $nodes[] = $node;
        }
        return $nodes;
    }
}
