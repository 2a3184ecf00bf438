<?php

// What php-fpm serves in the tests: ?do= says what.

declare(strict_types=1);

use Stanchion\Client;

if (!class_exists(Client::class, false)) {
    require __DIR__ . '/../bootstrap.php';
}

if (($_GET['do'] ?? '') === 'cut') {
    register_shutdown_function(static fn () => exit(1));
}
/** Kept to the end of the request. */
$client = Client::connect(getenv('STANCHION_TEST_URL') ?: null);
$name = $_GET['name'] ?? 'site';
switch ($_GET['do'] ?? '') {
    case 'pair':
        $client->lock($name)->hold(static fn () => null, wait: 30);
        break;
    case 'leave':
        // Neither is released: the end of the request does that.
        $lease = $client->lock($name)->acquire(wait: 30, ttl: 60);
        $claims = $client->queue($name)->claim(lease: 60);
        break;
    case 'kinds':
        $owned = $client->lock($name)->reentrant('one owner of all requests');
        $leases = [$owned->acquire(wait: 30), $owned->acquire(), $client->semaphore("$name:jobs", 1)->acquire(wait: 30)];
        if (isset($_GET['fatal'])) {
            $GLOBALS['kept'] = $leases;
            ini_set('memory_limit', '4M');
            str_repeat('x', 100_000_000);
        }
        break;
    case 'exit':
        $lease = $client->lock($name)->acquire(wait: 30, ttl: 60);
        echo 'ok ', getmypid();
        exit(1);
    case 'fatal':
        $GLOBALS['kept'] = $client->lock($name)->acquire(wait: 30, ttl: 60);
        // No destructor runs after this one.
        ini_set('memory_limit', '4M');
        str_repeat('x', 100_000_000);
        break;
    case 'claims':
        // Memory ends between the claims that one call gives.
        $queue = $client->queue($name);
        for ($i = 0; $i < 6; $i++) {
            $queue->enqueue("big:$i", str_repeat('x', 170_000));
        }
        gc_collect_cycles();
        // What PHP has of the system and does not use yet holds some of them, and it gets no more.
        $ballast = [];
        while (memory_get_usage(true) - memory_get_usage() > 900_000) {
            $ballast[] = str_repeat('x', 200_000);
        }
        ini_set('memory_limit', (string) memory_get_usage(true));
        $GLOBALS['kept'] = $queue->claim(max: 6, wait: 5, lease: 60);
        break;
    case 'late':
        // Taken when the request has ended, after a fatal error.
        register_shutdown_function(static function () use ($client, $name): void {
            $GLOBALS['kept'] = new Stanchion\Compat\RedisLock($client);
            $GLOBALS['kept']->lock($name, 0, 60);
        });
        ini_set('memory_limit', '4M');
        str_repeat('x', 100_000_000);
        break;
    case 'drop-in':
        // Not unlocked: it stays until it expires.
        $kept = new Stanchion\Compat\RedisLock($client);
        echo $kept->lock($name, 0, 60) ? 'locked ' : 'busy ';
        if (isset($_GET['fatal'])) {
            $GLOBALS['kept'] = $kept;
            ini_set('memory_limit', '4M');
            str_repeat('x', 100_000_000);
        }
        break;
    case 'deep':
        // Nothing is left, not even for the end of the request.
        $GLOBALS['kept'] = [$client->lock($name, ttl: 60, renew: true)->acquire(), $client->queue($name)->claim()];
        ini_set('memory_limit', '16M');
        $deeper = static function (array $kept) use (&$deeper): void {
            $deeper([$kept]);
        };
        $deeper([]);
        break;
    case 'cut':
        // Somebody else's end of the request is the end of all.
        $GLOBALS['kept'] = [$client->lock($name, ttl: 60, renew: true)->acquire(), $client->queue($name)->claim()];
        str_repeat('x', PHP_INT_MAX >> 1);
        break;
    case 'kill':
        $GLOBALS['kept'] = $client->lock($name)->acquire(wait: 30, ttl: 0.5);
        posix_kill(getmypid(), 9);
        break;
    case 'task':
        $client->queue($name)->enqueue(null, ['made' => getmypid()]);
        foreach ($client->queue($name)->claim(max: 2) as $claim) {
            $claim->ack();
        }
        break;
}
echo 'ok ', getmypid();
