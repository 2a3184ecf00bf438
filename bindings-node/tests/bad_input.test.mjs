/** Bad input, forged objects, things done twice, and a panic: rejected promises with typed errors. */

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import {
  InternalError, InvalidArgumentError, LeaseLostError, StaleReceiptError, StanchionError, connect
} from 'stanchion'
import { memoryClient } from 'stanchion/testing'
import { onEveryStore } from './helpers/stores.mjs'

const INVALID = { code: 'ERR_STANCHION_INVALID_ARGUMENT', name: 'InvalidArgumentError' }
const NO_SPAN = [NaN, -1, 2 ** 64, Infinity, -Infinity, '10', true, 10n, {}, [], () => 5, Symbol('x'), new Date(0)]
const NO_COUNT = [NaN, -1, 0.5, 2 ** 64, 2 ** 53, Infinity, '10', true, -1n, 2n ** 64n, {}, Symbol('x')]
const NO_NAME = [
  '', '\0', 'a\nb', 'a\0b', '\ud800', 'a\udfff', 'x'.repeat(65_536), 5, null, undefined, {}, true, Symbol('x')]

/** The call gives a promise, which is rejected, whatever the argument. */
async function refuses(call, expected = INVALID) {
  const promise = call()
  assert.ok(promise instanceof Promise)
  await assert.rejects(promise, error => {
    assert.ok(error instanceof StanchionError, `${error?.stack}`)
    assert.equal(error.code, expected.code)
    return true
  })
}

onEveryStore('times', async ({ client }) => {
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  const lease = await lock.acquire()
  for (const bad of NO_SPAN) {
    for (const option of ['ttlMs', 'maxHoldMs', 'waitMs', 'adoptUnexpiringMs']) {
      await refuses(() => client.lock('b').acquire({ [option]: bad }))
      await refuses(() => client.lock('b', { [option]: bad }).tryAcquire())
    }
    await refuses(() => client.lock('b').hold(() => assert.fail(), { ttlMs: bad }))
    await refuses(() => lease.extend(bad))
    await refuses(() => lease.detach(bad))
    await refuses(() => lease.release({ cooldownMs: bad }))
    for (const option of ['leaseMs', 'maxRunMs', 'waitMs']) await refuses(() => queue.claim({ [option]: bad }))
    for (const option of ['delayMs', 'expiresMs']) await refuses(() => queue.enqueue({ [option]: bad }))
    await refuses(() => queue.enqueue({ onDuplicate: { debounce: { maxWaitMs: bad } } }))
    await refuses(() => queue.enqueue({ onDuplicate: { throttle: { windowMs: bad } } }))
    await refuses(() => queue.configure({ deadAgeMs: bad }))
  }
  await refuses(() => client.lock('b').acquire({ ttlMs: 0 }))
  await refuses(() => lease.extend())
  for (const bad of [NaN, Infinity, '10', true, new Date(NaN), new Date(8.64e15), {}]) {
    await refuses(() => queue.enqueue({ due: bad }))
    await refuses(() => queue.reschedule('a', bad))
  }
  assert.ok(lease.valid, 'a refused call has ended the lease')
  await lease.release()
  assert.equal((await queue.stats()).enqueued, 0)
})

onEveryStore('names that a task does not have', async ({ client }) => {
  const queue = client.queue('q')
  for (const bad of [
    { id: 'a', delay: 60_000 }, { id: 'a', data: 1 }, { to: 'x' }, { id: 'a', maxRetries: 3 },
    { id: 'a', onDuplicate: { debounce: { maxWaitMs: 5, wait: 5 } } }, { id: 'a', onDuplicate: { throttle: { window: 5 } } }
  ]) {
    await refuses(() => queue.enqueue(bad))
    await refuses(() => queue.enqueueMany([{ id: 'b' }, bad]))
  }
  await assert.rejects(queue.enqueue({ delay: 5 }), /there is no property of a task delay; there are id, .*delayMs/)
  assert.equal((await queue.stats()).enqueued, 0)
})

