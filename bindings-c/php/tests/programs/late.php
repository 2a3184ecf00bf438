<?php

// Uses a lease and a claim in a destructor, when the end of the program has let go of both.

declare(strict_types=1);

use Stanchion\Client;
use Stanchion\Exception\StanchionException;

require __DIR__ . '/../bootstrap.php';

final class Late
{
    public function __construct(private Client $client, private array $calls)
    {
    }

    public function __destruct()
    {
        foreach ($this->calls as $call) {
            try {
                $call();
                echo "done\n";
            } catch (StanchionException $error) {
                echo $error::class, ' ', $error->isRetryable() ? 'retryable' : 'final', "\n";
            }
        }
    }
}

$client = Client::connect($argv[1]);
$lease = $client->lock('a')->acquire();
[$claim] = $client->queue('q')->claim();
$late = new Late($client, [
    fn () => $lease->extend(60), fn () => $lease->check(), fn () => $lease->release(), fn () => $claim->ack(),
]);
