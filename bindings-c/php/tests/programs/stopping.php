<?php

// Works on each task until its claim is not valid any more, then fails.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

$queue = Stanchion\Client::connect($argv[1])->queue('q');
$report = $queue->work(function (Stanchion\Claim $task): void {
    echo $task->id(), "\n";
    while ($task->isValid()) {
        usleep(10_000);
    }
    echo $task->loss()?->value, "\n";
    throw new RuntimeException('told to end');
}, lease: 600, grace: (float) $argv[2]);
echo "done $report->completed $report->failed $report->lost\n";
