import { call } from './bridge.js'
import { attach, InvalidArgumentError } from './errors.js'
import { Lease } from './lease.js'
import { native, type Native } from './native.js'
import { OURS, checkFunction, checkOptions, checkOurs, maybeDate } from './values.js'

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
  /** How many permits of a semaphore to acquire; not for other locks. Default: 1. */
  weight?: number | undefined
}

/** Options of one acquire. */
export interface AcquireOptions extends LockOptions {
  /** Gives up: the promise rejects with the signal's reason, and nothing is left in the store. */
  signal?: AbortSignal | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof AcquireOptions>(
  ['ttlMs', 'renew', 'maxHoldMs', 'waitMs', 'failFast', 'adoptUnexpiringMs', 'label', 'weight', 'signal'])

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
  /** How many permits it has: 1 if the lock is exclusive, all if it writes. */
  weight: number
}

/** One of those who wait for a lock, for people and dashboards: out of date as soon as it is read. */
export interface Waiter {
  label: string
  host: string
  pid: number
  /** When it got in line, by the store's clock; null if unknown. */
  since: Date | null
  /** For how long it has waited, by the store's clock, in milliseconds; null if unknown. */
  waitingMs: number | null
  /** How many permits it waits for: 1 if the lock is exclusive, all if it wants to write. */
  weight: number
}

/**
 * A named lock that one holder at a time may hold. Made by `Client.lock`. So are the sides of a read-write lock, a
 * semaphore and several locks at once, each with holders of its own.
 */
export class Lock {
  /** The lock's name; of several locks the first of them. */
  readonly name: string
  readonly #client: Native.Client
  readonly #defaults: LockOptions | undefined
  /** Makes the lock of the native half, unless the name of an exclusive one will do. */
  readonly #make: (() => Native.Lock) | undefined
  #made: Native.Lock | undefined
  #options: Native.LockOptions | undefined

  private constructor(
    ours: typeof OURS, name: string, client: Native.Client, options: LockOptions | undefined,
    make: (() => Native.Lock) | undefined) {
    checkOurs(ours, 'a lock is made by client.lock(name, options)')
    this.name = name
    this.#client = client
    this.#defaults = options
    this.#make = make
  }

  /** @internal */
  static of(
    name: string, client: Native.Client, options: LockOptions | undefined, make?: () => Native.Lock): Lock {
    return new Lock(OURS, name, client, options, make)
  }

