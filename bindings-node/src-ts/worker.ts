import { EventEmitter } from 'node:events'
import { functionsAround, runWithin } from './around.js'
import { checkSignal, follow, offAbort, onAbort } from './bridge.js'
import { Claim } from './claim.js'
import { errorOf, isError, StanchionError, type About } from './errors.js'
import { native, type Native } from './native.js'
import { Routes, type Kinds } from './routes.js'
import { OURS, checkFunction, checkOptions, checkOurs } from './values.js'
import type { Around, Handler, TaskContext, WorkerEvents, WorkerOptions, WorkerReport } from './working.js'

const OPTIONS: ReadonlySet<string> = new Set<keyof WorkerOptions>(
  ['concurrency', 'leaseMs', 'maxRunMs', 'timeoutMs', 'graceMs', 'untilEmpty', 'around', 'signal'])

interface Run {
  readonly number: number
  readonly claim: Claim
  readonly context: Context
  outcome: unknown
  hasThrown: boolean
}

class Context implements TaskContext {
  #controller: AbortController | undefined
  #reason: { because: unknown } | undefined

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason.because)
    }
    return this.#controller.signal
  }

  abort(because: unknown): void {
    this.#reason ??= { because }
    this.#controller?.abort(because)
  }
}

/**
 * Takes tasks of a queue and runs a handler for each, several at once. Made by `Queue.worker`.
 *
 * Errors of the store, which it survives, are `error` events if somebody listens; the one that ends it is one in any
 * case, unless somebody has asked for `finished`.
 */
export class Worker<Json = any> extends EventEmitter<WorkerEvents<Json>> {
  /** The queue's name. */
  readonly queue: string
  #handler: Handler<Json> | undefined
  #signal: AbortSignal | undefined
  readonly #finished: Promise<WorkerReport>
  readonly #runs = new Map<number, Run>()
  /** By id and attempt: runs whose end was not reported yet, in the order in which they began. */
  readonly #untold = new Map<string, Run[]>()
  #native: Native.Worker | undefined
  #isWatched = false
  #failed: Run | undefined

