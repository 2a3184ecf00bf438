<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

use Stanchion\Client;
use Stanchion\Compat\HashLock;
use Stanchion\Compat\RedisLock;
use Stanchion\Compat\RedisQueue;
use Stanchion\Compat\ScriptLock;
use Stanchion\Exception\InvalidArgument;

require_once __DIR__ . '/autoload.php';

/** The drop-ins take what the classes took that they replace: a connection of phpredis or Predis. */
final class OlderClientTest extends CompatCase
{
    private const PASSWORD = 'c4n4ry-pa55w0rd';

    private \Redis $plain;

    protected function setUp(): void
    {
        parent::setUp();
        $this->plain = $this->server->redis();
    }

    public function testAConnectionOfPhpredis(): void
    {
        $this->redis->select(3);
        $this->redis->setOption(\Redis::OPT_PREFIX, 'shop: ');
        $lock = new RedisLock($this->redis);
        self::assertTrue($lock->lock('report', 0, 30));
        self::assertTrue($this->has(3, 'shop: Lock:report'));
        self::assertTrue($lock->unlock('report'));
        $script = new ScriptLock($this->redis, 'nightly');
        self::assertTrue($script->lock() && !$this->olderLocks('nightly') && $script->unlock());
        HashLock::setClient($this->redis);
        HashLock::getLock('import');
        self::assertFalse($this->olderLocks('import'));
        HashLock::releaseLock('import');
        self::assertTrue($this->olderLocks('import'));
        HashLock::setClient('memory:');
    }

    public function testTasksOfAnOlderProducerOnTheSameConnection(): void
    {
        $this->redis->select(5);
        $this->redis->setOption(\Redis::OPT_PREFIX, 'shop:');
        $this->redis->zAdd('Queue:mails', 1, 'older');
        self::assertSame('older', (new RedisQueue($this->redis))->pop('mails')['id']);
        $this->redis->setOption(\Redis::OPT_SERIALIZER, \Redis::SERIALIZER_PHP);
        $this->assertRefused('serializes or compresses task ids', fn () => new RedisQueue($this->redis));
        self::assertTrue((new RedisLock($this->redis))->lock('report', 0, 30));
    }

    public function testAPortAPasswordAndAUser(): void
    {
        // What would end a part of a URL, and a line of this file's.
        $password = self::PASSWORD . ' /:@%?#&=+ü';
        $port = self::freePort();
        $this->redis->config('SET', 'port', (string) $port);
        $this->redis->rawCommand('ACL', 'SETUSER', 'web:app', 'on', ">$password", '~*', '&*', '+@all');
        $this->redis->config('SET', 'requirepass', $password);
        try {
            foreach ([[$password], ['web:app', $password]] as $auth) {
                foreach (['127.0.0.1', 'tcp://127.0.0.1', $this->server->socket()] as $index => $host) {
                    $redis = new \Redis();
                    $redis->connect($host, $host[0] === '/' ? 0 : $port);
                    $redis->auth(count($auth) === 1 ? $auth[0] : $auth);
                    $redis->select(1 + $index);
                    self::assertTrue((new RedisLock($redis))->lock('report', 0, 30), $host);
                    self::assertSame(1, $redis->del('Lock:report'), $host);
                }
            }
        } finally {
            $this->redis->config('SET', 'requirepass', '');
            $this->redis->rawCommand('ACL', 'DELUSER', 'web:app');
            $this->redis->config('SET', 'port', '0');
        }
    }

