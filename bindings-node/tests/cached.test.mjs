// Cached values: what the package adds. What they do is in the scenarios.

import assert from 'node:assert/strict'
import { InvalidArgumentError, LockTimeoutError } from 'stanchion'
import { onEveryStore } from './helpers/stores.mjs'

const never = () => assert.fail('computed again')

onEveryStore('a value is computed once, and everybody gets it as JSON gives it back', async ({ client }) => {
  const value = { at: new Date(0), list: [1, null, 'é☃\0'], gone: undefined }
  const plain = { at: '1970-01-01T00:00:00.000Z', list: [1, null, 'é☃\0'] }
  assert.deepEqual(await client.cached('a', 60_000, () => value), plain)
  assert.deepEqual(await client.cached('a', 60_000, never), plain)
  await client.invalidate('a')
  assert.equal(await client.cached('a', 60_000, async () => null), null)
  assert.equal(await client.cached('a', 60_000, never), null)
})

onEveryStore('many calls compute once', async ({ client }) => {
  let computed = 0
  const compute = async () => {
    computed += 1
    await new Promise(resolve => setTimeout(resolve, 20))
    return 'value'
  }
  const values = await Promise.all(Array.from({ length: 100 }, () => client.cached('a', 60_000, compute)))
  assert.deepEqual(new Set(values), new Set(['value']))
  assert.equal(computed, 1)
})

onEveryStore('what compute throws goes on, and the next one computes', async ({ client }) => {
  const own = new Error('own')
  for (const fails of [() => { throw own }, () => Promise.reject(own)]) {
    await assert.rejects(client.cached('a', 60_000, fails), error => error === own)
  }
  assert.equal(await client.cached('a', 60_000, () => 7), 7)
})

onEveryStore('what is no JSON is refused, and the next one computes', async ({ client }) => {
  const loop = {}
  loop.loop = loop
  for (const value of [undefined, () => 1, 1n, NaN, [Infinity], loop]) {
    const refused = error => error instanceof InvalidArgumentError && error.resource === 'a' && /JSON/.test(error.message)
    await assert.rejects(client.cached('a', 60_000, () => value), refused)
  }
  assert.equal(await client.cached('a', 60_000, () => 7), 7)
})

onEveryStore('what JSON would keep nothing of is refused, also for its caller, and the next one computes', async ({ client }) => {
  const lost = [
    new Map([[1, 2]]), new Set([1]), new Error('e'), /x/, (function* () {})(), { deep: Promise.resolve(1) },
    [new URLSearchParams('a=1')]]
  for (const value of lost) {
    await assert.rejects(client.cached('a', 60_000, () => value), {
      name: 'InvalidArgumentError', operation: 'cached', resource: 'a',
      message: /^cached "a": the computed value is a JSON value, not /
    })
    assert.equal(await client.cached('a', 60_000, () => 7), 7)
    await client.invalidate('a')
  }
  await assert.rejects(client.cached('a', 60_000, function* () { yield 1 }), /not a generator/)
  assert.equal(await client.cached('a', 60_000, () => 7), 7)
})

onEveryStore('bad arguments are refused before anything is computed', async ({ client }) => {
  const wrong = [
    ['a', '60', never], ['a', 0, never], ['a', -1, never], ['a', NaN, never], ['', 60, never], ['a', 60, null],
    ['a', 60, never, { staleMs: '1' }], ['a', 60, never, { beta: -1 }], ['a', 60, never, { beta: NaN }],
    ['a', 60, never, { beta: '1' }], ['a', 60, never, { waitMs: -1 }], ['a', 60, never, { leaseMs: 10 }],
    ['a', 60, never, { leaseMs: 60_000, maxRunMs: 50_000 }], ['a', 60, never, { label: 7 }], ['a', 60, never, { stale: 1 }],
    ['a', 60, never, 7], ['a', 60, never, { signal: {} }]]
  for (const call of wrong) await assert.rejects(client.cached(...call), InvalidArgumentError, JSON.stringify(call))
  await assert.rejects(client.invalidate(''), InvalidArgumentError)
})

onEveryStore('a signal ends the wait, and leaves no trace', async ({ client }) => {
  let resolve
  const computed = new Promise(yes => { resolve = yes })
  let first
  await new Promise(begun => {
    first = client.cached('a', 60_000, () => (begun(), computed))
  })
  const controller = new AbortController()
  const waiting = client.cached('a', 60_000, never, { signal: controller.signal })
  const short = client.cached('a', 60_000, never, { waitMs: 20 })
  await assert.rejects(short, LockTimeoutError)
  controller.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
  resolve('value')
  assert.equal(await first, 'value')
  assert.equal(await client.cached('a', 60_000, never), 'value')
})
