<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Gate;
use Stanchion\Rate;
use Stanchion\TaskState;

/** Keys, rates and limits, as the package has them. What they do is in the scenarios. */
final class KeysTest extends StoreCase
{
    /** @dataProvider stores */
    public function testLimitsAreShownAsTheyWereSet(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->configure(maxRunning: 7, rate: new Rate(20, 2, 5), keyConcurrency: 3, keyRate: new Rate(1, 0.5));
        $stats = $queue->stats();
        self::assertSame([7, 3], [$stats->maxRunning, $stats->keyConcurrency]);
        self::assertEquals([new Rate(20, 2.0, 5), new Rate(1, 0.5)], [$stats->rate, $stats->keyRate]);
        $queue->configure(maxRunning: false, rate: false);
        $stats = $queue->stats();
        self::assertSame([null, null, 3], [$stats->maxRunning, $stats->rate, $stats->keyConcurrency]);
        $queue->limitKey('k', rate: new Rate(100, 600));
        $limits = $queue->getKey('k')->limits;
        self::assertSame([null, 1], [$limits->concurrency, $limits->weight]);
        self::assertEquals(new Rate(100, 600.0), $limits->rate);
        $queue->limitKey('k');
        self::assertNull($queue->getKey('k')->limits);
    }

    /** @dataProvider stores */
    public function testWhatIsHeldCountsAsLive(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany(array_map(fn (string $id) => ['id' => $id, 'key' => 'k'], ['a', 'b', 'c']));
        $stats = $queue->stats();
        self::assertSame([1, 2, 3], [$stats->ready, $stats->held, count($queue)]);
        self::assertSame([Gate::Open, null, null], [$stats->gate, $stats->opensIn, $stats->nextKey]);
        $held = $queue->list(TaskState::Held)->tasks;
        self::assertSame(['b', TaskState::Held, 'k'], [$held[0]->id, $held[0]->state, $held[0]->key]);
        $page = $queue->listKeys();
        self::assertCount(1, $page);
        self::assertNull($page->next);
        foreach ($page as $key) {
            self::assertSame(['k', 0, 1, 2, null], [$key->key, $key->running, $key->inLine, $key->held, $key->opensIn]);
        }
    }

    /** @dataProvider stores */
    public function testAHandlerThatThrottlesHasSettledItsClaim(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueKind('work', id: 'a', key: 'k');
        $seen = [];
        $report = $queue->work(function (Claim $claim) use (&$seen): void {
            $seen[] = [$claim->attempt(), $claim->key()];
            if (count($seen) === 1) {
                $claim->throttle(0);
            }
        }, untilEmpty: true);
        self::assertSame([[1, 'k'], [1, 'k']], $seen);
        self::assertSame([1, 0], [$report->completed, $report->failed]);
    }

    /** @dataProvider stores */
    public function testAScheduleHasAKey(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->schedule('s', '@daily', key: 'reports');
        $queue->schedule('none', '@daily');
        self::assertSame(['reports', null], [$queue->getSchedule('s')->key, $queue->getSchedule('none')->key]);
    }

    public function testWhatCDoesNotDistinguishFromNothingIsRefused(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $calls = [
            fn () => $queue->configure(maxRunning: -1), fn () => $queue->configure(keyConcurrency: -2),
            fn () => $queue->configure(rate: new Rate(-1, 1)), fn () => $queue->configure(rate: new Rate(-2, 1)),
            fn () => $queue->configure(keyRate: new Rate(1, null)), fn () => $queue->configure(rate: new Rate(1, 1, -1)),
            fn () => $queue->configure(rate: new Rate(1, '1')), fn () => $queue->limitKey('k', concurrency: -1),
            fn () => $queue->limitKey('k', weight: -1), fn () => $queue->limitKey('k', rate: new Rate(-1, 1)),
            fn () => $queue->enqueue('a', key: ''), fn () => $queue->listKeys(max: 0),
        ];
        foreach ($calls as $number => $call) {
            try {
                $call();
                self::fail("call $number was not refused");
            } catch (InvalidArgument $error) {
                self::assertNotSame('', $error->getMessage());
            }
        }
        self::assertNull($queue->getKey('k')->limits);
    }
}
