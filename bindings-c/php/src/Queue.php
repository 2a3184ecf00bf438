<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Exception\Indeterminate;
use Stanchion\Exception\QueueFull;
use Stanchion\Exception\StanchionException;
use Stanchion\Internal\Answers;
use Stanchion\Internal\Arguments;
use Stanchion\Internal\Claiming;
use Stanchion\Internal\DeadTasks;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Kinds;
use Stanchion\Internal\Memory;
use Stanchion\Internal\Native;
use Stanchion\Internal\Schedules;
use Stanchion\Internal\TaskRecords;
use Stanchion\Internal\Times;
use Stanchion\Internal\Verdicts;

/** A named queue of tasks. Made by Client::queue(). count() is the number of tasks that are not dead. */
final class Queue implements \Countable
{
    use Kinds;
    use Schedules;

    /** Statuses of the library. */
    private const OK = 0;
    private const OTHER_VERSION = 5;
    private const CLAIMED = 6;
    private const DEAD = 7;
    private const RUNNING = 12;
    private const PENDING = 13;
    /** Stands for "no limit" in the settings. */
    private const NO_LIMIT = -2;

    /** @internal */
    public function __construct(private readonly Client $client, private readonly string $name)
    {
    }

    /** The queue's name. */
    public function name(): string
    {
        return $this->name;
    }

    /**
     * Puts a task in. Sent again if no answer comes, it is still put in once. Arguments and defaults are those of Task.
     *
     * @param int|float|null $delay in seconds
     * @param int|float|\DateTimeInterface|null $due in seconds since 1970
     * @param int|float|null $expires in seconds
     * @param array<string, string> $headers
     * @param int|float|null $timeout in seconds
     * @param array<int|float>|Exponential|null $backoff in seconds
     * @param int|float|null $keepResult in seconds
     * @throws QueueFull the queue is at its limit
     * @throws Indeterminate no answer came in time
     */
    public function enqueue(
        ?string $id = null,
        mixed $payload = '',
        mixed $delay = null,
        mixed $due = null,
        ?int $priority = null,
        ?int $maxAttempts = null,
        mixed $expires = null,
        ?OnDuplicate $onDuplicate = null,
        array $headers = [],
        ?string $kind = null,
        mixed $timeout = null,
        array|Exponential|null $backoff = null,
        mixed $keepResult = null,
    ): Enqueued {
        $native = Native::get();
        $task = new Task(
            $id,
            $payload,
            $delay,
            $due,
            $priority,
            $maxAttempts,
            $expires,
            $onDuplicate,
            $headers,
            $kind,
            $timeout,
            $backoff,
            $keepResult,
        );
        $records = new TaskRecords($native, [$task]);
        $record = $native->record('stanchion_enqueued');
        $this->call('stanchion_queue_enqueue', FFI::addr($records->array[0]), FFI::addr($record));
        return Enqueued::fromNative($record);
    }

    /**
     * Puts many tasks in: each a Task, an id, or an array of a Task's fields, in order or by name.
     *
     * @param iterable<Task|string|array<mixed>> $items
     * @return list<Enqueued|StanchionException> for each what enqueue() would have returned or thrown (QueueFull)
     */
    public function enqueueMany(iterable $items): array
    {
        $tasks = [];
        foreach ($items as $item) {
            $tasks[] = TaskRecords::from($item);
        }
        $native = Native::get();
        $records = new TaskRecords($native, $tasks);
        $answers = $native->make('int64_t');
        $this->call('stanchion_queue_enqueue_many', $records->array, count($tasks), FFI::addr($answers));
        return Answers::ofTasks($native, $answers->cdata);
    }

