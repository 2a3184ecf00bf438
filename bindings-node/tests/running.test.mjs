/** Kinds, timeouts, back-offs, progress, cancels and results: as this package has them. What they do is in the scenarios. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { LeaseExpiredError, LeaseLostError, TaskResult } from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'
import { eventually, onEveryStore, told } from './helpers/stores.mjs'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'
const HOUR = 3_600_000

/** A task that is claimed. */
async function claimed(queue, task = {}, options = {}) {
  await queue.enqueue({ id: 'a', ...task })
  const [claim] = await queue.claim(options)
  return claim
}

onEveryStore('a task is shown as it was put', async ({ client }) => {
  const queue = client.queue('q')
  for (const backoff of [[1_000, 0, 60_000], { base: 10, factor: 1.5, max: 20, jitter: 0.1 }]) {
    const task = { id: 'a', kind: 'send-welcome', timeoutMs: 1_500, backoff, keepResultMs: HOUR, headers: { by: 'x' } }
    const claim = await claimed(queue, task)
    assert.equal(claim.kind, 'send-welcome')
    assert.deepEqual(claim.headers, { by: 'x' })
    const { kind, timeoutMs, backoff: shown, failures, progress, cancelled } = await queue.get('a')
    assert.deepEqual(
      { kind, timeoutMs, backoff: shown, failures, cancelled },
      { kind: 'send-welcome', timeoutMs: 1_500, backoff, failures: [], cancelled: false })
    assert.ok(Buffer.isBuffer(progress) && progress.length === 0)
    await claim.ack()
    // What came out goes in again.
    await queue.enqueue({ id: 'again', backoff: shown })
    assert.deepEqual((await queue.get('again')).backoff, backoff)
    await queue.remove('again')
  }
})

onEveryStore('what is not given', async ({ client }) => {
  const queue = client.queue('q')
  const claim = await claimed(queue, { kind: undefined, timeoutMs: undefined, backoff: undefined, keepResultMs: undefined })
  assert.equal(claim.kind, null)
  const { kind, timeoutMs, backoff } = await queue.get('a')
  assert.deepEqual({ kind, timeoutMs, backoff }, { kind: null, timeoutMs: null, backoff: null })
  await claim.ack(undefined)
  await queue.enqueue({ id: 'b', backoff: { base: 10, max: undefined } })
  assert.deepEqual((await queue.get('b')).backoff, { base: 10, factor: 2, max: 7 * HOUR, jitter: 0.5 })
})

onEveryStore('what makes no sense is refused before anything is sent', async ({ client }) => {
  const queue = client.queue('q')
  const bad = {
    kind: ['', 'a\nb', 'x'.repeat(129), 5, {}, '\ud800'],
    timeoutMs: [0, -1, NaN, '5', 366 * 24 * HOUR, {}],
    keepResultMs: [0, -1, NaN, '5', 31 * 24 * HOUR, {}],
    backoff: [
      [], [-1], [NaN], ['5'], [1n], [366 * 24 * HOUR], new Array(101).fill(1), 5, '[1]', {}, { base: 0 }, { base: '1' },
      { base: NaN }, { base: 1, factor: 0.5 }, { base: 1, factor: NaN }, { base: 1, jitter: 2 }, { base: 5, max: 1 },
      { base: 1, baseMs: 1 }, new Map(), () => 1, true]
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      await assert.rejects(queue.enqueue({ id: 'a', [name]: value }), { code: INVALID }, `${name}: ${inspect(value)}`)
    }
  }
  await assert.rejects(
    queue.enqueue({ headers: { 'stanchion-kind': 'x' } }), { code: INVALID, message: /names that begin with "stanchion-"/ })
  await assert.rejects(queue.enqueue({ timeout: 5 }), /there is no property of a task timeout; .*say timeoutMs, in milliseconds$/)
  await assert.rejects(queue.enqueue({ keepResult: 5 }), /say keepResultMs, in milliseconds$/)
  await assert.rejects(queue.enqueue({ backoff: [1_000, NaN] }), { message: 'pause 2 of backoff is a number of milliseconds, not NaN' })
  await assert.rejects(queue.enqueue({ backoff: 'exponential' }), /^InvalidArgumentError: backoff is a list of pauses .*, not "exponential"$/)
  await assert.rejects(queue.enqueue({ backoff: { delay: 5 } }), /there is no property of a backoff delay; there are base, factor, max, jitter/)
  await assert.rejects(queue.claim({ timeout: 5 }), /say waitMs for how long to wait, or timeoutMs for how long a run may take, in milliseconds$/)
  for (const timeoutMs of [0, -1, '5', NaN]) {
    await assert.rejects(queue.claim({ timeoutMs }), { code: INVALID })
    await assert.rejects(queue.worker(() => {}, { timeoutMs }).finished, { code: INVALID })
    await assert.rejects(queue.consume({ timeoutMs }).next(), { code: INVALID })
  }
  assert.equal((await queue.stats()).enqueued, 0)
})

