<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use PHPUnit\Framework\TestCase;

/** A test with an empty server, and the older side's connection to it. */
abstract class CompatCase extends TestCase
{
    protected Server $server;
    protected \Redis $redis;

    protected function setUp(): void
    {
        if (!extension_loaded('redis')) {
            self::markTestSkipped('the extension redis, which plays the older code, is missing (Debian: php-redis)');
        }
        $this->server = Server::fresh();
        $this->redis = $this->server->redis();
    }

    /** Has the key of a lock expire now. */
    protected function runOut(string $name): void
    {
        $this->redis->pexpire("Lock:$name", 1);
        Wait::until('the key ran out', fn () => !$this->redis->exists("Lock:$name"));
    }
}
