<?php

declare(strict_types=1);

namespace Stanchion;

/** What happened to a task. */
enum Happened: string
{
    /** Something that this package does not know. */
    case Other = 'other';
    /**
     * It was put in: by an enqueue that added or replaced it or made it a successor, by a schedule, by the intake, or
     * because it was dead and was kicked.
     */
    case Added = 'added';
    /** A worker was given it. */
    case Started = 'started';
    /** Its run has said how far it is. */
    case Progress = 'progress';
    /** It was acked. */
    case Done = 'done';
    /** Its run failed, or its lease ended; it will be tried again. */
    case Failed = 'failed';
    /** It was given up: it had failed for the last time, was buried, or had expired. */
    case Dead = 'dead';
    /** It was cancelled, and is gone. */
    case Cancelled = 'cancelled';
    /** It was removed. */
    case Removed = 'removed';
    /** Its run ended without having failed; it will be tried again. */
    case PutBack = 'put_back';

    /** @internal */
    public static function fromNative(int $number): self
    {
        return self::cases()[$number] ?? self::Other;
    }
}
