/** What goes in and comes out, besides the nouns. */

import { types } from 'node:util'
import { detailsOf, during, InvalidArgumentError, type About } from './errors.js'

/** A point in time: a Date, or milliseconds since 1970. */
export type Time = Date | number

/** Between them a number is more likely seconds (from 2001 on) than milliseconds (until 1973). */
const LEAST_SECONDS = 1e9
const LEAST_MILLIS = 1e11

/** A due time, or one of another name, as a number; what is none is left as it is: the native half checks it. */
export function dueTime(value: Time | undefined, name = 'due'): number | undefined {
  if (types.isDate(value)) return value.getTime()
  // It would be long past, and so due at once.
  if (typeof value === 'number' && value >= LEAST_SECONDS && value < LEAST_MILLIS) {
    throw new InvalidArgumentError(`${name} is in milliseconds, as Date.now() is; ${value} looks like seconds`)
  }
  return value
}

/** A time of the core. */
export function maybeDate(time: number | null | undefined): Date | null {
  return time === null || time === undefined ? null : new Date(time)
}

/** Options are an object, or not given, and none is unknown: a misspelt wait would go unnoticed, and last for its default. */
export function checkOptions(given: unknown, known: ReadonlySet<string>, about?: About): void {
  if (given === undefined) return
  try {
    checkObject(given, 'options')
    if (Array.isArray(given)) throw new InvalidArgumentError('options are an object, not an array')
    checkNames(given as object, known, 'option')
  } catch (thrown) {
    throw during(thrown, about)
  }
}

/** What other packages, and Python's, call it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  timeout: 'waitMs', duration: 'ttlMs', expiry: 'ttlMs', data: 'payload', body: 'payload', args: 'payload', jobId: 'id', attempts: 'maxAttempts', retries: 'maxAttempts',
  type: 'kind', retryDelay: 'backoff', resultTtl: 'keepResultMs', cron: 'when', every: 'when', pattern: 'when', rule: 'when', timezone: 'tz', timeZone: 'tz', startDate: 'starts', endDate: 'ends',
  middleware: 'around', middlewares: 'around', dependsOn: 'after', queueName: 'queue',
}

/** None is unknown: it would go unnoticed. */
export function checkNames(
  given: object, known: ReadonlySet<string>, what: string, own: Readonly<Record<string, Kind>> = {}
): void {
  for (const name in given) {
    if (!known.has(name)) {
      const names = `there is no ${what} ${name}; there are ${[...known].join(', ')}`
      throw new InvalidArgumentError(names + hint(name, known))
    }
    checkKind(name, (given as Record<string, unknown>)[name], own[name])
  }
}

/** What a value is to be. */
export interface Kind {
  readonly is: string
  fits(value: unknown): boolean
}

/** As the native half takes them. */
const TIME: Kind = { is: 'a number of milliseconds', fits: value => typeof value === 'number' && value >= 0 && value <= 1e18 }
const COUNT: Kind = {
  is: 'a whole number', fits: value => typeof value === 'bigint' || (Number.isSafeInteger(value) && value as number >= 0)
}
const FLAG: Kind = { is: 'true or false', fits: value => typeof value === 'boolean' }
const TEXT: Kind = { is: 'a text', fits: value => typeof value === 'string' }
/** Which words there are, the native half knows. */
const MISSED: Kind = { is: "'last', 'skip' or a whole number", fits: value => TEXT.fits(value) || COUNT.fits(value) }
const OVERLAP: Kind = { is: "'queue' or 'skip'", fits: TEXT.fits }
const AFTER_ALL: Kind = { is: "'then', 'failed' or 'finally'", fits: TEXT.fits }
/** What those that a node comes after are: `after` is a number elsewhere. */
export const NODES: Kind = { is: 'the name of a node, or a list of names', fits: value => TEXT.fits(value) || isList(value) }

/** What options are whose name does not end in Ms. */
const KINDS: Readonly<Record<string, Kind>> = {
  after: COUNT, burst: COUNT, concurrency: COUNT, count: COUNT, deadBytes: COUNT, deadMax: COUNT, events: COUNT, max: COUNT, maxAttempts: COUNT, maxLen: COUNT,
  maxRunning: COUNT, keyConcurrency: COUNT,
  priority: COUNT, version: COUNT, weight: COUNT, failFast: FLAG, foreignShare: FLAG, intake: FLAG, payloads: FLAG, renew: FLAG,
  paused: FLAG, untilEmpty: FLAG, withoutStore: FLAG, id: TEXT, key: TEXT, kind: TEXT, label: TEXT, lockPrefix: TEXT, page: TEXT, prefix: TEXT,
  queuePrefix: TEXT, reason: TEXT, tlsCa: TEXT, tlsCert: TEXT, tlsKey: TEXT, tz: TEXT, when: TEXT, missed: MISSED, overlap: OVERLAP,
  queue: TEXT, afterAll: AFTER_ALL,
}

/** The native half refuses the same, but does not know the option's name. */
export function checkKind(name: string, value: unknown, own?: Kind): void {
  const kind = own ?? (name.endsWith('Ms') ? TIME : KINDS[name])
  if (kind === undefined || value === undefined || value === null || kind.fits(value)) return
  throw new InvalidArgumentError(`${name} is ${kind.is}, not ${shown(value)}`)
}

/** `usage`: the order of the arguments. */
export function checkFunction(given: unknown, what: string, usage: string, about: About): void {
  if (typeof given === 'function') return
  throw new InvalidArgumentError(`${what} is a function, not ${shown(given)}: ${usage}`, detailsOf(about))
}

/** What only the package has: what a method makes is not made by `new`. */
export const OURS: unique symbol = Symbol('ours')

/** Refuses what has come by `new`. */
export function checkOurs(given: unknown, how: string): void {
  if (given !== OURS) throw new InvalidArgumentError(how)
}

function hint(name: string, known: ReadonlySet<string>): string {
  // Of a claim it is either, and which one is meant is not known.
  if (name === 'timeout' && known.has('waitMs') && known.has('timeoutMs')) {
    return '; say waitMs for how long to wait, or timeoutMs for how long a run may take, in milliseconds'
  }
  const meant = [`${name}Ms`, ELSEWHERE[name]].find(one => one !== undefined && known.has(one))
  if (meant !== undefined) return `; say ${meant}${meant.endsWith('Ms') ? ', in milliseconds' : ''}`
  return known.has('payload') ? '; if it is for the worker, say { payload: ... }' : ''
}

/** Anything else would be taken for an object without any of the properties. */
export function checkObject(given: unknown, what: string): void {
  if (typeof given !== 'object' || given === null) {
    throw new InvalidArgumentError(`${what} are an object, not ${shown(given)}`)
  }
}

/** What there is in a list. A text is none, though it could be taken for one of its letters. */
export function listOf<A, B>(items: Iterable<A>, what: string, convert: (item: A) => B): B[] {
  if (!isList(items)) {
    throw new InvalidArgumentError(`${what} are a list, not ${shown(items)}`)
  }
  return Array.from(items, convert)
}

function isList(value: unknown): boolean {
  return typeof value !== 'string' && typeof (value as Iterable<unknown> | null | undefined)?.[Symbol.iterator] === 'function'
}

/** For a message; runs no code of the value. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'function': return 'a function'
    case 'object': return value === null ? 'null' : 'an object'
    case 'string': return JSON.stringify(value)
    case 'bigint': return `${value}n`
    default: return String(value)
  }
}
