<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\QueueFull;
use Stanchion\Missed;
use Stanchion\Overlap;
use Stanchion\Schedule;
use Stanchion\Scheduled;
use Stanchion\ScheduleOutcome;
use Stanchion\Testing\Clock;

/** Tasks at set times. */
final class SchedulesTest extends StoreCase
{
    private const HOUR = 3600;

    /** @dataProvider stores */
    public function testAScheduleIsShownAsItWasPut(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        self::assertNull($queue->getSchedule('a'));
        $fields = ['id' => 'a', 'when' => '30 2 * * MON-FRI', 'payload' => ['x' => 1], 'tz' => 'Europe/Berlin', 'missed' => 5,
            'overlap' => Overlap::Skip, 'jitter' => 60, 'starts' => 4102444800.5, 'headers' => ['by' => 'cron'],
            'ends' => new \DateTimeImmutable('2101-01-01T00:00:00Z'), 'priority' => 3, 'maxAttempts' => 4, 'expires' => 9.25];
        self::assertSame(ScheduleOutcome::Added, $queue->schedule(...$fields));
        $found = $queue->getSchedule('a');
        self::assertSame(
            ['a', '30 2 * * MON-FRI', 'Europe/Berlin', 5, Overlap::Skip, 60.0, 4102444800.5, 4133980800.0, false],
            [$found->id, $found->when, $found->tz, $found->missed, $found->overlap, $found->jitter, $found->starts,
                $found->ends, $found->paused]);
        self::assertSame(
            [0.0, null, 0, 0, 0, null, 3, 4, 9.25],
            [$found->late, $found->owner, $found->fired, $found->skipped, $found->missedSlots, $found->lastTask,
                $found->priority, $found->maxAttempts, $found->expires]);
        self::assertGreaterThan(strlen('{"x":1}'), $found->size);
        self::assertSame((new Schedule(...$fields))->preview(4102444800, 1), [$found->next]);
        self::assertSame(ScheduleOutcome::Kept, $queue->schedule(...$fields));
        self::assertSame(ScheduleOutcome::Changed, $queue->schedule(...['payload' => 'text'] + $fields));
        self::assertSame(1, $queue->stats()->schedules);
    }

    /** @dataProvider stores */
    public function testDefaults(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->schedule('a', 'every 1000h');
        $queue->schedule('b', '@daily', missed: Missed::Skip, paused: true);
        $found = $queue->getSchedule('a');
        self::assertSame(
            ['UTC', Missed::Last, Overlap::Queue, 0.0, null, null, false, 0, 20, null],
            [$found->tz, $found->missed, $found->overlap, $found->jitter, $found->starts, $found->ends, $found->paused,
                $found->priority, $found->maxAttempts, $found->expires]);
        self::assertEqualsWithDelta(microtime(true) + 1000 * self::HOUR, $found->next, 20.0);
        $found = $queue->getSchedule('b');
        self::assertSame([Missed::Skip, true, null], [$found->missed, $found->paused, $found->next]);
    }

    public function testAClaimFiresWhatIsDue(): void
    {
        $clock = new Clock();
        $queue = Client::connect('memory:', clock: $clock)->queue('q');
        $queue->schedule('beat', 'every 1h', ['n' => 1], missed: 2, headers: ['by' => 'cron'], priority: 7);
        self::assertSame([], $queue->claim(9));
        $clock->advance(3 * self::HOUR + 60);
        self::assertSame([1, 2.0 * self::HOUR + 60], [$queue->stats()->schedules, $queue->stats()->schedulesLate]);
        [$first, $second] = $queue->claim(9);
        self::assertSame(['n' => 1], $second->json());
        self::assertEquals(['by' => 'cron', 'content-type' => 'application/json'], $second->headers());
        self::assertSame([7, (float) self::HOUR], [$second->priority(), $second->due() - $first->due()]);
        $found = $queue->getSchedule('beat');
        self::assertSame([2, 1, $second->id()], [$found->fired, $found->missedSlots, $found->lastTask]);
        self::assertStringStartsWith('beat@', $second->id());
        self::assertSame(0.0, $queue->stats()->schedulesLate);
    }

