import { call, lossSignal } from './bridge.js'
import { refusalOf } from './errors.js'
import { FlowInput } from './flow.js'
import { nothing, type Loss } from './lease.js'
import type { Native } from './native.js'
import { bytesOrText, parse } from './payload.js'
import { OURS, checkOptions, checkOurs } from './values.js'

declare const verdict: unique symbol

/** How a claim ended, to be settled with others by `Queue.settle` or `Queue.settleAndClaim`. */
export interface Verdict {
  readonly [verdict]: never
}

/** Options of a put back. */
export interface PutBackOptions {
  /** Not before so many milliseconds. Default: the task comes back to its place in line at once. */
  delayMs?: number | undefined
}

/** Options of a nack. */
export interface NackOptions {
  /**
   * When it is tried again, in milliseconds. Default: 1 s, 16 s, 81 s, 4 min and so on after the first, second, ...
   * attempt (the fourth power of its number), less up to half of it by chance, 7 h at most.
   */
  delayMs?: number | undefined
  /** Kept with the task; 1 KiB at most, the rest is cut off. */
  reason?: string | undefined
}

const NACK_OPTIONS: ReadonlySet<string> = new Set<keyof NackOptions>(['delayMs', 'reason'])
const PUT_BACK_OPTIONS: ReadonlySet<string> = new Set<keyof PutBackOptions>(['delayMs'])

/**
 * A task that is ours until it is settled, or its lease ends. It is renewed by a thread of its own.
 *
 * `await using` nacks it if it was not settled. So it ends, too, some time after the object was collected as garbage.
 */
export class Claim<Json = any> {
  readonly #native: Native.Claim
  #payload: Buffer | undefined
  #signal: AbortSignal | undefined
  #settled = false
  #returned = false
  #buried = false

  private constructor(ours: typeof OURS, native: Native.Claim) {
    checkOurs(ours, 'a claim is made by await queue.claim(options)')
    this.#native = native
  }

  /** @internal */
  static of<Json>(native: Native.Claim): Claim<Json> {
    return new Claim<Json>(OURS, native)
  }

  /** The task's id. */
  get id(): string {
    return this.#native.id
  }

  /** The queue's name. */
  get queue(): string {
    return this.#native.queue
  }

