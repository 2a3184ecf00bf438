/** How a queue is. */

import { rateOf, type Rate } from './limits.js'
import type { Native } from './native.js'

/** What keeps a queue from giving out tasks that are ready. */
export type Gate = 'open' | 'paused' | 'max_running' | 'rate' | 'throttled'

/** How many tasks there are, what happened so far, and the settings. */
export interface QueueStats {
  scheduled: number
  ready: number
  claimed: number
  /** Due, and held by the limits of their keys. */
  held: number
  /** How many keys wait for a time, by their rate or a throttle. */
  keysWaiting: number
  /** In how many milliseconds the first of them may go on; null if none waits. */
  nextKeyMs: number | null
  /** What keeps the queue from giving out tasks that are ready; `max_running`: as many run as may at once. */
  gate: Gate
  /** Of `rate` and `throttled`, for how many milliseconds; else null. */
  opensInMs: number | null
  dead: number
  /** Tasks that wait for the end of a run of the same id. */
  successors: number
  paused: boolean
  /** How many calls wait for a task. */
  waiters: number
  /** Until the next task is due or lease ends, in milliseconds; 0 if something is due now. */
  nextDueMs: number | null
  enqueued: number
  acked: number
  retried: number
  died: number
  /** How many schedules it has. */
  schedules: number
  /** For how long a schedule has been due, in milliseconds: more than a moment means that nobody works on the queue. */
  schedulesLateMs: number
  /** How many flows have begun and not ended. */
  flows: number
  settings: {
    maxLen: number | null, deadMax: number, deadAgeMs: number, deadBytes: number, intake: boolean, events: number,
    maxRunning: number | null, rate: Required<Rate> | null, keyConcurrency: number | null, keyRate: Required<Rate> | null
  }
}

/** @internal */
export function stats(found: Native.QueueStats): QueueStats {
  const {
    nextDue, nextKey, opensIn, schedulesLate, maxLen, deadMax, deadAge, deadBytes, intake, events, maxRunning, rate,
    keyConcurrency, keyRate, ...counts
  } = found
  return {
    ...counts,
    gate: counts.gate as Gate,
    opensInMs: opensIn ?? null,
    nextKeyMs: nextKey ?? null,
    nextDueMs: nextDue ?? null,
    schedulesLateMs: schedulesLate,
    settings: {
      maxLen: maxLen ?? null, deadMax, deadAgeMs: deadAge, deadBytes, intake, events, maxRunning: maxRunning ?? null,
      rate: rateOf(rate), keyConcurrency: keyConcurrency ?? null, keyRate: rateOf(keyRate),
    },
  }
}
