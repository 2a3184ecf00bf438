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

    /**
     * For how long each works, and rests then, in microseconds, and for how long they contend, in seconds. Older ones that
     * leave the lock free for a hundredth of the time are met by chance, on a busy machine after some seconds.
     *
     * @return array<string, array{int, int, int}>
     */
    public static function works(): array
    {
        return ['for a moment' => [300, 0, 8], 'for some milliseconds' => [5000, 0, 20], 'and rest' => [1000, 2000, 8]];
    }

    /**
     * Each of the older ones takes the lock again at once, or looks every 100 ms; ours hand it on to each other.
     *
     * @dataProvider works
     */
    public function testNeitherKindStarvesBesideTheOther(int $workUs, int $restUs, int $contestS): void
    {
        $parts = ['older contend', 'contend'];
        $players = ['older contend' => [], 'contend' => []];
        for ($number = 0; $number < 8; $number++) {
            $part = $parts[$number % 2];
            $players[$part][] = $player = new Player($part, $this->server->socket(), (string) $workUs, (string) $restUs);
            self::assertSame('ready', $player->hear());
        }
        foreach (array_merge(...array_values($players)) as $player) {
            $player->tell('go');
        }
        sleep($contestS);
        $this->redis->set('stop', '1');
        $grants = array_map(
            fn (array $side): int => array_sum(array_map(fn (Player $player): int => (int) $player->hear(), $side)),
            $players,
        );
        $all = array_sum($grants);
        fwrite(STDERR, vsprintf("\nworking %d us, resting %d us: older %d, ours %d grants\n", [$workUs, $restUs, ...array_values($grants)]));
        self::assertGreaterThan(200, $all, 'enough to tell');
        foreach ($grants as $side => $count) {
            self::assertGreaterThanOrEqual($all / 5, $count, "$side: $count of $all grants");
        }
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
