import { call } from './bridge.js'
import { cached, type CachedOptions } from './cached.js'
import { refusalOf } from './errors.js'
import { noteClient } from './exit.js'
import { Lease, nothing } from './lease.js'
import { Limiter, type Limit } from './limiter.js'
import { Lock, RwLock, type LockOptions } from './lock.js'
import { native, type Native } from './native.js'
import { Queue, Queues } from './queue.js'
import { OURS, checkOptions, checkOurs, listOf } from './values.js'

/** How to open a store. Each option wins over the URL's parameter of the same meaning. */
export interface ConnectOptions {
  /** Put before a lock's name to make its key. Default: `Lock:`. */
  lockPrefix?: string | undefined
  /** Put before a queue's name to make its key. Default: `Queue:`. */
  queuePrefix?: string | undefined
  /** How long a call may take, beyond any wait for a lock or a task, in milliseconds. Default: 5,000. */
  timeoutMs?: number | undefined
  /** Give other programs' lockers on the same key a turn after some hand-offs in a row (Redis only). Default: false. */
  foreignShare?: boolean | undefined
  /** Shown to others as the holder. */
  label?: string | undefined
  /** A PEM file of authorities (`rediss:` only). Default: the system's. */
  tlsCa?: string | undefined
  /** A PEM file of our certificate; with `tlsKey`. */
  tlsCert?: string | undefined
  /** A PEM file of our key; with `tlsCert`. */
  tlsKey?: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof ConnectOptions>(
  ['lockPrefix', 'queuePrefix', 'timeoutMs', 'foreignShare', 'label', 'tlsCa', 'tlsCert', 'tlsKey'])

/** Some names. `next` gets the next page; null if this was the last. */
export interface NamePage {
  names: string[]
  next: bigint | null
}

/**
 * Open a store: `redis://`, `redis+unix:///SOCKET`, `redis-sentinel://`, `redis-cluster://`, `redis-quorum://`, with
 * TLS `rediss://` and so on, `sqlite:PATH` or `memory:`. Without a URL it is taken from the environment variable `STANCHION_URL`.
 *
 * An idle client does not keep the process alive; a call that is waited for does.
 *
 * @throws {InvalidArgumentError} for a URL that is none; {@link StoreUnavailableError} if the store does not answer
 */
export function connect(url?: string, options?: ConnectOptions): Promise<Client>
export function connect(options: ConnectOptions): Promise<Client>
export function connect(url?: string | ConnectOptions, options?: ConnectOptions): Promise<Client> {
  return open(url, options)
}

/** @internal */
export function open(first?: string | ConnectOptions, second?: ConnectOptions, clock?: Native.Clock): Promise<Client> {
  return call((bridge, number) => {
    // An object of the class URL is no options: the native half refuses it as the URL.
    const isOptions = typeof first === 'object' && first !== null && !('href' in first)
    const [url, options = {}] = isOptions ? [undefined, first] : [first as string | undefined, second]
    checkOptions(options, OPTIONS)
    const settings = new (native().Settings)(
      url, options.lockPrefix, options.queuePrefix, options.timeoutMs, options.foreignShare, options.label,
      options.tlsCa, options.tlsCert, options.tlsKey, clock)
    native().connect(bridge, number, settings)
  }, client, { operation: 'open' })
}

function client(native: Native.Client): Client {
  noteClient(native)
  return Client.of(native)
}

/** A connection to a store. Made by `connect`; `await using` closes it. */
export class Client {
  readonly #native: Native.Client

  private constructor(ours: typeof OURS, native: Native.Client) {
    checkOurs(ours, 'a client is made by await connect(url)')
    this.#native = native
  }

  /** @internal */
  static of(native: Native.Client): Client {
    return new Client(OURS, native)
  }

