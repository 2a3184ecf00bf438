<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exponential;
use Stanchion\Handles;
use Stanchion\Queue;
use Stanchion\ResultOutcome;
use Stanchion\Router;
use Stanchion\TaskState;
use Stanchion\Testing\Clock;
use Stanchion\WorkerEvent;
use Stanchion\WorkerEventKind;

/** Tasks of a kind, and the handlers that a worker calls for them. */
final class RouterTest extends StoreCase
{
    /** What a worker with these handlers has told of each task until its queue was empty. @return array<string, list<WorkerEvent>> */
    private static function work(Queue $queue, Router $router): array
    {
        $events = [];
        $queue->work($router, untilEmpty: true, onEvent: function (WorkerEvent $event) use (&$events): void {
            $events[$event->id][] = $event;
        });
        return $events;
    }

    /** @dataProvider stores */
    public function testHandlersGetTheTasksOfTheirKinds(string $kind): void
    {
        $queue = $this->connect($kind)->queue('mails');
        $welcome = new SendWelcome();
        $forget = new Forget();
        $sent = $queue->enqueueKind('send-welcome', ['to' => 'ü@example.org', 'tags' => ['a', 'b'], 'more' => ['n' => 1.0]]);
        $queue->enqueueKind('forget', ['user' => 7], id: 'forget:7');
        $queue->enqueueKind('forget-all', id: 'all');
        $events = self::work($queue, new Router([$welcome, $forget]));
        self::assertSame([['to' => 'ü@example.org', 'tags' => ['a', 'b'], 'more' => ['n' => 1.0]]], $welcome->sent);
        self::assertSame([['forget', ['user' => 7], 'forget:7'], ['forget-all', [], 'all']], $forget->seen);
        $result = $queue->result($sent->id, $sent->version);
        self::assertSame([ResultOutcome::Done, '{"sent":"ü@example.org"}'], [$result->outcome, $result->result]);
        self::assertSame(ResultOutcome::Gone, $queue->result('all')->outcome);
        foreach ([$sent->id, 'forget:7', 'all'] as $id) {
            self::assertSame([WorkerEventKind::Completed], array_map(fn ($event) => $event->kind, $events[$id]));
        }
        self::assertSame([3, 0], [$queue->stats()->acked, count($queue)]);
    }

    public function testOptionsOfATaskOfAKind(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $due = new \DateTimeImmutable('2100-01-01T00:00:00Z');
        $queue->enqueueKind('x', ['a' => 1], 'id', due: $due, priority: 3, maxAttempts: 5, expires: 9e6, headers: ['h' => 'v'],
            timeout: 30, backoff: [1, 60], keepResult: 600);
        $task = $queue->get('id');
        self::assertSame(
            ['x', '{"a":1}', 4102444800.0, 3, 5, 30.0, [1.0, 60.0]],
            [$task->kind, $task->payload, $task->due, $task->priority, $task->maxAttempts, $task->timeout, $task->backoff]);
        self::assertEquals(['h' => 'v', 'content-type' => 'application/json'], $task->headers);
        $queue->enqueueKind('x', id: 'later', delay: 60, backoff: new Exponential(5));
        self::assertSame('{}', $queue->get('later')->payload);
        self::assertEquals(new Exponential(5.0), $queue->get('later')->backoff);
        $queue->enqueueKind('x', ['deep' => [], 7 => (object) []], 'numbered');
        self::assertSame('{"deep":[],"7":{}}', $queue->get('numbered')->payload);
    }

