<?php

// Keeps a lease that it never touches, and ends with it in one of several ways.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

[, $url, $how] = $argv;
$client = Stanchion\Client::connect($url);
$lease = $client->lock('a')->acquire();
echo "held $how\n";
switch ($how) {
    case 'exit':
        exit(0);
    case 'throw':
        set_exception_handler(static fn () => exit(0));
        throw new RuntimeException('unwinds');
    case 'fork':
        if (pcntl_fork() === 0) {
            unset($lease);
            exit(0);
        }
        pcntl_wait($status);
        break;
    case 'static':
        (static function () use ($client): void {
            static $kept;
            $kept = $client->lock('b')->acquire();
        })();
}
