<?php

declare(strict_types=1);

namespace Stanchion\Tests;

use PHPUnit\Framework\TestCase;
use Stanchion\Client;

/** Tests that run on several stores. */
abstract class StoreCase extends TestCase
{
    private static int $count = 0;
    /** @var list<string> */
    private array $files = [];

    /** @return array<string, array{string}> */
    public static function stores(): array
    {
        return ['memory' => ['memory:'], 'sqlite' => ['sqlite:'], 'redis' => ['redis:']];
    }

    /** Stores that other processes can open, too. @return array<string, array{string}> */
    public static function sharedStores(): array
    {
        return ['sqlite' => ['sqlite:'], 'redis' => ['redis:']];
    }

    /** The URL of an empty store. */
    protected function url(string $kind): string
    {
        $number = ++self::$count;
        if ($kind === 'sqlite:') {
            $this->files[] = $file = sys_get_temp_dir() . '/php-' . getmypid() . "-$number.db";
            return "sqlite:$file";
        }
        if ($kind === 'redis:') {
            $server = getenv('STANCHION_TEST_REDIS') ?: self::fail('STANCHION_TEST_REDIS is not set; run tests/run');
            // The server may have the keys of an earlier run, or of another one.
            $mark = bin2hex(random_bytes(6));
            return "$server?lock_prefix=L$mark:&queue_prefix=Q$mark:";
        }
        return $kind;
    }

    protected function connect(string $kind): Client
    {
        return Client::connect($this->url($kind));
    }

    /** Waits for something to become true. */
    protected static function until(callable $condition, string $what, float $seconds = 10.0): void
    {
        $deadline = microtime(true) + $seconds;
        while (!($done = $condition()) && microtime(true) < $deadline) {
            usleep(5_000);
        }
        self::assertTrue($done, "for $seconds s not: $what");
    }

    /** @param class-string<\Throwable> $class */
    protected static function assertThrows(string $class, callable $function, string $message = ''): \Throwable
    {
        try {
            $function();
        } catch (\Throwable $thrown) {
            self::assertInstanceOf($class, $thrown, $thrown->getMessage());
            self::assertStringContainsString($message, $thrown->getMessage());
            return $thrown;
        }
        self::fail("$class was not thrown");
    }

    protected function tearDown(): void
    {
        foreach ($this->files as $file) {
            array_map('unlink', glob("$file*") ?: []);
        }
    }
}
