<?php

declare(strict_types=1);

namespace Stanchion\Internal;

/**
 * Notices a lease that is gone with the statement that acquired it, since nothing keeps what that returned:
 * `$lock->acquire();`, or `if ($lock->tryAcquire())`. One that stands in a variable is none, also if nobody touches it.
 *
 * @internal
 */
final class Unkept
{
    /**
     * PHP drops a temporary value within a few microseconds; a function that got the lease as its argument, or a line
     * that keeps it to its end, takes longer if it does anything worth a lock. In nanoseconds.
     */
    private const AT_ONCE = 100_000;

    private readonly ?Caller $acquired;
    private readonly int $calls;
    private readonly int $since;

    public function __construct()
    {
        $this->acquired = Caller::find();
        $this->calls = Native::calls();
        $this->since = hrtime(true);
    }

    /** For a destructor, before it calls the library: what is wrong there, or null. */
    public function warning(): ?string
    {
        $elapsed = hrtime(true) - $this->since;
        if ($this->acquired === null || Native::calls() !== $this->calls) {
            return null;
        }
        $ended = Caller::find();
        if ($ended === null || !$ended->isAt($this->acquired)) {
            return null;
        }
        // Still within the method that acquired it, PHP dropped what it returns: nobody can have had it.
        if ($ended->method !== $this->acquired->method && $elapsed >= self::AT_ONCE) {
            return null;
        }
        return "released as soon as it was acquired: nothing keeps what {$this->acquired->method}() returns in "
            . "{$this->acquired->file} on line {$this->acquired->line}; keep it in a variable, or use hold()";
    }
}
