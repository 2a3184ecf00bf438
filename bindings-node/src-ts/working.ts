/** How a worker works, and what it tells. */

import type { Claim } from './claim.js'
import type { StanchionError } from './errors.js'
import type { Kinds } from './routes.js'

/** How a worker works. */
export interface WorkerOptions {
  /** Handlers at a time. Default: 1. */
  concurrency?: number | undefined
  /** How long the store keeps the lease of a task, which is renewed meanwhile, in milliseconds. Default: 30,000. */
  leaseMs?: number | undefined
  /** How long it is renewed at most, in milliseconds. Default: 3,600,000. */
  maxRunMs?: number | undefined
  /**
   * How long a run of a task may take that does not say so itself, in milliseconds; then its signal is aborted, and it has
   * failed with the reason `timeout`. Default: as long as its claim is renewed.
   */
  timeoutMs?: number | undefined
  /**
   * How long handlers go on when the worker is closed, in milliseconds. Then their signals are aborted, and the tasks of
   * those that fail go back without counting an attempt. A handler that has not ended 2 s later is left behind: its task
   * comes back when its lease ends. Default: 25,000.
   */
  graceMs?: number | undefined
  /** End when no task is ready or claimed any more. Default: false. */
  untilEmpty?: boolean | undefined
  /**
   * Stands around the handler of each task, within its time: `async (claim, next) => { ...; return await next() }`. Of several, the
   * first is outermost. What it returns counts as what the handler returned, what it throws as the handler's failure; if it does
   * not call `next`, the task is done without the handler.
   */
  around?: Around | Iterable<Around> | undefined
  /**
   * Aborted, the worker takes no more tasks and aborts the signals of its handlers; the tasks of those that then fail
   * go back without counting an attempt.
   */
  signal?: AbortSignal | undefined
}

/** Options of a worker that runs the handlers of `Queue.task`, each for the tasks of its kind. */
export interface KindWorkerOptions<Json = any> extends WorkerOptions, Kinds<Json> {}

/** What a handler gets besides its task. */
export interface TaskContext {
  /** Aborted when the task is lost or the grace is over (with a LeaseLostError), or with the worker's own signal. */
  readonly signal: AbortSignal
}

/** Done if it returns or resolves; tried again later if it throws or rejects. It may also settle the task itself. */
export type Handler<Json = any> = (task: Claim<Json>, context: TaskContext) => unknown

/** What stands around a handler. `next` calls what is further inside, in the end the handler, and resolves with what that gives. */
export type Around = (claim: Claim, next: () => Promise<unknown>) => unknown

/** What a worker has done. */
export interface WorkerReport {
  completed: number
  failed: number
  dead: number
  lost: number
}

/** The events of a worker, and what listeners get. */
export interface WorkerEvents<Json = any> {
  /** The task is done, and the store knows it. With what the handler returned. */
  completed: [task: Claim<Json>, result: unknown]
  /** The handler failed; the task is tried again, unless `dead` follows. Without a listener, it is written to stderr. */
  failed: [task: Claim<Json>, error: unknown]
  /** The task failed for the last time, or was buried. */
  dead: [task: Claim<Json>, error: unknown]
  /**
   * No handler is for the task's kind, or it has none: it was put back for so many milliseconds, 1,000 and up to 60,000, the
   * longer the more often that kind was seen. No attempt counts. Without a listener, it is written to stderr now and then.
   */
  unknownKind: [task: Claim<Json>, delayMs: number]
  /** The claim was lost, or its verdict came too late: another may work on the task now. */
  lost: [task: Claim<Json>]
  /** The handler's signal was aborted 2 s ago, and it goes on. Until it ends, the worker does one less at a time. */
  stuck: [task: Claim<Json>]
  /**
   * So many slots of a schedule were missed while nobody worked on the queue; as it says, so many of them were fired late. Without
   * a listener, it is written to stderr.
   */
  slotsMissed: [schedule: string, missed: number, fired: number]
  /** All tasks that were taken are settled, and there are no more for now. */
  empty: []
  /**
   * The store did not answer. If that can pass, the worker goes on, and emits this once; otherwise `finished` rejects. Without a
   * listener, it is written to stderr.
   */
  error: [error: StanchionError]
  /** The store answers again, this many milliseconds after `error`. Without a listener, it is written to stderr. */
  recovered: [afterMs: number]
}
