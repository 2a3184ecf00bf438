/** Cached values: JSON on both sides of the store. */

import { call, type Signalled } from './bridge.js'
import { WrongTypeError } from './errors.js'
import { nothing } from './lease.js'
import { native, type Native } from './native.js'
import { json } from './payload.js'
import { checkFunction, checkKind, checkOptions } from './values.js'

/** How a value is cached, and computed by one caller at a time. */
export interface CachedOptions extends Signalled {
  /**
   * For how many milliseconds after its `ttlMs` the old value is still answered while somebody computes a new one.
   * Default: 0, then all wait.
   */
  staleMs?: number | undefined
  /**
   * Before the `ttlMs` is over one caller, drawn by lot, computes the value anew while the others still get the old one:
   * the earlier, the longer that takes and the larger beta is. Default: 1; 0 turns it off.
   */
  beta?: number | undefined
  /** How long to wait for the value that another computes, in milliseconds. Default: 10,000. */
  waitMs?: number | undefined
  /** How long the others wait for a computing caller that died, in milliseconds. Default: 30,000, renewed while it lives. */
  leaseMs?: number | undefined
  /** How long a computation may take, in milliseconds. Default: 3,600,000. */
  maxRunMs?: number | undefined
  /**
   * Whether every caller computes by itself, and stores nothing, when the store has not answered for a second; for five
   * seconds then the client asks no more. Otherwise the caller waits, and fails with StoreUnavailableError. Default: true.
   */
  withoutStore?: boolean | undefined
  /** Shown to others as who computes. */
  label?: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof CachedOptions>(
  ['staleMs', 'beta', 'waitMs', 'leaseMs', 'maxRunMs', 'withoutStore', 'label', 'signal'])

/** @internal See `Client.cached`. */
export async function cached<T>(
  client: Native.Client, name: string, ttlMs: number, compute: () => T | PromiseLike<T>, options?: CachedOptions
): Promise<T> {
  const about = { operation: 'cached', on: { name } }
  checkFunction(compute, 'compute', 'cached(name, ttlMs, compute, options)', about)
  const found = await call<Uint8Array | Native.Ticket>((bridge, number) => {
    checkKind('ttlMs', ttlMs)
    checkOptions(options, OPTIONS)
    const { staleMs, beta, waitMs, leaseMs, maxRunMs, withoutStore, label } = options ?? {}
    const terms = new (native().CachedOptions)(
      ttlMs, staleMs, beta, waitMs, leaseMs, maxRunMs, withoutStore, label)
    client.beginCached(bridge, number, name, terms)
  }, undefined, about, options)
  if (found instanceof Uint8Array) return decoded(name, Buffer.from(found).toString())
  let value: string
  try {
    value = encoded(name, await compute())
  } catch (error) {
    found.letGo()
    throw error
  }
  await call((bridge, number) => found.store(bridge, number, value), nothing, about)
  return decoded(name, value)
}

function encoded(name: string, value: unknown): string {
  return json(
    value, `cached ${JSON.stringify(name)}: the computed value is a JSON value`, { operation: 'cached', resource: name })
}

/** The value as everybody gets it, the one who computed it included. */
function decoded<T>(name: string, stored: string): T {
  try {
    return JSON.parse(stored) as T
  } catch {
    throw new WrongTypeError(
      `cached ${JSON.stringify(name)}: what is stored is no JSON value; another program stores bytes there`,
      { operation: 'cached', resource: name })
  }
}
