<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use Stanchion\Compat\RedisLock;
use Stanchion\Exception\InvalidArgument;

require_once __DIR__ . '/autoload.php';

/** RedisLock, and the faults of the classes that it replaces. */
final class RedisLockTest extends CompatCase
{
    private const YEAR_MS = 365 * 86_400_000;

    private function lock(float ...$options): RedisLock
    {
        return new RedisLock($this->server->url(), ...$options);
    }

    /** An older lock on a connection of its own. */
    private function older(?\Closure $at = null): Old\RedisLock
    {
        return new Old\RedisLock($this->server->redis(), $at);
    }

    public function testOlderKilledHolderBlocksForDecades(): void
    {
        $holder = new Player('older hold', $this->server->socket(), 'report', '1');
        self::assertSame('held', $holder->hear());
        $holder->kill();

        self::assertGreaterThan(10 * self::YEAR_MS, $this->redis->pttl('Lock:report'));
        self::assertFalse($this->older()->lock('report', 1));
    }

    public function testKilledHolderBlocksForItsTtl(): void
    {
        $holder = new Player('hold', $this->server->socket(), 'report', '3');
        self::assertSame('held', $holder->hear());
        $lock = $this->lock();
        self::assertFalse($lock->lock('report'));
        $holder->kill();

        self::assertLessThanOrEqual(3000, $this->redis->pttl('Lock:report'));
        self::assertTrue($lock->lock('report', 20));
    }

    public function testOlderHolderInTheMiddleOfItsLockIsTakenForDead(): void
    {
        $second = $this->older();
        $adopted = false;
        $first = $this->older(function (string $place) use ($second, &$adopted): void {
            $adopted = $place === 'set' ? $second->lock('report') : $adopted;
        });

        self::assertTrue($first->lock('report'));
        self::assertTrue($adopted);
        self::assertTrue($first->isLocking('report') && $second->isLocking('report'));
    }

    public function testKeyHasItsTtlFromTheBeginning(): void
    {
        // Every command that the server is sent while the lock is taken, the script's own ones included.
        $lock = $this->lock();
        $this->redis->rawCommand('CONFIG', 'RESETSTAT');
        self::assertTrue($lock->lock('report', 0, 7));

        $calls = $this->redis->info('commandstats');
        self::assertArrayHasKey('cmdstat_set', $calls);
        self::assertArrayNotHasKey('cmdstat_setnx', $calls);
        self::assertArrayNotHasKey('cmdstat_expire', $calls);
        self::assertEqualsWithDelta(7000, $this->redis->pttl('Lock:report'), 2000);
        self::assertFalse($this->lock()->lock('report'));
    }

    public function testOlderAdoptionNeverEnds(): void
    {
        $this->redis->set('Lock:report', 'of a dead one');
        self::assertTrue($this->older()->lock('report'));
        self::assertSame(-1, $this->redis->pttl('Lock:report'));
    }

    public function testAdoptionIsForTheTtl(): void
    {
        $this->redis->set('Lock:report', 'of a dead one');
        self::assertFalse($this->lock()->lock('report'));

        self::assertTrue($this->lock(adoptUnexpiring: 0.1)->lock('report', 5, 7));
        self::assertEqualsWithDelta(7000, $this->redis->pttl('Lock:report'), 2000);
    }

    public function testOlderUnlockRemovesTheLockOfAnother(): void
    {
        $second = $this->older();
        $first = $this->older(function (string $place) use ($second): void {
            if ($place === 'checked') {
                $this->runOut('report');
                self::assertTrue($second->lock('report'));
            }
        });
        self::assertTrue($first->lock('report'));

        self::assertTrue($first->unlock('report'));
        self::assertSame(0, $this->redis->exists('Lock:report'), 'the second one has lost its lock');
    }

    public function testUnlockLeavesTheLockOfAnother(): void
    {
        [$first, $second] = [$this->lock(), $this->lock()];
        self::assertTrue($first->lock('report'));
        $this->runOut('report');
        self::assertTrue($second->lock('report'));

        self::assertFalse($first->unlock('report'));
        self::assertTrue($second->isLocking('report'));
        self::assertTrue($second->unlock('report'));
    }

