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
        $output = ['file', $this->log(), 'w'];
        $process = proc_open($command, [['file', '/dev/null', 'r'], $output, $output], $pipes, $folder);
        if ($process === false) {
            throw new \RuntimeException('redis-server does not start');
        }
        $this->process = $process;
        Wait::until('redis-server answers', $this->answers(...));
    }

    private function answers(): bool
    {
        if (!proc_get_status($this->process)['running']) {
            throw new \RuntimeException('redis-server has ended: ' . file_get_contents($this->log()));
        }
        try {
            return file_exists($this->socket()) && $this->redis()->ping();
        } catch (\RedisException) {
            return false;
        }
    }

    private function log(): string
    {
        return $this->folder . '/log';
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
        Wait::until('redis-server still answers', self::$shared->answers(...));
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
