// The types as an ES module sees them; compiled, never run.
import stanchion, {
  chain, Claim, Client, connect, FlowInput, InvalidArgumentError, Lease, LeaseExpiredError, LeaseLostError, Lock, previewSchedule,
  StanchionError, TaskKind, type Around, type Backoff, type DeadTasks, type Enqueued, type FlowInfo, type FlowPage, type FlowState, type Gate, type Holder, type KeyInfo, type KindHandler, type KindTaskOptions,
  type Loss, type Node, type NodeInfo, type NodeState, type OnDuplicate, type Payload, type Schedule, type ScheduleInfo, type ScheduleOutcome, type SchedulePage,
  type Synced, type Task, type TaskCancelled, type TaskContext, type TaskEvent, type TaskFailure, type TaskInfo, type TaskResult,
  type TaskState, type Time, type Worker
} from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
function same<A, B>(_: Same<A, B>): void {}

interface Email { to: string }

export async function locks(client: Client, signal: AbortSignal): Promise<void> {
  const lock = client.lock('a', { ttlMs: 1_000, renew: true })
  await using lease = await lock.acquire({ waitMs: 5, signal })
  same<typeof lease, Lease>(true)
  same<typeof lease.fence, bigint>(true)
  same<typeof lease.signal, AbortSignal>(true)
  same<ReturnType<typeof lease.check>, void>(true)
  const maybe = await lock.tryAcquire({ signal })
  same<typeof maybe, Lease | null>(true)
  const value = await lock.hold(async held => held.remainingMs)
  same<typeof value, number>(true)
  const holder = await lock.holder()
  same<typeof holder, Holder | null>(true)
  same<Holder['heldAs'], 'lease' | 'offer' | 'cooldown' | 'foreign' | 'other'>(true)
  same<typeof lease.fences, Record<string, bigint>>(true)
  const index = client.rwLock('a', { waitMs: 5 })
  const writer = await index.write().acquire()
  same<ReturnType<typeof writer.downgrade>, Promise<void>>(true)
  same<ReturnType<typeof writer.upgrade>, Promise<boolean>>(true)
  same<ReturnType<typeof index.read>, Lock>(true)
  await client.semaphore('a', 5).reentrant('me').acquire({ weight: 2 })
  const holders = await client.multiLock(['a', 'b'] as const).holders()
  same<typeof holders, Holder[]>(true)
  // @ts-expect-error a semaphore has a number of permits
  client.semaphore('a')
  // @ts-expect-error a number of milliseconds
  await lock.acquire({ waitMs: '5' })
  // @ts-expect-error tryAcquire does not wait
  await lock.tryAcquire({ waitMs: 5 })
  // @ts-expect-error no such option
  await lock.acquire({ ttl: 5 })
  // @ts-expect-error not to be made
  new Lease()
  // @ts-expect-error read only
  lease.fence = 1n
}

export async function values(client: Client, signal: AbortSignal): Promise<void> {
  const price = await client.cached('price:7', 60_000, async () => ({ euros: 9.99 }), { staleMs: 5, beta: 0, signal })
  same<typeof price, { euros: number }>(true)
  same<ReturnType<typeof client.invalidate>, Promise<void>>(true)
  // @ts-expect-error a number of milliseconds
  await client.cached('price:7', '60', () => 1)
  // @ts-expect-error no such option
  await client.cached('price:7', 60, () => 1, { stale: 5 })
}

