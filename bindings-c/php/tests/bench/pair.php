<?php

// Acquire and release of a free lock, beside the bare calls of the extension redis and symfony/lock on it.

declare(strict_types=1);

require __DIR__ . '/turns.php';
@include_once 'Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

[, $port] = $argv;
$lock = Stanchion\Client::connect("redis://127.0.0.1:$port")->lock('bench:pair');
$redis = bare($port);
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
if (class_exists(RedisStore::class)) {
    $symfony = (new LockFactory(new RedisStore($redis, 30)))->createLock('bench:symfony', 30);
    $pairs['symfony'] = static function () use ($symfony): void {
        if (!$symfony->acquire()) {
            throw new RuntimeException('the lock of Symfony is busy');
        }
        $symfony->release();
    };
}
turns($pairs, 60, 200);
