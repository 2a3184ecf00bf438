/** What goes in and comes out, besides the nouns. */

import { types } from 'node:util'
import { InvalidArgumentError } from './errors.js'

/**
 * What a task carries: bytes, or any JSON value, which is stored as JSON with a `content-type` header.
 * 16 MiB at most.
 */
export type Payload = ArrayBufferView | ArrayBuffer | SharedArrayBuffer | string | number | boolean | null | object

/** Short texts that travel along with a task. */
export type Headers = Readonly<Record<string, string>>

/** A point in time: a Date, or milliseconds since 1970. */
export type Time = Date | number

const JSON_TYPE = 'application/json'
const NO_BYTES = new Uint8Array(0)

/** The payload as bytes, and the headers as names and values in turn. */
export function encode(payload: unknown, headers: Headers | null | undefined): [Uint8Array, string[] | undefined] {
  const given = namesAndValues(headers)
  if (payload === undefined) return [NO_BYTES, given]
  if (ArrayBuffer.isView(payload) || types.isAnyArrayBuffer(payload)) return [bytes(payload), given]
  // One that is given counts: the later one of two wins.
  return [Buffer.from(json(payload)), ['content-type', JSON_TYPE, ...(given ?? [])]]
}

function namesAndValues(headers: Headers | null | undefined): string[] | undefined {
  if (headers === undefined || headers === null) return undefined
  // A Map has no entries that Object.entries would see.
  if (typeof headers !== 'object' || Symbol.iterator in headers) {
    throw new InvalidArgumentError('headers are an object of texts')
  }
  return Object.entries(headers).flat()
}

function bytes(payload: ArrayBufferView | ArrayBuffer | SharedArrayBuffer): Uint8Array {
  if (payload instanceof Uint8Array && payload.byteLength > 0 && !types.isSharedArrayBuffer(payload.buffer)) {
    return payload
  }
  try {
    const view = ArrayBuffer.isView(payload)
      ? new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength)
      : new Uint8Array(payload)
    // Other threads may write to shared memory while it is read: so it is copied first.
    return types.isSharedArrayBuffer(view.buffer) ? new Uint8Array(view) : view
  } catch {
    throw new InvalidArgumentError('the payload is a detached buffer')
  }
}

function json(payload: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(payload, checked)
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw error
    throw new InvalidArgumentError(`the payload is neither bytes nor a JSON value: ${(error as Error).message}`)
  }
  if (text === undefined) {
    throw new InvalidArgumentError(`the payload is neither bytes nor a JSON value: a ${typeof payload}`)
  }
  return text
}

/** JSON has no such numbers and objects; `JSON.stringify` would make them null and `{}`. */
function checked(_: string, value: unknown): unknown {
  const lost = typeof value === 'number' ? !Number.isFinite(value) && String(value) : isLost(value)
  if (lost) throw new InvalidArgumentError(`the payload is neither bytes nor a JSON value: ${lost} is in it`)
  return value
}

/** What it is, if JSON would have nothing of what it holds. */
function isLost(value: unknown): string | false {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  if (Object.getPrototypeOf(value) === Object.prototype) return false
  if (types.isPromise(value)) return 'a Promise that was not awaited'
  if (types.isMap(value) || types.isSet(value)) return 'a Map or Set (Object.fromEntries and Array.from make JSON of them)'
  if (types.isNativeError(value)) return 'an Error (its message is a text)'
  const holdsNothing = types.isRegExp(value) || types.isWeakMap(value) || types.isWeakSet(value) ||
    types.isAnyArrayBuffer(value) || types.isGeneratorObject(value)
  return holdsNothing && 'an object of which nothing would be left'
}

/** A payload, read as JSON. */
export function parse(payload: Uint8Array): any {
  return JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString())
}

/** A Date as a number; anything else as it is: the native half checks it. */
export function time(value: Time | undefined): number | undefined {
  return types.isDate(value) ? value.getTime() : value
}

/** A time of the core. */
export function maybeDate(time: number | null | undefined): Date | null {
  return time === null || time === undefined ? null : new Date(time)
}

/** Options are an object, or not given, and none is unknown: a misspelt wait would go unnoticed, and last for its default. */
export function checkOptions(given: unknown, known: ReadonlySet<string>): void {
  if (given === undefined) return
  checkObject(given, 'options')
  if (Array.isArray(given)) throw new InvalidArgumentError('options are an object, not an array')
  checkNames(given as object, known, 'option')
}

/** What other packages, and Python's, call it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  timeout: 'waitMs', duration: 'ttlMs', expiry: 'ttlMs', data: 'payload', body: 'payload', args: 'payload', jobId: 'id', attempts: 'maxAttempts', retries: 'maxAttempts',
}

/** None is unknown: it would go unnoticed. */
export function checkNames(given: object, known: ReadonlySet<string>, what: string): void {
  for (const name in given) {
    if (!known.has(name)) {
      const names = `there is no ${what} ${name}; there are ${[...known].join(', ')}`
      throw new InvalidArgumentError(names + hint(name, known))
    }
  }
}

function hint(name: string, known: ReadonlySet<string>): string {
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
  if (typeof items === 'string' || typeof items?.[Symbol.iterator] !== 'function') {
    throw new InvalidArgumentError(`${what} are no list`)
  }
  return Array.from(items, convert)
}

/** For a message; runs no code of the value. */
export function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
