<?php

declare(strict_types=1);

namespace Stanchion\Symfony;

use Stanchion\Claim;
use Stanchion\Exception\StanchionException;
use Stanchion\Internal\Ahead;
use Stanchion\Queue;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\MessageCountAwareInterface;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * A transport for symfony/messenger: a message is a task.
 *
 * Messages are claimed one at a time, unless `prefetch` is set, under a lease that is renewed while they are handled;
 * if the worker dies, another one gets them. Retries are Messenger's: it sends a copy with a delay, and rejects the
 * message. One that ends its workers again and again, or that cannot be decoded, is dead, and can be kicked.
 */
final class StanchionTransport implements TransportInterface, MessageCountAwareInterface
{
    private readonly SerializerInterface $serializer;
    private readonly Ahead $ahead;

    /**
     * @param int|float $wait how many seconds get() waits for a message; 0 if there are other transports to look at
     * @param int $prefetch how many messages are taken at once, 1 to 1000. With more than one, they are acked together,
     *     when the next ones are taken: if the process dies before, they are handled again
     */
    public function __construct(
        private readonly Queue $queue,
        ?SerializerInterface $serializer = null,
        private readonly int|float $wait = 0,
        int $prefetch = 1,
    ) {
        $this->serializer = $serializer ?? new PhpSerializer();
        $this->ahead = new Ahead($queue, $prefetch);
    }

    public function send(Envelope $envelope): Envelope
    {
        $encoded = $this->serializer->encode($envelope);
        $delay = $envelope->last(DelayStamp::class)?->getDelay();
        $task = $envelope->last(TaskStamp::class) ?? new TaskStamp();
        $enqueued = self::call(fn () => $this->queue->enqueue(
            $task->id,
            $encoded['body'],
            delay: $delay === null ? null : max(0, $delay) / 1000,
            priority: $task->priority,
            onDuplicate: $task->onDuplicate,
            headers: $encoded['headers'] ?? [],
        ));
        return $envelope->with(new TransportMessageIdStamp($enqueued->id));
    }

    public function get(): iterable
    {
        $claim = self::call(fn () => $this->ahead->next($this->wait));
        return $claim === null ? [] : [$this->open($claim)];
    }

    public function ack(Envelope $envelope): void
    {
        self::call(fn () => $this->ahead->done(self::claim($envelope)));
    }

    /** As ack(): Messenger has sent what is to be done about the failure before. */
    public function reject(Envelope $envelope): void
    {
        $this->ack($envelope);
    }

    public function getMessageCount(): int
    {
        $stats = self::call(fn () => $this->queue->stats());
        return $stats->ready + $stats->scheduled;
    }

    private function open(Claim $claim): Envelope
    {
        try {
            $envelope = $this->serializer->decode(['body' => $claim->payload(), 'headers' => $claim->headers()]);
        } catch (MessageDecodingFailedException $error) {
            self::call(fn () => $claim->bury('cannot be decoded'));
            throw $error;
        }
        return $envelope->with(new ClaimStamp($claim), new TransportMessageIdStamp($claim->id()));
    }

    private static function claim(Envelope $envelope): Claim
    {
        return $envelope->last(ClaimStamp::class)?->claim
            ?? throw new LogicException('the envelope has no ClaimStamp: it did not come from this transport');
    }

    /**
     * @template T
     * @param \Closure(): T $call
     * @return T
     */
    private static function call(\Closure $call): mixed
    {
        try {
            return $call();
        } catch (StanchionException $error) {
            throw new TransportException($error->getMessage(), 0, $error);
        }
    }
}
