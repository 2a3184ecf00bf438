<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\OnDuplicate;
use Stanchion\Queue;
use Stanchion\Schedule;
use Stanchion\Task;
use Stanchion\TaskState;

/** What is called for days takes no more memory than what is called for a moment. */
final class MemoryTest extends StoreCase
{
    private const CALLS = 20_000;
    /** What is made once, such as the types of arrays, is made in these. */
    private const BEFORE = 1_000;
    /** In bytes: less than a quarter of one for each call. */
    private const MOST_IN_PHP = 4_096;
    /** In KiB, of the whole process: less than what 50 bytes for each call would be. */
    private const MOST = 1_000;

    /** @return array<string, array{int, \Closure(Client, Queue, int): mixed}> how many calls it makes, and these */
    public static function calls(): array
    {
        return self::locks() + self::otherLocks() + self::tasks() + self::verdicts() + self::lists();
    }

    /** @dataProvider calls */
    public function testNothingGrows(int $calls, \Closure $make): void
    {
        $client = $this->connect('memory:');
        $queue = $client->queue('q');
        for ($i = 0; $i < self::BEFORE / $calls; $i++) {
            $make($client, $queue, $i);
        }
        gc_collect_cycles();
        [$bytes, $kib] = [memory_get_usage(), self::resident()];
        for ($i = 0; $i < self::CALLS / $calls; $i++) {
            $make($client, $queue, $i);
        }
        self::assertLessThan(self::MOST_IN_PHP, memory_get_usage() - $bytes, 'bytes of PHP');
        self::assertLessThan(self::MOST, self::resident() - $kib, 'KiB of the process');
    }

    /** @return array<string, array{int, \Closure}> */
    private static function locks(): array
    {
        return [
            'acquire' => [2, fn (Client $client) => $client->lock('a')->acquire()->release()],
            'tryAcquire' => [2, fn (Client $client) => $client->lock('a', label: 'x')->tryAcquire(ttl: 20)->release()],
            'hold' => [2, fn (Client $client) => $client->lock('a')->hold(fn () => null)],
            'lease' => [11, function (Client $client): void {
                $lease = $client->lock('a')->acquire();
                [$lease->token(), $lease->name(), $lease->fence(), $lease->loss(), $lease->check(), $lease->extend(40)];
                [$lease->remaining(), $lease->isValid(), $lease->waitLost(0), $lease->release()];
            }],
            'handle' => [3, function (Client $client): void {
                $client->resumeLease($client->lock('a')->acquire()->detach())->release();
            }],
            'looks' => [4, function (Client $client): void {
                $lock = $client->lock('a');
                [$lock->holders(), $lock->waiters(), $lock->isLocked(), $lock->breakLease()];
            }],
            'refused' => [1, function (Client $client): void {
                self::assertThrows(InvalidArgument::class, fn () => $client->lock('a')->acquire(ttl: 0.001));
            }],
        ];
    }

    /** @return array<string, array{int, \Closure}> */
    private static function otherLocks(): array
    {
        return [
            'semaphore' => [2, fn (Client $client) => $client->semaphore('s', 3)->acquire(weight: 2)->release()],
            'rwLock' => [4, function (Client $client): void {
                $lease = $client->rwLock('r')->write()->acquire();
                [$lease->downgrade(), $lease->upgrade(), $lease->release()];
            }],
            'multiLock' => [3, function (Client $client): void {
                $lease = $client->multiLock(['m', 'n', 'o'])->acquire();
                [$lease->fences(), $lease->release()];
            }],
            'reentrant' => [2, fn (Client $client) => $client->lock('a')->reentrant('me')->acquire()->release()],
            'cached' => [2, function (Client $client, Queue $queue, int $i): void {
                $client->cached('c', 60, fn () => ['x' => str_repeat('y', $i % 300)]);
                $client->invalidate('c');
            }],
        ];
    }

