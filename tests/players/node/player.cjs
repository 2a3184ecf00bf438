/** Carries out the steps of scenarios with the Node package. What it speaks: contract/players.py. */

'use strict'

const { createRequire } = require('node:module')
const { createInterface } = require('node:readline')
const { inspect } = require('node:util')
const { connect, previewSchedule, StanchionError } = require('stanchion')
const { Clock, memoryClient } = require('stanchion/testing')

const clock = new Clock()
const SPECIAL = { nan: NaN, inf: Infinity, '-inf': -Infinity }

/** What JSON cannot say. */
class Cannot extends Error {}

/** A value, also one that JSON cannot say. */
function special(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  const [[kind, told] = [], ...more] = Object.entries(value)
  if (more.length > 0) return value
  if (kind === '$number') return SPECIAL[told]
  if (kind === '$hex') return Buffer.from(told, 'hex')
  if (kind === '$text') {
    // A text of JavaScript has lone surrogates, but no other bytes that are no UTF-8.
    if (told === 'eda080') return '\ud800'
    throw new Cannot('a text of JavaScript is not made of bytes')
  }
  return value
}

const NAMES = {
  ttl_ms: 'ttlMs', max_hold_ms: 'maxHoldMs', wait_ms: 'waitMs', fail_fast: 'failFast', without_store: 'withoutStore',
  adopt_unexpiring_ms: 'adoptUnexpiringMs', cooldown_ms: 'cooldownMs', delay_ms: 'delayMs', due_ms: 'due',
  expires_ms: 'expiresMs', lease_ms: 'leaseMs', max_run_ms: 'maxRunMs', grace_ms: 'graceMs', max_attempts: 'maxAttempts',
  on_duplicate: 'onDuplicate', max_len: 'maxLen', dead_max: 'deadMax', dead_age_ms: 'deadAgeMs',
  dead_bytes: 'deadBytes', lock_prefix: 'lockPrefix', queue_prefix: 'queuePrefix', timeout_ms: 'timeoutMs',
  keep_result_ms: 'keepResultMs', stale_ms: 'staleMs', older_than_ms: 'olderThanMs', foreign_share: 'foreignShare', tls_ca: 'tlsCa',
  tls_cert: 'tlsCert', tls_key: 'tlsKey', jitter_ms: 'jitterMs', starts_ms: 'starts', ends_ms: 'ends',
  max_running: 'maxRunning', key_concurrency: 'keyConcurrency', per_ms: 'perMs', key_rate: 'keyRate', after_end: 'afterEnd',
  after_failure: 'afterFailure', after_all: 'afterAll'
}
const LOCK = ['ttl_ms', 'renew', 'max_hold_ms', 'wait_ms', 'fail_fast', 'adopt_unexpiring_ms', 'label', 'weight']
const CACHED = ['stale_ms', 'beta', 'wait_ms', 'lease_ms', 'max_run_ms', 'without_store', 'label']
const CLAIM = ['max', 'lease_ms', 'renew', 'max_run_ms', 'timeout_ms', 'wait_ms']
const TASK = [
  'id', 'payload', 'headers', 'delay_ms', 'due_ms', 'priority', 'max_attempts', 'expires_ms', 'on_duplicate', 'kind',
  'timeout_ms', 'backoff', 'keep_result_ms', 'key']
const NODE = [...TASK, 'queue', 'after', 'after_end', 'after_failure', 'after_all']
const SCHEDULE = [
  'id', 'when', 'tz', 'missed', 'overlap', 'jitter_ms', 'starts_ms', 'ends_ms', 'paused', 'payload', 'headers', 'priority',
  'max_attempts', 'expires_ms', 'key']
const CONNECT = [
  'lock_prefix', 'queue_prefix', 'timeout_ms', 'foreign_share', 'label', 'tls_ca', 'tls_cert', 'tls_key']
const LIST = ['max', 'page', 'prefix', 'payloads']
const DEAD = ['ids', 'count', 'reason', 'prefix', 'older_than_ms']
const PAGE = ['page', 'max']
const SETTINGS = [
  'max_len', 'dead_max', 'dead_age_ms', 'dead_bytes', 'intake', 'events', 'max_running', 'rate', 'key_concurrency', 'key_rate']
