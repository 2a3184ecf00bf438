<?php

// Waits in a call until a signal handler ends it, and then, if the handler throws, goes on until it is told to end.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

[, $url, $what, $how] = $argv;
$client = Stanchion\Client::connect($url);
pcntl_async_signals(true);
pcntl_signal(SIGALRM, static function () use ($how): void {
    $how === 'exit' ? exit(7) : throw new RuntimeException('too long');
});
$begin = hrtime(true);
pcntl_alarm(1);
echo "waits\n";
try {
    match ($what) {
        'lock' => $client->lock('a')->acquire(wait: 20),
        'claim' => $client->queue('q')->claim(max: 2, wait: 20),
        'claims' => $client->queues(['q'])->claim(max: 2, wait: 20),
        'worker' => $client->queue('q')->work(static fn () => usleep(2_000_000), signals: false),
    };
} catch (RuntimeException $error) {
    echo $error->getMessage(), hrtime(true) - $begin < 900_000_000 ? ' at once' : '', "\n";
}
fgets(STDIN);
