<?php

// Tasks that do nothing, drained by one process: what a worker costs. Prints tasks per second.

declare(strict_types=1);

use Illuminate\Redis\RedisManager;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransportFactory;

require __DIR__ . '/turns.php';
require __DIR__ . '/messages.php';
require __DIR__ . '/jobs.php';

/** How many tasks are taken at once where tasks are taken ahead. */
const PREFETCH = 16;

function stanchion(string $port, int $count, int $prefetch = 1): float
{
    $queue = Stanchion\Client::connect("redis://127.0.0.1:$port")->queue('bench:drain');
    foreach (array_chunk(range(1, $count), 1000) as $ids) {
        $queue->enqueueMany(array_map(strval(...), $ids));
    }
    $begin = hrtime(true);
    $done = $queue->work(static fn () => null, untilEmpty: true, prefetch: $prefetch)->completed;
    return rate($begin, $count, $done);
}

function stanchion_ahead(string $port, int $count): float
{
    return stanchion($port, $count, PREFETCH);
}

/** @param int $begin in nanoseconds */
function rate(int $begin, int $count, int $done): float
{
    $taken = hrtime(true) - $begin;
    return $done === $count ? $count / $taken * 1e9 : throw new RuntimeException("$done of $count tasks were done");
}

/** Whether the package that a kind needs is there. */
function is_there(string $kind): bool
{
    $classes = match ($kind) {
        'stanchion', 'stanchion_ahead' => [],
        'laravel' => [Illuminate\Queue\Worker::class, Illuminate\Events\Dispatcher::class, RedisManager::class],
        'laravel_stanchion', 'laravel_ahead' => [Illuminate\Queue\Worker::class, Illuminate\Events\Dispatcher::class],
        'messenger' => [RedisTransportFactory::class],
        'messenger_stanchion', 'messenger_ahead' => [Symfony\Component\Messenger\Worker::class],
    };
    return $classes === array_filter($classes, class_exists(...));
}

[, $kind, $count, $port] = $argv;
echo match (true) {
    !is_there($kind) => 'missing',
    $count === '0' => 'there',
    default => $kind($port, (int) $count),
}, "\n";
