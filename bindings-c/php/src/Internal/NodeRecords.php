<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;
use Stanchion\Task;

/**
 * Nodes of a flow as C has them. They live as long as this object.
 *
 * @internal
 */
final class NodeRecords
{
    /** By the numbers of stanchion_after_all. */
    public const AFTER_ALL = [null, 'then', 'failed', 'finally'];
    /** What a node has besides the fields of its task. */
    private const FIELDS = [
        'queue' => null,
        'after' => null,
        'afterEnd' => null,
        'afterFailure' => null,
        'afterAll' => null,
    ];

    public readonly CData $array;
    public readonly int $count;
    private readonly TaskRecords $tasks;
    private readonly Memory $memory;

    /**
     * @param iterable<mixed> $nodes
     * @param bool $isWhole whether they are all of a flow: only then some may wait for all
     */
    public function __construct(Native $native, iterable $nodes, bool $isWhole)
    {
        $tasks = $besides = [];
        foreach ($nodes as $node) {
            $node = self::fields($node);
            $tasks[] = TaskRecords::from(array_diff_key($node, self::FIELDS));
            $besides[] = array_intersect_key($node, self::FIELDS) + self::FIELDS;
        }
        $this->count = count($tasks);
        $this->tasks = new TaskRecords($native, $tasks);
        $this->memory = new Memory($native);
        $this->array = $native->makeMany('stanchion_node', $this->count);
        foreach ($besides as $index => $node) {
            $record = $this->array[$index];
            $native->init($record, 'stanchion_node_init');
            $record->task = FFI::addr($this->tasks->array[$index]);
            $this->fill($record, $node, $isWhole);
        }
    }

    /**
     * A node as an array, whose id is given.
     *
     * @return array<mixed>
     */
    public static function named(mixed $node): array
    {
        $node = self::fields($node);
        $id = $node['id'] ?? $node[0] ?? null;
        if (!is_string($id)) {
            throw Errors::argument('id', 'a string, for others to come after it', $id);
        }
        return $node;
    }

    /**
     * A node as an array of its fields.
     *
     * @return array<mixed>
     */
    private static function fields(mixed $node): array
    {
        return match (true) {
            is_array($node) => $node,
            is_string($node) => ['id' => $node],
            $node instanceof Task => get_object_vars($node),
            default => throw Errors::argument('nodes', 'Tasks, ids or arrays', $node),
        };
    }

    /** @param array<string, mixed> $node */
    private function fill(#[\SensitiveParameter] CData $record, array $node, bool $isWhole): void
    {
        if ($node['queue'] !== null && !is_string($node['queue'])) {
            throw Errors::argument('queue', 'a string', $node['queue']);
        }
        $this->memory->setText($record->queue, $node['queue']);
        $this->setNames($record, 'after', 'after', $node);
        $this->setNames($record, 'after_end', 'afterEnd', $node);
        $this->setNames($record, 'after_failure', 'afterFailure', $node);
        $afterAll = array_search($node['afterAll'], self::AFTER_ALL, true);
        if ($afterAll === false) {
            throw Errors::argument('afterAll', 'then, failed or finally', $node['afterAll']);
        }
        if ($afterAll !== 0 && !$isWhole) {
            $why = 'nodes that wait for all come with the flow';
            throw Errors::invalid("argument afterAll is {$node['afterAll']}: $why");
        }
        $record->after_all = $afterAll;
    }

    /** @param array<string, mixed> $node */
    private function setNames(
        #[\SensitiveParameter] CData $record,
        string $field,
        string $what,
        array $node,
    ): void {
        $names = is_string($node[$what]) ? [$node[$what]] : $node[$what] ?? [];
        if (!is_array($names)) {
            throw Errors::argument($what, 'a name or an array of names', $names);
        }
        if ($names !== []) {
            $texts = $this->memory->texts(Arguments::texts($what, $names));
            $record->{$field} = FFI::addr($texts[0]);
            $record->{"{$field}_count"} = count($names);
        }
    }
}
