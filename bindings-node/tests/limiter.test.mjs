import assert from 'node:assert/strict'
import { eventually, onEveryStore } from './helpers/stores.mjs'

const HOUR = 3_600_000

onEveryStore('so many are allowed, and then it says when', async ({ client }) => {
  for (const kind of ['gcra', 'fixed-window', 'sliding-window']) {
    // Windows are those of the clock: one of a year ends while no test runs, but at New Year.
    const api = client.limiter('api', { n: 1, perMs: (kind === 'fixed-window' ? 365 * 24 : 1) * HOUR, kind })
    assert.equal(api.name, 'api')
    assert.deepEqual(await api.tryTake(), { allowed: true, retryAfterMs: null })
    const refused = await api.take({ waitMs: 100 })
    assert.ok(!refused.allowed && refused.retryAfterMs > 100)
  }
})

onEveryStore('who waits gets its turn', async ({ client }) => {
  const quick = client.limiter('quick', { n: 20, perMs: 1000 })
  const begun = performance.now()
  for (let n = 0; n < 3; n++) assert.ok((await quick.take()).allowed)
  assert.ok(performance.now() - begun >= 99)
})

onEveryStore('an aborted wait rejects with the reason, and gives its turn back', async ({ client }) => {
  const hourly = client.limiter('hourly', { n: 1, perMs: HOUR })
  assert.ok((await hourly.tryTake()).allowed)
  const before = (await hourly.tryTake()).retryAfterMs
  const controller = new AbortController()
  const reason = new Error('enough')
  const waiting = hourly.take({ waitMs: HOUR, signal: controller.signal })
  await eventually(async () => (await hourly.tryTake()).retryAfterMs > HOUR)
  controller.abort(reason)
  await assert.rejects(waiting, error => error === reason)
  await eventually(async () => (await hourly.tryTake()).retryAfterMs <= before)
})

onEveryStore('what can never be allowed is refused', async ({ client }) => {
  await assert.rejects(client.limiter('a', { n: 1, perMs: 1000 }).tryTake({ count: 2 }), /1 to 1/)
  await assert.rejects(client.limiter('a', { n: 0, perMs: 1000 }).take(), /between 1/)
  await assert.rejects(client.limiter('a', { n: 1, perMs: 1000, kind: 'leaky' }).take(), /kind/)
  assert.throws(() => client.limiter('a', { n: 1, per: 1000 }), /perMs/)
})
