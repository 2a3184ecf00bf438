/**
 * Fenced distributed locks, and a queue of tasks, on Redis or SQLite.
 *
 * @packageDocumentation
 */

// For who imports a default: all of it.
export * as default from './index.js'
export type { Backoff, ExponentialBackoff } from './backoff.js'
export type { CachedOptions } from './cached.js'
export { Claim, type NackOptions, type PutBackOptions, type Verdict } from './claim.js'
export { Client, connect, type ConnectOptions, type NamePage } from './client.js'
export type { ConsumeOptions } from './consume.js'
export type { DeadTasks } from './dead.js'
export {
  CancelledError, ClosedError, CorruptError, DeniedError, ForkedError, IndeterminateError, InternalError,
  InvalidArgumentError, LeaseExpiredError, LeaseLostError, LockTimeoutError, QueueFullError, StaleReceiptError,
  StanchionError, StoreUnavailableError, UnsupportedError, WrongTypeError, type ErrorDetails
} from './errors.js'
export type { EventsOptions, TaskEvent } from './events.js'
export {
  FlowInput, chain, type Chained, type FlowInfo, type FlowPage, type FlowState, type Node, type NodeFor, type NodeInfo, type NodeState
} from './flow.js'
export { TaskKind, type KindHandler, type KindOptions, type KindTaskOptions } from './kind.js'
export { Lease, type Loss, type ReleaseOptions } from './lease.js'
export { Limiter, type Limit, type TakeOptions, type Taken } from './limiter.js'
export type { KeyInfo, KeyLimits, KeyPage, QueueConfig, Rate } from './limits.js'
export { Lock, RwLock, type AcquireOptions, type HeldAs, type Holder, type LockOptions, type Waiter } from './lock.js'
export type { Headers, Payload } from './payload.js'
export {
  Queue, Queues, type ClaimOptions, type Consumer, type ListOptions, type Removed, type Rescheduled,
  type TaskCancelled, type TaskPage
} from './queue.js'
export { TaskResult, type ResultOptions } from './result.js'
export {
  previewSchedule, type Schedule, type ScheduleInfo, type ScheduleOutcome, type SchedulePage, type Synced
} from './schedule.js'
export type { Kinds } from './routes.js'
export type { Gate, QueueStats } from './stats.js'
export type { ClaimedBy, Enqueued, OnDuplicate, Outcome, Task, TaskFailure, TaskInfo, TaskState } from './task.js'
export type { Time } from './values.js'
export { Worker } from './worker.js'
export type { Around, Handler, KindWorkerOptions, TaskContext, WorkerEvents, WorkerOptions, WorkerReport } from './working.js'
