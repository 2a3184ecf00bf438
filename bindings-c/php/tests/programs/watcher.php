<?php

// Prints what happens to a queue's tasks until a signal handler ends it; it has begun when it has printed what there was.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

$ended = false;
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$ended): void {
    $ended = true;
    throw new RuntimeException('told to end');
});
try {
    foreach (Stanchion\Client::connect($argv[1])->queue('q')->events(after: 0) as $event) {
        echo "{$event->what->value} $event->id\n";
    }
} catch (RuntimeException $told) {
    echo $ended ? "{$told->getMessage()}\n" : "by itself\n";
}