    /** @dataProvider stores */
    public function testPausedRunAndRemoved(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        self::assertSame(
            [false, false, false, null],
            [$queue->pauseSchedule('a'), $queue->resumeSchedule('a'), $queue->removeSchedule('a'), $queue->runSchedule('a')]);
        $queue->schedule('a', '@yearly', 'now');
        self::assertTrue($queue->pauseSchedule('a'));
        self::assertTrue($queue->getSchedule('a')->paused);
        $task = $queue->runSchedule('a');
        [$claim] = $queue->claim();
        self::assertSame([$task, 'now'], [$claim->id(), $claim->payload()]);
        $claim->ack();
        self::assertTrue($queue->resumeSchedule('a'));
        self::assertFalse($queue->getSchedule('a')->paused);
        $queue->configure(maxLen: 1);
        $queue->enqueue('full');
        self::assertThrows(QueueFull::class, fn () => $queue->runSchedule('a'));
        self::assertTrue($queue->removeSchedule('a'));
        self::assertFalse($queue->removeSchedule('a'));
        self::assertSame(0, $queue->stats()->schedules);
    }

    /** @dataProvider stores */
    public function testPages(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        self::assertSame([0, null], [count($queue->listSchedules()), $queue->listSchedules()->next]);
        foreach (['c' => 3000, 'a' => 1000, 'd' => 4000, 'b' => 2000] as $id => $hours) {
            $queue->schedule($id, "every {$hours}h");
        }
        $seen = [];
        $page = null;
        do {
            $found = $queue->listSchedules($page, 3);
            self::assertCount($page === null ? 3 : 1, $found);
            foreach ($found as $schedule) {
                $seen[] = $schedule->id;
            }
        } while (($page = $found->next) !== null);
        self::assertSame(['a', 'b', 'c', 'd'], $seen);
        self::assertCount(4, $queue->listSchedules());
    }

    /** @dataProvider stores */
    public function testAnOwnersList(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->schedule('mine', '@yearly');
        $b = new Schedule('b', '@yearly', priority: 5);
        $made = (function () use ($b): \Generator {
            yield ['a', '@yearly'];
            yield $b;
        })();
        self::assertSame([2, 0, 0, 0, null], array_values((array) $queue->syncSchedules('app', 3, $made)));
        $synced = $queue->syncSchedules('app', 4, [$b, ['id' => 'c', 'when' => 'every 9h', 'missed' => Missed::Skip]]);
        self::assertSame([1, 0, 1, 1, null], array_values((array) $synced));
        self::assertSame([0, 0, 0, 0, 4], array_values((array) $queue->syncSchedules('app', 3, [])));
        self::assertSame(['app', null], [$queue->getSchedule('c')->owner, $queue->getSchedule('mine')->owner]);
        self::assertSame(2, $queue->syncSchedules('app', 4, [])->removed);
    }

    public function testPreviewsKnowTheZone(): void
    {
        // 3 o'clock in Berlin, over the night in which its clocks go forward.
        $slots = [1806112800.0, 1806195600.0, 1806282000.0];
        $nightly = new Schedule('nightly', '0 3 * * *', tz: 'Europe/Berlin');
        self::assertSame($slots, $nightly->preview(1806105600, 3));
        self::assertSame($slots, $nightly->preview(new \DateTimeImmutable('2027-03-27T00:00:00Z'), 3));
        $over = new Schedule('over', '0 3 * * *', tz: 'Europe/Berlin', ends: $slots[1]);
        self::assertSame(array_slice($slots, 0, 2), $over->preview(1806105600, 100));
        foreach ([0, -1, 1001, PHP_INT_MAX] as $count) {
            self::assertThrows(InvalidArgument::class, fn () => $nightly->preview(0, $count), 'preview(): argument count');
        }
        foreach ([null, -1, NAN, '1', true] as $after) {
            self::assertThrows(InvalidArgument::class, fn () => $nightly->preview($after, 1), 'argument after');
        }
        self::assertThrows(InvalidArgument::class, fn () => (new Schedule('a', 'soon'))->preview(0, 1), 'when: ');
    }

    public function testTheMethodsOfAnObject(): void
    {
        $all = [];
        foreach (Schedule::of(new Reports()) as $schedule) {
            $all[$schedule->id] = $schedule;
        }
        self::assertSame([Reports::class . '::nightly', Reports::class . '::cleanUp', 'leap'], array_keys($all));
        self::assertEquals(
            new Schedule(Reports::class . '::nightly', '0 3 * * *', ['all' => true], 'Europe/Berlin', Missed::Skip, Overlap::Skip),
            $all[Reports::class . '::nightly']);
        self::assertSame(['every 1h', 7], [$all[Reports::class . '::cleanUp']->when, $all[Reports::class . '::cleanUp']->missed]);
        self::assertSame(
            ['@yearly', 'old', 4102444800, 9, 3],
            [$all['leap']->when, $all['leap']->payload, $all['leap']->starts->getTimestamp(), $all['leap']->priority,
                $all['leap']->maxAttempts]);
        self::assertSame([], Schedule::of(new \stdClass()));
        $names = fn (string $class) => array_map(
            fn ($one) => $one->getName(), (new \ReflectionMethod($class, '__construct'))->getParameters());
        self::assertEqualsCanonicalizing($names(Schedule::class), $names(Scheduled::class));
        self::assertSame($names(Schedule::class), array_map(
            fn ($one) => $one->getName(), (new \ReflectionMethod(\Stanchion\Queue::class, 'schedule'))->getParameters()));
    }

