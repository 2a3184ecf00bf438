<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Cancelled;
use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exponential;
use Stanchion\Loss;
use Stanchion\ResultOutcome;
use Stanchion\TaskState;
use Stanchion\Testing\Clock;

/** Kinds, timeouts, pauses, progress, cancel and results. */
final class RunningTest extends StoreCase
{
    /** @dataProvider stores */
    public function testATaskKeepsItsOptions(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('a', kind: 'mail', timeout: 1.5, backoff: [0.5, 5], keepResult: 60);
        $queue->enqueueMany([['id' => 'b', 'backoff' => new Exponential(2, 3, 60, 0.25)], 'c']);
        $a = $queue->get('a');
        self::assertSame(['mail', 1.5, [0.5, 5.0]], [$a->kind, $a->timeout, $a->backoff]);
        self::assertEquals(new Exponential(2, 3, 60, 0.25), $queue->get('b')->backoff);
        $c = $queue->get('c');
        self::assertSame([null, null, null], [$c->kind, $c->timeout, $c->backoff]);
        self::assertSame([[], '', false], [$c->failures, $c->progress, $c->cancelled]);
        $claims = $queue->claim(max: 3);
        self::assertSame(['mail', null, null], array_map(fn (Claim $claim) => $claim->kind(), $claims));
    }

    public function testAKindMayLookEmptyToPhp(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a', kind: '0');
        self::assertSame('0', $queue->get('a')->kind);
        self::assertSame('0', $queue->claim()[0]->kind());
    }

    /** @dataProvider stores */
    public function testAResultIsKept(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $version = $queue->enqueue('a')->version;
        $queue->enqueueMany(['b', 'c', ['id' => 'd', 'maxAttempts' => 1]]);
        self::assertSame(ResultOutcome::Pending, $queue->result('a')->outcome);
        [$a, $b, $c, $d] = $queue->claim(max: 4);
        $a->ack("\0\xff");
        self::assertSame([null, null], $queue->settle([$b->acked('{"rows":3}'), $c->acked()]));
        $d->nack(reason: 'no');
        $result = $queue->result('a', $version, wait: 1);
        self::assertSame(ResultOutcome::Done, $result->outcome);
        self::assertSame(["\0\xff", $version, null], [$result->result, $result->version, $result->reason]);
        self::assertSame(['rows' => 3], $queue->result('b')->json());
        $gone = $queue->result('c');
        self::assertSame([ResultOutcome::Gone, null, null], [$gone->outcome, $gone->result, $gone->json()]);
        $dead = $queue->result('d');
        self::assertSame([ResultOutcome::Dead, null, 'no'], [$dead->outcome, $dead->result, $dead->reason]);
        self::assertSame(ResultOutcome::Gone, $queue->result('never')->outcome);
    }

    /** @dataProvider stores */
    public function testAnEmptyResultIsOne(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany(['a', 'b']);
        [$a, $b] = $queue->claim(max: 2);
        $a->ack('');
        $queue->settle([$b->acked('')]);
        foreach (['a', 'b'] as $id) {
            self::assertSame([ResultOutcome::Done, ''], [$queue->result($id)->outcome, $queue->result($id)->result]);
        }
    }

    /** @dataProvider stores */
    public function testProgressAndFailuresAreShown(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('a');
        $queue->claim()[0]->nack(0, 'once');
        $claim = $queue->claim(wait: 5)[0];
        $claim->progress("half\0");
        $task = $queue->get('a');
        self::assertSame("half\0", $task->progress);
        self::assertSame(['once'], array_map(fn ($failure) => $failure->reason, $task->failures));
        self::assertGreaterThan(0, $task->failures[0]->at);
        $claim->ack();
        self::assertThrows(LeaseLost::class, fn () => $claim->progress('late'));
    }

