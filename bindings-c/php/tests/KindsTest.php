<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Client;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\LockTimeout;
use Stanchion\Holder;
use Stanchion\Lease;

/** Read-write locks, semaphores, several locks at once, owners that come in again. */
final class KindsTest extends StoreCase
{
    /** @dataProvider stores */
    public function testManyReadOrOneWrites(string $kind): void
    {
        $index = $this->connect($kind)->rwLock('index', label: 'search');
        self::assertSame(['index', 'index'], [$index->name(), $index->write()->name()]);
        $readers = [$index->read()->acquire(), $index->read()->tryAcquire()];
        self::assertGreaterThan($readers[0]->fence(), $readers[1]->fence());
        self::assertNull($index->write()->tryAcquire());
        $error = self::assertThrows(LockTimeout::class, fn () => $index->write()->acquire(wait: 0));
        self::assertSame('index', $error->name());
        self::assertSame([1, 1], self::weights($index->read()->holders()));
        array_map(fn (Lease $lease) => $lease->release(), $readers);
        self::assertFalse($index->read()->isLocked());
        self::assertSame(7, $index->write()->hold(function (Lease $lease) use ($index): int {
            self::assertNull($index->read()->tryAcquire());
            self::assertNull($index->write()->tryAcquire());
            $holder = $index->read()->holder();
            self::assertSame(['search', $lease->fence()], [$holder->label, $holder->fence]);
            self::assertGreaterThan(1, $holder->weight);
            return 7;
        }));
        self::assertNull($index->read()->holder());
        self::assertSame([], $index->read()->holders());
        self::assertSame([], $index->read()->waiters());
    }

    /** @dataProvider stores */
    public function testAWriterBecomesAReader(string $kind): void
    {
        $client = $this->connect($kind);
        $index = $client->rwLock('index');
        $writer = $index->write()->acquire();
        $writer->downgrade();
        $before = $writer->fence();
        self::assertTrue($writer->upgrade());
        self::assertGreaterThan($before, $writer->fence());
        self::assertSame([$writer->name() => $fence = $writer->fence()], $writer->fences());
        $writer->downgrade();
        $writer->downgrade();
        self::assertSame($fence, $writer->fence());
        $reader = $index->read()->tryAcquire();
        self::assertNotNull($reader);
        self::assertNull($index->write()->tryAcquire());
        self::assertThrows(InvalidArgument::class, $client->lock('a')->acquire()->downgrade(...));
        self::assertTrue($index->write()->breakLease());
        self::assertFalse($index->read()->breakLease());
        self::assertThrows(LeaseLost::class, $writer->downgrade(...));
        self::assertThrows(LeaseLost::class, $reader->release(...));
    }

    /** @dataProvider stores */
    public function testASemaphoreHasPermits(string $kind): void
    {
        $client = $this->connect($kind);
        $jobs = $client->semaphore('jobs', 5, ttl: 60);
        $heavy = $jobs->acquire(weight: 3);
        $light = $jobs->acquire(ttl: 120);
        self::assertNull($jobs->tryAcquire(weight: 2));
        self::assertThrows(LockTimeout::class, fn () => $jobs->hold(fn () => null, wait: 0.05, weight: 2));
        self::assertSame([3, 1], self::weights($jobs->holders()));
        self::assertSame([$heavy->fence(), $light->fence()], array_column($jobs->holders(), 'fence'));
        self::assertSame(3, $jobs->holder()->weight);
        self::assertThrows(InvalidArgument::class, fn () => $client->semaphore('jobs', 6)->tryAcquire(), '5 permits');
        $heavy->release();
        self::assertSame('in', $jobs->hold(fn () => 'in', weight: 4));
        self::assertTrue($jobs->breakLease());
        self::assertThrows(LeaseLost::class, $light->release(...));
    }

    public function testPermitsAndWeightsOutOfRange(): void
    {
        $client = $this->connect('memory:');
        foreach ([0, -1, -2, 1_000_001, 1 << 32, (1 << 32) + 1, PHP_INT_MAX, PHP_INT_MIN] as $number) {
            self::assertThrows(InvalidArgument::class, fn () => $client->semaphore('a', $number)->tryAcquire());
            self::assertThrows(InvalidArgument::class, fn () => $client->semaphore('a', 3)->tryAcquire(weight: $number));
        }
        self::assertThrows(InvalidArgument::class, fn () => $client->semaphore('a', 3)->acquire(weight: 4), '1 to 3');
        $others = [
            $client->lock('a'), $client->rwLock('a')->read(), $client->rwLock('a')->write(), $client->multiLock(['a', 'b']),
        ];
        foreach ($others as $lock) {
            self::assertThrows(InvalidArgument::class, fn () => $lock->acquire(weight: 1), 'only a semaphore');
        }
        self::assertThrows(\TypeError::class, fn () => $client->semaphore('a', 1.5));
        self::assertFalse($client->semaphore('a', 3)->isLocked() || $client->lock('a')->isLocked());
    }