  /**
   * The same lock for an owner that may come in again: an acquire by an owner that is inside resolves at once, with the
   * same fence, and the lock is given back when the owner has released as often as it acquired. Owners are known to this
   * client only. No I/O, and no check, as of `Client.lock`.
   *
   * An acquire rejects with an `InvalidArgumentError` if the owner wants more than it has: a reader does not become a
   * writer.
   */
  reentrant(owner: string): Lock {
    const make = this.#make ?? (() => this.#client.lock(this.name))
    return Lock.of(this.name, this.#client, this.#defaults, () => make().reentrant(owner))
  }

  /**
   * Acquire the lock, waiting in line for it.
   *
   * @throws {LockTimeoutError} if it stays busy for `waitMs`
   */
  acquire(options?: AcquireOptions): Promise<Lease> {
    return call(
      (bridge, number) => this.#client.acquire(bridge, number, this.#named(), this.#terms(options)), Lease.of,
      { operation: 'acquire', on: this }, options)
  }

  /** Acquire the lock if it is free; null if it is busy. */
  tryAcquire(options?: Omit<AcquireOptions, 'waitMs' | 'failFast'>): Promise<Lease | null> {
    return call((bridge, number) => {
      checkTry(options)
      this.#client.tryAcquire(bridge, number, this.#named(), this.#terms(options))
    }, maybeLease, { operation: 'acquire', on: this }, options)
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
    checkFunction(body, 'the body', 'hold(body, options)', { operation: 'hold', on: this })
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
    return call(
      (bridge, number) => this.#client.isLocked(bridge, number, this.#named()), undefined, { operation: 'holder', on: this })
  }

  /** Who holds the lock now, if anybody does; of several the one whose lease ends first. */
  holder(): Promise<Holder | null> {
    return call(
      (bridge, number) => this.#client.holder(bridge, number, this.#named()), maybeHolder, { operation: 'holder', on: this })
  }

  /** Who holds the lock now: one at most if it is exclusive, else up to 100, those whose leases end first. */
  holders(): Promise<Holder[]> {
    return call(
      (bridge, number) => this.#client.holders(bridge, number, this.#named()),
      (found: Native.Holder[]) => found.map(holder), { operation: 'holder', on: this })
  }

  /**
   * Who waits for the lock now, in the order of the line: up to 100. One that has not polled for 2.5 s, or for
   * 22 s far back in a long line, counts as dead and is left out.
   */
  waiters(): Promise<Waiter[]> {
    return call(
      (bridge, number) => this.#client.waiters(bridge, number, this.#named()),
      (found: Native.Waiter[]) => found.map(waiter), { operation: 'waiters', on: this })
  }

  /** Take the lock from whoever has it; false if it was free. The holder's lease is lost. */
  breakLease(): Promise<boolean> {
    return call(
      (bridge, number) => this.#client.breakLease(bridge, number, this.#named()), undefined,
      { operation: 'break_lease', on: this })
  }

  #named(): Native.Named {
    return this.#make === undefined ? this.name : (this.#made ??= this.#make())
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

/** The two sides of a read-write lock. Made by `Client.rwLock`. */
export class RwLock {
  /** The lock's name. */
  readonly name: string
  readonly #read: Lock
  readonly #write: Lock

  private constructor(ours: typeof OURS, name: string, client: Native.Client, options: LockOptions | undefined) {
    checkOurs(ours, 'a read-write lock is made by client.rwLock(name, options)')
    this.name = name
    this.#read = Lock.of(name, client, options, () => client.reader(name))
    this.#write = Lock.of(name, client, options, () => client.writer(name))
  }

  /** @internal */
  static of(name: string, client: Native.Client, options: LockOptions | undefined): RwLock {
    return new RwLock(OURS, name, client, options)
  }

  /** What readers acquire: any number of them may hold it, unless a writer does. */
  read(): Lock {
    return this.#read
  }

  /** What a writer acquires: nobody else holds anything then. `Lease.downgrade` makes the writer a reader. */
  write(): Lock {
    return this.#write
  }
}

type Values = ConstructorParameters<typeof Native.LockOptions>

/** By name: so getters of a class, which are not enumerable, count, too. */
function values(options: LockOptions): Values {
  if (typeof options === 'number') {
    const time = String(options)
    throw new InvalidArgumentError(
      `options are an object: { ttlMs: ${time} } for the lease, or { waitMs: ${time} } for the wait, in milliseconds`)
  }
  checkOptions(options, OPTIONS)
  const { ttlMs, renew, maxHoldMs, waitMs, failFast, adoptUnexpiringMs, label, weight } = options
  return [ttlMs, renew, maxHoldMs, waitMs, failFast, adoptUnexpiringMs, label, weight]
}

/** The type forbids it, too. An option without effect would go unnoticed. */
function checkTry(options: AcquireOptions | undefined): void {
  for (const name of ['waitMs', 'failFast'] as const) {
    if (options?.[name] !== undefined) {
      throw new InvalidArgumentError(`a try does not wait, so it takes no ${name}; use acquire`)
    }
  }
}

function made(terms: Values): Native.LockOptions {
  return new (native().LockOptions)(...terms)
}

function maybeLease(found: Native.NewLease | null): Lease | null {
  return found === null ? null : Lease.of(found)
}

function maybeHolder(found: Native.Holder | null): Holder | null {
  return found === null ? null : holder(found)
}

function holder(found: Native.Holder): Holder {
  const { since, remaining, heldAs, ...rest } = found
  return { ...rest, heldAs: heldAs as HeldAs, since: maybeDate(since), remainingMs: remaining ?? null }
}

function waiter(found: Native.Waiter): Waiter {
  const { since, waiting, ...rest } = found
  return { ...rest, since: maybeDate(since), waitingMs: waiting ?? null }
}
