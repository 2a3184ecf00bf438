<?php

// Jobs that do nothing, for the worker of Laravel.

declare(strict_types=1);

use Illuminate\Bus\Dispatcher as Bus;
use Illuminate\Container\Container;
use Illuminate\Contracts\Bus\Dispatcher as BusContract;
use Illuminate\Contracts\Container\Container as ContainerContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Events\Dispatcher as EventsContract;
use Illuminate\Events\Dispatcher as Events;
use Illuminate\Queue\Connectors\RedisConnector;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Illuminate\Redis\RedisManager;
use Stanchion\Laravel\StanchionConnector;

foreach (['Bus', 'Container', 'Events', 'Queue', 'Redis'] as $part) {
    @include_once "Illuminate/$part/autoload.php";
}

final class NoOpJob
{
    public static int $done = 0;

    public function handle(): void
    {
        self::$done++;
    }
}

function laravel_stanchion(string $port, int $count, int $prefetch = 1): float
{
    $url = "redis://127.0.0.1:$port";
    $connection = ['driver' => 'stanchion', 'url' => $url, 'queue' => 'bench', 'prefetch' => $prefetch];
    return worked($connection, static fn () => new StanchionConnector(), $count);
}

function laravel_ahead(string $port, int $count): float
{
    return laravel_stanchion($port, $count, PREFETCH);
}

function laravel(string $port, int $count): float
{
    $server = ['host' => '127.0.0.1', 'port' => (int) $port];
    $redis = static fn () => new RedisManager(null, 'phpredis', ['default' => $server]);
    $connection = ['driver' => 'redis', 'connection' => 'default', 'queue' => 'bench', 'retry_after' => 90];
    return worked($connection, static fn () => new RedisConnector($redis()), $count);
}

/** How many jobs per second the worker of Laravel does, as queue:work runs it. */
function worked(array $connection, callable $connector, int $count): float
{
    $container = new Container();
    $container['config'] = ['queue.default' => 'bench', 'queue.connections.bench' => $connection];
    $container->instance(ContainerContract::class, $container);
    $container->singleton(EventsContract::class, static fn () => new Events($container));
    $container->singleton(BusContract::class, static fn () => new Bus($container));
    $manager = new QueueManager($container);
    $manager->addConnector($connection['driver'], $connector);
    for ($number = 0; $number < $count; $number++) {
        $manager->connection()->push(new NoOpJob());
    }
    $worker = new Worker($manager, $container[EventsContract::class], handler(), static fn () => false);
    $begin = hrtime(true);
    $worker->daemon('bench', 'bench', new WorkerOptions(sleep: 0, stopWhenEmpty: true));
    return rate($begin, $count, NoOpJob::$done);
}

/** Nothing may fail. */
function handler(): ExceptionHandler
{
    return new class implements ExceptionHandler {
        public function report(Throwable $error): void
        {
            throw $error;
        }

        public function shouldReport(Throwable $error): bool
        {
            return true;
        }

        public function render($request, Throwable $error): never
        {
            throw $error;
        }

        public function renderForConsole($output, Throwable $error): never
        {
            throw $error;
        }
    };
}