    /** @dataProvider stores */
    public function testSeveralAtOnce(string $kind): void
    {
        $client = $this->connect($kind);
        $both = $client->multiLock(['b' => 'account:9', 'a' => 'account:7', 'account:9', '7'], ttl: 60);
        self::assertSame('7', $both->name());
        $lease = $both->acquire();
        self::assertSame('7', $lease->name());
        $fences = $lease->fences();
        self::assertSame([7, 'account:7', 'account:9'], array_keys($fences));
        self::assertSame($lease->fence(), $fences[7]);
        self::assertNull($client->lock('account:9')->tryAcquire());
        self::assertTrue($both->isLocked());
        self::assertThrows(InvalidArgument::class, $lease->detach(...));
        self::assertThrows(InvalidArgument::class, $lease->downgrade(...));
        $lease->release();
        $one = $client->lock('account:9')->acquire();
        self::assertSame(['account:9' => $one->fence()], $one->fences());
        self::assertNull($both->tryAcquire());
        self::assertFalse($client->lock('account:7')->isLocked());
    }

    public function testSeveralThatAreNoNames(): void
    {
        $client = $this->connect('memory:');
        foreach ([[], [''], ['a', ''], ['a', "\xff"], ['a', "b\0"]] as $names) {
            self::assertThrows(InvalidArgument::class, fn () => $client->multiLock($names)->tryAcquire());
        }
        foreach ([[1], ['a', null], ['a', ['b']]] as $names) {
            self::assertThrows(InvalidArgument::class, fn () => $client->multiLock($names), 'names must be an array of strings');
        }
        self::assertThrows(InvalidArgument::class, fn () => $client->multiLock(['a', 'b'])->reentrant('me')->acquire());
        self::assertFalse($client->lock('a')->isLocked());
    }

    /** @dataProvider stores */
    public function testAnOwnerComesInAgain(string $kind): void
    {
        $client = $this->connect($kind);
        $lock = $client->lock('invoice:42', ttl: 60);
        $mine = $lock->reentrant('request 8f3a');
        $outer = $mine->acquire();
        $inner = $mine->tryAcquire();
        self::assertSame([$outer->fence(), $outer->token()], [$inner->fence(), $inner->token()]);
        self::assertNull($lock->tryAcquire());
        self::assertNull($lock->reentrant('another')->tryAcquire());
        $outer->release();
        self::assertThrows(LeaseLost::class, $outer->release(...));
        $inner->check();
        self::assertTrue($lock->isLocked());
        // A call with options of its own is for the same owner.
        self::assertSame($inner->fence(), $mine->hold(fn (Lease $lease) => $lease->fence(), ttl: 50));
        $inner->release();
        self::assertFalse($lock->isLocked());
    }

    /** @dataProvider stores */
    public function testTheLastReferenceOfAnOwnerReleases(string $kind): void
    {
        $lock = $this->connect($kind)->lock('a')->reentrant('me');
        $outer = $lock->acquire();
        $inner = $lock->acquire();
        unset($outer);
        $inner->check();
        self::assertTrue($lock->isLocked());
        unset($inner);
        self::until(fn () => !$lock->isLocked(), 'free');
    }

    /** @dataProvider stores */
    public function testAReaderDoesNotBecomeAWriter(string $kind): void
    {
        $index = $this->connect($kind)->rwLock('index');
        $reader = $index->read()->reentrant('me')->acquire();
        self::assertThrows(InvalidArgument::class, fn () => $index->write()->reentrant('me')->acquire(), 'cannot be raised');
        $reader->release();
        $writer = $index->write()->reentrant('me')->acquire();
        self::assertSame($writer->fence(), $index->read()->reentrant('me')->acquire()->fence());
    }

    public function testOwnersThatAreNone(): void
    {
        $lock = $this->connect('memory:')->lock('a');
        foreach (['', "\xff", "a\nb", str_repeat('x', 513)] as $owner) {
            self::assertThrows(InvalidArgument::class, fn () => $lock->reentrant($owner)->tryAcquire());
        }
        self::assertFalse($lock->isLocked());
    }

    /** @return array<string, array{string, string}> */
    public static function ends(): array
    {
        $ends = [];
        foreach (self::sharedStores() as $name => [$kind]) {
            foreach (['return', 'memory'] as $how) {
                $ends["$name $how"] = [$kind, $how];
            }
        }
        return $ends;
    }

    /** @dataProvider ends */
    public function testTheEndOfAProgramReleasesAllKinds(string $kind, string $how): void
    {
        $url = $this->url($kind);
        $client = Client::connect($url);
        $locks = [
            $client->rwLock('index')->read(), $client->semaphore('jobs', 2), $client->lock('a'), $client->lock('b'),
            $client->lock('owned'),
        ];
        $program = new Program('kinds', $url);
        $program->expect('held');
        self::assertSame([true, true, true, true, true], array_map(fn ($lock) => $lock->isLocked(), $locks));
        $program->tell($how);
        self::assertSame($how === 'return' ? 3 : 255, $program->wait(), $program->rest());
        self::assertSame([false, false, false, false, false], array_map(fn ($lock) => $lock->isLocked(), $locks));
    }

    /**
     * @param list<Holder> $holders
     * @return list<int>
     */
    private static function weights(array $holders): array
    {
        return array_map(fn (Holder $holder) => $holder->weight, $holders);
    }
}
