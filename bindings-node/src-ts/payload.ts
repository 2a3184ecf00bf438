/** What programs give to the store: bytes, and JSON of anything that JSON can represent. */

import { types } from 'node:util'
import { InvalidArgumentError, isError, type ErrorDetails } from './errors.js'
import { shown } from './values.js'

/**
 * What a task carries: bytes, or any JSON value, which is stored as JSON with a `content-type` header.
 * 16 MiB at most.
 */
export type Payload = ArrayBufferView | ArrayBuffer | SharedArrayBuffer | string | number | boolean | null | object

/** Short texts that travel along with a task. */
export type Headers = Readonly<Record<string, string>>

const JSON_TYPE = 'application/json'
const NO_BYTES = new Uint8Array(0)
const LONE_SURROGATE = /\p{Surrogate}/u
/** What can stand in a line of code. */
const VARIABLE = /^[a-z_$][\w$]*$/i

/** The payload as bytes, and the headers as names and values in turn. */
export function encode(payload: unknown, headers: Headers | null | undefined): [Uint8Array, string[] | undefined] {
  const given = namesAndValues(headers)
  if (payload === undefined) return [NO_BYTES, given]
  if (ArrayBuffer.isView(payload) || types.isAnyArrayBuffer(payload)) return [bytes(payload, 'the payload'), given]
  // One that is given counts: the later one of two wins.
  return [Buffer.from(json(payload, 'the payload is bytes or a JSON value')), ['content-type', JSON_TYPE, ...(given ?? [])]]
}

/** Bytes, or a text, of which its UTF-8 is taken. */
export function bytesOrText(value: Uint8Array | string, what: string): Uint8Array {
  if (typeof value === 'string') {
    // There is no UTF-8 of it: another character would stand in its place.
    if (LONE_SURROGATE.test(value)) throw new InvalidArgumentError(`${what} has a lone surrogate`)
    return Buffer.from(value)
  }
  if (types.isUint8Array(value)) return bytes(value, what)
  throw new InvalidArgumentError(`${what} is a Uint8Array or a text, not ${shown(value)}`)
}

/** A payload, read as JSON. */
export function parse(payload: Uint8Array): any {
  return JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString())
}

/** A value as JSON. What that would lose is refused, with a message that begins with what the value is to be. */
export function json(value: unknown, wanted: string, details?: ErrorDetails): string {
  let problem: string
  try {
    const text = JSON.stringify(value, kept) as string | undefined
    if (text !== undefined) return text
    problem = `, not ${shown(value)}`
  } catch (error) {
    if (error instanceof Lost) problem = `, not ${error.message}`
    else problem = `: ${isError(error) ? error.message : shown(error)}`
  }
  throw new InvalidArgumentError(wanted + problem, details)
}

function namesAndValues(headers: Headers | null | undefined): string[] | undefined {
  if (headers === undefined || headers === null) return undefined
  // A Map has no entries that Object.entries would see.
  if (typeof headers !== 'object' || Symbol.iterator in headers) {
    throw new InvalidArgumentError('headers are an object of texts')
  }
  return Object.entries(headers).flat()
}

function bytes(payload: ArrayBufferView | ArrayBuffer | SharedArrayBuffer, what: string): Uint8Array {
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
    throw new InvalidArgumentError(`${what} is a detached buffer`)
  }
}

/** Says what JSON does not have. */
class Lost extends Error {}

/** `JSON.stringify` would make null or `{}` of what is lost, without a word. */
function kept(key: string, value: unknown): unknown {
  const lost = lossOf(key, value)
  if (lost !== undefined) throw new Lost(key === '' ? lost : `one with ${lost} as ${JSON.stringify(key)}`)
  return value
}

/** What it is, if JSON would have nothing of what it holds. */
function lossOf(key: string, value: unknown): string | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : String(value)
    case 'bigint': {
      const name = VARIABLE.test(key) ? key : 'it'
      return `a bigint (write String(${name}), or Number(${name}))`
    }
    case 'object':
      return value === null || Array.isArray(value) ? undefined : lossOfObject(value)
    default:
      return undefined
  }
}

function lossOfObject(value: object): string | undefined {
  const prototype = Object.getPrototypeOf(value) as object | null
  // A plain object; the prototype of one of another realm is another one, that has none either.
  if (prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null) return undefined
  if (types.isPromise(value)) return 'a Promise that was not awaited'
  if (types.isMap(value) || types.isSet(value)) return 'a Map or Set (Object.fromEntries and Array.from make JSON of them)'
  if (types.isNativeError(value)) return 'an Error (its message is a text)'
  if (types.isGeneratorObject(value)) return 'a generator (which nobody runs)'
  // JSON has them by themselves. What has a toJSON comes here as what that gave.
  if (types.isTypedArray(value) || types.isBoxedPrimitive(value) || Object.keys(value).length > 0) return undefined
  const name: unknown = prototype.constructor?.name
  return `${typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'an object'} (nothing of it would be left)`
}
