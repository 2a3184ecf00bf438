<?php

// One of the processes that hold a lock in turn, for a while. Prints when it got it and when it let go, in nanoseconds.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

const HOLD = 5_000;
const THINK = 10_000;
const LASTS = 4.0;

[, $port] = $argv;
$lock = Stanchion\Client::connect("redis://127.0.0.1:$port")->lock('bench:hand-over', wait: 60);
echo "ready\n";
fgets(STDIN);
$end = microtime(true) + LASTS;
$held = '';
while (microtime(true) < $end) {
    $lease = $lock->acquire();
    $begin = hrtime(true);
    usleep(HOLD);
    $held .= $begin . ' ' . hrtime(true) . "\n";
    $lease->release();
    usleep(THINK);
}
echo $held;
