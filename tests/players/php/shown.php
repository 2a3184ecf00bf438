<?php

/** What the package answers, as JSON. */

declare(strict_types=1);

use Stanchion\Claim;
use Stanchion\Enqueued;
use Stanchion\Exception\StanchionException;
use Stanchion\Exponential;
use Stanchion\FlowInfo;
use Stanchion\FlowInput;
use Stanchion\Holder;
use Stanchion\KeyInfo;
use Stanchion\Lease;
use Stanchion\Missed;
use Stanchion\NodeInfo;
use Stanchion\Queue;
use Stanchion\Rate;
use Stanchion\ScheduleInfo;
use Stanchion\Taken;
use Stanchion\TaskEvent;
use Stanchion\TaskFailure;
use Stanchion\TaskInfo;
use Stanchion\TaskResult;
use Stanchion\TaskState;
use Stanchion\Waiter;

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
        'headers' => (object) $task->headers, 'size' => $task->size, 'version' => $task->version,
        'due_ms' => millis($task->due), 'priority' => $task->priority, 'attempts' => $task->attempts, 'max_attempts' => $task->maxAttempts,
        'expires_ms' => millis($task->expires), 'receipt' => $task->receipt, 'reason' => $task->reason,
        'claimed_by' => $task->claimedBy === null ? null : [
            'label' => $task->claimedBy->label, 'host' => $task->claimedBy->host, 'pid' => $task->claimedBy->pid,
            'since_ms' => millis($task->claimedBy->since),
        ],
        'died_ms' => millis($task->died), 'successor_due_ms' => millis($task->successorDue),
        'kind' => $task->kind, 'timeout_ms' => millis($task->timeout), 'backoff' => shownBackoff($task->backoff),
        'failures' => array_map(
            fn (TaskFailure $one) => ['at_ms' => millis($one->at), 'reason' => $one->reason],
            $task->failures,
        ),
        'progress' => bin2hex($task->progress), 'cancelled' => $task->cancelled, 'key' => $task->key,
    ];
}

function shownBackoff(array|Exponential|null $backoff): ?array
{
    return $backoff instanceof Exponential ? [
        'base' => millis($backoff->base), 'factor' => $backoff->factor, 'max' => millis($backoff->max),
        'jitter' => $backoff->jitter,
    ] : ($backoff === null ? null : array_map(millis(...), $backoff));
}

function shownResult(TaskResult $found): array
{
    return [
        'outcome' => $found->outcome->value, 'result' => $found->result === null ? null : bin2hex($found->result),
        'version' => $found->version, 'reason' => $found->reason,
    ];
}

function shownEvent(TaskEvent $event): array
{
    return [
        'number' => $event->number, 'at_ms' => millis($event->at), 'what' => $event->what->value, 'id' => $event->id,
        'version' => $event->version, 'attempt' => $event->attempt, 'reason' => $event->reason, 'missed' => $event->missed,
    ];
}