  private constructor(
    ours: typeof OURS, name: string, queue: () => Native.Queue, work: Handler<Json> | Kinds<Json>,
    options: WorkerOptions | undefined
  ) {
    checkOurs(ours, 'a worker is made by queue.worker(handler, options)')
    super()
    this.queue = name
    this.#finished = this.#run(queue, work, options)
    this.#finished.then(() => this.#end(), (error: StanchionError) => {
      this.#end()
      if (this.#isWatched && this.listenerCount('error') === 0) return
      this.emit('error', error)
    })
  }

  /** @internal */
  static of<Json>(
    name: string, queue: () => Native.Queue, work: Handler<Json> | Kinds<Json>, options: WorkerOptions | undefined
  ): Worker<Json> {
    return new Worker<Json>(OURS, name, queue, work, options)
  }

  /** Resolves when the worker has ended; rejects if the store or an argument ended it. */
  get finished(): Promise<WorkerReport> {
    this.#isWatched = true
    return this.#finished
  }

  /** Takes no more tasks, and resolves when the handlers at work have ended and their tasks are settled: see `graceMs`. */
  async close(): Promise<WorkerReport> {
    this.#native?.stop()
    return this.finished
  }

  /** As `close`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #run(
    queue: () => Native.Queue, work: Handler<Json> | Kinds<Json>, options: WorkerOptions = {}
  ): Promise<WorkerReport> {
    const about = { operation: 'work', on: { name: this.queue } }
    if (!isKinds(work)) checkFunction(work, 'the handler', 'worker(handler, options)', about)
    checkOptions(options, OPTIONS, about)
    this.#handler = this.#handlerOf(work, functionsAround(options.around, about), about)
    const { signal } = options
    if (signal?.aborted === true) return { completed: 0, failed: 0, dead: 0, lost: 0 }
    checkSignal(signal, about)
    this.#signal = signal
    if (signal) onAbort(signal, this.#abort)
    return await follow<WorkerReport, WorkerReport>((bridge, number) => {
      this.#native = new (native().Worker)(
        queue(), options.concurrency, options.leaseMs, options.maxRunMs, options.graceMs, options.untilEmpty,
        options.timeoutMs)
      this.#native.run(bridge, number)
      // By a getter of the options.
      if (signal?.aborted === true) this.#abort()
    }, report => report, about, (news: Native.News) => this.#hear(news))
  }

  #handlerOf(work: Handler<Json> | Kinds<Json>, around: readonly Around[], about: About): Handler<Json> {
    if (isKinds(work)) {
      const routes = new Routes(work, around, this.queue, about, (...unknown) => queueMicrotask(() => this.#leave(...unknown)))
      return (claim, context) => routes.handle(claim, context)
    }
    const handler = work as Handler<Json>
    return (claim, context) => runWithin(around, claim, () => handler(claim, context))
  }

  readonly #abort = (): void => {
    this.#native?.hurry()
    for (const run of this.#runs.values()) run.context.abort(this.#signal?.reason)
  }

  #end(): void {
    if (this.#signal) offAbort(this.#signal, this.#abort)
  }

  #hear(news: Native.News): void {
    switch (news.what) {
      case 'task':
        this.#begin(news.run as number, Claim.of<Json>(news.claim as Native.Claim))
        break
      case 'gone':
        this.#lose(news.run as number)
        break
      case 'completed': {
        const run = this.#told(news)
        if (run !== undefined) this.emit('completed', run.claim, run.outcome)
        break
      }
      case 'failed':
        this.#failed = this.#told(news)
        if (this.#failed !== undefined) this.#fail(this.#failed, news)
        break
      case 'dead':
        if (this.#failed !== undefined) this.emit('dead', this.#failed.claim, errorOfRun(this.#failed, news))
        break
      case 'lost': {
        const run = this.#told(news)
        if (run !== undefined) this.emit('lost', run.claim)
        break
      }
      case 'stuck': {
        const run = this.#ofTask(news)
        if (run !== undefined) this.emit('stuck', run.claim)
        break
      }
      case 'missed': {
        const [id, missed, fired] = [news.id as string, news.missed as number, news.fired as number]
        if (!this.emit('slotsMissed', id, missed, fired)) {
          console.error(
            `stanchion: queue '${this.queue}': schedule ${JSON.stringify(id)}: nobody worked on the queue: ` +
            `${missed} slots were missed, ${fired} fired late`)
        }
        break
      }
      case 'empty':
        this.emit('empty')
        break
      case 'error':
        this.#storeFailed(errorOf(news.failure as Native.Failure))
        break
      case 'back':
        if (!this.emit('recovered', news.after as number)) {
          console.error(`stanchion: queue '${this.queue}': the store answers again, after ${((news.after as number) / 1000).toFixed(1)} s`)
        }
    }
  }

  /** The worker goes on: an error that ends it rejects `finished`. */
  #storeFailed(error: StanchionError): void {
    if (this.listenerCount('error') > 0) this.emit('error', error)
    else console.error(`stanchion: queue '${this.queue}': ${error.message}; trying again`)
  }

  /** A failure that nobody listens to is on stderr: it must not pass unseen. What the handler nacked itself is meant so. */
  #fail(run: Run, news: Native.News): void {
    if (this.emit('failed', run.claim, errorOfRun(run, news)) || !run.hasThrown) return
    const { id, attempt, maxAttempts } = run.claim
    const next = Claim.isBuried(run.claim) ? 'it is dead' : attempt < maxAttempts ? 'it is tried again' : 'that was the last one'
    console.error(
      `stanchion: task ${JSON.stringify(id)} of queue ${JSON.stringify(this.queue)} failed at attempt ${attempt} of ` +
      `${maxAttempts}: ${next}.`, run.outcome)
  }

  /** What nobody listens to must not pass unseen, nor fill the log. */
  #leave(claim: Claim<Json>, delayMs: number, isNews: boolean): void {
    if (this.emit('unknownKind', claim, delayMs) || !isNews) return
    const what = claim.kind === null ? 'no kind' : `the kind ${JSON.stringify(claim.kind)}, which this worker does not have`
    console.error(
      `stanchion: task ${JSON.stringify(claim.id)} of queue ${JSON.stringify(this.queue)} has ${what}: put back for ${delayMs / 1_000} s`)
  }

  #begin(number: number, claim: Claim<Json>): void {
    const run: Run = { number, claim, context: new Context(), outcome: undefined, hasThrown: false }
    this.#runs.set(number, run)
    const key = keyOf(claim.id, claim.attempt)
    const earlier = this.#untold.get(key)
    if (earlier === undefined) this.#untold.set(key, [run])
    else earlier.push(run)
    if (this.#signal?.aborted === true) run.context.abort(this.#signal.reason)
    void this.#attend(run)
  }

  async #attend(run: Run): Promise<void> {
    let failure: string | undefined
    try {
      run.outcome = await this.#handler?.(run.claim, run.context)
    } catch (error) {
      run.outcome = error
      run.hasThrown = true
      failure = describe(error)
      if (this.#signal?.aborted === true && await goesBack(run.claim)) failure = undefined
    }
    this.#runs.delete(run.number)
    // The core reports nothing of a task that went back.
    if (Claim.isReturned(run.claim)) this.#forget(run)
    this.#native?.said(run.number, failure)
  }

  #lose(number: number): void {
    const run = this.#runs.get(number)
    if (run === undefined) return
    const loss = Claim.nativeOf(run.claim).loss
    run.context.abort(loss === null ? new StanchionError('the worker has ended') : errorOf(loss))
  }

  /** The run that an event is about. */
  #told(news: Native.News): Run | undefined {
    const key = keyOf(news.id as string, news.attempt as number)
    const runs = this.#untold.get(key)
    const run = runs?.shift()
    if (runs?.length === 0) this.#untold.delete(key)
    return run
  }

  /** A run of this delivery that has not ended. */
  #ofTask(news: Native.News): Run | undefined {
    for (const run of this.#runs.values()) {
      if (run.claim.id === news.id && run.claim.attempt === news.attempt) return run
    }
    return undefined
  }

  #forget(run: Run): void {
    const key = keyOf(run.claim.id, run.claim.attempt)
    const others = this.#untold.get(key)?.filter(other => other !== run) ?? []
    if (others.length === 0) this.#untold.delete(key)
    else this.#untold.set(key, others)
  }
}

/** What has tasks is meant so; what they are is checked with the options. */
export function isKinds(work: unknown): work is Kinds {
  return typeof work === 'object' && work !== null && 'tasks' in work
}

function keyOf(id: string, attempt: number): string {
  return `${attempt} ${id}`
}

/** What the handler threw; or what the task was nacked or buried with. */
function errorOfRun(run: Run, news: Native.News): unknown {
  return run.hasThrown ? run.outcome : new Error(news.reason ?? '')
}

/** Puts a task back; false if that failed. */
async function goesBack(claim: Claim): Promise<boolean> {
  try {
    await claim.putBack()
    return true
  } catch {
    return false
  }
}

/** An error as the reason that is kept with the task, whatever was thrown. */
function describe(error: unknown): string {
  try {
    return isError(error) ? `${error.name}: ${error.message}` : String(error)
  } catch {
    return 'the handler failed'
  }
}
