/** Schedules: how they are put and shown, and what is refused. When their slots are and who fires them is in the scenarios. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidArgumentError, QueueFullError, connect, previewSchedule } from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'
import { onEveryStore } from './helpers/stores.mjs'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'
const HOUR = 3_600_000
/** One that fires nothing while a test runs. */
const FAR = 'every 1000h'
const dates = (...texts) => texts.map(text => new Date(text))

onEveryStore('a schedule is shown as it was put', async ({ client }) => {
  const queue = client.queue('q')
  assert.equal(await queue.getSchedule('a'), null)
  const [starts, ends] = [new Date(Date.now() + HOUR), new Date(Date.now() + 100 * 24 * HOUR)]
  const schedule = {
    id: 'a', when: '30 2 * * MON-FRI', tz: 'Europe/Berlin', missed: 5, overlap: 'skip', jitterMs: 60_000, starts,
    ends: ends.getTime(), payload: { a: 1 }, headers: { by: 'cron' }, priority: 3, maxAttempts: 4, expiresMs: 9_000,
    key: 'tenant:7'
  }
  assert.equal(await queue.schedule(schedule), 'added')
  const { size, next, ...shown } = await queue.getSchedule('a')
  assert.deepEqual(shown, {
    id: 'a', when: '30 2 * * MON-FRI', tz: 'Europe/Berlin', missed: 5, overlap: 'skip', jitterMs: 60_000, starts, ends,
    paused: false, lateMs: 0, owner: null, fired: 0, skipped: 0, missedSlots: 0, lastTask: null, priority: 3,
    maxAttempts: 4, expiresMs: 9_000, key: 'tenant:7'
  })
  assert.ok(size > '{"a":1}'.length)
  assert.deepEqual([next], previewSchedule(schedule, new Date(), 1))
  assert.equal(await queue.schedule(schedule), 'kept')
  assert.equal(await queue.schedule({ ...schedule, payload: { a: 2 } }), 'changed')
})

onEveryStore('what is not given has a default', async ({ client }) => {
  const queue = client.queue('q')
  await queue.schedule({
    id: 'a', when: '@daily', tz: undefined, missed: undefined, overlap: undefined, jitterMs: undefined, starts: undefined,
    ends: null, paused: undefined, payload: undefined, headers: undefined, priority: undefined
  })
  const { next, size, ...shown } = await queue.getSchedule('a')
  assert.ok(next instanceof Date && next > new Date())
  assert.deepEqual(shown, {
    id: 'a', when: '@daily', tz: 'UTC', missed: 'last', overlap: 'queue', jitterMs: 0, starts: null, ends: null, paused: false,
    lateMs: 0, owner: null, fired: 0, skipped: 0, missedSlots: 0, lastTask: null, priority: 0, maxAttempts: 20, expiresMs: null,
    key: null
  })
  assert.equal(await queue.schedule({ id: 'a', when: '@daily' }), 'kept')
})

onEveryStore('words and numbers of what was missed', async ({ client }) => {
  const queue = client.queue('q')
  for (const [given, shown] of [['last', 'last'], ['skip', 'skip'], [1, 1], [1_000, 1_000], [7n, 7], [null, 'last']]) {
    await queue.schedule({ id: 'a', when: FAR, missed: given })
    assert.equal((await queue.getSchedule('a')).missed, shown)
  }
  for (const overlap of ['queue', 'skip']) {
    await queue.schedule({ id: 'a', when: FAR, overlap })
    assert.equal((await queue.getSchedule('a')).overlap, overlap)
  }
})

