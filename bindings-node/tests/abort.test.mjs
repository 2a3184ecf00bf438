import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { connect } from 'stanchion'
import { eventually, onEveryStore } from './helpers/stores.mjs'

onEveryStore('an aborted acquire rejects with the reason, and leaves nothing', async ({ client }) => {
  const lease = await client.lock('a').acquire()
  const controller = new AbortController()
  const own = () => {}
  controller.signal.onabort = own
  const reason = new Error('enough')
  const waiting = client.lock('a').acquire({ signal: controller.signal })
  await eventually(async () => (await client.lock('a').holder()).waiters === 1)
  assert.equal(getEventListeners(controller.signal, 'abort').length, 2)
  controller.abort(reason)
  await assert.rejects(waiting, error => error === reason)
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1)
  assert.equal(controller.signal.onabort, own)
  await eventually(async () => (await client.lock('a').holder()).waiters === 0)
  await lease.release()
  assert.equal(await client.lock('a').isLocked(), false)
})

onEveryStore('one that is aborted before it begins does nothing', async ({ client }) => {
  const signal = AbortSignal.abort(new Error('before'))
  await assert.rejects(client.lock('a').acquire({ signal }), { message: 'before' })
  await assert.rejects(client.lock('a').tryAcquire({ signal }), { message: 'before' })
  await assert.rejects(client.lock('a').hold(() => assert.fail(), { signal }), { message: 'before' })
  await client.queue('q').enqueue({ id: 'a' })
  await assert.rejects(client.queue('q').claim({ signal }), { message: 'before' })
  assert.equal(await client.lock('a').isLocked(), false)
  const { ready, claimed } = await client.queue('q').stats()
  assert.deepEqual([ready, claimed], [1, 0])
})

onEveryStore('listeners go with the call; the default reason is an AbortError', async ({ client }) => {
  const controller = new AbortController()
  const { signal } = controller
  for (let n = 0; n < 20; n++) await client.lock('a').hold(() => {}, { signal })
  await assert.rejects(client.lock('').acquire({ signal }), { code: 'ERR_STANCHION_INVALID_ARGUMENT' })
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  const waiting = client.queue('q').claim({ waitMs: 20_000, signal })
  controller.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
})

onEveryStore('a timeout of the platform', async ({ client }) => {
  const lease = await client.lock('a').acquire()
  await assert.rejects(client.lock('a').acquire({ signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' })
  await lease.release()
})

onEveryStore('aborted at any moment, an acquire leaves no lock and no waiter', async ({ client }) => {
  const lock = client.lock('a')
  for (let round = 0; round < 60; round++) {
    const controller = new AbortController()
    const got = lock.acquire({ signal: controller.signal }).then(lease => lease.release(), error => error)
    // Later and later: before it is sent, on its way, answered but not collected, done.
    if (round % 3 === 1) await new Promise(resolve => setImmediate(resolve))
    if (round % 3 === 2) for (let turn = 0; turn < round; turn++) await new Promise(resolve => setImmediate(resolve))
    controller.abort(new Error('enough'))
    const error = await got
    assert.ok(error === undefined || error.message === 'enough', error)
  }
  await eventually(async () => await lock.holder() === null)
})

onEveryStore('aborted at any moment, a claim leaves its task in the queue, uncounted', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  let acked = 0
  for (let round = 0; round < 60; round++) {
    const controller = new AbortController()
    const got = queue.claim({ waitMs: 20_000, signal: controller.signal }).then(async ([claim]) => {
      acked += 1
      assert.equal(claim.attempt, 1)
      await claim.putBack()
    }, error => error)
    if (round % 3 === 1) await new Promise(resolve => setImmediate(resolve))
    if (round % 3 === 2) for (let turn = 0; turn < round; turn++) await new Promise(resolve => setImmediate(resolve))
    controller.abort(new Error('enough'))
    const error = await got
    assert.ok(error === undefined || error.message === 'enough', error)
  }
  // Behind those that have given up: they are asked to go, and may still get the task and give it back.
  const [claim] = await queue.claim({ waitMs: 20_000 })
  assert.equal(claim.attempt, 1)
  await claim.ack()
})

test('many calls on one signal give no warning', async () => {
  const client = await connect('memory:')
  const warnings = []
  const hear = warning => warnings.push(warning.message)
  process.on('warning', hear)
  const controller = new AbortController()
  const { signal } = controller
  const waiting = Array.from({ length: 50 }, () => client.queue('q').claim({ waitMs: 20_000, signal }))
  controller.abort()
  assert.ok((await Promise.allSettled(waiting)).every(({ status }) => status === 'rejected'))
  await new Promise(resolve => setImmediate(resolve))
  process.off('warning', hear)
  assert.deepEqual(warnings, [])
})
