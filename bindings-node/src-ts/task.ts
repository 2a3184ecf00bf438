import { backoffOf, backoffText, type Backoff, type ExponentialBackoff } from './backoff.js'
import { errorOf, InvalidArgumentError, type StanchionError } from './errors.js'
import { native, type Native } from './native.js'
import { encode, parse, type Headers, type Payload } from './payload.js'
import { checkNames, checkOptions, dueTime, maybeDate, shown, type Time } from './values.js'

/**
 * What happens if the id is in the queue: it stays as it is; stays, and gets no successor if it runs; is replaced; is replaced, and its due time moves on until
 * `maxWaitMs` after the first enqueue; or only one enqueue of the id is accepted per window.
 */
export type OnDuplicate =
  | 'keep'
  | 'skip'
  | 'replace'
  | { debounce: { maxWaitMs: number } }
  | { throttle: { windowMs: number } }

/** A task to put into a queue. `Json` is the type of the queue's payloads, if it is given. */
export interface Task<Json = any> {
  /** Is in the queue once. Default: a random one. */
  id?: string | undefined
  /** Bytes, or any JSON value; 16 MiB at most. Default: no bytes. */
  payload?: (unknown extends Json ? Payload : Json) | undefined
  /** Short texts that travel along. */
  headers?: Headers | undefined
  /** Not delivered earlier than so many milliseconds from now. */
  delayMs?: number | undefined
  /** Not delivered earlier. */
  due?: Time | undefined
  /** 0 to 255, higher ones first. Default: 0. */
  priority?: number | undefined
  /** Deliveries without success before it is dead. Default: 20, which takes about two days. */
  maxAttempts?: number | undefined
  /** Not delivered later than so many milliseconds after it was accepted. Default: never expires. */
  expiresMs?: number | undefined
  /** What happens if the id is in the queue. Default: `keep`. */
  onDuplicate?: OnDuplicate | undefined
  /** What work it is, by which workers choose their handler: 1 to 128 bytes, no control characters. Default: none. */
  kind?: string | undefined
  /**
   * How long a run may take, in milliseconds, 1 to 365 days: one that takes longer loses its claim, and has failed with the
   * reason `timeout`. Default: as long as its claim is renewed.
   */
  timeoutMs?: number | undefined
  /** How long it waits after a failed attempt. Default: as `NackOptions.delayMs` says. */
  backoff?: Backoff | undefined
  /** For how long the result of its run is kept, in milliseconds, 1 to 30 days. Default: 3,600,000. */
  keepResultMs?: number | undefined
  /**
   * Whose task it is, such as `tenant:7`: 1 to 512 bytes, no control characters. Tasks with a key in common share the limits that
   * the queue gives each key (`QueueConfig`), and keys share the queue alike: one with a million tasks does not hold up another
   * with ten. Without any limit one task of each key stands in line, and the next one when that is delivered. Default: none.
   */
  key?: string | undefined
}

/** How an enqueue ended. */
export type Outcome = 'added' | 'kept' | 'replaced' | 'successor' | 'throttled' | 'skipped' | 'other'

/** What an enqueue did. If it was throttled, `due` is null and `version` 0n. */
export interface Enqueued {
  id: string
  outcome: Outcome
  version: bigint
  due: Date | null
}

/** Where a task is. */
export type TaskState = 'scheduled' | 'ready' | 'claimed' | 'held' | 'dead'

/** Who claimed a task last. */
export interface ClaimedBy {
  label: string
  host: string
  pid: number
  /** When, by the store's clock; null if that delivery was settled and the task lives. */
  since: Date | null
}

/** A failed attempt of a task. */
export interface TaskFailure {
  /** When it failed; if its lease ended, when that was. */
  at: Date
  /** Why. */
  reason: string
}

