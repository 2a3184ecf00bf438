<?php

// Forks with a client, a lease, a claim; the child tries all of them, and the parent prints what is wrong.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

use Stanchion\Exception\Forked;

function forked(callable $function): string
{
    try {
        $function();
        return 'nothing thrown';
    } catch (Forked) {
        return 'Forked';
    }
}

$client = Stanchion\Client::connect($argv[1]);
$queue = $client->queue('q');
$queue->enqueue('mine');
$lease = $client->lock('a')->acquire();
[$claim] = $queue->claim();
$pid = pcntl_fork();
if ($pid === 0) {
    echo implode(' ', array_map(forked(...), [
        $lease->release(...), fn () => $lease->extend(5), $lease->check(...), $claim->ack(...), $claim->nack(...),
    ])), "\n";
    // The client goes on, also under its old name.
    echo $client->lock('a')->tryAcquire() === null ? 'busy' : 'double', "\n";
    echo $client->lock('b')->hold(fn () => 'works'), "\n";
    echo Stanchion\Client::connect($argv[1])->lock('b')->hold(fn () => 'works'), "\n";
    unset($lease, $claim);
    exit(0);
}
pcntl_waitpid($pid, $status);
echo pcntl_wexitstatus($status), "\n";
echo $lease->isValid() && $claim->isValid() && $client->lock('a')->isLocked() ? 'still held' : 'lost', "\n";
$claim->ack();
$lease->release();
echo "released\n";
