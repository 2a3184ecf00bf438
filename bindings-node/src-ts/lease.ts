import { call, lossSignal } from './bridge.js'
import type { Native } from './native.js'
import { checkOptions } from './values.js'

/** How to release. */
export interface ReleaseOptions {
  /** Keep the lock closed for so long, in milliseconds: at most one holder per time. */
  cooldownMs?: number | undefined
}

/**
 * Leases that were neither released nor lost. Garbage collection must not end one: a program may well hold a lock, and
 * not look at the lease any more. When the thread of JavaScript ends, so do they.
 */
const held = new Set<Native.Lease>()
/** When to look again for those that were lost. */
let many = 1_000

function keep(lease: Native.Lease): void {
  held.add(lease)
  if (held.size < many) return
  for (const one of held) if (!one.valid) held.delete(one)
  many = Math.max(1_000, 2 * held.size)
}

/**
 * A lock that is ours until it is released, expires, or is lost. `await using` releases it.
 *
 * It is renewed by a thread of its own, also while the event loop is blocked, and whether or not anything refers to
 * this object.
 */
export class Lease {
  readonly #native: Native.Lease
  #signal: AbortSignal | undefined
  #over = false

  private constructor(native: Native.Lease) {
    this.#native = native
  }

  /** @internal */
  static of(native: Native.Lease): Lease {
    keep(native)
    return new Lease(native)
  }

  /** The lock's name. */
  get name(): string {
    return this.#native.name
  }

  /** Larger than that of every earlier grant: pass it along with each write, and refuse smaller ones. */
  get fence(): bigint {
    return this.#native.fence
  }

  /** The secret that proves the lease is ours. */
  get token(): string {
    return this.#native.token
  }

  /** For how many milliseconds the lease is surely ours from now on, without further renewal. */
  get remainingMs(): number {
    return this.#native.remaining
  }

  /** Whether the lease is ours now. Computed from the clock. */
  get valid(): boolean {
    return this.#native.valid
  }

  /**
   * Aborted with a `LeaseLostError` when the lease is lost: at its deadline at the latest, or, if the event loop was
   * blocked then, on its next turn. Not aborted by a release. The process does not stay alive for it.
   */
  get signal(): AbortSignal {
    return (this.#signal ??= lossSignal(this.#native))
  }

  /**
   * Prolong the lease to at least `ttlMs` from now; never shortens it.
   *
   * @throws {LeaseLostError} if it was lost or released; {@link LeaseExpiredError} if it ran out
   */
  extend(ttlMs: number): Promise<void> {
    return call((bridge, number) => this.#native.extend(bridge, number, ttlMs), nothing)
  }

  /**
   * Give the lock back.
   *
   * @throws {LeaseLostError} or {@link LeaseExpiredError} if it was not ours to the end, or was released before
   */
  release(options?: ReleaseOptions): Promise<void> {
    return call((bridge, number) => {
      checkOptions(options)
      this.#native.release(bridge, number, options?.cooldownMs)
      this.#end()
    }, nothing)
  }

  /**
   * Detach the lease: a text with which another process can resume it, once, within `ttlMs` (30,000). A secret.
   *
   * @throws {LeaseLostError} if it was lost or released
   */
  intoHandle(ttlMs: number = 30_000): Promise<string> {
    return call((bridge, number) => {
      this.#native.intoHandle(bridge, number, ttlMs)
      this.#end()
    })
  }

  /** Releases it, unless that was done. If the body of `await using` failed, too, a `SuppressedError` has both errors. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#over) await this.release()
  }

  /** @internal Releases it at the end of a body that ended well. */
  async end(): Promise<void> {
    // Released by the body: then that has told the truth.
    if (!this.#over) await this.release()
  }

  #end(): void {
    this.#over = true
    held.delete(this.#native)
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { name, fence, remainingMs } = this
    return `Lease { name: ${JSON.stringify(name)}, fence: ${fence}n, remainingMs: ${Math.round(remainingMs)} }`
  }
}

/** What the native half answers when there is nothing to say. */
export function nothing(): void {}
