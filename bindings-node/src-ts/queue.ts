import { call, type Signalled, type Start } from './bridge.js'
import { Claim, type Verdict } from './claim.js'
import { consume, type ConsumeOptions } from './consume.js'
import { deadTasks, type DeadTasks } from './dead.js'
import { errorOf, InvalidArgumentError, type StanchionError } from './errors.js'
import { events, type EventsOptions, type TaskEvent } from './events.js'
import { flowInfo, nativeNode, type FlowInfo, type FlowPage, type Node, type NodeFor } from './flow.js'
import { TaskKind, type KindHandler, type KindOptions } from './kind.js'
import { nothing } from './lease.js'
import { keyInfo, nativeConfig, nativeLimits, type KeyInfo, type KeyLimits, type KeyPage, type QueueConfig } from './limits.js'
import { native, type Native } from './native.js'
import { TaskResult, type ResultOptions } from './result.js'
import {
  nativeSchedule, scheduleInfo, synced, type Schedule, type ScheduleInfo, type ScheduleOutcome, type SchedulePage, type Synced
} from './schedule.js'
import { stats, type QueueStats } from './stats.js'
import {
  enqueued, enqueuedOrNot, nativeTask, taskInfo, type Enqueued, type Task, type TaskInfo, type TaskState
} from './task.js'
import { OURS, checkOptions, checkOurs, dueTime, listOf, maybeDate, type Time } from './values.js'
import { Worker, isKinds } from './worker.js'
import type { Handler, KindWorkerOptions, WorkerOptions } from './working.js'

/** How to claim. */
export interface ClaimOptions {
  /** Tasks at most. Default: 1. */
  max?: number | undefined
  /** How long the store keeps each lease, in milliseconds. Without it: 30,000 and renewed; with it: not renewed. */
  leaseMs?: number | undefined
  /** Whether it is renewed in the background. Default: if no `leaseMs` is given. */
  renew?: boolean | undefined
  /** How long it is renewed at most, in milliseconds. Default: 3,600,000. */
  maxRunMs?: number | undefined
  /**
   * How long a run of a task may take that does not say so itself, in milliseconds; then the claim is lost, and the run has
   * failed. Default: as long as it is renewed.
   */
  timeoutMs?: number | undefined
  /** How long to wait for the first task, in milliseconds. Default: 0. */
  waitMs?: number | undefined
  /** Gives up: the promise rejects with the signal's reason, and no task stays claimed. */
  signal?: AbortSignal | undefined
}

/** What to list besides the state. */
export interface ListOptions {
  /** Tasks at most. Default: 100. */
  max?: number | undefined
  /** Only those whose id begins so. A page may then have few or none, and a next one all the same. */
  prefix?: string | undefined
  /** Whether with payloads and headers; without, both are empty. Default: true. */
  payloads?: boolean | undefined
  /** Which page: `next` of the page before. */
  page?: string | null | undefined
}

const LIST_OPTIONS: ReadonlySet<string> = new Set<keyof ListOptions>(['max', 'prefix', 'payloads', 'page'])

const REMOVE_OPTIONS = new Set(['version'])
const RESULT_OPTIONS: ReadonlySet<string> = new Set<keyof ResultOptions>(['version', 'waitMs', 'signal'])
const LIST_SCHEDULES = new Set(['page', 'max'])
const LIST_KEYS = new Set(['page', 'max'])
const LIST_FLOWS = new Set(['page', 'max'])
const CLAIM_OPTIONS: ReadonlySet<string> = new Set<keyof ClaimOptions>(
  ['max', 'leaseMs', 'renew', 'maxRunMs', 'timeoutMs', 'waitMs', 'signal'])

/** Some of the tasks of one state. `next` gets the next page; null if this was the last. */
export interface TaskPage<Json = any> {
  tasks: TaskInfo<Json>[]
  next: string | null
}

/** Whether a task was removed; if another version was in its place, which. */
export interface Removed {
  removed: boolean
  otherVersion: bigint | null
}

/** How a cancel ended: the task waited, and is gone; it runs, and ends with this run; or there is none. */
export interface TaskCancelled {
  outcome: 'removed' | 'running' | 'absent' | 'other'
}

/** How a reschedule ended, and the new due time if it was moved. */
export interface Rescheduled {
  outcome: 'moved' | 'absent' | 'claimed' | 'dead' | 'other'
  due: Date | null
}

