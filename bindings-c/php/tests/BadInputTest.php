<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\Compat\HashLock;
use Stanchion\Compat\RedisLock;
use Stanchion\Compat\RedisQueue;
use Stanchion\Compat\ScriptLock;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\StanchionException;
use Stanchion\Exception\StoreUnavailable;
use Stanchion\Lease;
use Stanchion\OnDuplicate;
use Stanchion\TaskState;
use Stanchion\Testing\Clock;

/** Bad arguments are refused before anything is sent, and nothing else suffers. */
final class BadInputTest extends StoreCase
{
    private const SPANS = [-1, -0.001, NAN, INF, -INF, 2 ** 64, PHP_INT_MAX, '10', true, [], '', 1e300];

    public function testTimes(): void
    {
        $client = $this->connect('memory:');
        $lock = $client->lock('a');
        $queue = $client->queue('q');
        $lease = $lock->acquire();
        $queue->enqueue('kept');
        [$claim] = $queue->claim();
        $calls = [
            fn ($time) => $client->lock('b', ttl: $time)->acquire(),
            fn ($time) => $lock->acquire(wait: $time),
            fn ($time) => $client->lock('b')->acquire(maxHold: $time),
            fn ($time) => $client->lock('b')->tryAcquire(ttl: $time),
            fn ($time) => $client->lock('b')->acquire(adoptUnexpiring: $time),
            fn ($time) => $lease->extend($time),
            fn ($time) => $lease->release($time),
            fn ($time) => $lease->detach($time),
            fn ($time) => $claim->extend($time),
            fn ($time) => $claim->nack($time),
            fn ($time) => $queue->enqueue('t', delay: $time),
            fn ($time) => $queue->enqueue('t', due: $time),
            fn ($time) => $queue->enqueue('t', expires: $time),
            fn ($time) => $queue->claim(lease: $time),
            fn ($time) => $queue->claim(wait: $time),
            fn ($time) => $queue->enqueue('t', onDuplicate: OnDuplicate::debounce($time)),
            fn ($time) => $queue->enqueue('t', onDuplicate: OnDuplicate::throttle($time)),
            fn ($time) => $queue->work(fn () => null, lease: $time),
            fn ($time) => $queue->configure(deadAge: $time),
            fn ($time) => Client::connect('memory:', timeout: $time),
        ];
        foreach ($calls as $index => $call) {
            foreach (self::SPANS as $time) {
                $shown = "call $index with " . var_export($time, true);
                try {
                    $call($time);
                    self::fail("$shown: nothing thrown");
                } catch (InvalidArgument $error) {
                    self::assertInstanceOf(\InvalidArgumentException::class, $error, $shown);
                }
            }
        }
        self::assertThrows(InvalidArgument::class, fn () => $client->lock('b', ttl: 0)->acquire());
        self::assertThrows(InvalidArgument::class, fn () => $client->lock('b', ttl: 0.01)->acquire());
        self::assertTrue($lease->isValid() && $claim->isValid());
        self::assertSame(['a'], $client->locks()->names);
        self::assertSame(1, $queue->count());
    }

