<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use Stanchion\Client;
use Stanchion\Compat\RedisLock;

require_once __DIR__ . '/autoload.php';

/** Older code, played by phpredis, beside ours on the same keys. */
final class RollingMoveTest extends CompatCase
{
    public function testNeitherGetsTheLockWhileTheOtherHasIt(): void
    {
        $older = new Old\RedisLock($this->redis);
        $lock = new RedisLock($this->server->url());

        self::assertTrue($older->lock('report'));
        self::assertFalse($lock->lock('report'));
        self::assertFalse($lock->lock('report', 0.1));
        self::assertTrue($older->unlock('report'));

        self::assertTrue($lock->lock('report'));
        self::assertFalse($older->lock('report'));
        self::assertFalse($older->lock('report', 1));
        self::assertTrue($lock->unlock('report'));
        self::assertTrue($older->lock('report'));
    }

    public function testBothKindsTogetherLoseNoUpdate(): void
    {
        $times = 100;
        $players = [];
        foreach (['setnx count', 'count', 'setnx count', 'count'] as $part) {
            $players[] = $player = new Player($part, $this->server->socket(), (string) $times);
            self::assertSame('ready', $player->hear());
        }
        foreach ($players as $player) {
            $player->tell('go');
        }
        foreach ($players as $player) {
            self::assertSame('done', $player->hear());
        }
        self::assertSame((string) (4 * $times), $this->redis->get('count'));
    }

    /** @return array<string, array{\Closure(\Redis, string): mixed}> */
    public static function deadValues(): array
    {
        return [
            'without expiry' => [fn (\Redis $redis, string $value) => $redis->set('Lock:report', $value)],
            'that expires in decades' => [
                fn (\Redis $redis, string $value) => $redis->set('Lock:report', $value, ['EX' => time()]),
            ],
        ];
    }

    /** @dataProvider deadValues */
    public function testDeadOlderValueIsAdoptedAfterItsGrace(\Closure $write): void
    {
        $write($this->redis, (string) (time() - 60));
        self::assertFalse((new RedisLock($this->server->url()))->lock('report', 0.3), 'only if asked to');

        $lock = new RedisLock($this->server->url(), adoptUnexpiring: 0.2);
        self::assertFalse($lock->lock('report'), 'not at once');
        self::assertTrue($lock->lock('report', 5, 7));
        self::assertEqualsWithDelta(7000, $this->redis->pttl('Lock:report'), 2000);
        self::assertTrue($lock->unlock('report'));
    }

    public function testDeadOlderValueIsAdoptedByThoseWhoOnlyTry(): void
    {
        $this->redis->set('Lock:report', (string) (time() - 60));
        $lock = new RedisLock($this->server->url(), adoptUnexpiring: 0.2);
        Wait::until('it is adopted', fn () => $lock->lock('report'));
        self::assertTrue($lock->unlock('report'));
    }

    public function testOlderValueThatChangesIsNotAdopted(): void
    {
        $lock = new RedisLock($this->server->url(), adoptUnexpiring: 0.4);
        for ($round = 0; $round < 6; $round++) {
            $this->redis->set('Lock:report', "holder $round");
            self::assertFalse($lock->lock('report', 0.1));
        }
    }

    public function testTasksOfOlderProducersReachAWorker(): void
    {
        $older = new Old\RedisQueue($this->redis);
        $due = [];
        for ($task = 0; $task < 20; $task++) {
            self::assertTrue($older->enqueue('jobs', $due[] = "task$task"));
        }
        $queue = Client::connect($this->server->url())->queue('jobs');
        $worked = [];
        while (count($worked) < 20 && ($claims = $queue->claim(max: 20, wait: 5.0)) !== []) {
            foreach ($claims as $claim) {
                $worked[] = $claim->id();
                $claim->ack();
            }
        }
        self::assertEqualsCanonicalizing($due, $worked);
        self::assertSame(0, $this->redis->zCard('Queue:jobs'));
    }
}
