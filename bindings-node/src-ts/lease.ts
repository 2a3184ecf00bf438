import { call, lossSignal } from './bridge.js'
import { errorOf, InvalidArgumentError } from './errors.js'
import { native, type Native } from './native.js'
import { OURS, checkOptions, checkOurs } from './values.js'

/**
 * Why a lease or a claim was lost: it ran out; it was renewed for as long as `maxHoldMs` or `maxRunMs` allows; it was
 * given to another (a task: or settled); `breakLease` was called; the store has no record of it any more; another
 * program overwrote or deleted the lock's key; the task was removed; the store refused the renewal for good; the run took
 * longer than its timeout; the task was cancelled; the worker stops.
 */
export type Loss =
  | 'expired' | 'max_hold' | 'taken' | 'broken' | 'forgotten' | 'overwritten' | 'removed' | 'refused' | 'timeout'
  | 'cancelled' | 'stopped'

/** How to release. */
export interface ReleaseOptions {
  /** Keep the lock closed for so long, in milliseconds: at most one holder per time. */
  cooldownMs?: number | undefined
}

const RELEASE_OPTIONS: ReadonlySet<string> = new Set<keyof ReleaseOptions>(['cooldownMs'])

/**
 * Leases that were neither released nor lost. Garbage collection must not end one: a program may well hold a lock, and
 * not look at the lease any more. When the thread of JavaScript ends, so do they. By number: a map would leave tables
 * behind, through which the garbage collector would take what was released long ago for alive.
 */
const held: (Lease | undefined)[] = []
/** How many there are, and at how many to look for those that were lost. */
let count = 0
let many = 1_000
/** Leases that were lost: the native half remembers why, as long as somebody may ask. */
const lost = new FinalizationRegistry<Native.Lease>(number => native().forgetLease(number))

function keep(number: Native.Lease, lease: Lease): void {
  held[number] = lease
  count += 1
  if (count >= many) letGoOfLost()
}

function letGo(number: Native.Lease): void {
  if (held[number] === undefined) return
  held[number] = undefined
  count -= 1
}

function letGoOfLost(): void {
  for (const [number, lease] of held.entries()) {
    if (lease === undefined || lease.valid) continue
    letGo(number)
    lost.register(lease, number, lease)
  }
  many = Math.max(1_000, 2 * count)
}

/** Has all of them released in the background. */
export function letGoOfAll(): void {
  for (const lease of held) if (lease !== undefined) Lease.forget(lease)
}

/**
 * A lock that is ours until it is released, expires, or is lost. `await using` releases it.
 *
 * It is renewed by a thread of its own, also while the event loop is blocked, and whether or not anything refers to
 * this object.
 */
export class Lease {
  #granted: Native.NewLease
  /** Undefined when it is over, and the native half has forgotten it. */
  #number: Native.Lease | undefined
  #signal: AbortSignal | undefined
  #over = false

  private constructor(ours: typeof OURS, granted: Native.NewLease) {
    checkOurs(ours, 'a lease is made by await lock.acquire(options)')
    this.#granted = granted
    this.#number = granted.number
    keep(granted.number, this)
  }

  /** @internal */
  static of(granted: Native.NewLease): Lease {
    return new Lease(OURS, granted)
  }

  /** @internal It is over; if it is ours still, it is released in the background. */
  static forget(lease: Lease): void {
    lease.#forget()
  }

  /** The lock's name. */
  get name(): string {
    return this.#granted.name
  }

  /** Larger than that of every earlier grant: pass it along with each write, and refuse smaller ones. */
  get fence(): bigint {
    return this.#granted.fence
  }

  /** The fence of each lock, by name: of `Client.multiLock` there are several. */
  get fences(): Record<string, bigint> {
    const { name, fence, fences } = this.#granted
    return Object.fromEntries((fences ?? [{ name, fence }]).map(one => [one.name, one.fence]))
  }

  /** The secret that proves the lease is ours. */
  get token(): string {
    return this.#granted.token
  }

  /** For how many milliseconds the lease is surely ours from now on, without further renewal. */
  get remainingMs(): number {
    return this.#number === undefined ? 0 : native().remainingOfLease(this.#number)
  }

  /** Whether the lease is ours now. Computed from the clock. */
  get valid(): boolean {
    return this.#number !== undefined && native().isLeaseValid(this.#number)
  }

  /** Why it was lost, if it was. A release is no loss. */
  get loss(): Loss | null {
    return this.#number === undefined ? null : native().lossNameOfLease(this.#number) as Loss | null
  }