    public function testNumbers(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        foreach ([-1, 256, 1 << 40, PHP_INT_MIN, PHP_INT_MAX] as $number) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', priority: $number));
        }
        foreach ([0, -1, PHP_INT_MAX] as $number) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', maxAttempts: $number));
            self::assertThrows(InvalidArgument::class, fn () => $queue->claim($number));
            self::assertThrows(InvalidArgument::class, fn () => $queue->pop($number));
            self::assertThrows(InvalidArgument::class, fn () => $queue->peek($number));
            self::assertThrows(InvalidArgument::class, fn () => $queue->list(TaskState::Ready, max: $number));
        }
        foreach ([0, -1, PHP_INT_MIN] as $number) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->kick($number));
            self::assertThrows(InvalidArgument::class, fn () => $queue->removeDead(count: $number, reason: 'x'));
        }
        self::assertSame(0, $queue->kick(PHP_INT_MAX));
        self::assertThrows(InvalidArgument::class, fn () => $queue->configure(maxLen: -1));
        self::assertThrows(InvalidArgument::class, fn () => $queue->remove('t', -1));
        self::assertThrows(InvalidArgument::class, fn () => $queue->list(TaskState::Other));
        self::assertThrows(InvalidArgument::class, fn () => $queue->list(TaskState::Ready, 'none of ours'));
        self::assertThrows(\TypeError::class, fn () => $queue->claim('10'));
        self::assertSame(0, $queue->count());
    }

    public function testDeadTasksAreNamedAndNotTwice(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        $queue->enqueue('a');
        $queue->claim()[0]->bury('x');
        foreach (['kick' => $queue->kick(...), 'removeDead' => $queue->removeDead(...)] as $name => $call) {
            foreach ([[], ['olderThan' => 0], ['reason' => '', 'prefix' => '']] as $nothing) {
                self::assertThrows(InvalidArgument::class, fn () => $call(...$nothing),
                    "$name(): give ids, receipts, a count, a reason, a prefix or olderThan");
            }
            foreach ([['a', 1], ['ids' => [], 'receipts' => []], ['count' => 1, 'receipts' => [1]], [1, 1]] as $two) {
                self::assertThrows(InvalidArgument::class, fn () => $call(...$two), 'give one of the arguments ids, receipts and count');
            }
            self::assertThrows(InvalidArgument::class, fn () => $call(olderThan: -1));
            // An empty list names none, whatever the filters say.
            self::assertSame(0, $call([], reason: 'x'));
            self::assertSame(0, $call(receipts: [], prefix: 'a'));
        }
        self::assertSame(1, $queue->stats()->dead);
    }

    /** @dataProvider stores */
    public function testNames(string $kind): void
    {
        $client = $this->connect($kind);
        foreach (['', "a\xff", "\xed\xa0\x80", "a\0b", "a\nb", str_repeat('x', 65536)] as $name) {
            self::assertThrows(InvalidArgument::class, fn () => $client->queue('q')->enqueue($name));
            self::assertThrows(InvalidArgument::class, fn () => $client->queue('q')->get($name));
        }
        foreach (['', "a\xff", "\xed\xa0\x80", "a\0b", "a\nb", '{', '}', '{}', 'a}{b', str_repeat('x', 65536)] as $name) {
            self::assertThrows(InvalidArgument::class, fn () => $client->lock($name)->acquire());
            self::assertThrows(InvalidArgument::class, fn () => $client->lock($name)->holder());
            self::assertThrows(InvalidArgument::class, fn () => $client->queue($name)->enqueue());
            self::assertThrows(InvalidArgument::class, fn () => $client->queues([$name])->claim());
        }
        $odd = ['a{b}', '{b}', 'a', 'b', 'x:meta', 'ä ö', 'meta', 'x'];
        $leases = array_map(fn (string $name) => $client->lock($name)->tryAcquire(), $odd);
        self::assertNotContains(null, $leases);
        foreach ($odd as $name) {
            $client->queue($name)->enqueue($name, $name);
        }
        foreach ($odd as $name) {
            self::assertSame($name, $client->queue($name)->pop(5)[0]->payload);
        }
    }

    /** @dataProvider stores */
    public function testPayloads(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', str_repeat('x', (16 << 20) + 1)), 'at most');
        foreach ([NAN, "\xff" => ["\xff"], [fopen('php://memory', 'r')]] as $payload) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', $payload), 'JSON');
        }
        foreach ([['a' => 5], ['a' => "\xff"], ["\xff" => 'a'], ['a' => null]] as $headers) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', headers: $headers));
        }
        self::assertSame(0, $queue->count());
    }

    /** @dataProvider stores */
    public function testTheLargestPayloads(string $kind): void
    {
        $queue = $this->connect($kind)->queue('q');
        $most = 16 << 20;
        $refused = 'argument payload must be at most 16777216 bytes long, got string of 16777217 bytes';
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('t', str_repeat('x', $most + 1)), $refused);
        // Headers count as JSON.
        $rest = $most - strlen('{"h":"v"}');
        foreach ([$most => [], $rest => ['h' => 'v']] as $length => $headers) {
            $queue->enqueue('big', $big = str_repeat('x', $length), headers: $headers);
            self::assertTrue($queue->pop()[0]->payload === $big);
            $more = fn () => $queue->enqueue('big', "y$big", headers: $headers);
            self::assertThrows(InvalidArgument::class, $more, 'bytes');
        }
        // JSON has a header that says so.
        $rest = $most - strlen('{"content-type":"application/json"}') - strlen('[""]');
        $queue->enqueue('json', [str_repeat('x', $rest)]);
        self::assertSame($rest, strlen($queue->pop()[0]->json()[0]));
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueue('json', [str_repeat('x', $rest + 1)]));
    }

    public function testThingsThatAreNoTasks(): void
    {
        $queue = $this->connect('memory:')->queue('q');
        foreach ([5, null, 1.5, new \stdClass(), ['no' => 'such'], ['id', '', 1, 2, 3, 4, 5, 6, 7], [[]]] as $item) {
            self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueMany(['good', $item]));
        }
        self::assertThrows(InvalidArgument::class, fn () => $queue->enqueueMany([['id' => 'a', 'delay' => 1, 'due' => 2]]));
        self::assertThrows(InvalidArgument::class, fn () => $queue->settle(['ack']));
        self::assertThrows(InvalidArgument::class, fn () => $queue->kick([5]));
        self::assertThrows(InvalidArgument::class, fn () => $queue->kick(receipts: ['5']));
        self::assertThrows(InvalidArgument::class, fn () => $queue->kick(receipts: [-5]));
        self::assertThrows(InvalidArgument::class, fn () => $queue->reschedule('a', null));
        self::assertSame(0, $queue->count());
    }

    public function testUrls(): void
    {
        foreach (['', 'nonsense', 'http://localhost', "redis://\xff", 'redis://localhost:99999'] as $url) {
            self::assertThrows(InvalidArgument::class, fn () => Client::connect($url));
        }
        putenv('STANCHION_URL');
        self::assertThrows(InvalidArgument::class, fn () => Client::connect());
        putenv('STANCHION_URL=memory:');
        self::assertSame(0, Client::connect()->releaseAll());
        putenv('STANCHION_URL');
        $error = self::assertThrows(StoreUnavailable::class, fn () => Client::connect('redis://:c4n4ry-pa55w0rd@127.0.0.1:1', timeout: 0.5));
        self::assertTrue($error->isRetryable());
    }

    /** Not in messages, and not in traces either, as PHP makes them without a php.ini. */
    public function testSecretsAreNotShown(): void
    {
        $url = 'redis://:c4n4ry-pa55w0rd@127.0.0.1:1/?timeout=0.5';
        $client = $this->connect('memory:');
        $handle = json_encode(['stanchion' => 1, 'token' => 'c4n4ry-pa55w0rd', 'key' => 'Lock:a']);
        $calls = [
            fn () => Client::connect($url),
            fn () => Client::connect('redis://:c4n4ry-pa55w0rd@localhost:99999'),
            fn () => new RedisLock($url),
            fn () => new RedisQueue($url),
            fn () => new ScriptLock($url, 'a'),
            fn () => HashLock::setClient($url),
            fn () => $client->resumeLease($handle),
        ];
        $before = ini_set('zend.exception_ignore_args', '0');
        try {
            foreach ($calls as $call) {
                $error = self::assertThrows(StanchionException::class, $call);
                self::assertStringNotContainsString('c4n4ry-pa55w0rd', $error->getMessage());
                if (PHP_VERSION_ID >= 80200) {
                    $ours = array_filter($error->getTrace(), fn ($frame) => preg_match('~^Stanchion.(?!Tests)~', $frame['class'] ?? ''));
                    self::assertStringNotContainsString('c4n4ry-pa55w0rd', print_r(array_column($ours, 'args'), true));
                    self::assertNotEmpty($ours);
                }
            }
        } finally {
            ini_set('zend.exception_ignore_args', $before);
        }
    }

    /** Whoever prints them, as reporters of errors do, would have PHP read memory that was freed. */
    public function testTracesHoldNothingOfC(): void
    {
        if (PHP_VERSION_ID < 80200) {
            self::markTestSkipped('PHP 8.1 cannot leave arguments out of traces');
        }
        $client = $this->connect('memory:');
        $before = ini_set('zend.exception_ignore_args', '0');
        $calls = [
            fn () => $client->queue('')->purge(),
            fn () => $client->queue('')->pop(),
            fn () => $client->queue('')->claim(),
            fn () => $client->queue('a')->enqueue('a', delay: 1, due: 1),
            fn () => $client->queue('a')->enqueue('a', priority: 300),
            fn () => $client->queues([''])->claim(),
            fn () => $client->lock('')->acquire(),
            fn () => $client->lock('')->holder(),
        ];
        try {
            foreach ($calls as $call) {
                foreach (self::assertThrows(InvalidArgument::class, $call)->getTrace() as $frame) {
                    $ofC = array_filter($frame['args'] ?? [], fn ($argument) => $argument instanceof \FFI\CData);
                    self::assertSame([], $ofC, $frame['function']);
                }
            }
        } finally {
            ini_set('zend.exception_ignore_args', $before);
        }
    }

    public function testNothingIsMadeOfText(): void
    {
        foreach ([Client::class, Lease::class, Claim::class, Clock::class] as $class) {
            $text = sprintf('O:%d:"%s":1:{s:6:"handle";i:1;}', strlen($class), $class);
            self::assertThrows(InvalidArgument::class, fn () => unserialize($text));
        }
        self::assertThrows(InvalidArgument::class, fn () => serialize(new Clock()));
        self::assertThrows(\Error::class, fn () => clone new Clock());
    }

    /** @dataProvider stores */
    public function testOthersLeases(string $kind): void
    {
        $client = $this->connect($kind);
        $lease = $client->lock('a')->acquire();
        $handle = $client->lock('b')->acquire()->detach();
        foreach (['', '{}', "\xff", str_replace($lease->token(), 'x', $handle) . 'x'] as $forged) {
            self::assertThrows(InvalidArgument::class, fn () => $client->resumeLease($forged));
        }
        $other = $client->lock('a');
        $other->breakLease();
        $next = $other->acquire();
        self::assertThrows(LeaseLost::class, $lease->release(...));
        self::assertTrue($next->isValid() && $other->isLocked());
    }
}
