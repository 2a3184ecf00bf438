<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Client;
use Stanchion\Lease;
use Stanchion\Lock;

/** A lease that nothing keeps is over at once, and a warning says so; one that is kept is nobody's concern. */
final class UnkeptTest extends StoreCase
{
    /** @var list<string> */
    private array $warnings = [];

    protected function setUp(): void
    {
        set_error_handler(function (int $level, string $message): bool {
            $this->warnings[] = $level === E_USER_WARNING ? $message : "level $level: $message";
            return true;
        });
    }

    protected function tearDown(): void
    {
        restore_error_handler();
        parent::tearDown();
    }

    /** @return array<string, array{\Closure(Client): Lock}> */
    public static function kinds(): array
    {
        return [
            'lock' => [fn (Client $client) => $client->lock('a')],
            'reader' => [fn (Client $client) => $client->rwLock('a')->read()],
            'writer' => [fn (Client $client) => $client->rwLock('a')->write()],
            'semaphore' => [fn (Client $client) => $client->semaphore('a', 2)],
            'several' => [fn (Client $client) => $client->multiLock(['a', 'b'])],
            'reentrant' => [fn (Client $client) => $client->lock('a')->reentrant('me')],
        ];
    }

    /** @dataProvider kinds */
    public function testAResultThatIsNotUsed(\Closure $kind): void
    {
        $lock = $kind($this->connect('memory:'));
        $what = 'the lock "a" was released as soon as it was acquired';
        $this->warnsOf($what, 'acquire()', function () use ($lock): void { $lock->acquire(); });
        $this->warnsOf($what, 'tryAcquire()', function () use ($lock): void { $lock->tryAcquire(); });
    }

    public function testAResultThatIsOnlyLookedAt(): void
    {
        $lock = $this->connect('memory:')->lock('a');
        $this->warnsWithin(fn () => $this->ifAcquired($lock));
        $this->warnsWithin(fn () => $this->ifBusy($lock));
        $this->warnsWithin(fn () => $lock->tryAcquire());
    }

    public function testAResumedLeaseAndClaims(): void
    {
        $client = $this->connect('memory:');
        $resume = function () use ($client): void {
            $handle = $client->lock('a')->acquire()->detach();
            $client->resumeLease($handle);
        };
        $this->warnsOf('the lock "a" was released as soon as', 'resumeLease()', $resume, 2);
        $client->queue('q')->enqueue('x');
        $this->warnsOf('task "x" of queue "q"', 'claim()', function () use ($client): void { $client->queue('q')->claim(); });
        $claim = function () use ($client): void { $client->queues(['q'])->claim(); };
        $this->warnsOf('task "x" of queue "q"', 'claim()', $claim);
    }

    /** @dataProvider stores */
    public function testTheLockIsFreeInTheNextLine(string $store): void
    {
        $client = $this->connect($store);
        foreach (self::kinds() as $name => [$kind]) {
            $lock = $kind($client);
            for ($i = 0; $i < 200; $i++) {
                $lease = $lock->tryAcquire();
                self::assertNotNull($lease, "$name, $i");
                $lease = null;
                self::assertFalse($lock->isLocked(), "$name, $i");
                $lock->acquire(wait: 0);
            }
        }
    }

    public function testASilentStoreKeepsDestructorsNoLongerThanOneCall(): void
    {
        $url = $this->url('redis:');
        $client = Client::connect($url, timeout: 1.0);
        $leases = array_map(fn (int $number) => $client->lock("a$number")->acquire(), range(1, 10));
        $expired = $client->lock('b', ttl: 0.05)->acquire();
        usleep(60_000);
        $server = $this->redisServer($url);
        posix_kill($server, SIGSTOP);
        try {
            $begin = hrtime(true);
            unset($expired);
            $lost = hrtime(true) - $begin;
            $leases = [];
            $elapsed = hrtime(true) - $begin;
        } finally {
            posix_kill($server, SIGCONT);
        }
        self::assertLessThan(0.9e9, $lost, 'what is lost waits for nothing');
        self::assertLessThan(6e9, $elapsed, 'ten leases wait for a second together, not each');
        self::assertGreaterThan(0.9e9, $elapsed);
        for ($number = 1; $number <= 10; $number++) {
            // Without a word from the store they would last for 30 s.
            self::assertGreaterThan(0, $client->lock("a$number")->acquire(wait: 10)->fence());
        }
        self::assertSame([], $this->warnings);
    }

