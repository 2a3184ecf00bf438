<?php

declare(strict_types=1);

namespace Stanchion;

use FFI\CData;
use Stanchion\Internal\Native;
use Stanchion\Internal\Payload;

/** What a task that comes after others is given of one of them, from Claim::inputs(). */
final class FlowInput
{
    private function __construct(
        /** The node's name. */
        public readonly string $node,
        /** What has become of it. */
        public readonly NodeState $state,
        /** What its run gave with ack(); null if it gave nothing. */
        public readonly ?string $result,
    ) {
    }

    /**
     * The result, read as JSON; objects become arrays. Null if there is none.
     *
     * @throws \JsonException
     */
    public function json(): mixed
    {
        return $this->result === null ? null : Payload::decode($this->result);
    }

    /** @internal */
    public static function fromNative(CData $record): self
    {
        $native = Native::get();
        return new self(
            $native->text($record->node),
            NodeState::fromNative($record->state),
            $record->result === null ? null : $native->bytes($record->result, $record->result_len),
        );
    }
}
