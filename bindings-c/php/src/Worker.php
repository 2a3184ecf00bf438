<?php

declare(strict_types=1);

namespace Stanchion;

use FFI;
use Stanchion\Internal\Arguments;
use Stanchion\Internal\Around;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Handles;
use Stanchion\Internal\Native;
use Stanchion\Internal\Routes;
use Stanchion\Internal\Signals;
use Stanchion\Internal\Times;

/**
 * Takes tasks of a queue and calls a function with each claim, one at a time; or, with a Router, the handler of the
 * task's kind. Made by Queue::worker().
 *
 * A function that returns is acked; one that throws is nacked, with the default pause of Claim::nack(). What it
 * settles itself is left alone. While it runs, its claim is renewed in the background; if the process dies, another
 * worker gets the task when its lease ends.
 */
final class Worker
{
    /** How long a signal or stop() may go unnoticed while there are no tasks, in milliseconds. */
    private const SLICE = 50;
    private const OK = 0;
    private const OVER = 8;

    /** @var callable(Claim): mixed|Routes */
    private $handler;
    private readonly Around $around;
    /** @var ?callable(WorkerEvent): mixed */
    private $onEvent;
    private readonly int $leaseMillis;
    private readonly int $maxRunMillis;
    private readonly int $prefetch;
    private readonly int $graceMillis;
    private readonly int $timeoutMillis;
    /** @var ?\Closure(): void stops the library's worker, while it runs */
    private ?\Closure $passOn = null;
    private bool $hurried = false;
    private bool $stopped = false;
    private bool $running = false;

    /** @internal */
    public function __construct(
        private readonly Client $client,
        private readonly Queue $queue,
        callable|Router $handler,
        mixed $lease,
        mixed $maxRun,
        ?callable $onEvent,
        ?int $prefetch,
        mixed $grace,
        mixed $timeout,
        callable|iterable|null $around,
    ) {
        $this->around = new Around($around);
        $this->handler = $handler instanceof Router ? new Routes($handler, $this->around) : $handler;
        $this->onEvent = $onEvent;
        $this->leaseMillis = Times::span('lease', $lease);
        $this->maxRunMillis = Times::span('maxRun', $maxRun);
        $this->graceMillis = Times::span('grace', $grace);
        $this->timeoutMillis = Times::span('timeout', $timeout);
        $this->prefetch = Arguments::number('prefetch', $prefetch, 1, Arguments::MOST);
    }

    /**
     * Works until stop(). With the extension pcntl, SIGTERM and SIGINT stop it in order, as stop() does; a second
     * signal ends the grace, and a third does what it did before.
     *
     * @param bool $untilEmpty end when no task is ready or claimed any more
     * @param bool $signals whether signals are caught
     */
    public function run(bool $untilEmpty = false, bool $signals = true): WorkerReport
    {
        if ($this->running) {
            throw Errors::invalid('the worker is already running');
        }
        $native = Native::get();
        // Its end ends the worker, also if a signal handler throws before the worker runs.
        $places = new Handles($native, 1, 'stanchion_worker_free');
        $worker = $this->open($native, $untilEmpty, $places);
        $this->passOn = function () use ($native, $worker): void {
            $how = $this->hurried ? 'stanchion_worker_hurry' : 'stanchion_worker_stop';
            $native->ffi->$how($worker, null);
        };
        $caught = $signals ? Signals::catch($this->stop(...), $this->hurry(...)) : null;
        $this->running = true;
        try {
            $this->serve($native, $worker);
            $this->tell($native, $worker);
            $report = $native->record('stanchion_worker_report');
            $native->call('stanchion_worker_get_report', $worker, FFI::addr($report));
            return WorkerReport::fromNative($report);
        } finally {
            $this->running = false;
            $this->passOn = null;
            $caught?->restore();
            $native->ffi->stanchion_worker_free($worker);
        }
    }