    public function testWhatIsNoPayloadOfAKindIsRefused(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueKind('x', ['a', 'b']),
            'enqueueKind(): argument payload must be an array with names as its keys, got a list');
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueKind('x', ['f' => fn () => 1]), 'payload');
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueKind('x', ['n' => NAN]), 'payload');
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueKind(''), 'kind');
        self::assertThrows(\TypeError::class, fn () => $queue->enqueueKind('x', 'text'));
        self::assertCount(0, $queue);
    }

    public function testWhatAHandlerReturnsIsTheResult(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $values = ['false' => false, 'zero' => 0, 'empty' => '', 'list' => [1, 2.0], 'null' => null];
        foreach (array_keys($values) as $id) {
            $queue->enqueueKind('echo', id: $id);
        }
        self::work($queue, new Router([new Answer(fn (Claim $claim) => $values[$claim->id()])]));
        foreach (['false' => 'false', 'zero' => '0', 'empty' => '""', 'list' => '[1,2.0]'] as $id => $json) {
            self::assertSame([$json, $values[$id]], [$queue->result($id)->result, $queue->result($id)->json()]);
        }
        self::assertSame(ResultOutcome::Gone, $queue->result('null')->outcome);
    }

    public function testAResultThatCannotBeOneEndsTheTask(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $values = ['closure' => fn () => 1, 'large' => str_repeat('x', 1 << 20), 'bytes' => "\xff"];
        foreach (array_keys($values) as $id) {
            $queue->enqueueKind('echo', id: $id);
        }
        $events = self::work($queue, new Router([new Answer(fn (Claim $claim) => $values[$claim->id()])]));
        foreach (array_keys($values) as $id) {
            $task = $queue->get($id);
            self::assertSame([TaskState::Dead, 1], [$task->state, $task->attempts]);
            self::assertStringStartsWith('what the handler of kind "echo" returned is no result: ', $task->reason);
            self::assertContains(WorkerEventKind::Dead, array_map(fn ($event) => $event->kind, $events[$id]));
        }
    }

    /** @dataProvider stores */
    public function testAHandlerThatThrowsHasFailedAndIsCalledAgain(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $queue->enqueueKind('echo', id: 'a', backoff: [0]);
        $attempts = [];
        $router = new Router([new Answer(function (Claim $claim) use (&$attempts): string {
            $attempts[] = $claim->attempt();
            return $claim->attempt() < 3 ? throw new \DomainException('not yet') : 'done';
        })]);
        $events = self::work($queue, $router)['a'];
        self::assertSame([1, 2, 3], $attempts);
        self::assertSame([WorkerEventKind::Failed, 'DomainException: not yet'], [$events[0]->kind, $events[0]->reason]);
        self::assertSame('done', $queue->result('a')->json());
    }

    public function testAHandlerMaySettleItself(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        foreach (['acks', 'buries', 'returns'] as $id) {
            $queue->enqueueKind('echo', id: $id);
        }
        $report = $queue->work(new Router([new Answer(function (Claim $claim): string {
            match ($claim->id()) {
                'acks' => $claim->ack('own'),
                'buries' => $claim->bury('hopeless'),
                'returns' => $claim->putBack(60),
            };
            return 'other';
        })]), untilEmpty: true, onEvent: fn () => null);
        self::assertSame('own', $queue->result('acks')->result);
        self::assertSame('hopeless', $queue->get('buries')->reason);
        self::assertSame([TaskState::Scheduled, 0], [$queue->get('returns')->state, $queue->get('returns')->attempts]);
        self::assertSame([1, 1, 0], [$report->completed, $report->dead, $report->lost]);
    }

    public function testARunThatTookTooLongGivesNoResult(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueueKind('echo', id: 'a', timeout: 0.1, maxAttempts: 1);
        $report = $queue->work(new Router([new Answer(function (Claim $claim): string {
            self::assertTrue($claim->waitLost(10));
            return 'late';
        })]), untilEmpty: true, onEvent: fn () => null);
        self::assertSame([0, 1], [$report->completed, $report->lost]);
        self::until(fn () => $queue->result('a')->reason === 'timeout', 'it has failed');
    }

    public function testACancelledRunMayStillGiveItsResult(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueueKind('echo', id: 'a');
        $queue->work(new Router([new Answer(function (Claim $claim) use ($queue): string {
            $queue->cancel('a');
            self::assertTrue($claim->waitLost(10));
            return 'all the same';
        })]), untilEmpty: true, lease: 0.5, onEvent: fn () => null);
        self::assertSame('all the same', $queue->result('a')->json());
    }

    public function testAnUnknownKindIsPutBackLongerEachTime(): void
    {
        $clock = new Clock();
        $client = Client::connect('memory:', clock: $clock);
        $queue = $client->queue('q');
        $queue->enqueueKind('newer', ['a' => 1], 'a', maxAttempts: 1);
        $delays = [];
        $worker = null;
        $tell = function (WorkerEvent $event) use ($queue, $clock, &$worker, &$delays): void {
            if ($event->kind !== WorkerEventKind::UnknownKind) {
                return;
            }
            $task = $queue->get('a');
            self::assertSame([TaskState::Scheduled, 0], [$task->state, $task->attempts]);
            preg_match('/^this worker has no handler of kind "newer"; put back for (\d+) s$/', $event->reason, $found);
            self::assertSame(['a', 1], [$event->id, $event->attempt]);
            $delays[] = (int) $found[1];
            // Not before that time.
            $clock->advance($found[1] - 0.5);
            self::assertSame(TaskState::Scheduled, $queue->get('a')->state);
            $clock->advance(0.6);
            if (count($delays) === 8) {
                $worker->stop();
            }
        };
        $worker = $queue->worker(new Router([new SendWelcome()]), onEvent: $tell);
        self::assertEquals([0, 0, 0, 0], array_values(get_object_vars($worker->run())));
        self::assertSame([1, 2, 4, 8, 16, 32, 60, 60], $delays);
        // A worker that knows the kind gets it, whole.
        $newer = new #[Handles('newer')] class {
            public function __invoke(array $payload): array
            {
                return $payload;
            }
        };
        $queue->work(new Router([$newer]), untilEmpty: true);
        self::assertSame(['a' => 1], $queue->result('a')->json());
    }

    public function testEachKindHasItsOwnPausesAndEachWorker(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $router = new Router([new SendWelcome()]);
        foreach ([['a', 'b', 'c'], ['d']] as $number => $ids) {
            foreach ($ids as $id) {
                $queue->enqueueKind($id === 'c' ? 'second' : 'first', id: $id);
            }
            $reasons = array_map(fn ($events) => $events[0]->reason, self::work($queue, $router));
            self::assertSame($number === 0 ? ['a' => 1, 'b' => 2, 'c' => 1] : ['d' => 1], array_map(
                fn (string $reason) => (int) substr((string) strstr($reason, 'for '), 4),
                array_intersect_key($reasons, array_flip($ids))));
        }
    }

    public function testUnknownKindsGoToTheErrorLogNowAndThen(): void
    {
        $log = tempnam(sys_get_temp_dir(), 'log');
        $before = ini_set('error_log', $log);
        try {
            $queue = $this->connect('memory:')->queue('q');
            for ($i = 1; $i <= 9; $i++) {
                $queue->enqueueKind('newer', id: "t$i");
            }
            $queue->work(new Router([new SendWelcome()]), untilEmpty: true);
            preg_match_all('/stanchion: queue "q": task "t(\d)": this worker has no handler of kind "newer"/', file_get_contents($log), $found);
            self::assertSame(['1', '2', '4', '8'], $found[1]);
        } finally {
            ini_set('error_log', $before);
            unlink($log);
        }
    }

    public function testTasksWithoutAKind(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('plain', 'text');
        $events = self::work($queue, new Router([new SendWelcome()]));
        self::assertSame([WorkerEventKind::UnknownKind, 'the task has no kind; put back for 1 s'],
            [$events['plain'][0]->kind, $events['plain'][0]->reason]);
        $queue->reschedule('plain', 0);
        $queue->enqueueKind('send-welcome', ['to' => 'x']);
        $seen = [];
        self::work($queue, new Router([new SendWelcome()], otherwise: function (Claim $claim) use (&$seen): string {
            $seen[] = $claim->payload();
            return 'is no result';
        }));
        self::assertSame([['text'], ResultOutcome::Gone], [$seen, $queue->result('plain')->outcome]);
        self::assertCount(0, $queue);
    }

    /** @return array<string, array{string, string}> */
    public static function noObjects(): array
    {
        return [
            'no JSON' => ['to: me', 'no JSON: Syntax error'], 'nothing' => ['', 'no JSON: Syntax error'],
            'a list' => [' [1]', 'no JSON object: it is a list'], 'an empty list' => ['[]', 'no JSON object: it is a list'],
            'text' => ['"{}"', 'no JSON object: it is string'], 'a number' => ['7', 'no JSON object: it is int'],
            'null' => ['null', 'no JSON object: it is null'], 'bytes' => ["{\"a\":\"\xff\"}", 'no JSON: Malformed UTF-8'],
        ];
    }

    /** @dataProvider noObjects */
    public function testAPayloadThatIsNoObjectEndsTheTask(string $payload, string $what): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a', $payload, kind: 'send-welcome');
        $welcome = new SendWelcome();
        $events = self::work($queue, new Router([$welcome]))['a'];
        $task = $queue->get('a');
        self::assertSame([TaskState::Dead, 1, []], [$task->state, $task->attempts, $welcome->sent]);
        self::assertStringStartsWith("the payload of kind \"send-welcome\" is $what", $task->reason);
        self::assertContains([WorkerEventKind::Dead, $task->reason], array_map(fn ($one) => [$one->kind, $one->reason], $events));
    }

    public function testTheObjectMayBeginWithSpaces(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a', "\n\t {\"to\": \"x\"}\n", kind: 'send-welcome');
        $welcome = new SendWelcome();
        self::work($queue, new Router([$welcome]));
        self::assertSame([['to' => 'x']], $welcome->sent);
    }

    public function testAStoreThatDoesNotAnswerForAWhileCostsNoAttempt(): void
    {
        $url = $this->url('redis:');
        $queue = Client::connect($url, timeout: 0.3)->queue('q');
        $queue->enqueueKind('echo', id: 'a');
        $calls = 0;
        $report = $queue->work(new Router([new Answer(function () use ($url, &$calls): string {
            $calls++;
            $server = stream_socket_client('tcp://' . parse_url($url, PHP_URL_HOST) . ':' . parse_url($url, PHP_URL_PORT));
            fwrite($server, "CLIENT PAUSE 1500\r\n");
            self::assertSame("+OK\r\n", fgets($server));
            return 'done';
        })]), untilEmpty: true, onEvent: fn () => null);
        self::assertSame([1, 1, 0, 0], [$calls, $report->completed, $report->failed, $report->lost]);
        self::assertSame('done', $queue->result('a', wait: 5)->json());
    }

    public function testAKindThatIsANumber(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $handler = new #[Handles('0')] #[Handles('42')] class {
            public function __invoke(array $payload, Claim $claim): ?string
            {
                return $claim->kind();
            }
        };
        $router = new Router([$handler, new SendWelcome()]);
        self::assertSame(['0', '42', 'send-welcome'], $router->kinds());
        $queue->enqueueKind('0', id: 'a');
        $queue->enqueueKind('42', id: 'b');
        self::work($queue, $router);
        self::assertSame(['0', '42'], [$queue->result('a')->json(), $queue->result('b')->json()]);
    }

    public function testHandlersOfAContainer(): void
    {
        $found = (function (): \Generator {
            yield new SendWelcome();
            yield new Forget();
        })();
        self::assertSame(['send-welcome', 'forget', 'forget-all'], (new Router($found))->kinds());
        // As a container's proxy, or a test's double, extends it.
        $proxy = new class extends Answer {
        };
        self::assertSame(['echo'], (new Router([$proxy]))->kinds());
    }

    public function testRoutersThatMakeNoSense(): void
    {
        $bad = [
            'got none' => [],
            'objects with #[Handles]' => ['send-welcome'],
            'has no attribute #[Handles' => [new \ArrayObject()],
            'the kind "forget" is handled by ' => [new Forget(), new Forget()],
            'needs a public method __invoke' => [new #[Handles('x')] class {
            }],
            'takes more than the payload and the claim' => [new #[Handles('x')] class {
                public function __invoke(array $payload, Claim $claim, int $more): void
                {
                }
            }],
            'is a generator' => [new #[Handles('x')] class {
                public function __invoke(): \Generator
                {
                    yield 1;
                }
            }],
            'is not 1 to 128 bytes' => [new #[Handles("a\nb")] class {
                public function __invoke(): void
                {
                }
            }],
        ];
        foreach ($bad as $message => $handlers) {
            $thrown = self::assertThrows(InvalidArgument::class, fn () => new Router($handlers), $message);
            self::assertStringStartsWith('new Router(): ', $thrown->getMessage());
        }
    }

    public function testAGeneratorThatIsReturnedIsRefused(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueueKind('echo', id: 'a', maxAttempts: 1);
        self::work($queue, new Router([new Answer(fn () => (fn () => yield 1)())]));
        self::assertStringContainsString('generator', $queue->get('a')->reason);
    }
}

#[Handles('send-welcome')]
final class SendWelcome
{
    /** @var list<array<mixed>> */
    public array $sent = [];

    public function __invoke(array $payload, Claim $claim): mixed
    {
        $this->sent[] = $payload;
        return ['sent' => $payload['to']];
    }
}

#[Handles('forget'), Handles('forget-all')]
final class Forget
{
    /** @var list<array{string, array<mixed>, string}> */
    public array $seen = [];

    public function __invoke(array $payload, Claim $claim): void
    {
        $this->seen[] = [$claim->kind(), $payload, $claim->id()];
    }
}

/** Returns what a function returns. */
#[Handles('echo')]
class Answer
{
    public function __construct(private readonly ?\Closure $answer = null)
    {
    }

    public function __invoke(array $payload, Claim $claim): mixed
    {
        return ($this->answer)($claim);
    }
}
