<?php

/**
 * Carries out the steps of scenarios with the PHP package. What it speaks: contract/drivers.py.
 *
 * One call after the other: PHP has one thread.
 */

declare(strict_types=1);

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Enqueued;
use Stanchion\Exception\StanchionException;
use Stanchion\Lease;
use Stanchion\Lock;
use Stanchion\OnDuplicate;
use Stanchion\Queue;
use Stanchion\Task;
use Stanchion\TaskInfo;
use Stanchion\TaskState;
use Stanchion\Testing\Clock;
use Stanchion\Verdict;
use Stanchion\WorkerEvent;
use Stanchion\WorkerEventKind;

require __DIR__ . '/../../../bindings-c/php/tests/bootstrap.php';

/** What PHP's own types do not allow. */
final class Cannot extends Exception
{
}

/** A value, also one that JSON cannot say. */
function special(mixed $value): mixed
{
    if (!is_array($value) || count($value) !== 1) {
        return $value;
    }
    return match (array_key_first($value)) {
        '$number' => ['nan' => NAN, 'inf' => INF, '-inf' => -INF][$value['$number']],
        '$text' => hex2bin($value['$text']),
        '$hex' => hex2bin($value['$hex']),
        default => $value,
    };
}

function seconds(mixed $value): mixed
{
    $value = special($value);
    return is_int($value) || is_float($value) ? $value / 1000 : $value;
}

function millis(?float $seconds): int|float|null
{
    return $seconds === null ? null : round($seconds * 1000);
}

function policy(mixed $told): mixed
{
    return match (true) {
        $told === 'keep' => OnDuplicate::keep(),
        $told === 'replace' => OnDuplicate::replace(),
        isset($told['debounce_ms']) => OnDuplicate::debounce(seconds($told['debounce_ms'])),
        isset($told['throttle_ms']) => OnDuplicate::throttle(seconds($told['throttle_ms'])),
        default => $told,
    };
}

const NAMES = [
    'max_attempts' => 'maxAttempts', 'fail_fast' => 'failFast', 'dead_max' => 'deadMax', 'dead_bytes' => 'deadBytes',
    'lock_prefix' => 'lockPrefix', 'queue_prefix' => 'queuePrefix', 'foreign_share' => 'foreignShare',
];
const TIMES = [
    'ttl_ms' => 'ttl', 'max_hold_ms' => 'maxHold', 'wait_ms' => 'wait', 'adopt_unexpiring_ms' => 'adoptUnexpiring',
    'cooldown_ms' => 'cooldown', 'delay_ms' => 'delay', 'due_ms' => 'due', 'expires_ms' => 'expires',
    'lease_ms' => 'lease', 'max_run_ms' => 'maxRun', 'dead_age_ms' => 'deadAge', 'timeout_ms' => 'timeout',
];
const LOCK = ['ttl_ms', 'renew', 'max_hold_ms', 'wait_ms', 'fail_fast', 'adopt_unexpiring_ms', 'label'];
const CLAIM = ['max', 'lease_ms', 'renew', 'max_run_ms', 'wait_ms'];
const TASK = [
    'id', 'payload', 'headers', 'delay_ms', 'due_ms', 'priority', 'max_attempts', 'expires_ms', 'on_duplicate',
];

/** A request's arguments, under the names and in the units of the package. */
function arguments(array $request, array $names): array
{
    $found = [];
    foreach ($names as $name) {
        if (!array_key_exists($name, $request)) {
            continue;
        }
        match (true) {
            $name === 'on_duplicate' => $found['onDuplicate'] = policy($request[$name]),
            // In PHP null stands for "not given" and false for "no limit".
            $name === 'max_len' => $found['maxLen'] = $request[$name] ?? false,
            isset(TIMES[$name]) => $found[TIMES[$name]] = seconds($request[$name]),
            default => $found[NAMES[$name] ?? $name] = special($request[$name]),
        };
    }
    return $found;
}

function failure(StanchionException $error): array
{
    return [
        'kind' => (new ReflectionClass($error))->getShortName(), 'code' => $error->getCode(),
        'message' => $error->getMessage(), 'retryable' => $error->isRetryable(), 'operation' => $error->operation(),
        'name' => $error->name(),
    ];
}

function shownError(?StanchionException $error): ?array
{
    return $error === null ? null : ['error' => failure($error)];
}

function shownLease(Lease $lease): array
{
    return ['name' => $lease->name(), 'fence' => $lease->fence(), 'token' => $lease->token()];
}

function shownTask(TaskInfo $task): array
{
    return [
        'id' => $task->id, 'state' => $task->state->value, 'payload' => bin2hex($task->payload),
        'headers' => (object) $task->headers, 'version' => $task->version, 'due_ms' => millis($task->due),
        'priority' => $task->priority, 'attempts' => $task->attempts, 'max_attempts' => $task->maxAttempts,
        'expires_ms' => millis($task->expires), 'receipt' => $task->receipt, 'reason' => $task->reason,
        'died_ms' => millis($task->died), 'successor_due_ms' => millis($task->successorDue),
    ];
}