onEveryStore('results are bytes or texts', async ({ client }) => {
  const queue = client.queue('q')
  const cases = [
    ['plain', 'plain'], ['Grüße', 'Grüße'], ['', ''], [Buffer.from([0, 255]), '\x00\xff'], [new Uint8Array([65]), 'A'],
    [new Uint8Array(0), ''], [new Uint8Array(Buffer.from('xyz')).subarray(1), 'yz']]
  for (const [given, shown] of cases) {
    const claim = await claimed(queue)
    await claim.ack(given)
    const { outcome, result, version, reason } = await queue.result('a', { version: claim.version })
    assert.deepEqual([outcome, version, reason], ['done', claim.version, null])
    assert.deepEqual(result, Buffer.from(shown, typeof given === 'string' ? 'utf8' : 'latin1'))
  }
  const claim = await claimed(queue)
  const bytes = Buffer.from('before')
  const acking = claim.ack(bytes)
  // It has been copied by now.
  bytes.fill(1)
  await acking
  assert.equal(`${(await queue.result('a')).result}`, 'before')
})

onEveryStore('a result that is none leaves the claim as it is', async ({ client }) => {
  const queue = client.queue('q')
  const claim = await claimed(queue)
  const bad = [5, true, {}, [], ['x'], new ArrayBuffer(2), new DataView(new ArrayBuffer(2)), Symbol('x'), '\ud800', 'x'.repeat(2 ** 20 + 1)]
  for (const result of bad) {
    await assert.rejects(claim.ack(result), { code: INVALID, operation: 'ack' })
    assert.throws(() => claim.acked(result), { code: INVALID })
  }
  for (const progress of [...bad, undefined, null, 'x'.repeat(4_097)]) {
    await assert.rejects(claim.progress(progress), { code: INVALID, operation: 'progress' })
  }
  await assert.rejects(claim.ack({ ok: true }), { message: 'the result is a Uint8Array or a text, not an object' })
  const detached = new Uint8Array([1])
  structuredClone(detached, { transfer: [detached.buffer] })
  await assert.rejects(claim.ack(detached), { message: 'the result is a detached buffer' })
  assert.ok(claim.valid && (await queue.get('a')).progress.length === 0)
  assert.deepEqual(await queue.settle([claim.acked('x'.repeat(2 ** 20))]), [null])
  assert.equal((await queue.result('a')).result.length, 2 ** 20)
})

onEveryStore('a result as JSON, and what has none', async ({ client }) => {
  const queue = client.queue('q')
  const claim = await claimed(queue)
  const pending = await queue.result('a')
  assert.ok(pending instanceof TaskResult)
  assert.deepEqual({ ...pending }, { outcome: 'pending', result: null, version: null, reason: null })
  assert.throws(() => pending.json(), { name: 'StanchionError', message: 'there is no result: the task is pending', operation: 'result' })
  await claim.ack(JSON.stringify({ sent: 3 }))
  const done = await queue.result('a')
  assert.deepEqual(done.json(), { sent: 3 })
  assert.match(inspect(done), /^TaskResult \{\s+outcome: 'done'/)
  await (await claimed(queue)).ack('{')
  await assert.rejects(async () => (await queue.result('a')).json(), SyntaxError)
  // Without a version it would be the result that an earlier task of this id had.
  const buried = await claimed(queue)
  await buried.bury('no such address')
  const dead = await queue.result('a', { version: buried.version })
  assert.deepEqual({ ...dead }, { outcome: 'dead', result: null, version: null, reason: 'no such address' })
  assert.throws(() => dead.json(), /there is no result: the task is dead \(no such address\)$/)
  assert.equal((await queue.result('other')).outcome, 'gone')
  assert.throws(() => new TaskResult({}), { code: INVALID, message: 'a result is made by await queue.result(id)' })
})

onEveryStore('who asks for a result may wait, and give up', async ({ client }) => {
  const queue = client.queue('q')
  const claim = await claimed(queue)
  const waiting = queue.result('a', { version: claim.version, waitMs: 20_000 })
  await claim.progress('nearly')
  await claim.ack('at last')
  assert.equal(`${(await waiting).result}`, 'at last')
  const { version } = await claimed(queue)
  assert.equal((await queue.result('a', { version, waitMs: 20 })).outcome, 'pending')
  const reason = new Error('enough')
  const end = new AbortController()
  const given = queue.result('a', { version, waitMs: 20_000, signal: end.signal })
  setTimeout(() => end.abort(reason), 20)
  await assert.rejects(given, error => error === reason)
  for (const bad of [{ waitMs: -1 }, { waitMs: '5' }, { wait: 5 }, { version: -1n }, { version: 'x' }, { signal: 5 }, null, 5]) {
    await assert.rejects(queue.result('a', bad), { code: INVALID, operation: 'result' }, inspect(bad))
  }
  for (const bad of [undefined, null, 5, '', '\ud800', {}]) {
    await assert.rejects(queue.result(bad), { code: INVALID })
    await assert.rejects(queue.cancel(bad), { code: INVALID })
  }
})

onEveryStore('progress is what others see', async ({ client }) => {
  const queue = client.queue('q')
  const claim = await claimed(queue)
  for (const [given, shown] of [['half', 'half'], [Buffer.from('all'), 'all'], ['', '']]) {
    assert.equal(await claim.progress(given), undefined)
    assert.equal(`${(await queue.get('a')).progress}`, shown)
  }
  await claim.ack()
  await assert.rejects(claim.progress('late'), LeaseLostError)
})

onEveryStore('cancelled, or not', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a', delayMs: HOUR })
  assert.deepEqual(await queue.cancel('a'), { outcome: 'removed' })
  assert.deepEqual(await queue.cancel('a'), { outcome: 'absent' })
  const claim = await claimed(queue)
  assert.deepEqual(await queue.cancel('a'), { outcome: 'running' })
  assert.equal((await queue.get('a')).cancelled, true)
  await assert.rejects(claim.progress('half'), LeaseLostError)
  assert.deepEqual([claim.loss, claim.valid, claim.signal.aborted], ['cancelled', false, true])
  assert.ok(claim.signal.reason instanceof LeaseLostError)
  await claim.nack()
  assert.equal(await queue.get('a'), null)
})