    public function testOlderHolderBelievesInTheLockOfAnother(): void
    {
        [$first, $second] = [$this->older(), $this->older()];
        self::assertTrue($first->lock('report'));
        $this->runOut('report');
        self::assertTrue($second->lock('report', 0, 99));

        self::assertTrue($first->isLocking('report'));
        self::assertTrue($first->unlock('report'), 'so it removes it');
    }

    public function testIsLockingAsksTheServer(): void
    {
        [$first, $second] = [$this->lock(), $this->lock()];
        self::assertTrue($first->lock('report'));
        self::assertTrue($first->isLocking('report'));
        $this->runOut('report');
        self::assertFalse($first->isLocking('report'));
        self::assertTrue($second->lock('report', 0, 99));

        self::assertFalse($first->isLocking('report'));
        self::assertTrue($second->isLocking('report'));
    }

    public function testSeveralNamesInOneObject(): void
    {
        $lock = $this->lock();
        self::assertTrue($lock->lock('a'));
        self::assertTrue($lock->lock('b'));
        self::assertFalse($lock->lock('a'), 'it does not count');
        self::assertEqualsCanonicalizing(['Lock:a', 'Lock:b'], $this->redis->keys('Lock:*'));

        self::assertTrue($lock->unlock('a'));
        self::assertFalse($lock->unlock('a'));
        self::assertTrue($lock->isLocking('b'));
        self::assertTrue($lock->lock('a'));
        self::assertTrue($lock->unlockAll());
        self::assertSame([], $this->redis->keys('Lock:*'));
        self::assertTrue($lock->unlockAll(), 'nothing is left to fail');
    }

    public function testUnlockAllTellsOfALoss(): void
    {
        $lock = $this->lock();
        self::assertTrue($lock->lock('a') && $lock->lock('b'));
        $this->runOut('a');

        self::assertFalse($lock->unlockAll());
        self::assertSame([], $this->redis->keys('Lock:*'));
    }

    public function testExpireProlongs(): void
    {
        $lock = $this->lock();
        self::assertFalse($lock->expire('report', 60));
        self::assertTrue($lock->lock('report', 0, 10));
        self::assertTrue($lock->expire('report', 60));
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);

        $this->runOut('report');
        self::assertFalse($lock->expire('report', 60));
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testWaitsUntilTheTimeout(): void
    {
        self::assertTrue($this->lock()->lock('report', 0, 60));
        $lock = $this->lock();
        $begin = hrtime(true);
        self::assertFalse($lock->lock('report', 0.2));
        self::assertGreaterThanOrEqual(200_000_000, hrtime(true) - $begin);
    }

    public function testTooShortATimeIsRefusedByTheNameOfItsArgument(): void
    {
        try {
            $this->lock()->lock('x', 0, 0);
            self::fail('not refused');
        } catch (InvalidArgument $error) {
            self::assertSame(
                'lock(): argument expire must be at least 0.05 s (it is the ttl), got 0',
                $error->getMessage(),
            );
        }
        self::assertTrue($this->lock()->lock('x', 0, 0.05));
    }

    public function testNoNameIsNoLock(): void
    {
        self::assertFalse($this->lock()->lock(''));
        self::assertFalse($this->lock()->lock(null));
        self::assertFalse($this->lock()->unlock(''));
        self::assertSame([], $this->redis->keys('*'));
    }

    public function testHashTagsInNamesAreKept(): void
    {
        self::assertTrue($this->lock()->lock('{user:7}:cart'));
        self::assertSame(1, $this->redis->exists('Lock:{user:7}:cart'));
    }

    /** As before: an object that goes does not unlock. */
    public function testLockOutlivesItsObjectUntilItExpires(): void
    {
        (function (): void {
            self::assertTrue($this->lock()->lock('hourly', 0, 60));
        })();
        gc_collect_cycles();
        self::assertFalse($this->lock()->lock('hourly'));
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:hourly'), 5000);
    }

    public function testLockOutlivesItsScriptUntilItExpires(): void
    {
        $script = new Player('hold', $this->server->socket(), 'hourly', '60');
        self::assertSame('held', $script->hear());
        $script->tell('end');
        $script->rest();
        self::assertFalse($this->lock()->lock('hourly'));
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:hourly'), 5000);
    }

    public function testChildThatEndsLeavesTheLockOfItsParent(): void
    {
        $parent = new Player('fork', $this->server->socket(), 'report');
        self::assertSame(['held', 'held', 'unlocked'], [$parent->hear(), $parent->hear(), $parent->hear()]);
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }
}
