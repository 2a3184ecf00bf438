<?php

declare(strict_types=1);

namespace Stanchion\Laravel;

use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;
use Stanchion\Client;
use Stanchion\Internal\Ahead;

/**
 * A queue for Laravel: a job is a task. It is claimed under a lease that is renewed while it runs; if its worker dies,
 * another one gets it.
 */
final class StanchionQueue extends Queue implements QueueContract
{
    /** How often a job is tried is Laravel's affair. */
    private const MAX_ATTEMPTS = 1_000_000;

    /** @var array<string, Ahead> by name of the queue */
    private array $ahead = [];

    /**
     * @param string $default the queue that is meant if none is named
     * @param int|float $blockFor how long pop() waits for a job, in seconds
     * @param int $prefetch how many jobs are taken at once, 1 to 1000. With more than one, deleted jobs are deleted
     *     together, when the next ones are taken: if the process dies before, they are done again
     */
    public function __construct(
        private readonly Client $client,
        private readonly string $default = 'default',
        private readonly int|float $blockFor = 0,
        bool $dispatchAfterCommit = false,
        private readonly int $prefetch = 1,
    ) {
        $this->dispatchAfterCommit = $dispatchAfterCommit;
    }

    public function size($queue = null): int
    {
        return $this->client->queue($this->name($queue))->count();
    }

    public function push($job, $data = '', $queue = null): mixed
    {
        return $this->send($job, $data, $queue, null);
    }

    public function later($delay, $job, $data = '', $queue = null): mixed
    {
        return $this->send($job, $data, $queue, $delay);
    }

    /** @param array{delay?: int, priority?: int, id?: string} $options */
    public function pushRaw($payload, $queue = null, array $options = []): string
    {
        return $this->client->queue($this->name($queue))->enqueue(
            $options['id'] ?? null,
            $payload,
            delay: $options['delay'] ?? null,
            priority: $options['priority'] ?? null,
            maxAttempts: self::MAX_ATTEMPTS,
        )->id;
    }

    public function pop($queue = null): ?StanchionJob
    {
        $name = $this->name($queue);
        $ahead = $this->ahead[$name] ??= new Ahead($this->client->queue($name), $this->prefetch);
        $claim = $ahead->next($this->blockFor);
        return $claim === null
            ? null
            : new StanchionJob($this->container, $claim, $ahead, $this->connectionName, $name);
    }

    private function send(mixed $job, mixed $data, ?string $queue, mixed $delay): mixed
    {
        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $this->name($queue), $data),
            $queue,
            $delay,
            fn ($payload, $queue, $delay = null) => $this->pushRaw(
                $payload,
                $queue,
                $delay === null ? [] : ['delay' => $this->secondsUntil($delay)],
            ),
        );
    }

    private function name(?string $queue): string
    {
        return $queue ?: $this->default;
    }
}