const LIMITS = ['concurrency', 'rate', 'weight']
const RATES = ['rate', 'key_rate']

/** A request's arguments, under the names of the package. */
function options(request, names) {
  const found = {}
  for (const name of names) {
    if (!(name in request)) continue
    found[NAMES[name] ?? name] = name === 'on_duplicate' ? policy(request[name])
      : RATES.includes(name) ? rate(request[name]) : special(request[name])
  }
  return found
}

function policy(told) {
  if (told?.debounce_ms !== undefined) return { debounce: { maxWaitMs: special(told.debounce_ms) } }
  if (told?.throttle_ms !== undefined) return { throttle: { windowMs: special(told.throttle_ms) } }
  return told
}

function rate(told) {
  if (typeof told?.count === 'undefined') return special(told)
  const { per_ms: perMs, ...others } = told
  const found = { ...others, ...perMs === undefined ? {} : { perMs } }
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, special(value)]))
}

// Versions, receipts and fences fit into a number here; the package has them as bigints.
const whole = value => value === null || value === undefined ? null : Number(value)
const big = value => Number.isInteger(value) ? BigInt(value) : value
const dead = request => ({
  ...options(request, DEAD), ...'receipts' in request ? { receipts: request.receipts.map(big) } : {}
})
const millis = date => date === null ? null : date.getTime()
const hex = bytes => bytes.toString('hex')

const failure = ({ code, message, retryable, operation, resource }) =>
  ({ kind: kindOf(code), message, retryable, operation: operation ?? null, name: resource ?? null })

/** ERR_STANCHION_LOCK_TIMEOUT is LockTimeout. */
function kindOf(code) {
  const words = code.replace(/^ERR_STANCHION_/, '').toLowerCase().split('_')
  return words.map(word => word[0].toUpperCase() + word.slice(1)).join('')
}

const shownLease = ({ name, fence, token }) => ({ name, fence: whole(fence), token })

const shownHolder = found => ({
  held_as: found.heldAs, label: found.label, host: found.host, pid: found.pid, fence: whole(found.fence),
  since_ms: millis(found.since), remaining_ms: found.remainingMs, waiters: found.waiters, weight: found.weight
})

const shownTaken = taken => ({ outcome: taken.allowed ? 'allowed' : 'refused', retry_after_ms: taken.retryAfterMs })
const shownWaiter = found => ({
  label: found.label, host: found.host, pid: found.pid, since_ms: millis(found.since), waiting_ms: found.waitingMs,
  weight: found.weight
})

const shownTask = task => ({
  id: task.id, state: task.state, payload: hex(task.payload), headers: task.headers, size: task.size,
  version: whole(task.version), due_ms: millis(task.due), priority: task.priority, attempts: task.attempts,
  max_attempts: task.maxAttempts, expires_ms: millis(task.expires), receipt: whole(task.receipt),
  claimed_by: task.claimedBy && {
    label: task.claimedBy.label, host: task.claimedBy.host, pid: task.claimedBy.pid,
    since_ms: millis(task.claimedBy.since)
  },
  reason: task.reason, died_ms: millis(task.died), successor_due_ms: millis(task.successorDue), kind: task.kind,
  timeout_ms: task.timeoutMs, backoff: task.backoff,
  failures: task.failures.map(({ at, reason }) => ({ at_ms: millis(at), reason })), progress: hex(task.progress),
  cancelled: task.cancelled, key: task.key
})

const shownClaim = claim => ({
  id: claim.id, queue: claim.queue, payload: hex(claim.payload), headers: claim.headers, attempt: claim.attempt,
  max_attempts: claim.maxAttempts, receipt: whole(claim.receipt), version: whole(claim.version),
  priority: claim.priority, due_ms: millis(claim.due), kind: claim.kind, key: claim.key,
  flow: claim.flow
})

const shownError = error => error === null ? null : { error: failure(error) }

