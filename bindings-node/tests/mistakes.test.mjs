/** What is written by mistake is refused at once, in words that say what to write instead. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Claim, Client, FlowInput, InvalidArgumentError, Lease, Lock, Queue, Queues, RwLock, Worker, connect } from 'stanchion'
import { memoryClient } from 'stanchion/testing'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'

/** Each call is refused with a message that fits. */
async function refuses(calls) {
  for (const [call, message] of calls) {
    await assert.rejects(call(), { name: 'InvalidArgumentError', code: INVALID, message }, String(call))
  }
}

class Empty {}
class Hidden {
  #value = 1
  get value() { return this.#value }
}

test('an object of which JSON would keep nothing is refused, wherever it is', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  const lost = [
    new URLSearchParams('a=1'), new Headers({ a: 'b' }), new FormData(), new Response('x'), new Blob(['x']), new WeakMap(),
    new WeakRef({}), new DataView(new ArrayBuffer(2)), new Empty(), new Hidden(), client, await client.lock('a').acquire(),
    new DOMException('x'), Object.create({ inherited: 1 }), (async function* () {})()]
  for (const bad of lost) {
    for (const payload of [bad, [bad], { deep: { a: bad } }]) {
      // The bytes of a view are a payload.
      if (ArrayBuffer.isView(payload)) continue
      await assert.rejects(queue.enqueue({ payload }), { code: INVALID })
      await assert.rejects(client.cached('a', 60_000, () => payload), { code: INVALID })
    }
  }
  assert.equal((await queue.stats()).enqueued, 0)
})

test('what JSON can say goes on being accepted', async () => {
  const queue = (await memoryClient()).queue('q')
  const { runInNewContext } = await import('node:vm')
  class Point { x = 1 }
  class Told { toJSON() { return 'told' } }
  const payload = {
    plain: {}, bare: Object.create(null), far: runInNewContext('({})'), farList: runInNewContext('[]'), list: [], point: new Point(),
    told: new Told(), date: new Date(0), url: new URL('http://a/'), buffer: Buffer.from('x'), bytes: new Uint8Array(2),
    none: new Uint8Array(0), boxed: [Object(5), Object('x'), Object(''), Object(true)]
  }
  await queue.enqueue({ id: 'a', payload })
  assert.deepEqual((await queue.get('a')).json, {
    plain: {}, bare: {}, far: {}, farList: [], list: [], point: { x: 1 }, told: 'told', date: '1970-01-01T00:00:00.000Z', url: 'http://a/',
    buffer: { type: 'Buffer', data: [120] }, bytes: { 0: 0, 1: 0 }, none: {}, boxed: [5, 'x', '', true]
  })
})

