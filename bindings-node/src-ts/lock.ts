import { call } from './bridge.js'
import { attach, InvalidArgumentError } from './errors.js'
import { Lease } from './lease.js'
import { native, type Native } from './native.js'
import { checkOptions, maybeDate } from './values.js'

/** How a lock is acquired. Each option of `Client.lock` can be given to a single acquire, too. */
export interface LockOptions {
  /** How long the store keeps the lease, in milliseconds. Without it: 30,000 and renewed; with it: not renewed. */
  ttlMs?: number | undefined
  /** Whether it is renewed in the background. Default: if no `ttlMs` is given. */
  renew?: boolean | undefined
  /** How long it is renewed at most, in milliseconds. Default: 3,600,000. */
  maxHoldMs?: number | undefined
  /** How long `acquire` waits, in milliseconds. Default: 10,000. */
  waitMs?: number | undefined
  /** Give up at once if the holder's remaining time is longer than the wait. Default: false. */
  failFast?: boolean | undefined
  /** Take over another program's value that never expires, unchanged for so many milliseconds. Default: never. */
  adoptUnexpiringMs?: number | undefined
  /** Shown to others as the holder. Default: the client's. */
  label?: string | undefined
}

/** Options of one acquire. */
export interface AcquireOptions extends LockOptions {
  /** Gives up: the promise rejects with the signal's reason, and nothing is left in the store. */
  signal?: AbortSignal | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof AcquireOptions>(
  ['ttlMs', 'renew', 'maxHoldMs', 'waitMs', 'failFast', 'adoptUnexpiringMs', 'label', 'signal'])

/** What somebody who has a lock has it as: `offer` is to a waiter, `foreign` another program's. */
export type HeldAs = 'lease' | 'offer' | 'cooldown' | 'foreign' | 'other'

/** Who holds a lock, for people and dashboards: out of date as soon as it is read. */
export interface Holder {
  heldAs: HeldAs
  label: string
  host: string
  pid: number
  fence: bigint
  since: Date | null
  /** Without renewal, in milliseconds; null if it never expires. */
  remainingMs: number | null
  /** How many wait in line. */
  waiters: number
}

/** A named lock that one holder at a time may hold. Made by `Client.lock`. */
export class Lock {
  /** The lock's name. */
  readonly name: string
  readonly #client: Native.Client
  readonly #defaults: LockOptions | undefined
  #options: Native.LockOptions | undefined

  private constructor(name: string, client: Native.Client, options: LockOptions | undefined) {
    this.name = name
    this.#client = client
    this.#defaults = options
  }

  /** @internal */
  static of(name: string, client: Native.Client, options: LockOptions | undefined): Lock {
    return new Lock(name, client, options)
  }

  /**
   * Acquire the lock, waiting in line for it.
   *
   * @throws {LockTimeoutError} if it stays busy for `waitMs`
   */
  acquire(options?: AcquireOptions): Promise<Lease> {
    return call(
      (bridge, number) => this.#client.acquire(bridge, number, this.name, this.#terms(options)), Lease.of, options)
  }

  /** Acquire the lock if it is free; null if it is busy. */
  tryAcquire(options?: Omit<AcquireOptions, 'waitMs' | 'failFast'>): Promise<Lease | null> {
    return call(
      (bridge, number) => this.#client.tryAcquire(bridge, number, this.name, this.#terms(options)), maybeLease,
      options)
  }

  /**
   * Acquire, run `body`, release.
   *
   * `lease.signal` is aborted when the lease is lost; `hold` waits for the body in any case. An error of the body is
   * never masked: if the release fails, too, that error is at the end of the body's chain of `cause`s.
   *
   * @throws {LockTimeoutError} if the lock stays busy; {@link LeaseLostError} if the body ended well, but the lease
   * was not ours to the end
   */
  async hold<T>(body: (lease: Lease) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    if (typeof body !== 'function') throw new InvalidArgumentError('the body is no function')
    const lease = await this.acquire(options)
    let value: T
    try {
      value = await body(lease)
    } catch (error) {
      await lease.end().catch((failure: unknown) => attach(error, failure))
      throw error
    }
    await lease.end()
    return value
  }

  /** Whether the lock is held, offered to a waiter, cooling down, or in foreign hands. */
  isLocked(): Promise<boolean> {
    return call((bridge, number) => this.#client.isLocked(bridge, number, this.name))
  }

  /** Who holds the lock now, if anybody does. */
  holder(): Promise<Holder | null> {
    return call((bridge, number) => this.#client.holder(bridge, number, this.name), holder)
  }

  /** Take the lock from whoever has it; false if it was free. The holder is told that it was lost. */
  breakLease(): Promise<boolean> {
    return call((bridge, number) => this.#client.breakLease(bridge, number, this.name))
  }

  #terms(given: LockOptions | undefined): Native.LockOptions | undefined {
    const chosen = given === undefined ? [] : values(given)
    if (chosen.every(value => value === undefined)) {
      if (this.#defaults === undefined) return undefined
      return (this.#options ??= made(values(this.#defaults)))
    }
    if (this.#defaults === undefined) return made(chosen as Values)
    const defaults = values(this.#defaults)
    return made(chosen.map((value, at) => value === undefined ? defaults[at] : value) as Values)
  }
}

type Values = ConstructorParameters<typeof Native.LockOptions>

/** By name: so getters of a class, which are not enumerable, count, too. */
function values(options: LockOptions): Values {
  checkOptions(options, OPTIONS)
  const { ttlMs, renew, maxHoldMs, waitMs, failFast, adoptUnexpiringMs, label } = options
  return [ttlMs, renew, maxHoldMs, waitMs, failFast, adoptUnexpiringMs, label]
}

function made(terms: Values): Native.LockOptions {
  return new (native().LockOptions)(...terms)
}

function maybeLease(found: Native.NewLease | null): Lease | null {
  return found === null ? null : Lease.of(found)
}

function holder(found: Native.Holder | null): Holder | null {
  if (found === null) return null
  const { since, remaining, heldAs, ...rest } = found
  return { ...rest, heldAs: heldAs as HeldAs, since: maybeDate(since), remainingMs: remaining ?? null }
}
