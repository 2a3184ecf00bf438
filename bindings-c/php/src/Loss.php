<?php

declare(strict_types=1);

namespace Stanchion;

/** Why a lease or a claim was lost. */
enum Loss: string
{
    /** It ran out: it was not renewed, or renewals did not get through in time. */
    case Expired = 'expired';
    /** It was renewed for as long as maxHold or maxRun allows. */
    case MaxHold = 'max_hold';
    /** Another has the lock or the task, or the task was settled. */
    case Taken = 'taken';
    /** Somebody called breakLease(). */
    case Broken = 'broken';
    /** The store has no record of it: it was flushed, or restarted without its data. */
    case Forgotten = 'forgotten';
    /** Another program overwrote or deleted the lock's key. */
    case Overwritten = 'overwritten';
    /** The task was removed, or its queue purged. */
    case Removed = 'removed';
    /** The store refused the renewal for good. */
    case Refused = 'refused';
    /** The worker stops, and its grace is over: the claim is still renewed, but its handler has to end. */
    case Stopped = 'stopped';
    /** For a reason that this package does not know. */
    case Other = 'other';
    /** The run took longer than its timeout: it has failed. */
    case TimedOut = 'timeout';
    /** Somebody called cancel(): the task ends with this run. Its ack is still accepted. */
    case Cancelled = 'cancelled';

    /** @internal */
    public static function fromNative(int $number): ?self
    {
        return $number === 0 ? null : self::cases()[$number - 1] ?? self::Other;
    }
}
