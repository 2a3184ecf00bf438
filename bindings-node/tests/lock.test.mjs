import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ClosedError, LeaseExpiredError, LeaseLostError, LockTimeoutError, StanchionError, StoreUnavailableError, connect
} from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'
import { eventually, mortalRedis, onEveryStore, onSharedStores, redisUrl } from './helpers/stores.mjs'

onEveryStore('a lock has one holder, and fences grow', async ({ client }) => {
  const lock = client.lock('a')
  const lease = await lock.acquire()
  assert.equal(typeof lease.fence, 'bigint')
  assert.equal(lease.name, 'a')
  assert.ok(lease.token.length > 20)
  assert.ok(lease.valid && lease.remainingMs > 20_000 && lease.remainingMs <= 30_000)
  assert.equal(await lock.tryAcquire(), null)
  await assert.rejects(lock.acquire({ waitMs: 10 }), error => {
    assert.ok(error instanceof LockTimeoutError && error instanceof StanchionError && error instanceof Error)
    assert.equal(error.code, 'ERR_STANCHION_LOCK_TIMEOUT')
    assert.equal(error.name, 'LockTimeoutError')
    assert.deepEqual([error.operation, error.resource, error.retryable], ['acquire', 'a', true])
    return true
  })
  await lease.release()
  assert.ok(!lease.valid)
  assert.throws(() => lease.check(), LeaseLostError)
  const next = await lock.tryAcquire()
  next.check()
  assert.ok(next.fence > lease.fence)
  await next.release()
  assert.equal(await lock.isLocked(), false)
})

onEveryStore('a waiter gets the lock when it is released', async ({ client }) => {
  const lease = await client.lock('a').acquire()
  const waiting = client.lock('a').acquire()
  await eventually(async () => (await client.lock('a').holder()).waiters === 1)
  await lease.release()
  await (await waiting).release()
})

onEveryStore('the holder is shown', async ({ client }) => {
  const lock = client.lock('a', { label: 'nightly' })
  assert.equal(await lock.holder(), null)
  const lease = await lock.acquire({ ttlMs: 20_000 })
  const holder = await lock.holder()
  assert.deepEqual(
    [holder.heldAs, holder.label, holder.pid, holder.fence, holder.waiters],
    ['lease', 'nightly', process.pid, lease.fence, 0])
  assert.ok(holder.since instanceof Date && Math.abs(Date.now() - holder.since.getTime()) < 60_000)
  assert.ok(holder.remainingMs > 10_000 && holder.remainingMs <= 20_000)
  assert.deepEqual(await client.locks(), { names: ['a'], next: null })
  await lease.release()
})

onEveryStore('options of the lock and of one acquire', async ({ client }) => {
  const lock = client.lock('a', { ttlMs: 5_000, label: 'x' })
  const lease = await lock.acquire({ waitMs: 100, label: undefined })
  assert.ok(lease.remainingMs <= 5_000)
  assert.equal((await lock.holder()).label, 'x')
  await lease.extend(50_000)
  assert.ok(lease.remainingMs > 40_000)
  await lease.release({ cooldownMs: 30_000 })
  assert.equal((await lock.holder()).heldAs, 'cooldown')
  await assert.rejects(lock.acquire({ failFast: true, waitMs: 1_000 }), LockTimeoutError)
})

onEveryStore('a lease goes from one client to another', async ({ client, url }) => {
  const lease = await client.lock('a').acquire()
  const handle = await lease.detach()
  assert.ok(!lease.valid)
  const other = await connect(url)
  const resumed = await other.resumeLease(handle)
  assert.equal(resumed.fence, lease.fence)
  await assert.rejects(other.resumeLease(handle), StanchionError)
  await resumed.release()
})

onEveryStore('release_all and close release, asyncDispose too', async ({ client, url }) => {
  const own = await connect(url)
  await own.lock('a').acquire()
  await own.lock('b').acquire()
  assert.equal(await own.releaseAll(), 2)
  const lease = await own.lock('a').acquire()
  await lease[Symbol.asyncDispose]()
  assert.equal(await client.lock('a').isLocked(), false)
  await lease[Symbol.asyncDispose]()
  await own.lock('a').acquire()
  await own[Symbol.asyncDispose]()
  assert.equal(await client.lock('a').isLocked(), false)
})