    /** @return array<string, array{int, \Closure}> */
    private static function tasks(): array
    {
        return [
            'enqueue' => [1, function (Client $client, Queue $queue, int $i): void {
                $payload = str_repeat('x', $i % 300);
                $queue->enqueue('id' . $i % 40, $payload, headers: ['h' => 'v'], onDuplicate: OnDuplicate::replace());
            }],
            'enqueueMany' => [1, function (Client $client, Queue $queue, int $i): void {
                $queue->enqueueMany(array_fill(0, $i % 6, new Task('x', ['a' => 1])));
            }],
            'claim' => [3, function (Client $client, Queue $queue, int $i): void {
                $queue->enqueue('x', 'payload', headers: ['h' => 'v']);
                array_map(fn (Claim $claim) => $claim->ack(), $queue->claim(max: 1 + $i % 20));
            }],
            'queues' => [4, function (Client $client, Queue $queue): void {
                $queue->enqueue('x');
                [$claim] = $client->queues(['p', 'q'])->claim(max: 5);
                [$claim->extend(50), $claim->ack()];
            }],
            'queue looks' => [5, function (Client $client, Queue $queue): void {
                $queue->enqueue('x');
                [$claim] = $queue->claim();
                [$queue->get('x'), $queue->consumers(), $queue->stats(), $claim->ack()];
            }],
            'pop' => [2, fn (Client $client, Queue $queue) => [$queue->enqueue('x'), $queue->pop(5)]],
            'work' => [50, function (Client $client, Queue $queue, int $i): void {
                $queue->enqueueMany(array_map(fn (int $id) => "$id", range(1, 50)));
                $queue->work(fn (Claim $claim) => $claim->payload(), untilEmpty: true, prefetch: 1 + $i % 3);
            }],
        ];
    }

    /** @return array<string, array{int, \Closure}> */
    private static function verdicts(): array
    {
        $acked = fn (Queue $queue) => array_map(fn (Claim $claim) => $claim->acked(), $queue->claim(max: 5));
        return [
            'settle' => [3, fn (Client $client, Queue $queue) => [$queue->enqueue('x'), $queue->settle($acked($queue))]],
            'settleAndClaim' => [3, function (Client $client, Queue $queue) use ($acked): void {
                [$queue->enqueue('x'), $queue->settleAndClaim($acked($queue))];
            }],
            'nack' => [5, function (Client $client, Queue $queue): void {
                [$queue->enqueue('x'), $queue->claim()[0]->nack(0, 'why'), $queue->claim()[0]->putBack(), $queue->pop()];
            }],
            'dead' => [6, function (Client $client, Queue $queue): void {
                [$queue->enqueue('x'), $queue->claim()[0]->bury('y'), $queue->kick(['x']), $queue->claim()[0]->bury('y')];
                [$queue->kick(receipts: [1, 2, 3]), $queue->removeDead(reason: 'y')];
            }],
        ];
    }

    /** @return array<string, array{int, \Closure}> */
    private static function lists(): array
    {
        return [
            'list' => [5, function (Client $client, Queue $queue): void {
                [$queue->enqueue('x', 'y'), $queue->peek(5), $queue->get('x'), $queue->list(TaskState::Ready)];
                $queue->remove('x');
            }],
            'stats' => [5, function (Client $client, Queue $queue): void {
                [$queue->enqueue('x'), $queue->reschedule('x', 1.0), $queue->stats(), count($queue), $queue->purge()];
            }],
            'configure' => [3, function (Client $client, Queue $queue): void {
                [$queue->configure(maxLen: 100), $queue->pause(), $queue->resume()];
            }],
            'schedules' => [8, function (Client $client, Queue $queue, int $i): void {
                $queue->schedule('a' . $i % 3, '@yearly', ['n' => $i % 300], 'Europe/Berlin', headers: ['h' => 'v']);
                [$queue->getSchedule('a0'), $queue->listSchedules(), $queue->syncSchedules('app', 1, [['b', '@daily']])];
                (new Schedule('a', '@daily'))->preview($i, 1 + $i % 20);
                [$queue->pauseSchedule('b'), $queue->resumeSchedule('b'), $queue->removeSchedule('a0')];
            }],
            'flows' => [10, function (Client $client, Queue $queue, int $i): void {
                $name = str_repeat('n', 1 + $i % 99);
                $queue->enqueueFlow('f', [$name, ['id' => 'b', 'after' => [$name]], ['id' => 'c', 'afterAll' => 'finally']]);
                $queue->claim()[0]->ack('x');
                [$claim] = $queue->claim();
                [$queue->addToFlow('f', ['d']), $queue->getFlow('f'), $queue->listFlows(max: 3), $claim->inputs()];
                [$claim->ack(), $queue->retryFlow('f'), $queue->cancelFlow('f'), $queue->purge()];
            }],
            'names' => [2, fn (Client $client) => [$client->locks(), $client->queueNames()]],
            'metrics' => [8, fn (Client $client) => [$client->metrics(), $client->metricsText()]],
            'connect' => [2, fn () => [Client::connect('memory:shared', label: 'x')->releaseAll()]],
        ];
    }

    private static function resident(): int
    {
        preg_match('/^VmRSS:\s+(\d+)/m', file_get_contents('/proc/self/status'), $found);
        return (int) $found[1];
    }
}
