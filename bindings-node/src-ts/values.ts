/** What goes in and comes out, besides the nouns. */

import { InvalidArgumentError } from './errors.js'

/**
 * What a task carries: bytes, or any JSON value, which is stored as JSON with a `content-type` header.
 * 16 MiB at most.
 */
export type Payload = ArrayBufferView | ArrayBuffer | string | number | boolean | null | object

/** Short texts that travel along with a task. */
export type Headers = Readonly<Record<string, string>>

/** A point in time: a Date, or milliseconds since 1970. */
export type Time = Date | number

const JSON_TYPE = 'application/json'
const NO_BYTES = new Uint8Array(0)

/** The payload as bytes, and the headers as names and values in turn. */
export function encode(payload: unknown, headers: Headers | null | undefined): [Uint8Array, string[] | undefined] {
  const given = headers === undefined || headers === null ? undefined : Object.entries(headers).flat()
  if (payload === undefined) return [NO_BYTES, given]
  if (payload instanceof Uint8Array) return [payload, given]
  if (ArrayBuffer.isView(payload)) {
    return [new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength), given]
  }
  if (payload instanceof ArrayBuffer) return [new Uint8Array(payload), given]
  // One that is given counts: the later one of two wins.
  return [Buffer.from(json(payload)), ['content-type', JSON_TYPE, ...(given ?? [])]]
}

function json(payload: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(payload, finite)
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw error
    throw new InvalidArgumentError(`the payload is neither bytes nor a JSON value: ${(error as Error).message}`)
  }
  if (text === undefined) {
    throw new InvalidArgumentError(`the payload is neither bytes nor a JSON value: a ${typeof payload}`)
  }
  return text
}

/** JSON has no such numbers; `JSON.stringify` would make them null. */
function finite(_: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new InvalidArgumentError(`the payload is neither bytes nor a JSON value: ${value} is in it`)
  }
  return value
}

/** A payload, read as JSON. */
export function parse(payload: Uint8Array): any {
  return JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString())
}

/** A Date as a number; anything else as it is: the native half checks it. */
export function time(value: Time | undefined): number | undefined {
  return value instanceof Date ? value.getTime() : value
}

/** A time of the core. */
export function maybeDate(time: number | null | undefined): Date | null {
  return time === null || time === undefined ? null : new Date(time)
}