onEveryStore('a broken lease is lost: signal, release, and the next holder is untouched', async ({ client }) => {
  const lease = await client.lock('a').acquire({ ttlMs: 3_000, renew: true })
  const { signal } = lease
  assert.equal(signal, lease.signal)
  assert.ok(!signal.aborted)
  assert.equal(await client.lock('a').breakLease(), true)
  const next = await client.lock('a').acquire()
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
  assert.ok(signal.reason instanceof LeaseLostError)
  assert.ok(!lease.valid)
  await assert.rejects(lease.extend(1_000), LeaseLostError)
  await assert.rejects(lease.release(), LeaseLostError)
  assert.ok(next.valid)
  await next.release()
  assert.equal(await client.lock('a').breakLease(), false)
})

onEveryStore('a release does not abort the signal', async ({ client }) => {
  const lease = await client.lock('a').acquire()
  const { signal } = lease
  await lease.release()
  await client.lock('a').isLocked()
  assert.ok(!signal.aborted)
})

test('a lease that runs out tells so, by the clock of the test', async () => {
  const clock = new Clock()
  const client = await memoryClient({ clock })
  const lease = await client.lock('a').acquire({ ttlMs: 30_000 })
  const { signal } = lease
  clock.advance(29_000)
  assert.ok(lease.valid)
  clock.advance(2_000)
  assert.ok(!lease.valid)
  assert.throws(() => lease.check(), { code: 'ERR_STANCHION_LEASE_EXPIRED', operation: 'check', resource: 'a' })
  await eventually(() => signal.aborted)
  assert.ok(signal.reason instanceof LeaseExpiredError && signal.reason instanceof LeaseLostError)
  // One that is asked for only after the loss.
  const late = await client.lock('b').acquire({ ttlMs: 1_000 })
  clock.advance(2_000)
  assert.ok(late.signal.aborted && late.signal.reason instanceof LeaseExpiredError)
  await assert.rejects(lease.release(), LeaseExpiredError)
})

test('waits go by the clock of the test, from when they began', async () => {
  const clock = new Clock()
  const client = await memoryClient({ clock })
  await client.lock('a').acquire()
  for (let round = 0; round < 200; round++) {
    const waiting = assert.rejects(client.lock('a').acquire({ waitMs: 100 }), LockTimeoutError)
    clock.advance(101)
    await waiting
    assert.equal((await client.lock('a').holder()).waiters, 0)
  }
  const claiming = client.queue('q').claim({ waitMs: 60_000 })
  clock.advance(59_000)
  await client.queue('q').enqueue({ id: 'task', delayMs: 500 })
  clock.advance(500)
  assert.deepEqual((await claiming).map(claim => claim.id), ['task'])
})

onEveryStore('hold runs the body and releases', async ({ client }) => {
  const lock = client.lock('a')
  const value = await lock.hold(async lease => {
    assert.ok(lease.valid)
    assert.equal(await lock.isLocked(), true)
    return 7
  })
  assert.equal(value, 7)
  assert.equal(await lock.isLocked(), false)
  await lock.hold(lease => lease.release())
  const error = new Error('of the body')
  await assert.rejects(lock.hold(() => { throw error }), found => found === error && found.cause === undefined)
  assert.equal(await lock.isLocked(), false)
})

onEveryStore('hold never masks the error of the body', async ({ client }) => {
  const lock = client.lock('a')
  await assert.rejects(lock.hold(() => lock.breakLease()), LeaseLostError)
  const root = new Error('root')
  const error = new Error('of the body', { cause: root })
  await assert.rejects(lock.hold(async () => {
    await lock.breakLease()
    throw error
  }), found => found === error)
  assert.equal(error.cause, root)
  assert.ok(root.cause instanceof LeaseLostError)
  await assert.rejects(lock.hold(async () => {
    await lock.breakLease()
    throw 'no error'
  }), found => found === 'no error')
  const frozen = Object.freeze(new Error('frozen'))
  await assert.rejects(lock.hold(async () => {
    await lock.breakLease()
    throw frozen
  }), found => found === frozen)
})

