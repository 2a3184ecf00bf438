<?php

// Holds locks of all kinds, one of them twice, and ends as it is told.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

$client = Stanchion\Client::connect($argv[1]);
$owned = $client->lock('owned')->reentrant('me');
$leases = [
    $client->rwLock('index')->read()->acquire(),
    $client->semaphore('jobs', 2)->acquire(weight: 2),
    $client->multiLock(['a', 'b'])->acquire(),
    $owned->acquire(),
    $owned->acquire(),
];
echo "held\n";
if (trim((string) fgets(STDIN)) === 'memory') {
    ini_set('memory_limit', '4M');
    $text = str_repeat('x', 100_000_000);
}
exit(3);
