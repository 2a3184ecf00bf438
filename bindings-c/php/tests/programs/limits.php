<?php

// What php-fpm serves in the tests of limiters: a take, as the query says. The answer has how it ended, and when it was asked
// for and answered, in microseconds.

declare(strict_types=1);

use Stanchion\Client;

if (!class_exists(Client::class, false)) {
    require __DIR__ . '/../bootstrap.php';
}

$clock = static fn (): int => (int) round(1e6 * microtime(true));
$limiter = Client::connect(getenv('STANCHION_TEST_URL'))
    ->limiter($_GET['name'], (int) $_GET['n'], per: (int) $_GET['per'], burst: (int) $_GET['burst']);
if (isset($_GET['note'])) {
    file_put_contents($_GET['note'], getmypid());
}
$begun = $clock();
$taken = isset($_GET['wait']) ? $limiter->take(wait: (float) $_GET['wait']) : $limiter->tryTake();
$ended = $clock();
echo json_encode(get_object_vars($taken) + ['begun' => $begun, 'ended' => $ended, 'pid' => getmypid()]);