/** A task as it is in a queue. */
export interface TaskInfo<Json = any> {
  id: string
  state: TaskState
  payload: Buffer
  /** The payload, read as JSON each time. Throws a SyntaxError if it is none. */
  readonly json: Json
  headers: Record<string, string>
  /** Bytes of payload and headers, as stored. */
  size: number
  version: bigint
  due: Date
  priority: number
  attempts: number
  maxAttempts: number
  expires: Date | null
  receipt: bigint
  /** Of a claimed task, in milliseconds. */
  leaseLeftMs: number
  /** Why it failed last. */
  reason: string
  /** Who claimed it last; null if nobody did. */
  claimedBy: ClaimedBy | null
  died: Date | null
  /** When the task that waits for the end of this one is due. */
  successorDue: Date | null
  /** What work it is, if it says so. Not in a listing without payloads; so are the next two. */
  kind: string | null
  /** How long a run may take, in milliseconds, if it says so. */
  timeoutMs: number | null
  /** How long it waits after a failed attempt, if it says so. */
  backoff: number[] | Required<ExponentialBackoff> | null
  /** The last five failed attempts, the latest last. */
  failures: TaskFailure[]
  /** How far its run has come, as that said (`Claim.progress`); empty if it did not, or does not run. */
  progress: Buffer
  /** Whether it was cancelled while it runs: this run is its last. */
  cancelled: boolean
  /** Its key, if it has one. */
  key: string | null
}

/** @internal */
export const TASK: ReadonlySet<string> = new Set<keyof Task>(
  [
    'id', 'payload', 'headers', 'delayMs', 'due', 'priority', 'maxAttempts', 'expiresMs', 'onDuplicate', 'kind', 'timeoutMs',
    'backoff', 'keepResultMs', 'key'])
const DEBOUNCE = new Set(['maxWaitMs'])
const THROTTLE = new Set(['windowMs'])

/** @internal */
export function nativeTask(task: Task): Native.Task {
  if (typeof task !== 'object' || task === null) {
    throw new InvalidArgumentError(`a task is an object, not ${shown(task)}: enqueue({ id, payload })`)
  }
  checkNames(task, TASK, 'property of a task')
  return nativeOf(task)
}

/** @internal Of one whose names were checked. */
export function nativeOf(task: Task): Native.Task {
  const [payload, headers] = encode(task.payload, task.headers)
  const [policy, policyTime] = onDuplicate(task.onDuplicate)
  return new (native().Task)(
    task.id, payload, headers, task.delayMs, dueTime(task.due), task.priority, task.maxAttempts, task.expiresMs, policy,
    policyTime, task.kind, task.timeoutMs, backoffText(task.backoff), task.keepResultMs, task.key)
}

function onDuplicate(policy: OnDuplicate | undefined): [string | undefined, number | undefined] {
  if (typeof policy !== 'object' || policy === null) return [policy, undefined]
  if ('debounce' in policy) {
    checkOptions(policy.debounce, DEBOUNCE)
    return ['debounce', policy.debounce?.maxWaitMs]
  }
  if ('throttle' in policy) {
    checkOptions(policy.throttle, THROTTLE)
    return ['throttle', policy.throttle?.windowMs]
  }
  return ['', undefined]
}

/** @internal */
export function enqueued(found: Native.Enqueued): Enqueued {
  return { ...found, outcome: found.outcome as Outcome, due: maybeDate(found.due) }
}

/** @internal */
export function enqueuedOrNot(found: Native.EnqueuedOrNot): Enqueued | StanchionError {
  return found.failure ? errorOf(found.failure) : enqueued(found.enqueued as Native.Enqueued)
}

/** @internal */
export function taskInfo<Json>(found: Native.TaskInfo): TaskInfo<Json> {
  const { leaseLeft, timeout, ...rest } = found
  return {
    ...rest,
    state: found.state as TaskState,
    get json(): Json {
      return parse(this.payload) as Json
    },
    due: new Date(found.due),
    expires: maybeDate(found.expires),
    claimedBy: found.claimedBy ? { ...found.claimedBy, since: maybeDate(found.claimedBy.since) } : null,
    died: maybeDate(found.died),
    successorDue: maybeDate(found.successorDue),
    leaseLeftMs: leaseLeft,
    kind: found.kind ?? null,
    key: found.key ?? null,
    timeoutMs: timeout ?? null,
    backoff: backoffOf(found.backoff),
    failures: found.failures.map(({ at, reason }) => ({ at: new Date(at), reason })),
  }
}