    public function testAWorkerCallsTheMethods(): void
    {
        $clock = new Clock();
        $queue = Client::connect('memory:', clock: $clock)->queue('q');
        $reports = new Reports();
        self::assertSame(3, $queue->syncSchedules('app', 1, Schedule::of($reports))->added);
        self::assertSame(0, $queue->syncSchedules('app', 1, Schedule::of(new Reports()))->added);
        $clock->advance(self::HOUR);
        $queue->runSchedule(Reports::class . '::nightly');
        $queue->work(function (Claim $task) use ($reports): void {
            [, $method] = explode('::', strstr($task->id(), '@', true));
            $reports->$method($task->payload() === '' ? null : $task->json());
        }, untilEmpty: true);
        self::assertContains('nightly of {"all":true}', $reports->made);
        self::assertContains('cleaned up', $reports->made);
    }

    public function testBadSchedules(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $bad = [
            'missed must be at least 1' => ['missed' => 0], 'missed must be at least 1, got -1' => ['missed' => -1],
            'missed: ' => ['missed' => PHP_INT_MAX], 'jitter must be' => ['jitter' => '5'], 'jitter: ' => ['jitter' => 86401],
            'starts must be' => ['starts' => -1], 'ends must be' => ['ends' => INF], 'ends: ' => ['starts' => 9, 'ends' => 5],
            'priority must be' => ['priority' => 256], 'maxAttempts must be' => ['maxAttempts' => 0],
            'expires must be' => ['expires' => -1], 'headers[a] must be' => ['headers' => ['a' => 5]], 'JSON' => ['payload' => NAN],
            'tz: ' => ['tz' => 'Mars/Phobos'], 'when: ' => ['when' => '0 25 * * *'], 'id' => ['id' => str_repeat('x', 481)],
            'it is over' => ['when' => 'at 1999-01-01T00:00:00Z'],
        ];
        foreach ($bad as $message => $fields) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->schedule(...$fields + ['id' => 'a', 'when' => '@daily']), $message);
        }
        foreach (['later', 1.5, null, true] as $missed) {
            self::assertThrows(\TypeError::class, fn () => $queue->schedule('a', '@daily', missed: $missed), '$missed');
        }
        self::assertThrows(\TypeError::class, fn () => $queue->schedule('a', '@daily', overlap: 'skip'), '$overlap');
        foreach ([5, null, 'a', new \stdClass(), ['a'], ['no' => 'such'], [[], []]] as $item) {
            $call = fn () => $queue->syncSchedules('app', 1, [['good', '@daily'], $item]);
            self::assertThrows(InvalidArgument::class, $call, 'syncSchedules(): ');
        }
        $twice = [['a', '@daily'], ['a', '@yearly']];
        self::assertThrows(InvalidArgument::class, fn () => $queue->syncSchedules('app', 1, $twice), 'twice');
        self::assertThrows(InvalidArgument::class, fn () => $queue->syncSchedules('app', -1, []), 'syncSchedules(): generation -1');
        self::assertThrows(InvalidArgument::class, fn () => $queue->syncSchedules('', 1, []));
        foreach ([0, -1, 1001] as $max) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->listSchedules(max: $max), 'argument max');
        }
        self::assertThrows(InvalidArgument::class, fn () => $queue->listSchedules(''));
        self::assertThrows(InvalidArgument::class, fn () => $queue->listSchedules('none of ours'));
        foreach (['', "a\n", "\xff"] as $id) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->getSchedule($id));
            self::assertThrows(InvalidArgument::class, fn () => $queue->pauseSchedule($id));
            self::assertThrows(InvalidArgument::class, fn () => $queue->runSchedule($id));
        }
        self::assertSame(0, $queue->stats()->schedules);
    }

    public function testNothingCanBeChanged(): void
    {
        $schedule = new Schedule('a', '@daily');
        self::assertThrows(\Error::class, function () use ($schedule): void {
            $schedule->when = '@yearly';
        });
    }
}
