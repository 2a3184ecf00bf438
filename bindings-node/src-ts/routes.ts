/** How a worker chooses the handler of a task: by its kind. */

import { setTimeout as sleep } from 'node:timers/promises'
import { runWithin } from './around.js'
import { Claim } from './claim.js'
import { IndeterminateError, InvalidArgumentError, StoreUnavailableError, detailsOf, during, isError, type About } from './errors.js'
import { TaskKind } from './kind.js'
import { json } from './payload.js'
import { checkFunction, listOf, shown } from './values.js'
import type { Around, Handler, TaskContext } from './working.js'

/** What a worker of kinds is given besides its options. */
export interface Kinds<Json = any> {
  /** What `Queue.task` has made of this queue; each kind once. */
  tasks: Iterable<TaskKind>
  /** For tasks without a kind, such as those of schedules. Default: they are put back, as those of an unknown kind. */
  handler?: Handler<Json> | undefined
}

/** The longest pause of a task whose kind a worker does not have, and the first one. */
const MOST_MS = 60_000
const FIRST_MS = 1_000
/** Of so many kinds a worker remembers how often it has seen them. */
const MOST_KINDS = 1_000
/** How long to wait before what the store did not answer is tried again. */
const AGAIN_MS = 500

/** Told of a task that was put back: for how long, and whether that is worth a line; not each time. */
type Unknown = (claim: Claim, delayMs: number, isNews: boolean) => void

/** The handlers of a worker, by kind. */
export class Routes {
  readonly #kinds = new Map<string, TaskKind>()
  readonly #around: readonly Around[]
  readonly #other: Handler | undefined
  readonly #unknown: Unknown
  readonly #seen = new Map<string | null, number>()

  constructor(kinds: Kinds, around: readonly Around[], queue: string, about: About, unknown: Unknown) {
    const wrong = (problem: string) => new InvalidArgumentError(problem, detailsOf(about))
    for (const one of tasksOf(kinds, about)) {
      if (!(one instanceof TaskKind)) throw wrong(`tasks are what queue.task(kind, handler) gives, not ${shown(one)}`)
      const kind = JSON.stringify(one.kind)
      if (one.queue !== queue) throw wrong(`the task ${kind} is one of queue ${JSON.stringify(one.queue)}`)
      if (this.#kinds.has(one.kind)) throw wrong(`there are two tasks of the kind ${kind}`)
      this.#kinds.set(one.kind, one)
    }
    if (this.#kinds.size === 0) throw wrong('tasks is an empty list: this worker would do nothing')
    if (kinds.handler !== undefined) checkFunction(kinds.handler, 'the handler', 'worker({ tasks, handler })', about)
    this.#around = around
    this.#other = kinds.handler
    this.#unknown = unknown
  }

  /** A handler as each worker has one. */
  async handle(claim: Claim, context: TaskContext): Promise<unknown> {
    const { kind } = claim
    const found = kind === null ? undefined : this.#kinds.get(kind)
    if (found !== undefined) return this.#run(found, claim, context)
    const other = this.#other
    if (kind === null && other !== undefined) return runWithin(this.#around, claim, () => other(claim, context))
    return this.#leave(claim)
  }

  async #run(one: TaskKind, claim: Claim, context: TaskContext): Promise<unknown> {
    let payload: unknown
    try {
      payload = claim.json
    } catch (error) {
      return bury(claim, `the payload of kind ${JSON.stringify(one.kind)} is no JSON`, error)
    }
    const found = await runWithin(this.#around, claim, () => one.handler(payload, claim, context))
    // Without a result, the worker acks many at a time.
    if (found === undefined || Claim.isSettled(claim)) return found
    try {
      const result = json(found, 'a result is undefined or a JSON value')
      await patiently(claim, () => claim.ack(result))
      return found
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      // To try again would do the work once more, to the same end.
      return bury(claim, `the handler of kind ${JSON.stringify(one.kind)} has given no result that can be kept`, error)
    }
  }

  /** It may be of a newer deploy: others are to have it, and none of its attempts counts. */
  async #leave(claim: Claim): Promise<void> {
    const times = this.#seen.get(claim.kind) ?? 0
    if (times > 0 || this.#seen.size < MOST_KINDS) this.#seen.set(claim.kind, times + 1)
    const delayMs = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(times, 10))
    await patiently(claim, () => claim.putBack({ delayMs }))
    // The first, second, fourth, eighth and so on: those times before which there were 0, 1, 3, 7.
    this.#unknown(claim, delayMs, Math.log2(times + 1) % 1 === 0)
  }
}

function tasksOf(kinds: Kinds, about: About): TaskKind[] {
  try {
    return listOf(kinds.tasks, 'tasks', one => one)
  } catch (thrown) {
    throw during(thrown, about)
  }
}

/** The task is dead; the error is what the worker tells of it. */
async function bury(claim: Claim, problem: string, error: unknown): Promise<never> {
  const reason = `${problem}: ${isError(error) ? error.message : shown(error)}`
  await patiently(claim, () => claim.bury(reason))
  throw new Error(reason, { cause: error })
}

/**
 * A store that does not answer for a while is to cost no attempt, as with what the worker itself settles. When the lease is over,
 * another may have the task: of a claim that is being settled it is not renewed.
 */
async function patiently(claim: Claim, settle: () => Promise<void>): Promise<void> {
  const end = performance.now() + claim.remainingMs
  for (;;) {
    try {
      return await settle()
    } catch (error) {
      if (!(error instanceof StoreUnavailableError || error instanceof IndeterminateError)) throw error
      if (performance.now() + AGAIN_MS > end) throw error
    }
    await sleep(AGAIN_MS)
  }
}