function shownClaim(Claim $claim): array
{
    return [
        'id' => $claim->id(), 'queue' => $claim->queue(), 'payload' => bin2hex($claim->payload()),
        'headers' => (object) $claim->headers(), 'attempt' => $claim->attempt(),
        'max_attempts' => $claim->maxAttempts(), 'receipt' => $claim->receipt(), 'version' => $claim->version(),
        'priority' => $claim->priority(), 'due_ms' => millis($claim->due()), 'kind' => $claim->kind(),
        'key' => $claim->key(), 'flow' => $claim->flow(),
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

function shownHolder(Holder $found): array
{
    return [
        'held_as' => $found->heldAs->value, 'label' => $found->label, 'host' => $found->host, 'pid' => $found->pid,
        'fence' => $found->fence, 'since_ms' => millis($found->since), 'remaining_ms' => millis($found->remaining),
        'waiters' => $found->waiters, 'weight' => $found->weight,
    ];
}

function shownTaken(Taken $taken): array
{
    return [
        'outcome' => $taken->allowed ? 'allowed' : 'refused',
        'retry_after_ms' => $taken->retryAfter === null ? null : round($taken->retryAfter * 1000, 3),
    ];
}

function shownWaiter(Waiter $found): array
{
    return [
        'label' => $found->label, 'host' => $found->host, 'pid' => $found->pid, 'since_ms' => millis($found->since),
        'waiting_ms' => millis($found->waiting), 'weight' => $found->weight,
    ];
}

function stats(Queue $queue): array
{
    $found = $queue->stats();
    return [
        'scheduled' => $found->scheduled, 'ready' => $found->ready, 'claimed' => $found->claimed,
        'dead' => $found->dead, 'successors' => $found->successors, 'paused' => $found->paused,
        'waiters' => $found->waiters,
        'next_due_ms' => millis($found->nextDue), 'enqueued' => $found->enqueued, 'acked' => $found->acked,
        'retried' => $found->retried, 'died' => $found->died, 'max_len' => $found->maxLen,
        'dead_max' => $found->deadMax, 'dead_age_ms' => millis($found->deadAge), 'dead_bytes' => $found->deadBytes,
        'intake' => $found->intake, 'schedules' => $found->schedules, 'schedules_late_ms' => millis($found->schedulesLate), 'flows' => $found->flows,
        'events' => $found->events, 'max_running' => $found->maxRunning, 'rate' => shownRate($found->rate),
        'key_concurrency' => $found->keyConcurrency, 'key_rate' => shownRate($found->keyRate), 'held' => $found->held,
        'keys_waiting' => $found->keysWaiting, 'next_key_ms' => millis($found->nextKey), 'gate' => $found->gate->value,
        'opens_in_ms' => millis($found->opensIn),
    ];
}

function shownRate(?Rate $rate): ?array
{
    return $rate === null ? null : ['count' => $rate->count, 'per_ms' => millis($rate->per), 'burst' => $rate->burst];
}

function shownKey(KeyInfo $found): array
{
    return [
        'key' => $found->key, 'running' => $found->running, 'in_line' => $found->inLine, 'held' => $found->held,
        'opens_in_ms' => millis($found->opensIn),
        'limits' => $found->limits === null ? null : [
            'concurrency' => $found->limits->concurrency, 'rate' => shownRate($found->limits->rate),
            'weight' => $found->limits->weight,
        ],
    ];
}

function shownFlow(FlowInfo $found): array
{
    return [
        'id' => $found->id, 'state' => $found->state->value, 'created_ms' => millis($found->created),
        'ended_ms' => millis($found->ended), 'counts' => (object) $found->counts,
        'nodes' => array_map(
            fn (NodeInfo $node) => [
                'name' => $node->name, 'state' => $node->state->value, 'queue' => $node->queue, 'after' => $node->after,
                'after_end' => $node->afterEnd, 'after_failure' => $node->afterFailure, 'after_all' => $node->afterAll,
            ],
            $found->nodes,
        ),
    ];
}

function shownInput(FlowInput $found): array
{
    return [
        'node' => $found->node, 'state' => $found->state->value,
        'result' => $found->result === null ? null : bin2hex($found->result),
    ];
}

function shownSchedule(ScheduleInfo $found): array
{
    return [
        'id' => $found->id, 'when' => $found->when, 'tz' => $found->tz,
        'missed' => $found->missed instanceof Missed ? $found->missed->value : $found->missed,
        'overlap' => $found->overlap?->value, 'jitter_ms' => millis($found->jitter), 'starts_ms' => millis($found->starts),
        'ends_ms' => millis($found->ends), 'paused' => $found->paused, 'next_ms' => millis($found->next),
        'late_ms' => millis($found->late), 'owner' => $found->owner, 'fired' => $found->fired,
        'skipped' => $found->skipped, 'missed_slots' => $found->missedSlots, 'last_task' => $found->lastTask,
        'priority' => $found->priority, 'max_attempts' => $found->maxAttempts, 'expires_ms' => millis($found->expires),
        'size' => $found->size, 'key' => $found->key,
    ];
}

function listed(Queue $queue, array $request): array
{
    $state = is_string($request['state']) ? TaskState::tryFrom($request['state']) : null;
    if ($state === null) {
        throw new Cannot('a state is of an enum');
    }
    $page = $queue->list($state, ...arguments($request, ['page', 'max', 'prefix', 'payloads']));
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