function shownClaim(Claim $claim): array
{
    return [
        'id' => $claim->id(), 'queue' => $claim->queue(), 'payload' => bin2hex($claim->payload()),
        'headers' => (object) $claim->headers(), 'attempt' => $claim->attempt(),
        'max_attempts' => $claim->maxAttempts(), 'receipt' => $claim->receipt(), 'version' => $claim->version(),
        'priority' => $claim->priority(), 'due_ms' => millis($claim->due()),
    ];
}

function shownEnqueued(Enqueued|StanchionException $done): array
{
    if ($done instanceof StanchionException) {
        return shownError($done);
    }
    return [
        'id' => $done->id, 'outcome' => $done->outcome->value, 'version' => $done->version,
        'due_ms' => millis($done->due),
    ];
}

/** One client, with what it has in its hands. */
final class Actor
{
    private ?Client $client = null;
    /** @var array<string, Lease> */
    private array $leases = [];
    /** @var array<string, Claim> */
    private array $claims = [];

    public function open(array $request, Clock $clock): void
    {
        $given = arguments(
            $request, ['lock_prefix', 'queue_prefix', 'timeout_ms', 'foreign_share', 'label']);
        $url = special($request['url']);
        if (is_string($url) && str_starts_with($url, 'memory:')) {
            $given['clock'] = $clock;
        }
        $this->client = Client::connect($url, ...$given);
    }

    public function close(): void
    {
        $this->client?->releaseAll();
        $this->leases = $this->claims = [];
        $this->client = null;
    }

    public function client(): Client
    {
        return $this->client ?? throw new LogicException('no client');
    }

    public function lock(array $request): Lock
    {
        return $this->client()->lock(special($request['lock']));
    }

    public function queue(array $request): Queue
    {
        return $this->client()->queue(special($request['queue']));
    }

    public function lease(array $request): Lease
    {
        return $this->leases[$request['lease'] ?? 'lease'];
    }

    public function claim(array $request): Claim
    {
        return $this->claims[$request['claim'] ?? 'claim.0'];
    }

    public function keep(array $request, ?Lease $lease): ?array
    {
        if ($lease === null) {
            return null;
        }
        $this->leases[$request['as'] ?? 'lease'] = $lease;
        return shownLease($lease);
    }

    /** @param list<Claim> $claims */
    public function keepClaims(array $request, array $claims): array
    {
        foreach ($claims as $number => $claim) {
            $this->claims[($request['as'] ?? 'claim') . ".$number"] = $claim;
        }
        return array_map(shownClaim(...), $claims);
    }

    /** @return list<Verdict> */
    public function verdicts(array $request): array
    {
        return array_map(function (array $told): Verdict {
            $claim = $this->claim($told);
            return match ($told['verdict']) {
                'ack' => $claim->acked(),
                'nack' => $claim->nacked(...arguments($told, ['delay_ms', 'reason'])),
                'bury' => $claim->buried(...arguments($told, ['reason'])),
                'put_back' => $claim->returned(),
            };
        }, $request['verdicts']);
    }

    public function hold(array $request): array
    {
        $lock = $this->lock($request);
        return $lock->hold(function (Lease $lease) use ($request, $lock): array {
            $shown = shownLease($lease);
            match ($request['body'] ?? null) {
                'release' => $lease->release(),
                'break' => $lock->breakLease(),
                default => null,
            };
            return $shown;
        }, ...arguments($request, LOCK));
    }

    /** A worker whose handler does what the request says for each delivery of a task, and then the last again. */
    public function work(array $request): array
    {
        $seen = $events = [];
        $handle = static function (Claim $task) use ($request, &$seen): void {
            $plan = $request['handler'][$task->id()] ?? ['ok'];
            $seen[] = ['id' => $task->id(), 'attempt' => $task->attempt()];
            match ($plan[min($task->attempt(), count($plan)) - 1]) {
                'ok' => null,
                'fail' => throw new DomainException('as planned'),
                'ack' => $task->ack(),
                'bury' => $task->bury(),
            };
        };
        $note = static function (WorkerEvent $event) use (&$events): void {
            if ($event->kind === WorkerEventKind::Dead || $event->kind === WorkerEventKind::Lost) {
                $events[] = ['what' => $event->kind->value, 'id' => $event->id];
            }
        };
        $options = arguments($request, ['lease_ms', 'max_run_ms']) + ['burst' => true, 'onEvent' => $note];
        $report = $this->queue($request)->work($handle, ...$options);
        return [
            'completed' => $report->completed, 'failed' => $report->failed, 'dead' => $report->dead,
            'lost' => $report->lost, 'seen' => $seen, 'events' => $events,
        ];
    }
}

