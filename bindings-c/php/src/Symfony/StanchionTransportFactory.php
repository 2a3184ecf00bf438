<?php

declare(strict_types=1);

namespace Stanchion\Symfony;

use Stanchion\Client;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * Makes transports of DSNs: `stanchion+` and a URL, such as `stanchion+redis://localhost`.
 *
 * Options: `queue`, its name (messages), `wait`, for how many seconds to wait for a message (0), and `prefetch`, how
 * many messages are taken at once (1).
 */
final class StanchionTransportFactory implements TransportFactoryInterface
{
    private const SCHEME = 'stanchion+';

    public function createTransport(
        #[\SensitiveParameter] string $dsn,
        array $options,
        SerializerInterface $serializer,
    ): TransportInterface {
        $queue = Client::connect(substr($dsn, strlen(self::SCHEME)))->queue($options['queue'] ?? 'messages');
        $wait = (float) ($options['wait'] ?? 0);
        return new StanchionTransport($queue, $serializer, $wait, (int) ($options['prefetch'] ?? 1));
    }

    public function supports(string $dsn, array $options): bool
    {
        return str_starts_with($dsn, self::SCHEME);
    }
}