export async function queues(client: Client): Promise<void> {
  const queue = client.queue<Email>('emails')
  const enqueued = await queue.enqueue({ id: 'a', payload: { to: 'x' }, onDuplicate: { debounce: { maxWaitMs: 5 } } })
  same<typeof enqueued, Enqueued>(true)
  same<typeof enqueued.due, Date | null>(true)
  const many = await queue.enqueueMany([{ id: 'a' }])
  same<typeof many, (Enqueued | StanchionError)[]>(true)
  for await (const claim of queue.consume({ concurrency: 5 })) {
    same<typeof claim, Claim<Email>>(true)
    same<typeof claim.json, Email>(true)
    same<typeof claim.receipt, bigint>(true)
    await claim.nack({ delayMs: 5, reason: 'x' })
  }
  const task: Task<Email> = { payload: { to: 'x' } }
  await queue.enqueueMany([task])
  same<Task['payload'], Payload | undefined>(true)
  await client.queue('any').enqueue({ payload: new Uint8Array(2) })
  await client.queue<number[]>('numbers').enqueue({ payload: [1] })
  // @ts-expect-error no Email
  await queue.enqueue({ payload: { from: 'x' } })
  // @ts-expect-error a text is none either
  await queue.enqueue({ payload: 'x' })
  // @ts-expect-error nor is a number
  await queue.enqueueMany([{ id: 'a', payload: 5 }])
  // @ts-expect-error of no queue
  await client.queue('any').enqueue({ payload: 5n })
  const policy: OnDuplicate = { throttle: { windowMs: 5 } }
  const state: TaskState = 'dead'
  const page = await queue.list(state, { max: 5, prefix: 'a', payloads: false })
  same<typeof page.next, string | null>(true)
  const dead: DeadTasks = { receipts: page.tasks.map(task => task.receipt), olderThanMs: 5 }
  await queue.removeDead(dead)
  for (const which of ['a', ['a'], 10, { reason: 'x' }]) await queue.kick(which)
  // @ts-expect-error no such option
  await queue.kick({ older: 5 })
  // @ts-expect-error no such policy
  await queue.enqueue({ onDuplicate: 'drop' })
  // @ts-expect-error no such state
  await queue.list('lost')
  // @ts-expect-error versions are bigints
  await queue.remove('a', { version: 5 })
  // @ts-expect-error a verdict, not a claim
  await queue.settle(await queue.claim())
  // @ts-expect-error no JSON value
  await queue.enqueue({ payload: 5n })
  void policy
}

export async function schedules(client: Client): Promise<void> {
  const queue = client.queue<Email>('emails')
  const outcome = await queue.schedule({ id: 'a', when: '@daily', tz: 'Europe/Berlin', payload: { to: 'x' }, missed: 5 })
  same<typeof outcome, ScheduleOutcome>(true)
  same<ScheduleOutcome, 'added' | 'changed' | 'kept'>(true)
  const schedule: Schedule<Email> = { id: 'a', when: 'every 90s', starts: new Date(), ends: Date.now(), overlap: 'skip' }
  same<Schedule['starts'], Time | undefined>(true)
  same<Schedule['payload'], Payload | undefined>(true)
  const synced = await queue.syncSchedules('app', 5, new Set([schedule, { ...schedule, missed: 'skip', jitterMs: 5 }]))
  same<typeof synced, Synced>(true)
  same<Synced['newer'], number | null>(true)
  const found = await queue.getSchedule('a')
  same<typeof found, ScheduleInfo | null>(true)
  same<ScheduleInfo['missed'], 'last' | 'skip' | number | null>(true)
  same<ScheduleInfo['next'], Date | null>(true)
  let page: SchedulePage = await queue.listSchedules()
  page = await queue.listSchedules({ page: page.next, max: 5 })
  const flags: boolean[] = [await queue.pauseSchedule('a'), await queue.resumeSchedule('a'), await queue.removeSchedule('a')]
  const task = await queue.runSchedule('a')
  same<typeof task, string | null>(true)
  const { schedules, schedulesLateMs } = await queue.stats()
  const times = previewSchedule(schedule, Date.now(), schedules + schedulesLateMs)
  same<typeof times, Date[]>(true)
  // @ts-expect-error no Email
  await queue.schedule({ id: 'a', when: '@daily', payload: { from: 'x' } })
  // @ts-expect-error without a time
  await queue.schedule({ id: 'a' })
  // @ts-expect-error of a task only
  await queue.schedule({ id: 'a', when: '@daily', delayMs: 5 })
  // @ts-expect-error one argument
  await queue.schedule({ id: 'a', when: '@daily' }, { tz: 'UTC' })
  // @ts-expect-error no such word
  await queue.schedule({ id: 'a', when: '@daily', missed: 'all' })
  // @ts-expect-error no such word
  await queue.schedule({ id: 'a', when: '@daily', overlap: 'replace' })
  // @ts-expect-error one of each, in a list
  await queue.syncSchedules('app', 5, schedule)
  void flags
}

