<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use Stanchion\Client;
use Stanchion\Exception\LeaseExpired;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\LockTimeout;
use Stanchion\Exception\InvalidArgument;
use Stanchion\HeldAs;
use Stanchion\Lease;
use Stanchion\Loss;
use Stanchion\Testing\Clock;

final class LockTest extends StoreCase
{
    /** @dataProvider stores */
    public function testOneHolderAtATime(string $kind): void
    {
        $client = $this->connect($kind);
        $lock = $client->lock('invoice:42');
        $lease = $lock->acquire();
        self::assertTrue($lease->isValid() && $lock->isLocked());
        self::assertNull($lock->tryAcquire());
        $error = self::assertThrows(LockTimeout::class, fn () => $lock->acquire(wait: 0));
        $other = self::assertThrows(LockTimeout::class, fn () => $lock->acquire(wait: 0.06), 'invoice:42');
        foreach ([$error, $other] as $timeout) {
            self::assertSame([-1, true, 'acquire', 'invoice:42'], [
                $timeout->getCode(), $timeout->isRetryable(), $timeout->operation(), $timeout->name(),
            ]);
        }
        $lease->release();
        self::assertFalse($lease->isValid() || $lock->isLocked());
        $next = $lock->tryAcquire();
        self::assertGreaterThan($lease->fence(), $next->fence());
        self::assertNotSame($lease->token(), $next->token());
    }

    /** @dataProvider stores */
    public function testWhatALeaseTells(string $kind): void
    {
        $lease = $this->connect($kind)->lock('a', ttl: 20)->acquire();
        self::assertSame('a', $lease->name());
        self::assertGreaterThan(15.0, $lease->remaining());
        self::assertLessThanOrEqual(20.0, $lease->remaining());
        self::assertNull($lease->loss());
        $lease->check();
        $lease->extend(50);
        self::assertGreaterThan(40.0, $lease->remaining());
        self::assertFalse($lease->waitLost(0.01));
        $lease->release();
        self::assertTrue($lease->waitLost(0));
        self::assertThrows(LeaseLost::class, $lease->release(...), 'released already');
    }

    /** @dataProvider stores */
    public function testHolder(string $kind): void
    {
        $client = $this->connect($kind);
        $lock = $client->lock('a', label: 'importer');
        self::assertNull($lock->holder());
        $lease = $lock->acquire(ttl: 20);
        $holder = $lock->holder();
        self::assertSame(
            [HeldAs::Lease, 'importer', getmypid(), $lease->fence(), 0],
            [$holder->heldAs, $holder->label, $holder->pid, $holder->fence, $holder->waiters]
        );
        self::assertEqualsWithDelta(20.0, $holder->remaining, 10.0);
        self::assertEqualsWithDelta(microtime(true), $holder->since, 20.0);
        self::assertSame(['a'], $client->locks()->names);
        $lease->release(cooldown: 20.0);
        self::assertSame(HeldAs::Cooldown, $lock->holder()->heldAs);
        self::assertTrue($lock->breakLease());
        self::assertFalse($lock->breakLease());
    }

    /** @dataProvider stores */
    public function testABrokenLeaseIsLost(string $kind): void
    {
        $lock = $this->connect($kind)->lock('a');
        $lease = $lock->acquire();
        $lock->breakLease();
        $error = self::assertThrows(LeaseLost::class, fn () => $lease->extend(10));
        self::assertNotInstanceOf(LeaseExpired::class, $error);
        self::assertSame(Loss::Broken, $lease->loss());
        self::assertThrows(LeaseLost::class, $lease->check(...));
        self::assertThrows(LeaseLost::class, $lease->release(...));
    }

    /** @dataProvider stores */
    public function testALeaseExpires(string $kind): void
    {
        $lock = $this->connect($kind)->lock('a', ttl: 0.2);
        $lease = $lock->acquire();
        self::assertTrue($lease->waitLost(10));
        self::assertFalse($lease->isValid());
        self::assertSame(0.0, $lease->remaining());
        self::assertSame(Loss::Expired, $lease->loss());
        self::until(fn () => !$lock->isLocked(), 'expired in the store');
        self::assertThrows(LeaseExpired::class, $lease->release(...));
    }

    /** @dataProvider stores */
    public function testHold(string $kind): void
    {
        $lock = $this->connect($kind)->lock('a');
        self::assertSame(7, $lock->hold(function (Lease $lease) use ($lock): int {
            self::assertTrue($lease->isValid() && $lock->isLocked());
            return 7;
        }, wait: 1));
        self::assertFalse($lock->isLocked());
        self::assertThrows(\DomainException::class, fn () => $lock->hold(fn () => throw new \DomainException('no')), 'no');
        self::assertFalse($lock->isLocked());
        $lock->hold(fn (Lease $lease) => $lease->release());
        self::assertThrows(LeaseLost::class, fn () => $lock->hold(fn () => $lock->breakLease()));
    }

    /** @dataProvider stores */
    public function testTheLastReferenceReleases(string $kind): void
    {
        $lock = $this->connect($kind)->lock('a');
        $lease = $lock->acquire();
        unset($lease);
        self::until(fn () => !$lock->isLocked(), 'free');
    }

    /** @dataProvider stores */
    public function testAHandleWorksOnce(string $kind): void
    {
        $client = $this->connect($kind);
        $lease = $client->lock('a')->acquire();
        $handle = $lease->detach(20);
        $resumed = $client->resumeLease($handle);
        self::assertSame(['a', $lease->fence()], [$resumed->name(), $resumed->fence()]);
        self::assertThrows(LeaseLost::class, fn () => $client->resumeLease($handle));
        unset($lease);
        self::assertTrue($client->lock('a')->isLocked());
        $resumed->release();
        self::assertThrows(InvalidArgument::class, fn () => $client->resumeLease('no handle'));
    }

    /** @dataProvider stores */
    public function testReleaseAll(string $kind): void
    {
        $client = $this->connect($kind);
        $leases = array_map(fn (string $name) => $client->lock($name)->acquire(), ['a', 'b', 'c']);
        self::assertSame(3, $client->releaseAll());
        self::assertSame([], $client->locks()->names);
        self::assertFalse($leases[0]->isValid());
        self::assertTrue($client->linger(5));
    }

    public function testAClockOfTheTest(): void
    {
        $clock = new Clock();
        $client = Client::connect('memory:', clock: $clock);
        $lease = $client->lock('a', ttl: 60)->acquire();
        $clock->advance(59);
        self::assertTrue($lease->isValid());
        $clock->advance(2);
        self::assertFalse($lease->isValid());
        $next = $client->lock('a')->tryAcquire();
        self::assertNotNull($next);
    }

    public function testTheSameConnectionAgain(): void
    {
        $url = $this->url('redis:');
        $first = Client::connect($url);
        $lease = $first->lock('a')->acquire();
        unset($first);
        // Another connection knows nothing of this one's leases.
        self::assertSame(0, Client::connect($url, label: 'other')->releaseAll());
        self::assertSame(1, Client::connect($url)->releaseAll());
        self::assertFalse($lease->isValid());
        self::assertMatchesRegularExpression('/^\d+\.\d+\.\d+/', Client::version());
    }

    public function testNothingIsCopied(): void
    {
        $client = $this->connect('memory:');
        $lease = $client->lock('a')->acquire();
        foreach ([$client, $lease] as $object) {
            self::assertThrows(\Error::class, fn () => clone $object);
            self::assertThrows(InvalidArgument::class, fn () => serialize($object));
        }
        self::assertTrue($lease->isValid());
    }
}
