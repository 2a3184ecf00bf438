import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  InvalidArgumentError, LeaseLostError, QueueFullError, StaleReceiptError, connect
} from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'
import { eventually, onEveryStore } from './helpers/stores.mjs'

onEveryStore('a task goes in and out', async ({ client }) => {
  const queue = client.queue('q')
  const before = Date.now()
  const added = await queue.enqueue({ id: 'user:42', payload: Buffer.from([0, 255, 1]), headers: { a: 'b' } })
  assert.deepEqual([added.id, added.outcome], ['user:42', 'added'])
  assert.equal(typeof added.version, 'bigint')
  assert.ok(added.due instanceof Date && Math.abs(added.due.getTime() - before) < 60_000)
  const [claim] = await queue.claim()
  assert.deepEqual([claim.id, claim.queue, claim.attempt, claim.maxAttempts, claim.priority], ['user:42', 'q', 1, 20, 0])
  assert.deepEqual([...claim.payload], [0, 255, 1])
  assert.deepEqual(claim.headers, { a: 'b' })
  assert.ok(claim.valid && claim.remainingMs > 20_000 && claim.due instanceof Date)
  assert.equal(typeof claim.receipt, 'bigint')
  assert.equal(claim.version, added.version)
  assert.deepEqual(await queue.claim(), [])
  await claim.ack()
  await claim.ack()
  assert.equal(await queue.get('user:42'), null)
  assert.ok(!claim.valid)
})

onEveryStore('who works on a queue', async ({ client }) => {
  const queue = client.queue('q')
  assert.deepEqual(await queue.consumers(), [])
  await queue.enqueue({ id: 'a' })
  assert.equal((await queue.get('a')).claimedBy, null)
  const [claim] = await queue.claim()
  const by = (await queue.get('a')).claimedBy
  assert.ok(by.since instanceof Date && Math.abs(by.since.getTime() - Date.now()) < 60_000)
  assert.deepEqual([by.label, by.pid, typeof by.host], ['', process.pid, 'string'])
  assert.deepEqual(
    await queue.consumers(), [{ label: by.label, host: by.host, pid: by.pid, waiters: 0, claims: 1 }])
  assert.equal((await queue.stats()).waiters, 0)
  await claim.ack()
  assert.deepEqual(await queue.consumers(), [])
})

onEveryStore('payloads: bytes of all sorts, and any JSON value', async ({ client }) => {
  const queue = client.queue('q')
  const bytes = new Uint8Array([1, 2, 3, 4])
  const cases = [
    [undefined, ''], [bytes, '\x01\x02\x03\x04'], [bytes.buffer, '\x01\x02\x03\x04'],
    [new DataView(bytes.buffer, 1, 2), '\x02\x03'], [new Uint16Array(bytes.buffer, 2, 1), '\x03\x04'],
    [{ a: [1, null, 'ü'] }, '{"a":[1,null,"ü"]}'], ['text', '"text"'], [5, '5'], [null, 'null'], [false, 'false'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
  ]
  for (const [payload, expected] of cases) {
    await queue.enqueue({ id: 'a', payload })
    const [task] = await queue.pop()
    assert.deepEqual(task.payload, Buffer.from(expected), expected)
    const isJson = payload !== undefined && !ArrayBuffer.isView(payload) && !(payload instanceof ArrayBuffer)
    assert.deepEqual(task.headers, isJson ? { 'content-type': 'application/json' } : {})
    if (isJson) assert.deepEqual(task.json, JSON.parse(expected))
  }
  await queue.enqueue({ id: 'a', payload: {}, headers: { 'content-type': 'text/x' } })
  const [own] = await queue.claim()
  assert.deepEqual([own.headers, own.json], [{ 'content-type': 'text/x' }, {}])
  await own.ack()
})

onEveryStore('bytes that change after the call do not change the task', async ({ client }) => {
  const payload = Buffer.from('before')
  const enqueuing = client.queue('q').enqueue({ id: 'a', payload })
  payload.fill('x')
  await enqueuing
  assert.equal((await client.queue('q').get('a')).payload.toString(), 'before')
})

onEveryStore('every verdict', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(['ack', 'nack', 'bury', 'back'].map(id => ({ id })))
  const claims = Object.fromEntries((await queue.claim({ max: 10 })).map(claim => [claim.id, claim]))
  await claims.ack.ack()
  await claims.nack.nack({ delayMs: 60_000, reason: 'no paper' })
  await claims.bury.bury('never')
  await claims.back.putBack()
  const nacked = await queue.get('nack')
  assert.deepEqual([nacked.state, nacked.attempts, nacked.reason], ['scheduled', 1, 'no paper'])
  const dead = await queue.get('bury')
  assert.deepEqual([dead.state, dead.reason, dead.died instanceof Date], ['dead', 'never', true])
  assert.deepEqual([(await queue.get('back')).attempts, (await queue.get('back')).state], [0, 'ready'])
  await assert.rejects(claims.nack.ack(), StaleReceiptError)
  const stats = await queue.stats()
  assert.deepEqual([stats.scheduled, stats.ready, stats.claimed, stats.dead, stats.acked], [1, 1, 0, 1, 1])
  assert.ok(stats.nextDueMs === 0 && stats.settings.maxLen === null && stats.settings.deadMax > 0)
})

