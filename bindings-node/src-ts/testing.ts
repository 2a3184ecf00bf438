/**
 * For the tests of programs that use Stanchion: a store in memory, with a clock that the test moves.
 *
 * ```ts
 * const clock = new Clock()
 * const client = await memoryClient({ clock })
 * const lease = await client.lock('a').acquire({ ttlMs: 30_000 })
 * clock.advance(31_000)
 * assert(!lease.valid)
 * ```
 */

import { open, type Client } from './client.js'
import { refusalOf } from './errors.js'
import { native, type Native } from './native.js'

const natives = new WeakMap<Clock, Native.Clock>()

/** A clock that stands still until it is told to move. */
export class Clock {
  constructor() {
    natives.set(this, new (native().Clock)())
  }

  /** Move the time forward, in milliseconds. */
  advance(ms: number): void {
    try {
      natives.get(this)?.advance(ms)
    } catch (thrown) {
      throw refusalOf(thrown)
    }
  }
}

/** What the store in memory is like. */
export interface MemoryOptions {
  /** The clock that leases and tasks go by. Default: the real time. */
  clock?: Clock | undefined
  /** Clients with the same name, in this process, share a store. Default: a store of its own. */
  name?: string | undefined
}

/** A client of a store in memory. */
export function memoryClient(options: MemoryOptions = {}): Promise<Client> {
  const clock = options.clock === undefined ? undefined : natives.get(options.clock)
  return open(`memory:${options.name ?? ''}`, {}, clock)
}
