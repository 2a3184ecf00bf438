/** Limits: of a queue, and of the tasks that have a key in common. */

import { InvalidArgumentError } from './errors.js'
import { native, type Native } from './native.js'
import { checkNames, checkObject, checkOptions, shown } from './values.js'

/** So many per time: over any time `perMs` at most `count + burst`. */
export interface Rate {
  /** How many. */
  count: number
  /** In how many milliseconds: 1 to 366 days. */
  perMs: number
  /** How many may come at once after a pause. Default: 1. */
  burst?: number | undefined
}

/** Limits of a key of its own. What is not given is as the queue has it. */
export interface KeyLimits {
  /** How many of its tasks are in line and running at most. */
  concurrency?: number | null | undefined
  /** How many of its tasks are delivered per time. */
  rate?: Rate | null | undefined
  /** Its share beside other keys, 1 to 100: one of weight 3 gets three tasks done while one of weight 1 gets one. Default: 1. */
  weight?: number | undefined
}

/** What is known of a key. */
export interface KeyInfo {
  key: string
  /** How many of its tasks are claimed. */
  running: number
  /** How many stand in line. */
  inLine: number
  /** How many are due, and held by its limits. */
  held: number
  /** In how many milliseconds its rate, or a throttle, lets more of it go; null if neither is in the way. */
  opensInMs: number | null
  /** What it has of its own. */
  limits: { concurrency: number | null, rate: Required<Rate> | null, weight: number } | null
}

/** Some keys of a queue. `next` gets the next page; null if this was the last. */
export interface KeyPage {
  keys: KeyInfo[]
  next: string | null
}

/** What can be configured; what is not given stays. */
export interface QueueConfig {
  /** Live tasks at most; new ids are refused beyond it. Null: no limit, as by default. */
  maxLen?: number | null | undefined
  /** Dead tasks at most; the oldest go first. */
  deadMax?: number | undefined
  /** Dead tasks are dropped after so many milliseconds. */
  deadAgeMs?: number | undefined
  /** Bytes of payloads of dead tasks at most; the oldest go first. */
  deadBytes?: number | undefined
  /** Whether plain ZADDs to the queue's key are taken in (Redis only). */
  intake?: boolean | undefined
  /** How many of the last events are kept, for `Queue.events`; 100,000 at most. 0, as by default: none. */
  events?: number | undefined
  /** How many tasks run at once at most, whoever runs them. Null: no limit, as by default. */
  maxRunning?: number | null | undefined
  /**
   * How many tasks are delivered per time; every delivery counts, also a retry and one that is put back. Null: no limit, as by
   * default.
   */
  rate?: Rate | null | undefined
  /**
   * How many tasks of each key (`Task.key`) are in line and running at most, unless the key has limits of its own
   * (`Queue.limitKey`). Null: no limit, as by default.
   */
  keyConcurrency?: number | null | undefined
  /** How many tasks of each key are delivered per time, unless the key has limits of its own. Null: no limit, as by default. */
  keyRate?: Rate | null | undefined
}

const SETTINGS: ReadonlySet<string> = new Set<keyof QueueConfig>([
  'maxLen', 'deadMax', 'deadAgeMs', 'deadBytes', 'intake', 'events', 'maxRunning', 'rate', 'keyConcurrency', 'keyRate'])
const LIMITS: ReadonlySet<string> = new Set<keyof KeyLimits>(['concurrency', 'rate', 'weight'])
const RATE: ReadonlySet<string> = new Set<keyof Rate>(['count', 'perMs', 'burst'])

/** @internal */
export function nativeConfig(settings: QueueConfig): Native.QueueConfig {
  checkObject(settings, 'settings')
  checkOptions(settings, SETTINGS)
  const { maxLen, maxRunning, rate, keyConcurrency, keyRate } = settings
  const made = new (native().QueueConfig)(
    settings.deadMax, settings.deadAgeMs, settings.deadBytes, settings.intake, settings.events)
  // Null takes a limit away.
  if (maxLen !== undefined) made.maxLen(maxLen)
  if (maxRunning !== undefined) made.maxRunning(maxRunning)
  if (rate !== undefined) made.rate(nativeRate(rate, 'rate'))
  if (keyConcurrency !== undefined) made.keyConcurrency(keyConcurrency)
  if (keyRate !== undefined) made.keyRate(nativeRate(keyRate, 'keyRate'))
  return made
}

/** @internal */
export function nativeLimits(
  limits: KeyLimits | null | undefined
): [number | null | undefined, Native.Rate | null | undefined, number | undefined] {
  if (limits === null || limits === undefined) return [undefined, undefined, undefined]
  checkOptions(limits, LIMITS)
  return [limits.concurrency, nativeRate(limits.rate, 'rate'), limits.weight]
}

function nativeRate(rate: Rate | null | undefined, name: string): Native.Rate | null {
  if (rate === null || rate === undefined) return null
  if (typeof rate !== 'object') throw new InvalidArgumentError(`${name} is { count, perMs }, not ${shown(rate)}`)
  checkNames(rate, RATE, `property of ${name}`)
  for (const needed of ['count', 'perMs'] as const) {
    if (rate[needed] === undefined) throw new InvalidArgumentError(`${name} is { count, perMs }; this one has no ${needed}`)
  }
  return new (native().Rate)(rate.count, rate.perMs, rate.burst)
}

/** @internal */
export function rateOf(found: Native.RateInfo | null | undefined): Required<Rate> | null {
  return found ? { count: found.count, perMs: found.per, burst: found.burst } : null
}

/** @internal */
export function keyInfo(found: Native.KeyInfo): KeyInfo {
  const { opensIn, limits, ...rest } = found
  return {
    ...rest,
    opensInMs: opensIn ?? null,
    limits: limits
      ? { concurrency: limits.concurrency ?? null, rate: rateOf(limits.rate), weight: limits.weight } : null,
  }
}