    /**
     * Takes tasks under a lease, waiting for some.
     *
     * @param int $max 1 to 1000
     * @param int|float|null $lease for how many seconds the store keeps a claim without renewal; with a lease given,
     *     it is
     *     not renewed, unless $renew is true (30, renewed until the claim is settled)
     * @param int|float|null $wait how many seconds to wait for a task (0)
     * @param int|float|null $maxRun for how many seconds a claim is renewed at most; then it is lost (3600)
     * @param int|float|null $timeout how many seconds a run may take whose task does not say (no limit)
     * @return list<Claim>
     */
    public function claim(
        int $max = 1,
        mixed $lease = null,
        mixed $wait = null,
        ?bool $renew = null,
        mixed $maxRun = null,
        mixed $timeout = null,
    ): array {
        $claiming = new Claiming(Native::get(), $this->client, $max, $lease, $wait, $renew, $maxRun, $timeout);
        $this->call('stanchion_queue_claim', ...$claiming->arguments());
        return $claiming->claims();
    }

    /**
     * Settles claims together: Claim::acked() and the like.
     *
     * @param iterable<Verdict> $verdicts
     * @return list<?StanchionException> null, or the exception, for each
     */
    public function settle(iterable $verdicts): array
    {
        $native = Native::get();
        $records = new Verdicts($native, $verdicts);
        $answers = $native->make('int64_t');
        $this->call('stanchion_queue_settle', $records->array, $records->count, FFI::addr($answers));
        return Answers::ofVerdicts($native, $answers->cdata);
    }

    /**
     * Settles claims and takes new tasks, in one round trip if there are any.
     *
     * @param iterable<Verdict> $verdicts
     * @param int|float|null $lease as in claim()
     * @param int|float|null $wait as in claim()
     * @param int|float|null $maxRun as in claim()
     * @param int|float|null $timeout as in claim()
     * @return array{list<?StanchionException>, list<Claim>}
     */
    public function settleAndClaim(
        iterable $verdicts,
        int $max = 1,
        mixed $lease = null,
        mixed $wait = null,
        ?bool $renew = null,
        mixed $maxRun = null,
        mixed $timeout = null,
    ): array {
        $native = Native::get();
        $claiming = new Claiming($native, $this->client, $max, $lease, $wait, $renew, $maxRun, $timeout);
        $records = new Verdicts($native, $verdicts);
        $answers = $native->make('int64_t');
        $this->call(
            'stanchion_queue_settle_and_claim',
            $records->array,
            $records->count,
            FFI::addr($answers),
            ...$claiming->arguments(),
        );
        return [Answers::ofVerdicts($native, $answers->cdata), $claiming->claims()];
    }

    /**
     * Takes up to `$n` tasks for good, without a lease: if this process dies, they are lost.
     *
     * @param int $n 1 to 1000
     * @return list<TaskInfo>
     * @throws Indeterminate no answer came: the tasks may be gone
     */
    public function pop(int $n = 1): array
    {
        return $this->tasks('stanchion_queue_pop', Arguments::max('n', $n));
    }

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
     * Drops a task, also while it is claimed: whether there was one.
     *
     * @param ?int $version remove it only if this is still the task's version (any)
     * @param ?int $otherVersion gets the version that the task has instead; null otherwise
     */
    public function remove(string $id, ?int $version = null, ?int &$otherVersion = null): bool
    {
        $found = Native::get()->make('int64_t');
        $version = Arguments::number('version', $version, 0);
        $status = $this->call('stanchion_queue_remove', $id, strlen($id), $version, FFI::addr($found));
        $otherVersion = $status === self::OTHER_VERSION ? $found->cdata : null;
        return $status === self::OK;
    }

    /**
     * Gives a waiting task another due time: whether it was moved.
     *
     * @param int|float|\DateTimeInterface $due in seconds since 1970
     * @param ?TaskState $otherState gets the state in which it cannot be moved: Claimed or Dead; null otherwise
     */
    public function reschedule(string $id, mixed $due, ?TaskState &$otherState = null): bool
    {
        if ($due === null) {
            throw Errors::argument('due', 'a time', null);
        }
        $status = $this->call('stanchion_queue_reschedule', $id, strlen($id), Times::since1970('due', $due), null);
        $otherState = match ($status) {
            self::CLAIMED => TaskState::Claimed,
            self::DEAD => TaskState::Dead,
            default => null,
        };
        return $status === self::OK;
    }

