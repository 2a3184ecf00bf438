<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Claim;
use Stanchion\Exception\Forked;
use Stanchion\Exception\StanchionException;
use Stanchion\Queue;
use Stanchion\Verdict;

/**
 * Takes tasks of a queue one at a time, or several ahead: then they are acked together, too, when the next ones are
 * taken, so that many short tasks share a round trip. What is left at the end goes back.
 *
 * @internal
 */
final class Ahead
{
    /** How long an ack waits for others, in nanoseconds, if it is not the task at hand that takes so long. */
    private const PATIENCE = 50_000_000;

    /** @var ?\WeakMap<self, true> */
    private static ?\WeakMap $all = null;

    /** @var list<Claim> not begun */
    private array $claims = [];
    /** @var list<Claim> to be acked */
    private array $done = [];
    private int $doneSince = 0;

    /** @param int $prefetch 1 to 1000 tasks are taken at once */
    public function __construct(private readonly Queue $queue, private readonly int $prefetch)
    {
        Arguments::max('prefetch', $prefetch);
        if (self::$all === null) {
            self::$all = new \WeakMap();
            register_shutdown_function(self::closeAll(...));
        }
        self::$all[$this] = true;
    }

    /** @param int|float $wait for so many seconds at most */
    public function next(int|float $wait): ?Claim
    {
        do {
            if ($this->claims === []) {
                $this->settle(fn (array $verdicts) => $verdicts === []
                    ? [[], $this->queue->claim($this->prefetch, wait: $wait)]
                    : $this->queue->settleAndClaim($verdicts, $this->prefetch, wait: $wait));
            }
            $claim = array_shift($this->claims);
        } while ($claim !== null && $this->isLost($claim));
        return $claim;
    }

    /** Acks a task, at once or together with others. */
    public function done(Claim $claim): void
    {
        if ($this->prefetch === 1) {
            $claim->ack();
            return;
        }
        if ($this->done === []) {
            $this->doneSince = hrtime(true);
        }
        $this->done[] = $claim;
        if (hrtime(true) - $this->doneSince > self::PATIENCE) {
            $this->settle(fn (array $verdicts) => [$this->queue->settle($verdicts), $this->claims]);
        }
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @param \Closure(list<Verdict>): array{list<?StanchionException>, list<Claim>} $call */
    private function settle(\Closure $call): void
    {
        [$failures, $this->claims] = $call(array_map(static fn (Claim $claim) => $claim->acked(), $this->done));
        foreach ($this->done as $index => $claim) {
            if ($failures[$index] !== null) {
                $this->log($failures[$index]->getMessage(), $claim);
            }
        }
        $this->done = [];
    }

    /** Somebody else may have it. */
    private function isLost(Claim $claim): bool
    {
        $lost = !$claim->isValid();
        if ($lost) {
            $this->log('the claim was lost before the task was begun', $claim);
        }
        return $lost;
    }

    private function log(string $what, ?Claim $claim = null): void
    {
        $task = $claim === null ? '' : " task \"{$claim->id()}\":";
        error_log("stanchion: queue \"{$this->queue->name()}\":$task $what");
    }

    private function close(): void
    {
        if ($this->done === [] && $this->claims === []) {
            return;
        }
        $unbegun = array_map(static fn (Claim $claim) => $claim->returned(), $this->claims);
        try {
            $this->settle(fn (array $verdicts) => [$this->queue->settle([...$verdicts, ...$unbegun]), []]);
        } catch (Forked) {
            // They are the parent's.
        } catch (StanchionException $error) {
            $this->log($error->getMessage());
        }
        [$this->done, $this->claims] = [[], []];
    }

    /** Before the package lets go of what is left: that would count as failed. */
    private static function closeAll(): void
    {
        foreach (self::$all ?? [] as $ahead => $_) {
            $ahead->close();
        }
    }
}