    /**
     * Take no more tasks; run() returns when the one at hand is done. It has its grace; then the claim counts as lost
     * to the handler (Loss::Stopped), and its task goes back without counting an attempt if the handler throws. A
     * handler cannot be stopped from outside: if it goes on for another 2 s, its lease is left to run out. May be
     * called by the handler, by a signal handler, and before run(), which then takes no task.
     */
    public function stop(): void
    {
        $this->stopped = true;
        if ($this->passOn !== null) {
            ($this->passOn)();
        }
    }

    /** As stop(), and no grace is left. */
    public function hurry(): void
    {
        $this->hurried = true;
        $this->stop();
    }

    private function open(Native $native, bool $untilEmpty, Handles $places): int
    {
        $options = $native->defaults('stanchion_worker_options', 'stanchion_worker_options_init');
        $options->lease_ms = $this->leaseMillis;
        $options->max_run_ms = $this->maxRunMillis;
        $options->concurrency = $this->prefetch;
        $options->grace_ms = $this->graceMillis;
        $options->timeout_ms = $this->timeoutMillis;
        $options->until_empty = (int) $untilEmpty;
        $this->queue->call('stanchion_worker_open', FFI::addr($options), $places->places);
        return $places->places[0];
    }

    private function serve(Native $native, int $worker): void
    {
        if ($this->stopped) {
            $this->stop();
        }
        do {
            $claim = new Handles($native, 1, Claim::FREE);
            $status = $native->call('stanchion_worker_poll', $worker, self::SLICE, $claim->places);
            if ($status === self::OK) {
                $this->attend($native, $worker, new Claim($this->client, $claim->places[0]));
            }
            $this->tell($native, $worker);
        } while ($status !== self::OVER);
    }

    private function attend(Native $native, int $worker, Claim $claim): void
    {
        $reason = $putBack = null;
        try {
            if ($this->handler instanceof Routes) {
                $putBack = $this->handler->handle($claim, fn (): bool => $this->stopped);
            } else {
                $this->around->run($claim, fn (): mixed => ($this->handler)($claim));
            }
        } catch (\Throwable $thrown) {
            $reason = self::describe($thrown);
        }
        if ($reason === null) {
            $native->call('stanchion_worker_complete', $worker, $claim->handle());
        } else {
            $native->call('stanchion_worker_fail', $worker, $claim->handle(), $reason, strlen($reason));
        }
        if ($putBack !== null) {
            $this->tellOne(...$putBack);
        }
    }

    private static function describe(\Throwable $thrown): string
    {
        $text = $thrown::class . ($thrown->getMessage() === '' ? '' : ": {$thrown->getMessage()}");
        // The library takes only UTF-8; without mbstring this is what replaces other bytes.
        return htmlspecialchars_decode(htmlspecialchars($text, ENT_NOQUOTES | ENT_SUBSTITUTE, 'UTF-8'), ENT_NOQUOTES);
    }

    private function tell(Native $native, int $worker): void
    {
        do {
            $record = $native->record('stanchion_worker_event');
            $more = $native->call('stanchion_worker_get_event', $worker, FFI::addr($record)) === self::OK;
            if ($more) {
                $this->tellOne(WorkerEvent::fromNative($record));
            }
        } while ($more);
    }

    private function tellOne(WorkerEvent $event, bool $isNews = true): void
    {
        if ($this->onEvent !== null) {
            ($this->onEvent)($event);
            return;
        }
        $what = match ($event->kind) {
            WorkerEventKind::Failed => "task \"$event->id\" failed (attempt $event->attempt): $event->reason",
            WorkerEventKind::Dead => "task \"$event->id\" is dead after attempt $event->attempt: $event->reason",
            WorkerEventKind::Lost => "the claim on task \"$event->id\" was lost",
            WorkerEventKind::Stuck => "the handler of task \"$event->id\" was asked to end, and is still running",
            WorkerEventKind::StoreFailed, WorkerEventKind::StoreBack => $event->reason,
            WorkerEventKind::SlotsMissed => "schedule \"$event->id\": $event->reason",
            WorkerEventKind::UnknownKind => "task \"$event->id\": $event->reason",
            default => null,
        };
        if ($what !== null && $isNews) {
            error_log("stanchion: queue \"{$this->queue->name()}\": $what");
        }
    }
}