/** A process that works on a queue, for people and dashboards: out of date as soon as it is read. */
export interface Consumer {
  label: string
  host: string
  pid: number
  /** How many of its calls wait for a task. */
  waiters: number
  /** How many tasks it has. */
  claims: number
}

/** A named queue of tasks. Made by `Client.queue`. `Json` is what its payloads are, read as JSON. */
export class Queue<Json = any> {
  /** The queue's name. */
  readonly name: string
  readonly #make: () => Native.Queue
  #native: Native.Queue | undefined

  private constructor(ours: typeof OURS, name: string, make: () => Native.Queue) {
    checkOurs(ours, 'a queue is made by client.queue(name)')
    this.name = name
    this.#make = make
  }

  /** @internal */
  static of<Json>(name: string, make: () => Native.Queue): Queue<Json> {
    return new Queue<Json>(OURS, name, make)
  }

  /** @internal */
  static nativeOf(queue: Queue): Native.Queue {
    return queue.#handle()
  }

  /**
   * Put a task in.
   *
   * @throws {QueueFullError} at the limit
   */
  enqueue(task: Task<Json>): Promise<Enqueued>
  enqueue(task: Task<Json>, surplus?: unknown): Promise<Enqueued> {
    return ask(this, 'enqueue', (queue, bridge, number) => {
      const made = nativeTask(task)
      checkSurplus('enqueue', surplus)
      queue.enqueue(bridge, number, made)
    }, enqueued)
  }

  /** Put many tasks in. One result per task: what the enqueue did, or the error (such as QueueFullError). */
  enqueueMany(tasks: Iterable<Task<Json>>): Promise<(Enqueued | StanchionError)[]>
  enqueueMany(tasks: Iterable<Task<Json>>, surplus?: unknown): Promise<(Enqueued | StanchionError)[]> {
    return ask(this, 'enqueue', (queue, bridge, number) => {
      checkSurplus('enqueueMany', surplus)
      queue.enqueueMany(bridge, number, listOf(tasks, 'tasks', nativeTask))
    }, (found: Native.EnqueuedOrNot[]) => found.map(enqueuedOrNot))
  }

  /** Take up to `max` (1) tasks under a lease, waiting for some for up to `waitMs` (0). */
  claim(options?: ClaimOptions): Promise<Claim<Json>[]> {
    return ask(
      this, 'claim', (queue, bridge, number) => queue.claim(bridge, number, terms(options)), claims<Json>, options)
  }

  /**
   * Take tasks one by one, for ever: `for await (const claim of queue.consume()) { ...; await claim.ack() }`.
   *
   * At most `concurrency` (1) are out at a time: the next one comes when one of them is settled or lost.
   */
  consume(options?: ConsumeOptions): AsyncGenerator<Claim<Json>, void, undefined> {
    return consume(claiming => this.claim(claiming), { operation: 'claim', on: this }, options)
  }

