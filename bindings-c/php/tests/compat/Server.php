<?php

declare(strict_types=1);

namespace Stanchion\Tests\Compat;

/** A redis-server of this process, on a socket in a folder of its own. */
final class Server
{
    private static ?self $shared = null;

    /** @var resource */
    private $process;

    private function __construct(private string $folder)
    {
        $command = ['redis-server', '--port', '0', '--unixsocket', $this->socket(), '--save', '', '--appendonly', 'no'];
        $quiet = [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']];
        $process = proc_open($command, $quiet, $pipes, $folder);
        if ($process === false) {
            throw new \RuntimeException('redis-server does not start');
        }
        $this->process = $process;
        Wait::until('redis-server answers', fn () => file_exists($this->socket()));
    }

    /** The same for all tests, empty. */
    public static function fresh(): self
    {
        if (self::$shared === null) {
            $folder = sys_get_temp_dir() . '/stanchion-compat-' . getmypid();
            mkdir($folder, 0700);
            self::$shared = $server = new self($folder);
            register_shutdown_function(fn () => $server->stop());
        }
        self::$shared->redis()->flushAll();
        return self::$shared;
    }

    public function socket(): string
    {
        return $this->folder . '/redis.sock';
    }

    /** What Stanchion connects to. */
    public function url(string $parameters = ''): string
    {
        return 'redis+unix://' . $this->socket() . $parameters;
    }

    /** A connection of the phpredis extension. */
    public function redis(): \Redis
    {
        return self::at($this->socket());
    }

    public static function at(string $socket): \Redis
    {
        $redis = new \Redis();
        $redis->connect($socket);
        return $redis;
    }

    private function stop(): void
    {
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
        array_map('unlink', glob($this->folder . '/*') ?: []);
        rmdir($this->folder);
    }
}
