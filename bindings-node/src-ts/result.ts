/** What became of a task. */

import { StanchionError } from './errors.js'
import type { Signalled } from './bridge.js'
import type { Native } from './native.js'
import { parse } from './payload.js'
import { OURS, checkOurs } from './values.js'

/** Which result, and how long to wait for it. */
export interface ResultOptions extends Signalled {
  /** That of `Enqueued`: asks about that task or a later one of the id. Default: about any. */
  version?: bigint | undefined
  /** How long to wait while the task is not done, in milliseconds, 365 days at most. Default: 0, which only looks. */
  waitMs?: number | undefined
  /** Gives up: the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

/**
 * What became of a task: `done`, with a result; `pending`, not done yet; `dead`, for a reason; or `gone`: it was done
 * without a result, or removed, or cancelled, or never there, or its result is not kept any more. Made by `Queue.result`.
 */
export class TaskResult {
  readonly outcome: 'done' | 'pending' | 'dead' | 'gone'
  /** What came of it, if it is done. */
  readonly result: Buffer | null
  /** The version of the task that had the result: the one asked for, or a later one. */
  readonly version: bigint | null
  /** Why it is dead, if it is. */
  readonly reason: string | null

  private constructor(ours: typeof OURS, found: Native.TaskResult) {
    checkOurs(ours, 'a result is made by await queue.result(id)')
    this.outcome = found.outcome as TaskResult['outcome']
    this.result = found.result ?? null
    this.version = found.version ?? null
    this.reason = found.reason ?? null
  }

  /** @internal */
  static of(found: Native.TaskResult): TaskResult {
    return new TaskResult(OURS, found)
  }

  /**
   * The result, read as JSON each time.
   *
   * @throws {StanchionError} if the task is not done; a SyntaxError if the result is no JSON
   */
  json<Result = any>(): Result {
    if (this.result !== null) return parse(this.result) as Result
    const because = this.reason === null || this.reason === '' ? '' : ` (${this.reason})`
    throw new StanchionError(`there is no result: the task is ${this.outcome}${because}`, { operation: 'result' })
  }
}
