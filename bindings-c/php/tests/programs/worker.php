<?php

// Prints the id of each task; works on "slow" until it is told to go on.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

$queue = Stanchion\Client::connect($argv[1])->queue('q');
$report = $queue->work(function (Stanchion\Claim $task): void {
    echo $task->id(), "\n";
    if ($task->id() === 'slow') {
        while (fgets(STDIN) === false && !feof(STDIN)) {
            // A signal came.
        }
    }
}, lease: 0.5);
echo "done $report->completed\n";