    /**
     * Ends a task. One that waits is dropped. One that runs is told at the next renewal of its claim, within a third
     * of its lease, which is lost then (Loss::Cancelled); an ack of that run is still accepted, and whatever else it
     * ends with, the task is not tried again. What is enqueued later is a new task.
     *
     * @throws Indeterminate no answer came
     */
    public function cancel(string $id): Cancelled
    {
        return match ($this->call('stanchion_queue_cancel', $id, strlen($id))) {
            self::OK => Cancelled::Removed,
            self::RUNNING => Cancelled::Running,
            default => Cancelled::Absent,
        };
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

    /** Stops giving out tasks. Claims that are out go on. */
    public function pause(): void
    {
        $this->call('stanchion_queue_pause');
    }

    /** Goes on giving out tasks. */
    public function resume(): void
    {
        $this->call('stanchion_queue_resume');
    }

    /**
     * Moves dead tasks back to ready, with all their attempts, unless their ids live. How many were moved.
     *
     * Ids, receipts or a count, not several of them; of these only those that match the filters. Filters alone:
     * all that match. It goes in steps: after an error, what earlier ones have moved stays moved.
     *
     * @param int|string|array<string>|null $ids the newest dead record of each; a number is a count
     * @param ?int $count so many of the oldest
     * @param ?array<int> $receipts of TaskInfo: an id that died more than once has several
     * @param string $reason only those whose reason begins so
     * @param string $prefix only those whose id begins so
     * @param int|float|null $olderThan only those that died so many seconds ago, or longer
     * @throws Indeterminate no answer came: they may be moved
     */
    public function kick(
        int|string|array|null $ids = null,
        ?int $count = null,
        ?array $receipts = null,
        string $reason = '',
        string $prefix = '',
        mixed $olderThan = null,
    ): int {
        $dead = new DeadTasks(Native::get(), $ids, $count, $receipts, $reason, $prefix, $olderThan);
        return $this->sweep('stanchion_queue_kick', $dead);
    }

    /**
     * Drops dead tasks. How many there were.
     *
     * @param int|string|array<string>|null $ids as in kick(), and so are the others
     * @param ?array<int> $receipts
     * @param int|float|null $olderThan
     * @throws Indeterminate no answer came: they may be gone
     */
    public function removeDead(
        int|string|array|null $ids = null,
        ?int $count = null,
        ?array $receipts = null,
        string $reason = '',
        string $prefix = '',
        mixed $olderThan = null,
    ): int {
        $dead = new DeadTasks(Native::get(), $ids, $count, $receipts, $reason, $prefix, $olderThan);
        return $this->sweep('stanchion_queue_remove_dead', $dead);
    }

    /** Drops every task, live and dead; claims that are out are lost. Settings stay. How many there were. */
    public function purge(): int
    {
        $dropped = Native::get()->make('uint64_t');
        $this->call('stanchion_queue_purge', FFI::addr($dropped));
        return $dropped->cdata;
    }

    /**
     * Changes settings; what is not given stays.
     *
     * @param int|false|null $maxLen refuse new ids when so many tasks are live; false: no limit (no limit)
     * @param ?int $deadMax keep so many dead tasks at most; the oldest go first (10000)
     * @param int|float|null $deadAge keep dead tasks for so many seconds (90 days)
     * @param ?int $deadBytes keep so many bytes of dead tasks' payloads at most (256 MiB)
     * @param ?bool $intake whether plain ZADDs to the queue's key are taken in; Redis only (true)
     */
    public function configure(
        int|false|null $maxLen = null,
        ?int $deadMax = null,
        mixed $deadAge = null,
        ?int $deadBytes = null,
        ?bool $intake = null,
    ): void {
        $native = Native::get();
        $settings = $native->defaults('stanchion_queue_config', 'stanchion_queue_config_init');
        $settings->max_len = $maxLen === false ? self::NO_LIMIT : Arguments::number('maxLen', $maxLen, 0);
        $settings->dead_max = Arguments::number('deadMax', $deadMax, 0);
        $settings->dead_age_ms = Times::span('deadAge', $deadAge);
        $settings->dead_bytes = Arguments::number('deadBytes', $deadBytes, 0);
        $settings->intake = Arguments::flag($intake);
        $this->call('stanchion_queue_configure', FFI::addr($settings));
    }

    /**
     * A worker that calls a function for each task, or the handler of its kind. See Worker and Router.
     *
     * @param callable(Claim): mixed|Router $handler
     * @param int|float|null $lease so many seconds after the worker died its tasks are given to another (30)
     * @param int|float|null $maxRun for how many seconds a task may be worked on at most (3600)
     * @param ?callable(WorkerEvent): mixed $onEvent called for what happens; without it, failures go to the error log
     * @param ?int $prefetch how many tasks it holds at once, 1 to 1000. Many short ones are done several times as
     *     fast with 16; but those that wait for their turn are not given to other workers meanwhile, and `$maxRun`
     *     counts for them, too (1)
     * @param int|float|null $grace how many seconds a handler goes on after stop(), see Worker::stop() (25)
     * @param int|float|null $timeout as in claim()
     * @param (callable(Claim, callable): mixed)|iterable<callable(Claim, callable): mixed>|null $around
     *     stands around the handler of each task, within its time; of several, the first is outermost. The second
     *     argument calls what is further inside, in the end the handler, and returns what that returned. What it
     *     returns counts as what the handler returned, what it throws as the handler's failure; if it does not call
     *     that, the task is done without the handler (none)
     */
    public function worker(
        callable|Router $handler,
        mixed $lease = null,
        mixed $maxRun = null,
        ?callable $onEvent = null,
        ?int $prefetch = null,
        mixed $grace = null,
        mixed $timeout = null,
        callable|iterable|null $around = null,
    ): Worker {
        return new Worker(
            $this->client,
            $this,
            $handler,
            $lease,
            $maxRun,
            $onEvent,
            $prefetch,
            $grace,
            $timeout,
            $around,
        );
    }

    /**
     * Works until SIGTERM or SIGINT, with pcntl; see Worker::run().
     *
     * @param callable(Claim): mixed|Router $handler
     * @param bool $untilEmpty end when no task is ready or claimed any more
     * @param int|float|null $lease as in worker()
     * @param int|float|null $maxRun as in worker()
     * @param ?callable(WorkerEvent): mixed $onEvent as in worker()
     * @param ?int $prefetch as in worker()
     * @param int|float|null $grace as in worker()
     * @param int|float|null $timeout as in claim()
     * @param (callable(Claim, callable): mixed)|iterable<callable(Claim, callable): mixed>|null $around
     *     as in worker()
     */
    public function work(
        callable|Router $handler,
        bool $untilEmpty = false,
        mixed $lease = null,
        mixed $maxRun = null,
        ?callable $onEvent = null,
        ?int $prefetch = null,
        mixed $grace = null,
        mixed $timeout = null,
        callable|iterable|null $around = null,
    ): WorkerReport {
        $worker = $this->worker($handler, $lease, $maxRun, $onEvent, $prefetch, $grace, $timeout, $around);
        return $worker->run($untilEmpty);
    }

    /**
     * Calls a function of the library on this queue.
     *
     * @internal
     */
    public function call(string $function, #[\SensitiveParameter] mixed ...$arguments): int
    {
        return Native::get()->call($function, $this->client->handle(), $this->name, strlen($this->name), ...$arguments);
    }

    private function sweep(string $function, DeadTasks $dead): int
    {
        $count = Native::get()->make('uint64_t');
        $this->call($function, FFI::addr($dead->record), FFI::addr($count));
        return $count->cdata;
    }

    /** @return list<TaskInfo> */
    private function tasks(string $function, #[\SensitiveParameter] mixed ...$arguments): array
    {
        $tasks = Native::get()->make('int64_t');
        $arguments[] = FFI::addr($tasks);
        return $this->call($function, ...$arguments) === self::OK ? TaskInfo::allFromNative($tasks->cdata) : [];
    }
}
