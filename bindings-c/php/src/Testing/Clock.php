<?php

declare(strict_types=1);

namespace Stanchion\Testing;

use FFI;
use Stanchion\Internal\Errors;
use Stanchion\Internal\Native;
use Stanchion\Internal\Times;

/** A clock that stands still until a test moves it, for Client::connect('memory:', clock: $clock). */
final class Clock
{
    private readonly int $handle;

    public function __construct()
    {
        $native = Native::get();
        $clock = $native->make('int64_t');
        $native->call('stanchion_clock_new', FFI::addr($clock));
        $this->handle = $clock->cdata;
    }

    public function __destruct()
    {
        Native::get()->ffi->stanchion_clock_free($this->handle);
    }

    /**
     * Moves the time of all stores with this clock forward.
     *
     * @param int|float $time in seconds
     */
    public function advance(mixed $time): void
    {
        Native::get()->call('stanchion_clock_advance', $this->handle, Times::needed('time', $time));
    }

    /** @internal */
    public function handle(): int
    {
        return $this->handle;
    }
    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw Errors::invalid('a clock cannot be serialized');
    }

    /** @param array<mixed> $data */
    public function __unserialize(array $data): void
    {
        throw Errors::invalid('a clock cannot be unserialized');
    }
}
