// Read-write locks, semaphores, several locks, owners: what differs from a lock. What they do is in the scenarios.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { InvalidArgumentError, LeaseLostError, Lock, LockTimeoutError, RwLock } from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'
import { eventually, onEveryStore } from './helpers/stores.mjs'

const kinds = client => [
  client.rwLock('a').read(), client.rwLock('a').write(), client.semaphore('a', 3), client.multiLock(['b', 'a']),
  client.lock('a').reentrant('me')
]

onEveryStore('each kind holds for a body, and says when it was lost', async ({ client }) => {
  for (const lock of kinds(client)) {
    assert.ok(lock instanceof Lock)
    assert.equal(lock.name, 'a')
    assert.match(inspect(lock), /^Lock \{ name: 'a' \}$/)
    assert.equal(await lock.hold(async lease => {
      assert.ok(lease.valid && lease.name === 'a' && await lock.isLocked())
      return 5
    }), 5)
    assert.equal(await lock.isLocked(), false)
    await assert.rejects(lock.hold(() => lock.breakLease()), LeaseLostError)
    assert.equal(await lock.isLocked(), false)
  }
})

onEveryStore('a writer becomes a reader', async ({ client }) => {
  const index = client.rwLock('a', { ttlMs: 20_000, label: 'w' })
  assert.ok(index instanceof RwLock && index.name === 'a' && index.read() === index.read())
  const writer = await index.write().acquire()
  assert.equal(await index.read().tryAcquire(), null)
  const [alone] = await index.write().holders()
  assert.ok(alone.weight > 1 && alone.fence === writer.fence && alone.label === 'w' && alone.since instanceof Date)
  await writer.downgrade()
  const before = writer.fence
  assert.equal(await writer.upgrade(), true)
  assert.ok(writer.fence > before)
  assert.deepEqual(writer.fences, { a: writer.fence })
  await writer.downgrade()
  const reader = await index.read().acquire({ label: 'r' })
  assert.ok(reader.fence > writer.fence && reader.remainingMs <= 20_000)
  const holders = await index.read().holders()
  assert.deepEqual(holders.map(({ label, weight }) => [label, weight]).sort(), [['r', 1], ['w', 1]])
  await reader.release()
  await writer.release()
  assert.deepEqual(await index.read().holders(), [])
  await assert.rejects(writer.downgrade(), { code: 'ERR_STANCHION_LEASE_LOST', operation: 'downgrade', resource: 'a' })
  await client.lock('a').hold(lease => assert.rejects(lease.downgrade(), InvalidArgumentError))
})

onEveryStore('weights', async ({ client }) => {
  const jobs = client.semaphore('a', 5, { label: 'job' })
  const heavy = await jobs.acquire({ weight: 3 })
  await jobs.hold(async () => {
    assert.equal(await jobs.tryAcquire({ weight: 2 }), null)
    assert.deepEqual((await jobs.holders()).map(({ weight }) => weight).sort(), [1, 3])
    await assert.rejects(jobs.acquire({ weight: 5, waitMs: 10 }), LockTimeoutError)
  })
  await heavy.release()
  await client.semaphore('a', 5, { weight: 5 }).hold(async () => assert.equal((await jobs.holder()).weight, 5))
})

onEveryStore('fences of several', async ({ client }) => {
  const names = ['c', '__proto__', 'a']
  const all = client.multiLock(names)
  names.push('d')
  const lease = await all.acquire()
  const { fences } = lease
  assert.deepEqual(Object.keys(fences).sort(), ['__proto__', 'a', 'c'])
  assert.equal(all.name, '__proto__')
  assert.equal(Object.getOwnPropertyDescriptor(fences, '__proto__').value, lease.fence)
  assert.equal(typeof fences.a, 'bigint')
  assert.equal(await client.lock('d').isLocked(), false)
  assert.equal(await client.lock('c').tryAcquire(), null)
  await lease.release()
  assert.deepEqual(lease.fences, fences)
  await client.lock('a').hold(one => assert.deepEqual(one.fences, { a: one.fence }))
})

