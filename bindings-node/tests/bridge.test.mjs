/** The bridge between the halves: many calls on one signal, no thread to be had, order, re-entrancy. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { connect } from 'stanchion'
import { eventually, onEveryStore, redisUrl } from './helpers/stores.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))

function script(code, ...flags) {
  return new Promise(resolve => {
    execFile(
      process.execPath, [...flags, '--input-type=module', '-e', code], { cwd: HERE, timeout: 20_000 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? error.signal, stdout, stderr }))
  })
}

test('no thread to be had: calls are rejected, the process may end, and later ones go well', async () => {
  const { code, stdout, stderr } = await script(`
    import { createRequire } from 'node:module'
    import { connect } from 'stanchion'
    const { native } = createRequire(createRequire(import.meta.url).resolve('stanchion'))('./native.js')
    const { flush } = native()
    native().flush = () => { throw Object.assign(new Error('no thread'), { code: 'GenericFailure' }) }
    // More than are started at once.
    const found = await Promise.all(Array.from({ length: 40 }, () => connect('memory:a').catch(error => error.code)))
    console.log(new Set(found))
    native().flush = flush
    const client = await connect('memory:a')
    const gone = client.queue('q')
    native().flush = () => { throw Object.assign(new Error('no thread'), { code: 'GenericFailure' }) }
    const lost = client.lock('a').acquire().catch(error => console.log(error.code))
    await lost
    native().flush = flush
    await gone.enqueue({})
    console.log(await client.lock('a').isLocked())
    native().flush = () => { throw new Error('no thread') }
    gone.claim({ waitMs: 60_000 }).catch(error => console.log(error.message))`)
  assert.deepEqual([code, stdout, stderr], [0, [
    "Set(1) { 'ERR_STANCHION_INTERNAL' }", 'ERR_STANCHION_INTERNAL', 'false', 'no thread', ''].join('\n'), ''])
})

for (const [who, prelude, reader] of [
  ['the event loop', 'delete process.env.STANCHION_HOST_LOOP', ''],
  ['a thread', "process.env.STANCHION_HOST_LOOP = '0'", 'stanchion-wake'],
]) {
  test(`${who} works on the calls and reads the wake-ups`, async () => {
    const { code, stdout, stderr } = await script(`
      import { readFileSync, readdirSync } from 'node:fs'
      import { connect } from 'stanchion'
      const eventually = async holds => { while (!await holds()) await new Promise(resolve => setTimeout(resolve, 5)) }
      ${prelude}
      const client = await connect('${await redisUrl()}')
      const lock = client.lock('worked on by ${who}')
      const first = await lock.acquire()
      const begin = performance.now()
      const second = lock.acquire({ waitMs: 20_000 })
      const gone = new AbortController()
      const third = lock.acquire({ waitMs: 20_000, signal: gone.signal }).catch(error => error.name)
      await eventually(async () => (await lock.waiters()).length === 2)
      const threads = readdirSync('/proc/self/task').map(id => readFileSync('/proc/self/task/' + id + '/comm', 'utf8').trim())
      console.log(threads.find(name => name === 'stanchion-wake') ?? '')
      gone.abort()
      console.log(await third)
      await eventually(async () => (await lock.waiters()).length === 1)
      await first.release()
      const { fence } = await second
      console.log(fence > first.fence)
      const big = client.queue('worked on by ${who}')
      const payload = 'x'.repeat(900_000)
      await Promise.all(Array.from({ length: 20 }, (_, n) => big.enqueue({ id: String(n), payload })))
      const claim = await big.claim()
      console.log(claim[0].payload.length > payload.length)
      await claim[0].ack()
      await (await second).release()
      await client.close()`)
    assert.deepEqual([code, stdout, stderr], [0, [reader, 'AbortError', 'true', 'true', ''].join('\n'), ''])
  })
}

test('a result that cannot be converted rejects its call, and no other waits for ever', async () => {
  const { code, stdout, stderr } = await script(`
    import { connect } from 'stanchion'
    const queue = (await connect('memory:')).queue('q')
    const calls = [queue.enqueue({ id: 'a' }), queue.stats(), queue.enqueue({ id: 'b' }), queue.stats()]
    const { Date } = globalThis
    globalThis.Date = class { constructor() { throw new Error('no dates') } }
    const found = await Promise.allSettled(calls)
    globalThis.Date = Date
    console.log(found.map(one => one.reason?.message ?? one.status))`)
  assert.deepEqual([code, stdout, stderr], [0, "[ 'no dates', 'fulfilled', 'no dates', 'fulfilled' ]\n", ''])
})

test('a lease that was looked over while it was being released takes no other one along', async () => {
  const { code, stdout, stderr } = await script(`
    import { setTimeout as sleep } from 'node:timers/promises'
    import { connect } from 'stanchion'
    const client = await connect('memory:')
    const acquired = names => Promise.all(names.map(name => client.lock(name).acquire()))
    const names = (kind, count) => Array.from({ length: count }, (_, n) => kind + n)
    let old = await acquired(names('old', 999))
    // Its arrival is when those that were lost are looked for; the others are on their way out then.
    await Promise.all([client.lock('last').acquire(), ...old.slice(0, 20).map(lease => lease.release())])
    old = old.slice(20)
    const fresh = await acquired(names('fresh', 20))
    for (let n = 0; n < 20; n++) {
      globalThis.gc()
      await sleep(1)
    }
    console.log(fresh.filter(lease => lease.valid).length, old.filter(lease => lease.valid).length)`, '--expose-gc')
  assert.deepEqual([code, stdout, stderr], [0, '20 979\n', ''])
})

test('at the end of the process a lease says that it is over', async () => {
  const { code, stdout, stderr } = await script(`
    import { connect } from 'stanchion'
    const lease = await (await connect('memory:')).lock('a').acquire()
    process.on('exit', () => {
      console.log(lease.valid, lease.remainingMs, lease.name)
      try { lease.check() } catch (error) { console.log(error.code) }
    })`)
  assert.deepEqual([code, stdout, stderr], [0, 'false 0 a\nERR_STANCHION_LEASE_LOST\n', ''])
})

test('many workers and loops on one signal give no warning', async () => {
  const { code, stdout, stderr } = await script(`
    import { getEventListeners } from 'node:events'
    import { connect } from 'stanchion'
    const client = await connect('memory:')
    const controller = new AbortController()
    const { signal } = controller
    const workers = Array.from({ length: 30 }, () => client.queue('q').worker(() => {}, { signal }))
    const loops = Array.from({ length: 30 }, async () => {
      for await (const claim of client.queue('p').consume({ signal })) await claim.ack()
    })
    await client.queue('p').enqueueMany(Array.from({ length: 60 }, () => ({})))
    while ((await client.queue('p').stats()).acked < 60);
    console.log(getEventListeners(signal, 'abort').length)
    controller.abort(new Error('enough'))
    console.log(new Set((await Promise.allSettled(loops)).map(({ reason }) => reason.message)))
    await Promise.all(workers.map(worker => worker.finished))
    console.log(getEventListeners(signal, 'abort').length)`)
  assert.deepEqual([code, stdout, stderr], [0, "1\nSet(1) { 'enough' }\n0\n", ''])
})

test('calls of one turn are begun in their order', async () => {
  const queue = (await connect('memory:')).queue('q')
  const calls = Array.from({ length: 200 }, (_, n) => queue.enqueue({ id: `t${n}` }))
  await Promise.all(calls)
  assert.deepEqual((await queue.pop(200)).map(({ id }) => id), calls.map((_, n) => `t${n}`))
})

onEveryStore('calls that are made, and given up, while others are settled', async ({ client }) => {
  const controller = new AbortController()
  const queue = client.queue('q')
  const waiting = Array.from({ length: 40 }, (_, n) =>
    client.queue(`q${n}`).claim({ waitMs: 20_000, signal: controller.signal })
      .catch(async error => { await queue.enqueue({}); return error.message }))
  queue.enqueue({ id: 'first' }).then(() => controller.abort(new Error('enough')))
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['enough']))
  assert.equal((await queue.stats()).ready, 41)
})

test('what many calls need is given back', async () => {
  const client = await connect('memory:')
  const before = process.getActiveResourcesInfo().length
  const controller = new AbortController()
  const { signal } = controller
  const held = await client.lock('busy').acquire()
  const waiting = Array.from({ length: 2_000 }, () => client.lock('busy').acquire({ signal }).catch(() => 'given up'))
  await eventually(async () => (await client.lock('busy').holder()).waiters === 2_000)
  controller.abort()
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['given up']))
  await eventually(async () => (await client.lock('busy').holder()).waiters === 0)
  await held.release()
  assert.ok(process.getActiveResourcesInfo().length <= before + 1)
})

test('a payload far over the cap is refused before it is copied', async () => {
  const { code, stdout, stderr } = await script(`
    import { connect } from 'stanchion'
    const queue = (await connect('memory:')).queue('q')
    const before = process.resourceUsage().maxRSS
    const large = Buffer.alloc(2 ** 30)
    for (const payload of [large, large.buffer, new DataView(large.buffer)]) {
      await queue.enqueue({ payload }).catch(error => console.log(error.code))
    }
    await queue.enqueueMany([{ id: 'a' }, { payload: large }]).catch(error => console.log(error.code))
    console.log((process.resourceUsage().maxRSS - before) / 2 ** 20 < 0.25, (await queue.stats()).enqueued)`)
  const refused = 'ERR_STANCHION_INVALID_ARGUMENT\n'.repeat(4)
  assert.deepEqual([code, stdout, stderr], [0, `${refused}true 0\n`, ''])
})