    public function testAHandlerThatThrowsLeavesNothingLocked(): void
    {
        $lock = $this->connect('memory:')->lock('a');
        set_error_handler(fn (int $level, string $message) => throw new \ErrorException($message));
        self::assertThrows(\ErrorException::class, function () use ($lock): void {
            $lock->acquire();
        }, 'nothing keeps');
        restore_error_handler();
        self::until(fn () => !$lock->isLocked(), 'free');
    }

    /** @dataProvider kinds */
    public function testALeaseThatIsKept(\Closure $kind): void
    {
        $lock = $kind($this->connect('memory:'));
        $this->guarded($lock);
        $lease = $lock->acquire();
        $lease = null;
        $lease = $lock->acquire();
        unset($lease);
        $lock->acquire()->release();
        $lock->tryAcquire()?->release();
        $lock->hold(fn () => 'without a look at the lease');
        $this->inside($lock->acquire());
        self::assertSame([], $this->warnings);
    }

    public function testLeasesInTurn(): void
    {
        $client = $this->connect('memory:');
        foreach (['a', 'b', 'c'] as $name) {
            $lease = $client->lock($name)->acquire();
        }
        foreach (['d', 'e'] as $name) { $other = $client->lock($name)->acquire(); }
        $all = array_map(fn (string $name) => $client->lock($name)->acquire(), ['f', 'g']);
        (function () use ($client): void { $mine = $client->lock('h')->acquire(); })();
        try {
            (function () use ($client): void { $mine = $client->lock('i')->acquire(); throw new \DomainException(); })();
        } catch (\DomainException) {
        }
        unset($lease, $other, $all);
        self::assertSame([], $this->warnings);
    }

    public function testALeaseThatWasLost(): void
    {
        $lock = $this->connect('memory:')->lock('a');
        $lease = $lock->acquire();
        $lock->breakLease();
        unset($lease);
        foreach (Client::connect('memory:')->queue('q')->claim() as $claim) {
            $claim->ack();
        }
        self::assertSame([], $this->warnings);
    }

    /** @dataProvider sharedStores */
    public function testTheEndOfAProgramIsQuiet(string $kind): void
    {
        foreach (['end', 'exit', 'throw', 'fork', 'static'] as $how) {
            $program = new Program('guard', $this->url($kind), ['-d', 'display_errors=stdout'], $how);
            self::assertSame("held $how\n", $program->rest());
            self::assertSame(0, $program->wait());
        }
    }

    private function ifAcquired(Lock $lock): void
    {
        if ($lock->tryAcquire()) {
            self::assertInstanceOf(Lock::class, $lock);
        }
    }

    private function ifBusy(Lock $lock): void
    {
        $busy = $lock->tryAcquire() === null;
        self::assertIsBool($busy);
    }

    /** The process of the server. */
    private function redisServer(string $url): int
    {
        $redis = new \Redis();
        $redis->connect((string) parse_url($url, PHP_URL_HOST), (int) parse_url($url, PHP_URL_PORT));
        return (int) $redis->info('server')['process_id'];
    }

    /** Held to its end, as by a guard in C++. */
    private function guarded(Lock $lock): void
    {
        $lease = $lock->acquire();
    }

    /** Protected by its argument. */
    private function inside(Lease $lease): void
    {
        $until = hrtime(true) + 1_000_000;
        while (hrtime(true) < $until) {
        }
    }

    /** Warns once, of this, and names the line of the call: so many lines below the beginning of the function. */
    private function warnsOf(string $what, string $method, \Closure $function, int $below = 0): void
    {
        $line = (new \ReflectionFunction($function))->getStartLine() + $below;
        $warning = $this->warnsWithin($function);
        self::assertStringContainsString("stanchion: $what", $warning);
        self::assertStringContainsString("$method returns in " . __FILE__ . " on line $line", $warning);
    }

    /** A machine that stands still just then looks like a program that does something. */
    private function warnsWithin(\Closure $statement): string
    {
        self::until(function () use ($statement): bool {
            $statement();
            return $this->warnings !== [];
        }, 'a warning');
        self::assertCount(1, $this->warnings, implode("\n", $this->warnings));
        return array_pop($this->warnings);
    }
}
