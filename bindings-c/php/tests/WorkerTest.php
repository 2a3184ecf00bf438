<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Exception\InvalidArgument;
use Stanchion\TaskState;
use Stanchion\Worker;
use Stanchion\WorkerEvent;
use Stanchion\WorkerEventKind;

final class WorkerTest extends StoreCase
{
    /** @dataProvider stores */
    public function testAWorkerUntilEmpty(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany(array_map(fn (int $number) => "t$number", range(1, 20)));
        $queue->enqueueMany([['id' => 'bad', 'maxAttempts' => 1], 'buried', ['id' => 'later', 'delay' => 500]]);
        $events = $done = [];
        $report = $queue->work(function (Claim $task) use (&$done): void {
            match ($task->id()) {
                'bad' => throw new \DomainException("no\xff"),
                'buried' => $task->bury('by itself'),
                default => $done[] = $task->id(),
            };
        }, untilEmpty: true, onEvent: function (WorkerEvent $event) use (&$events): void {
            $events[$event->id][] = [$event->kind, $event->reason];
        });
        self::assertCount(20, $done);
        self::assertSame([20, 2, 2], [$report->completed, $report->failed, $report->dead]);
        self::assertContains([WorkerEventKind::Dead, "DomainException: no\u{fffd}"], $events['bad']);
        self::assertSame([[WorkerEventKind::Completed, '']], $events['t7']);
        self::assertSame("DomainException: no\u{fffd}", $queue->get('bad')->reason);
        self::assertSame('by itself', $queue->get('buried')->reason);
        self::assertSame(TaskState::Scheduled, $queue->get('later')->state);
    }

    /** @dataProvider stores */
    public function testItStopsWhenTold(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany(['a', 'b', 'c']);
        $worker = null;
        $worker = $queue->worker(function (Claim $task) use (&$worker): void {
            self::assertInstanceOf(Worker::class, $worker);
            self::assertThrows(InvalidArgument::class, $worker->run(...), 'already running');
            $worker->stop();
        });
        self::assertSame(1, $worker->run()->completed);
        self::assertSame(2, $queue->stats()->ready);
    }

    /** @dataProvider stores */
    public function testTasksTakenAheadGoBackWhenItStops(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany(array_map(fn (int $number) => "t$number", range(0, 19)));
        $worker = null;
        $seen = 0;
        $worker = $queue->worker(function () use (&$worker, &$seen, $queue): void {
            // Before and after the first acks.
            self::assertSame(min(8, 20 - $seen), $queue->stats()->claimed);
            if (++$seen === 3) {
                $worker->stop();
            }
        }, prefetch: 8);
        self::assertSame(3, $worker->run()->completed);
        self::assertSame([17, 0], [$queue->stats()->ready, $queue->stats()->claimed]);
        self::assertSame(0, $queue->get('t4')->attempts);
        self::assertSame(17, $queue->work(fn () => null, untilEmpty: true, prefetch: 1000)->completed);
    }

    public function testPrefetchHasBounds(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        foreach ([0, -1, 1001] as $prefetch) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->work(fn () => null, prefetch: $prefetch), 'prefetch');
        }
    }

    public function testAGeneratorIsRefused(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a', maxAttempts: 1);
        $report = $queue->work(function (Claim $task) {
            yield $task;
        }, untilEmpty: true, onEvent: fn () => null);
        self::assertSame([0, 1], [$report->completed, $report->dead]);
        self::assertStringContainsString('generator', $queue->get('a')->reason);
    }

    /** @dataProvider sharedStores */
    public function testASignalDrains(string $kind): void
    {
        $url = $this->url($kind);
        $program = new Program('worker', $url);
        $queue = \Stanchion\Client::connect($url)->queue('q');
        $queue->enqueueMany(['slow', 'next']);
        $program->expect('slow');
        $program->signal(SIGTERM);
        $program->tell('go on');
        self::assertSame('done 1', $program->line());
        self::assertSame(0, $program->wait());
        self::assertSame([1, 0], [$queue->stats()->ready, $queue->stats()->claimed]);
    }

    /** @dataProvider sharedStores */
    public function testAHandlerHasItsGraceAndItsTaskGoesBackUncounted(string $kind): void
    {
        foreach (['0.2', '60'] as $grace) {
            $url = $this->url($kind);
            $program = new Program('stopping', $url, [], $grace);
            $queue = \Stanchion\Client::connect($url)->queue('q');
            $queue->enqueueMany(['a', 'b']);
            $program->expect('a');
            $program->signal(SIGTERM);
            if ($grace === '60') {
                usleep(200_000); // Two that come together are one.
                $program->signal(SIGTERM);
            }
            self::assertSame('stopped', $program->line());
            self::assertSame('done 0 0 0', $program->line());
            self::assertSame(0, $program->wait());
            self::assertSame([2, 0], [$queue->stats()->ready, $queue->stats()->claimed]);
            self::assertSame(0, $queue->get('a')->attempts);
            $queue->purge();
        }
    }

    public function testASignalEndsAWaitForTasks(): void
    {
        $url = $this->url('redis:');
        $program = new Program('worker', $url);
        \Stanchion\Client::connect($url)->queue('q')->enqueue('first');
        $program->expect('first');
        $program->signal(SIGINT);
        self::assertSame('done 1', $program->line());
        self::assertSame(0, $program->wait());
    }

    /** @dataProvider sharedStores */
    public function testATaskOfAKilledWorkerComesBack(string $kind): void
    {
        $url = $this->url($kind);
        $queue = \Stanchion\Client::connect($url)->queue('q');
        $queue->enqueue('slow');
        $program = new Program('worker', $url);
        $program->expect('slow');
        $program->signal(SIGKILL);
        self::assertSame(-SIGKILL, $program->wait());
        [$claim] = $queue->claim(wait: 20);
        self::assertSame(2, $claim->attempt());
        $claim->ack();
    }
}
