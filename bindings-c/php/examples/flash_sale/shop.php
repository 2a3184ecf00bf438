<?php

/**
 * A shop with few items and many customers: POST buys one, GET shows what is left. The stock is a plain file, which
 * only the lock protects; the order is a task that another process works on.
 */

declare(strict_types=1);

use Stanchion\Client;
use Stanchion\Exception\LockTimeout;
use Stanchion\Lease;

// Preloaded, the classes are there already.
if (!class_exists(Client::class, false)) {
    require $_SERVER['STANCHION_AUTOLOAD'] ?? __DIR__ . '/vendor/autoload.php';
}

$stock = new class ($_SERVER['SHOP_STOCK'] ?? '/tmp/stock') {
    public function __construct(private readonly string $file)
    {
    }

    public function left(): int
    {
        return (int) file_get_contents($this->file);
    }

    public function set(int $left): void
    {
        file_put_contents($this->file, (string) $left);
    }
};

header('Content-Type: text/plain');
if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    echo $stock->left(), "\n";
    return;
}
$client = Client::connect();
try {
    $order = $client->lock('stock')->hold(function (Lease $lease) use ($client, $stock): ?string {
        $left = $stock->left();
        if ($left === 0) {
            return null;
        }
        // The bank takes its time: without the lock, others would see the same stock meanwhile.
        usleep(500);
        $stock->set($left - 1);
        return $client->queue('orders')->enqueue("item:$left", ['fence' => $lease->fence()])->id;
    }, wait: 30.0);
} catch (LockTimeout) {
    http_response_code(503);
    header('Retry-After: 1');
    echo "too many customers\n";
    return;
}
if ($order === null) {
    http_response_code(410);
}
echo $order ?? 'sold out', "\n";