const shownEnqueued = done => done instanceof StanchionError
  ? shownError(done)
  : { id: done.id, outcome: done.outcome, version: whole(done.version), due_ms: millis(done.due) }

const shownSchedule = found => ({
  id: found.id, when: found.when, tz: found.tz, missed: found.missed, overlap: found.overlap, jitter_ms: found.jitterMs,
  starts_ms: millis(found.starts), ends_ms: millis(found.ends), paused: found.paused, next_ms: millis(found.next),
  late_ms: found.lateMs, owner: found.owner, fired: found.fired, skipped: found.skipped, missed_slots: found.missedSlots,
  last_task: found.lastTask, priority: found.priority, max_attempts: found.maxAttempts, expires_ms: found.expiresMs,
  size: found.size, key: found.key
})

const shownRate = rate => rate && { count: rate.count, per_ms: rate.perMs, burst: rate.burst }

const shownKey = found => ({
  key: found.key, running: found.running, in_line: found.inLine, held: found.held, opens_in_ms: found.opensInMs,
  limits: found.limits && { ...found.limits, rate: shownRate(found.limits.rate) }
})

const shownFlow = found => ({
  id: found.id, state: found.state, created_ms: millis(found.created), ended_ms: millis(found.ended), counts: found.counts,
  nodes: found.nodes.map(node => ({
    name: node.name, state: node.state, queue: node.queue, after: node.after, after_end: node.afterEnd,
    after_failure: node.afterFailure, after_all: node.afterAll
  }))
})

const shownInput = ({ node, state, result }) => ({ node, state, result: result && hex(result) })

const shownEvent = ({ at, version, ...event }) => ({ ...event, at_ms: millis(at), version: whole(version) })

const shownPage = (items, next) => ({ items, next: whole(next) })

/** Waits for a signal, up to so many milliseconds; whether it was aborted. */
function aborted(signal, ms) {
  return new Promise(resolve => {
    if (signal.aborted) return resolve(true)
    const timer = setTimeout(() => resolve(signal.aborted), ms)
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(true) })
  })
}

/** One client, with what it has in its hands. */
class Actor {
  constructor() {
    this.leases = new Map()
    this.claims = new Map()
    /** What an error that nobody catches would print. */
    this.told = []
    /** Calls are made one after the other. */
    this.last = Promise.resolve()
  }

  limiter(request) {
    return this.client.limiter(special(request.limiter), options(request, ['n', 'per_ms', 'burst', 'kind']))
  }

  lock({ lock }) {
    const told = typeof lock === 'object' && lock !== null ? lock : {}
    const found = 'read' in told ? this.client.rwLock(special(told.read)).read()
      : 'write' in told ? this.client.rwLock(special(told.write)).write()
      : 'semaphore' in told ? this.client.semaphore(special(told.semaphore), told.permits)
      : 'several' in told ? this.client.multiLock(told.several)
      : this.client.lock(special('exclusive' in told ? told.exclusive : lock))
    return 'owner' in told ? found.reentrant(special(told.owner)) : found
  }

  queue(request) { return this.client.queue(special(request.queue)) }
  lease({ lease = 'lease' }) { return this.leases.get(lease) }
  claim({ claim = 'claim.0' }) { return this.claims.get(claim) }

  keep({ as = 'lease' }, lease) {
    if (lease === null) return null
    this.leases.set(as, lease)
    return shownLease(lease)
  }

  keepClaims({ as = 'claim' }, claims) {
    claims.forEach((claim, number) => this.claims.set(`${as}.${number}`, claim))
    return claims.map(shownClaim)
  }

  verdicts({ verdicts }) {
    return verdicts.map(told => {
      const claim = this.claim(told)
      switch (told.verdict) {
        case 'ack': return claim.acked(special(told.result))
        case 'nack': return claim.nacked(options(told, ['delay_ms', 'reason']))
        case 'bury': return claim.buried(told.reason)
        case 'put_back': return claim.returned(options(told, ['delay_ms']))
        case 'throttle': return claim.throttled(special(told.time_ms))
      }
    })
  }

