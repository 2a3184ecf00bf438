<?php

declare(strict_types=1);

namespace Stanchion\Tests\Laravel;

use Illuminate\Cache\ArrayStore;
use Illuminate\Cache\Repository;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Stanchion\Client;
use Stanchion\Laravel\StanchionStore;
use Stanchion\Tests\Compat\CompatCase;

require_once __DIR__ . '/../compat/autoload.php';
@include_once 'Illuminate/Cache/autoload.php';

/** Laravel's cache locks on StanchionStore. */
final class StanchionLockTest extends CompatCase
{
    private Repository $cache;

    protected function setUp(): void
    {
        if (!class_exists(Repository::class)) {
            self::markTestSkipped('illuminate/cache is missing (Debian: php-illuminate-cache)');
        }
        parent::setUp();
        $this->cache = $this->cache();
    }

    private function cache(): Repository
    {
        return new Repository(new StanchionStore(new ArrayStore(), Client::connect($this->server->url())));
    }

    public function testLockExcludesAndIsReleased(): void
    {
        [$first, $second] = [$this->cache->lock('report', 60), $this->cache->lock('report', 60)];
        self::assertTrue($first->get());
        self::assertFalse($second->get());
        self::assertFalse($second->release());
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        self::assertTrue($first->release());
        self::assertFalse($first->release());
        self::assertSame('done', $second->get(fn () => 'done'));
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testBlockWaitsForTheEndOfTheHolder(): void
    {
        Client::connect($this->server->url())->lock('report', ttl: 1.5)->acquire()->detach(1.5);
        self::assertSame('done', $this->cache->lock('report', 60)->block(5, fn () => 'done'));
        self::assertSame(0, $this->redis->exists('Lock:report'));
        self::assertTrue($this->cache->lock('report', 60)->block(5));
    }

    public function testBlockTimesOut(): void
    {
        self::assertTrue($this->cache->lock('report', 60)->get());
        $this->expectException(LockTimeoutException::class);
        $this->cache->lock('report', 60)->block(0);
    }

    public function testOwnerRestoresTheLockElsewhereOnce(): void
    {
        $lock = $this->cache->lock('report', 60);
        self::assertTrue($lock->get());
        $owner = $lock->owner();
        self::assertSame($owner, $lock->owner());
        self::assertFalse($this->cache->lock('report', 60)->get());

        self::assertTrue($this->cache()->restoreLock('report', $owner)->release());
        self::assertFalse($lock->release());
        self::assertTrue($this->cache->lock('report', 60)->get());
    }

    public function testRefreshSetsTheExpiry(): void
    {
        $lock = $this->cache->lock('report', 60);
        self::assertFalse($lock->refresh(), 'it is not held');
        self::assertTrue($lock->get());
        self::assertTrue($lock->refresh(5));
        self::assertLessThanOrEqual(5000, $this->redis->pttl('Lock:report'));
        self::assertTrue($lock->refresh());
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        $owner = $lock->owner();
        self::assertTrue($this->cache()->restoreLock('report', $owner)->refresh(600), 'of whoever has the owner');
        self::assertEqualsWithDelta(600_000, $this->redis->pttl('Lock:report'), 5000);
        self::assertFalse($lock->refresh(), 'it was restored elsewhere');
        $lock->forceRelease();
        self::assertFalse($lock->refresh());
    }

    public function testOwnershipIsAskedOfTheStore(): void
    {
        $lock = $this->cache->lock('report', 60);
        self::assertFalse(self::owns($lock));
        self::assertTrue($lock->get());
        self::assertTrue(self::owns($lock));
        self::assertFalse(self::owns($this->cache->lock('report', 60)));
        $restored = $this->cache()->restoreLock('report', $lock->owner());
        self::assertTrue(self::owns($lock), 'also when it told its owner');
        self::assertTrue(self::owns($restored));
        self::assertTrue($restored->release());
        self::assertFalse(self::owns($lock) || self::owns($restored));
        self::assertTrue($this->cache->lock('report', 60)->get());
        self::assertFalse(self::owns($lock) || self::owns($restored));
    }

    /** It is protected in some versions of Laravel, and public in others. */
    private static function owns(\Illuminate\Contracts\Cache\Lock $lock): bool
    {
        return (new \ReflectionMethod($lock, 'isOwnedByCurrentProcess'))->invoke($lock);
    }

    public function testHolderMayReleaseAfterItToldItsOwner(): void
    {
        $lock = $this->cache->lock('report', 60);
        self::assertTrue($lock->get() && $lock->owner() !== '');
        self::assertTrue($lock->release());
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testLossIsTold(): void
    {
        $lock = $this->cache->lock('report', 60);
        self::assertTrue($lock->get());
        $this->redis->set('Lock:report', 'of another', ['EX' => 60]);
        self::assertFalse($lock->release());
        self::assertSame('of another', $this->redis->get('Lock:report'));
        $lock->forceRelease();
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testSecondsMayComeFromAConfigurationFile(): void
    {
        $lock = $this->cache->lock('report', '60');
        self::assertTrue($lock->block('5'));
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        self::assertTrue($lock->release());
    }

    public function testLockForEverEnds(): void
    {
        self::assertTrue($this->cache->lock('report')->get());
        self::assertEqualsWithDelta(86_400_000, $this->redis->pttl('Lock:report'), 10_000);
    }

    public function testCacheIsThatOfTheOtherStore(): void
    {
        $this->cache->put('a', 1, 60);
        self::assertSame(3, $this->cache->increment('a', 2));
        self::assertSame(['a' => 3, 'b' => null], $this->cache->many(['a', 'b']));
        self::assertTrue($this->cache->forget('a'));
        self::assertNull($this->cache->get('a'));
    }
}
