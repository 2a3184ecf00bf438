<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Claim;
use Stanchion\Exception\Indeterminate;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\StaleReceipt;
use Stanchion\Exception\StoreUnavailable;
use Stanchion\Router;
use Stanchion\WorkerEvent;

/**
 * How a worker handles tasks by their kind.
 *
 * @internal
 */
final class Routes
{
    /** The longest pause of a task whose kind has no handler, in seconds. */
    private const MOST = 60;
    /** Of so many kinds it remembers how often it has seen them. */
    private const MOST_KINDS = 1000;
    /** Between attempts to settle a task while the store does not answer, in microseconds. */
    private const AGAIN = 500_000;

    /** @var array<int> by the kind; '' for none */
    private array $seen = [];

    public function __construct(private readonly Router $router, private readonly Around $around)
    {
    }

    /**
     * Handles a task; what is thrown fails it. If it was put back: the event for that, and whether it is worth a line
     * in a log, which the first, second, fourth, eighth and so on of a kind are.
     *
     * @param \Closure(): bool $isStopped whether the worker stops
     * @return ?array{WorkerEvent, bool}
     */
    public function handle(Claim $claim, \Closure $isStopped): ?array
    {
        $kind = $claim->kind();
        $handler = $this->router->handler($kind);
        if ($handler === null) {
            return $this->putBack($claim, $isStopped);
        }
        if ($kind === null) {
            $this->around->run($claim, static fn (): mixed => $handler($claim));
            return null;
        }
        try {
            $payload = Payload::decodeObject($claim->payload());
        } catch (\JsonException $error) {
            $reason = "the payload of kind \"$kind\" is {$error->getMessage()}";
            self::patiently($claim, $isStopped, static fn () => $claim->bury($reason));
            return null;
        }
        $returned = $this->around->run($claim, static fn (): mixed => $handler($payload, $claim));
        if ($returned !== null) {
            self::give($claim, $returned, $isStopped);
        }
        return null;
    }

    /** Acks with what a handler has returned. If that cannot be a result, its work is done, and would be done again. */
    private static function give(Claim $claim, mixed $returned, \Closure $isStopped): void
    {
        try {
            $result = Payload::json($returned);
            self::patiently($claim, $isStopped, static fn () => $claim->ack($result));
        } catch (\JsonException | InvalidArgument $error) {
            $reason = "what the handler of kind \"{$claim->kind()}\" returned is no result: {$error->getMessage()}";
            self::patiently($claim, $isStopped, static fn () => $claim->bury($reason));
        }
    }

    /** @return array{WorkerEvent, bool} */
    private function putBack(Claim $claim, \Closure $isStopped): array
    {
        $kind = $claim->kind();
        $times = $this->seen[$kind ?? ''] ?? 0;
        if ($times > 0 || count($this->seen) < self::MOST_KINDS) {
            $this->seen[$kind ?? ''] = $times + 1;
        }
        $delay = min(self::MOST, 2 ** min($times, 6));
        self::patiently($claim, $isStopped, static fn () => $claim->putBack($delay));
        $why = $kind === null ? 'the task has no kind' : "this worker has no handler of kind \"$kind\"";
        return [WorkerEvent::unknownKind($claim, "$why; put back for $delay s"), ($times & ($times + 1)) === 0];
    }

    /**
     * Settles a claim. While the store does not answer it tries again, for what is left of the lease, unless the worker
     * stops: a failure would count as an attempt.
     */
    private static function patiently(Claim $claim, \Closure $isStopped, \Closure $settle): void
    {
        // A claim that is being settled has no time left.
        $until = microtime(true) + $claim->remaining();
        while (true) {
            try {
                $settle();
                return;
            } catch (StaleReceipt) {
                // The handler has settled it, or it was lost, which the worker tells.
                return;
            } catch (StoreUnavailable | Indeterminate $error) {
                if (microtime(true) > $until || $isStopped()) {
                    throw $error;
                }
            }
            usleep(self::AGAIN);
        }
    }
}
