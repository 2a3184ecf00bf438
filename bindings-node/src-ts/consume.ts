import { checkSignal, offAbort, onAbort, watch } from './bridge.js'
import { Claim } from './claim.js'
import { InvalidArgumentError, detailsOf, type About } from './errors.js'
import { CLOSED, closable, waiting, type Loop } from './loop.js'
import type { ClaimOptions } from './queue.js'
import { checkOptions, shown } from './values.js'

/** How to consume. */
export interface ConsumeOptions extends Pick<ClaimOptions, 'leaseMs' | 'renew' | 'maxRunMs' | 'timeoutMs' | 'signal'> {
  /** How many claims may be out at a time: neither settled nor lost. Default: 1. */
  concurrency?: number | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof ConsumeOptions>(
  ['concurrency', 'leaseMs', 'renew', 'maxRunMs', 'timeoutMs', 'signal'])

/** How long one call waits for tasks; then the next one goes on waiting. */
const WAIT_MS = 30_000

type Claiming<Json> = (options: ClaimOptions) => Promise<Claim<Json>[]>

/** Claims one by one; not more at a time than may be out. What nobody took goes back at the end. */
export function consume<Json>(claim: Claiming<Json>, about: About, options?: ConsumeOptions): Loop<Claim<Json>> {
  return closable(end => take(claim, end, about, options))
}

async function* take<Json>(
  claim: Claiming<Json>, end: AbortController, about: About, options: ConsumeOptions = {}
): Loop<Claim<Json>> {
  checkOptions(options, OPTIONS, about)
  const { concurrency = 1, signal, leaseMs, renew, maxRunMs, timeoutMs } = options
  checkSignal(signal, about)
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new InvalidArgumentError(
      `concurrency is a whole number from 1 on, not ${shown(concurrency)}`, detailsOf(about))
  }
  const out = new Outstanding(concurrency, end.signal)
  let found: Claim<Json>[] = []
  try {
    for (;;) {
      found = await waiting(end, signal, async () => {
        await out.roomForOne()
        return claim({ leaseMs, renew, maxRunMs, timeoutMs, max: out.room(), waitMs: WAIT_MS, signal: end.signal })
      })
      while (found.length > 0) {
        const next = found.shift() as Claim<Json>
        out.add(next)
        yield next
        checkSignal(signal)
      }
    }
  } catch (thrown) {
    if (thrown !== CLOSED) throw thrown
  } finally {
    await Promise.allSettled(found.map(one => one.putBack()))
  }
}

/** Counts the claims that are neither settled nor lost. */
class Outstanding {
  readonly #most: number
  readonly #signal: AbortSignal
  #count = 0
  #wake = (): void => {}

  constructor(most: number, signal: AbortSignal) {
    this.#most = most
    this.#signal = signal
  }

  room(): number {
    return this.#most - this.#count
  }

  add(claim: Claim): void {
    this.#count += 1
    const over = (): void => {
      this.#count -= 1
      this.#wake()
    }
    watch((bridge, number) => Claim.nativeOf(claim).waitLost(bridge, number)).then(over, over)
  }

  async roomForOne(): Promise<void> {
    const wake = (): void => this.#wake()
    onAbort(this.#signal, wake)
    try {
      checkSignal(this.#signal)
      while (this.room() < 1) {
        await new Promise<void>(resolve => { this.#wake = resolve })
        checkSignal(this.#signal)
      }
    } finally {
      offAbort(this.#signal, wake)
    }
  }
}
