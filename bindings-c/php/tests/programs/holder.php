<?php

// Holds a lock with a short ttl, renewed in the background, until it is killed.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

$lease = Stanchion\Client::connect($argv[1])->lock('a', ttl: 0.5, renew: true)->acquire();
echo "held\n";
fgets(STDIN);
