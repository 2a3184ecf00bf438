<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Client;
use Stanchion\Compat\RedisLock;
use Stanchion\Exception\Closed;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\LibraryUnavailable;
use Stanchion\Exception\LockTimeout;
use Stanchion\Exception\StanchionException;
use Stanchion\OnDuplicate;

/** What is thrown leads to the line of the program, and a refused argument is named. */
final class ErrorTest extends StoreCase
{
    public function testItIsThrownWhereThePackageIsCalled(): void
    {
        $client = $this->connect('memory:');
        $lease = $client->lock('held')->acquire();
        $queue = $client->queue('q');
        $calls = [
            InvalidArgument::class => [
                fn () => $client->lock('a', ttl: '10'), fn () => $client->lock('a')->acquire(wait: 'x'),
                fn () => $client->lock('a')->hold(fn () => null, ttl: 0.001), fn () => $client->lock('')->tryAcquire(),
                fn () => $queue->enqueue('t', delay: -1), fn () => $queue->enqueueMany([5]), fn () => $queue->claim(0),
                fn () => OnDuplicate::debounce(null), fn () => Client::connect('pigeon://home'), fn () => serialize($lease),
                fn () => $client->lock('a')->hold(fn () => $queue->claim(0)), fn () => new RedisLock('pigeon://home'),
            ],
            LockTimeout::class => [fn () => $client->lock('held')->acquire(wait: 0)],
            LeaseLost::class => [fn () => $client->resumeLease($client->lock('b')->acquire()->detach() . 'x')],
        ];
        foreach ($calls as $class => $functions) {
            foreach ($functions as $index => $function) {
                $thrown = $this->thrown($function);
                $line = (new \ReflectionFunction($function))->getStartLine();
                self::assertSame([__FILE__, $line], [$thrown->getFile(), $thrown->getLine()], "$class $index");
                self::assertStringContainsString('/src/', $thrown->getTrace()[0]['file'] ?? '', "$class $index: the trace");
            }
        }
    }

    public function testWhatNobodyCatches(): void
    {
        $program = new Program('uncaught', $this->url('sqlite:'), ['-d', 'display_errors=stdout', '-d', 'log_errors=0']);
        $file = __DIR__ . '/programs/uncaught.php';
        $said = $program->rest();
        self::assertSame(255, $program->wait());
        self::assertStringContainsString("acquire(): argument wait must be a number of seconds, got string \"x\" in $file:9", $said);
        self::assertStringContainsString("thrown in $file on line 9", $said);
    }

    public function testARefusedArgumentIsNamed(): void
    {
        $client = $this->connect('memory:');
        $lock = $client->lock('a');
        $queue = $client->queue('q');
        $messages = [
            'acquire(): argument wait must be a number of seconds, got string "x"' => fn () => $lock->acquire(wait: 'x'),
            'lock(): argument ttl must be a number of seconds, got true' => fn () => $client->lock('a', ttl: true),
            'hold(): argument maxHold must be at least 0 seconds, got -1' => fn () => $lock->hold('time', maxHold: -1),
            'connect(): argument timeout must be at least 0 seconds, got NAN' => fn () => Client::connect('memory:', timeout: NAN),
            'connect(): argument timeout must be a number of seconds, got string of 26 bytes' =>
                fn () => Client::connect('memory:', timeout: 'redis://user:secret@home/0'),
            'enqueue(): argument delay must be a number of seconds, got array' => fn () => $queue->enqueue('t', delay: [1]),
            'enqueue(): argument priority must be 0 to 255, got 256' => fn () => $queue->enqueue('t', priority: 256),
            'enqueue(): argument headers[h] must be a string, got 5' => fn () => $queue->enqueue('t', headers: ['h' => 5]),
            'enqueue(): argument payload must be a string or a JSON value' => fn () => $queue->enqueue('t', NAN),
            'claim(): argument max must be 1 to 1000, got 0' => fn () => $queue->claim(0),
            'queues(): argument names must be an array of strings, got 7' => fn () => $client->queues([7]),
            'settle(): argument verdicts must be what acked() and the like return, got null' => fn () => $queue->settle([null]),
            'debounce(): argument maxWait must be a number of seconds, got null' => fn () => OnDuplicate::debounce(null),
            'cached(): argument beta must be at least 0, got -1' => fn () => $client->cached('c', 1, fn () => 1, beta: -1),
            'kick(): argument receipts must be an array of integers, got string "1"' => fn () => $queue->kick(receipts: ['1']),
            'enqueue(): id is not UTF-8' => fn () => $queue->enqueue("\xff"),
            'acquire(): permits -1 is no count' => fn () => $client->semaphore('s', -1)->acquire(),
        ];
        foreach ($messages as $message => $call) {
            $thrown = $this->thrown($call);
            self::assertInstanceOf(InvalidArgument::class, $thrown, $message);
            self::assertStringStartsWith($message, $thrown->getMessage());
        }
    }

    public function testExceptionsOfTheProgramsOwnMaking(): void
    {
        $cause = new \DomainException('cause');
        $error = new LibraryUnavailable('none', 7, $cause);
        self::assertSame(['none', 7, $cause], [$error->getMessage(), $error->getCode(), $error->getPrevious()]);
        self::assertSame([__FILE__, __LINE__ - 2], [$error->getFile(), $error->getLine()]);
        self::assertSame([false, null], [(new Closed())->isRetryable(), (new Closed())->operation()]);
    }

    private function thrown(\Closure $function): \Throwable
    {
        try {
            $function();
        } catch (StanchionException $thrown) {
            return $thrown;
        }
        self::fail('nothing was thrown');
    }
}
