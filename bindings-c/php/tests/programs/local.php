<?php

// Leaves a function with a client, a lease and a claim, and ends at once.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

(static function (string $url): void {
    $client = Stanchion\Client::connect($url);
    $lease = $client->lock('a', ttl: 60)->acquire();
    $claims = $client->queue('q')->claim(lease: 60);
})($argv[1]);
// No shutdown function: only destructors have run.
posix_kill(getmypid(), SIGKILL);
