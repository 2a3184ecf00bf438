<?php

// Holds a lock and a claim, and ends as it is told.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

$client = Stanchion\Client::connect($argv[1]);
$lease = $client->lock('a', ttl: 60)->acquire();
$claims = $client->queue('q')->claim(lease: 60);
echo "held\n";
switch (trim((string) fgets(STDIN))) {
    case 'return':
        exit(3);
    case 'throw':
        throw new RuntimeException('no');
    case 'memory':
        ini_set('memory_limit', '4M');
        $text = str_repeat('x', 100_000_000);
        break;
    case 'late':
        // Registered after the client was made, and the lease is still good.
        register_shutdown_function(function () use ($lease): void {
            echo $lease->isValid() ? "valid\n" : "over\n";
        });
        break;
}