  /**
   * The lock with this name, and the default options of its acquires. No I/O, and no check: a name or option
   * that is not allowed rejects the calls of the lock.
   */
  lock(name: string, options?: LockOptions): Lock {
    return Lock.of(name, this.#native, options)
  }

  /**
   * The read-write lock with this name: many readers, or one writer. Those who wait are served in the order in which
   * they came, so that neither readers nor writers starve. No I/O, and no check, as of `lock`.
   */
  rwLock(name: string, options?: LockOptions): RwLock {
    return RwLock.of(name, this.#native, options)
  }

  /**
   * The semaphore with this name and so many permits (1 to 1,000,000). An acquire takes one, or `weight`. While anybody
   * holds or waits for permits, all must agree on their number; another one rejects with an `InvalidArgumentError`. No
   * I/O, and no check, as of `lock`.
   */
  semaphore(name: string, permits: number, options?: LockOptions): Lock {
    return Lock.of(name, this.#native, options, () => this.#native.semaphore(name, permits))
  }

  /**
   * The limiter with this name: `n` in `perMs`, for all who use it. The limit is code of its callers, and travels with each
   * call. For "so many at the same time" there is `semaphore`. No I/O; a limit that cannot be is refused by the first take.
   */
  limiter(name: string, limit: Limit): Limiter {
    return Limiter.of(this.#native, name, limit)
  }

  /**
   * Several locks that are acquired together, all or none: one after another in the order of their names, so that two
   * callers never wait for each other. Names that come twice count once; without any name an acquire rejects with an
   * `InvalidArgumentError`. No I/O, and no check, as of `lock`.
   */
  multiLock(names: readonly string[], options?: LockOptions): Lock {
    // What the list is now: it may change until the first acquire.
    const list = Array.isArray(names) ? [...names as string[]] : names
    return Lock.of(firstOf(list), this.#native, options, () =>
      this.#native.multiLock(listOf(list, 'names of locks', name => name)))
  }

  /**
   * The cached value with this name, fresh for `ttlMs`; if there is none, `compute` makes it, for one caller at a time.
   * The others wait, and get what it made: any JSON value, as JSON gives it back, of at most 16 MiB. If `compute` throws,
   * its error goes on, and the next caller computes.
   *
   * A value that could not be stored, because the lease was lost or the store did not answer, is still returned. The
   * signal ends the wait for the value, not a computation that has begun.
   *
   * @throws {LockTimeoutError} if another computed for all of `waitMs`; {@link InvalidArgumentError} if the value is not
   * one of JSON, or too large
   */
  cached<T>(
    name: string, ttlMs: number, compute: () => T | PromiseLike<T>, options?: CachedOptions
  ): Promise<T> {
    return cached(this.#native, name, ttlMs, compute, options)
  }

  /**
   * Forget the cached value with this name. A computation that has begun does not count either: its caller gets its
   * value, but the next one computes anew.
   */
  invalidate(name: string): Promise<void> {
    return call(
      (bridge, number) => this.#native.invalidate(bridge, number, name), nothing, { operation: 'invalidate', on: { name } })
  }

  /** The queue with this name. No I/O, and no check, as of `lock`. */
  queue<Json = any>(name: string): Queue<Json> {
    return Queue.of<Json>(name, () => this.#native.queue(name))
  }

  /** Several queues, to claim from in this order. No I/O, and no check, as of `lock`. */
  queues<Json = any>(names: readonly string[]): Queues<Json> {
    return Queues.of<Json>(names, () => this.#native.queues(listOf(names, 'names', name => name)))
  }

  /**
   * Continue a lease that `Lease.detach` ended. A handle works once.
   *
   * @throws {LeaseLostError} or {@link LeaseExpiredError} if it is not to be had any more
   */
  resumeLease(handle: string): Promise<Lease> {
    return call((bridge, number) => this.#native.resumeLease(bridge, number, handle), Lease.of, { operation: 'resume' })
  }

  /** Release every lease of this client that is still held; resolves to how many. */
  releaseAll(): Promise<number> {
    return call((bridge, number) => this.#native.releaseAll(bridge, number), undefined, { operation: 'release_all' })
  }

  /**
   * What this client has counted since it was opened, by the names of the Prometheus samples, such as
   * `stanchion_lock_acquires_total{outcome="granted"}`. No I/O. docs/METRICS.md has the names.
   */
  metrics(): Record<string, number> {
    const samples = checked(() => this.#native.metrics())
    return Object.fromEntries(samples.map(({ name, value }) => [name, value]))
  }

  /** The same in Prometheus' text format, to be served as `text/plain; version=0.0.4`. No I/O. */
  metricsText(): string {
    return checked(() => this.#native.metricsText())
  }

  /** Names of locks that are held now, a page at a time. */
  locks(page?: bigint | null): Promise<NamePage> {
    return call((bridge, number) => this.#native.locks(bridge, number, page), namePage, { operation: 'locks' })
  }

  /** Names of queues, a page at a time. */
  queueNames(page?: bigint | null): Promise<NamePage> {
    return call((bridge, number) => this.#native.queueNames(bridge, number, page), namePage, { operation: 'queue_names' })
  }

  /**
   * Releases all leases, puts back all claims, and closes the connections. Calls that wait end with `ClosedError`, and so
   * does every later one. Stop workers before.
   */
  async close(): Promise<void> {
    await call((bridge, number) => this.#native.close(bridge, number), undefined, { operation: 'close' })
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** The one that is acquired first, in the order of the core. */
function firstOf(names: unknown): string {
  const texts = Array.isArray(names) ? names.filter((name): name is string => typeof name === 'string') : []
  return texts.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))[0] ?? ''
}

function namePage(found: Native.Names): NamePage {
  return { names: found.names, next: found.next ?? null }
}

function checked<T>(get: () => T): T {
  try {
    return get()
  } catch (thrown) {
    throw refusalOf(thrown)
  }
}
