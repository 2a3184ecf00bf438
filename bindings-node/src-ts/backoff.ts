/** How long a task waits after a failed attempt. */

import { InvalidArgumentError } from './errors.js'
import { checkNames, shown } from './values.js'

/** Pauses that grow. Times are milliseconds. */
export interface ExponentialBackoff {
  /** The first pause: 1 to 365 days. */
  base: number
  /** By how much each pause is longer than the one before: 1 to 1,000. Default: 2. */
  factor?: number | undefined
  /** The longest pause: `base` to 365 days. Default: 7 h. */
  max?: number | undefined
  /** By which part of itself a pause may be drawn shorter: 0 to 1. Default: 0.5. */
  jitter?: number | undefined
}

/**
 * After the n-th failed attempt the n-th of these pauses in milliseconds, and after the last one always that (1 to 100 of
 * them); or pauses that grow.
 */
export type Backoff = readonly number[] | ExponentialBackoff

const EXPONENTIAL: ReadonlySet<string> = new Set<keyof ExponentialBackoff>(['base', 'factor', 'max', 'jitter'])
const USAGE = 'backoff is a list of pauses in milliseconds, or { base, factor, max, jitter }'

/** As the core reads it, which checks the bounds. */
export function backoffText(backoff: Backoff | null | undefined): string | undefined {
  if (backoff === undefined || backoff === null) return undefined
  if (isList(backoff)) return JSON.stringify(Array.from(backoff, (pause, at) => time(pause, `pause ${at + 1} of backoff`)))
  if (typeof backoff !== 'object') throw new InvalidArgumentError(`${USAGE}, not ${shown(backoff)}`)
  checkNames(backoff, EXPONENTIAL, 'property of a backoff')
  const { base, factor, max, jitter } = backoff
  if (base === undefined) throw new InvalidArgumentError(`${USAGE}; this one has no base`)
  return JSON.stringify({
    base: time(base, 'the base of backoff'),
    factor: given(factor, number, 'the factor of backoff'),
    max: given(max, time, 'the max of backoff'),
    jitter: given(jitter, number, 'the jitter of backoff'),
  })
}

/** As the option takes it. */
export function backoffOf(text: string | null | undefined): number[] | Required<ExponentialBackoff> | null {
  return text === null || text === undefined ? null : JSON.parse(text) as number[] | Required<ExponentialBackoff>
}

/** `Array.isArray` alone does not tell TypeScript that what is left is no list that cannot be written to. */
function isList(backoff: Backoff): backoff is readonly number[] {
  return Array.isArray(backoff)
}

function given<T>(value: T | undefined, check: (value: T, what: string) => T, what: string): T | undefined {
  return value === undefined || value === null ? undefined : check(value, what)
}

/** JSON would make null of NaN. */
function number(value: number, what: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new InvalidArgumentError(`${what} is a number, not ${shown(value)}`)
}

/** Whole milliseconds are what is stored; the core rounds up, too. */
function time(value: number, what: string): number {
  if (typeof value === 'number' && value >= 0 && value <= 1e18) return Math.ceil(value)
  throw new InvalidArgumentError(`${what} is a number of milliseconds, not ${shown(value)}`)
}
