<?php

// An id is put into a queue and taken out again: ours with a lease, ours behind the methods of the older classes, and
// their pattern itself.

declare(strict_types=1);

use Stanchion\Client;
use Stanchion\Compat\RedisQueue;
use Stanchion\Tests\Compat\Old\RedisQueue as OldQueue;

/**
 * Puts an id in and takes one out.
 *
 * @return array<string, callable(string): void>
 */
function queues(string $port): array
{
    $client = Client::connect("redis://127.0.0.1:$port");
    $queue = $client->queue('bench:ours');
    $compat = new RedisQueue($client);
    $old = new OldQueue(bare($port));
    return [
        'ours' => static function (string $id) use ($queue): void {
            $queue->enqueue($id);
            $queue->claim()[0]->ack();
        },
        'compat' => static function (string $id) use ($compat): void {
            $compat->enqueue('bench:compat', $id);
            $compat->pop('bench:compat') ?: throw new RuntimeException('there was nothing');
        },
        'old' => static function (string $id) use ($old): void {
            // What others take twice is missed by somebody: it has that fault.
            $old->enqueue('bench:old', $id) && $old->pop('bench:old');
        },
    ];
}
