<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use Stanchion\Client;
use Stanchion\Compat\RedisQueue;
use Stanchion\OnDuplicate;

require_once __DIR__ . '/autoload.php';

/** RedisQueue, and the faults of the classes that it replaces. */
final class RedisQueueTest extends CompatCase
{
    private const JOBS = 3000;
    private const WORKERS = 4;

    private function queue(): RedisQueue
    {
        return new RedisQueue($this->server->url());
    }

    /** As an older producer does. */
    private function zadd(string $name, string $id, float $due): void
    {
        $this->redis->zAdd("Queue:$name", $due, $id);
    }

    /**
     * Has workers pop all jobs at the same time.
     *
     * @return array{popped: int, different: int}
     */
    private function work(string $part): array
    {
        $due = microtime(true) - 10;
        $jobs = $this->redis->multi(\Redis::PIPELINE);
        for ($job = 0; $job < self::JOBS; $job++) {
            $jobs->zAdd('Queue:jobs', $due, "job$job");
        }
        $jobs->exec();

        $workers = [];
        for ($worker = 0; $worker < self::WORKERS; $worker++) {
            $workers[] = new Player($part, $this->server->socket(), 'jobs');
        }
        foreach ($workers as $worker) {
            self::assertSame('ready', $worker->hear());
        }
        foreach ($workers as $worker) {
            $worker->tell('go');
        }
        $popped = [];
        foreach ($workers as $worker) {
            array_push($popped, ...explode("\n", rtrim($worker->rest())));
        }
        return ['popped' => count(array_filter($popped)), 'different' => count(array_unique(array_filter($popped)))];
    }

    public function testOlderWorkersRunSomeJobsTwice(): void
    {
        ['popped' => $popped, 'different' => $different] = $this->work('older pop');
        self::assertSame(self::JOBS, $different);
        self::assertGreaterThan(self::JOBS, $popped);
    }

    public function testWorkersRunEveryJobOnce(): void
    {
        ['popped' => $popped, 'different' => $different] = $this->work('pop');
        self::assertSame(self::JOBS, $different);
        self::assertSame(self::JOBS, $popped);
    }

    public function testOlderPopGoesOnWithoutTheLock(): void
    {
        $this->zadd('jobs', 'a', 1);
        $this->redis->set('Lock:Queue:jobs', 'of another', ['EX' => 60]);
        $second = new Old\RedisQueue($this->server->redis());
        $popped = [];
        $first = new Old\RedisQueue($this->server->redis(), function (string $place) use ($second, &$popped): void {
            $popped[] = $place === 'read' ? $second->pop('jobs', 0) : false;
        });

        $task = $first->pop('jobs', 0);
        self::assertSame(['id' => 'a', 'score' => 1.0], $task);
        self::assertSame([$task], $popped, 'both have it');
    }

    public function testPopsNeedNoLock(): void
    {
        $this->zadd('jobs', 'a', 1);
        $this->redis->set('Lock:Queue:jobs', 'of another', ['EX' => 60]);

        self::assertSame(['id' => 'a', 'score' => 1.0], $this->queue()->pop('jobs'));
        self::assertFalse($this->queue()->pop('jobs'));
    }

    public function testOlderKilledProducerStopsTheQueueForDecades(): void
    {
        // It died between the SETNX and the end of its enqueue.
        $older = new Old\RedisLock($this->server->redis());
        self::assertTrue($older->lock('Queue:jobs'));

        self::assertFalse((new Old\RedisQueue($this->redis))->enqueue('jobs', 'a', 1));
        self::assertTrue($this->queue()->enqueue('jobs', 'a', 1));
        self::assertSame('a', $this->queue()->pop('jobs')['id']);
    }

    public function testShapes(): void
    {
        $queue = $this->queue();
        self::assertFalse($queue->pop('jobs'));
        self::assertFalse($queue->top('jobs'));
        self::assertSame([], $queue->pop('jobs', 5));
        self::assertSame([], $queue->top('jobs', 5));

        $begin = floor(microtime(true) * 1000) / 1000;
        foreach (['a', 'b', 'c'] as $id) {
            self::assertTrue($queue->enqueue('jobs', $id));
        }
        $top = $queue->top('jobs');
        self::assertSame(['id', 'score'], array_keys($top));
        self::assertSame('a', $top['id']);
        self::assertIsFloat($top['score']);
        self::assertEqualsWithDelta($begin, $top['score'], 5.0);

        self::assertSame(['a', 'b'], array_column($queue->top('jobs', 2), 'id'));
        self::assertSame($top, $queue->pop('jobs'));
        self::assertSame(['b', 'c'], array_column($queue->pop('jobs', 5), 'id'));
        self::assertSame([], $queue->pop('jobs', 5));
    }

    public function testBadArgumentsAreAnsweredAsBefore(): void
    {
        $queue = $this->queue();
        self::assertFalse($queue->enqueue('', 'a'));
        self::assertFalse($queue->enqueue('jobs', ''));
        self::assertFalse($queue->enqueue('jobs', []));
        self::assertFalse($queue->enqueue('jobs', 'a', 0));
        self::assertFalse($queue->dequeue('jobs', ''));
        self::assertSame([], $queue->pop('jobs', 0));
        self::assertSame([], $queue->pop(''));
        self::assertSame([], $queue->top('jobs', -1));
        self::assertSame([], $this->redis->keys('*'));
    }

