<?php

declare(strict_types=1);

namespace Stanchion\Tests\Symfony;

use Stanchion\Client;
use Stanchion\OnDuplicate;
use Stanchion\Queue;
use Stanchion\Symfony\StanchionTransport;
use Stanchion\Symfony\StanchionTransportFactory;
use Stanchion\Symfony\TaskStamp;
use Stanchion\TaskState;
use Stanchion\Tests\Compat\CompatCase;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

require_once __DIR__ . '/../compat/autoload.php';
@include_once 'Symfony/Component/Messenger/autoload.php';

/** symfony/messenger on StanchionTransport. */
final class StanchionTransportTest extends CompatCase
{
    private Queue $queue;
    private StanchionTransport $transport;

    protected function setUp(): void
    {
        if (!interface_exists(\Symfony\Component\Messenger\Transport\TransportInterface::class)) {
            self::markTestSkipped('symfony/messenger is missing (Debian: php-symfony-messenger)');
        }
        parent::setUp();
        $this->queue = Client::connect($this->server->url())->queue('messages');
        $this->transport = new StanchionTransport($this->queue);
    }

    /** @param object ...$stamps */
    private static function message(string $text, object ...$stamps): Envelope
    {
        return new Envelope((object) ['text' => $text], $stamps);
    }

    public function testMessageIsSentReceivedAndAcknowledged(): void
    {
        $sent = $this->transport->send(self::message("\0 and \u{20ac}"));
        self::assertSame(1, $this->transport->getMessageCount());

        [$received] = $this->transport->get();
        self::assertSame("\0 and \u{20ac}", $received->getMessage()->text);
        $id = fn (Envelope $envelope) => $envelope->last(TransportMessageIdStamp::class)->getId();
        self::assertSame($id($sent), $id($received));
        self::assertSame([], $this->transport->get());
        $this->transport->ack($received);
        self::assertNull($this->queue->get($id($sent)));
    }

    public function testDelayAndPriority(): void
    {
        $later = $this->transport->send(self::message('later', new DelayStamp(3_600_000)));
        $this->transport->send(self::message('second'));
        $this->transport->send(self::message('first', new TaskStamp(priority: 9)));
        self::assertSame(3, $this->transport->getMessageCount());
        $due = $this->queue->get($later->last(TransportMessageIdStamp::class)->getId())?->due;
        self::assertEqualsWithDelta(microtime(true) + 3600, $due, 5.0);

        self::assertSame('first', $this->transport->get()[0]->getMessage()->text);
        self::assertSame('second', $this->transport->get()[0]->getMessage()->text);
        self::assertSame([], $this->transport->get());
    }

    public function testDoublesAreRecognisedByTheirId(): void
    {
        $this->transport->send(self::message('one', new TaskStamp('user:7')));
        $this->transport->send(self::message('two', new TaskStamp('user:7', onDuplicate: OnDuplicate::replace())));
        self::assertSame('two', $this->transport->get()[0]->getMessage()->text);
        self::assertSame([], $this->transport->get());
    }

    public function testRejectedMessageIsGone(): void
    {
        $this->transport->send(self::message('one'));
        $this->transport->reject($this->transport->get()[0]);
        self::assertSame(0, $this->transport->getMessageCount());
        self::assertSame([], $this->transport->get());
    }

    public function testMessageOfAnotherWorkerIsNotAcknowledged(): void
    {
        $this->transport->send(self::message('one', new TaskStamp('one')));
        [$received] = $this->transport->get();
        self::assertTrue($this->queue->remove('one'));
        $this->expectException(TransportException::class);
        $this->transport->ack($received);
    }

    public function testEnvelopeFromElsewhereIsRefused(): void
    {
        $this->expectException(LogicException::class);
        $this->transport->ack(self::message('one'));
    }

    public function testMessageThatCannotBeDecodedIsDead(): void
    {
        $this->queue->enqueue('garbled', 'nonsense');
        try {
            $this->transport->get();
            self::fail('it was decoded');
        } catch (MessageDecodingFailedException) {
            self::assertSame(TaskState::Dead, $this->queue->get('garbled')?->state);
        }
    }

    /**
     * @testWith [1]
     *           [2]
     *           [9]
     */
    public function testWorkerOfMessenger(int $prefetch): void
    {
        $transport = (new StanchionTransportFactory())->createTransport(
            'stanchion+' . $this->server->url(),
            ['queue' => 'emails', 'wait' => 5, 'prefetch' => $prefetch],
            new PhpSerializer(),
        );
        $handled = [];
        $worker = null;
        $handler = function (object $message) use (&$handled, &$worker): void {
            $handled[] = $message->text;
            count($handled) < 3 || $worker->stop();
        };
        $locator = new HandlersLocator([\stdClass::class => [$handler]]);
        foreach (['a', 'b', 'c'] as $text) {
            $transport->send(self::message($text));
        }
        $worker = new Worker(['emails' => $transport], new MessageBus([new HandleMessageMiddleware($locator)]));
        $worker->run();
        // What is left is settled when the transport is gone, or the program ends.
        $transport = $worker = null;

        self::assertSame(['a', 'b', 'c'], $handled);
        self::assertSame(0, Client::connect($this->server->url())->queue('emails')->count());
    }

    public function testMessagesTakenAhead(): void
    {
        $transport = new StanchionTransport($this->queue, prefetch: 3);
        foreach (['a', 'b', 'c', 'd', 'e'] as $text) {
            $transport->send(self::message($text));
        }
        foreach (['a', 'b', 'c'] as $text) {
            [$received] = $transport->get();
            self::assertSame($text, $received->getMessage()->text);
            $transport->ack($received);
        }
        self::assertSame([3, 2], [$this->queue->stats()->claimed, $this->queue->stats()->ready]);
        [$received] = $transport->get();
        self::assertSame('d', $received->getMessage()->text);
        self::assertSame([2, 0], [$this->queue->stats()->claimed, $this->queue->stats()->ready]);
        unset($transport);
        self::assertSame(1, $this->queue->stats()->ready, 'the one that was not begun');
    }

    public function testFactoryKnowsItsDsns(): void
    {
        self::assertTrue((new StanchionTransportFactory())->supports('stanchion+redis://localhost', []));
        self::assertFalse((new StanchionTransportFactory())->supports('redis://localhost', []));
    }
}