onEveryStore('payloads that JSON would lose', async ({ client }) => {
  const queue = client.queue('q')
  for (const bad of [
    new Map([[1, 2]]), new Set([1]), new Error('e'), /x/, Promise.resolve(1), new WeakMap(), new WeakSet(),
    (function* () {})()
  ]) {
    for (const payload of [bad, { deep: [bad] }]) await refuses(() => queue.enqueue({ payload }))
  }
  await refuses(() => queue.enqueue({ payload: { bytes: new ArrayBuffer(2) } }))
  await assert.rejects(queue.enqueue({ payload: Promise.resolve(1) }), /a Promise that was not awaited/)
  class Point {
    x = 1
    toJSON() { return { x: this.x } }
  }
  await queue.enqueue({ id: 'a', payload: [new Point(), Object.create(null), new Date(0), Buffer.from('x')] })
  assert.deepEqual((await queue.get('a')).json[0], { x: 1 })
})

onEveryStore('counts and flags', async ({ client }) => {
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  for (const bad of NO_COUNT) {
    for (const option of ['priority', 'maxAttempts']) await refuses(() => queue.enqueue({ [option]: bad }))
    for (const option of ['maxLen', 'deadMax', 'deadBytes', 'events']) await refuses(() => queue.configure({ [option]: bad }))
    await refuses(() => queue.claim({ max: bad }))
    await refuses(() => queue.pop(bad))
    await refuses(() => queue.peek(bad))
    await refuses(() => queue.list('ready', { max: bad }))
    await refuses(() => queue.list('ready', { page: bad }))
    await refuses(() => queue.remove('a', { version: bad }))
    await refuses(() => client.locks(bad))
    if (typeof bad === 'number') await refuses(() => queue.kick(bad))
    await refuses(() => queue.kick({ count: bad }))
    await refuses(() => queue.removeDead({ receipts: [bad] }))
  }
  await refuses(() => queue.enqueue({ priority: 256 }))
  await refuses(() => queue.claim({ max: 0 }))
  for (const bad of [0, 1, 'true', {}, NaN]) {
    for (const option of ['renew', 'failFast']) await refuses(() => lock.acquire({ [option]: bad }))
    await refuses(() => queue.configure({ intake: bad }))
    await refuses(() => queue.claim({ renew: bad }))
    await refuses(() => queue.list('ready', { payloads: bad }))
  }
  assert.equal(await lock.isLocked(), false)
})

onEveryStore('which dead tasks are meant is said', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const [claim] = await queue.claim()
  await claim.bury('x')
  for (const verb of ['kick', 'removeDead']) {
    const needs = new RegExp(`${verb} needs ids, receipts, a count, a reason, a prefix or olderThanMs`)
    for (const none of [undefined, {}, { ids: undefined }, { reason: '', prefix: '' }, { olderThanMs: null }]) {
      await refuses(() => queue[verb](none))
      await assert.rejects(queue[verb](none), needs)
    }
    const takes = new RegExp(`${verb} takes one of ids, receipts and a count`)
    for (const several of [{ ids: ['a'], count: 1 }, { ids: [], receipts: [] }, { receipts: [1n], count: 1 }]) {
      await assert.rejects(queue[verb](several), takes)
    }
    for (const bad of [
      0, { count: 0 }, { ids: 'a' }, { receipts: 5n }, { receipts: ['1'] }, { ids: ['a'], reason: 5 }, { prefix: {} },
      { olderThanMs: -1 }, { ids: ['a'], older: 5 }, { ids: ['a'], olderThen: 5 }
    ]) await refuses(() => queue[verb](bad))
    assert.deepEqual([await queue[verb]([]), await queue[verb]({ receipts: [] })], [0, 0])
  }
  assert.equal((await queue.stats()).dead, 1)
})

onEveryStore('names, ids, texts', async ({ client }) => {
  const queue = client.queue('q')
  for (const bad of NO_NAME) {
    for (const call of ['acquire', 'tryAcquire', 'isLocked', 'holder', 'breakLease']) {
      await refuses(() => client.lock(bad)[call]())
    }
    for (const call of ['stats', 'claim', 'pause', 'purge', 'pop']) await refuses(() => client.queue(bad)[call]())
    await refuses(() => client.queues(['a', bad]).claim())
    if (bad !== undefined && bad !== null) await refuses(() => queue.enqueue({ id: bad }))
    await refuses(() => queue.get(bad))
    await refuses(() => queue.remove(bad))
    await refuses(() => queue.kick([bad]))
    if (bad !== undefined && bad !== null && bad !== '') {
      await refuses(() => client.lock('a').acquire({ label: `${String(bad)}\ud800` }))
    }
  }
  await refuses(() => client.queues([]).claim())
  await refuses(() => queue.list('none'))
  await refuses(() => queue.enqueue({ headers: { a: 5 } }))
  await refuses(() => queue.enqueue({ headers: { '\ud800': 'x' } }))
  assert.deepEqual((await client.locks()).names, [])
})

