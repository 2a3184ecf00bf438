import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { LeaseLostError, connect } from 'stanchion'
import { eventually, mortalRedis, onEveryStore, told } from './helpers/stores.mjs'

const tasks = count => Array.from({ length: count }, (_, n) => ({ id: `t${n}` }))

onEveryStore('a worker empties a queue, so many at a time, and ends', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(20))
  const completed = []
  let inside = 0
  let most = 0
  let together
  const all = new Promise(resolve => { together = resolve })
  const worker = queue.worker(async task => {
    most = Math.max(most, ++inside)
    if (inside === 3) together()
    await all
    inside -= 1
    return task.attempt
  }, { concurrency: 3, untilEmpty: true })
  worker.on('completed', (task, result) => completed.push([task.id, result]))
  assert.deepEqual(await worker.finished, { completed: 20, failed: 0, dead: 0, lost: 0 })
  assert.equal(most, 3)
  assert.deepEqual(completed.sort(), tasks(20).map(({ id }) => [id, 1]).sort())
})

onEveryStore('failures are tried again, and dead in the end', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a', maxAttempts: 2 })
  const worker = queue.worker(task => { throw new TypeError(`no paper at ${task.attempt}`) })
  const heard = []
  worker.on('failed', (task, error) => heard.push(['failed', task.id, error.message]))
  worker.on('dead', (task, error) => heard.push(['dead', task.id, error.message]))
  await eventually(() => heard.length === 3)
  assert.deepEqual(heard, [
    ['failed', 'a', 'no paper at 1'], ['failed', 'a', 'no paper at 2'], ['dead', 'a', 'no paper at 2']])
  assert.deepEqual(await worker.close(), { completed: 0, failed: 2, dead: 1, lost: 0 })
  const dead = await queue.get('a')
  assert.deepEqual([dead.state, dead.reason], ['dead', 'TypeError: no paper at 2'])
})

/** What a program with such a worker writes to stderr. */
async function stderrOf(listener) {
  const program = `
    import { connect } from 'stanchion'
    const queue = (await connect('memory:')).queue('emails')
    await queue.enqueueMany([{ id: 'welcome', maxAttempts: 1 }, { id: 'again' }, { id: 'nacked', maxAttempts: 1 }])
    const worker = queue.worker(async function handler(task) {
      if (task.id === 'nacked') return await task.bury('meant so')
      if (task.attempt === 2) return
      throw new TypeError('no such address: ' + task.id)
    }, { untilEmpty: true })
    ${listener}
    await worker.finished`
  const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  return stderr
}

test('a failure is on stderr, unless somebody listens', async () => {
  const said = await stderrOf('')
  assert.match(said, /task "welcome" of queue "emails" failed at attempt 1 of 1: that was the last one/)
  assert.match(said, /task "again" of queue "emails" failed at attempt 1 of 20: it is tried again/)
  assert.match(said, /TypeError: no such address: welcome\n\s+at .*handler/)
  assert.doesNotMatch(said, /nacked/)
  assert.equal(await stderrOf("worker.on('failed', () => {})"), '')
})

onEveryStore('close drains: tasks at work are finished, others stay', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(5))
  let finish
  const may = new Promise(resolve => { finish = resolve })
  let begun = 0
  const worker = queue.worker(async () => { begun += 1; await may }, { concurrency: 2 })
  await eventually(() => begun === 2)
  const closing = worker.close()
  let closed = false
  closing.then(() => { closed = true })
  await queue.stats()
  assert.ok(!closed)
  finish()
  assert.deepEqual(await closing, { completed: 2, failed: 0, dead: 0, lost: 0 })
  assert.equal((await queue.stats()).ready, 3)
})

onEveryStore('close gives handlers their grace; then their signals are aborted, and their tasks go back uncounted', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(3))
  let begun = 0
  const worker = queue.worker(async (task, { signal }) => {
    begun += 1
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }, { concurrency: 2, leaseMs: 60_000, graceMs: 200 })
  await eventually(() => begun === 2)
  const closed = Date.now()
  assert.deepEqual(await worker.close(), { completed: 0, failed: 0, dead: 0, lost: 0 })
  assert.ok(Date.now() - closed >= 200)
  const { tasks: ready } = await queue.list('ready')
  assert.deepEqual(ready.map(({ id, attempts }) => [id, attempts]).sort(), [['t0', 0], ['t1', 0], ['t2', 0]])
})

test('a handler that does not listen is stuck, and left behind', async () => {
  const client = await connect('memory:')
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const seen = []
  const worker = queue.worker(() => new Promise(() => {}), { graceMs: 0, leaseMs: 60_000 })
  worker.on('stuck', task => seen.push(task.id))
  await eventually(async () => (await queue.stats()).claimed === 1)
  await worker.close()
  assert.deepEqual(seen, ['a'])
})