onEveryStore('verdicts together, and with a claim', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany(['a', 'b', 'c', 'd'].map(id => ({ id })))
  const [a, b] = await queue.claim({ max: 2 })
  assert.deepEqual(await queue.settle([a.acked(), b.buried('x')]), [null, null])
  const [again] = await queue.settle([a.nacked({ delayMs: 1 })])
  assert.ok(again instanceof StaleReceiptError)
  const [c] = await queue.claim()
  const verdict = c.acked()
  const { settled, claims } = await queue.settleAndClaim([verdict], { max: 5 })
  assert.deepEqual([settled, claims.map(claim => claim.id)], [[null], ['d']])
  await assert.rejects(queue.settle([verdict]), InvalidArgumentError)
  assert.throws(() => claims[0].nacked({ delayMs: NaN }), InvalidArgumentError)
  assert.deepEqual(await queue.settle([claims[0].returned()]), [null])
  assert.equal((await queue.get('d')).attempts, 0)
})

onEveryStore('a second enqueue of an id', async ({ client }) => {
  const queue = client.queue('q')
  const put = (id, onDuplicate, more) => queue.enqueue({ id, onDuplicate, ...more }).then(({ outcome }) => outcome)
  assert.deepEqual([await put('a'), await put('a'), await put('a', 'keep')], ['added', 'kept', 'kept'])
  assert.equal(await put('a', 'replace', { payload: 'new' }), 'replaced')
  assert.equal((await queue.get('a')).json, 'new')
  assert.equal(await put('b', { debounce: { maxWaitMs: 5_000 } }, { delayMs: 1_000 }), 'added')
  assert.equal(await put('b', { debounce: { maxWaitMs: 5_000 } }), 'replaced')
  assert.equal(await put('c', { throttle: { windowMs: 60_000 } }), 'added')
  const throttled = await queue.enqueue({ id: 'c', onDuplicate: { throttle: { windowMs: 60_000 } } })
  assert.deepEqual([throttled.outcome, throttled.due, throttled.version], ['throttled', null, 0n])
  const [running] = await queue.claim()
  assert.equal(await put(running.id, 'replace'), 'successor')
  await running.ack()
})