  /**
   * A worker that runs `handler` for each task; or, of `tasks`, the handler of each one's kind. It begins at once.
   *
   * A task whose kind is not among them is put back: it may be for another worker. One whose payload is no JSON is dead.
   */
  worker(handler: Handler<Json>, options?: WorkerOptions): Worker<Json>
  worker(options: KindWorkerOptions<Json>): Worker<Json>
  worker(work: Handler<Json> | KindWorkerOptions<Json>, options?: WorkerOptions): Worker<Json> {
    if (!isKinds(work)) return Worker.of(this.name, () => this.#handle(), work, options)
    const { tasks, handler, ...others } = work as KindWorkerOptions<Json>
    return Worker.of(this.name, () => this.#handle(), { tasks, handler }, { ...others, ...options })
  }

  /**
   * Declare a kind of tasks: how it is enqueued, and what workers do for it. `queue.worker({ tasks: [sendWelcome] })` runs it.
   * The options are those of its tasks, unless an enqueue says otherwise.
   */
  task<Payload = Json, Result = any>(
    kind: string, handler: KindHandler<Payload, Result>, options?: KindOptions
  ): TaskKind<Payload, Result> {
    return TaskKind.of(this, kind, handler, options)
  }

  /** Settle claims together. Null, or the error, for each. */
  settle(verdicts: Iterable<Verdict>): Promise<(StanchionError | null)[]> {
    return ask(this, 'settle', (queue, bridge, number) => queue.settle(bridge, number, taken(verdicts)), settled)
  }

  /** Settle at most 256 claims and take new tasks, in one round trip if there are any. */
  settleAndClaim(
    verdicts: Iterable<Verdict>, options?: ClaimOptions
  ): Promise<{ settled: (StanchionError | null)[], claims: Claim<Json>[] }> {
    return ask(
      this, 'settle_and_claim',
      (queue, bridge, number) => queue.settleAndClaim(bridge, number, taken(verdicts), terms(options)),
      (found: Native.SettledAndClaimed) => ({ settled: settled(found.settled), claims: claims<Json>(found.claims) }),
      options)
  }

  /** Take up to `max` tasks for good, without a lease: if this process dies, they are lost. */
  pop(max: number = 1): Promise<TaskInfo<Json>[]> {
    return ask(this, 'pop', (queue, bridge, number) => queue.pop(bridge, number, max), infos<Json>)
  }

  /** The tasks that would be claimed next. */
  peek(max: number = 1): Promise<TaskInfo<Json>[]> {
    return ask(this, 'peek', (queue, bridge, number) => queue.peek(bridge, number, max), infos<Json>)
  }

  /** One task: the live one with this id, else the newest dead one. */
  get(id: string): Promise<TaskInfo<Json> | null> {
    return ask(
      this, 'get', (queue, bridge, number) => queue.get(bridge, number, id),
      (found: Native.TaskInfo | null) => found === null ? null : taskInfo<Json>(found))
  }

  /** The tasks of one state, a page at a time. */
  list(state: TaskState, options?: ListOptions): Promise<TaskPage<Json>> {
    return ask(this, 'list', (queue, bridge, number) => {
      checkOptions(options, LIST_OPTIONS)
      queue.list(bridge, number, state, options?.page, options?.max, options?.prefix, options?.payloads)
    }, (found: Native.TaskPage) => ({ tasks: infos<Json>(found.tasks), next: found.next ?? null }))
  }

  /** Drop a task, also while it is claimed. With a version, only if it is still the task's. */
  remove(id: string, options?: { version?: bigint | undefined }): Promise<Removed> {
    return ask(this, 'remove', (queue, bridge, number) => {
      checkOptions(options, REMOVE_OPTIONS)
      queue.remove(bridge, number, id, options?.version)
    }, (found: Native.RemovedOrNot) => ({ removed: found.removed, otherVersion: found.otherVersion ?? null }))
  }

  /**
   * End a task. One that waits is dropped. One that runs is told at the next renewal of its claim, within a third of its lease,
   * which is lost then (`cancelled`); an ack of that run is still accepted, and whatever else it ends with, the task is not
   * tried again. What is enqueued later is a new task.
   */
  cancel(id: string): Promise<TaskCancelled> {
    return ask(
      this, 'cancel', (queue, bridge, number) => queue.cancel(bridge, number, id),
      (found: string) => ({ outcome: found as TaskCancelled['outcome'] }))
  }

  /** What became of a task: its result (`Claim.ack`), or why it is dead. Waits for up to `waitMs` (0) while it is not done. */
  result(id: string, options?: ResultOptions): Promise<TaskResult> {
    return ask(this, 'result', (queue, bridge, number) => {
      checkOptions(options, RESULT_OPTIONS)
      queue.result(bridge, number, id, options?.version, options?.waitMs)
    }, TaskResult.of, options)
  }

  /**
   * What happens to the tasks of the queue, if it keeps events: `configure`. Without `waitMs` the loop ends by `break`, by its
   * signal, or by an error. Events report that something happened, and not what is: a program that acts on tasks claims them.
   * `purge` has none.
   */
  events(options?: EventsOptions): AsyncGenerator<TaskEvent, void, undefined> {
    return events(
      (after, waitMs, signal) => ask(
        this, 'events', (queue, bridge, number) => queue.events(bridge, number, after, waitMs), undefined, { signal }),
      { operation: 'events', on: this }, options)
  }

  /** Give a waiting task another due time. */
  reschedule(id: string, due: Time): Promise<Rescheduled> {
    return ask(
      this, 'reschedule', (queue, bridge, number) => queue.reschedule(bridge, number, id, dueTime(due) as number),
      (found: Native.RescheduledOrNot) =>
        ({ outcome: found.outcome as Rescheduled['outcome'], due: maybeDate(found.due) }))
  }

  /**
   * Move dead tasks back to ready, unless their ids live: this id, these, so many of the oldest, or those that `DeadTasks` selects.
   * How many were moved.
   */
  kick(which: string | readonly string[] | number | DeadTasks): Promise<number> {
    return ask(this, 'kick', (queue, bridge, number) => queue.kick(bridge, number, deadTasks('kick', which)))
  }

  /** Drop dead tasks, selected as for `kick`: by id, ids, a count of the oldest, or `DeadTasks`. Resolves to how many. */
  removeDead(which: string | readonly string[] | number | DeadTasks): Promise<number> {
    return ask(
      this, 'remove_dead',
      (queue, bridge, number) => queue.removeDead(bridge, number, deadTasks('removeDead', which)))
  }

  /** How many tasks there are, and the settings. */
  stats(): Promise<QueueStats> {
    return ask(this, 'stats', (queue, bridge, number) => queue.stats(bridge, number), stats)
  }

  /**
   * Who works on the queue: the processes of the first thousand calls that wait for a task, and of the first thousand
   * claims.
   */
  consumers(): Promise<Consumer[]> {
    return ask(
      this, 'consumers', (queue, bridge, number) => queue.consumers(bridge, number),
      (found: Native.Consumer[]): Consumer[] => found)
  }

  /** Stop giving out tasks. Claims that are out go on. */
  pause(): Promise<void> {
    return ask(this, 'pause', (queue, bridge, number) => queue.pause(bridge, number), nothing)
  }

  /** Go on giving out tasks. */
  resume(): Promise<void> {
    return ask(this, 'pause', (queue, bridge, number) => queue.resume(bridge, number), nothing)
  }

  /** Drop every task, live and dead; claims that are out are lost. Settings stay. How many there were. */
  purge(): Promise<number> {
    return ask(this, 'purge', (queue, bridge, number) => queue.purge(bridge, number))
  }

  /**
   * Add a schedule, or change the one with its id: its slots go on as they are, unless what says when they are is another.
   *
   * @throws {InvalidArgumentError} also if no slot comes any more
   */
  schedule(schedule: Schedule<Json>): Promise<ScheduleOutcome>
  schedule(schedule: Schedule<Json>, surplus?: unknown): Promise<ScheduleOutcome> {
    return ask(this, 'schedule', (queue, bridge, number) => {
      const made = nativeSchedule(schedule)
      checkSurplus('schedule', surplus, 'schedule: { id, when, payload }')
      queue.schedule(bridge, number, made)
    })
  }

  /**
   * Make these all the schedules of this owner, an application for example, 1,000 at most: adds what is new, changes what
   * is other, removes what the owner has no more. What others have put stays. To be called at each start, with a number
   * that grows with each deploy: a list of an older generation changes nothing.
   */
  syncSchedules(owner: string, generation: number, schedules: Iterable<Schedule<Json>>): Promise<Synced> {
    return ask(this, 'sync_schedules', (queue, bridge, number) => {
      queue.syncSchedules(bridge, number, owner, generation, listOf(schedules, 'schedules', nativeSchedule))
    }, synced)
  }

  /** One schedule. */
  getSchedule(id: string): Promise<ScheduleInfo | null> {
    return ask(
      this, 'get_schedule', (queue, bridge, number) => queue.getSchedule(bridge, number, id),
      (found: Native.ScheduleInfo | null) => found === null ? null : scheduleInfo(found))
  }

  /** The schedules, a page of at most `max` (100, which is also the most) at a time. `page`: `next` of the page before. */
  listSchedules(options?: { page?: string | null | undefined, max?: number | undefined }): Promise<SchedulePage> {
    return ask(this, 'list_schedules', (queue, bridge, number) => {
      checkOptions(options, LIST_SCHEDULES)
      queue.listSchedules(bridge, number, options?.page, options?.max)
    }, (found: Native.SchedulePage) => ({ schedules: found.schedules.map(scheduleInfo), next: found.next ?? null }))
  }

  /** Let a schedule fire nothing until it is resumed; whether there is such a schedule. */
  pauseSchedule(id: string): Promise<boolean> {
    return ask(this, 'pause_schedule', (queue, bridge, number) => queue.pauseSchedule(bridge, number, id))
  }

  /** Let a schedule go on; whether there is such a schedule. The slots of the pause are not fired. */
  resumeSchedule(id: string): Promise<boolean> {
    return ask(this, 'resume_schedule', (queue, bridge, number) => queue.resumeSchedule(bridge, number, id))
  }

  /**
   * Make a task of a schedule now, also if it is paused; its slots stay as they are. The task's id, or null if there is no
   * such schedule.
   *
   * @throws {QueueFullError} at the limit
   */
  runSchedule(id: string): Promise<string | null> {
    return ask(this, 'run_schedule', (queue, bridge, number) => queue.runSchedule(bridge, number, id))
  }

  /** Drop a schedule; whether there was one. The tasks that it has made stay. */
  removeSchedule(id: string): Promise<boolean> {
    return ask(this, 'remove_schedule', (queue, bridge, number) => queue.removeSchedule(bridge, number, id))
  }

  /**
   * Put a flow in, whole: tasks of which some wait for others, 10,000 at most, with 64 MiB of payloads in all. Whether there was none
   * of this id (without a slash): one that is there stays as it is. It is kept for 7 days after its end, and of a queue the last 1,000 that have ended
   * are. Its tasks come into their queues although those may be at their limit.
   *
   * @throws {QueueFullError} at the limit; {@link InvalidArgumentError} also for nodes that wait for each other: nothing is sent then
   */
  enqueueFlow(id: string, nodes: Iterable<NodeFor<Json>>): Promise<boolean> {
    return ask(this, 'enqueue_flow', (queue, bridge, number) => {
      queue.enqueueFlow(bridge, number, id, listOf(nodes as Iterable<Node>, 'nodes', nativeNode))
    })
  }

  /**
   * Add nodes to a flow that runs, 1,000 at most and 4 MiB of payloads; whether it does: false if there is none, or it has ended. As
   * long as the caller's task is a node of it, it runs. The new ones may come after nodes that are there, and those that wait for all
   * wait for these, too. None has an `afterAll`: those come with the flow.
   */
  addToFlow(id: string, nodes: Iterable<NodeFor<Json> & { afterAll?: undefined }>): Promise<boolean> {
    return ask(this, 'add_to_flow', (queue, bridge, number) => {
      queue.addToFlow(bridge, number, id, listOf(nodes as Iterable<Node>, 'nodes', nativeNode))
    })
  }

  /** A flow with all its nodes, if it is known. */
  getFlow(id: string): Promise<FlowInfo | null> {
    return ask(
      this, 'get_flow', (queue, bridge, number) => queue.getFlow(bridge, number, id),
      (found: Native.FlowInfo | null) => found === null ? null : flowInfo(found))
  }

  /**
   * The flows without their nodes: those that run, the latest first, then those that have ended; a page of at most `max` (100, which
   * is also the most) at a time. `page`: `next` of the page before.
   */
  listFlows(options?: { page?: string | null | undefined, max?: number | undefined }): Promise<FlowPage> {
    return ask(this, 'list_flows', (queue, bridge, number) => {
      checkOptions(options, LIST_FLOWS)
      queue.listFlows(bridge, number, options?.page, options?.max)
    }, (found: Native.FlowPage) => ({ flows: found.flows.map(flowInfo), next: found.next ?? null }))
  }

  /**
   * Cancel a flow; whether there is one that runs. Tasks that wait go, those that run are told (as by `cancel`), and of the nodes that
   * are not in their queues only those still run that wait for nothing but the end of others (`finally`). Sent once.
   */
  cancelFlow(id: string): Promise<boolean> {
    return ask(this, 'cancel_flow', (queue, bridge, number) => queue.cancelFlow(bridge, number, id))
  }

  /**
   * Try again what did not succeed in a flow: nodes that are dead, cancelled or skipped, with attempts starting again; whether there
   * is such a flow. Those that succeeded do not run again. Sent once.
   */
  retryFlow(id: string): Promise<boolean> {
    return ask(this, 'retry_flow', (queue, bridge, number) => queue.retryFlow(bridge, number, id))
  }

  /**
   * Give a key limits of its own, at once, also while its tasks run; those that run too many end first. Without any, or with
   * null, those that it has are taken away.
   *
   * @throws {QueueFullError} if 100,000 keys have limits of their own
   */
  limitKey(key: string, limits?: KeyLimits | null): Promise<void> {
    return ask(
      this, 'limit_key', (queue, bridge, number) => queue.limitKey(bridge, number, key, ...nativeLimits(limits)), nothing)
  }

  /** What is known of a key: how many of its tasks run, stand in line and are held, and what limits it has of its own. */
  getKey(key: string): Promise<KeyInfo> {
    return ask(this, 'get_key', (queue, bridge, number) => queue.getKey(bridge, number, key), keyInfo)
  }

  /**
   * The keys that hold tasks, then those that have limits of their own and hold none, a page of at most `max` (100, which is
   * also the most) at a time. `page`: `next` of the page before.
   */
  listKeys(options?: { page?: string | null | undefined, max?: number | undefined }): Promise<KeyPage> {
    return ask(this, 'list_keys', (queue, bridge, number) => {
      checkOptions(options, LIST_KEYS)
      queue.listKeys(bridge, number, options?.page, options?.max)
    }, (found: Native.KeyPage) => ({ keys: found.keys.map(keyInfo), next: found.next ?? null }))
  }

  /** Change settings; what is not given stays, and null takes a limit away. */
  configure(settings: QueueConfig): Promise<void> {
    return ask(this, 'configure', (queue, bridge, number) => {
      queue.configure(bridge, number, nativeConfig(settings))
    }, nothing)
  }

  #handle(): Native.Queue {
    return (this.#native ??= this.#make())
  }
}

/** Several queues that are claimed from in the order given. Made by `Client.queues`. */
export class Queues<Json = any> {
  /** The queues' names. */
  readonly names: readonly string[]
  readonly #make: () => Native.Queues
  #native: Native.Queues | undefined

  private constructor(ours: typeof OURS, names: readonly string[], make: () => Native.Queues) {
    checkOurs(ours, 'queues are made by client.queues(names)')
    this.names = names
    this.#make = make
  }

  /** @internal */
  static of<Json>(names: readonly string[], make: () => Native.Queues): Queues<Json> {
    return new Queues<Json>(OURS, names, make)
  }

  /** Take tasks of the first queue that has some, as `Queue.claim`. */
  claim(options?: ClaimOptions): Promise<Claim<Json>[]> {
    return call(
      (bridge, number) => (this.#native ??= this.#make()).claim(bridge, number, terms(options)), claims<Json>,
      { operation: 'claim' }, options)
  }

  /** As `Queue.consume`. */
  consume(options?: ConsumeOptions): AsyncGenerator<Claim<Json>, void, undefined> {
    return consume(claiming => this.claim(claiming), { operation: 'claim' }, options)
  }
}

function ask<N, T = N>(
  on: Queue, operation: string, start: (queue: Native.Queue, ...to: Parameters<Start>) => void,
  convert?: (found: N) => T, options?: Signalled
): Promise<T> {
  return call((bridge, number) => start(Queue.nativeOf(on), bridge, number), convert, { operation, on }, options)
}

/** What other packages take as a second argument would go unnoticed. */
function checkSurplus(verb: string, given: unknown, where = 'task: { id, payload, delayMs }'): void {
  if (given === undefined) return
  throw new InvalidArgumentError(`${verb} takes one argument; the options stand in the ${where}`)
}

function terms(options: ClaimOptions = {}): Native.ClaimOptions {
  checkOptions(options, CLAIM_OPTIONS)
  return new (native().ClaimOptions)(
    options.max, options.leaseMs, options.renew, options.maxRunMs, options.waitMs, options.timeoutMs)
}

function taken(verdicts: Iterable<Verdict>): Native.Verdict[] {
  return listOf(verdicts, 'verdicts', verdict => verdict as unknown as Native.Verdict)
}

function claims<Json>(found: Native.Claim[]): Claim<Json>[] {
  return found.map(one => Claim.of<Json>(one))
}

function infos<Json>(found: Native.TaskInfo[]): TaskInfo<Json>[] {
  return found.map(one => taskInfo<Json>(one))
}

function settled(found: (Native.Failure | null | undefined)[]): (StanchionError | null)[] {
  return found.map(failure => failure ? errorOf(failure) : null)
}