onEveryStore('what a handler settles itself is left alone', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(['ack', 'nack', 'bury', 'back'].map(id => ({ id })))
  const heard = []
  let backs = 0
  const worker = queue.worker(async task => {
    if (task.id === 'ack') await task.ack()
    if (task.id === 'nack') await task.nack({ delayMs: 60_000, reason: 'later' })
    if (task.id === 'bury') await task.bury('never')
    if (task.id === 'back' && backs++ === 0) await task.putBack()
  }, { untilEmpty: true })
  worker.on('completed', task => heard.push(['completed', task.id]))
  worker.on('failed', (task, error) => heard.push(['failed', task.id, error.message]))
  worker.on('dead', (task, error) => heard.push(['dead', task.id, error.message]))
  assert.deepEqual(await worker.finished, { completed: 2, failed: 2, dead: 1, lost: 0 })
  assert.deepEqual(heard.sort(), [
    ['completed', 'ack'], ['completed', 'back'], ['dead', 'bury', 'never'], ['failed', 'bury', 'never'],
    ['failed', 'nack', 'later']])
  assert.equal(backs, 2)
})

onEveryStore('a lost task: the signal of the handler, and lost', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  let reason
  const worker = queue.worker(async (task, { signal }) => {
    await queue.remove('a')
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    reason = signal.reason
  }, { leaseMs: 300 })
  const [task] = await told(worker, 'lost')
  assert.equal(task.id, 'a')
  await eventually(() => reason !== undefined)
  assert.ok(reason instanceof LeaseLostError)
  assert.deepEqual(await worker.close(), { completed: 0, failed: 0, dead: 0, lost: 1 })
})

onEveryStore('empty is told when there is nothing left', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(7))
  const worker = queue.worker(() => {}, { concurrency: 3 })
  await told(worker, 'empty')
  const { ready, claimed, acked } = await queue.stats()
  assert.deepEqual([ready, claimed, acked], [0, 0, 7])
  const again = told(worker, 'empty')
  await queue.enqueue({ id: 'more' })
  await again
  await worker.close()
})

onEveryStore('an aborted worker tells its handlers; their tasks go back uncounted', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(3))
  const controller = new AbortController()
  let begun = 0
  const worker = queue.worker(async (task, { signal }) => {
    begun += 1
    if (task.id === 't0') return
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }, { concurrency: 5, signal: controller.signal })
  await eventually(() => begun === 3)
  controller.abort(new Error('enough'))
  const report = await worker.finished
  assert.deepEqual([report.failed, report.dead, report.lost], [0, 0, 0])
  const { tasks: ready } = await queue.list('ready')
  assert.deepEqual(ready.map(({ id, attempts }) => [id, attempts]).sort(), [['t1', 0], ['t2', 0]])
  const none = queue.worker(() => assert.fail('it was aborted before'), { signal: AbortSignal.abort() })
  assert.deepEqual(await none.finished, { completed: 0, failed: 0, dead: 0, lost: 0 })
})

test('what ends a worker is told once', async () => {
  const client = await connect('memory:')
  const told = []
  const worker = client.queue('q').worker(() => {}).on('error', error => told.push(error.code))
  client.close()
  await assert.rejects(worker.finished, { code: 'ERR_STANCHION_CLOSED' })
  await eventually(() => told.length > 0)
  await new Promise(setImmediate)
  assert.deepEqual(told, ['ERR_STANCHION_CLOSED'])
})

test('bad options end a worker with an error', async () => {
  const queue = (await connect('memory:')).queue('q')
  const wrong = [{ concurrency: 0 }, { concurrency: NaN }, { concurrency: '5' }, { leaseMs: -1 }, { signal: 5 }]
  for (const options of wrong) {
    await assert.rejects(queue.worker(() => {}, options).finished, { code: 'ERR_STANCHION_INVALID_ARGUMENT' })
    const [error] = await told(queue.worker(() => {}, options), 'error')
    assert.equal(error.code, 'ERR_STANCHION_INVALID_ARGUMENT')
  }
  await assert.rejects(queue.worker().finished, { code: 'ERR_STANCHION_INVALID_ARGUMENT' })
})

onEveryStore('for await: one by one', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(5))
  const seen = []
  for await (const claim of queue.consume()) {
    seen.push(claim.id)
    assert.ok((await queue.stats()).claimed === 1)
    await claim.ack()
    if (seen.length === 4) break
  }
  assert.equal(seen.length, 4)
  const { ready, claimed } = await queue.stats()
  assert.deepEqual([ready, claimed], [1, 0])
})

