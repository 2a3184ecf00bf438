<?php

declare(strict_types=1);

namespace Stanchion\Laravel;

use Illuminate\Contracts\Queue\Queue;
use Illuminate\Queue\Connectors\ConnectorInterface;
use Stanchion\Client;

/**
 * Makes queues of the configuration: `url` (STANCHION_URL), `queue` (default), `block_for` in seconds (0),
 * `after_commit` (false), `prefetch`, how many jobs are taken at once (1).
 *
 *     Queue::addConnector('stanchion', fn () => new StanchionConnector());
 */
final class StanchionConnector implements ConnectorInterface
{
    public function connect(#[\SensitiveParameter] array $config): Queue
    {
        return new StanchionQueue(
            Client::connect($config['url'] ?? null),
            $config['queue'] ?? 'default',
            $config['block_for'] ?? 0,
            $config['after_commit'] ?? false,
            $config['prefetch'] ?? 1,
        );
    }
}
