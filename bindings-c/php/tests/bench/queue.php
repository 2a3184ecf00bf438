<?php

// One process alone with its queue.

declare(strict_types=1);

require __DIR__ . '/turns.php';
require __DIR__ . '/queues.php';

$id = 0;
$pairs = [];
foreach (queues($argv[1]) as $name => $pair) {
    $pairs[$name] = static function () use ($pair, &$id): void {
        $pair('id:' . $id++);
    };
}
turns($pairs, 30, 100);
