<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use Stanchion\Compat\ScriptLock;

require_once __DIR__ . '/autoload.php';

/** ScriptLock, and the fault of the classes that it replaces. */
final class ScriptLockTest extends CompatCase
{
    public function testOlderSleepsOfLessThanASecondAreNone(): void
    {
        // For three retries with half a second between them, a lock that is free after that long is in time.
        $this->redis->set('Lock:import', 'of another', ['PX' => 500]);
        self::assertFalse((new Old\ScriptLock($this->redis, 'import', 60, 3, 0.5))->lock());
        self::assertSame(1, $this->redis->exists('Lock:import'), 'it gave up before the time of a single sleep');
    }

    public function testWaitsForAllRetries(): void
    {
        $this->redis->set('Lock:import', 'of another', ['PX' => 500]);
        $lock = new ScriptLock($this->server->url(), 'import', validity: 60, retries: 3, sleep: 0.5);
        self::assertTrue($lock->lock());
        self::assertTrue($lock->unlock());
    }

    public function testGivesUpAfterTheRetries(): void
    {
        $this->redis->set('Lock:import', 'of another', ['EX' => 60]);
        $begin = hrtime(true);
        self::assertFalse((new ScriptLock($this->server->url(), 'import', retries: 2, sleep: 0.05))->lock());
        self::assertGreaterThanOrEqual(100_000_000, hrtime(true) - $begin);
        self::assertFalse((new ScriptLock($this->server->url(), 'import', retries: 0))->lock());
    }

    public function testValidityIsTheTtl(): void
    {
        $lock = new ScriptLock($this->server->url(), 'import', validity: 7);
        self::assertTrue($lock->lock());
        self::assertEqualsWithDelta(7000, $this->redis->pttl('Lock:import'), 2000);
        self::assertFalse((new ScriptLock($this->server->url(), 'import', retries: 0))->lock());
        self::assertTrue($lock->unlock());
        self::assertSame(0, $this->redis->exists('Lock:import'));
        self::assertFalse($lock->unlock());
        self::assertTrue($lock->lock());
        self::assertTrue($lock->unlock());
    }

    public function testUnlockLeavesTheLockOfAnother(): void
    {
        $lock = new ScriptLock($this->server->url(), 'import');
        self::assertTrue($lock->lock());
        $this->redis->set('Lock:import', 'of another', ['EX' => 60]);
        self::assertFalse($lock->unlock());
        self::assertSame('of another', $this->redis->get('Lock:import'));
    }
}
