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
use Stanchion\Internal\Events;
use Stanchion\Internal\Flows;
use Stanchion\Internal\Keys;
use Stanchion\Internal\Kinds;
use Stanchion\Internal\Looking;
use Stanchion\Internal\Managing;
use Stanchion\Internal\Native;
use Stanchion\Internal\Schedules;
use Stanchion\Internal\TaskRecords;
use Stanchion\Internal\Verdicts;

/** A named queue of tasks. Made by Client::queue(). count() is the number of tasks that are not dead. */
final class Queue implements \Countable
{
    use Events;
    use Flows;
    use Keys;
    use Kinds;
    use Looking;
    use Managing;
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
        ?string $key = null,
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
            $key,
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
}