  /** Everything, as a developer would print it. */
  show() {
    const { client } = this
    const things = [...this.leases.values(), ...this.claims.values(), client]
    if (client) things.push(client.lock('a'), client.queue('q'), client.queues(['q']))
    const json = thing => JSON.stringify(thing, (_, value) => typeof value === 'bigint' ? `${value}` : value) ?? ''
    return [...this.told, ...things.flatMap(thing => [
      inspect(thing), inspect(thing, { depth: 10, showHidden: true, getters: true }), String(thing), json(thing)])]
  }

  /** A worker whose handler does what the request says for each delivery of a task, and then the last again. */
  async work(request) {
    const seen = []
    const events = []
    const handle = async task => {
      const plan = request.handler?.[task.id] ?? ['ok']
      seen.push({ id: task.id, attempt: task.attempt })
      const act = plan[Math.min(task.attempt, plan.length) - 1]
      if (act === 'fail') throw new Error('as planned')
      if (act === 'ack') await task.ack()
      if (act === 'bury') await task.bury()
      // It does not count as an attempt.
      if (act === 'throttle' && seen.filter(({ id }) => id === task.id).length === 1) await task.throttle(0)
      if (act === 'outlive') await aborted(task.signal, 10_000)
    }
    const worker = this.queue(request).worker(
      handle, { untilEmpty: true, ...options(request, ['concurrency', 'lease_ms', 'max_run_ms', 'timeout_ms', 'grace_ms']) })
    worker.on('dead', task => events.push({ what: 'dead', id: task.id }))
    worker.on('lost', task => events.push({ what: 'lost', id: task.id }))
    worker.on('slotsMissed', id => events.push({ what: 'slots_missed', id }))
    worker.on('failed', () => {})
    worker.on('error', () => {})
    const { completed, failed, dead, lost } = await worker.finished
    return { completed, failed, dead, lost, seen, events }
  }
}

/** A panic in the native half, by an entry that is there for tests. */
function panicked() {
  const inside = createRequire(require.resolve('stanchion'))
  const { call } = inside('./bridge.js')
  const { native } = inside('./native.js')
  return call((bridge, number) => native().panicOnPurpose(bridge, number))
}

const tasks = found => found.map(shownTask)
const nodes = request => request.nodes.map(node => options(node, NODE))