    public function testAnIdIsInTheQueueOnceAndKeepsItsTime(): void
    {
        $queue = $this->queue();
        self::assertTrue($queue->enqueue('jobs', 'a'));
        $top = $queue->top('jobs');
        self::assertTrue($queue->enqueue('jobs', 'a', 10, 3600));

        self::assertSame([$top], $queue->top('jobs', 5));
    }

    public function testSeveralIdsAtOnce(): void
    {
        self::assertTrue($this->queue()->enqueue('jobs', ['a', 'b', 7]));
        self::assertSame(['a', 'b', '7'], array_column($this->queue()->pop('jobs', 5), 'id'));
    }

    public function testFullQueueIsToldByFalse(): void
    {
        Client::connect($this->server->url())->queue('jobs')->configure(maxLen: 1);
        self::assertTrue($this->queue()->enqueue('jobs', 'a'));
        self::assertFalse($this->queue()->enqueue('jobs', 'b'));
        self::assertFalse($this->queue()->enqueue('jobs', ['first' => 'a', 'second' => 'c']));
        self::assertSame(['a'], array_column($this->queue()->top('jobs', 5), 'id'));
    }

    public function testAfterIntervalDelays(): void
    {
        $queue = $this->queue();
        self::assertTrue($queue->enqueue('jobs', 'later', 10, 3600));
        self::assertFalse($queue->top('jobs'));
        self::assertFalse($queue->pop('jobs'));

        self::assertTrue($queue->enqueue('jobs', 'soon', 10, 0.05));
        Wait::until('it is due', fn () => $queue->pop('jobs') !== false);
        self::assertTrue($queue->dequeue('jobs', 'later'));
    }

    public function testDequeueOnlyWithTheScoreThatWasSeen(): void
    {
        $queue = $this->queue();
        self::assertTrue($queue->enqueue('jobs', 'a'));
        $score = $queue->top('jobs')['score'];

        self::assertFalse($queue->dequeue('jobs', 'a', $score + 1));
        self::assertSame('a', $queue->top('jobs')['id']);
        self::assertTrue($queue->dequeue('jobs', 'a', $score));
        self::assertFalse($queue->dequeue('jobs', 'a', $score));
        self::assertFalse($queue->dequeue('jobs', 'a'));
        self::assertFalse($queue->top('jobs'));
    }

    public function testDequeueLeavesATaskThatWasPutOffMeanwhile(): void
    {
        $queue = $this->queue();
        self::assertTrue($queue->enqueue('jobs', 'a'));
        $score = $queue->top('jobs')['score'];
        $other = Client::connect($this->server->url(), label: 'other')->queue('jobs');
        $putOff = static fn () => $other->enqueue('a', delay: 3600, onDuplicate: OnDuplicate::replace());

        // The handler runs when the first call has returned, which looks whether the task is there with this score.
        $async = pcntl_async_signals(true);
        $before = pcntl_signal_get_handler(SIGALRM);
        pcntl_signal(SIGALRM, $putOff);
        $this->redis->rawCommand('CLIENT', 'PAUSE', '1500', 'ALL');
        pcntl_alarm(1);
        try {
            self::assertFalse($queue->dequeue('jobs', 'a', $score));
        } finally {
            pcntl_signal(SIGALRM, $before);
            pcntl_async_signals($async);
        }
        self::assertSame(1, $other->stats()->scheduled);
    }

    public function testDequeueLeavesATaskThatIsBeingWorkedOn(): void
    {
        self::assertTrue($this->queue()->enqueue('jobs', 'a'));
        $claims = Client::connect($this->server->url())->queue('jobs')->claim();
        self::assertFalse($this->queue()->dequeue('jobs', 'a'));
        $claims[0]->ack();
    }

    public function testTasksOfOlderProducersAreWorkedOn(): void
    {
        $older = new Old\RedisQueue($this->redis);
        $queue = $this->queue();
        self::assertTrue($older->enqueue('jobs', 'first'));
        self::assertTrue($older->enqueue('jobs', 'first'));
        self::assertTrue($older->enqueue('jobs', 'later', 10, 3600));
        self::assertTrue($queue->enqueue('jobs', 'second'));
        Wait::until('both are due', fn () => count($queue->top('jobs', 5)) === 2);

        $ids = array_column($queue->pop('jobs', 5), 'id');
        self::assertEqualsCanonicalizing(['first', 'second'], $ids);
        self::assertSame(['later'], $this->redis->zRange('Queue:jobs', 0, -1));
    }

    public function testTasksOfOlderProducersAreDequeued(): void
    {
        $this->zadd('jobs', 'a', 1.5);
        $this->zadd('jobs', 'b', microtime(true) + 3600);
        $queue = $this->queue();
        self::assertSame(['id' => 'a', 'score' => 1.5], $queue->top('jobs'));

        self::assertFalse($queue->dequeue('jobs', 'a', 2.5));
        self::assertTrue($queue->dequeue('jobs', 'a', 1.5));
        self::assertTrue($queue->dequeue('jobs', 'b'));
        self::assertSame(0, $this->redis->zCard('Queue:jobs'));
    }
}
