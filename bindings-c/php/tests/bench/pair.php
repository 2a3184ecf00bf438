<?php

// Acquire and release of a free lock, beside the bare calls of the extension redis, in turns. Prints nanoseconds:
// "ours" or "bare", then a number, a line each.

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

const TURNS = 60;
const PAIRS = 200;
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

[, $port] = $argv;
$lock = Stanchion\Client::connect("redis://127.0.0.1:$port")->lock('bench:pair');
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$script = $redis->script('load', RELEASE);

$pairs = [
    'ours' => static function () use ($lock): void {
        $lock->acquire()->release();
    },
    'bare' => static function () use ($redis, $script): void {
        $token = bin2hex(random_bytes(16));
        if (!$redis->set('bench:bare', $token, ['nx', 'px' => 30000]) || !$redis->evalSha($script, ['bench:bare', $token], 1)) {
            throw new RuntimeException('the bare lock is busy');
        }
    },
];
for ($turn = 0; $turn < TURNS; $turn++) {
    foreach ($pairs as $name => $pair) {
        for ($i = 0; $i < PAIRS; $i++) {
            $begin = hrtime(true);
            $pair();
            echo $name, ' ', hrtime(true) - $begin, "\n";
        }
    }
}
