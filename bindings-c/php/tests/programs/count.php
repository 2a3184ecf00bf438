<?php

// Adds one to the number in a file, so many times: right only if nobody else does the same meanwhile.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

[, $url, $file, $times] = $argv;
$lock = Stanchion\Client::connect($url)->lock('count', wait: 60);
for ($i = 0; $i < (int) $times; $i++) {
    $lock->hold(fn () => file_put_contents($file, (string) (1 + (int) file_get_contents($file))));
}
