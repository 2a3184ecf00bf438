/** An error shows the frames of who called, and says what to write instead of what other packages call it. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from 'stanchion'
import { memoryClient } from 'stanchion/testing'

const MANY = 20_000

test('the stack of an error has the frames of those who await it', async () => {
  const client = await connect('memory:')
  const [lock, queue] = [client.lock('busy'), client.queue('q')]
  await lock.acquire()
  await queue.enqueueMany([{ id: 'a' }])
  const [claim] = await queue.claim()
  await queue.remove('a')
  const lease = await client.lock('broken').acquire()
  await client.lock('broken').breakLease()
  const calls = {
    acquire: () => lock.acquire({ waitMs: 0 }),
    hold: () => lock.hold(() => assert.fail('it is busy'), { waitMs: 0 }),
    all: () => Promise.all([lock.acquire({ waitMs: 0 })]),
    ack: () => claim.ack(),
    release: () => lease.release(),
    'an argument': () => lock.acquire({ waitMs: '5' }),
    'an unknown option': () => client.semaphore('a', 5, { ttlMs: 5_000 }).acquire({ wait: 5 }),
    'a policy': () => queue.enqueue({ onDuplicate: { throttle: { window: 5 } } }),
    'many tasks': () => queue.enqueueMany([{ payload: { deep: [new Map()] } }]),
    verdicts: () => Promise.all([async () => claim.nacked({ delay: 5 })].map(call => call())),
    'an iterator': () => queue.consume({ max: 5 }).next(),
    'events that are not kept': () => queue.events().next(),
    'a worker': () => queue.worker(5).finished,
    cached: () => client.cached('a', 1_000, () => 10n),
  }
  for (const [name, call] of Object.entries(calls)) {
    const theUsersOwn = async () => { await call() }
    await assert.rejects(theUsersOwn(), error => {
      assert.match(error.stack, /at (async )?theUsersOwn .*stacks\.test\.mjs/, `${name}: ${error.stack}`)
      return true
    })
  }
})

test('names of other packages are answered', async () => {
  const client = await memoryClient()
  const [lock, queue] = [client.lock('a'), client.queue('q')]
  const calls = new Map([
    [() => lock.acquire({ timeout: 5 }), /there is no option timeout; there are .*; say waitMs, in milliseconds$/],
    [() => lock.acquire({ ttl: 5 }), /; say ttlMs, in milliseconds$/],
    [() => lock.acquire(5_000), /^options are an object: \{ ttlMs: 5000 \} for the lease, or \{ waitMs: 5000 \} for the wait/],
    [() => lock.acquire(['a'], 5_000), /^options are an object, not an array$/],
    [() => client.lock(['a', 'b']).acquire(), /^the name of a lock is a text; several have client\.multiLock\(names\)$/],
    [() => queue.enqueue({ to: 'x' }), /there is no property of a task to; .*; if it is for the worker, say \{ payload: \.\.\. \}$/],
    [() => queue.enqueue({ data: 1 }), /; say payload$/],
    [() => queue.enqueue({ jobId: 'a' }), /; say id$/],
    [() => queue.enqueue({ id: 'a', attempts: 3 }), /; say maxAttempts$/],
    [() => queue.claim({ lease: 3 }), /; say leaseMs, in milliseconds$/],
  ])
  for (const [call, message] of calls) {
    await assert.rejects(call(), { code: 'ERR_STANCHION_INVALID_ARGUMENT', message })
  }
})

test('a crowd of results leaves the event loop its turns', async () => {
  const client = await connect('memory:')
  let done = 0
  let seen
  const calls = Array.from({ length: MANY }, () => client.lock('a').isLocked().then(() => {
    if (done++ === 0) setImmediate(() => { seen = done })
  }))
  await Promise.all(calls)
  assert.ok(seen <= MANY / 10, `${seen} were done`)
})