const OPERATIONS = {
  'time.pass': (_, { ms }) => clock.advance(ms),

  'process.fork': () => { throw new Cannot('Node does not fork') },
  'process.panic': panicked,
  'process.show': actor => actor.show(),

  'client.open': async (actor, request) => {
    const url = special(request.url)
    const given = options(request, CONNECT)
    const memory = /^memory:(.*)/.exec(url)
    actor.leases.clear()
    actor.claims.clear()
    actor.client = memory
      ? await memoryClient({ clock, name: memory[1], ...given })
      : await connect(url, given)
  },
  'client.close': async actor => {
    await actor.client?.close()
  },
  'client.resume_lease': async (actor, request) =>
    actor.keep(request, await actor.client.resumeLease(special(request.handle))),
  'client.release_all': actor => actor.client.releaseAll(),
  'client.metrics': actor => ({ samples: actor.client.metrics(), text: actor.client.metricsText() }),
  'client.cached': async (actor, request) => {
    const name = special(request.name)
    const given = options(request, CACHED)
    const shown = { computed: false }
    const failed = new Error('as planned')
    const compute = async () => {
      shown.computed = true
      if (request.body === 'fail') throw failed
      if (request.body === 'invalidate') await actor.client.invalidate(name)
      if (request.body === 'again') {
        const again = actor.client.cached(name, special(request.ttl_ms), () => 'twice', { ...given, waitMs: 0 })
        shown.meanwhile = await again.catch(error => kindOf(error.code))
      }
      return special(request.value)
    }
    try {
      shown.value = await actor.client.cached(name, special(request.ttl_ms), compute, given)
    } catch (error) {
      if (error !== failed) throw error
      shown.failed = true
    }
    return shown
  },
  'client.invalidate': (actor, request) => actor.client.invalidate(special(request.name)),
  'client.locks': async (actor, { page }) => {
    const { names, next } = await actor.client.locks(big(page))
    return shownPage(names, next)
  },
  'client.queue_names': async (actor, { page }) => {
    const { names, next } = await actor.client.queueNames(big(page))
    return shownPage(names, next)
  },

  'lock.acquire': async (actor, request) => {
    if ('cancel' in request) throw new Cannot("a signal's own reason is what is thrown")
    return actor.keep(request, await actor.lock(request).acquire(options(request, LOCK)))
  },
  'lock.try_acquire': async (actor, request) => {
    if ('wait_ms' in request || 'fail_fast' in request) throw new Cannot('a try takes no wait')
    return actor.keep(request, await actor.lock(request).tryAcquire(options(request, LOCK)))
  },
  'lock.hold': (actor, request) => actor.lock(request).hold(async lease => {
    const shown = shownLease(lease)
    if (request.body === 'release') await lease.release()
    if (request.body === 'break') await actor.lock(request).breakLease()
    return shown
  }, options(request, LOCK)),
  'lock.holder': async (actor, request) => {
    const found = await actor.lock(request).holder()
    return found && shownHolder(found)
  },
  'lock.waiters': async (actor, request) => (await actor.lock(request).waiters()).map(shownWaiter),
  'lock.holders': async (actor, request) => (await actor.lock(request).holders()).map(shownHolder),
  'lock.is_locked': (actor, request) => actor.lock(request).isLocked(),
  'lock.break_lease': (actor, request) => actor.lock(request).breakLease(),

  'limiter.take': async (actor, request) => {
    if ('cancel' in request) throw new Cannot("a signal's own reason is what is thrown")
    return shownTaken(await actor.limiter(request).take(options(request, ['count', 'wait_ms'])))
  },
  'limiter.try_take': async (actor, request) => shownTaken(await actor.limiter(request).tryTake(options(request, ['count']))),

  'lease.look': (actor, request) => {
    const lease = actor.lease(request)
    const fences = Object.fromEntries(Object.entries(lease.fences).map(([name, fence]) => [name, whole(fence)]))
    return { ...shownLease(lease), remaining_ms: lease.remainingMs, valid: lease.valid, loss: lease.loss, fences }
  },
  'lease.check': (actor, request) => actor.lease(request).check(),
  'lease.wait_lost': (actor, request) => aborted(actor.lease(request).signal, special(request.time_ms)),
  'lease.extend': (actor, request) => actor.lease(request).extend(special(request.ttl_ms)),
  'lease.extend_exact': (actor, request) => actor.lease(request).extendExact(special(request.ttl_ms)),
  'lease.upgrade': (actor, request) => actor.lease(request).upgrade(),
  'lease.downgrade': (actor, request) => actor.lease(request).downgrade(),
  'lease.release': (actor, request) => actor.lease(request).release(options(request, ['cooldown_ms'])),
  'lease.detach': (actor, request) => actor.lease(request).detach(special(request.ttl_ms)),

  'queue.enqueue': async (actor, request) => shownEnqueued(await actor.queue(request).enqueue(options(request, TASK))),
  'queue.enqueue_many': async (actor, request) =>
    (await actor.queue(request).enqueueMany(request.tasks.map(task => options(task, TASK)))).map(shownEnqueued),
  'queue.claim': async (actor, request) =>
    actor.keepClaims(request, await actor.queue(request).claim(options(request, CLAIM))),
  'queues.claim': async (actor, request) =>
    actor.keepClaims(request, await actor.client.queues(request.queues).claim(options(request, CLAIM))),
  'queue.settle': async (actor, request) =>
    (await actor.queue(request).settle(actor.verdicts(request))).map(shownError),
  'queue.settle_and_claim': async (actor, request) => {
    const { settled, claims } = await actor.queue(request).settleAndClaim(
      actor.verdicts(request), options(request, CLAIM))
    return { settled: settled.map(shownError), claims: actor.keepClaims(request, claims) }
  },
  'queue.pop': async (actor, request) => tasks(await actor.queue(request).pop(special(request.n))),
  'queue.peek': async (actor, request) => tasks(await actor.queue(request).peek(special(request.n))),
  'queue.get': async (actor, request) => {
    const found = await actor.queue(request).get(special(request.id))
    return found && shownTask(found)
  },
  'queue.list': async (actor, request) => {
    const found = await actor.queue(request).list(special(request.state), options(request, LIST))
    return { items: tasks(found.tasks), next: found.next }
  },
  'queue.remove': async (actor, request) => {
    const given = 'version' in request ? { version: big(request.version) } : undefined
    const { removed, otherVersion } = await actor.queue(request).remove(special(request.id), given)
    return { removed, other_version: whole(otherVersion) }
  },
  'queue.cancel': (actor, request) => actor.queue(request).cancel(special(request.id)),
  'queue.result': async (actor, request) => {
    const given = { ...options(request, ['wait_ms']), ...'version' in request ? { version: big(request.version) } : {} }
    const { outcome, result, version, reason } = await actor.queue(request).result(special(request.id), given)
    return { outcome, result: result && hex(result), version: whole(version), reason }
  },
  'queue.events': async (actor, request) => {
    const events = []
    for await (const event of actor.queue(request).events({ waitMs: 0, ...options(request, ['after', 'wait_ms']) })) {
      events.push(shownEvent(event))
    }
    return events
  },
  'queue.reschedule': async (actor, request) => {
    const { outcome } = await actor.queue(request).reschedule(special(request.id), special(request.due_ms))
    return { outcome }
  },
  'queue.consumers': (actor, request) => actor.queue(request).consumers(),
  'queue.stats': async (actor, request) => {
    const found = await actor.queue(request).stats()
    const { settings } = found
    return {
      scheduled: found.scheduled, ready: found.ready, claimed: found.claimed, dead: found.dead,
      successors: found.successors, paused: found.paused, waiters: found.waiters, next_due_ms: found.nextDueMs, enqueued: found.enqueued,
      acked: found.acked, retried: found.retried, died: found.died, max_len: settings.maxLen,
      dead_max: settings.deadMax, dead_age_ms: settings.deadAgeMs, dead_bytes: settings.deadBytes,
      intake: settings.intake, events: settings.events, schedules: found.schedules, schedules_late_ms: found.schedulesLateMs,
      flows: found.flows,
      held: found.held, keys_waiting: found.keysWaiting, next_key_ms: found.nextKeyMs, gate: found.gate,
      opens_in_ms: found.opensInMs, max_running: settings.maxRunning, rate: shownRate(settings.rate),
      key_concurrency: settings.keyConcurrency, key_rate: shownRate(settings.keyRate)
    }
  },
  'queue.pause': (actor, request) => actor.queue(request).pause(),
  'queue.resume': (actor, request) => actor.queue(request).resume(),
  'queue.kick': (actor, request) => actor.queue(request).kick(dead(request)),
  'queue.remove_dead': (actor, request) => actor.queue(request).removeDead(dead(request)),
  'queue.purge': (actor, request) => actor.queue(request).purge(),
  'queue.configure': (actor, request) => actor.queue(request).configure(options(request, SETTINGS)),
  'queue.schedule': async (actor, request) => ({ outcome: await actor.queue(request).schedule(options(request, SCHEDULE)) }),
  'queue.sync_schedules': (actor, request) => actor.queue(request).syncSchedules(
    special(request.owner), special(request.generation), request.schedules.map(schedule => options(schedule, SCHEDULE))),
  'queue.get_schedule': async (actor, request) => {
    const found = await actor.queue(request).getSchedule(special(request.id))
    return found && shownSchedule(found)
  },
  'queue.list_schedules': async (actor, request) => {
    const found = await actor.queue(request).listSchedules(options(request, PAGE))
    return { items: found.schedules.map(shownSchedule), next: found.next }
  },
  'queue.pause_schedule': (actor, request) => actor.queue(request).pauseSchedule(special(request.id)),
  'queue.resume_schedule': (actor, request) => actor.queue(request).resumeSchedule(special(request.id)),
  'queue.remove_schedule': (actor, request) => actor.queue(request).removeSchedule(special(request.id)),
  'queue.run_schedule': (actor, request) => actor.queue(request).runSchedule(special(request.id)),
  'queue.limit_key': (actor, request) => actor.queue(request).limitKey(special(request.key), options(request, LIMITS)),
  'queue.get_key': async (actor, request) => shownKey(await actor.queue(request).getKey(special(request.key))),
  'queue.list_keys': async (actor, request) => {
    const found = await actor.queue(request).listKeys(options(request, PAGE))
    return { items: found.keys.map(shownKey), next: found.next }
  },
  'queue.enqueue_flow': (actor, request) => actor.queue(request).enqueueFlow(special(request.id), nodes(request)),
  'queue.add_to_flow': (actor, request) => actor.queue(request).addToFlow(special(request.id), nodes(request)),
  'queue.get_flow': async (actor, request) => {
    const found = await actor.queue(request).getFlow(special(request.id))
    return found && shownFlow(found)
  },
  'queue.list_flows': async (actor, request) => {
    const found = await actor.queue(request).listFlows(options(request, PAGE))
    return { items: found.flows.map(shownFlow), next: found.next }
  },
  'queue.cancel_flow': (actor, request) => actor.queue(request).cancelFlow(special(request.id)),
  'queue.retry_flow': (actor, request) => actor.queue(request).retryFlow(special(request.id)),
  // The id counts for a jitter only: without one, scenarios leave it out.
  'schedule.preview': (_, request) =>
    previewSchedule({ id: '', ...options(request, SCHEDULE) }, special(request.after_ms), special(request.count)).map(millis),

  'claim.look': (actor, request) => {
    const claim = actor.claim(request)
    return { ...shownClaim(claim), remaining_ms: claim.remainingMs, valid: claim.valid, loss: claim.loss }
  },
  'claim.inputs': async (actor, request) => (await actor.claim(request).inputs()).map(shownInput),
  'claim.ack': (actor, request) => actor.claim(request).ack(special(request.result)),
  'claim.progress': (actor, request) => actor.claim(request).progress(special(request.progress)),
  'claim.nack': (actor, request) => actor.claim(request).nack(options(request, ['delay_ms', 'reason'])),
  'claim.bury': (actor, request) => actor.claim(request).bury(special(request.reason)),
  'claim.put_back': (actor, request) => actor.claim(request).putBack(options(request, ['delay_ms'])),
  'claim.throttle': (actor, request) => actor.claim(request).throttle(special(request.time_ms)),
  'claim.extend': (actor, request) => actor.claim(request).extend(special(request.lease_ms)),
  'claim.wait_lost': (actor, request) => aborted(actor.claim(request).signal, special(request.time_ms)),

  'worker.run': (actor, request) => actor.work(request)
}

async function answer(actor, request) {
  try {
    return { ok: await OPERATIONS[request.op](actor, request) ?? null }
  } catch (error) {
    if (error instanceof Cannot) return { cannot: error.message }
    if (error instanceof StanchionError) {
      actor.told.push(String(error.stack), inspect(error, { depth: 10, showHidden: true }), JSON.stringify(error))
      return { error: failure(error) }
    }
    return { error: { kind: `${error?.name} of JavaScript`, message: String(error?.stack) } }
  }
}

const actors = new Map()

createInterface({ input: process.stdin }).on('line', line => {
  const request = JSON.parse(line)
  const say = found => process.stdout.write(`${JSON.stringify({ call: request.call, ...found })}\n`)
  if (request.op === 'operations') return say({ ok: Object.keys(OPERATIONS) })
  if (!actors.has(request.actor)) actors.set(request.actor, new Actor())
  const actor = actors.get(request.actor)
  actor.last = actor.last.then(() => answer(actor, request)).then(say)
})

module.exports = { OPERATIONS }
