<?php

declare(strict_types=1);

namespace Stanchion\Tests\Symfony;

use Stanchion\Client;
use Stanchion\Symfony\StanchionStore;
use Stanchion\Tests\Compat\CompatCase;
use Stanchion\Tests\Compat\Wait;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

require_once __DIR__ . '/../compat/autoload.php';
@include_once 'Symfony/Component/Lock/autoload.php';

/** symfony/lock on StanchionStore. */
final class StanchionStoreTest extends CompatCase
{
    private LockFactory $factory;

    protected function setUp(): void
    {
        if (!interface_exists(\Symfony\Component\Lock\BlockingStoreInterface::class)) {
            self::markTestSkipped('symfony/lock is missing (Debian: php-symfony-lock)');
        }
        parent::setUp();
        $this->factory = new LockFactory($this->store());
    }

    private function store(float $ttl = 1.0, bool $exclusive = false): StanchionStore
    {
        return new StanchionStore(Client::connect($this->server->url()), $ttl, $exclusive);
    }

    /** What is left of its holder's time, in milliseconds; null if nobody holds it. */
    private function left(string $name): ?float
    {
        $holder = Client::connect($this->server->url())->rwLock($name)->write()->holder();
        return $holder === null ? null : $holder->remaining * 1000;
    }

    public function testLockExcludesAndIsReleased(): void
    {
        [$first, $second] = [$this->factory->createLock('report', 60), $this->factory->createLock('report', 60)];
        self::assertTrue($first->acquire());
        self::assertTrue($first->isAcquired());
        self::assertFalse($second->acquire());
        self::assertFalse($second->isAcquired());
        self::assertEqualsWithDelta(60_000, $this->left('report'), 5000);
        self::assertEqualsWithDelta(60.0, $first->getRemainingLifetime(), 5.0);

        $first->release();
        self::assertFalse($first->isAcquired());
        self::assertTrue($second->acquire());
        $second->release();
        self::assertFalse(Client::connect($this->server->url())->rwLock('report')->write()->isLocked());
    }

    public function testHolderMayAcquireAgain(): void
    {
        $lock = $this->factory->createLock('report', 60);
        self::assertTrue($lock->acquire() && $lock->acquire());
        $lock->release();
        self::assertNull($this->left('report'));
    }

    /** The initial ttl is half a minute by default: nobody who asks for a second is to wait for so long. */
    public function testLockLastsForItsTtlThoughTheInitialOneIsLonger(): void
    {
        $store = $this->store(30.0);
        $lock = (new LockFactory($store))->createLock('report', 1.0, false);
        self::assertTrue($lock->acquire());
        self::assertLessThanOrEqual(1.0, $lock->getRemainingLifetime());
        $other = (new LockFactory($store))->createLock('report', 60);
        self::assertTrue($other->acquire(true), 'after a second');
        self::assertFalse($lock->isAcquired());
        $other->release();
    }

    public function testExpirationIsSetExactly(): void
    {
        [$store, $key] = [$this->store(30.0), new Key('report')];
        $store->save($key);
        $store->putOffExpiration($key, 2.0);
        self::assertTrue($store->exists($key));
        self::assertLessThanOrEqual(2000, $this->left('report'));
        self::assertLessThanOrEqual(2.0, $key->getRemainingLifetime());
        $key->resetLifetime();
        $store->putOffExpiration($key, 60.0);
        self::assertEqualsWithDelta(60_000, $this->left('report'), 5000);
        $store->save($key);
        self::assertLessThanOrEqual(30_000, $this->left('report'), 'saved again, it has the initial ttl');
        $store->delete($key);
    }

    public function testLifetimeIsTheShortestOfAllThatWasSaid(): void
    {
        [$store, $key] = [$this->store(30.0), new Key('report')];
        $key->reduceLifetime(5.0);
        $store->save($key);
        $store->putOffExpiration($key, 60.0);
        self::assertLessThanOrEqual(5.0, $key->getRemainingLifetime(), 'another store said so');
        $store->delete($key);
    }

    public function testExpirationWithinAMillisecondIsTold(): void
    {
        [$store, $key] = [$this->store(30.0), new Key('report')];
        $store->save($key);
        try {
            $store->putOffExpiration($key, 0.000001);
            self::fail('it is over');
        } catch (LockExpiredException) {
        }
        self::assertFalse($store->exists($key));
        $store->waitAndSave($key = new Key('report'));
        $store->delete($key);
    }

    public function testKeyThatExpiredBeforeItWasSavedIsNotHeld(): void
    {
        $store = $this->store(30.0);
        $late = new Key('report');
        $late->reduceLifetime(0);
        try {
            $store->save($late);
            self::fail('it is over');
        } catch (LockExpiredException) {
        }
        self::assertFalse($store->exists($late));
        $store->save($key = new Key('report'));
        self::assertTrue($store->exists($key));
        $store->delete($key);
    }

    public function testExpirationOfWhatIsNotHeldIsAConflict(): void
    {
        [$store, $key] = [$this->store(30.0), new Key('report')];
        foreach (['never held', 'expired'] as $when) {
            try {
                $store->putOffExpiration($key, 60.0);
                self::fail($when);
            } catch (LockConflictedException) {
            }
            $store->save($key);
            $this->redis->del('stanchion:rw:{Lock:report}');
        }
        self::assertFalse($store->exists($key));
    }

