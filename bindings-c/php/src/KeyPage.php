<?php

declare(strict_types=1);

namespace Stanchion;

use Stanchion\Internal\Native;

/**
 * Some of a queue's keys: those that hold tasks, then those that have limits of their own.
 *
 * @implements \IteratorAggregate<int, KeyInfo>
 */
final class KeyPage implements \Countable, \IteratorAggregate
{
    /** A status of the library: this was not the last page. */
    private const OK = 0;

    /**
     * @internal
     * @param list<KeyInfo> $keys
     */
    public function __construct(
        public readonly array $keys,
        /** Gets the next page; null if this was the last. */
        public readonly ?string $next,
    ) {
    }

    /**
     * A stanchion_keys, which is freed.
     *
     * @internal
     */
    public static function fromNative(int $keys): self
    {
        $native = Native::get();
        try {
            $text = $native->make('stanchion_text');
            $status = $native->call('stanchion_keys_next', $keys, \FFI::addr($text));
            $next = $status === self::OK ? $native->text($text) : null;
        } catch (\Throwable $error) {
            $native->ffi->stanchion_keys_free($keys);
            throw $error;
        }
        return new self(KeyInfo::allFromNative($keys), $next);
    }

    public function count(): int
    {
        return count($this->keys);
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->keys);
    }
}
