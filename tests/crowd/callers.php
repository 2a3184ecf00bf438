<?php

// Fifty processes that want the same value. Arguments: URL, folder, how many callers there are in all.

declare(strict_types=1);

require __DIR__ . '/../../bindings-c/php/tests/bootstrap.php';

[, $url, $folder, $everybody] = $argv;

$compute = function () use ($folder, $everybody): array {
    for ($waited = 0; filesize("$folder/arrived") < (int) $everybody; $waited += 5) {
        if ($waited > 60_000) {
            throw new RuntimeException('the others did not come');
        }
        usleep(5_000);
        clearstatcache();
    }
    file_put_contents("$folder/computed", 'php ' . hrtime(true) . "\n", FILE_APPEND);
    return ['price' => 9.99];
};

$children = [];
for ($number = 0; $number < 50; $number++) {
    $child = pcntl_fork();
    if ($child === 0) {
        $client = Stanchion\Client::connect($url);
        file_put_contents("$folder/arrived", 'x', FILE_APPEND);
        $value = $client->cached('price:7', ttl: 60, compute: $compute, wait: 60);
        file_put_contents("$folder/php.$number", json_encode([$value, (string) hrtime(true)]));
        exit(0);
    }
    $children[] = $child;
}
foreach ($children as $child) {
    pcntl_waitpid($child, $status);
}
$told = array_map(fn (string $path): mixed => json_decode(file_get_contents($path)), glob("$folder/php.*"));
echo json_encode($told), "\n";
