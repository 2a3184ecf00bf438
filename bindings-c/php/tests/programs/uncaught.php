<?php

// Throws what nobody catches.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

Stanchion\Client::connect($argv[1])->lock('a')->acquire(wait: 'x');