onEveryStore('names that are allowed do not share a key', async ({ client }) => {
  const names = ['a', '{a}', 'a:meta', 'stanchion:meta:{a}', 'ü', '\ufffd', ' a', 'A', '😀']
  const leases = await Promise.all(names.map(name => client.lock(name).tryAcquire()))
  assert.ok(leases.every(lease => lease?.valid))
  for (const bad of ['{}', 'a}{b', '{', '}', '{a}{b}']) {
    await refuses(() => client.lock(bad).tryAcquire())
    await refuses(() => client.queue(bad).stats())
  }
  await Promise.all(leases.map(lease => lease.release()))
})

onEveryStore('payloads', async ({ client }) => {
  const queue = client.queue('q')
  const circular = {}
  circular.self = circular
  const throwing = { toJSON() { throw new Error('of toJSON') } }
  for (const payload of [circular, throwing, () => {}, Symbol('x'), 5n, NaN, [Infinity], { a: { b: -Infinity } }]) {
    await refuses(() => queue.enqueue({ payload }))
  }
  await refuses(() => queue.enqueue({ payload: Buffer.alloc(16 * 1024 * 1024 + 1) }))
  await refuses(() => queue.enqueueMany([{ id: 'good' }, { payload: 5n }]))
  for (const bad of [undefined, null, 5, 'a']) {
    await refuses(() => queue.enqueue(bad))
    await refuses(() => queue.enqueueMany([bad]))
    if (typeof bad !== 'string') await refuses(() => queue.enqueueMany(bad))
  }
  for (const bad of ['drop', 5, null, {}, { debounce: 5 }, { throttle: {} }, { debounce: null }]) {
    if (bad !== null) await refuses(() => queue.enqueue({ onDuplicate: bad }))
  }
  assert.equal((await queue.stats()).enqueued, 0)
  const large = Buffer.alloc(16 * 1024 * 1024 - 1_024, 'x')
  await queue.enqueue({ id: 'large', payload: large })
  assert.ok((await queue.pop())[0].payload.equals(large))
})

onEveryStore('options that are none', async ({ client }) => {
  for (const bad of [5, 'x', true, null]) {
    await refuses(() => client.lock('a').acquire(bad))
    await refuses(() => client.queue('q').claim(bad))
  }
  for (const bad of [5, {}, 'x', new EventTarget()]) {
    await refuses(() => client.lock('a').acquire({ signal: bad }))
    await refuses(() => client.queue('q').claim({ signal: bad }))
  }
  assert.equal(await client.lock('a').isLocked(), false)
})

onEveryStore('options that there are not: a misspelt one must not go unnoticed', async ({ client, url }) => {
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  await assert.rejects(lock.acquire({ wait: 5 }), /there is no option wait; there are ttlMs, renew, maxHoldMs, waitMs/)
  await refuses(() => lock.tryAcquire({ ttl: 5_000 }))
  await refuses(() => lock.hold(() => assert.fail(), { TTLMs: 5_000 }))
  await refuses(() => client.lock('a', { ttl: 5_000 }).acquire())
  await refuses(() => connect(url, { prefix: 'x' }))
  await refuses(() => queue.claim({ wait: 5 }))
  await refuses(() => client.queues(['q']).claim({ count: 5 }))
  await refuses(() => queue.configure({ maxLength: 5 }))
  await refuses(() => queue.consume({ max: 5 }).next())
  await refuses(() => queue.worker(() => {}, { workers: 5 }).finished)
  await queue.enqueue({})
  const [claim] = await queue.claim()
  await refuses(() => claim.nack({ delay: 5 }))
  assert.throws(() => claim.nacked({ delay: 5 }), INVALID)
  await claim.ack()
  const lease = await lock.acquire()
  await refuses(() => lease.release({ cooldown: 5 }))
  await lease.release()
})