    public function testWhatCannotBeKnownIsRefused(): void
    {
        $encrypted = new class extends \Redis {
            public function isConnected()
            {
                return true;
            }

            public function getHost()
            {
                return 'tls://store.example.org';
            }

            public function getOption($option)
            {
                return null;
            }
        };
        $cluster = (new \ReflectionClass(\RedisCluster::class))->newInstanceWithoutConstructor();
        foreach ([RedisLock::class, RedisQueue::class] as $class) {
            $call = 'new ' . substr(strrchr($class, '\\'), 1) . '(): this ';
            $this->assertRefused("{$call}Redis is not connected", fn () => new $class(new \Redis()));
            $this->assertRefused("{$call}Redis@anonymous uses TLS", fn () => new $class($encrypted), 'rediss://HOST:PORT');
            $this->assertRefused("{$call}RedisCluster is not a connection to one Redis", fn () => new $class($cluster));
            $this->assertRefused("{$call}stdClass is not a connection", fn () => new $class(new \stdClass()));
        }
        $this->assertRefused('setClient(): this stdClass', fn () => HashLock::setClient(new \stdClass()));
    }

    public function testAConnectionOfPredis(): void
    {
        self::needPredis();
        $port = self::freePort();
        $this->redis->config('SET', 'port', (string) $port);
        $this->redis->config('SET', 'requirepass', self::PASSWORD);
        $login = ['database' => 4, 'password' => self::PASSWORD];
        try {
            foreach ([
                ['host' => '127.0.0.1', 'port' => $port], ['scheme' => 'unix', 'path' => $this->server->socket()],
            ] as $place) {
                $lock = new RedisLock(new \Predis\Client($place + $login, ['prefix' => 'shop:']));
                self::assertTrue($lock->lock('report', 0, 30));
                self::assertTrue($this->has(4, 'shop:Lock:report'));
                self::assertTrue($lock->unlock('report'));
                self::assertTrue((new RedisLock(new \Predis\Client($place + $login)))->lock('report', 0, 30));
                self::assertTrue($this->has(4, 'Lock:report'));
                $this->redis->flushAll();
            }
            $several = new \Predis\Client(['tcp://127.0.0.1:1', 'tcp://127.0.0.1:2']);
            $this->assertRefused('is connected to more than one server', fn () => new RedisLock($several));
            $encrypted = new \Predis\Client(['scheme' => 'tls', 'host' => 'store.example.org']);
            $this->assertRefused('has the scheme tls', fn () => new RedisLock($encrypted), 'rediss://HOST:PORT');
        } finally {
            $this->redis->config('SET', 'requirepass', '');
            $this->redis->config('SET', 'port', '0');
        }
    }

    public function testAClientAURLAndNothing(): void
    {
        $client = Client::connect($this->server->url());
        self::assertTrue((new RedisLock($client))->lock('a', 0, 30));
        self::assertFalse((new RedisLock($this->server->url()))->lock('a', 0, 30));
        putenv('STANCHION_URL=' . $this->server->url());
        self::assertFalse((new RedisLock())->lock('a', 0, 30));
        putenv('STANCHION_URL');
        self::assertFalse($this->olderLocks('a'));
    }

    /** Whether the older kind gets a lock on the same connection. */
    private function olderLocks(string $name): bool
    {
        return (bool) $this->redis->set("Lock:$name", 'older', ['NX', 'PX' => 5]);
    }

    /** Asked on a connection without a prefix, which was there before any password. */
    private function has(int $database, string $key): bool
    {
        $this->plain->select($database);
        return $this->plain->exists($key) === 1;
    }

    private function assertRefused(string $why, \Closure $call, string $pass = 'pass a URL such as redis://HOST:PORT'): void
    {
        try {
            $call();
        } catch (InvalidArgument $error) {
            self::assertStringContainsString($why, $error->getMessage());
            self::assertStringContainsString($pass, $error->getMessage());
            self::assertSame(__FILE__, $error->getFile());
            return;
        }
        self::fail("not refused: $why");
    }

    private static function freePort(): int
    {
        $listens = stream_socket_server('tcp://127.0.0.1:0');
        return (int) substr(strrchr(stream_socket_get_name($listens, false), ':'), 1);
    }

    private static function needPredis(): void
    {
        if (!stream_resolve_include_path('Predis/autoload.php')) {
            self::markTestSkipped('Predis, which plays the older code, is missing (Debian: php-predis)');
        }
        require_once 'Predis/autoload.php';
    }
}