export async function flows(client: Client): Promise<void> {
  const queue = client.queue<Email>('emails')
  const nodes: Node<Email>[] = [
    { id: 'a', payload: { to: 'x' }, delayMs: 5, after: [] }, { id: 'b', after: 'a', afterEnd: ['a'], afterFailure: new Set(['a']) },
    { id: 'c', afterAll: 'finally' }, {}]
  const put = await queue.enqueueFlow('f', nodes)
  same<typeof put, boolean>(true)
  // Of another queue the payloads are not known.
  await queue.enqueueFlow('f', [{ id: 'a', queue: 'numbers', payload: 5 }, { id: 'b', payload: { to: 'x' }, afterAll: 'then' }])
  await queue.addToFlow('f', [{ id: 'd', after: 'a' }, { id: 'e', queue: 'numbers', payload: 5 }])
  const found = await queue.getFlow('f')
  same<typeof found, FlowInfo | null>(true)
  same<FlowInfo['state'], FlowState>(true)
  same<FlowState, 'running' | 'done' | 'failed' | 'cancelled'>(true)
  same<FlowInfo['ended'], Date | null>(true)
  same<FlowInfo['nodes'], NodeInfo[]>(true)
  same<NodeInfo['state'], NodeState>(true)
  same<NodeInfo['afterAll'], 'then' | 'failed' | 'finally' | null>(true)
  const dead: number = found?.counts.dead ?? 0
  let page: FlowPage = await queue.listFlows()
  page = await queue.listFlows({ page: page.next, max: 5 })
  const flags: boolean[] = [await queue.cancelFlow('f'), await queue.retryFlow('f')]
  // In the types of what is given: of several kinds, too.
  const [welcome, count] = [client.queue('any').task('welcome', (_: Email) => {}), client.queue('any').task('count', (n: number) => n)]
  const chained = chain([{ id: 'a', payload: { to: 'x' } }, { payload: { to: 'y' }, queue: 'mails' }])
  same<(typeof chained)[number]['id'], string>(true)
  same<(typeof chained)[number]['after'], string[]>(true)
  await queue.enqueueFlow('g', chained)
  await queue.enqueueFlow('g', chain([{ id: 'a' }, welcome.task({ to: 'x' })]))
  await client.queue('any').enqueueFlow('h', chain([welcome.task({ to: 'x' }), count.task(5)]))
  await client.queue('any').enqueueFlow('i', [{ ...welcome.task({ to: 'x' }), id: 'a' }, { ...count.task(5), after: 'a' }])
  const [claim] = await queue.claim()
  if (claim === undefined) return
  same<typeof claim.flow, string | null>(true)
  const inputs = await claim.inputs()
  same<typeof inputs, FlowInput[]>(true)
  same<FlowInput['state'], NodeState>(true)
  same<FlowInput['result'], Buffer | null>(true)
  const told = inputs[0].json<{ sent: number }>()
  same<typeof told, { sent: number }>(true)
  // @ts-expect-error no Email
  await queue.enqueueFlow('f', [{ id: 'a', payload: 5 }])
  // @ts-expect-error nor one here
  await queue.enqueueFlow('f', chain([{ id: 'a', payload: 5 }]))
  // @ts-expect-error no such word
  await queue.enqueueFlow('f', [{ id: 'a', afterAll: 'success' }])
  // @ts-expect-error no such name
  await queue.enqueueFlow('f', [{ id: 'a', dependsOn: 'b' }])
  // @ts-expect-error a node is put in once
  await queue.enqueueFlow('f', [{ id: 'a', onDuplicate: 'replace' }])
  // @ts-expect-error those come with the flow
  await queue.addToFlow('f', [{ id: 'a', afterAll: 'then' }])
  // @ts-expect-error without an id
  await queue.enqueueFlow([{ id: 'a' }])
  // @ts-expect-error read only
  claim.flow = 'f'
  // @ts-expect-error read only
  inputs[0].state = 'done'
  // @ts-expect-error not to be made
  new FlowInput()
  void [dead, flags]
}