    /** @dataProvider stores */
    public function testCancel(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('waits');
        self::assertSame(Cancelled::Removed, $queue->cancel('waits'));
        self::assertSame(Cancelled::Absent, $queue->cancel('waits'));
        $queue->enqueue('runs');
        [$claim] = $queue->claim(lease: 3, renew: true);
        self::assertSame(Cancelled::Running, $queue->cancel('runs'));
        self::assertTrue($queue->get('runs')->cancelled);
        self::assertTrue($claim->waitLost(5));
        self::assertSame(Loss::Cancelled, $claim->loss());
        $claim->ack('still');
        self::assertSame('still', $queue->result('runs')->result);
        self::assertNull($queue->get('runs'));
    }

    public function testATimeoutEndsARun(): void
    {
        $clock = new Clock();
        $queue = Client::connect('memory:', clock: $clock)->queue('q');
        $queue->enqueue('own', timeout: 2, maxAttempts: 1);
        $queue->enqueue('given', maxAttempts: 1);
        [$own, $given] = $queue->claim(max: 2, timeout: 20);
        $clock->advance(3);
        self::assertTrue($own->waitLost(5));
        self::assertSame(Loss::TimedOut, $own->loss());
        self::assertTrue($given->isValid());
        $clock->advance(20);
        self::assertTrue($given->waitLost(5));
        self::assertSame(Loss::TimedOut, $given->loss());
        // The store is told in the background.
        foreach (['own', 'given'] as $id) {
            self::until(fn () => $queue->get($id)->state === TaskState::Dead, "$id is dead");
            self::assertSame('timeout', $queue->get($id)->reason);
        }
    }

    /** @dataProvider stores */
    public function testAWorkersTimeout(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('slow', maxAttempts: 1);
        $losses = [];
        $queue->work(function (Claim $task) use (&$losses): void {
            $task->waitLost(5);
            $losses[] = $task->loss();
        }, untilEmpty: true, timeout: 0.3, onEvent: fn () => null);
        self::assertSame([Loss::TimedOut], $losses);
        self::until(fn () => $queue->get('slow')->state === TaskState::Dead, 'it is dead');
        self::assertSame('timeout', $queue->get('slow')->reason);
    }

    public function testPausesAreThoseOfTheBackoff(): void
    {
        $clock = new Clock();
        $queue = Client::connect('memory:', clock: $clock)->queue('q');
        $queue->enqueue('a', backoff: [7]);
        $queue->claim()[0]->nack();
        $clock->advance(6.9);
        self::assertSame([], $queue->claim());
        $clock->advance(0.2);
        self::assertCount(1, $claims = $queue->claim());
        $claims[0]->ack();
    }

    /** @return array<string, array{array<string, mixed>}> */
    public static function refused(): array
    {
        return [
            'kind' => [['kind' => '']], 'timeout' => [['timeout' => 0]], 'no number' => [['timeout' => 'x']],
            'no pauses' => [['backoff' => []]], 'a text' => [['backoff' => ['x']]], 'null' => [['backoff' => [null]]],
            'base' => [['backoff' => new Exponential(0)]], 'jitter' => [['backoff' => new Exponential(1, jitter: 2)]],
            'factor' => [['backoff' => new Exponential(1, NAN)]], 'keepResult' => [['keepResult' => 0]],
        ];
    }

    /**
     * @dataProvider refused
     * @param array<string, mixed> $options
     */
    public function testWhatIsRefused(array $options): void
    {
        $queue = $this->connect('memory:')->queue('q');
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('a', ...$options));
        self::assertCount(0, $queue);
    }

    public function testWhatIsTooLargeIsRefused(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a');
        [$claim] = $queue->claim();
        self::assertThrows(InvalidArgument::class, fn () => $claim->progress(str_repeat('x', 4097)));
        self::assertThrows(InvalidArgument::class, fn () => $claim->ack(str_repeat('x', (1 << 20) + 1)));
        self::assertThrows(InvalidArgument::class, fn () => $queue->result('a', -1));
        $claim->ack(str_repeat('x', 1 << 20));
        self::assertSame(1 << 20, strlen($queue->result('a')->result));
    }
}
