/** Values made to break things: objects that throw, errors that are none, buffers that are gone, other realms. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { createContext, runInContext, runInNewContext } from 'node:vm'
import { StanchionError, connect } from 'stanchion'
import { memoryClient } from 'stanchion/testing'
import { onEveryStore } from './helpers/stores.mjs'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'
const require = createRequire(import.meta.url)

async function refuses(call, title = String(call)) {
  const promise = call()
  assert.ok(promise instanceof Promise, title)
  await assert.rejects(promise, error => {
    assert.ok(error instanceof StanchionError, `${title}: ${error?.stack}`)
    assert.equal(error.code, INVALID)
    return true
  })
}

test('what is no options object is refused by every call, and never at once', async () => {
  const client = await connect('memory:')
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  const lease = await lock.acquire()
  await queue.enqueue({ id: 'a' })
  const [claim] = await queue.claim()
  for (const bad of [null, 5, 'x', true, Symbol('x'), 5n, () => {}]) {
    const calls = [
      () => lock.acquire(bad), () => lock.tryAcquire(bad), () => lock.hold(() => {}, bad), () => lease.release(bad),
      () => queue.claim(bad), () => queue.settleAndClaim([], bad), () => queue.consume(bad).next(), () => queue.events(bad).next(),
      () => queue.list('ready', bad), () => queue.remove('a', bad), () => queue.configure(bad),
      () => queue.listSchedules(bad), () => queue.listFlows(bad), () => queue.enqueueFlow('f', [bad]), () => queue.schedule(bad), () => queue.syncSchedules('app', 1, [bad]),
      () => queue.worker(() => {}, bad).finished, () => client.queues(['q']).claim(bad), () => claim.nack(bad),
      () => connect('memory:', bad), () => memoryClient(bad)]
    for (const call of calls) await refuses(call)
    assert.throws(() => claim.nacked(bad), { code: INVALID })
  }
  await refuses(() => queue.configure())
  assert.ok(lease.valid && claim.valid, 'a refused call has ended what it was called on')
})

test('what is no list, no name, no clock, no function', async () => {
  const client = await connect('memory:')
  const queue = client.queue('q')
  for (const bad of [undefined, null, 5, 'abc', Symbol('x'), {}, () => {}]) {
    await refuses(() => client.queues(bad).claim())
    await refuses(() => queue.settle(bad))
    await refuses(() => queue.enqueueMany(bad))
    if (typeof bad !== 'string' && typeof bad !== 'number') await refuses(() => queue.kick(bad))
    if (typeof bad !== 'function') await refuses(() => client.lock('a').hold(bad))
    if (bad !== undefined) await refuses(() => memoryClient({ clock: bad }))
    if (bad !== undefined && typeof bad !== 'string') await refuses(() => memoryClient({ name: bad }))
    if (bad !== undefined && bad !== null) await refuses(() => queue.consume({ signal: bad }).next())
  }
  for (const bad of [Object.create(null), { toString() { throw new Error('of toString') } }, Symbol('x'), null]) {
    await refuses(() => queue.consume({ concurrency: bad }).next())
  }
  for (const headers of ['abc', 5, true, [['a', 'b']], new Map([['a', 'b']]), new Headers({ a: 'b' })]) {
    await refuses(() => queue.enqueue({ headers }))
  }
  await refuses(() => connect(new URL('redis://127.0.0.1:1')))
  assert.equal((await queue.stats()).enqueued, 0)
})

test('what a getter throws rejects the promise, as it is', async () => {
  const client = await connect('memory:')
  const queue = client.queue('q')
  const error = Object.assign(new Error('of the getter'), { code: 'EXPECTED' })
  const bad = { get signal() { throw error } }
  const proxy = new Proxy({}, { get() { throw error } })
  for (const options of [bad, proxy]) {
    const calls = [
      () => client.lock('a').acquire(options), () => client.lock('a').tryAcquire(options),
      () => client.lock('a').hold(() => {}, options), () => queue.claim(options),
      () => queue.settleAndClaim([], options), () => queue.consume(options).next(), () => queue.events(options).next(),
      () => client.queues(['q']).claim(options), () => queue.worker(() => {}, options).finished]
    for (const call of calls) {
      const promise = call()
      await assert.rejects(promise, found => found === error)
    }
  }
  assert.equal(await client.lock('a').isLocked(), false)
})

test('options count wherever they are: in getters of a class, or not enumerable', async () => {
  const client = await connect('memory:')
  class Options { get ttlMs() { return 500 } }
  for (const options of [new Options(), Object.create(null, { ttlMs: { value: 500 } }), Object.create({ ttlMs: 500 })]) {
    const leases = [
      await client.lock('a').acquire(options), await client.lock('b', options).acquire(),
      await client.lock('c', { label: 'x' }).acquire(options), await client.lock('d', options).acquire({ label: 'x' })]
    for (const lease of leases) {
      assert.ok(lease.remainingMs <= 500, lease.name)
      await lease.release()
    }
  }
})

test('the reason of a signal is passed on as it is', async () => {
  const client = await connect('memory:')
  const held = await client.lock('a').acquire()
  const like = Object.assign(new Error('of the program'), { code: 'InvalidArg' })
  for (const reason of [null, 5, 'x', Symbol('x'), Object.freeze({}), like]) {
    const before = await client.lock('a').acquire({ signal: AbortSignal.abort(reason) }).then(assert.fail, found => found)
    const controller = new AbortController()
    const waiting = client.lock('a').acquire({ signal: controller.signal })
    controller.abort(reason)
    assert.deepEqual([before, await waiting.then(assert.fail, found => found)], [reason, reason])
  }
  await held.release()
})

onEveryStore('a signal that is aborted while the options are read', async ({ client }) => {
  const controller = new AbortController()
  const options = { get ttlMs() { controller.abort(new Error('enough')); return 5_000 }, signal: controller.signal }
  await assert.rejects(client.lock('a').acquire(options), { message: 'enough' })
  assert.equal(await client.lock('a').isLocked(), false)
  const other = new AbortController()
  const worker = client.queue('q').worker(() => {}, {
    get concurrency() { other.abort(); return 1 }, signal: other.signal })
  assert.equal((await worker.finished).completed, 0)
})

const throwing = property =>
  Object.defineProperty(new Error('an error'), property, { get() { throw new Error(`of ${property}`) } })

test('a handler may throw anything', async () => {
  const queue = (await connect('memory:')).queue('q')
  const unhandled = []
  const hear = error => unhandled.push(error)
  process.on('unhandledRejection', hear)
  const thrown = [
    undefined, null, '', 'x', 0, 5n, Symbol('x'), Object.freeze({}), Object.freeze(new Error('frozen')),
    Object.create(null), { toString() { throw new Error('of toString') } }, throwing('message'), throwing('name'),
    Object.assign(new Error('odd'), { name: Symbol('x') }), new Error('half \ud800'), 'half \udfff', throwing('stack'),
    new Proxy(new Error('p'), { get() { throw new Error('of get') } }),
    new Proxy({}, { getPrototypeOf() { throw new Error('of the prototype') } }), runInNewContext("new TypeError('far')")]
  for (const [n, one] of thrown.entries()) {
    await queue.enqueue({ id: `t${n}`, maxAttempts: 1 })
    const worker = queue.worker(n % 2 === 0 ? () => { throw one } : () => Promise.reject(one), { untilEmpty: true })
    const heard = []
    for (const event of ['failed', 'dead']) worker.on(event, (task, error) => heard.push([event, error]))
    const { failed, dead } = await worker.finished
    assert.deepEqual([failed, dead], [1, 1])
    assert.ok(heard.length === 2 && heard.every(([, error]) => error === one))
  }
  const reason = async n => (await queue.get(`t${n}`)).reason
  assert.deepEqual([await reason(14), await reason(19)], ['Error: half \ufffd', 'TypeError: far'])
  process.off('unhandledRejection', hear)
  assert.deepEqual(unhandled, [])
})

test('what a handler returns is no error, if it has nacked the task', async () => {
  const queue = (await connect('memory:')).queue('q')
  await queue.enqueue({ id: 'a', maxAttempts: 1 })
  const worker = queue.worker(async task => { await task.nack({ reason: 'later' }); return 'value' }, { untilEmpty: true })
  let found
  worker.on('failed', (_, error) => { found = error })
  await worker.finished
  assert.equal(found.message, 'later')
})

test('an error of the body with a cause that throws is not masked', async () => {
  const lock = (await connect('memory:')).lock('a')
  const odd = [throwing('cause'), new Proxy(new Error('p'), { get() { throw new Error('of get') } })]
  for (const error of odd) {
    // Not by assert.rejects, which looks at the error.
    let isSame
    await lock.hold(async () => {
      await lock.breakLease()
      throw error
    }).catch(found => { isSame = found === error })
    assert.equal(isSame, true)
  }
})

onEveryStore('bytes of all kinds', async ({ client }) => {
  const queue = client.queue('q')
  const shared = new SharedArrayBuffer(3)
  const sharedView = new Uint8Array(shared)
  sharedView.set([1, 2, 3])
  const resizable = typeof ArrayBuffer.prototype.resize === 'function' ? [new ArrayBuffer(3, { maxByteLength: 9 })] : []
  for (const buffer of resizable) new Uint8Array(buffer).set([1, 2, 3])
  const foreign = runInNewContext('new Uint8Array([1, 2, 3])')
  const kinds = [
    shared, sharedView, new DataView(shared), ...resizable, ...resizable.map(buffer => new Uint8Array(buffer)), foreign,
    foreign.buffer, new Int8Array([1, 2, 3]), Buffer.from([0, 1, 2, 3]).subarray(1)]
  for (const payload of kinds) {
    await queue.enqueue({ payload })
    const [task] = await queue.pop()
    assert.deepEqual([[...task.payload], task.headers], [[1, 2, 3], {}])
  }
  for (const empty of [new Uint8Array(0), new ArrayBuffer(0), Buffer.alloc(0), new DataView(new ArrayBuffer(0))]) {
    await queue.enqueue({ payload: empty })
    assert.equal((await queue.pop())[0].payload.length, 0)
  }
  for (const kind of [one => one, one => new Uint8Array(one), one => new DataView(one), one => Buffer.from(one)]) {
    const buffer = new ArrayBuffer(8)
    const payload = kind(buffer)
    structuredClone(buffer, { transfer: [buffer] })
    await refuses(() => queue.enqueue({ payload }), 'detached')
  }
  await queue.enqueue({ id: 'later', due: runInNewContext('new Date(Date.now() + 60000)') })
  assert.equal((await queue.get('later')).state, 'scheduled')
})

onEveryStore('verdicts are settled all or none', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany([{ id: 'a' }, { id: 'b' }])
  const [first, second] = (await queue.claim({ max: 2 })).map(claim => claim.acked())
  await refuses(() => queue.settle([first, second, first]))
  await refuses(() => queue.settle([first, {}]))
  assert.deepEqual(await queue.settle([first, second]), [null, null])
  await refuses(() => queue.settle([first]))
})

/** The package with its modules in a realm of their own, as runners of tests load it; the addon is of this one. */
function inOtherRealm() {
  const main = require.resolve('stanchion')
  const realm = createContext({ process, Buffer, AbortController, AbortSignal })
  const loaded = new Map()
  const load = file => {
    if (!loaded.has(file)) {
      const module = { exports: {} }
      loaded.set(file, module)
      const real = createRequire(file)
      const inner = name => {
        const found = real.resolve(name)
        return found.startsWith(dirname(main)) ? load(found) : real(name)
      }
      const code = `(function (exports, require, module) {${readFileSync(file, 'utf8')}\n})`
      runInContext(code, realm, { filename: file })(module.exports, inner, module)
    }
    return loaded.get(file).exports
  }
  return load(main)
}

test('in another realm', async () => {
  const far = inOtherRealm()
  const client = await far.connect('memory:')
  const queue = client.queue('q')
  const calls = [
    () => client.lock('a').acquire({ ttlMs: 'x' }), () => client.lock('').acquire(),
    () => queue.enqueue({ priority: -1 }), () => queue.settle([{}])]
  for (const call of calls) {
    await assert.rejects(call(), error => error instanceof far.StanchionError && error.code === INVALID)
  }
  await queue.enqueue({ payload: new ArrayBuffer(3) })
  assert.deepEqual([...(await queue.pop())[0].payload], [0, 0, 0])
  await assert.rejects(client.lock('a').hold(async () => {
    await client.lock('a').breakLease()
    throw new Error('of the body')
  }), error => error.message === 'of the body' && error.cause instanceof far.LeaseLostError)
})
