<?php

// One of the processes that hold a lock in turn, for a while. Prints when it got it and when it let go, in nanoseconds.
// The bare one is the least that wakes another process: an item of a list, taken with BLPOP.

declare(strict_types=1);

require __DIR__ . '/turns.php';

const HOLD = 5_000;
const THINK = 10_000;
const LASTS = 3.0;

/** @return array{callable(): mixed, callable(mixed): mixed} acquires; releases what that gave */
function lock(string $kind, string $port): array
{
    if ($kind === 'ours') {
        $lock = Stanchion\Client::connect("redis://127.0.0.1:$port")->lock('bench:hand-over', wait: 60);
        return [$lock->acquire(...), static fn ($lease) => $lease->release()];
    }
    $redis = bare($port);
    $redis->setnx('bench:made', '1') && $redis->rPush('bench:blpop', 'token');
    return [fn () => $redis->blPop('bench:blpop', 60), fn () => $redis->rPush('bench:blpop', 'token')];
}

[, $kind, $port] = $argv;
[$acquire, $release] = lock($kind, $port);
echo "ready\n";
fgets(STDIN);
$end = microtime(true) + LASTS;
$held = '';
while (microtime(true) < $end) {
    $lease = $acquire();
    $begin = hrtime(true);
    usleep(HOLD);
    $held .= $begin . ' ' . hrtime(true) . "\n";
    $release($lease);
    usleep(THINK);
}
echo $held;