export async function running(client: Client, signal: AbortSignal): Promise<void> {
  const queue = client.queue<Email>('emails')
  const backoff: Backoff = { base: 5, factor: 2, max: 50, jitter: 0 }
  const fixed = [5, 10] as const
  await queue.enqueue({ kind: 'welcome', timeoutMs: 5, backoff, keepResultMs: 5 })
  await queue.enqueueMany([{ backoff: fixed }, { backoff: [5] }])
  const [claim] = await queue.claim({ timeoutMs: 5 })
  if (claim === undefined) return
  same<typeof claim.kind, string | null>(true)
  await claim.progress('half')
  await claim.ack(new Uint8Array(2))
  await queue.settle([claim.acked('x'), claim.acked()])
  const cancelled = await queue.cancel('a')
  same<typeof cancelled, TaskCancelled>(true)
  same<TaskCancelled['outcome'], 'removed' | 'running' | 'absent' | 'other'>(true)
  const result = await queue.result('a', { version: claim.version, waitMs: 5, signal })
  same<typeof result, TaskResult>(true)
  same<typeof result.outcome, 'done' | 'pending' | 'dead' | 'gone'>(true)
  same<typeof result.result, Buffer | null>(true)
  same<typeof result.version, bigint | null>(true)
  await queue.configure({ maxRunning: null, rate: { count: 20, perMs: 1_000, burst: 5 }, keyConcurrency: 1, keyRate: null })
  await queue.limitKey('tenant:7', { concurrency: 2, rate: { count: 1, perMs: 60_000 }, weight: 3 })
  // @ts-expect-error a rate is an object
  queue.limitKey('tenant:7', { rate: '20/s' })
  const { keys } = await queue.listKeys()
  same<typeof keys, KeyInfo[]>(true)
  same<KeyInfo['opensInMs'], number | null>(true)
  same<typeof claim.key, string | null>(true)
  await claim.throttle(30_000)
  same<Awaited<ReturnType<typeof queue.stats>>['gate'], Gate>(true)
  await queue.configure({ events: 10_000 })
  const { settings } = await queue.stats()
  same<typeof settings.events, number>(true)
  for await (const event of queue.events({ after: 0, waitMs: 5, signal })) {
    same<typeof event, TaskEvent>(true)
    same<typeof event.at, Date>(true)
    same<typeof event.version, bigint>(true)
    same<typeof event.reason, string | null>(true)
    if (event.what === 'put_back') continue
    // @ts-expect-error no such word
    if (event.what === 'putBack') break
  }
  // @ts-expect-error a number of milliseconds
  queue.events({ waitMs: '5' })
  const told = result.json<{ sent: number }>()
  same<typeof told, { sent: number }>(true)
  same<TaskInfo['timeoutMs'], number | null>(true)
  same<TaskInfo['failures'], TaskFailure[]>(true)
  same<TaskFailure['at'], Date>(true)
  same<Extract<Loss, 'timeout' | 'cancelled'>, 'timeout' | 'cancelled'>(true)
  // What was found may be given again.
  const found = await queue.get('a')
  if (found?.backoff) await queue.enqueue({ backoff: found.backoff })
  // @ts-expect-error a text or bytes
  await claim.ack({ sent: 3 })
  // @ts-expect-error a text or bytes
  await claim.progress(0.5)
  // @ts-expect-error versions are bigints
  await queue.result('a', { version: 5 })
  // @ts-expect-error without a base
  await queue.enqueue({ backoff: { factor: 2 } })
  // @ts-expect-error no such option
  await queue.enqueue({ timeout: 5 })
}

