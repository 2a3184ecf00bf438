<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Native;

/**
 * Some of a queue's flows, without their nodes: those that run, the latest first, then those that have ended.
 *
 * @implements \IteratorAggregate<int, FlowInfo>
 */
final class FlowPage implements \Countable, \IteratorAggregate
{
    /** A status of the library: this was not the last page. */
    private const OK = 0;

    /**
     * @internal
     * @param list<FlowInfo> $flows
     */
    public function __construct(
        public readonly array $flows,
        /** Gets the next page; null if this was the last. */
        public readonly ?string $next,
    ) {
    }

    /**
     * A stanchion_flows, which is freed.
     *
     * @internal
     */
    public static function fromNative(int $flows): self
    {
        $native = Native::get();
        try {
            $text = $native->make('stanchion_text');
            $status = $native->call('stanchion_flows_next', $flows, \FFI::addr($text));
            $next = $status === self::OK ? $native->text($text) : null;
        } catch (\Throwable $error) {
            $native->ffi->stanchion_flows_free($flows);
            throw $error;
        }
        return new self(FlowInfo::allFromNative($flows), $next);
    }

    public function count(): int
    {
        return count($this->flows);
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->flows);
    }
}
