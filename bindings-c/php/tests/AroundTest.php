<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Handles;
use Stanchion\Loss;
use Stanchion\Queue;
use Stanchion\ResultOutcome;
use Stanchion\Router;
use Stanchion\TaskState;
use Stanchion\WorkerReport;

/** What stands around the handlers of a worker. */
final class AroundTest extends StoreCase
{
    private static function work(Queue $queue, callable|Router $handler, mixed $around, mixed ...$options): WorkerReport
    {
        return $queue->work($handler, ...$options, untilEmpty: true, onEvent: fn () => null, around: $around);
    }

    /** One that notes when it begins, and what it has got. @param list<string> $notes */
    private static function noting(array &$notes, string $name, ?\Closure $change = null): \Closure
    {
        return function (Claim $claim, callable $next) use (&$notes, $name, $change): mixed {
            $notes[] = "$name begins {$claim->id()}";
            $got = $next();
            $notes[] = "$name got " . json_encode($got);
            return $change === null ? $got : $change($got);
        };
    }

    /** @dataProvider stores */
    public function testTheFirstIsOutermost(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('a');
        $notes = [];
        $around = (function () use (&$notes): \Generator {
            foreach (['outer', 'middle', 'inner'] as $name) {
                yield self::noting($notes, $name, fn (int $got) => $got + 1);
            }
        })();
        $report = self::work($queue, function () use (&$notes): int {
            $notes[] = 'handler';
            return 1;
        }, $around);
        self::assertSame([1, 0], [$report->completed, $report->failed]);
        self::assertSame([
            'outer begins a', 'middle begins a', 'inner begins a', 'handler', 'inner got 1', 'middle got 2', 'outer got 3',
        ], $notes);
    }

    public function testItIsOneFunctionOrSomeOrNone(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $object = new class {
            /** @var list<string> */
            public array $notes = [];

            public function measure(Claim $claim, callable $next): mixed
            {
                $this->notes[] = $claim->id();
                return $next();
            }
        };
        $handled = 0;
        $handler = function () use (&$handled): void {
            $handled++;
        };
        // A pair of an object and a method is one function, not a list of two.
        $measure = [$object, 'measure'];
        foreach ([$measure, [$measure, $measure], $object->measure(...), [], null] as $number => $around) {
            $queue->enqueue("t$number");
            self::assertSame(1, self::work($queue, $handler, $around)->completed);
        }
        self::assertSame([['t0', 't1', 't1', 't2'], 5], [$object->notes, $handled]);
    }

    /** @dataProvider stores */
    public function testWhatItReturnsIsTheResultOfAHandlerOfAKind(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueKind('double', ['n' => 21], 'a');
        $queue->enqueueKind('double', ['n' => null], 'none');
        $notes = [];
        $around = self::noting($notes, 'it', fn (?int $got) => $got === null ? null : ['is' => $got]);
        self::work($queue, new Router([new Double()]), $around);
        self::assertSame(['it begins a', 'it got 42', 'it begins none', 'it got null'], $notes);
        self::assertSame(['is' => 42], $queue->result('a')->json());
        self::assertSame(ResultOutcome::Gone, $queue->result('none')->outcome);
        // What can be none ends the task, as if the handler had returned it.
        $queue->enqueueKind('double', ['n' => 1], 'bad');
        self::work($queue, new Router([new Double()]), fn () => NAN);
        self::assertStringStartsWith('what the handler of kind "double" returned is no result: ', $queue->get('bad')->reason);
    }

    public function testItStandsAroundHandlersAndNothingElse(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('plain');
        $queue->enqueueKind('newer', id: 'newer');
        $queue->enqueue('misfit', '[]', kind: 'double');
        $queue->enqueueKind('double', ['n' => 1], 'good');
        $notes = [];
        $router = new Router([new Double()], otherwise: fn () => 'plain');
        self::work($queue, $router, self::noting($notes, 'it'));
        self::assertSame(['it begins plain', 'it got "plain"', 'it begins good', 'it got 2'], $notes);
        self::assertSame([TaskState::Scheduled, TaskState::Dead], [$queue->get('newer')->state, $queue->get('misfit')->state]);
    }

    /** @dataProvider stores */
    public function testWhatItThrowsFailsTheTask(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueMany([['id' => 'early', 'maxAttempts' => 1], ['id' => 'late', 'maxAttempts' => 1]]);
        $queue->enqueueKind('double', ['n' => 1], 'kind', maxAttempts: 1);
        $handled = [];
        $around = function (Claim $claim, callable $next): never {
            if ($claim->id() === 'early') {
                throw new \RangeException('no tenant');
            }
            $next();
            throw new \DomainException('no commit');
        };
        $router = new Router([new Double()], otherwise: function (Claim $claim) use (&$handled): void {
            $handled[] = $claim->id();
        });
        self::assertSame(3, self::work($queue, $router, $around)->dead);
        self::assertSame(['late'], $handled);
        self::assertSame('RangeException: no tenant', $queue->get('early')->reason);
        self::assertSame('DomainException: no commit', $queue->get('late')->reason);
        self::assertSame('DomainException: no commit', $queue->get('kind')->reason);
    }

