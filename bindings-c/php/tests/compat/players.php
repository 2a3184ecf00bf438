<?php

declare(strict_types=1);

// The parts that a Player plays: php players.php PART ARGUMENTS...

namespace Stanchion\Tests\Compat;

use Stanchion\Client;
use Stanchion\Compat;

require __DIR__ . '/autoload.php';

function say(string $line): void
{
    fwrite(STDOUT, "$line\n");
    fflush(STDOUT);
}

function hear(): void
{
    if (fgets(STDIN) === false) {
        exit(1);
    }
}

/** Locks, and works on. */
function hold(Old\RedisLock|Compat\RedisLock $lock, string $name, int $expire): void
{
    say($lock->lock($name, 0, $expire) ? 'held' : 'busy');
    hear();
}

/** Unlocks as soon as somebody waits. */
function hold_for_a_waiter(Compat\RedisLock $lock, string $url, string $name, int $expire): void
{
    say($lock->lock($name, 0, $expire) ? 'held' : 'busy');
    $seen = Client::connect($url)->lock($name);
    Wait::until('somebody waits', fn () => $seen->holder()?->waiters > 0);
    $lock->unlock($name);
}

/** Holds a lock while a child comes and goes. */
function fork(Compat\RedisLock $lock, string $name): void
{
    say($lock->lock($name, 0, 60) ? 'held' : 'busy');
    $child = pcntl_fork();
    if ($child === 0) {
        exit(0);
    }
    pcntl_waitpid($child, $status);
    say($lock->isLocking($name) ? 'held' : 'lost');
    say($lock->unlock($name) ? 'unlocked' : 'lost');
}

/** Pops one by one until nothing is left. */
function pop(Old\RedisQueue|Compat\RedisQueue $queue, string $name): void
{
    say('ready');
    hear();
    while (($task = $queue->pop($name)) !== false) {
        say($task['id']);
    }
}

/** Makes a step of a thousandth of a second longer, which is only a fraction of its usual length under load. */
function slow(string $place): void
{
    usleep(1000);
}

/** Works under a lock again and again, and rests between, until it is told to stop: how often it had it. */
function contend(\Redis $redis, Old\RedisLock|Compat\RedisLock $lock, int $workUs, int $restUs): void
{
    say('ready');
    hear();
    for ($grants = 0; !$redis->exists('stop');) {
        if ($lock->lock('shared', 10)) {
            $grants++;
            usleep($workUs);
            $lock->unlock('shared');
            usleep($restUs);
        }
    }
    say((string) $grants);
}

/** Counts up in two steps under a lock, so that those who are not alone lose some. */
function count_up(\Redis $redis, \Closure $lock, \Closure $unlock, int $times): void
{
    say('ready');
    hear();
    for ($done = 0; $done < $times; $done++) {
        Wait::until('the lock', $lock);
        $count = (int) $redis->get('count');
        usleep(200);
        $redis->set('count', (string) ($count + 1));
        $unlock();
    }
    say('done');
}

[, $part, $socket] = $argv;
$redis = Server::at($socket);
$url = "redis+unix://$socket";
match ($part) {
    'older hold' => hold(new Old\RedisLock($redis), $argv[3], (int) $argv[4]),
    'hold' => hold(new Compat\RedisLock($url), $argv[3], (int) $argv[4]),
    'hold for a waiter' => hold_for_a_waiter(new Compat\RedisLock($url), $url, $argv[3], (int) $argv[4]),
    'fork' => fork(new Compat\RedisLock($url), $argv[3]),
    'older pop' => pop(new Old\RedisQueue($redis, slow(...)), $argv[3]),
    'pop' => pop(new Compat\RedisQueue($url), $argv[3]),
    'older contend' => contend($redis, new Old\RedisLock($redis), (int) $argv[3], (int) $argv[4]),
    'contend' => contend($redis, new Compat\RedisLock($url), (int) $argv[3], (int) $argv[4]),
    'setnx count' => count_up(
        $redis,
        fn () => $redis->setnx('Lock:shared', (string) (time() + 15)) && $redis->expire('Lock:shared', 15),
        fn () => $redis->del('Lock:shared'),
        (int) $argv[3],
    ),
    'count' => (function () use ($redis, $url, $argv): void {
        $lock = new Compat\RedisLock($url);
        $unlock = fn () => $lock->unlock('shared');
        count_up($redis, fn () => $lock->lock('shared', 5), $unlock, (int) $argv[3]);
    })(),
};
