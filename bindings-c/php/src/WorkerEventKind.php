<?php

declare(strict_types=1);

namespace Stanchion;

/** What happened to a task of a worker. */
enum WorkerEventKind: string
{
    /** The task is done, and the store knows it. */
    case Completed = 'completed';
    /** The task has failed; it will be tried again, unless Dead follows. */
    case Failed = 'failed';
    /** The task is dead: it failed for the last time, or was buried. */
    case Dead = 'dead';
    /** The claim was lost, or its verdict came too late: another may work on the task now. */
    case Lost = 'lost';
    /** All tasks that were taken are settled, and there are no more for now. */
    case Empty = 'empty';
    /** The store could not be reached, or refused something: see the reason. Reported once, until StoreBack. */
    case StoreFailed = 'store_failed';
    /** The handler was asked to end 2 s ago, and goes on. With one handler at a time, reported when it ends. */
    case Stuck = 'stuck';
    /** The store answers again, after StoreFailed; the reason is after how long. */
    case StoreBack = 'store_back';
    /** Slots of the schedule with this id were missed while nobody worked on the queue: the reason says how many. */
    case SlotsMissed = 'slots_missed';
    /** Something that this package does not know. */
    case Other = 'other';
    /** The Router has no handler for the task's kind, or it has none: it was put back, and no attempt counts. */
    case UnknownKind = 'unknown_kind';

    /** So many of the first ones are told by the library. */
    private const NATIVE = 9;

    /** @internal */
    public static function fromNative(int $number): self
    {
        return $number <= self::NATIVE ? self::cases()[$number - 1] ?? self::Other : self::Other;
    }
}
