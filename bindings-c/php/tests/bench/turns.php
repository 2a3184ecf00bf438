<?php

declare(strict_types=1);

require __DIR__ . '/../compat/autoload.php';

/**
 * Calls functions in turns, and prints how long every call took: a name and nanoseconds, a line each.
 *
 * @param array<string, callable(): void> $calls
 */
function turns(array $calls, int $turns, int $each): void
{
    for ($turn = 0; $turn < $turns; $turn++) {
        foreach ($calls as $name => $call) {
            $lines = '';
            for ($i = 0; $i < $each; $i++) {
                $begin = hrtime(true);
                $call();
                $lines .= $name . ' ' . hrtime(true) - $begin . "\n";
            }
            echo $lines;
        }
    }
}

/** A client of the extension redis. */
function bare(string $port): Redis
{
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);
    return $redis;
}
