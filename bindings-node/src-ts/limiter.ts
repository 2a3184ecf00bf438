import { call } from './bridge.js'
import { type Native } from './native.js'
import { OURS, checkOptions, checkOurs } from './values.js'

/** What a limiter allows. All who use it should give the same. */
export interface Limit {
  /** So many: 1 to 1,000,000, of a sliding window 10,000; no more than one per microsecond. */
  n: number
  /** In so many milliseconds: 1 to 365 days. */
  perMs: number
  /** Of the kind `gcra`, how many may come at once after a calm time. Default: 1. */
  burst?: number | undefined
  /**
   * How it counts: `gcra` spaces evenly, with bursts; `fixed-window` allows `n` in each window of the store's clock;
   * `sliding-window` allows `n` in any window. Each kind has names of its own. Default: `gcra`.
   */
  kind?: 'gcra' | 'fixed-window' | 'sliding-window' | undefined
}

/** Options of one take. */
export interface TakeOptions {
  /** How many. Default: 1. */
  count?: number | undefined
  /** How long to wait in line, in milliseconds: 3,600,000 at most. Default: 10,000. */
  waitMs?: number | undefined
  /**
   * Gives up: the promise rejects with the signal's reason, and the turn is given back, unless somebody is in line behind
   * it.
   */
  signal?: AbortSignal | undefined
}

/** How a take ended. */
export interface Taken {
  /** Whether it was taken. */
  allowed: boolean
  /** If not, the milliseconds after which a try would succeed, if nobody else takes any meanwhile; otherwise null. */
  retryAfterMs: number | null
}

const LIMIT: ReadonlySet<string> = new Set<keyof Limit>(['n', 'perMs', 'burst', 'kind'])
const OPTIONS: ReadonlySet<string> = new Set<keyof TakeOptions>(['count', 'waitMs', 'signal'])

/**
 * So many in so long, for all who use a limiter of this name. Made by {@link Client.limiter}.
 *
 * The store's clock decides. A request whose answer is lost is sent again, and may then have taken twice: there is never more
 * than the limit, but there may be less.
 */
export class Limiter {
  readonly #client: Native.Client
  readonly #limit: Limit
  /** The name. */
  readonly name: string

  private constructor(ours: typeof OURS, client: Native.Client, name: string, limit: Limit) {
    checkOurs(ours, 'a limiter is made by client.limiter(name, { n, perMs })')
    this.#client = client
    // What it is now: the object may change later.
    checkOptions(limit, LIMIT, { operation: 'limiter', on: { name } })
    this.#limit = { ...limit }
    this.name = name
  }

  /** @internal */
  static of(client: Native.Client, name: string, limit: Limit): Limiter {
    return new Limiter(OURS, client, name, limit)
  }

  /** Take some if they are allowed now; otherwise nothing, and say when they would be. */
  tryTake(options?: Omit<TakeOptions, 'waitMs'>): Promise<Taken> {
    return this.#take({ ...options, waitMs: 0 })
  }

  /**
   * Take some, waiting for the turn. Who waits is in line in the order of arrival, and goes on when its turn has come by the
   * store's clock, without asking again. If the turn would come later than `waitMs`, it is refused at once.
   */
  take(options?: TakeOptions): Promise<Taken> {
    return this.#take(options)
  }

  #take(options: TakeOptions | undefined): Promise<Taken> {
    return call<number | null, Taken>((bridge, number) => {
      checkOptions(options, OPTIONS)
      const { n, perMs, burst, kind } = this.#limit
      this.#client.take(
        bridge, number, this.name, kind ?? 'gcra', n, perMs, burst, options?.count ?? 1, options?.waitMs)
    }, retryAfterMs => ({ allowed: retryAfterMs === null, retryAfterMs }), { operation: 'take', on: this }, options)
  }
}
