<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI\CData;
use Stanchion\Task;

/**
 * Tasks as C has them. They live as long as this object.
 *
 * @internal
 */
final class TaskRecords
{
    public readonly CData $array;
    private readonly Memory $memory;

    /** @param list<Task> $tasks */
    public function __construct(private readonly Native $native, array $tasks)
    {
        $this->memory = new Memory($native);
        $this->array = $native->makeMany('stanchion_task', count($tasks));
        foreach ($tasks as $index => $task) {
            $this->fill($this->array[$index], $task);
        }
    }

    /** A task, given as a Task, an id, or an array of a Task's fields, in order or by name. */
    public static function from(mixed $item): Task
    {
        if ($item instanceof Task) {
            return $item;
        }
        if (is_string($item)) {
            return new Task($item);
        }
        if (!is_array($item)) {
            throw Errors::argument('items', 'Tasks, ids or arrays', $item);
        }
        try {
            return new Task(...$item);
        } catch (\Error $error) {
            throw Errors::invalid("this makes no task: {$error->getMessage()}");
        }
    }

    private function fill(#[\SensitiveParameter] CData $record, Task $task): void
    {
        [$payload, $headers] = Payload::encode($task->payload, $task->headers);
        $this->native->init($record, 'stanchion_task_init');
        $this->memory->setText($record->id, $task->id);
        $this->memory->setPayload($record, $payload);
        $this->memory->setHeaders($record, $headers);
        $record->delay_ms = Times::span('delay', $task->delay);
        $record->due_ms = Times::since1970('due', $task->due);
        $record->priority = Arguments::number('priority', $task->priority, 0, 255);
        $record->max_attempts = Arguments::number('maxAttempts', $task->maxAttempts, 1);
        $record->expires_ms = Times::span('expires', $task->expires);
        $record->on_duplicate = $task->onDuplicate?->policy ?? -1;
        $record->window_ms = $task->onDuplicate?->windowMillis ?? Times::NONE;
        $this->memory->setText($record->kind, $task->kind);
        $record->timeout_ms = Times::span('timeout', $task->timeout);
        $this->memory->setText($record->backoff, Backoff::encode($task->backoff));
        $record->keep_result_ms = Times::span('keepResult', $task->keepResult);
        $this->memory->setText($record->key, $task->key);
    }
}
