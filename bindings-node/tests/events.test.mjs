/** What happens to the tasks of a queue, as an async iterator. What happens when is in the scenarios. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { connect, ClosedError, UnsupportedError } from 'stanchion'
import { eventually, onEveryStore } from './helpers/stores.mjs'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'
const HERE = dirname(fileURLToPath(import.meta.url))

/** How many questions to the store were answered. */
const questions = client => client.metrics()['stanchion_store_request_seconds_count']

async function all(events) {
  const told = []
  for await (const event of events) told.push(event)
  return told
}

/** A queue that keeps events, and a client besides that watches it. */
function watched(title, run) {
  onEveryStore(title, async ({ client, url, t }) => {
    const queue = client.queue('q')
    await queue.configure({ events: 100 })
    const other = await connect(url)
    t.after(() => other.close())
    await run({ queue, client, url, other, watching: other.queue('q') })
  })
}

/** The next event, which is waited for by now. */
async function next(loop, client) {
  const before = questions(client)
  const event = loop.next()
  await eventually(() => questions(client) > before)
  // So that it can be returned without being waited for.
  return { event }
}

onEveryStore('an event tells what happened', async ({ client }) => {
  const queue = client.queue('q')
  assert.equal((await queue.stats()).settings.events, 0)
  await queue.configure({ events: 100 })
  await queue.configure({ deadMax: 5 })
  assert.equal((await queue.stats()).settings.events, 100)
  const from = Date.now() - 5_000
  const { version } = await queue.enqueue({ id: 'a', maxAttempts: 2 })
  for (const reason of ['first', 'ümlaut']) {
    const [claim] = await queue.claim()
    await claim.nack({ delayMs: 0, reason })
  }
  const told = await all(queue.events({ after: 0, waitMs: 0 }))
  const [{ number }] = told
  assert.equal(typeof number, 'number')
  for (const { at } of told) assert.ok(at instanceof Date && at.getTime() > from && at.getTime() < from + 60_000)
  assert.deepEqual(told.map(({ at, ...event }) => event), [
    ['added', 0, null], ['started', 1, null], ['failed', 1, 'first'], ['started', 2, null], ['dead', 2, 'ümlaut']
  ].map(([what, attempt, reason], place) => ({ number: number + place, what, id: 'a', version, attempt, reason, missed: false })))
  await queue.enqueue({ id: 'b' })
  const [claim] = await queue.claim()
  await claim.putBack()
  assert.deepEqual(
    (await all(queue.events({ after: told[4].number, waitMs: 0 }))).map(({ what }) => what), ['added', 'started', 'put_back'])
})

watched('a loop ends when nothing has happened for the wait', async ({ queue }) => {
  for (const options of [{ waitMs: 0 }, { waitMs: 50 }, { after: 0, waitMs: 50 }]) {
    assert.deepEqual(await all(queue.events(options)), [])
  }
  await queue.enqueueMany(Array.from({ length: 30 }, (_, n) => ({ id: `${n}` })))
  assert.deepEqual((await all(queue.events({ after: 0, waitMs: 50 }))).map(({ id }) => Number(id)), [...Array(30).keys()])
  // Without a number, what was before does not count.
  assert.deepEqual(await all(queue.events({ waitMs: 50 })), [])
})

watched('more than a page comes in its order', async ({ queue }) => {
  await queue.configure({ events: 2_000 })
  for (let page = 0; page < 2; page++) {
    await queue.enqueueMany(Array.from({ length: 600 }, (_, n) => ({ id: `${page * 600 + n}` })))
  }
  const told = await all(queue.events({ after: 0, waitMs: 0 }))
  assert.deepEqual(told.map(({ id }) => Number(id)), [...Array(1_200).keys()])
  assert.ok(told.every(({ missed }) => !missed))
})

watched('the first after a gap says so', async ({ queue }) => {
  await queue.enqueue({ id: 'first' })
  const [{ number }] = await all(queue.events({ after: 0, waitMs: 0 }))
  // A queue that keeps none drops those that it has kept.
  await queue.configure({ events: 0 })
  await queue.configure({ events: 100 })
  await queue.enqueueMany([{ id: 'a' }, { id: 'b' }])
  for (const waitMs of [0, 50]) {
    const told = await all(queue.events({ after: number, waitMs }))
    assert.deepEqual(told.map(({ id, missed }) => [id, missed]), [['a', true], ['b', false]])
  }
})

watched('a loop without a wait goes on, and break leaves nothing', async ({ queue, other, watching }) => {
  await queue.enqueue({ id: 'before' })
  const loop = watching.events()
  for (let n = 0; n < 3; n++) {
    const { event } = await next(loop, other)
    await queue.enqueue({ id: `${n}` })
    assert.equal((await event).value.id, `${n}`)
  }
  let count = 0
  for await (const { id } of watching.events({ after: 0 })) {
    count += 1
    if (id === '1') break
  }
  const before = questions(other)
  assert.equal(count, 3)
  await loop.return()
  assert.deepEqual(await loop.next(), { done: true, value: undefined })
  assert.equal(questions(other), before)
})

watched('the first question is asked when the loop begins', async ({ queue, client }) => {
  const before = questions(client)
  const loop = queue.events({ waitMs: 0 })
  await queue.enqueue({ id: 'a' })
  assert.equal(questions(client), before + 1)
  assert.deepEqual(await all(loop), [])
  assert.equal(questions(client), before + 2)
})

