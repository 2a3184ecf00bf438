<?php

declare(strict_types=1);

namespace Stanchion\Compat;

use Stanchion\Client;
use Stanchion\Exception\QueueFull;
use Stanchion\Internal\OlderClient;
use Stanchion\Task;
use Stanchion\TaskInfo;
use Stanchion\TaskState;

/**
 * For code written against a class with these methods, which keeps ids in a sorted set at `Queue:` + name. New code
 * uses Client::queue(), and there claim() instead of pop(): a task that was popped is lost if its worker dies.
 *
 * No call needs a lock. What older producers put into the sorted set is worked on; consumers of the older kind see
 * nothing of what is enqueued here, so they have to be replaced before the producers. A score is when a task is due, in
 * seconds since 1970.
 */
final class RedisQueue
{
    /** The most that the store returns at once. */
    private const MOST = 1000;

    private readonly Client $client;

    /** @param object|string|null $client a connection of phpredis or Predis, a client, or a URL (STANCHION_URL) */
    public function __construct(#[\SensitiveParameter] object|string|null $client = null)
    {
        $this->client = OlderClient::open($client, reads: true);
    }

    /**
     * Puts in an id, or several. One that is in the queue already stays as it is. False: not all could be, because the
     * queue is full, or there is nothing to put in.
     *
     * @param string|int|list<string|int> $id
     * @param int|float $timeout in older classes, how long to wait for the lock of the queue; 0 or less puts in nothing
     * @param int|float $afterInterval in so many seconds it is due
     */
    public function enqueue(
        string $name,
        string|int|array $id,
        int|float $timeout = 10,
        int|float $afterInterval = 0,
    ): bool {
        if ($name === '' || $id === '' || $id === [] || $timeout <= 0) {
            return false;
        }
        $queue = $this->client->queue($name);
        $delay = max(0, $afterInterval);
        $tasks = array_map(fn ($id) => new Task((string) $id, delay: $delay), array_values((array) $id));
        foreach ($queue->enqueueMany($tasks) as $enqueued) {
            if ($enqueued instanceof QueueFull) {
                return false;
            }
        }
        return true;
    }

    /**
     * Takes an id out, if it is still due at the score that was seen: whether it was. One that is being worked on is
     * not in the queue any more.
     *
     * @param int|float|null $score of pop() or top(); null takes it out in any case
     */
    public function dequeue(string $name, string|int $id, int|float|null $score = null): bool
    {
        if ($name === '' || $id === '') {
            return false;
        }
        $queue = $this->client->queue($name);
        do {
            $task = $queue->get((string) $id);
            $pending = $task?->state === TaskState::Scheduled || $task?->state === TaskState::Ready;
            if (!$pending || ($score !== null && self::millis($task->due) !== self::millis($score))) {
                return false;
            }
        } while (!$queue->remove((string) $id, version: $task->version));
        return true;
    }

    /**
     * Takes what is due, for good: the first one, or false if there is none. With a count that is not 1: a list.
     *
     * @param int $count at most, up to 1,000
     * @return array{id: string, score: float}|list<array{id: string, score: float}>|false
     */
    public function pop(string $name, int $count = 1): array|false
    {
        return self::answer($name, $count, fn (int $most) => $this->client->queue($name)->pop($most));
    }

    /**
     * What pop() would take, and leaves it in the queue.
     *
     * @param int $count at most, up to 1,000
     * @return array{id: string, score: float}|list<array{id: string, score: float}>|false
     */
    public function top(string $name, int $count = 1): array|false
    {
        return self::answer($name, $count, fn (int $most) => $this->client->queue($name)->peek($most));
    }

    /** @param \Closure(int): list<TaskInfo> $take */
    private static function answer(string $name, int $count, \Closure $take): array|false
    {
        if ($name === '' || $count < 1) {
            return [];
        }
        $found = array_map(
            fn (TaskInfo $task) => ['id' => $task->id, 'score' => $task->due],
            $take(min($count, self::MOST)),
        );
        return $count === 1 ? $found[0] ?? false : $found;
    }

    /** The store knows milliseconds. */
    private static function millis(int|float $seconds): int
    {
        return (int) round($seconds * 1000);
    }
}
