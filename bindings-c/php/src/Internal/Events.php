<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use FFI\CData;
use Stanchion\Exception\InvalidArgument;
use Stanchion\Exception\Unsupported;
use Stanchion\TaskEvent;

/**
 * What a Queue tells about what happens to its tasks.
 *
 * @internal
 */
trait Events
{
    /**
     * What happens to the tasks of the queue, if it keeps events: see configure(). A task is added, started, and then
     * done, failed, dead, cancelled, removed or put back; one that failed or was put back is started again. purge()
     * tells of none. Events tell that something happened, and not what is: a program that acts on tasks works on them,
     * or asks for them with get() and result().
     *
     * While it waits, handlers of pcntl_signal run at least every second.
     *
     * @param ?int $after begins after the event with this number; 0: with the oldest that is kept (with the next one
     *     that happens once the loop has begun)
     * @param int|float|null $wait ends when nothing has happened for so many seconds, 365 days at most; 0 only tells
     *     what there is (never ends)
     * @return \Generator<int, TaskEvent>
     * @throws InvalidArgument here
     * @throws Unsupported in the loop: the queue keeps no events
     */
    public function events(?int $after = null, mixed $wait = null): \Generator
    {
        $wait = $wait === null ? null : $this->eventsWait(Times::span('wait', $wait));
        return $this->happening(Arguments::number('after', $after, 0), $wait);
    }

    /** The library refuses what it would be asked in slices, and asks nobody. */
    private function eventsWait(int $millis): int
    {
        if ($millis > Times::LONGEST_WAIT) {
            $nowhere = Native::get()->make('int64_t');
            $this->call('stanchion_queue_events', Times::NONE, $millis, null, FFI::addr($nowhere));
        }
        return $millis;
    }

    /** @return \Generator<int, TaskEvent> */
    private function happening(int $after, ?int $wait): \Generator
    {
        $native = Native::get();
        $left = $wait;
        do {
            $slice = min($left ?? Times::SLICE, Times::SLICE);
            $list = $native->make('int64_t');
            $this->call('stanchion_queue_events', $after, $slice, null, FFI::addr($list));
            $missed = $native->ffi->stanchion_task_events_missed($list->cdata) === 1;
            $after = $native->ffi->stanchion_task_events_cursor($list->cdata);
            $read = static function (CData $record) use ($native, &$missed): TaskEvent {
                $event = TaskEvent::fromNative($native, $record, $missed);
                $missed = false;
                return $event;
            };
            $events = $native->listed('task_event', $list->cdata, $read);
            foreach ($events as $event) {
                yield $event;
            }
            $left = $events === [] && $left !== null ? $left - $slice : $wait;
        } while ($left !== 0 || $events !== []);
    }
}