export async function kinds(client: Client): Promise<void> {
  const queue = client.queue('emails')
  const welcome = queue.task<Email, { sent: number }>('welcome', async (email, claim, { signal }) => {
    same<typeof email, Email>(true)
    same<typeof claim, Claim<Email>>(true)
    same<typeof signal, AbortSignal>(true)
    return { sent: email.to.length }
  }, { timeoutMs: 5, backoff: [5] })
  same<typeof welcome, TaskKind<Email, { sent: number }>>(true)
  same<typeof welcome.kind, string>(true)
  same<typeof welcome.handler, KindHandler<Email, { sent: number }>>(true)
  const enqueued = await welcome.enqueue({ to: 'x' }, { id: 'a', delayMs: 5, due: undefined })
  same<typeof enqueued, Enqueued>(true)
  const options: KindTaskOptions = { priority: 3 }
  await queue.enqueueMany([welcome.task({ to: 'x' }, options), { id: 'b' }])
  // What a handler takes and gives says the types, too.
  const forget = queue.task('forget', (ids: number[], _claim, _context: TaskContext) => ids.length)
  same<typeof forget, TaskKind<number[], number>>(true)
  const silent = queue.task<null, void>('tick', () => {})
  await silent.enqueue(null)
  // The payloads of the queue, if nothing else is said.
  const own = client.queue<Email>('emails').task('own', email => email.to)
  same<typeof own, TaskKind<Email, string>>(true)
  const worker = queue.worker({ tasks: [welcome, forget, silent], concurrency: 5, handler: claim => claim.ack() })
  same<typeof worker, Worker<any>>(true)
  worker.on('unknownKind', (task, delayMs) => {
    same<typeof task.kind, string | null>(true)
    same<typeof delayMs, number>(true)
  })
  // @ts-expect-error no Email
  await welcome.enqueue({ from: 'x' })
  // @ts-expect-error there is a payload
  await welcome.enqueue()
  // @ts-expect-error the kind is known
  await welcome.enqueue({ to: 'x' }, { kind: 'other' })
  // @ts-expect-error an id is one task's
  queue.task('x', () => {}, { id: 'a' })
  // @ts-expect-error it gives a number
  queue.task<Email, number>('x', () => 'text')
  // @ts-expect-error functions have no kind
  queue.worker({ tasks: [() => {}] })
  // @ts-expect-error the options stand beside the tasks
  queue.worker({ tasks: [welcome] }, { concurrency: 5 })
  // @ts-expect-error not to be made
  new TaskKind()
}

export async function workers(client: Client): Promise<void> {
  const worker = client.queue<Email>('emails').worker(async (task, { signal }) => {
    same<typeof task, Claim<Email>>(true)
    same<typeof signal, AbortSignal>(true)
  }, { concurrency: 5, signal: AbortSignal.timeout(5) })
  same<typeof worker, Worker<Email>>(true)
  worker.on('failed', (task, error) => {
    same<typeof task, Claim<Email>>(true)
    same<typeof error, unknown>(true)
  })
  worker.on('empty', () => {})
  const timed: Around = async (task, next) => {
    same<typeof task, Claim<any>>(true)
    return await next()
  }
  const kind = client.queue('emails').task('own', () => {})
  client.queue<Email>('emails').worker(() => {}, { around: timed })
  client.queue('emails').worker({ tasks: [kind], around: [timed, (claim, next) => next().then(() => claim.id)] })
  // @ts-expect-error no functions
  client.queue('emails').worker(() => {}, { around: [5] })
  const report = await worker.close()
  same<typeof report.completed, number>(true)
}

export async function others(): Promise<void> {
  same<typeof stanchion.connect, typeof connect>(true)
  const client = await connect({ lockPrefix: 'a:' })
  await connect('redis://localhost', { timeoutMs: 5 })
  await memoryClient({ clock: new Clock() })
  const page = await client.locks()
  same<typeof page.next, bigint | null>(true)
  const lost: LeaseLostError = new LeaseExpiredError('x')
  same<typeof lost.code, `ERR_STANCHION_${string}`>(true)
  const error: StanchionError = new InvalidArgumentError('x', { resource: 'a' })
  void error
  // @ts-expect-error no such option
  await connect('redis://localhost', { prefix: 'a' })
}