onEveryStore('for await: back-pressure, and what nobody took goes back', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(tasks(6))
  const out = []
  const loop = queue.consume({ concurrency: 3 })
  for (let n = 0; n < 3; n++) out.push((await loop.next()).value)
  let fourth
  const waiting = loop.next().then(({ value }) => { fourth = value })
  assert.equal((await queue.stats()).claimed, 3)
  assert.equal(fourth, undefined)
  await out[1].ack()
  await waiting
  assert.ok(fourth.valid)
  // Two more places: the loop claims both, gives out one, and puts back the other.
  await Promise.all([out[0].ack(), out[2].ack()])
  await eventually(async () => (await loop.next()).value.ack().then(() => true))
  await loop.return()
  await fourth.ack()
  const { ready, claimed, acked } = await queue.stats()
  assert.deepEqual([ready, claimed, acked], [1, 0, 5])
})

onEveryStore('for await ends with its signal', async ({ client }) => {
  const queue = client.queue('q')
  const controller = new AbortController()
  await queue.enqueue({ id: 'a' })
  await assert.rejects(async () => {
    for await (const claim of queue.consume({ signal: controller.signal })) {
      await claim.ack()
      setImmediate(() => controller.abort(new Error('enough')))
    }
  }, { message: 'enough' })
  await assert.rejects(queue.consume({ concurrency: 0 }).next(), { code: 'ERR_STANCHION_INVALID_ARGUMENT' })
})

onEveryStore('a loop that is closed while it waits ends, and leaves no task claimed', async ({ client }) => {
  const queue = client.queue('q')
  for (const close of [loop => loop.return(), loop => loop[Symbol.asyncDispose]?.() ?? loop.return()]) {
    const empty = queue.consume()
    const pending = empty.next()
    await close(empty)
    assert.deepEqual(await pending, { done: true, value: undefined })
    assert.deepEqual(await empty.next(), { done: true, value: undefined })
  }
  const failing = queue.consume()
  const pending = failing.next()
  await assert.rejects(failing.throw(new Error('enough')), { message: 'enough' })
  assert.deepEqual(await pending, { done: true, value: undefined })
  await queue.enqueueMany(tasks(2))
  // Now it waits for a place, since one is out.
  const full = queue.consume()
  const { value: claim } = await full.next()
  const next = full.next()
  await full.return()
  assert.deepEqual(await next, { done: true, value: undefined })
  await claim.ack()
  const { ready, claimed } = await queue.stats()
  assert.deepEqual([ready, claimed], [1, 0])
})

onEveryStore('a worker is one run: closed at once it does nothing, closed again it says the same', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const none = queue.worker(() => assert.fail('it was closed before'))
  const report = { completed: 0, failed: 0, dead: 0, lost: 0 }
  assert.deepEqual([await none.close(), await none.close(), await none.finished], [report, report, report])
  const next = queue.worker(() => {}, { untilEmpty: true })
  assert.equal((await next.finished).completed, 1)
  assert.equal((await next.close()).completed, 1)
})

test('a store that is gone and back is told once each', async t => {
  const first = await mortalRedis(t)
  const client = await connect(first.url, { timeoutMs: 500 })
  const said = []
  t.mock.method(console, 'error', line => said.push(line))
  const worker = client.queue('emails').worker(() => {})
  await client.queue('emails').enqueue({ id: 'a' })
  await eventually(async () => (await client.queue('emails').get('a')) === null)
  first.process.kill('SIGKILL')
  await eventually(() => said.length > 0)
  assert.match(said[0], /^stanchion: queue 'emails': .*127\.0\.0\.1.*; trying again$/)
  const again = spawn('redis-server', ['--port', new URL(first.url).port, '--save', '', '--logfile', '/dev/null'])
  t.after(() => again.kill('SIGKILL'))
  await eventually(() => said.length > 1)
  assert.match(said[1], /^stanchion: queue 'emails': the store answers again, after \d+\.\d s$/)
  // With listeners they are events.
  const events = []
  worker.on('error', error => events.push(error.name)).on('recovered', after => events.push(after > 0))
  again.kill('SIGKILL')
  await eventually(() => events.length > 0)
  const third = spawn('redis-server', ['--port', new URL(first.url).port, '--save', '', '--logfile', '/dev/null'])
  t.after(() => third.kill('SIGKILL'))
  await eventually(() => events.length > 1)
  assert.deepEqual(events, ['StoreUnavailableError', true])
  assert.equal(said.length, 2)
  await worker.close()
})