onEveryStore('a lease whose detachment or release was refused is released at the end of its scope', async ({ client }) => {
  await client.multiLock(['a', 'b']).hold(lease => assert.rejects(lease.detach(), InvalidArgumentError))
  await client.lock('c').hold(lease => assert.rejects(lease.detach(1), InvalidArgumentError))
  await client.lock('d').hold(lease => assert.rejects(lease.release({ cooldownMs: 1 }), InvalidArgumentError))
  await client.rwLock('e').read().hold(lease => assert.rejects(lease.release({ cooldownMs: 1_000 }), InvalidArgumentError))
  assert.equal(await client.rwLock('e').write().isLocked(), false)
  for (const name of ['a', 'b', 'c', 'd']) assert.equal(await client.lock(name).isLocked(), false)
})

onEveryStore('an owner comes in again', async ({ client }) => {
  const lock = client.lock('a', { ttlMs: 20_000 }).reentrant('request 7')
  await lock.hold(async outer => {
    assert.ok(outer.remainingMs <= 20_000)
    await lock.hold(async inner => {
      assert.equal(inner.fence, outer.fence)
      assert.equal(await client.lock('a').tryAcquire(), null)
    })
    outer.check()
    assert.equal(await lock.reentrant('request 8').tryAcquire(), null)
    const again = await client.lock('a').reentrant('request 7').tryAcquire()
    await again.release()
    outer.check()
  })
  assert.equal(await lock.isLocked(), false)
})

onEveryStore('an aborted wait leaves nothing', async ({ client }) => {
  const index = client.rwLock('a')
  const reader = await index.read().acquire()
  const controller = new AbortController()
  const waiting = index.write().acquire({ signal: controller.signal })
  await eventually(async () => (await index.read().holder()).waiters === 1)
  const reason = new Error('enough')
  controller.abort(reason)
  await assert.rejects(waiting, error => error === reason)
  await eventually(async () => (await index.read().holder()).waiters === 0)
  await reader.release()
  const busy = await client.lock('b').acquire()
  await assert.rejects(client.multiLock(['a', 'b']).acquire({ signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' })
  await eventually(async () => !await client.lock('a').isLocked())
  await busy.release()
})

onEveryStore('bad arguments reject, whatever they are', async ({ client }) => {
  const bad = [
    client.multiLock([]), client.multiLock('ab'), client.multiLock(['a', Symbol('b')]), client.multiLock(undefined),
    client.multiLock(['a', '\ud800']), client.semaphore('a', 0), client.semaphore('a', 1.5), client.semaphore('a'),
    client.semaphore('a', '3'), client.rwLock(5).read(), client.rwLock({}).write(), client.lock({}), client.lock(() => 'a'),
    client.lock(client.lock('a')), client.lock('a').reentrant(null), client.lock('a').reentrant(undefined),
    client.lock('a').reentrant({}), client.lock('a').reentrant(''), client.lock({}).reentrant('me')
  ]
  for (const lock of bad) {
    inspect(lock)
    for (const call of [() => lock.acquire(), () => lock.tryAcquire(), () => lock.hold(() => assert.fail())]) {
      await assert.rejects(call(), InvalidArgumentError, inspect(lock))
    }
  }
  for (const lock of kinds(client).filter((_, at) => at !== 2)) {
    await assert.rejects(lock.acquire({ weight: 1 }), InvalidArgumentError)
  }
  for (const weight of [0, 4, -1, 1.5, NaN, '1', true, 2 ** 32 + 1]) {
    await assert.rejects(client.semaphore('a', 3).acquire({ weight }), InvalidArgumentError)
  }
  assert.deepEqual(await client.semaphore('a', 3).holders(), [])
})

test('time stands still in memory', async () => {
  const clock = new Clock()
  const client = await memoryClient({ clock })
  const locks = kinds(client).filter((_, at) => at !== 1 && at !== 4)
  const leases = await Promise.all(locks.map(lock => lock.acquire({ ttlMs: 30_000 })))
  clock.advance(31_000)
  assert.deepEqual(leases.map(lease => lease.valid), [false, false, false])
  await client.rwLock('a').write().hold(() => {})
})
