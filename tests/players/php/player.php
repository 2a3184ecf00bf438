<?php

/**
 * Carries out the steps of scenarios with the PHP package. What it speaks: contract/players.py.
 *
 * One call after the other: PHP has one thread.
 */

declare(strict_types=1);

use Stanchion\Exception\StanchionException;
use Stanchion\Schedule;
use Stanchion\Task;
use Stanchion\Testing\Clock;

require __DIR__ . '/../../../bindings-c/php/tests/bootstrap.php';
require __DIR__ . '/arguments.php';
require __DIR__ . '/shown.php';
require __DIR__ . '/Actor.php';

$clock = null;
$operations = [
    'time.pass' => function (Actor $actor, array $request) use (&$clock): void {
        $clock->advance($request['ms'] / 1000);
    },
    'process.fork' => function (Actor $actor, array $request) use (&$operations): never {
        throw new ChildSays(inChild(fn () => answer($operations[$request['then']['op']], $actor, $request['then'])));
    },
    'process.show' => fn (Actor $actor) => $actor->show(),
    'process.panic' => fn () => throw new Cannot('FFI calls only what the header declares'),
    'client.open' => function (Actor $actor, array $request) use (&$clock): void {
        $actor->open($request, $clock ??= new Clock());
    },
    'client.close' => fn (Actor $actor) => $actor->close(),
    'client.resume_lease' => fn (Actor $actor, array $request) =>
        $actor->keep($request, $actor->client()->resumeLease(special($request['handle']))),
    'client.release_all' => fn (Actor $actor) => $actor->client()->releaseAll(),
    'client.metrics' => fn (Actor $actor) => ['samples' => $actor->client()->metrics(), 'text' => $actor->client()->metricsText()],
    'client.cached' => fn (Actor $actor, array $request) => $actor->cached($request),
    'client.invalidate' => fn (Actor $actor, array $request) => $actor->client()->invalidate(special($request['name'])),
    'client.locks' => function (Actor $actor, array $request): array {
        $page = $actor->client()->locks($request['page'] ?? null);
        return ['items' => $page->names, 'next' => $page->next];
    },
    'client.queue_names' => function (Actor $actor, array $request): array {
        $page = $actor->client()->queueNames($request['page'] ?? null);
        return ['items' => $page->names, 'next' => $page->next];
    },
    'lock.acquire' => fn (Actor $actor, array $request) => isset($request['cancel'])
        ? throw new Cannot('a wait ends by a signal')
        : $actor->keep($request, $actor->lock($request)->acquire(...arguments($request, LOCK))),
    'lock.try_acquire' => fn (Actor $actor, array $request) =>
        $actor->keep($request, $actor->lock($request)->tryAcquire(...arguments($request, LOCK))),
    'lock.hold' => fn (Actor $actor, array $request) => $actor->hold($request),
    'lock.holder' => function (Actor $actor, array $request): ?array {
        $found = $actor->lock($request)->holder();
        return $found === null ? null : shownHolder($found);
    },
    'lock.waiters' => fn (Actor $actor, array $request) => array_map(shownWaiter(...), $actor->lock($request)->waiters()),
    'lock.holders' => fn (Actor $actor, array $request) => array_map(shownHolder(...), $actor->lock($request)->holders()),
    'lock.is_locked' => fn (Actor $actor, array $request) => $actor->lock($request)->isLocked(),
    'lock.break_lease' => fn (Actor $actor, array $request) => $actor->lock($request)->breakLease(),
    'limiter.take' => fn (Actor $actor, array $request) => isset($request['cancel'])
        ? throw new Cannot('a wait ends by a signal')
        : shownTaken($actor->limiter($request)->take(special($request['count'] ?? 1), ...arguments($request, ['wait_ms']))),
    'limiter.try_take' => fn (Actor $actor, array $request) =>
        shownTaken($actor->limiter($request)->tryTake(special($request['count'] ?? 1))),
    'lease.look' => function (Actor $actor, array $request): array {
        $lease = $actor->lease($request);
        return shownLease($lease) + [
            'remaining_ms' => millis($lease->remaining()), 'valid' => $lease->isValid(), 'loss' => $lease->loss()?->value,
            'fences' => (object) $lease->fences(),
        ];
    },
    'lease.check' => fn (Actor $actor, array $request) => $actor->lease($request)->check(),
    'lease.wait_lost' => fn (Actor $actor, array $request) =>
        $actor->lease($request)->waitLost(seconds($request['time_ms'])),
    'lease.extend' => fn (Actor $actor, array $request) => $actor->lease($request)->extend(seconds($request['ttl_ms'])),
    'lease.extend_exact' => fn (Actor $actor, array $request) => $actor->lease($request)->extendExact(seconds($request['ttl_ms'])),
    'lease.upgrade' => fn (Actor $actor, array $request) => $actor->lease($request)->upgrade(),
    'lease.downgrade' => fn (Actor $actor, array $request) => $actor->lease($request)->downgrade(),
    'lease.release' => fn (Actor $actor, array $request) =>
        $actor->lease($request)->release(...arguments($request, ['cooldown_ms'])),
    'lease.detach' => fn (Actor $actor, array $request) =>
        $actor->lease($request)->detach(...arguments($request, ['ttl_ms'])),
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
    'queue.cancel' => fn (Actor $actor, array $request) =>
        ['outcome' => $actor->queue($request)->cancel(special($request['id']))->value],
    'queue.result' => fn (Actor $actor, array $request) =>
        shownResult($actor->queue($request)->result(...arguments($request, ['id', 'version', 'wait_ms']))),
    'queue.events' => fn (Actor $actor, array $request) => array_map(
        shownEvent(...),
        iterator_to_array($actor->queue($request)->events(...arguments($request + ['wait_ms' => 0], ['after', 'wait_ms'])), false),
    ),
    'queue.consumers' => fn (Actor $actor, array $request) => array_map(
        get_object_vars(...),
        $actor->queue($request)->consumers(),
    ),
    'queue.stats' => fn (Actor $actor, array $request) => stats($actor->queue($request)),
    'queue.pause' => fn (Actor $actor, array $request) => $actor->queue($request)->pause(),
    'queue.resume' => fn (Actor $actor, array $request) => $actor->queue($request)->resume(),
    'queue.kick' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->kick(...arguments($request, DEAD)),
    'queue.remove_dead' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->removeDead(...arguments($request, DEAD)),
    'queue.purge' => fn (Actor $actor, array $request) => $actor->queue($request)->purge(),
    'queue.configure' => fn (Actor $actor, array $request) => $actor->queue($request)->configure(...arguments($request, CONFIG)),
    'queue.schedule' => fn (Actor $actor, array $request) =>
        ['outcome' => $actor->queue($request)->schedule(...arguments($request, SCHEDULE))->value],
    'queue.sync_schedules' => fn (Actor $actor, array $request) => get_object_vars($actor->queue($request)->syncSchedules(
        special($request['owner']),
        special($request['generation']),
        array_map(fn (array $one) => new Schedule(...arguments($one, SCHEDULE)), $request['schedules']))),
    'queue.get_schedule' => function (Actor $actor, array $request): ?array {
        $found = $actor->queue($request)->getSchedule(special($request['id']));
        return $found === null ? null : shownSchedule($found);
    },
    'queue.list_schedules' => function (Actor $actor, array $request): array {
        $page = $actor->queue($request)->listSchedules(...arguments($request, ['page', 'max']));
        return ['items' => array_map(shownSchedule(...), $page->schedules), 'next' => $page->next];
    },
    'queue.pause_schedule' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->pauseSchedule(special($request['id'])),
    'queue.resume_schedule' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->resumeSchedule(special($request['id'])),
    'queue.run_schedule' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->runSchedule(special($request['id'])),
    'queue.remove_schedule' => fn (Actor $actor, array $request) =>
        $actor->queue($request)->removeSchedule(special($request['id'])),
    'queue.limit_key' => fn (Actor $actor, array $request) => $actor->queue($request)->limitKey(
        ...arguments($request, LIMITS) + (isset($request['concurrency']) ? ['concurrency' => special($request['concurrency'])] : [])),
    'queue.get_key' => fn (Actor $actor, array $request) => shownKey($actor->queue($request)->getKey(special($request['key']))),
    'queue.list_keys' => function (Actor $actor, array $request): array {
        $page = $actor->queue($request)->listKeys(...arguments($request, ['page', 'max']));
        return ['items' => array_map(shownKey(...), $page->keys), 'next' => $page->next];
    },
    'queue.enqueue_flow' => fn (Actor $actor, array $request) => $actor->queue($request)->enqueueFlow(
        special($request['id']),
        array_map(fn (array $node) => arguments($node, NODE), $request['nodes'])),
    'queue.add_to_flow' => fn (Actor $actor, array $request) => $actor->queue($request)->addToFlow(
        special($request['id']),
        array_map(fn (array $node) => arguments($node, NODE), $request['nodes'])),
    'queue.get_flow' => function (Actor $actor, array $request): ?array {
        $found = $actor->queue($request)->getFlow(special($request['id']));
        return $found === null ? null : shownFlow($found);
    },
    'queue.list_flows' => function (Actor $actor, array $request): array {
        $page = $actor->queue($request)->listFlows(...arguments($request, ['page', 'max']));
        return ['items' => array_map(shownFlow(...), $page->flows), 'next' => $page->next];
    },
    'queue.cancel_flow' => fn (Actor $actor, array $request) => $actor->queue($request)->cancelFlow(special($request['id'])),
    'queue.retry_flow' => fn (Actor $actor, array $request) => $actor->queue($request)->retryFlow(special($request['id'])),
    'schedule.preview' => fn (Actor $actor, array $request) => array_map(
        millis(...),
        (new Schedule(...arguments($request + ['id' => 'a'], SCHEDULE)))->preview(...arguments($request, ['after_ms', 'count']))),
    'claim.look' => function (Actor $actor, array $request): array {
        $claim = $actor->claim($request);
        return shownClaim($claim) + [
            'remaining_ms' => millis($claim->remaining()), 'valid' => $claim->isValid(), 'loss' => $claim->loss()?->value,
        ];
    },
    'claim.inputs' => fn (Actor $actor, array $request) => array_map(shownInput(...), $actor->claim($request)->inputs()),
    'claim.ack' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->ack(...arguments($request, ['result'])),
    'claim.progress' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->progress(special($request['progress'])),
    'claim.nack' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->nack(...arguments($request, ['delay_ms', 'reason'])),
    'claim.bury' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->bury(...arguments($request, ['reason'])),
    'claim.put_back' => fn (Actor $actor, array $request) => 
        $actor->claim($request)->putBack(...arguments($request, ['delay_ms'])),
    'claim.throttle' => fn (Actor $actor, array $request) =>
        $actor->claim($request)->throttle(seconds($request['time_ms'])),
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
    } catch (ChildSays $child) {
        return $child->answer;
    } catch (StanchionException $error) {
        $actor->told[] = (string) $error;
        return ['error' => failure($error)];
    } catch (TypeError) {
        return ['cannot' => "PHP's own types refuse it"];
    } catch (Cannot $refusal) {
        return ['cannot' => $refusal->getMessage()];
    } catch (Error $error) {
        return str_starts_with($error->getMessage(), 'Unknown named parameter')
            ? ['cannot' => 'there is no such parameter']
            : ['error' => ['kind' => $error::class . ' of PHP', 'message' => (string) $error]];
    } catch (Throwable $error) {
        return ['error' => ['kind' => $error::class . ' of PHP', 'message' => (string) $error]];
    }
}

/** What a forked child answers. */
function inChild(callable $what): array
{
    [$mine, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $child = pcntl_fork();
    if ($child === 0) {
        fwrite($its, json_encode($what()) . "\n");
        // Without the ends of PHP's own, as after a crash.
        posix_kill(posix_getpid(), SIGKILL);
    }
    fclose($its);
    $told = fgets($mine);
    pcntl_waitpid($child, $status);
    return json_decode($told, true);
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
