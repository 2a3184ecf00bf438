<?php

/** What an actor has, and its calls that take more than a line. */

declare(strict_types=1);

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Exception\StanchionException;
use Stanchion\Lease;
use Stanchion\Limiter;
use Stanchion\LimitKind;
use Stanchion\Lock;
use Stanchion\Queue;
use Stanchion\Testing\Clock;
use Stanchion\Verdict;
use Stanchion\WorkerEvent;
use Stanchion\WorkerEventKind;

/** One client, with what it has in its hands. */
final class Actor
{
    private ?Client $client = null;
    /** @var array<string, Lease> */
    private array $leases = [];
    /** @var array<string, Claim> */
    private array $claims = [];
    /** @var list<string> What errors that nobody catches would print. */
    public array $told = [];

    public function open(array $request, Clock $clock): void
    {
        $given = arguments(
            $request,
            ['lock_prefix', 'queue_prefix', 'timeout_ms', 'foreign_share', 'label', 'tls_ca', 'tls_cert', 'tls_key']);
        $url = special($request['url']);
        if (is_string($url) && str_starts_with($url, 'memory:')) {
            $given['clock'] = $clock;
        }
        $this->leases = $this->claims = [];
        $this->client = Client::connect($url, ...$given);
    }

    public function close(): void
    {
        $this->client?->close();
    }

    public function client(): Client
    {
        return $this->client ?? throw new LogicException('no client');
    }

    public function lock(array $request): Lock
    {
        $told = $request['lock'];
        $name = static fn (string $kind): mixed => special($told[$kind]);
        $lock = match (is_array($told) ? key($told) : null) {
            'read' => $this->client()->rwLock($name('read'))->read(),
            'write' => $this->client()->rwLock($name('write'))->write(),
            'semaphore' => $this->client()->semaphore($name('semaphore'), $told['permits']),
            'several' => $this->client()->multiLock($told['several']),
            'exclusive' => $this->client()->lock($name('exclusive')),
            default => $this->client()->lock(special($told)),
        };
        return is_array($told) && array_key_exists('owner', $told) ? $lock->reentrant(special($told['owner'])) : $lock;
    }

    public function limiter(array $request): Limiter
    {
        $given = arguments($request, ['n', 'per_ms', 'burst']);
        if (isset($request['kind'])) {
            $given['kind'] = LimitKind::tryFrom(special($request['kind'])) ?? throw new Cannot('the kinds are an enum');
        }
        return $this->client()->limiter(special($request['limiter']), ...$given);
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
                'ack' => $claim->acked(...arguments($told, ['result'])),
                'nack' => $claim->nacked(...arguments($told, ['delay_ms', 'reason'])),
                'bury' => $claim->buried(...arguments($told, ['reason'])),
                'put_back' => $claim->returned(...arguments($told, ['delay_ms'])),
                'throttle' => $claim->throttled(...arguments($told, ['time_ms'])),
            };
        }, $request['verdicts']);
    }

    /** Everything, as a developer would print it. */
    public function show(): array
    {
        $things = [...$this->leases, ...$this->claims];
        if ($this->client !== null) {
            array_push($things, $this->client, $this->client->lock('a'), $this->client->queue('q'));
        }
        ob_start();
        foreach ($things as $thing) {
            var_dump($thing);
            print_r($thing);
        }
        return [...$this->told, (string) ob_get_clean()];
    }

    public function cached(array $request): array
    {
        [$name, $shown] = [special($request['name']), ['computed' => false]];
        $failed = new DomainException('as planned');
        $compute = function () use ($request, $name, $failed, &$shown): mixed {
            $shown['computed'] = true;
            match ($request['body'] ?? null) {
                'fail' => throw $failed,
                'invalidate' => $this->client()->invalidate($name),
                'again' => $shown['meanwhile'] = $this->meanwhile($name, $request),
                default => null,
            };
            return special($request['value'] ?? null);
        };
        try {
            $shown['value'] = $this->client()->cached(...['name' => $name, 'compute' => $compute] + arguments($request, CACHED));
        } catch (DomainException $thrown) {
            $shown['failed'] = $thrown === $failed;
        }
        return $shown;
    }

    private function meanwhile(string $name, array $request): mixed
    {
        $again = arguments(['wait_ms' => 0] + $request, CACHED);
        try {
            return $this->client()->cached(...['name' => $name, 'compute' => fn () => 'twice'] + $again);
        } catch (StanchionException $error) {
            return (new ReflectionClass($error))->getShortName();
        }
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
            $isFirst = !in_array($task->id(), array_column($seen, 'id'), true);
            $seen[] = ['id' => $task->id(), 'attempt' => $task->attempt()];
            match ($plan[min($task->attempt(), count($plan)) - 1]) {
                'ok' => null,
                'fail' => throw new DomainException('as planned'),
                'ack' => $task->ack(),
                'bury' => $task->bury(),
                // It does not count as an attempt.
                'throttle' => $isFirst ? $task->throttle(0) : null,
                'outlive' => $task->waitLost(10),
            };
        };
        $note = static function (WorkerEvent $event) use (&$events): void {
            if (in_array($event->kind, [WorkerEventKind::Dead, WorkerEventKind::Lost, WorkerEventKind::SlotsMissed], true)) {
                $events[] = ['what' => $event->kind->value, 'id' => $event->id];
            }
        };
        $options = arguments($request, ['concurrency', 'lease_ms', 'max_run_ms', 'grace_ms', 'timeout_ms']) + ['untilEmpty' => true, 'onEvent' => $note];
        $report = $this->queue($request)->work($handle, ...$options);
        return [
            'completed' => $report->completed, 'failed' => $report->failed, 'dead' => $report->dead,
            'lost' => $report->lost, 'seen' => $seen, 'events' => $events,
        ];
    }
}
