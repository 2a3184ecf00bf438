<?php

// Messages that do nothing, for the worker of symfony/messenger.

declare(strict_types=1);

use Stanchion\Symfony\StanchionTransportFactory;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Symfony\Component\Messenger\Worker;

@include_once 'Symfony/Component/Messenger/autoload.php';
@include_once 'Symfony/Component/Messenger/Bridge/Redis/autoload.php';

final class NoOpMessage
{
    public function __construct(public readonly int $number)
    {
    }
}

function messenger_stanchion(string $port, int $count, int $prefetch = 1): float
{
    $dsn = "stanchion+redis://127.0.0.1:$port";
    $options = ['prefetch' => $prefetch];
    return handled((new StanchionTransportFactory())->createTransport($dsn, $options, new PhpSerializer()), $count);
}

function messenger_ahead(string $port, int $count): float
{
    return messenger_stanchion($port, $count, PREFETCH);
}

function messenger(string $port, int $count): float
{
    $dsn = "redis://127.0.0.1:$port/messages";
    $options = ['delete_after_ack' => true];
    return handled((new RedisTransportFactory())->createTransport($dsn, $options, new PhpSerializer()), $count);
}

/** How many messages per second the worker of Messenger handles. */
function handled(TransportInterface $transport, int $count): float
{
    for ($number = 0; $number < $count; $number++) {
        $transport->send(new Envelope(new NoOpMessage($number)));
    }
    $done = 0;
    $worker = null;
    $handler = static function (NoOpMessage $message) use (&$done, &$worker, $count): void {
        if (++$done === $count) {
            $worker->stop();
        }
    };
    $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([NoOpMessage::class => [$handler]]))]);
    $worker = new Worker(['messages' => $transport], $bus);
    $begin = hrtime(true);
    $worker->run();
    return rate($begin, $count, $done);
}
