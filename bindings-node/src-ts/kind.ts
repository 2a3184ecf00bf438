/** Kinds of tasks: what is enqueued under one, and the handler that workers run for it. */

import { types } from 'node:util'
import type { Claim } from './claim.js'
import { InvalidArgumentError, detailsOf, during, refusalOf } from './errors.js'
import type { Queue } from './queue.js'
import { nativeTask, type Enqueued, type Task } from './task.js'
import { OURS, checkFunction, checkOptions, checkOurs } from './values.js'
import type { TaskContext } from './working.js'

/**
 * Done if it returns or resolves: with what it gives, unless that is undefined, as the task's result, in JSON. Tried again later
 * if it throws or rejects. It may also settle the claim itself.
 */
export type KindHandler<Payload = any, Result = any> =
  (payload: Payload, claim: Claim<Payload>, context: TaskContext) => Result | PromiseLike<Result>

/** Of one task of a kind. What is not given is as the kind says. */
export type KindTaskOptions = Omit<Task, 'payload' | 'kind'>

/** Of all tasks of a kind, unless an enqueue says otherwise. */
export type KindOptions = Omit<KindTaskOptions, 'id' | 'due'>

const DEFAULTS = [
  'headers', 'delayMs', 'priority', 'maxAttempts', 'expiresMs', 'onDuplicate', 'timeoutMs', 'backoff', 'keepResultMs', 'key'
] as const satisfies readonly (keyof KindOptions)[]
const KIND_OPTIONS: ReadonlySet<string> = new Set(DEFAULTS)
const TASK_OPTIONS: ReadonlySet<string> = new Set(['id', 'due', ...DEFAULTS] satisfies (keyof KindTaskOptions)[])

/** What tasks of one kind are and do. Made by `Queue.task`. */
export class TaskKind<Payload = any, Result = any> {
  /** The kind, by which workers choose it, in whatever language they are. */
  readonly kind: string
  /** What a worker runs for each task: see `Queue.worker`. */
  readonly handler: KindHandler<Payload, Result>
  /** The queue's name. */
  readonly queue: string
  readonly #queue: Queue
  readonly #options: KindOptions

  private constructor(
    ours: typeof OURS, queue: Queue, kind: string, handler: KindHandler<Payload, Result>, options: KindOptions
  ) {
    checkOurs(ours, 'a kind is made by queue.task(kind, handler, options)')
    this.kind = kind
    this.handler = handler
    this.queue = queue.name
    this.#queue = queue
    this.#options = options
  }

  /** @internal */
  static of<Payload, Result>(
    queue: Queue, kind: string, handler: KindHandler<Payload, Result>, options: KindOptions = {}
  ): TaskKind<Payload, Result> {
    const about = { operation: 'task', on: queue }
    checkFunction(handler, 'the handler', 'task(kind, handler, options)', about)
    checkOptions(options, KIND_OPTIONS, about)
    if (typeof kind !== 'string') throw new InvalidArgumentError('the kind is a text: task(kind, handler, options)', detailsOf(about))
    const made = new TaskKind<Payload, Result>(OURS, queue, kind, handler, { ...options })
    try {
      // A task that could not be put in is refused where its kind is written.
      nativeTask({ ...options, id: 'task', kind }).check()
    } catch (thrown) {
      throw refusalOf(thrown, about)
    }
    return made
  }

  /**
   * Put a task of this kind in. The payload is any JSON value: null if there is none.
   *
   * @throws {QueueFullError} at the limit
   */
  async enqueue(payload: Payload, options?: KindTaskOptions): Promise<Enqueued> {
    let task: Task
    try {
      task = this.task(payload, options)
    } catch (thrown) {
      throw during(thrown, { operation: 'enqueue', on: this.#queue })
    }
    return this.#queue.enqueue(task)
  }

  /** A task of this kind, for `Queue.enqueueMany`. */
  task(payload: Payload, options: KindTaskOptions = {}): Task<Payload> {
    checkOptions(options, TASK_OPTIONS)
    if (payload === undefined) {
      throw new InvalidArgumentError('the payload of a kind is a JSON value, not undefined; null says that there is none')
    }
    if (ArrayBuffer.isView(payload) || types.isAnyArrayBuffer(payload)) {
      throw new InvalidArgumentError('the payload of a kind is a JSON value, not bytes')
    }
    return { ...merged(this.#options, options), payload: payload as Task<Payload>['payload'], kind: this.kind }
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `TaskKind { kind: ${JSON.stringify(this.kind)}, queue: ${JSON.stringify(this.queue)} }`
  }
}

/** What an enqueue gives counts; what is undefined is not given. */
function merged(defaults: KindOptions, given: KindTaskOptions): KindTaskOptions {
  const all: Record<string, unknown> = { ...defaults }
  // A task takes one of both.
  if (given.due !== undefined) delete all['delayMs']
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) all[name] = value
  }
  return all
}