test('the message says what JSON would lose, and where it is', async () => {
  const client = await memoryClient()
  const payload = value => () => client.queue('q').enqueue({ id: 'a', payload: value })
  const cached = value => () => client.cached('a', 60_000, () => value)
  await refuses([
    [payload({ id: 7, fence: 5n }), 'the payload is bytes or a JSON value, not one with a bigint (write String(fence), or Number(fence)) as "fence"'],
    [payload([5n]), /a bigint \(write String\(it\), or Number\(it\)\) as "0"$/],
    [payload(5n), /JSON value, not a bigint \(write String\(it\)/],
    [payload({ deep: { at: new URLSearchParams() } }), /not one with an instance of URLSearchParams \(nothing of it would be left\) as "at"$/],
    [payload(new Map()), /JSON value, not a Map or Set \(Object\.fromEntries and Array\.from make JSON of them\)$/],
    [payload({ when: Promise.resolve() }), /not one with a Promise that was not awaited as "when"$/],
    [payload(NaN), /JSON value, not NaN$/],
    [payload(() => {}), /JSON value, not a function$/],
    [payload({ toJSON() { throw new Error('of toJSON') } }), 'the payload is bytes or a JSON value: of toJSON'],
    [payload({ toJSON() { throw null } }), 'the payload is bytes or a JSON value: null'],
    [cached({ fence: 5n }), 'cached "a": the computed value is a JSON value, not one with a bigint (write String(fence), or Number(fence)) as "fence"'],
    [cached(undefined), 'cached "a": the computed value is a JSON value, not undefined'],
  ])
})

test('what a method makes is not made by new: the error says how', async () => {
  const client = await memoryClient()
  const made = new Map([
    [() => new Client('redis://localhost'), 'a client is made by await connect(url)'],
    [() => new Client({}), 'a client is made by await connect(url)'],
    [() => new Lock(client, 'x'), 'a lock is made by client.lock(name, options)'],
    [() => new RwLock(client, 'x'), 'a read-write lock is made by client.rwLock(name, options)'],
    [() => new Queue('emails', { connection: {} }), 'a queue is made by client.queue(name)'],
    [() => new Queues(['a', 'b']), 'queues are made by client.queues(names)'],
    [() => new Worker('emails', async () => {}), 'a worker is made by queue.worker(handler, options)'],
    [() => new Lease(), 'a lease is made by await lock.acquire(options)'],
    [() => new FlowInput({}), 'an input is made by await claim.inputs()'],
    [() => new Claim({}), 'a claim is made by await queue.claim(options)'],
  ])
  for (const [make, message] of made) assert.throws(make, { name: 'InvalidArgumentError', code: INVALID, message })
})

test('an argument too many is refused, and an option where it means nothing', async () => {
  const client = await memoryClient()
  const [lock, queue] = [client.lock('a', { waitMs: 5, failFast: true }), client.queue('q')]
  await refuses([
    [() => queue.enqueue({ id: 'a' }, { delayMs: 60_000 }), 'enqueue takes one argument; the options stand in the task: { id, payload, delayMs }'],
    [() => queue.enqueueMany([{ id: 'a' }], { delayMs: 60_000 }), /^enqueueMany takes one argument; the options stand in the task/],
    [() => lock.tryAcquire({ waitMs: 5 }), 'a try does not wait, so it takes no waitMs; use acquire'],
    [() => lock.tryAcquire({ failFast: true }), 'a try does not wait, so it takes no failFast; use acquire'],
  ])
  assert.equal((await queue.stats()).enqueued, 0)
  await queue.enqueue({ id: 'a' }, undefined)
  // Those of the lock are for every acquire of it.
  await (await lock.tryAcquire({ waitMs: undefined })).release()
})

test('seconds are no due time', async () => {
  const queue = (await memoryClient()).queue('q')
  const seconds = Math.floor(Date.now() / 1_000) + 60
  const message = `due is in milliseconds, as Date.now() is; ${seconds} looks like seconds`
  await refuses([
    [() => queue.enqueue({ id: 'a', due: seconds }), message],
    [() => queue.enqueueMany([{ id: 'a', due: seconds }]), message],
    [() => queue.reschedule('a', seconds), message],
    [() => queue.enqueue({ due: 1e9 }), /^due is in milliseconds/],
    [() => queue.enqueue({ due: 1e11 - 1 }), /^due is in milliseconds/],
  ])
  assert.equal((await queue.stats()).enqueued, 0)
  for (const due of [0, 1e9 - 1, 1e11, new Date(seconds), Date.now() + 60_000]) await queue.enqueue({ due })
})

test('a refused option is named', async () => {
  const client = await memoryClient()
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  const lease = await client.lock('b').acquire()
  await queue.enqueue({ id: 'a' })
  const [claim] = await queue.claim()
  await refuses([
    [() => lock.acquire({ waitMs: -1 }), 'waitMs is a number of milliseconds, not -1'],
    [() => client.lock('a', { ttlMs: '5000' }).acquire(), 'ttlMs is a number of milliseconds, not "5000"'],
    [() => lock.acquire({ waitMs: 10n }), /^waitMs is .*, not 10n$/],
    [() => lock.acquire({ renew: 'yes' }), 'renew is true or false, not "yes"'],
    [() => lock.acquire({ label: 5 }), 'label is a text, not 5'],
    [() => lock.acquire({ weight: 0.5 }), 'weight is a whole number, not 0.5'],
    [() => lease.release({ cooldownMs: Infinity }), /^cooldownMs is .*, not Infinity$/],
    [() => queue.claim({ max: '10' }), 'max is a whole number, not "10"'],
    [() => queue.worker(() => {}, { concurrency: '4' }).finished, 'concurrency is a whole number, not "4"'],
    [() => queue.enqueue({ id: 42 }), 'id is a text, not 42'],
    [() => queue.enqueue({ delayMs: NaN }), /^delayMs is .*, not NaN$/],
    [() => queue.enqueue({ onDuplicate: { debounce: { maxWaitMs: -1 } } }), /^maxWaitMs is /],
    [() => queue.configure({ deadAgeMs: -1 }), /^deadAgeMs is /],
    [() => queue.list('ready', { payloads: 1 }), 'payloads is true or false, not 1'],
    [() => claim.nack({ delayMs: {} }), /^delayMs is .*, not an object$/],
    [() => client.cached('a', 60_000, () => 1, { staleMs: -1 }), /^staleMs is /],
    [() => client.cached('a', { ttlMs: 5 }, () => 1), /^ttlMs is .*, not an object$/],
    [() => connect('memory:', { timeoutMs: '5' }), /^timeoutMs is .*, not "5"$/],
  ])
  assert.ok(lease.valid && claim.valid)
})

test('an error says what was attempted, and on what', async () => {
  const client = await memoryClient()
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  const lease = await client.lock('b').acquire()
  await queue.enqueue({ id: 'a' })
  const [claim] = await queue.claim()
  const calls = new Map([
    [() => lock.acquire({ waitMs: -1 }), ['acquire', 'a']],
    [() => lock.acquire({ wait: 5 }), ['acquire', 'a']],
    [() => lock.acquire({ signal: 5 }), ['acquire', 'a']],
    [() => lock.tryAcquire({ waitMs: 5 }), ['acquire', 'a']],
    [() => lock.hold(5), ['hold', 'a']],
    [() => client.rwLock('rw').read().acquire(5), ['acquire', 'rw']],
    [() => client.semaphore('s', 'x').acquire(), ['acquire', 's']],
    [() => client.lock(5).acquire(), ['acquire', undefined]],
    [() => lease.extend('x'), ['extend', 'b']],
    [() => lease.release({ cooldown: 5 }), ['release', 'b']],
    [() => queue.enqueue('send'), ['enqueue', 'q']],
    [() => queue.enqueue({ payload: 5n }), ['enqueue', 'q']],
    [() => queue.claim({ wait: 5 }), ['claim', 'q']],
    [() => queue.consume({ max: 5 }).next(), ['claim', 'q']],
    [() => queue.kick(), ['kick', 'q']],
    [() => queue.worker().finished, ['work', 'q']],
    [() => queue.worker(() => {}, { concurrency: -1 }).finished, ['work', 'q']],
    [() => client.queues(['q']).claim(5), ['claim', undefined]],
    [() => claim.nack({ delay: 5 }), ['nack', 'q/a']],
    [async () => claim.nacked({ delay: 5 }), ['nack', 'q/a']],
    [() => client.cached('c', 60_000), ['cached', 'c']],
    [() => client.cached('c', 60_000, () => 5n), ['cached', 'c']],
    [() => client.cached('c', -1, () => 5), ['cached', 'c']],
    [() => client.invalidate(5), ['invalidate', undefined]],
    [() => connect(5), ['open', undefined]],
  ])
  for (const [call, expected] of calls) {
    const error = await call().then(assert.fail, found => found)
    assert.ok(error instanceof InvalidArgumentError, `${call}: ${error?.stack}`)
    assert.deepEqual([error.operation, error.resource], expected, String(call))
  }
})

test('so does one of a client that was closed', async () => {
  const client = await memoryClient()
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  await client.close()
  const calls = new Map([
    [() => lock.acquire(), ['acquire', 'a']],
    [() => lock.holder(), ['holder', 'a']],
    [() => queue.enqueue({ id: 'a' }), ['enqueue', 'q']],
    [() => queue.claim(), ['claim', 'q']],
    [() => queue.worker(() => {}).finished, ['work', 'q']],
    [() => client.cached('c', 60_000, () => 5), ['cached', 'c']],
  ])
  for (const [call, expected] of calls) {
    const error = await call().then(assert.fail, found => found)
    assert.equal(error.code, 'ERR_STANCHION_CLOSED', `${call}: ${error?.stack}`)
    assert.deepEqual([error.operation, error.resource], expected, String(call))
  }
})

test('the reason of a signal stays as it is, also an error of ours', async () => {
  const lock = (await memoryClient()).lock('a')
  const error = new InvalidArgumentError('of the program')
  await assert.rejects(lock.acquire({ signal: AbortSignal.abort(error) }), found => found === error)
  assert.deepEqual([error.operation, error.resource], [undefined, undefined])
})

test('arguments in the wrong order', async () => {
  const client = await memoryClient()
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  await refuses([
    [() => lock.hold(5_000, () => assert.fail()), 'the body is a function, not 5000: hold(body, options)'],
    [() => lock.hold({ waitMs: 5 }, () => assert.fail()), 'the body is a function, not an object: hold(body, options)'],
    [() => client.cached('a', () => assert.fail(), 60_000), 'compute is a function, not 60000: cached(name, ttlMs, compute, options)'],
    [() => queue.worker({ concurrency: 5 }, () => {}).finished, 'the handler is a function, not an object: worker(handler, options)'],
    [() => queue.enqueue('send', { to: 'x' }), 'a task is an object, not "send": enqueue({ id, payload })'],
    [() => queue.enqueue(), 'a task is an object, not undefined: enqueue({ id, payload })'],
    [() => queue.enqueueMany(['send']), /^a task is an object, not "send"/],
  ])
})