onSharedStores('leases are renewed while the event loop is blocked', async ({ client, url }) => {
  const lease = await client.lock('a').acquire({ ttlMs: 2_000, renew: true })
  const end = Date.now() + 3_500
  while (Date.now() < end);
  assert.ok(lease.valid)
  assert.equal(await (await connect(url)).lock('a').tryAcquire(), null)
  await lease.release()
})

onSharedStores('a loss while the event loop was blocked is told when it turns again', async ({ client }) => {
  const lease = await client.lock('a').acquire({ ttlMs: 200, renew: false })
  const { signal } = lease
  const end = Date.now() + 700
  while (Date.now() < end);
  assert.ok(!lease.valid)
  // On the next turn, unless the library's thread stood still, too.
  await eventually(() => signal.aborted)
  assert.ok(signal.reason instanceof LeaseLostError)
})

test('a store that has died does not hide the loss', async t => {
  const { url, process } = await mortalRedis(t)
  const client = await connect(url, { timeoutMs: 500 })
  await assert.rejects(client.lock('a').hold(async lease => {
    process.kill('SIGKILL')
    await eventually(() => lease.signal.aborted)
  }, { ttlMs: 1_000 }), error => error instanceof LeaseLostError && /cannot tell/.test(error.message))
  await client.close()
})

onEveryStore('many at once, on one client', async ({ client }) => {
  let inside = 0
  let most = 0
  await Promise.all(Array.from({ length: 64 }, (_, n) => client.lock(`lock ${n % 4}`).hold(async () => {
    if (n % 4 === 0) most = Math.max(most, ++inside)
    await null
    if (n % 4 === 0) inside -= 1
  })))
  assert.equal(most, 1)
})

test('a store that does not answer', async () => {
  await assert.rejects(connect('redis://127.0.0.1:1', { timeoutMs: 300 }), StoreUnavailableError)
})

test('STANCHION_URL is the default', async () => {
  process.env.STANCHION_URL = await redisUrl()
  try {
    const client = await connect({ lockPrefix: 'env:' })
    const lease = await client.lock('a').acquire()
    assert.deepEqual((await client.locks()).names, ['a'])
    await lease.release()
    await (await connect()).close()
  } finally {
    delete process.env.STANCHION_URL
  }
  await assert.rejects(connect(), { code: 'ERR_STANCHION_INVALID_ARGUMENT' })
})

onEveryStore('a closed client has given everything back, ends what waits, and makes no calls', async ({ client, url }) => {
  const mine = await connect(url)
  await client.queue('q').enqueue({ id: 'task' })
  const [lease, [claim]] = [await mine.lock('a').acquire(), await mine.queue('q').claim()]
  await client.lock('busy').acquire()
  const waiting = mine.lock('busy').acquire({ waitMs: 60_000 })
  const worker = mine.queue('none').worker(() => {})
  const ended = Promise.allSettled([waiting, worker.finished])
  await eventually(async () => (await client.lock('busy').holder()).waiters === 1)
  await mine.close()
  assert.deepEqual((await ended).map(one => one.reason?.code), Array(2).fill('ERR_STANCHION_CLOSED'))
  assert.equal((await client.lock('busy').holder()).waiters, 0)
  assert.equal(await client.lock('a').isLocked(), false)
  assert.deepEqual([lease.valid, claim.valid], [false, false])
  assert.equal((await client.queue('q').get('task')).attempts, 0)
  for (const call of [mine.lock('a').acquire(), mine.queue('q').stats(), claim.ack()]) {
    await assert.rejects(call, error => error instanceof ClosedError && /the client was closed; open another/.test(error.message))
  }
  await mine.close()
})
