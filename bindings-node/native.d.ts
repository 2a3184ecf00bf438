// Made from bindings-node/src by tests/run --types: do not edit. Private: programs use the classes over it.

/** Milliseconds. */
type Millis = number
/** Any number. */
type Real = number
/** Milliseconds since 1970. */
type Wall = number
type Whole = number | bigint
type Text = string
type Flag = boolean
type Delivered = Claim[]
/** The number of one. */
export type Bridge = number
/** The number of one. */
export type Lease = number
export type Granted = NewLease
/** The name of an exclusive lock, or a lock of any kind. */
export type Named = Text | Lock

/** How a value is cached and computed. */
export class CachedOptions {
  constructor(ttl: Millis, stale?: Millis | undefined | null, beta?: Real | undefined | null, wait?: Millis | undefined | null, lease?: Millis | undefined | null, maxRun?: Millis | undefined | null, withoutStore?: Flag | undefined | null, label?: Text | undefined | null)
}

/** A claim on a task. When nothing refers to it any more, it counts as failed. */
export class Claim {
  get id(): string
  get queue(): string
  get payload(): Buffer
  get headers(): Record<string, string>
  get kind(): string | null
  get attempt(): number
  get maxAttempts(): number
  get receipt(): bigint
  get version(): bigint
  get priority(): number
  get key(): string | null
  get flow(): string | null
  get due(): number
  get remaining(): number
  get valid(): boolean
  /** Why it was lost, if it was. */
  get lossName(): string | null
  get loss(): Failure | null
  inputs(bridge: Bridge, call: number): void
  ack(bridge: Bridge, call: number, result?: Uint8Array | undefined | null): void
  progress(bridge: Bridge, call: number, progress: Uint8Array): void
  nack(bridge: Bridge, call: number, delay?: Millis | undefined | null, reason?: Text | undefined | null): void
  bury(bridge: Bridge, call: number, reason?: Text | undefined | null): void
  putBack(bridge: Bridge, call: number, delay?: Millis | undefined | null): void
  throttle(bridge: Bridge, call: number, time: Millis): void
  extend(bridge: Bridge, call: number, lease: Millis): void
  /** Done when the claim is lost (then it says why) or settled. */
  waitLost(bridge: Bridge, call: number): void
  acked(result?: Uint8Array | undefined | null): Verdict
  nacked(delay?: Millis | undefined | null, reason?: Text | undefined | null): Verdict
  buried(reason?: Text | undefined | null): Verdict
  returned(delay?: Millis | undefined | null): Verdict
  throttled(time: Millis): Verdict
}

/** How to claim. */
export class ClaimOptions {
  constructor(max?: Whole | undefined | null, lease?: Millis | undefined | null, renew?: Flag | undefined | null, maxRun?: Millis | undefined | null, wait?: Millis | undefined | null, timeout?: Millis | undefined | null)
}

/** Who claimed a task last; `since` is milliseconds since 1970. */
export interface ClaimedBy {
  label: string
  host: string
  pid: number
  since?: number
}

/** A client. */
export class Client {
  beginCached(bridge: Bridge, call: number, name: Text, options: CachedOptions): void
  invalidate(bridge: Bridge, call: number, name: Text): void
  queue(name: Text): Queue
  queues(names: Array<Text>): Queues
  resumeLease(bridge: Bridge, call: number, handle: Text): void
  releaseAll(bridge: Bridge, call: number): void
  close(bridge: Bridge, call: number): void
  /** Waits for what is done in the background, for the end of the process, when no event loop runs any more. */
  lingerNow(time: Millis): void
  metrics(): Array<Sample>
  metricsText(): string
  locks(bridge: Bridge, call: number, page?: Whole | undefined | null): void
  queueNames(bridge: Bridge, call: number, page?: Whole | undefined | null): void
  /** Milliseconds until a try would succeed; none if it was taken. A wait that is not given is the default. */
  take(bridge: Bridge, call: number, name: Text, kind: Text, n: Whole, per: Millis, burst: Whole | undefined | null, count: Whole, wait?: Millis | undefined | null): void
  lock(name: Text): Lock
  reader(name: Text): Lock
  writer(name: Text): Lock
  semaphore(name: Text, permits: Whole): Lock
  multiLock(names: Array<Text>): Lock
  acquire(bridge: Bridge, call: number, lock: Named, options?: LockOptions | undefined | null): void
  tryAcquire(bridge: Bridge, call: number, lock: Named, options?: LockOptions | undefined | null): void
  holder(bridge: Bridge, call: number, lock: Named): void
  holders(bridge: Bridge, call: number, lock: Named): void
  waiters(bridge: Bridge, call: number, lock: Named): void
  isLocked(bridge: Bridge, call: number, lock: Named): void
  breakLease(bridge: Bridge, call: number, lock: Named): void
}

