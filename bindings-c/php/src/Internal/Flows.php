<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Exception\Indeterminate;
use Stanchion\Exception\QueueFull;
use Stanchion\FlowInfo;
use Stanchion\FlowPage;
use Stanchion\Task;

/**
 * What a Queue does with flows.
 *
 * @internal
 */
trait Flows
{
    /**
     * Puts a flow in, whole: tasks of which some wait for others. Whether there was none with its id; one that is there
     * stays as it is. Whoever claims from the queue puts each task into its queue as soon as what it waits for has
     * come about, also if that queue is at its limit. Every flow ends: a task that can never run any more is skipped,
     * and so on down. It is kept for 7 days after its end, and of a queue the last 1000 that have ended are.
     *
     * A node is what enqueueMany() takes, and its name is the id of its task; in its queue that has the id `FLOW/NAME`.
     * `delay` counts from when it is put into its queue; `onDuplicate` is not for nodes. As an array it may also have:
     *
     * - `queue`: the queue of its task (the flow's)
     * - `after`: a name or an array of them; it runs after their success, and is skipped if one ends otherwise
     * - `afterEnd`: in the same way, after their end, whatever came of them
     * - `afterFailure`: in the same way, after one of them has ended without success; otherwise it is not needed
     * - `afterAll`: of all others, but for those that have it, too: `then` when all have succeeded, `failed` as soon as
     *   one has not, `finally` when all have ended, also if the flow is cancelled
     *
     * @param string $id a queue has it once: with the longest name of its nodes and a slash 512 bytes at most, without
     *     control characters
     * @param iterable<Task|string|array<mixed>> $nodes 10,000 at most, with 64 MiB of payloads in all
     * @throws QueueFull the queue is at its limit
     * @throws Indeterminate no answer came in time
     */
    public function enqueueFlow(string $id, iterable $nodes): bool
    {
        $native = Native::get();
        $records = new NodeRecords($native, $nodes, true);
        $wasPut = $native->make('int32_t');
        $place = FFI::addr($wasPut);
        $this->call('stanchion_queue_enqueue_flow', $id, strlen($id), $records->array, $records->count, $place);
        return $wasPut->cdata === 1;
    }

    /**
     * Adds nodes to a flow that runs: whether it does. As long as the caller's task is a node of it, it runs. The new
     * ones may come after nodes that are there, and those that wait for all wait for these, too.
     *
     * @param iterable<Task|string|array<mixed>> $nodes as in enqueueFlow(), without `afterAll`; 1000 at most, with
     *     4 MiB of payloads
     * @throws Indeterminate no answer came in time
     */
    public function addToFlow(string $id, iterable $nodes): bool
    {
        $records = new NodeRecords(Native::get(), $nodes, false);
        $arguments = [$id, strlen($id), $records->array, $records->count];
        return $this->call('stanchion_queue_add_to_flow', ...$arguments) === self::OK;
    }

    /** A flow with all its nodes; null if it is not known. */
    public function getFlow(string $id): ?FlowInfo
    {
        $found = Native::get()->make('int64_t');
        $status = $this->call('stanchion_queue_get_flow', $id, strlen($id), FFI::addr($found));
        return $status === self::OK ? FlowInfo::allFromNative($found->cdata)[0] : null;
    }

    /**
     * The flows without their nodes, a page at a time: those that run, the latest first, then those that have ended.
     *
     * @param ?string $page what the last page had in `next` (the first)
     * @param int $max 1 to 1000, and never more than 100
     */
    public function listFlows(?string $page = null, int $max = 100): FlowPage
    {
        Arguments::max('max', $max);
        $found = Native::get()->make('int64_t');
        $length = $page === null ? 0 : strlen($page);
        $this->call('stanchion_queue_list_flows', $page, $length, $max, FFI::addr($found));
        return FlowPage::fromNative($found->cdata);
    }

    /**
     * Cancels a flow: whether there is one that runs. Tasks that wait go, those that run are told, see cancel(), and of
     * the nodes that are not in their queues only those still run that wait for nothing but the end of others.
     *
     * @throws Indeterminate no answer came: it may be cancelled
     */
    public function cancelFlow(string $id): bool
    {
        return $this->call('stanchion_queue_cancel_flow', $id, strlen($id)) === self::OK;
    }

    /**
     * Tries again what did not succeed in a flow: nodes that are dead, cancelled or skipped, with attempts starting
     * again. Those that succeeded do not run again. Whether there is such a flow.
     *
     * @throws Indeterminate no answer came: it may be tried again
     */
    public function retryFlow(string $id): bool
    {
        return $this->call('stanchion_queue_retry_flow', $id, strlen($id)) === self::OK;
    }
}