  /** The payload's bytes. */
  get payload(): Buffer {
    return (this.#payload ??= this.#native.payload)
  }

  /** The payload, read as JSON each time. Throws a SyntaxError if it is none. */
  get json(): Json {
    return parse(this.payload) as Json
  }

  /** What was sent along. */
  get headers(): Record<string, string> {
    return this.#native.headers
  }

  /** What work it is, if the task says so. */
  get kind(): string | null {
    return this.#native.kind
  }

  /** Counts deliveries from one. */
  get attempt(): number {
    return this.#native.attempt
  }

  /** After so many without success the task is dead. */
  get maxAttempts(): number {
    return this.#native.maxAttempts
  }

  /** The number of this delivery. */
  get receipt(): bigint {
    return this.#native.receipt
  }

  /** Changes with every enqueue of the id. */
  get version(): bigint {
    return this.#native.version
  }

  /** 0 to 255, higher ones first. */
  get priority(): number {
    return this.#native.priority
  }

  /** Its key, if it has one. */
  get key(): string | null {
    return this.#native.key
  }

  /** The id of the flow that the task is a node of, if it is one. */
  get flow(): string | null {
    return this.#native.flow
  }

  /** When it was to be delivered. */
  get due(): Date {
    return new Date(this.#native.due)
  }

  /** For how many milliseconds the task is surely ours from now on, without further renewal. */
  get remainingMs(): number {
    return this.#native.remaining
  }

  /** Whether the task is ours now. Computed from the clock. */
  get valid(): boolean {
    return this.#native.valid
  }

  /** Why it was lost, if it was. To settle it is no loss. */
  get loss(): Loss | null {
    return this.#native.lossName as Loss | null
  }

  /** Aborted with a `LeaseLostError` when the claim is lost, as `Lease.signal`. */
  get signal(): AbortSignal {
    const claim = this.#native
    return (this.#signal ??= lossSignal(claim.loss, (bridge, number) => claim.waitLost(bridge, number)))
  }

  /**
   * What has become of the nodes that this one comes after, with the results that they gave (`Claim.ack`), in the order in which
   * they were named; if it comes after all, of all. Of a flow 64 MiB of results are kept. Empty if the task is of no flow.
   */
  inputs(): Promise<FlowInput[]> {
    return call(
      (bridge, number) => this.#native.inputs(bridge, number),
      (found: Native.FlowInput[]) => found.map(one => FlowInput.of(one)), { operation: 'inputs', on: this })
  }

  /**
   * Done: the task leaves the queue. A second ack repeats the answer of the first. A result, bytes or a text, 1 MiB at most,
   * is what `Queue.result` gives for as long as the task's `keepResultMs` says; of a queue 10,000 results and 64 MiB are kept.
   *
   * @throws {StaleReceiptError} if the lease had ended and the task was delivered again or settled meanwhile
   */
  ack(result?: Uint8Array | string): Promise<void> {
    return call(
      (bridge, number) => this.#native.ack(bridge, number, resultOf(result)), () => this.#settle(),
      { operation: 'ack', on: this })
  }

  /**
   * Note how far the work has come, in bytes or a text, 4 KiB at most: `Queue.get` and listings show it until the run ends.
   * The lease is renewed. Errors as of `extend`.
   */
  progress(progress: Uint8Array | string): Promise<void> {
    return call(
      (bridge, number) => this.#native.progress(bridge, number, bytesOrText(progress, 'the progress')), nothing,
      { operation: 'progress', on: this })
  }

  /** Not done: the task is tried again, or is dead after its last attempt. Errors as of `ack`. */
  nack(options?: NackOptions): Promise<void> {
    return call((bridge, number) => {
      checkOptions(options, NACK_OPTIONS)
      this.#native.nack(bridge, number, options?.delayMs, options?.reason)
    }, () => this.#settle(), { operation: 'nack', on: this })
  }

  /** Not done, and not to be tried again: the task is dead. Errors as of `ack`. */
  bury(reason?: string): Promise<void> {
    return call(
      (bridge, number) => this.#native.bury(bridge, number, reason), () => {
        this.#settle()
        this.#buried = true
      }, { operation: 'bury', on: this })
  }

  /**
   * Not tried: the task goes back without counting an attempt, and waits for `delayMs`. Without one it comes back to
   * its place in line, so the next claim gets it again. Errors as of `ack`.
   */
  putBack(options?: PutBackOptions): Promise<void> {
    return call((bridge, number) => {
      checkOptions(options, PUT_BACK_OPTIONS)
      this.#native.putBack(bridge, number, options?.delayMs)
      this.#returned = true
    }, () => this.#settle(), { operation: 'put_back', on: this })
  }

  /**
   * Not tried, because whoever it calls has had enough (a 429, `Retry-After`): the task goes back to its place without counting
   * an attempt, and nothing more of its key is given out for so many milliseconds; if it has no key, nothing of the queue. A
   * later throttle makes that longer, never shorter. Errors as of `ack`.
   */
  throttle(timeMs: number): Promise<void> {
    return call((bridge, number) => {
      this.#native.throttle(bridge, number, timeMs)
      this.#returned = true
    }, () => this.#settle(), { operation: 'throttle', on: this })
  }

  /**
   * Prolong the lease to at least `leaseMs` from now; never shortens it.
   *
   * @throws {LeaseLostError} if it was lost or settled; {@link LeaseExpiredError} if it ran out
   */
  extend(leaseMs: number): Promise<void> {
    return call(
      (bridge, number) => this.#native.extend(bridge, number, leaseMs), nothing, { operation: 'extend', on: this })
  }

  /** The verdict "done", also with a result, as of `ack`. @throws {InvalidArgumentError} for one of more than 1 MiB */
  acked(result?: Uint8Array | string): Verdict {
    return this.#verdict('ack', () => this.#native.acked(resultOf(result)))
  }

  /** The verdict "try again". @throws {InvalidArgumentError} for a delay over 365 days */
  nacked(options?: NackOptions): Verdict {
    return this.#verdict('nack', () => {
      checkOptions(options, NACK_OPTIONS)
      return this.#native.nacked(options?.delayMs, options?.reason)
    })
  }

  /** The verdict "dead". */
  buried(reason?: string): Verdict {
    return this.#verdict('bury', () => this.#native.buried(reason))
  }

  /** The verdict "not tried". @throws {InvalidArgumentError} for a delay over 365 days */
  returned(options?: PutBackOptions): Verdict {
    return this.#verdict('put_back', () => {
      checkOptions(options, PUT_BACK_OPTIONS)
      const verdict = this.#native.returned(options?.delayMs)
      this.#returned = true
      return verdict
    })
  }

  /** The verdict "not tried, and nothing more of its key for so long". @throws {InvalidArgumentError} for a time over 365 days */
  throttled(timeMs: number): Verdict {
    return this.#verdict('throttle', () => {
      const verdict = this.#native.throttled(timeMs)
      this.#returned = true
      return verdict
    })
  }

  /** Nacks the task if it was not settled. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#settled) await this.nack({ reason: 'not settled' })
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Claim { id: ${JSON.stringify(this.id)}, queue: ${JSON.stringify(this.queue)}, attempt: ${this.attempt} }`
  }

  /** @internal */
  static nativeOf(claim: Claim): Native.Claim {
    return claim.#native
  }

  /** @internal Whether it went back, which is not reported to a worker. */
  static isReturned(claim: Claim): boolean {
    return claim.#returned
  }

  /** @internal */
  static isSettled(claim: Claim): boolean {
    return claim.#settled
  }

  /** @internal */
  static isBuried(claim: Claim): boolean {
    return claim.#buried
  }

  #settle(): void {
    this.#settled = true
  }

  #verdict(operation: string, make: () => Native.Verdict): Verdict {
    try {
      const made = make()
      this.#settled = true
      return made as unknown as Verdict
    } catch (thrown) {
      throw refusalOf(thrown, { operation, on: this })
    }
  }
}

function resultOf(result: Uint8Array | string | null | undefined): Uint8Array | undefined {
  return result === undefined || result === null ? undefined : bytesOrText(result, 'the result')
}
