<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Consumer;
use Stanchion\QueueStats;
use Stanchion\ResultOutcome;
use Stanchion\TaskInfo;
use Stanchion\TaskPage;
use Stanchion\TaskResult;
use Stanchion\TaskState;

/**
 * What a Queue tells about its tasks.
 *
 * @internal
 */
trait Looking
{
    /**
     * The tasks that would be claimed next.
     *
     * @param int $n 1 to 1000
     * @return list<TaskInfo>
     */
    public function peek(int $n = 1): array
    {
        return $this->tasks('stanchion_queue_peek', Arguments::max('n', $n));
    }

    /** One task: the live one with this id, else the newest dead one. */
    public function get(string $id): ?TaskInfo
    {
        return $this->tasks('stanchion_queue_get', $id, strlen($id))[0] ?? null;
    }

    /**
     * The tasks of one state, a page at a time.
     *
     * @param ?string $page what the last page had in `next` (the first)
     * @param int $max 1 to 1000
     * @param string $prefix only tasks whose id begins so; a page may then have few or none, and a next
     *     one all the same
     * @param bool $payloads false leaves payloads and headers out; the size is set all the same
     */
    public function list(
        TaskState $state,
        ?string $page = null,
        int $max = 100,
        string $prefix = '',
        bool $payloads = true,
    ): TaskPage {
        $native = Native::get();
        $memory = new Memory($native);
        $options = $native->defaults('stanchion_list_options', 'stanchion_list_options_init');
        $options->state = array_search($state, TaskState::cases(), true);
        $options->max = Arguments::max('max', $max);
        $options->without_payloads = (int) !$payloads;
        $memory->setText($options->page, $page);
        $memory->setText($options->prefix, $prefix);
        $tasks = $native->make('int64_t');
        $this->call('stanchion_queue_list', FFI::addr($options), FFI::addr($tasks));
        return TaskPage::fromNative($tasks->cdata);
    }

    /**
     * What became of a task: its result, or why it is dead. Waits while it is not done.
     *
     * @param ?int $version that of Enqueued: asks about that task or a later one of the id (any)
     * @param int|float|null $wait how many seconds to wait (0)
     */
    public function result(string $id, ?int $version = null, mixed $wait = null): TaskResult
    {
        $result = Native::get()->make('int64_t');
        $version = Arguments::number('version', $version, 0);
        $wait = Times::span('wait', $wait);
        $status = $this->call('stanchion_queue_result', $id, strlen($id), $version, $wait, FFI::addr($result));
        $outcome = match ($status) {
            self::OK => ResultOutcome::Done,
            self::DEAD => ResultOutcome::Dead,
            self::PENDING => ResultOutcome::Pending,
            default => ResultOutcome::Gone,
        };
        return TaskResult::fromNative($outcome, $result->cdata);
    }

    /** How many tasks there are, what happened so far, and the settings. */
    public function stats(): QueueStats
    {
        $record = Native::get()->record('stanchion_stats');
        $this->call('stanchion_queue_stats', FFI::addr($record));
        return QueueStats::fromNative($record);
    }

    /**
     * Who works on the queue: the processes of the first 1000 calls that wait for a task, and of the first 1000 claims.
     * Of a queue without tasks, an empty list means that nobody waits; a worker that is busy has claims.
     *
     * @return list<Consumer>
     */
    public function consumers(): array
    {
        $native = Native::get();
        $list = $native->make('int64_t');
        $this->call('stanchion_queue_consumers', FFI::addr($list));
        return $native->listed('consumer', $list->cdata, Consumer::fromNative(...));
    }

    public function count(): int
    {
        return $this->stats()->live();
    }

    /** @return list<TaskInfo> */
    private function tasks(string $function, #[\SensitiveParameter] mixed ...$arguments): array
    {
        $tasks = Native::get()->make('int64_t');
        $arguments[] = FFI::addr($tasks);
        return $this->call($function, ...$arguments) === self::OK ? TaskInfo::allFromNative($tasks->cdata) : [];
    }
}