    /** @dataProvider stores */
    public function testWhatTheHandlerThrowsGoesThroughIt(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $notes = [];
        $rolledBack = function (Claim $claim, callable $next) use (&$notes): mixed {
            try {
                return $next();
            } catch (\DomainException $error) {
                $notes[] = "rolled back: {$error->getMessage()}";
                throw $error;
            }
        };
        $quietly = function (Claim $claim, callable $next): mixed {
            try {
                return $next();
            } catch (\DomainException) {
                return null;
            }
        };
        $handler = fn (Claim $claim) => throw new \DomainException($claim->id());
        $queue->enqueue('a', maxAttempts: 1);
        self::assertSame(1, self::work($queue, $handler, $rolledBack)->dead);
        self::assertSame('DomainException: a', $queue->get('a')->reason);
        $queue->enqueue('b', maxAttempts: 1);
        self::assertSame(1, self::work($queue, $handler, [$quietly, $rolledBack])->completed);
        self::assertSame(['rolled back: a', 'rolled back: b'], $notes);
    }

    /** @dataProvider stores */
    public function testWithoutACallOfNextTheTaskIsDoneWithoutItsHandler(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('a');
        $queue->enqueueKind('double', ['n' => 'no number'], 'b');
        $never = fn () => throw new \LogicException('it was not to be called');
        $report = self::work($queue, new Router([new Double()], otherwise: $never), fn () => 'known already');
        self::assertSame([2, 0], [$report->completed, $report->failed]);
        self::assertSame('known already', $queue->result('b')->json());
        $queue->enqueue('c');
        self::assertSame(1, self::work($queue, $never, fn (Claim $claim) => $claim->bury('not wanted'))->dead);
        self::assertSame('not wanted', $queue->get('c')->reason);
    }

    public function testAGeneratorFailsItsTaskAlsoIfNobodyLooksAtIt(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $looksAway = function (Claim $claim, callable $next): void {
            $next();
        };
        $cases = ['handler' => [fn () => yield 1, $looksAway], 'around' => [fn () => null, fn () => yield 1]];
        foreach ($cases as $id => [$handler, $around]) {
            $queue->enqueue($id, maxAttempts: 1);
            self::assertSame(1, self::work($queue, $handler, $around)->dead);
            self::assertStringContainsString('generator', $queue->get($id)->reason);
        }
    }

    public function testWhatIsNoFunctionIsRefusedBeforeAnythingIsClaimed(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a');
        foreach (['5' => [5], 'string "no_such"' => ['no_such'], 'null' => [fn () => 1, null]] as $got => $around) {
            $message = "work(): argument around must be a function, or a list of functions, got $got";
            self::assertThrows(InvalidArgument::class, fn () => $queue->work(fn () => null, around: $around), $message);
            $message = 'worker(): argument around must be';
            self::assertThrows(InvalidArgument::class, fn () => $queue->worker(fn () => null, around: $around), $message);
        }
        self::assertThrows(\TypeError::class, fn () => $queue->work(fn () => null, around: 5));
        self::assertSame(0, $queue->get('a')->attempts);
    }

    /** @dataProvider stores */
    public function testTheLossOfAClaimIsSeenInsideOfIt(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueue('a', timeout: 0.2, maxAttempts: 1);
        $seen = [];
        $around = function (Claim $claim, callable $next) use (&$seen): mixed {
            try {
                return $next();
            } finally {
                $seen[] = $claim->loss();
            }
        };
        self::work($queue, function (Claim $claim): void {
            self::assertTrue($claim->waitLost(30));
            throw new \DomainException('given up');
        }, $around);
        self::assertSame([Loss::TimedOut], $seen);
        self::until(fn () => $queue->get('a')->reason === 'timeout', 'it has failed');
    }

    public function testItsOwnTimeCounts(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a', maxAttempts: 1);
        $seen = [];
        self::work($queue, function (Claim $claim) use (&$seen): void {
            $seen[] = $claim->loss();
        }, function (Claim $claim, callable $next): mixed {
            self::assertTrue($claim->waitLost(30));
            return $next();
        }, timeout: 0.2);
        self::assertSame([Loss::TimedOut], $seen);
        self::until(fn () => $queue->get('a')->reason === 'timeout', 'it has failed');
    }
}

#[Handles('double')]
final class Double
{
    /** @param array<mixed> $payload */
    public function __invoke(array $payload): ?int
    {
        return $payload['n'] === null ? null : 2 * $payload['n'];
    }
}
