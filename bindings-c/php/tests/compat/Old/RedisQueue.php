<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat\Old;

/** The pattern of a queue in a sorted set that is guarded by such a lock. */
final class RedisQueue
{
    private RedisLock $lock;

    public function __construct(private \Redis $redis, private ?\Closure $at = null)
    {
        $this->lock = new RedisLock($redis, $at);
    }

    public function enqueue(string $name, string $id, int $timeout = 10, int $afterInterval = 0): bool
    {
        if (!$this->lock->lock("Queue:$name", $timeout, 15, 1000)) {
            return false;
        }
        if ($this->redis->zScore("Queue:$name", $id) === false) {
            $this->redis->zAdd("Queue:$name", microtime(true) + $afterInterval, $id);
        }
        $this->lock->unlock("Queue:$name");
        return true;
    }

    /** @return array{id: string, score: float}|false */
    public function pop(string $name, int $timeout = 10): array|false
    {
        // Fault: goes on whether it has the lock or not.
        $this->lock->lock("Queue:$name", $timeout, 15, 1000);
        $now = (string) microtime(true);
        $found = $this->redis->zRangeByScore("Queue:$name", '0', $now, ['withscores' => true, 'limit' => [0, 1]]);
        if ($this->at !== null) {
            ($this->at)('read');
        }
        $id = array_key_first($found);
        if ($id !== null) {
            // Fault: does not look whether it was there to be removed.
            $this->redis->zRem("Queue:$name", (string) $id);
        }
        $this->lock->unlock("Queue:$name");
        return $id === null ? false : ['id' => (string) $id, 'score' => $found[$id]];
    }
}