onEveryStore('its tasks have what a task has', async ({ client }) => {
  const queue = client.queue('q')
  const bytes = Buffer.from([0, 255])
  const putting = queue.schedule({ id: 'bytes', when: FAR, payload: bytes, priority: 7, maxAttempts: 2, expiresMs: HOUR })
  // It has been copied by now.
  bytes.fill(1)
  await putting
  await queue.schedule({ id: 'json', when: FAR, payload: { to: 'x' }, headers: { by: 'cron' } })
  const id = await queue.runSchedule('bytes')
  assert.match(id, /^bytes@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
  const task = await queue.get(id)
  assert.deepEqual([[...task.payload], task.headers, task.priority, task.maxAttempts], [[0, 255], {}, 7, 2])
  assert.ok(task.expires instanceof Date)
  const other = await queue.get(await queue.runSchedule('json'))
  assert.deepEqual([other.json, other.headers], [{ to: 'x' }, { by: 'cron', 'content-type': 'application/json' }])
  const { fired, lastTask } = await queue.getSchedule('bytes')
  assert.deepEqual([fired, lastTask], [1, id])
})

onEveryStore('paused, resumed, run, removed: whether there is one', async ({ client }) => {
  const queue = client.queue('q')
  for (const verb of ['pauseSchedule', 'resumeSchedule', 'removeSchedule']) assert.equal(await queue[verb]('a'), false)
  assert.equal(await queue.runSchedule('a'), null)
  await queue.schedule({ id: 'a', when: FAR, paused: true })
  const look = async () => {
    const { paused, next } = await queue.getSchedule('a')
    return [paused, next instanceof Date]
  }
  assert.deepEqual(await look(), [true, false])
  assert.equal(await queue.resumeSchedule('a'), true)
  assert.deepEqual(await look(), [false, true])
  assert.equal(await queue.pauseSchedule('a'), true)
  assert.deepEqual(await look(), [true, false])
  assert.equal(typeof await queue.runSchedule('a'), 'string')
  assert.equal(await queue.removeSchedule('a'), true)
  assert.equal(await queue.getSchedule('a'), null)
  await queue.purge()
  await queue.configure({ maxLen: 1 })
  await queue.schedule({ id: 'b', when: FAR })
  await queue.enqueue({ id: 'full' })
  await assert.rejects(queue.runSchedule('b'), QueueFullError)
})

onEveryStore('the list of an owner', async ({ client }) => {
  const queue = client.queue('q')
  await queue.schedule({ id: 'own', when: FAR })
  const none = { added: 0, changed: 0, kept: 0, removed: 0, newer: null }
  const list = ['a', 'b', 'c'].map(id => ({ id, when: FAR }))
  assert.deepEqual(await queue.syncSchedules('app', 1, list), { ...none, added: 3 })
  const some = function* () { yield list[0]; yield { ...list[1], priority: 1 } }
  assert.deepEqual(await queue.syncSchedules('app', 2, some()), { ...none, changed: 1, kept: 1, removed: 1 })
  assert.deepEqual(await queue.syncSchedules('app', 1, new Set(list)), { ...none, newer: 2 })
  assert.deepEqual([(await queue.getSchedule('a')).owner, (await queue.getSchedule('own')).owner], ['app', null])
  assert.equal((await queue.stats()).schedules, 3)
  assert.deepEqual(await queue.syncSchedules('app', 2n, []), { ...none, removed: 2 })
})

onEveryStore('if one of a list is bad, nothing is sent', async ({ client }) => {
  const queue = client.queue('q')
  const good = { id: 'a', when: FAR }
  for (const bad of [{ id: 'b', when: 'never' }, { id: 'b', when: FAR, tz: 5 }, { id: 'b' }, 'b', null, good]) {
    await assert.rejects(queue.syncSchedules('app', 1, [good, bad]), { code: INVALID })
  }
  for (const bad of [undefined, null, 5, 'abc', {}, good]) {
    await assert.rejects(queue.syncSchedules('app', 1, bad), /^InvalidArgumentError: schedules are a list/)
  }
  for (const bad of [undefined, null, 5, '', '\ud800', {}, Symbol('x')]) {
    await assert.rejects(queue.syncSchedules(bad, 1, []), { code: INVALID })
  }
  for (const bad of [undefined, null, -1, 0.5, NaN, 2 ** 53, '1', {}, 2n ** 64n]) {
    await assert.rejects(queue.syncSchedules('app', bad, []), { code: INVALID })
  }
  assert.equal((await queue.stats()).schedules, 0)
})

onEveryStore('pages', async ({ client }) => {
  const queue = client.queue('q')
  assert.deepEqual(await queue.listSchedules(), { schedules: [], next: null })
  for (const [n, id] of ['a', 'b', 'c', 'd', 'e'].entries()) await queue.schedule({ id, when: `every ${1_000 + n}h` })
  const found = []
  let page
  do {
    const { schedules, next } = await queue.listSchedules({ max: 2, page })
    found.push(schedules.map(({ id }) => id))
    assert.ok(found.length <= 6, 'the pages do not end')
    page = next
  } while (page !== null)
  assert.deepEqual(found.flat(), ['a', 'b', 'c', 'd', 'e'])
  assert.ok(found.length >= 3 && found.every(ids => ids.length <= 2))
  assert.deepEqual((await queue.listSchedules({ page: null })).schedules[0], await queue.getSchedule('a'))
  for (const bad of [null, 5, 'x', { from: 'x' }, { page: 5 }, { page: 'x' }, { max: 0 }, { max: '2' }, { max: -1 }]) {
    await assert.rejects(queue.listSchedules(bad), { code: INVALID })
  }
})

test('slots, by the clock of the test', async () => {
  const clock = new Clock()
  const queue = (await memoryClient({ clock })).queue('q')
  for (const [id, overlap] of [['all', 'queue'], ['one', 'skip']]) {
    await queue.schedule({ id, when: 'every 1h', overlap, payload: id })
  }
  const { next } = await queue.getSchedule('all')
  assert.deepEqual(await queue.claim(), [])
  clock.advance(HOUR + 5_000)
  assert.equal((await queue.getSchedule('all')).lateMs, 5_000)
  assert.equal((await queue.stats()).schedulesLateMs, 5_000)
  const claims = await queue.claim({ max: 10, leaseMs: 10 * HOUR })
  assert.deepEqual(claims.map(claim => claim.json).sort(), ['all', 'one'])
  const all = claims.find(claim => claim.json === 'all')
  assert.deepEqual([all.due, (await queue.getSchedule('all')).lastTask], [next, all.id])
  assert.deepEqual([(await queue.stats()).schedules, (await queue.stats()).schedulesLateMs], [2, 0])
  clock.advance(HOUR)
  assert.deepEqual((await queue.claim({ max: 10 })).map(claim => claim.json), ['all'])
  assert.equal((await queue.getSchedule('one')).skipped, 1)
  clock.advance(3 * HOUR)
  await queue.claim({ max: 10 })
  const { fired, missedSlots } = await queue.getSchedule('all')
  assert.deepEqual([fired, missedSlots], [3, 2])
})

test('a preview asks no store', () => {
  const hourly = { id: 'a', when: '@hourly' }
  const after = new Date('2027-01-31T22:30:00Z')
  const expected = dates('2027-01-31T23:00:00Z', '2027-02-01T00:00:00Z')
  assert.deepEqual(previewSchedule(hourly, after, 2), expected)
  assert.deepEqual(previewSchedule(hourly, after.getTime(), 2n), expected)
  assert.deepEqual(
    previewSchedule({ ...hourly, starts: after.getTime() + HOUR, ends: new Date('2027-02-01T01:00:00Z') }, 0, 9),
    dates('2027-02-01T00:00:00Z', '2027-02-01T01:00:00Z'))
  assert.deepEqual(
    previewSchedule({ id: 'a', when: '30 2 * * *', tz: 'Europe/Berlin' }, new Date('2027-03-27T12:00:00Z'), 2),
    dates('2027-03-28T01:00:00Z', '2027-03-29T00:30:00Z'))
  assert.deepEqual(
    previewSchedule({ id: 'a', when: 'at 2027-02-28T08:00:00+01:00' }, after, 5), dates('2027-02-28T07:00:00Z'))
  const delays = previewSchedule({ ...hourly, jitterMs: 60_000 }, after, 2).map((time, n) => time - expected[n])
  assert.ok(delays[0] === delays[1] && delays[0] > 0 && delays[0] < 60_000, String(delays))
})

test('a preview that is refused throws', () => {
  const refused = [
    [[{ id: 'a', when: '@hourly', tz: 'Mars' }, 0, 1], /^schedule "a": tz: "Mars" is no time zone/],
    [[{ id: 'a', when: 'never' }, 0, 1], /^schedule "a": when: /],
    [[{ id: 'a', when: '@hourly' }, 0, 0], /^count 0 is not between 1 and 1000/],
    [[{ id: 'a', when: '@hourly' }, 1_800_000_000, 1], 'after is in milliseconds, as Date.now() is; 1800000000 looks like seconds'],
    [[{ id: 'a', when: '@hourly' }, new Date(NaN), 1], /NaN is no time/],
    [[{ id: 'a', when: '@hourly' }], /a time is a Date or a number of milliseconds since 1970, not undefined/],
    [[{ id: 'a', when: '@hourly' }, 0], /a count is a whole number, not undefined/],
    [[{ id: 'a', when: '@hourly' }, 0, -1], /-1 is no count/],
    [[{ id: 'a', when: '@hourly', cron: 'x' }, 0, 1], /there is no property of a schedule cron/],
    [['a', 0, 1], /^a schedule is an object, not "a"/],
    [[], /^a schedule is an object, not undefined/],
  ]
  for (const [given, message] of refused) {
    assert.throws(() => previewSchedule(...given), { name: 'InvalidArgumentError', code: INVALID, message })
  }
  const error = new Error('of the getter')
  assert.throws(() => previewSchedule({ get id() { throw error } }, 0, 1), found => found === error)
})

test('what is refused is named', async () => {
  const queue = (await connect('memory:')).queue('q')
  const refused = [
    [{ missed: 'all' }, "missed is 'last', 'skip' or a whole number"],
    [{ missed: '' }, "missed is 'last', 'skip' or a whole number"],
    [{ missed: 1.5 }, "missed is 'last', 'skip' or a whole number, not 1.5"],
    [{ missed: true }, "missed is 'last', 'skip' or a whole number, not true"],
    [{ missed: 0 }, /^schedule "q": schedule "a": missed: all\(0\) is not between 1 and 1000/],
    [{ missed: 2 ** 33 }, /^schedule "q": schedule "a": missed: all\(4294967295\) is not between/],
    [{ overlap: 'drop' }, "overlap is 'queue' or 'skip'"],
    [{ overlap: false }, "overlap is 'queue' or 'skip', not false"],
    [{ paused: 1 }, 'paused is true or false, not 1'],
    [{ tz: {} }, 'tz is a text, not an object'],
    [{ tz: 'Mars' }, /^schedule "q": schedule "a": tz: /],
    [{ jitterMs: '5' }, 'jitterMs is a number of milliseconds, not "5"'],
    [{ jitterMs: 25 * HOUR }, /^schedule "q": schedule "a": jitter: it is more than a day/],
    [{ starts: 1_800_000_000 }, 'starts is in milliseconds, as Date.now() is; 1800000000 looks like seconds'],
    [{ ends: 1_800_000_000 }, 'ends is in milliseconds, as Date.now() is; 1800000000 looks like seconds'],
    [{ ends: new Date('2020-01-01') }, /^schedule "q": schedule "a": it is over: no slot comes any more/],
    [{ starts: '2027-01-01' }, /a time is a Date or a number of milliseconds since 1970, not a string/],
    [{ priority: 256 }, 'priority is not between 0 and 255'],
    [{ expiresMs: -1 }, 'expiresMs is a number of milliseconds, not -1'],
    [{ payload: 5n }, /^the payload is bytes or a JSON value, not a bigint/],
    [{ payload: Buffer.alloc(16 * 1024 * 1024 + 1) }, /^the payload has more than 16777216 bytes/],
    [{ headers: { a: 5 } }, /a text is expected, not a number/],
    [{ id: 42 }, 'id is a text, not 42'],
    [{ id: undefined }, 'id is a text, not undefined: { id, when, payload }'],
    [{ id: '' }, undefined],
    [{ id: 'a\nb' }, undefined],
    [{ id: '\ud800' }, /a lone surrogate/],
    [{ when: null }, 'when is a text, not null: { id, when, payload }'],
    [{ when: new Date() }, 'when is a text, not an object'],
    [{ delayMs: 5 }, /^there is no property of a schedule delayMs; there are id, when, tz, missed/],
    [{ jitter: 5 }, /say jitterMs, in milliseconds$/],
    [{ timezone: 'UTC' }, /say tz$/],
    [{ pattern: '@daily' }, /say when$/],
  ]
  for (const [part, message] of refused) {
    const error = await queue.schedule({ id: 'a', when: FAR, ...part }).then(assert.fail, found => found)
    assert.ok(error instanceof InvalidArgumentError, `${error.stack}`)
    assert.deepEqual([error.operation, error.resource], ['schedule', 'q'], error.message)
    if (typeof message === 'string') assert.equal(error.message, message)
    if (message instanceof RegExp) assert.match(error.message, message)
  }
  assert.equal((await queue.stats()).schedules, 0)
})

test('what is no schedule, and what is no id', async () => {
  const queue = (await connect('memory:')).queue('q')
  const refused = [
    [() => queue.schedule('nightly', '0 3 * * *'), 'a schedule is an object, not "nightly": { id, when, payload }'],
    [() => queue.schedule(), 'a schedule is an object, not undefined: { id, when, payload }'],
    [() => queue.schedule({ id: 'a', when: FAR }, { tz: 'UTC' }), 'schedule takes one argument; the options stand in the schedule: { id, when, payload }'],
    [() => queue.listSchedules({ prefix: 'a' }), 'there is no option prefix; there are page, max'],
  ]
  for (const [call, message] of refused) await assert.rejects(call(), { code: INVALID, message })
  const verbs = {
    getSchedule: 'get_schedule', pauseSchedule: 'pause_schedule', resumeSchedule: 'resume_schedule',
    runSchedule: 'run_schedule', removeSchedule: 'remove_schedule'
  }
  for (const [verb, operation] of Object.entries(verbs)) {
    for (const bad of [undefined, null, 5, {}, '', 'a\nb', '\ud800', Symbol('x')]) {
      const promise = queue[verb](bad)
      assert.ok(promise instanceof Promise)
      await assert.rejects(promise, { code: INVALID, operation, resource: 'q' })
    }
  }
  assert.equal((await queue.stats()).schedules, 0)
})