onEveryStore('forged objects and receipts', async ({ client, url }) => {
  for (const bad of ['', 'x', '{}', '\0', 5, null, undefined, {}, 'a'.repeat(100_000)]) {
    await refuses(() => client.resumeLease(bad))
  }
  const queue = client.queue('q')
  for (const bad of [{}, null, 5, 'x', Object.create(null)]) {
    await refuses(() => queue.settle([bad]))
    await refuses(() => queue.settleAndClaim([bad]))
  }
  await refuses(() => queue.settle())
  // A verdict on another queue's task.
  await client.queue('other').enqueue({ id: 'a' })
  const [claim] = await client.queue('other').claim()
  await refuses(() => queue.settle([claim.acked()]))
  assert.equal((await client.queue('other').stats()).claimed, 1)
  await (await connect(url)).close()
})

onEveryStore('everything twice', async ({ client }) => {
  const lease = await client.lock('a').acquire()
  await lease.release()
  const other = await client.lock('a').acquire()
  for (const call of [() => lease.release(), () => lease.extend(5_000), () => lease.detach()]) {
    await assert.rejects(call(), LeaseLostError)
  }
  assert.ok(other.valid && (await client.lock('a').holder()).fence === other.fence)
  await other.release()
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const [claim] = await queue.claim()
  await claim.ack()
  await claim.ack()
  await assert.rejects(claim.nack(), StaleReceiptError)
  await assert.rejects(claim.extend(5_000), LeaseLostError)
})

test('addresses', async () => {
  for (const bad of ['', 'x', 'http://a', 'redis://', '\0', 'redis://a:99999', 5, true, Symbol('x'), 'memory:\ud800']) {
    await refuses(() => connect(bad))
  }
  const wrong = [{ timeoutMs: NaN }, { timeoutMs: -1 }, { lockPrefix: 5 }, { tlsCert: 'x' }, { foreignShare: 1 }]
  for (const options of wrong) {
    await refuses(() => connect('memory:', options))
  }
  await refuses(() => connect('memory:', 5))
  await refuses(() => memoryClient({ name: '\ud800' }))
  const secret = await connect('redis://user:c4n4ry-pa55w0rd@127.0.0.1:1', { timeoutMs: 200 }).catch(error => error)
  assert.ok(!`${secret.stack} ${JSON.stringify(secret)}`.includes('c4n4ry-pa55w0rd'))
})

test('a panic of the native half is a rejected promise, and the process lives', async () => {
  const require = createRequire(createRequire(import.meta.url).resolve('stanchion'))
  const { call } = require('./bridge.js')
  const { native } = require('./native.js')
  for (let n = 0; n < 3; n++) {
    await assert.rejects(
      call((bridge, number) => native().panicOnPurpose(bridge, number)),
      error => error instanceof InternalError && /on purpose/.test(error.message))
  }
  assert.ok(await (await connect('memory:')).lock('a').tryAcquire())
})

test('what a getter of the options throws is passed on', async () => {
  const client = await connect('memory:')
  const error = new Error('of the getter')
  await assert.rejects(
    client.lock('a').acquire({ get ttlMs() { throw error } }), found => found === error)
  assert.ok(InvalidArgumentError.prototype instanceof StanchionError)
})

test('methods of other objects', async () => {
  const { Client, Lease, Claim, Lock, Queue, Worker } = await import('stanchion')
  const calls = [
    [Lease, 'release'], [Lease, 'extend'], [Claim, 'ack'], [Claim, 'nack'], [Claim, 'putBack'], [Claim, 'throttle'], [Queue, 'getKey'],
    [Queue, 'enqueueFlow'], [Queue, 'getFlow'], [Claim, 'inputs'], [Lock, 'acquire'],
    [Lock, 'hold'], [Queue, 'stats'], [Queue, 'enqueue'], [Client, 'releaseAll'], [Client, 'close'],
    [Worker, 'close']]
  for (const [kind, name] of calls) {
    await assert.rejects(kind.prototype[name].call({}, name === 'hold' ? () => {} : {}), TypeError)
  }
})
