<?php

// One of the processes that use a queue at once, for a while. Prints how many nanoseconds each pair took.

declare(strict_types=1);

require __DIR__ . '/turns.php';
require __DIR__ . '/queues.php';

const LASTS = 1.0;

[, $kind, $port] = $argv;
$pair = queues($port)[$kind];
$own = 'id:' . getmypid() . ':';
$pair("{$own}first");
echo "ready\n";
fgets(STDIN);
$end = microtime(true) + LASTS;
$lines = '';
for ($i = 0; microtime(true) < $end; $i++) {
    $begin = hrtime(true);
    $pair($own . $i);
    $lines .= hrtime(true) - $begin . "\n";
}
echo $lines;