function holder(Lock $lock): ?array
{
    $found = $lock->holder();
    return $found === null ? null : [
        'held_as' => $found->heldAs->value, 'label' => $found->label, 'host' => $found->host, 'pid' => $found->pid,
        'fence' => $found->fence, 'since_ms' => millis($found->since), 'remaining_ms' => millis($found->remaining),
        'waiters' => $found->waiters,
    ];
}

function stats(Queue $queue): array
{
    $found = $queue->stats();
    return [
        'scheduled' => $found->scheduled, 'ready' => $found->ready, 'claimed' => $found->claimed,
        'dead' => $found->dead, 'successors' => $found->successors, 'paused' => $found->paused,
        'next_due_ms' => millis($found->nextDue), 'enqueued' => $found->enqueued, 'acked' => $found->acked,
        'retried' => $found->retried, 'died' => $found->died, 'max_len' => $found->maxLen,
        'dead_max' => $found->deadMax, 'dead_age_ms' => millis($found->deadAge), 'dead_bytes' => $found->deadBytes,
        'intake' => $found->intake,
    ];
}

function listed(Queue $queue, array $request): array
{
    $state = is_string($request['state']) ? TaskState::tryFrom($request['state']) : null;
    if ($state === null) {
        throw new Cannot('a state is of an enum');
    }
    $page = $queue->list($state, ...arguments($request, ['page', 'max']));
    return ['items' => array_map(shownTask(...), $page->tasks), 'next' => $page->next];
}

function removed(Queue $queue, array $request): array
{
    $other = null;
    $removed = $queue->remove(special($request['id']), $request['version'] ?? null, $other);
    return ['removed' => $removed, 'other_version' => $other];
}

/** It was moved, or in which state it is, if it is in one. */
function rescheduled(Queue $queue, array $request): array
{
    $state = null;
    $moved = $queue->reschedule(special($request['id']), seconds($request['due_ms']), $state);
    return ['outcome' => $moved ? 'moved' : $state?->value ?? 'absent'];
}

/** @param array{0: list<?StanchionException>, 1: list<Claim>} $found */
function settledAndClaimed(Actor $actor, array $request, array $found): array
{
    [$settled, $claims] = $found;
    return ['settled' => array_map(shownError(...), $settled), 'claims' => $actor->keepClaims($request, $claims)];
}

function tasks(array $found): array
{
    return array_map(shownTask(...), $found);
}

