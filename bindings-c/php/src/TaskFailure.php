<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** A failed attempt of a task. */
final class TaskFailure
{
    private function __construct(
        /** When it failed, in seconds since 1970; if its lease ended, when that was. */
        public readonly float $at,
        public readonly string $reason,
    ) {
    }

    /**
     * Those of the task with this index of a stanchion_tasks.
     *
     * @internal
     * @return list<self>
     */
    public static function allFromNative(Native $native, int $tasks, int $index, CData $task): array
    {
        $failures = [];
        for ($i = 0; $i < $task->failure_count; $i++) {
            $record = $native->record('stanchion_task_failure');
            $native->call('stanchion_tasks_failure_at', $tasks, $index, $i, FFI::addr($record));
            $failures[] = new self(Times::seconds($record->at_ms), $native->text($record->reason));
        }
        return $failures;
    }
}