onEveryStore('delays, due times, priorities', async ({ client }) => {
  const queue = client.queue('q')
  const due = new Date(Date.now() + 3_600_000)
  await queue.enqueueMany([
    { id: 'low' }, { id: 'high', priority: 255 }, { id: 'later', delayMs: 60_000 }, { id: 'at', due },
    { id: 'past', due: 0, priority: 1 }])
  assert.deepEqual((await queue.peek(10)).map(task => task.id), ['high', 'past', 'low'])
  assert.deepEqual((await queue.get('at')).due, due)
  assert.equal((await queue.list('scheduled')).tasks.length, 2)
  const moved = await queue.reschedule('at', 0)
  assert.deepEqual([moved.outcome, moved.due instanceof Date], ['moved', true])
  assert.deepEqual((await queue.pop(9)).map(task => task.id).sort(), ['at', 'high', 'low', 'past'])
  assert.deepEqual(await queue.reschedule('none', new Date()), { outcome: 'absent', due: null })
})

onEveryStore('remove, kick, pause, purge, pages', async ({ client }) => {
  const queue = client.queue('q')
  const { version } = await queue.enqueue({ id: 'a' })
  assert.deepEqual(await queue.remove('a', { version: version - 1n }), { removed: false, otherVersion: version })
  assert.deepEqual(await queue.remove('a', { version }), { removed: true, otherVersion: null })
  assert.deepEqual(await queue.remove('a'), { removed: false, otherVersion: null })
  await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ id: `t${n}` })))
  for (const claim of await queue.claim({ max: 3 })) await claim.bury('x')
  const first = await queue.list('dead', { max: 2 })
  assert.deepEqual([first.tasks.length, typeof first.next], [2, 'string'])
  const second = await queue.list('dead', { max: 2, page: first.next })
  assert.deepEqual([second.tasks.length, second.next], [1, null])
  assert.equal(await queue.kick(first.tasks[0].id), 1)
  assert.equal(await queue.kick([first.tasks[1].id, 'none']), 1)
  assert.equal(await queue.kick(10), 1)
  await queue.pause()
  assert.deepEqual([(await queue.claim()).length, (await queue.stats()).paused], [0, true])
  await queue.resume()
  assert.deepEqual((await client.queueNames()).names, ['q'])
  assert.equal(await queue.purge(), 5)
})

onEveryStore('pages with a prefix and without payloads', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany([...Array.from({ length: 5 }, (_, n) => ({ id: `user:${n}`, payload: 'text' })), { id: 'other' }])
  const ids = []
  let page
  do {
    const found = await queue.list('ready', { max: 2, prefix: 'user:', payloads: false, page })
    for (const { id, payload, headers, size } of found.tasks) {
      ids.push(id)
      assert.deepEqual([payload.length, headers, size > 6], [0, {}, true])
    }
    page = found.next
  } while (page !== null)
  assert.deepEqual(ids.sort(), ['user:0', 'user:1', 'user:2', 'user:3', 'user:4'])
  const whole = (await queue.list('ready')).tasks.find(task => task.id === 'user:0')
  assert.deepEqual([whole.json, whole.size], ['text', (await queue.get('user:0')).size])
  await assert.rejects(queue.list('ready', { page: 'user:1' }), InvalidArgumentError)
})

onEveryStore('which dead tasks are moved and dropped', async ({ client }) => {
  const queue = client.queue('q')
  const reasons = { a: 'refused: 1', b: 'refused: 2', c: 'other', 'user:1': 'x', 'user:2': 'x' }
  await queue.enqueueMany(Object.keys(reasons).map(id => ({ id })))
  await queue.settle((await queue.claim({ max: 10 })).map(claim => claim.buried(reasons[claim.id])))
  const { receipt } = await queue.get('c')
  assert.equal(await queue.kick({ reason: 'refused', olderThanMs: 3_600_000 }), 0)
  assert.equal(await queue.kick({ reason: 'refused', prefix: 'a' }), 1)
  assert.equal((await queue.get('a')).state, 'ready')
  assert.equal(await queue.removeDead({ receipts: [receipt, 1_000_000_000n] }), 1)
  assert.equal(await queue.get('c'), null)
  assert.equal(await queue.removeDead({ reason: 'refused' }), 1)
  assert.equal(await queue.removeDead({ ids: new Set(['user:1', 'none']) }), 1)
  assert.equal(await queue.removeDead('none'), 0)
  assert.equal(await queue.kick({ count: 10, olderThanMs: 0 }), 1)
  assert.equal(await queue.removeDead(10), 0)
})