$clock = null;
$operations = [
    'time.pass' => function (Actor $actor, array $request) use (&$clock): void {
        $clock->advance($request['ms'] / 1000);
    },
    'client.open' => function (Actor $actor, array $request) use (&$clock): void {
        $actor->open($request, $clock ??= new Clock());
    },
    'client.close' => fn (Actor $actor) => $actor->close(),
    'client.resume_lease' => fn (Actor $actor, array $request) =>
        $actor->keep($request, $actor->client()->resumeLease(special($request['handle']))),
    'client.release_all' => fn (Actor $actor) => $actor->client()->releaseAll(),
    'client.locks' => function (Actor $actor, array $request): array {
        $page = $actor->client()->locks($request['page'] ?? null);
        return ['items' => $page->names, 'next' => $page->next];
    },
    'client.queue_names' => function (Actor $actor, array $request): array {
        $page = $actor->client()->queueNames($request['page'] ?? null);
        return ['items' => $page->names, 'next' => $page->next];
    },
    'lock.acquire' => fn (Actor $actor, array $request) =>
        $actor->keep($request, $actor->lock($request)->acquire(...arguments($request, LOCK))),
    'lock.try_acquire' => fn (Actor $actor, array $request) =>
        $actor->keep($request, $actor->lock($request)->tryAcquire(...arguments($request, LOCK))),
    'lock.hold' => fn (Actor $actor, array $request) => $actor->hold($request),
    'lock.holder' => fn (Actor $actor, array $request) => holder($actor->lock($request)),
    'lock.is_locked' => fn (Actor $actor, array $request) => $actor->lock($request)->isLocked(),
    'lock.break_lease' => fn (Actor $actor, array $request) => $actor->lock($request)->breakLease(),
    'lease.look' => function (Actor $actor, array $request): array {
        $lease = $actor->lease($request);
        return shownLease($lease) + [
            'remaining_ms' => millis($lease->remaining()), 'valid' => $lease->isValid(), 'loss' => $lease->loss()?->value,
        ];
    },
    'lease.check' => fn (Actor $actor, array $request) => $actor->lease($request)->check(),
    'lease.wait_lost' => fn (Actor $actor, array $request) =>
        $actor->lease($request)->waitLost(seconds($request['time_ms'])),
    'lease.extend' => fn (Actor $actor, array $request) => $actor->lease($request)->extend(seconds($request['ttl_ms'])),
    'lease.release' => fn (Actor $actor, array $request) =>
        $actor->lease($request)->release(...arguments($request, ['cooldown_ms'])),
    'lease.into_handle' => fn (Actor $actor, array $request) =>
        $actor->lease($request)->intoHandle(...arguments($request, ['ttl_ms'])),
    'queue.enqueue' => fn (Actor $actor, array $request) =>
        shownEnqueued($actor->queue($request)->enqueue(...arguments($request, TASK))),
    'queue.enqueue_many' => fn (Actor $actor, array $request) => array_map(
        shownEnqueued(...),
        $actor->queue($request)->enqueueMany(
            array_map(fn (array $task) => new Task(...arguments($task, TASK)), $request['tasks']))),
    'queue.claim' => fn (Actor $actor, array $request) =>
        $actor->keepClaims($request, $actor->queue($request)->claim(...arguments($request, CLAIM))),
    'queues.claim' => fn (Actor $actor, array $request) =>
        $actor->keepClaims($request, $actor->client()->queues($request['queues'])->claim(...arguments($request, CLAIM))),
    'queue.settle' => fn (Actor $actor, array $request) =>
        array_map(shownError(...), $actor->queue($request)->settle($actor->verdicts($request))),
    'queue.settle_and_claim' => fn (Actor $actor, array $request) => settledAndClaimed($actor, $request,
        $actor->queue($request)->settleAndClaim($actor->verdicts($request), ...arguments($request, CLAIM))),
    'queue.pop' => fn (Actor $actor, array $request) =>
        tasks($actor->queue($request)->pop(...arguments($request, ['n']))),
    'queue.peek' => fn (Actor $actor, array $request) =>
        tasks($actor->queue($request)->peek(...arguments($request, ['n']))),
    'queue.get' => function (Actor $actor, array $request): ?array {
        $found = $actor->queue($request)->get(special($request['id']));
        return $found === null ? null : shownTask($found);
    },
    'queue.list' => fn (Actor $actor, array $request) => listed($actor->queue($request), $request),
    'queue.remove' => fn (Actor $actor, array $request) => removed($actor->queue($request), $request),
    'queue.reschedule' => fn (Actor $actor, array $request) => rescheduled($actor->queue($request), $request),
    'queue.stats' => fn (Actor $actor, array $request) => stats($actor->queue($request)),
    'queue.pause' => fn (Actor $actor, array $request) => $actor->queue($request)->pause(),
    'queue.resume' => fn (Actor $actor, array $request) => $actor->queue($request)->resume(),
    'queue.kick' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->kick($request['ids'] ?? special($request['count'])),
    'queue.purge' => fn (Actor $actor, array $request) => $actor->queue($request)->purge(),
    'queue.configure' => fn (Actor $actor, array $request) => $actor->queue($request)->configure(
        ...arguments($request, ['max_len', 'dead_max', 'dead_age_ms', 'dead_bytes', 'intake'])),
    'claim.look' => function (Actor $actor, array $request): array {
        $claim = $actor->claim($request);
        return shownClaim($claim) + [
            'remaining_ms' => millis($claim->remaining()), 'valid' => $claim->isValid(), 'loss' => $claim->loss()?->value,
        ];
    },
    'claim.ack' => fn (Actor $actor, array $request) => $actor->claim($request)->ack(),
    'claim.nack' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->nack(...arguments($request, ['delay_ms', 'reason'])),
    'claim.bury' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->bury(...arguments($request, ['reason'])),
    'claim.put_back' => fn (Actor $actor, array $request) => $actor->claim($request)->putBack(),
    'claim.extend' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->extend(seconds($request['lease_ms'])),
    'claim.wait_lost' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->waitLost(seconds($request['time_ms'])),
    'worker.run' => fn (Actor $actor, array $request) => $actor->work($request),
];

function answer(callable $operation, Actor $actor, array $request): array
{
    try {
        return ['ok' => $operation($actor, $request)];
    } catch (StanchionException $error) {
        return ['error' => failure($error)];
    } catch (TypeError) {
        return ['cannot' => "PHP's own types refuse it"];
    } catch (Cannot $refusal) {
        return ['cannot' => $refusal->getMessage()];
    } catch (Throwable $error) {
        return ['error' => ['kind' => $error::class . ' of PHP', 'message' => (string) $error]];
    }
}

$actors = [];
while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    $found = $request['op'] === 'operations'
        ? ['ok' => array_keys($operations)]
        : answer($operations[$request['op']], $actors[$request['actor']] ??= new Actor(), $request);
    echo json_encode(['call' => $request['call']] + $found, JSON_THROW_ON_ERROR), "\n";
    flush();
}