/** A clock that a test moves. */
export class Clock {
  constructor()
  /** After the calls that were started before have begun, so that their waits begin at the old time. */
  advance(time: Millis): void
}

/** A process that works on a queue. */
export interface Consumer {
  label: string
  host: string
  pid: number
  waiters: number
  claims: number
}

/** Which dead tasks are meant. Of ids, receipts and a count one at most is given, which the package sees to. */
export class DeadTasks {
  constructor(ids?: Array<Text> | undefined | null, receipts?: Array<Whole> | undefined | null, count?: Whole | undefined | null, reason?: Text | undefined | null, prefix?: Text | undefined | null, olderThan?: Millis | undefined | null)
}

/** What an enqueue did; `due` is in milliseconds since 1970. */
export interface Enqueued {
  id: string
  outcome: string
  version: bigint
  due?: number
}

/** One task of many: what its enqueue did, or why it failed. */
export interface EnqueuedOrNot {
  enqueued?: Enqueued
  failure?: Failure
}

/** Some events, whether others before them are missed, and after which to go on. */
export interface EventPage {
  events: Array<TaskEvent>
  missed: boolean
  cursor: number
}

/** What is known about an error. */
export interface Failure {
  kind: string
  message: string
  operation?: string
  name?: string
  retryable: boolean
}

/** A flow as it is in a queue. Times are milliseconds since 1970. */
export interface FlowInfo {
  id: string
  state: string
  created: number
  ended?: number
  counts: Array<NodeCount>
  nodes: Array<NodeInfo>
}

/** What has become of a node that another one comes after. */
export interface FlowInput {
  node: string
  state: string
  result?: Buffer
}

/** Some flows, and where the next ones begin. */
export interface FlowPage {
  flows: Array<FlowInfo>
  next?: string
}

/** Who holds a lock. Times are milliseconds, `since` from 1970 on. */
export interface Holder {
  heldAs: string
  label: string
  host: string
  pid: number
  fence: bigint
  since?: number
  remaining?: number
  waiters: number
  weight: number
}

/** What is known of a key; `opens_in` is milliseconds. */
export interface KeyInfo {
  key: string
  running: number
  inLine: number
  held: number
  opensIn?: number
  limits?: KeyLimits
}

/** What a key has of its own. */
export interface KeyLimits {
  concurrency?: number
  rate?: RateInfo
  weight: number
}

/** Some keys, and where the next ones begin. */
export interface KeyPage {
  keys: Array<KeyInfo>
  next?: string
}

/** A lock that is more than the name of an exclusive one. */
export class Lock {
  get name(): string
  reentrant(owner: Text): Lock
}

/** How to acquire. */
export class LockOptions {
  constructor(ttl?: Millis | undefined | null, renew?: Flag | undefined | null, maxHold?: Millis | undefined | null, wait?: Millis | undefined | null, failFast?: Flag | undefined | null, adoptUnexpiring?: Millis | undefined | null, label?: Text | undefined | null, weight?: Whole | undefined | null)
}

/** The fence of one of the locks of a lease. */
export interface NamedFence {
  name: string
  fence: bigint
}

/** Some names, and where the next ones begin. */
export interface Names {
  names: Array<string>
  next?: bigint
}

/** What does not change about a lease. */
export interface NewLease {
  number: number
  name: string
  fence: bigint
  token: string
  /** If it is of several locks. */
  fences?: Array<NamedFence>
}

/**
 * What a worker tells: "task" (a run begins: its number and claim), "gone" (the run is to end: its claim was lost, or
 * the worker stops), and of a task by id and attempt: "completed", "failed", "dead", "lost", "stuck"; "missed" (of a
 * schedule by its id: how many slots, and how many were fired); "empty"; "error"; "back".
 */
export interface News {
  what: string
  run?: number
  claim?: Claim
  id?: string
  attempt?: number
  reason?: string
  failure?: Failure
  /** In milliseconds. */
  after?: number
  missed?: number
  fired?: number
}

/** A task of a flow, and what it waits for. */
export class Node {
  /** The task was made for this node only: it is taken out, and not copied. */
  constructor(task: Task, queue?: Text | undefined | null, after?: Array<Text> | undefined | null, afterEnd?: Array<Text> | undefined | null, afterFailure?: Array<Text> | undefined | null, afterAll?: Text | undefined | null)
}

