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

import { flush } from './bridge.js'
import { open, type Client, type ConnectOptions } from './client.js'
import { InvalidArgumentError, refusalOf } from './errors.js'
import { native, type Native } from './native.js'
import { checkOptions, shown } from './values.js'

const natives = new WeakMap<Clock, Native.Clock>()

/** A clock that stands still until `advance` moves it. */
export class Clock {
  constructor() {
    natives.set(this, new (native().Clock)())
  }

  /**
   * Move the time forward, in milliseconds. The waits of calls that were made before go by it, too: one with
   * `waitMs: 100` gives up when the clock has been moved that far.
   */
  advance(ms: number): void {
    flush()
    try {
      natives.get(this)?.advance(ms)
    } catch (thrown) {
      throw refusalOf(thrown)
    }
  }
}

/** What the store in memory is like, and its client. */
export interface MemoryOptions extends Pick<ConnectOptions, 'lockPrefix' | 'queuePrefix' | 'timeoutMs' | 'label'> {
  /** The clock that leases and tasks go by. Default: the real time. */
  clock?: Clock | undefined
  /** Clients with the same name, in this process, share a store. Default: a store of its own. */
  name?: string | undefined
}

const OPTIONS = new Set(['clock', 'name', 'lockPrefix', 'queuePrefix', 'timeoutMs', 'label'])

/** A client of a store in memory. */
export async function memoryClient(options: MemoryOptions = {}): Promise<Client> {
  checkOptions(options, OPTIONS)
  const { clock, name = '', ...settings } = options
  const found = clock === undefined ? undefined : natives.get(clock)
  if (clock !== undefined && found === undefined) throw new InvalidArgumentError('clock is no Clock')
  if (typeof name !== 'string') throw new InvalidArgumentError(`the name is a text, not ${shown(name)}`)
  return open(`memory:${name}`, settings, found)
}
