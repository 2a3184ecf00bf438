<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\Unsupported;
use Stanchion\Happened;
use Stanchion\Queue;
use Stanchion\TaskEvent;

/** What happens to the tasks of a queue. */
final class EventsTest extends StoreCase
{
    private function watched(string $kind, int $events = 100): Queue
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->configure(events: $events);
        return $queue;
    }

    /** @return list<TaskEvent> */
    private static function kept(Queue $queue, int $after = 0): array
    {
        return iterator_to_array($queue->events($after, wait: 0), false);
    }

    /** @dataProvider stores */
    public function testWhatHappensIsToldInItsOrder(string $kind): void
    {
        $queue = $this->watched($kind);
        $version = $queue->enqueue('a')->version;
        $queue->claim()[0]->nack(0, 'no luck');
        [$claim] = $queue->claim(wait: 5);
        $claim->progress('half');
        $claim->putBack();
        $queue->claim(wait: 5)[0]->ack();
        $queue->enqueue('b');
        $queue->claim()[0]->bury('');
        $queue->enqueue('c');
        $queue->cancel('c');
        $queue->enqueue('d');
        $queue->remove('d');

        $events = self::kept($queue);
        self::assertSame([
            ['a', 'added', 0, null], ['a', 'started', 1, null], ['a', 'failed', 1, 'no luck'], ['a', 'started', 2, null],
            ['a', 'progress', 2, null], ['a', 'put_back', 2, null], ['a', 'started', 2, null], ['a', 'done', 2, null],
            ['b', 'added', 0, null], ['b', 'started', 1, null], ['b', 'dead', 1, ''],
            ['c', 'added', 0, null], ['c', 'cancelled', 0, null], ['d', 'added', 0, null], ['d', 'removed', 0, null],
        ], array_map(fn (TaskEvent $one) => [$one->id, $one->what->value, $one->attempt, $one->reason], $events));
        self::assertSame($version, $events[0]->version);
        self::assertEqualsWithDelta(microtime(true), $events[0]->at, 3600);
        foreach ($events as $index => $event) {
            self::assertSame([$events[0]->number + $index, false], [$event->number, $event->missed]);
        }
        self::assertSame([Happened::Removed], array_map(fn ($one) => $one->what, self::kept($queue, $events[13]->number)));
        self::assertSame([], self::kept($queue, $events[14]->number));
    }

    /** @dataProvider stores */
    public function testMoreThanAPageIsTold(string $kind): void
    {
        $queue = $this->watched($kind, 2_000);
        $queue->enqueueMany(array_map(fn (int $number) => "task-$number", range(1, 1_203)));
        $events = self::kept($queue);
        self::assertCount(1_203, $events);
        self::assertSame(['task-1', 'task-1203'], [$events[0]->id, $events[1_202]->id]);
        self::assertSame(range(0, 1_202), array_keys(iterator_to_array($queue->events(0, wait: 0))));
    }

    /** @dataProvider stores */
    public function testWithoutANumberItBeginsWhenTheLoopDoes(string $kind): void
    {
        $queue = $this->watched($kind);
        $queue->enqueue('before');
        $events = $queue->events(wait: 0.01);
        $queue->enqueue('also before');
        self::assertSame([], iterator_to_array($events));
    }

    /** @dataProvider stores */
    public function testItGoesOnAfterWhatItHasTold(string $kind): void
    {
        $queue = $this->watched($kind);
        $queue->enqueue('a');
        $events = $queue->events(after: 0);
        self::assertSame('a', $events->current()->id);
        $queue->enqueue('b');
        $events->next();
        self::assertSame('b', $events->current()->id);
    }

    /** @dataProvider stores */
    public function testWhatWasMissedIsTold(string $kind): void
    {
        $queue = $this->watched($kind, 1);
        $queue->enqueue('a');
        [$first] = self::kept($queue);
        self::assertFalse($first->missed);
        $queue->configure(events: 0);
        $queue->configure(events: 10);
        $queue->enqueueMany(['b', 'c']);
        $events = self::kept($queue, $first->number);
        self::assertSame([['b', true], ['c', false]], array_map(fn ($one) => [$one->id, $one->missed], $events));
    }

    /** @dataProvider stores */
    public function testAQueueKeepsNoneUnlessTold(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('a');
        self::assertSame(0, $queue->stats()->events);
        foreach ([0, null] as $after) {
            $events = $queue->events($after);
            $thrown = self::assertThrows(Unsupported::class, fn () => $events->current(), 'keeps no events');
            self::assertSame(['events', 'q'], [$thrown->operation(), $thrown->name()]);
        }
        $queue->configure(events: 7);
        $queue->configure(deadMax: 5);
        self::assertSame(7, $queue->stats()->events);
    }

    /** @dataProvider sharedStores */
    public function testAnotherProcessIsWatchedUntilASignal(string $kind): void
    {
        $url = $this->url($kind);
        $queue = Client::connect($url)->queue('q');
        $queue->configure(events: 10);
        $queue->enqueue('a');
        $program = new Program('watcher', $url);
        $program->expect('added a');
        $queue->enqueue('b');
        $program->expect('added b');
        $claims = $queue->claim(max: 2);
        $program->expect('started a');
        $program->expect('started b');
        $program->signal(SIGTERM);
        self::assertSame('told to end', $program->line());
        self::assertSame(0, $program->wait());
        self::assertSame([null, null], $queue->settle([$claims[0]->acked(), $claims[1]->acked()]));
    }

    public function testWhatIsRefusedIsRefusedAtOnce(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        foreach ([[-1], [0, -1], [0, NAN], [0, 'soon'], [null, 31_536_000.001], [null, INF]] as $arguments) {
            $thrown = self::assertThrows(InvalidArgument::class, fn () => $queue->events(...$arguments));
            self::assertStringContainsString(count($arguments) === 1 ? 'after' : 'wait', $thrown->getMessage());
        }
        foreach ([-1, 100_001] as $events) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->configure(events: $events), 'events');
        }
        self::assertSame(0, $queue->stats()->events);
    }
}
