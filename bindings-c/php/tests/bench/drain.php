<?php

// Tasks that do nothing, drained by one process: what a worker costs. Prints tasks per second.

declare(strict_types=1);

require __DIR__ . '/turns.php';
require __DIR__ . '/messages.php';
require __DIR__ . '/jobs.php';

function stanchion(string $port, int $count): float
{
    $queue = Stanchion\Client::connect("redis://127.0.0.1:$port")->queue('bench:drain');
    foreach (array_chunk(range(1, $count), 1000) as $ids) {
        $queue->enqueueMany(array_map(strval(...), $ids));
    }
    $begin = hrtime(true);
    $done = $queue->work(static fn () => null, burst: true)->completed;
    return rate($begin, $count, $done);
}

/** @param int $begin in nanoseconds */
function rate(int $begin, int $count, int $done): float
{
    $taken = hrtime(true) - $begin;
    return $done === $count ? $count / $taken * 1e9 : throw new RuntimeException("$done of $count tasks were done");
}

[, $kind, $port, $count] = $argv;
echo $kind($port, (int) $count), "\n";