/** How many nodes are in a state. */
export interface NodeCount {
  state: string
  count: number
}

/** A node as it is in its flow. */
export interface NodeInfo {
  name: string
  state: string
  queue?: string
  after: Array<string>
  afterEnd: Array<string>
  afterFailure: Array<string>
  afterAll?: string
}

/** A queue. */
export class Queue {
  enqueueFlow(bridge: Bridge, call: number, id: Text, nodes: Array<Node>): void
  addToFlow(bridge: Bridge, call: number, id: Text, nodes: Array<Node>): void
  getFlow(bridge: Bridge, call: number, id: Text): void
  listFlows(bridge: Bridge, call: number, page?: Text | undefined | null, max?: Whole | undefined | null): void
  cancelFlow(bridge: Bridge, call: number, id: Text): void
  retryFlow(bridge: Bridge, call: number, id: Text): void
  configure(bridge: Bridge, call: number, settings: QueueConfig): void
  /** With none given, what it has is taken away. */
  limitKey(bridge: Bridge, call: number, key: Text, concurrency?: Whole | undefined | null, rate?: Rate | undefined | null, weight?: Whole | undefined | null): void
  getKey(bridge: Bridge, call: number, key: Text): void
  listKeys(bridge: Bridge, call: number, page?: Text | undefined | null, max?: Whole | undefined | null): void
  enqueue(bridge: Bridge, call: number, task: Task): void
  enqueueMany(bridge: Bridge, call: number, tasks: Array<Task>): void
  claim(bridge: Bridge, call: number, options: ClaimOptions): void
  settle(bridge: Bridge, call: number, verdicts: Array<Verdict>): void
  settleAndClaim(bridge: Bridge, call: number, verdicts: Array<Verdict>, options: ClaimOptions): void
  pop(bridge: Bridge, call: number, max: Whole): void
  peek(bridge: Bridge, call: number, max: Whole): void
  get(bridge: Bridge, call: number, id: Text): void
  list(bridge: Bridge, call: number, name: Text, page?: Text | undefined | null, max?: Whole | undefined | null, prefix?: Text | undefined | null, payloads?: Flag | undefined | null): void
  remove(bridge: Bridge, call: number, id: Text, version?: Whole | undefined | null): void
  cancel(bridge: Bridge, call: number, id: Text): void
  result(bridge: Bridge, call: number, id: Text, version?: Whole | undefined | null, wait?: Millis | undefined | null): void
  /** Without a wait the longest one, after which the package asks again. */
  events(bridge: Bridge, call: number, after?: Whole | undefined | null, wait?: Millis | undefined | null): void
  reschedule(bridge: Bridge, call: number, id: Text, due: Wall): void
  kick(bridge: Bridge, call: number, dead: DeadTasks): void
  removeDead(bridge: Bridge, call: number, dead: DeadTasks): void
  stats(bridge: Bridge, call: number): void
  consumers(bridge: Bridge, call: number): void
  pause(bridge: Bridge, call: number): void
  resume(bridge: Bridge, call: number): void
  purge(bridge: Bridge, call: number): void
  schedule(bridge: Bridge, call: number, schedule: Schedule): void
  syncSchedules(bridge: Bridge, call: number, owner: Text, generation: Whole, schedules: Array<Schedule>): void
  getSchedule(bridge: Bridge, call: number, id: Text): void
  listSchedules(bridge: Bridge, call: number, page?: Text | undefined | null, max?: Whole | undefined | null): void
  pauseSchedule(bridge: Bridge, call: number, id: Text): void
  resumeSchedule(bridge: Bridge, call: number, id: Text): void
  runSchedule(bridge: Bridge, call: number, id: Text): void
  removeSchedule(bridge: Bridge, call: number, id: Text): void
}

/** Settings to change. Those that can be absent in the queue, too, are set one by one. */
export class QueueConfig {
  constructor(deadMax?: Whole | undefined | null, deadAge?: Millis | undefined | null, deadBytes?: Whole | undefined | null, intake?: Flag | undefined | null, events?: Whole | undefined | null)
  maxLen(most?: Whole | undefined | null): void
  maxRunning(most?: Whole | undefined | null): void
  rate(rate?: Rate | undefined | null): void
  keyConcurrency(most?: Whole | undefined | null): void
  keyRate(rate?: Rate | undefined | null): void
}

