<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use FFI;
use Stanchion\Exception\QueueFull;
use Stanchion\KeyInfo;
use Stanchion\KeyPage;
use Stanchion\Rate;

/**
 * What a Queue does with keys.
 *
 * @internal
 */
trait Keys
{
    /**
     * Gives a key limits of its own, at once, also while its tasks run; those that run too many end first. With none
     * given, takes them away.
     *
     * @param ?int $concurrency how many of its tasks are in line and running at most (as the queue has it)
     * @param ?Rate $rate how many of its tasks are delivered per time (as the queue has it)
     * @param ?int $weight its share beside other keys, 1 to 100: one of weight 3 gets three tasks done while one of
     *     weight 1 gets one (1)
     * @throws QueueFull 100000 keys have limits of their own
     */
    public function limitKey(
        string $key,
        ?int $concurrency = null,
        ?Rate $rate = null,
        ?int $weight = null,
    ): void {
        $native = Native::get();
        $limits = $native->defaults('stanchion_key_limits', 'stanchion_key_limits_init');
        $limits->concurrency = Arguments::number('concurrency', $concurrency, 0);
        $rate?->toNative('rate', $limits->rate);
        $limits->weight = Arguments::number('weight', $weight, 0);
        $isGiven = $concurrency !== null || $rate !== null || $weight !== null;
        $this->call('stanchion_queue_limit_key', $key, strlen($key), $isGiven ? FFI::addr($limits) : null);
    }

    /** What is known of a key: how many of its tasks run, stand in line and are held, and what limits it has. */
    public function getKey(string $key): KeyInfo
    {
        $found = Native::get()->make('int64_t');
        $this->call('stanchion_queue_get_key', $key, strlen($key), FFI::addr($found));
        return KeyInfo::allFromNative($found->cdata)[0];
    }

    /**
     * The keys that hold tasks, then those that have limits of their own and hold none, a page at a time.
     *
     * @param ?string $page what the last page had in `next` (the first)
     * @param int $max 1 to 1000, and never more than 100
     */
    public function listKeys(?string $page = null, int $max = 100): KeyPage
    {
        Arguments::max('max', $max);
        $found = Native::get()->make('int64_t');
        $length = $page === null ? 0 : strlen($page);
        $this->call('stanchion_queue_list_keys', $page, $length, $max, FFI::addr($found));
        return KeyPage::fromNative($found->cdata);
    }
}
