<?php

/**
 * Sends the mails of the queue "emails" until SIGTERM. Start as many as you like:
 *
 *     STANCHION_URL=redis://localhost php worker.php
 */

declare(strict_types=1);

require $_SERVER['STANCHION_AUTOLOAD'] ?? __DIR__ . '/vendor/autoload.php';

use Stanchion\Claim;
use Stanchion\Client;
use Stanchion\WorkerEvent;
use Stanchion\WorkerEventKind;

$queue = Client::connect()->queue('emails');
$report = $queue->work(
    static function (Claim $task): void {
        ['to' => $to] = $task->json();
        if (!filter_var($to, FILTER_VALIDATE_EMAIL)) {
            // Trying again would not help.
            $task->bury("no address: $to");
            return;
        }
        echo "attempt {$task->attempt()}: to $to\n";
    },
    onEvent: static function (WorkerEvent $event): void {
        if ($event->kind === WorkerEventKind::Dead) {
            echo "given up: $event->id: $event->reason\n";
        }
    },
);
echo "$report->completed sent\n";