/** How many tasks there are, what happened so far, and the settings. Times are milliseconds. */
export interface QueueStats {
  scheduled: number
  ready: number
  claimed: number
  held: number
  keysWaiting: number
  nextKey?: number
  gate: string
  opensIn?: number
  dead: number
  successors: number
  paused: boolean
  waiters: number
  nextDue?: number
  enqueued: number
  acked: number
  retried: number
  died: number
  schedules: number
  schedulesLate: number
  flows: number
  maxLen?: number
  deadMax: number
  deadAge: number
  deadBytes: number
  intake: boolean
  events: number
  maxRunning?: number
  rate?: RateInfo
  keyConcurrency?: number
  keyRate?: RateInfo
}

/** Queues that are claimed from together. */
export class Queues {
  claim(bridge: Bridge, call: number, options: ClaimOptions): void
}

/** So many per time. */
export class Rate {
  constructor(count: Whole, per: Millis, burst?: Whole | undefined | null)
}

/** A rate that is in force; `per` is milliseconds. */
export interface RateInfo {
  count: number
  per: number
  burst: number
}

/** Whether it was removed, and the version that it has instead. */
export interface RemovedOrNot {
  removed: boolean
  otherVersion?: bigint
}

/** How a reschedule ended, and the new due time in milliseconds since 1970. */
export interface RescheduledOrNot {
  outcome: string
  due?: number
}

/** One number of the metrics. */
export interface Sample {
  name: string
  value: number
}

/** A schedule to put in. Of the words of what was missed and a count one at most is given, which the package sees to. */
export class Schedule {
  constructor(id: Text, when: Text, tz?: Text | undefined | null, missed?: Text | undefined | null, missedMost?: Whole | undefined | null, overlap?: Text | undefined | null, jitter?: Millis | undefined | null, starts?: Wall | undefined | null, ends?: Wall | undefined | null, paused?: Flag | undefined | null, payload?: Uint8Array | undefined | null, headers?: Array<Text> | undefined | null, priority?: Whole | undefined | null, maxAttempts?: Whole | undefined | null, expires?: Millis | undefined | null, key?: Text | undefined | null)
  /** When the slots after a time are due, in milliseconds since 1970; so many at most. */
  preview(after: Wall, count: Whole): Array<number>
}

/** A schedule as it is in a queue. Times are milliseconds, points in time from 1970 on. */
export interface ScheduleInfo {
  id: string
  when: string
  tz: string
  missed?: string | number
  overlap: string
  jitter: number
  starts?: number
  ends?: number
  paused: boolean
  next?: number
  late: number
  owner?: string
  fired: number
  skipped: number
  missedSlots: number
  lastTask?: string
  priority: number
  maxAttempts: number
  expires?: number
  size: number
  key?: string
}

/** Some schedules, and where the next ones begin. */
export interface SchedulePage {
  schedules: Array<ScheduleInfo>
  next?: string
}

/** How to open a store. */
export class Settings {
  constructor(url?: Text | undefined | null, lockPrefix?: Text | undefined | null, queuePrefix?: Text | undefined | null, timeout?: Millis | undefined | null, foreignShare?: Flag | undefined | null, label?: Text | undefined | null, tlsCa?: Text | undefined | null, tlsCert?: Text | undefined | null, tlsKey?: Text | undefined | null, clock?: Clock | undefined | null)
}

/** What became of verdicts (nothing, or why it failed), and new claims. */
export interface SettledAndClaimed {
  settled: Array<Failure | undefined | null>
  claims: Claim[]
}

/** What became of an owner's list of schedules. */
export interface Synced {
  added: number
  changed: number
  kept: number
  removed: number
  newer?: number
}

/** A task to put in. */
export class Task {
  constructor(id?: Text | undefined | null, payload?: Uint8Array | undefined | null, headers?: Array<Text> | undefined | null, delay?: Millis | undefined | null, due?: Wall | undefined | null, priority?: Whole | undefined | null, maxAttempts?: Whole | undefined | null, expires?: Millis | undefined | null, policy?: Text | undefined | null, policyTime?: Millis | undefined | null, kind?: Text | undefined | null, timeout?: Millis | undefined | null, backoff?: Text | undefined | null, keepResult?: Millis | undefined | null, key?: Text | undefined | null)
  /** Fails for what `enqueue` would refuse. */
  check(): void
}

/** Something that happened to a task; `at` is milliseconds since 1970. */
export interface TaskEvent {
  number: number
  at: number
  what: string
  id: string
  version: bigint
  attempt: number
  reason?: string
}

/** A failed attempt; `at` is milliseconds since 1970. */
export interface TaskFailure {
  at: number
  reason: string
}