onEveryStore('a full queue', async ({ client }) => {
  const queue = client.queue('q')
  await queue.configure({ maxLen: 2, deadMax: 5, deadAgeMs: 60_000, deadBytes: 1_000, intake: false })
  const results = await queue.enqueueMany([{ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'a' }])
  assert.deepEqual(results.map(one => one.outcome ?? one.constructor), ['added', 'added', QueueFullError, 'kept'])
  await assert.rejects(queue.enqueue({ id: 'd' }), QueueFullError)
  assert.deepEqual(
    (await queue.stats()).settings,
    { maxLen: 2, deadMax: 5, deadAgeMs: 60_000, deadBytes: 1_000, intake: false, events: 0, maxRunning: null, rate: null,
      keyConcurrency: null, keyRate: null })
  await queue.configure({ maxLen: null })
  await queue.enqueue({ id: 'd' })
})

onEveryStore('a claim that is removed is lost', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const [claim] = await queue.claim({ leaseMs: 300, renew: true })
  const { signal } = claim
  await queue.remove('a')
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
  assert.ok(signal.reason instanceof LeaseLostError)
  assert.match(signal.reason.message, /task "a" of queue "q"/)
  await assert.rejects(claim.ack(), StaleReceiptError)
  await assert.rejects(claim.extend(1_000), LeaseLostError)
})

onEveryStore('a waiting claim is woken', async ({ client }) => {
  const queue = client.queue('q')
  const waiting = queue.claim({ waitMs: 20_000 })
  await queue.stats()
  await queue.enqueue({ id: 'a' })
  const [claim] = await waiting
  await claim.ack()
})

onEveryStore('several queues', async ({ client }) => {
  const queues = client.queues(['first', 'second'])
  assert.deepEqual(await queues.claim(), [])
  await client.queue('second').enqueue({ id: 'a' })
  const [claim] = await queues.claim({ waitMs: 5_000 })
  assert.deepEqual([claim.queue, claim.id], ['second', 'a'])
  await claim.ack()
})

onEveryStore('await using nacks what was not settled', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const [first] = await queue.claim()
  await first[Symbol.asyncDispose]()
  assert.deepEqual([(await queue.get('a')).attempts, (await queue.get('a')).reason], [1, 'not settled'])
  await queue.reschedule('a', 0)
  const [second] = await queue.claim()
  await second.ack()
  await second[Symbol.asyncDispose]()
})

test('a fixed claim ends, and is delivered again, by the clock of the test', async () => {
  const clock = new Clock()
  const queue = (await memoryClient({ clock })).queue('q')
  await queue.enqueue({ id: 'a', delayMs: 5_000 })
  assert.deepEqual(await queue.claim(), [])
  clock.advance(5_000)
  const [first] = await queue.claim({ leaseMs: 1_000 })
  clock.advance(2_000)
  assert.ok(!first.valid)
  await eventually(() => first.signal.aborted)
  const [second] = await queue.claim()
  assert.equal(second.attempt, 2)
  await assert.rejects(first.ack(), StaleReceiptError)
  await second.ack()
})

test('stores in memory by name', async () => {
  const [one, two] = [await memoryClient({ name: 'shared' }), await memoryClient({ name: 'shared' })]
  await one.queue('q').enqueue({ id: 'a' })
  assert.equal((await two.queue('q').pop()).length, 1)
  const [three, four] = [await memoryClient(), await connect('memory:')]
  await three.queue('q').enqueue({ id: 'a' })
  assert.equal((await four.queue('q').pop()).length, 0)
})
