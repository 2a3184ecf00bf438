<?php

declare(strict_types=1);

namespace Stanchion\Tests\Symfony;

use Stanchion\Client;
use Stanchion\Symfony\StanchionStore;
use Stanchion\Tests\Compat\CompatCase;
use Stanchion\Tests\Compat\Wait;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\Exception\LockConflictedException;
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

    private function store(float $ttl = 1.0): StanchionStore
    {
        return new StanchionStore(Client::connect($this->server->url()), $ttl);
    }

    public function testLockExcludesAndIsReleased(): void
    {
        [$first, $second] = [$this->factory->createLock('report', 60), $this->factory->createLock('report', 60)];
        self::assertTrue($first->acquire());
        self::assertTrue($first->isAcquired());
        self::assertFalse($second->acquire());
        self::assertFalse($second->isAcquired());
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        self::assertEqualsWithDelta(60.0, $first->getRemainingLifetime(), 5.0);

        $first->release();
        self::assertFalse($first->isAcquired());
        self::assertTrue($second->acquire());
        $second->release();
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testHolderMayAcquireAgain(): void
    {
        $lock = $this->factory->createLock('report', 60);
        self::assertTrue($lock->acquire() && $lock->acquire());
        $lock->release();
        self::assertSame(0, $this->redis->exists('Lock:report'));
    }

    public function testRefreshProlongs(): void
    {
        $lock = $this->factory->createLock('report', 10);
        self::assertTrue($lock->acquire());
        $lock->refresh(60);
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:report'), 5000);
        $lock->release();
    }

    public function testBlockingAcquireWaitsForTheEndOfTheHolder(): void
    {
        Client::connect($this->server->url())->lock('report', ttl: 1.5)->acquire()->intoHandle(1.5);
        $lock = $this->factory->createLock('report', 60);
        self::assertFalse($lock->acquire());
        self::assertTrue($lock->acquire(true));
        $lock->release();
    }

    public function testLossIsTold(): void
    {
        $lock = $this->factory->createLock('report', 60);
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
        self::assertSame(0, $this->redis->exists('Lock:dropped'));
        self::assertTrue($this->factory->createLock('kept', 60, false)->acquire());
        self::assertEqualsWithDelta(60_000, $this->redis->pttl('Lock:kept'), 5000);
    }

    public function testLockWithoutTtlLastsForTheInitialOne(): void
    {
        $lock = (new LockFactory($this->store(0.2)))->createLock('report', null);
        self::assertTrue($lock->acquire());
        Wait::until('it expired', fn () => !$this->redis->exists('Lock:report'));
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
        $ours = (new LockFactory(new StanchionStore($client)))->createLock('report', 60);
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
        $this->redis->del('Lock:report');
        $this->redis->rPush('Lock:report', 'a list');
        $this->expectException(LockReleasingException::class);
        $lock->release();
    }
}