watched('a loop that is closed while it waits ends', async ({ other, watching }) => {
  for (const close of [loop => loop.return(), loop => loop[Symbol.asyncDispose]?.() ?? loop.return()]) {
    const loop = watching.events()
    const { event } = await next(loop, other)
    await close(loop)
    assert.deepEqual(await event, { done: true, value: undefined })
    assert.deepEqual(await loop.next(), { done: true, value: undefined })
  }
  const loop = watching.events()
  const { event } = await next(loop, other)
  await assert.rejects(loop.throw(new Error('enough')), { message: 'enough' })
  assert.deepEqual(await event, { done: true, value: undefined })
})

watched('a client that is closed ends the loop', async ({ url, watching }) => {
  for (const options of [undefined, { after: 0 }, { waitMs: 60_000 }]) {
    const client = await connect(url)
    const { event } = await next(client.queue('q').events(options), client)
    await Promise.all([client.close(), assert.rejects(event, ClosedError)])
    await assert.rejects(client.queue('q').events(options).next(), ClosedError)
  }
  assert.deepEqual(await all(watching.events({ waitMs: 0 })), [])
})

watched('a loop ends with its signal, which is left as it was', async ({ queue, other, watching }) => {
  const reason = new Error('enough')
  const waits = new AbortController()
  const loop = watching.events({ signal: waits.signal })
  const { event } = await next(loop, other)
  assert.equal(getEventListeners(waits.signal, 'abort').length, 1)
  waits.abort(reason)
  await assert.rejects(event, error => error === reason)
  assert.equal(getEventListeners(waits.signal, 'abort').length, 0)
  assert.deepEqual(await loop.next(), { done: true, value: undefined })
  // Between two events, too.
  await queue.enqueueMany([{ id: 'a' }, { id: 'b' }])
  const within = new AbortController()
  const seen = []
  await assert.rejects(async () => {
    for await (const { id } of watching.events({ after: 0, signal: within.signal })) {
      seen.push(id)
      assert.equal(getEventListeners(within.signal, 'abort').length, 0)
      within.abort(reason)
    }
  }, error => error === reason)
  assert.deepEqual(seen, ['a'])
  const before = questions(other)
  await assert.rejects(watching.events({ signal: AbortSignal.abort(reason) }).next(), error => error === reason)
  assert.equal(questions(other), before)
  await assert.rejects(all(watching.events({ signal: AbortSignal.timeout(50) })), { name: 'TimeoutError' })
})

watched('turned off while somebody watches', async ({ queue, other, watching }) => {
  const { event } = await next(watching.events(), other)
  const ended = assert.rejects(event, UnsupportedError)
  await queue.configure({ events: 0 })
  await ended
})

onEveryStore('a queue that keeps none says so', async ({ client }) => {
  for (const options of [undefined, {}, { after: 0, waitMs: 0 }, { waitMs: 60_000 }]) {
    await assert.rejects(client.queue('q').events(options).next(), {
      name: 'UnsupportedError', code: 'ERR_STANCHION_UNSUPPORTED', operation: 'events', resource: 'q',
      message: /the queue keeps no events/
    })
  }
})

watched('bad arguments are refused before anything is sent', async ({ queue, client }) => {
  const before = questions(client)
  const bad = [
    ...[-1, 0.5, NaN, '1', true, {}, -1n, 2n ** 64n].map(after => ({ after })),
    ...[-1, NaN, Infinity, '5', true, 5n, {}, 366 * 24 * 3_600_000].map(waitMs => ({ waitMs })),
    { signal: 5 }, { wait: 5 }, { from: 0 }, null, 5, 'x', [], () => {}
  ]
  for (const options of bad) {
    await assert.rejects(queue.events(options).next(), { code: INVALID, operation: 'events', resource: 'q' }, inspect(options))
  }
  await assert.rejects(queue.events({ after: '1' }).next(), { message: 'after is a whole number, not "1"' })
  await assert.rejects(
    queue.events({ timeout: 5 }).next(), /there is no option timeout; there are after, .*; say waitMs, in milliseconds$/)
  for (const events of [-1, 0.5, NaN, '1', true, 100_001]) {
    await assert.rejects(queue.configure({ events }), { code: INVALID, operation: 'configure' }, inspect(events))
  }
  assert.equal(questions(client), before)
  assert.equal((await queue.stats()).settings.events, 100)
  // Not given is as by default.
  assert.deepEqual(await all(queue.events({ after: undefined, waitMs: 0, signal: undefined })), [])
})

test('a loop that waits keeps the process alive, and one that is left does not', async () => {
  const { code, stdout, stderr } = await new Promise(resolve => {
    execFile(process.execPath, ['--input-type=module', '-e', `
      import { connect } from 'stanchion'
      const client = await connect('memory:')
      const queue = client.queue('q')
      await queue.configure({ events: 10 })
      // Of which the process would not live.
      const timer = setTimeout(() => queue.enqueue({ id: 'a' }), 200).unref()
      for await (const { what, id } of queue.events({ after: 0 })) {
        console.log(what, id)
        break
      }`], { cwd: HERE, timeout: 20_000 },
    (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? error.signal, stdout, stderr }))
  })
  assert.deepEqual([code, stdout, stderr], [0, 'added a\n', ''])
})
