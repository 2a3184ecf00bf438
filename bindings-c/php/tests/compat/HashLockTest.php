<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use Stanchion\Client;
use Stanchion\Compat\HashLock;
use Stanchion\Compat\LostLock;
use Stanchion\Compat\Timeout;
use Stanchion\Exception\LeaseLost;
use Stanchion\Exception\LockTimeout;

require_once __DIR__ . '/autoload.php';

/** HashLock, and the faults of the classes that it replaces. */
final class HashLockTest extends CompatCase
{
    protected function setUp(): void
    {
        parent::setUp();
        HashLock::setClient($this->server->url());
    }

    protected function tearDown(): void
    {
        Old\HashLock::$clock = null;
    }

    private function assertTimeout(\Closure $get): void
    {
        try {
            $get();
            self::fail('got the lock');
        } catch (Timeout $timeout) {
            self::assertInstanceOf(LockTimeout::class, $timeout);
        }
    }

    public function testOlderUnlockRemovesOnlyWhatHasExpired(): void
    {
        self::assertTrue(Old\HashLock::getLock($this->redis, 'report', 60));
        Old\HashLock::releaseLock($this->redis, 'report');
        self::assertFalse(Old\HashLock::getLock($this->redis, 'report', 60), 'it is still locked');
    }

    public function testReleaseFreesTheLock(): void
    {
        HashLock::getLock('report', 0, 60);
        self::assertSame(1, $this->redis->exists('Lock:report'));
        HashLock::releaseLock('report');
        self::assertSame(0, $this->redis->exists('Lock:report'));
        HashLock::getLock('report', 0, 60);
    }

    public function testOlderMachineWithAFastClockTakesALiveLock(): void
    {
        self::assertTrue(Old\HashLock::getLock($this->redis, 'report', 60));
        Old\HashLock::$clock = fn () => microtime(true) + 300;
        self::assertTrue(Old\HashLock::getLock($this->redis, 'report', 60));
    }

    public function testOnlyTheStoresClockCounts(): void
    {
        // It looks dead to a clock that is fast, or to one that reads its value.
        $this->redis->set('Lock:report', (string) (time() - 300), ['EX' => 60]);
        $this->assertTimeout(fn () => HashLock::getLock('report'));
    }

    public function testOlderLockersLeaveOursAlone(): void
    {
        HashLock::getLock('report', 0, 60);
        self::assertFalse(Old\HashLock::getLock($this->redis, 'report', 60));
        Old\HashLock::$clock = fn () => microtime(true) + 300;
        self::assertFalse(Old\HashLock::getLock($this->redis, 'report', 60));
        HashLock::releaseLock('report');
    }

    public function testTakesOverADeadOlderLock(): void
    {
        $this->redis->set('Lock:report', (string) (time() - 300));
        $this->assertTimeout(fn () => HashLock::getLock('report'));

        HashLock::setClient($this->server->url(), adoptUnexpiring: 0.1);
        HashLock::getLock('report', 5, 60, HashLock::KEEP_WAITING);
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        HashLock::releaseLock('report');
    }

    public function testDeadLockIsTakenOverWhenItsTimeEnds(): void
    {
        Client::connect($this->server->url())->lock('report', ttl: 1.5)->acquire()->detach(1.5);
        HashLock::getLock('report', 5, 60);
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        HashLock::releaseLock('report');
    }

    public function testPolicyFailFastDoesNotWaitInVain(): void
    {
        $this->redis->set('Lock:report', 'of another', ['EX' => 60]);
        $begin = hrtime(true);
        $this->assertTimeout(fn () => HashLock::getLock('report', 30));
        self::assertLessThan(20_000_000_000, hrtime(true) - $begin);
    }

    public function testPolicyKeepWaitingWaitsForAnEarlyRelease(): void
    {
        $holder = new Player('hold for a waiter', $this->server->socket(), 'report', '60');
        self::assertSame('held', $holder->hear());
        HashLock::getLock('report', 15, 60, HashLock::KEEP_WAITING);
        HashLock::releaseLock('report');
        $holder->rest();
    }

    public function testDelayedReleaseKeepsTheLockClosed(): void
    {
        HashLock::getLock('report', 0, 60);
        HashLock::releaseLock('report', 30);
        $this->assertTimeout(fn () => HashLock::getLock('report'));
        self::assertEqualsWithDelta(30_000, $this->redis->pttl('Lock:report'), 5000);
        self::assertFalse(Old\HashLock::getLock($this->redis, 'report', 60));

        $this->runOut('report');
        HashLock::getLock('report');
        HashLock::releaseLock('report', 0.001);
        HashLock::getLock('report', 5);
        HashLock::releaseLock('report');
    }

    public function testLossIsTold(): void
    {
        HashLock::getLock('report', 0, 60);
        $this->runOut('report');
        $this->redis->set('Lock:report', 'of another', ['EX' => 60]);
        try {
            HashLock::releaseLock('report');
            self::fail('it was lost');
        } catch (LostLock $lost) {
            self::assertInstanceOf(LeaseLost::class, $lost);
        }
        self::assertSame('of another', $this->redis->get('Lock:report'));
    }

    public function testLockThatWasNeverTakenIsLost(): void
    {
        $this->expectException(LostLock::class);
        HashLock::releaseLock('report');
    }

    public function testProlongate(): void
    {
        HashLock::getLock('report', 0, 10);
        HashLock::prolongate('report', 60);
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);

        $this->runOut('report');
        $this->expectException(LostLock::class);
        HashLock::prolongate('report', 60);
    }

    public function testMethodsMayBeCalledOnTheResult(): void
    {
        $lock = HashLock::getLock('report', 0, 60);
        $lock->prolongate('report', 90);
        $lock->releaseLock('report');
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testHashTagsInKeysAreKept(): void
    {
        HashLock::getLock('{user:7}:cart', 0, 60);
        self::assertSame(1, $this->redis->exists('Lock:{user:7}:cart'));
        HashLock::releaseLock('{user:7}:cart');
    }
}