/** A task as it is in a queue. Times are milliseconds, points in time from 1970 on. */
export interface TaskInfo {
  id: string
  state: string
  payload: Buffer
  headers: Record<string, string>
  size: number
  version: bigint
  due: number
  priority: number
  attempts: number
  maxAttempts: number
  expires?: number
  receipt: bigint
  leaseLeft: number
  reason: string
  claimedBy?: ClaimedBy
  died?: number
  successorDue?: number
  kind?: string
  timeout?: number
  /** Its text, which is JSON. */
  backoff?: string
  failures: Array<TaskFailure>
  progress: Buffer
  cancelled: boolean
  key?: string
}

/** Some tasks, and where the next ones begin. */
export interface TaskPage {
  tasks: Array<TaskInfo>
  next?: string
}

/** What became of a task. */
export interface TaskResult {
  outcome: string
  result?: Buffer
  version?: bigint
  reason?: string
}

/** The right to compute a value. When nothing refers to it any more, it is left to the next caller. */
export class Ticket {
  store(bridge: Bridge, call: number, value: Text): void
  /** Left to the next caller in the background. */
  letGo(): void
}

/** How a claim ended, to be settled with others. */
export class Verdict {
}

/** One of those who wait for a lock. Times are milliseconds, `since` from 1970 on. */
export interface Waiter {
  label: string
  host: string
  pid: number
  since?: number
  waiting?: number
  weight: number
}

/** A worker. */
export class Worker {
  constructor(queue: Queue, concurrency?: Whole | undefined | null, lease?: Millis | undefined | null, maxRun?: Millis | undefined | null, grace?: Millis | undefined | null, untilEmpty?: Flag | undefined | null, timeout?: Millis | undefined | null)
  /** Works until it is stopped; its news come under the number of this call. */
  run(bridge: Bridge, call: number): void
  /**
  * What the facade's handler says of its run: nothing, or why it failed; also in a text with lone surrogates,
  * which do not come along.
  */
  said(run: number, failure?: string | undefined | null): void
  /** Take no more tasks. */
  stop(): void
  /** The same, and handlers have no grace left. */
  hurry(): void
}

/** What a worker has done. */
export interface WorkerReport {
  completed: number
  failed: number
  dead: number
  lost: number
}

/** Gives up on all calls: nobody will hear of them. What they were given and left behind is released. */
export function abandon(bridge: Bridge): void

/** Gives up on a call. What it left behind is cleaned up. True if another has ended meanwhile. */
export function cancel(bridge: Bridge, call: number): boolean

/** Why it is not ours any more, if it is not. */
export function checkLease(lease: Lease): Failure | null

/**
 * What there is: whether there is more, to be collected later; then for each note its kind, the number of its call, and the
 * value, one after the other.
 */
export function collect(bridge: Bridge): unknown[]

/** Opens a store. */
export function connect(bridge: Bridge, call: number, settings: Settings): void

export function detachLease(bridge: Bridge, call: number, lease: Lease, ttl: Millis): void

export function downgradeLease(bridge: Bridge, call: number, lease: Lease): void

export function extendLease(bridge: Bridge, call: number, lease: Lease, ttl: Millis): void

export function extendLeaseExact(bridge: Bridge, call: number, lease: Lease, ttl: Millis): void

/** Starts the calls that were made since the last time. True if some have ended already. */
export function flush(bridge: Bridge): boolean

/** The lease is not used any more. If it is ours, it is released in the background. */
export function forgetLease(number: number): void

export function isLeaseValid(lease: Lease): boolean

/** Whether the process is to stay alive for what is waited for. */
export function keepAlive(bridge: Bridge, yes: boolean): void

/** The name of that reason. */
export function lossNameOfLease(lease: Lease): string | null

/** Why it was lost, if it was. */
export function lossOfLease(lease: Lease): Failure | null

/**
 * Opens a bridge. `deliver` is called in the event loop when there is something to collect; `hosted`, that loop works on
 * the calls if it lets us.
 */
export function openBridge(deliver: () => void, hosted: boolean): number

/** For the test that a panic becomes a rejected promise. */
export function panicOnPurpose(bridge: Bridge, call: number): void

export function releaseLease(bridge: Bridge, call: number, lease: Lease, cooldown?: Millis | undefined | null): void

/** The error of a lease that is used after its end. */
export function releasedLease(operation: Text, name: Text): Failure

export function remainingOfLease(lease: Lease): number

/** The new fence, if it is a writer's now. */
export function upgradeLease(bridge: Bridge, call: number, lease: Lease): void

/** The version of the native half, to be compared with that of the facade. */
export function version(): string

/** Done when the lease is lost (then it says why) or released. */
export function waitLostLease(bridge: Bridge, call: number, lease: Lease): void