  /**
   * Aborted with a `LeaseLostError` when the lease is lost: at its deadline at the latest, or, if the event loop was
   * blocked then, on its next turn. Not aborted by a release. The process does not stay alive for it.
   */
  get signal(): AbortSignal {
    return (this.#signal ??= this.#lossSignal())
  }

  /**
   * Does nothing while the lease is ours. Computed from the clock, also if the event loop was blocked until now.
   *
   * @throws {LeaseLostError} if it was lost or released; {@link LeaseExpiredError} if it ran out
   */
  check(): void {
    const failure = native().checkLease(this.#alive('check'))
    if (failure !== null) throw errorOf(failure)
  }

  /**
   * Prolong the lease to at least `ttlMs` from now; never shortens it.
   *
   * @throws {LeaseLostError} if it was lost or released; {@link LeaseExpiredError} if it ran out
   */
  extend(ttlMs: number): Promise<void> {
    return call(
      (bridge, number) => native().extendLease(bridge, number, this.#alive('extend'), ttlMs), nothing,
      { operation: 'extend', on: this })
  }

  /**
   * Have the lease end `ttlMs` from now (1 ms to 365 days), also earlier than it would. It is not renewed any more. If
   * the store does not answer, the lease goes on to the earlier of both ends.
   *
   * @throws {LeaseLostError} if it was lost or released; {@link LeaseExpiredError} if it ran out, also before the answer
   * came: its validity is up to 2 ms and 1 % shorter
   */
  extendExact(ttlMs: number): Promise<void> {
    return call(
      (bridge, number) => native().extendLeaseExact(bridge, number, this.#alive('extend'), ttlMs), nothing,
      { operation: 'extend', on: this })
  }

  /**
   * Turn the lease of a reader into that of a writer if nobody else holds the lock: whether it is a writer's now. Never
   * waits: two readers that both wait to become the writer would wait for each other for ever. The lease gets a new
   * fence; its end stays.
   *
   * @throws {InvalidArgumentError} for a lease of another kind of lock; {@link LeaseLostError} if it was lost or
   * released; {@link LeaseExpiredError} if it ran out
   */
  upgrade(): Promise<boolean> {
    return call((bridge, number) => native().upgradeLease(bridge, number, this.#alive('upgrade')), (fence: bigint | null) => {
      if (fence !== null) this.#granted = { ...this.#granted, fence }
      return fence !== null
    }, { operation: 'upgrade', on: this })
  }

  /**
   * Turn the lease of a writer into that of a reader, with the same fence: other readers may come in. A reader's lease
   * stays as it is.
   *
   * @throws {InvalidArgumentError} for a lease of another kind of lock; {@link LeaseLostError} if it was lost or
   * released; {@link LeaseExpiredError} if it ran out
   */
  downgrade(): Promise<void> {
    return call(
      (bridge, number) => native().downgradeLease(bridge, number, this.#alive('downgrade')), nothing,
      { operation: 'downgrade', on: this })
  }

  /**
   * Give the lock back.
   *
   * @throws {LeaseLostError} or {@link LeaseExpiredError} if it was not ours to the end, or was released before
   */
  release(options?: ReleaseOptions): Promise<void> {
    let began = false
    return call((bridge, number) => {
      checkOptions(options, RELEASE_OPTIONS)
      native().releaseLease(bridge, number, this.#alive('release'), options?.cooldownMs)
      began = !this.#over
      this.#over = true
    }, () => this.#forget(), { operation: 'release', on: this }).catch((error: unknown) => {
      // Nothing was done: it is to be released at the end of a scope.
      if (began && error instanceof InvalidArgumentError) this.#over = false
      throw error
    })
  }

  /**
   * Detach the lease: a text with which another process can resume it, once, within `ttlMs` (30,000). A secret.
   *
   * @throws {LeaseLostError} if it was lost or released
   */
  detach(ttlMs: number = 30_000): Promise<string> {
    let began = false
    return call((bridge, number) => {
      native().detachLease(bridge, number, this.#alive('extend'), ttlMs)
      began = !this.#over
      this.#over = true
    }, (handle: string) => {
      this.#forget()
      return handle
    }, { operation: 'extend', on: this }).catch((error: unknown) => {
      // It goes on as it was, and is released at the end of a scope.
      if (began) this.#over = false
      throw error
    })
  }

  /** Releases it, unless that was done. If the body of `await using` failed, too, a `SuppressedError` has both errors. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#over) await this.release()
  }

  /** @internal Releases it at the end of a body that ended well. */
  async end(): Promise<void> {
    // Released by the body: that release has reported the loss, if there was one.
    if (!this.#over) await this.release()
  }

  #lossSignal(): AbortSignal {
    const lease = this.#number
    // Released: then it cannot be lost any more.
    if (lease === undefined) return new AbortController().signal
    return lossSignal(
      native().lossOfLease(lease), (bridge, number) => native().waitLostLease(bridge, number, lease))
  }

  /** Its number; fails when it is over. */
  #alive(operation: string): Native.Lease {
    if (this.#number === undefined) throw errorOf(native().releasedLease(operation, this.name))
    return this.#number
  }

  #forget(): void {
    if (this.#number === undefined) return
    letGo(this.#number)
    // Its number is another lease's from now on.
    lost.unregister(this)
    native().forgetLease(this.#number)
    this.#number = undefined
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { name, fence, remainingMs } = this
    return `Lease { name: ${JSON.stringify(name)}, fence: ${fence}n, remainingMs: ${Math.round(remainingMs)} }`
  }
}

/** What the native half returns when there is no result. */
export function nothing(): void {}
