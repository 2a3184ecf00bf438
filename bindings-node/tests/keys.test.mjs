/** Keys, rates and limits, as the package has them. What they do is in the scenarios. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidArgumentError } from 'stanchion'
import { memoryClient } from 'stanchion/testing'
import { onEveryStore } from './helpers/stores.mjs'

onEveryStore('limits are shown as they were set', async ({ client }) => {
  const queue = client.queue('q')
  await queue.configure({
    maxRunning: 7, rate: { count: 20, perMs: 2_000, burst: 5 }, keyConcurrency: 3, keyRate: { count: 1, perMs: 500 } })
  const { maxRunning, rate, keyConcurrency, keyRate } = (await queue.stats()).settings
  assert.deepEqual({ maxRunning, rate, keyConcurrency, keyRate }, {
    maxRunning: 7, rate: { count: 20, perMs: 2_000, burst: 5 }, keyConcurrency: 3, keyRate: { count: 1, perMs: 500, burst: 1 } })
  await queue.configure({ maxRunning: null, rate: null })
  const { settings } = await queue.stats()
  assert.deepEqual([settings.maxRunning, settings.rate, settings.keyConcurrency], [null, null, 3])
  await queue.limitKey('k', { rate: { count: 100, perMs: 600_000 } })
  assert.deepEqual(
    (await queue.getKey('k')).limits, { concurrency: null, rate: { count: 100, perMs: 600_000, burst: 1 }, weight: 1 })
  for (const nothing of [undefined, null, {}]) {
    await queue.limitKey('k', { weight: 2 })
    await queue.limitKey('k', nothing)
    assert.equal((await queue.getKey('k')).limits, null)
  }
})

onEveryStore('what is held has a state of its own', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(['a', 'b', 'c'].map(id => ({ id, key: 'k' })))
  const { ready, held, gate, opensInMs, nextKeyMs } = await queue.stats()
  assert.deepEqual([ready, held, gate, opensInMs, nextKeyMs], [1, 2, 'open', null, null])
  assert.deepEqual((await queue.list('held')).tasks.map(({ id, state, key }) => [id, state, key]), [['b', 'held', 'k'], ['c', 'held', 'k']])
  const { keys, next } = await queue.listKeys()
  assert.deepEqual(keys, [{ key: 'k', running: 0, inLine: 1, held: 2, opensInMs: null, limits: null }])
  assert.equal(next, null)
})

onEveryStore('a kind and a schedule have a key', async ({ client }) => {
  const queue = client.queue('q')
  const seen = []
  const work = queue.task('work', (_, claim) => { seen.push(claim.key) }, { key: 'of all' })
  await work.enqueue(null)
  await work.enqueue(null, { key: 'of one' })
  await queue.worker({ tasks: [work], untilEmpty: true }).finished
  assert.deepEqual(seen.sort(), ['of all', 'of one'])
  await queue.schedule({ id: 's', when: '@daily', key: 'reports' })
  assert.equal((await queue.getSchedule('s')).key, 'reports')
})

test('a handler that throttles has settled its claim', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  const seen = []
  await queue.enqueue({ id: 'a', key: 'k' })
  const worker = queue.worker(async claim => {
    seen.push(claim.attempt)
    if (seen.length === 1) await claim.throttle(0)
  }, { untilEmpty: true })
  const { completed, failed } = await worker.finished
  assert.deepEqual([seen, completed, failed], [[1, 1], 1, 0], 'it was put back, without an attempt, and done then')
  await client.close()
})

onEveryStore('a throttled claim is left alone by the end of its block', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a', key: 'k' })
  const [claim] = await queue.claim()
  await claim.throttle(600_000)
  await claim[Symbol.asyncDispose]()
  assert.equal((await queue.stats()).retried, 0)
  assert.ok((await queue.getKey('k')).opensInMs > 500_000)
})

test('a rate is an object with a count and a time', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  for (const bad of ['20/s', 20, true, {}, { count: 20 }, { perMs: 1 }, { count: 20, per: 1 }, { count: '20', perMs: 1 }, { count: 1, perMs: '1' }]) {
    for (const call of [() => queue.configure({ rate: bad }), () => queue.configure({ keyRate: bad }), () => queue.limitKey('k', { rate: bad })]) {
      await assert.rejects(call, InvalidArgumentError, JSON.stringify(bad))
    }
  }
  await assert.rejects(queue.limitKey('k', 5), InvalidArgumentError)
  await assert.rejects(queue.limitKey('k', { strange: 5 }), InvalidArgumentError)
  await client.close()
})