    public function testReadersShareAndKeepTheWriterOut(): void
    {
        $store = $this->store(30.0);
        [$one, $other, $writer] = [new Key('report'), new Key('report'), new Key('report')];
        $store->saveRead($one);
        $store->saveRead($other);
        self::assertTrue($store->exists($one) && $store->exists($other));
        self::assertConflict(fn () => $store->save($writer));
        $store->delete($one);
        self::assertFalse($store->exists($one));
        self::assertTrue($store->exists($other), 'each is its own');
        self::assertConflict(fn () => $store->save($writer));
        $store->delete($other);
        $store->save($writer);
        self::assertConflict(fn () => $store->saveRead($one));
        self::assertFalse($store->exists($one));
        $store->delete($writer);
    }

    public function testReaderIsPromotedIfItIsAlone(): void
    {
        $store = $this->store(30.0);
        [$one, $other] = [new Key('report'), new Key('report')];
        $store->saveRead($one);
        $store->saveRead($other);
        self::assertConflict(fn () => $store->save($one));
        self::assertTrue($store->exists($one), 'it goes on reading');
        $store->delete($other);
        $store->save($one);
        self::assertTrue($store->exists($one));
        self::assertConflict(fn () => $store->saveRead($other));
        $store->saveRead($one);
        $store->saveRead($other);
        self::assertTrue($store->exists($one) && $store->exists($other), 'it was demoted');
        $store->delete($one);
        $store->delete($other);
    }

    /** In a process of its own the other reader would go on meanwhile: here its time is up. */
    public function testPromotionThatBlocksWaitsForTheOtherReaders(): void
    {
        $store = $this->store(30.0);
        [$one, $other] = [new Key('report'), new Key('report')];
        $store->saveRead($one);
        $store->saveRead($other);
        $store->putOffExpiration($other, 0.5);
        $store->waitAndSave($one);
        self::assertFalse($store->exists($other));
        self::assertConflict(fn () => $store->saveRead($other));
        $store->delete($one);
        $other->resetLifetime();
        $store->waitAndSaveRead($other);
        self::assertTrue($store->exists($other));
        $store->delete($other);
    }

    public function testExclusiveLocksAreThoseOfOtherPrograms(): void
    {
        $store = $this->store(30.0, true);
        [$one, $other] = [new Key('report'), new Key('report')];
        $store->saveRead($one);
        $store->save($one);
        self::assertNull(Client::connect($this->server->url())->lock('report')->tryAcquire());
        self::assertConflict(fn () => $store->saveRead($other));
        $store->putOffExpiration($one, 2.0);
        self::assertLessThanOrEqual(2000, $this->redis->pttl('Lock:report'));
        $store->delete($one);
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    private static function assertConflict(\Closure $call): void
    {
        try {
            $call();
            self::fail('somebody else holds it');
        } catch (LockConflictedException) {
        }
    }

    public function testRefreshProlongs(): void
    {
        $lock = $this->factory->createLock('report', 10);
        self::assertTrue($lock->acquire());
        $lock->refresh(60);
        self::assertEqualsWithDelta(60_000, $this->left('report'), 5000);
        $lock->release();
    }

    public function testBlockingAcquireWaitsForTheEndOfTheHolder(): void
    {
        Client::connect($this->server->url())->rwLock('report', ttl: 1.5)->read()->acquire()->detach(1.5);
        $lock = $this->factory->createLock('report', 60);
        self::assertFalse($lock->acquire());
        self::assertTrue($lock->acquire(true));
        $lock->release();
    }

    public function testLossIsTold(): void
    {
        $lock = (new LockFactory($this->store(1.0, true)))->createLock('report', 60);
        self::assertTrue($lock->acquire());
        $this->redis->set('Lock:report', 'of another', ['EX' => 60]);
        self::assertFalse($lock->isAcquired());
        try {
            $lock->refresh(60);
            self::fail('it was lost');
        } catch (LockConflictedException) {
        }
        $lock->release();
        self::assertSame('of another', $this->redis->get('Lock:report'), 'it is left alone');
    }

    public function testAutoReleaseIsSymfonys(): void
    {
        self::assertTrue($this->factory->createLock('dropped', 60)->acquire());
        self::assertNull($this->left('dropped'));
        self::assertTrue($this->factory->createLock('kept', 60, false)->acquire());
        self::assertEqualsWithDelta(60_000, $this->left('kept'), 5000);
    }

    public function testLockWithoutTtlLastsForTheInitialOne(): void
    {
        $lock = (new LockFactory($this->store(0.2)))->createLock('report', null);
        self::assertTrue($lock->acquire());
        Wait::until('it expired', fn () => $this->left('report') === null);
        self::assertFalse($lock->isAcquired());
    }

    public function testKeyThatIsHeldIsNotSerialized(): void
    {
        $key = new Key('report');
        $this->store()->save($key);
        $this->expectException(\Symfony\Component\Lock\Exception\UnserializableKeyException::class);
        serialize($key);
    }

    /** Symfony keeps a sorted set at the name itself. */
    public function testRedisStoreOfSymfonyIsExcludedOnTheSameKey(): void
    {
        $theirs = (new LockFactory(new RedisStore($this->redis)))->createLock('report', 60);
        $client = Client::connect($this->server->url('?lock_prefix='));
        $ours = (new LockFactory(new StanchionStore($client, exclusive: true)))->createLock('report', 60);
        self::assertTrue($ours->acquire());
        self::assertFalse($theirs->acquire());
        $ours->release();

        self::assertTrue($theirs->acquire());
        $this->expectException(LockAcquiringException::class);
        $ours->acquire();
    }

    public function testKeyOfAnotherKindIsAnErrorOnRelease(): void
    {
        $lock = $this->factory->createLock('report', 60);
        self::assertTrue($lock->acquire());
        $this->redis->del('stanchion:rw:{Lock:report}');
        $this->redis->rPush('stanchion:rw:{Lock:report}', 'a list');
        $this->expectException(LockReleasingException::class);
        $lock->release();
    }
}