onEveryStore('failures are told with their times', async ({ client }) => {
  const queue = client.queue('q')
  const from = Date.now() - 5_000
  for (const reason of ['one', 'two']) {
    await (await claimed(queue, { backoff: [0] })).nack({ reason })
  }
  const { failures } = await queue.get('a')
  assert.deepEqual(failures.map(({ reason }) => reason), ['one', 'two'])
  for (const { at } of failures) assert.ok(at instanceof Date && at.getTime() > from && at.getTime() < Date.now() + 5_000)
})

test('a run whose time is over is told, and has failed', async () => {
  const clock = new Clock()
  const queue = (await memoryClient({ clock })).queue('q')
  for (const [task, options] of [[{ timeoutMs: 100 }, {}], [{}, { timeoutMs: 100 }], [{ timeoutMs: 100 }, { timeoutMs: HOUR }]]) {
    const claim = await claimed(queue, task, options)
    const { signal } = claim
    clock.advance(50)
    assert.equal(signal.aborted, false)
    clock.advance(100)
    await eventually(() => signal.aborted)
    assert.deepEqual([claim.loss, signal.reason instanceof LeaseExpiredError], ['timeout', true])
    await eventually(async () => (await queue.get('a')).state === 'scheduled')
    assert.equal((await queue.get('a')).reason, 'timeout')
    await queue.remove('a')
  }
})

onEveryStore('a handler whose time is over is told', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a', maxAttempts: 1 })
  let reason
  const worker = queue.worker(async (task, { signal }) => {
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
    reason = [task.loss, signal.reason instanceof LeaseExpiredError]
    signal.throwIfAborted()
  }, { timeoutMs: 200 })
  const [lost] = await told(worker, 'lost')
  // The loss is told without waiting for the handler.
  await worker.close()
  assert.equal(lost.id, 'a')
  assert.deepEqual(reason, ['timeout', true])
  await eventually(async () => (await queue.get('a')).state === 'dead')
  assert.equal((await queue.get('a')).reason, 'timeout')
})

onEveryStore('a handler of a task that is cancelled is told', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  let loss
  const worker = queue.worker(async (task, { signal }) => {
    assert.deepEqual(await queue.cancel('a'), { outcome: 'running' })
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    loss = task.loss
    throw new Error('ended')
  }, { leaseMs: 3000, untilEmpty: true })
  worker.on('failed', () => {})
  await worker.finished
  assert.equal(loss, 'cancelled')
  assert.equal(await queue.get('a'), null)
})

onEveryStore('a handler may ack with a result', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const worker = queue.worker(task => task.ack('3 sent'), { untilEmpty: true })
  assert.deepEqual(await worker.finished, { completed: 1, failed: 0, dead: 0, lost: 0 })
  assert.equal(`${(await queue.result('a')).result}`, '3 sent')
  await queue.enqueue({ id: 'b' })
  for await (const claim of queue.consume({ timeoutMs: HOUR })) {
    await claim.ack(Buffer.from('b'))
    break
  }
  assert.equal(`${(await queue.result('b')).result}`, 'b')
})
