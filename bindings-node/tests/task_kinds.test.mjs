/** Kinds of tasks: declared with their handlers, enqueued by their payloads, and chosen by workers. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { Claim, QueueFullError, TaskKind, connect } from 'stanchion'
import { Clock, memoryClient } from 'stanchion/testing'
import { eventually, mortalRedis, onEveryStore, told } from './helpers/stores.mjs'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'
const DRAIN = { untilEmpty: true }

/** What is written to stderr meanwhile. */
function overheard(t) {
  const said = []
  t.mock.method(console, 'error', (...parts) => said.push(parts.map(String).join(' ')))
  return said
}

onEveryStore('each handler gets the payloads of its kind, and what it returns is the result', async ({ client }) => {
  const queue = client.queue('q')
  const seen = []
  const sendWelcome = queue.task('send-welcome', async (user, claim, { signal }) => {
    assert.ok(claim instanceof Claim && claim.kind === 'send-welcome' && !signal.aborted)
    seen.push(['welcome', user])
    return { sent: user.id }
  })
  const forget = queue.task('forget', (ids, claim) => { seen.push(['forget', ids, claim.attempt]) })
  const welcome = await sendWelcome.enqueue({ id: 42, name: 'Grüße' })
  const forgotten = await forget.enqueue([1, 2], { id: 'forget:1' })
  assert.deepEqual([forgotten.id, forgotten.outcome], ['forget:1', 'added'])
  const { kind, json, headers } = await queue.get(welcome.id)
  assert.deepEqual([kind, json, headers], ['send-welcome', { id: 42, name: 'Grüße' }, { 'content-type': 'application/json' }])
  const worker = queue.worker({ tasks: [sendWelcome, forget], concurrency: 2, ...DRAIN })
  const completed = []
  worker.on('completed', (task, result) => completed.push([task.kind, result]))
  assert.deepEqual(await worker.finished, { completed: 2, failed: 0, dead: 0, lost: 0 })
  assert.deepEqual(seen, [['welcome', { id: 42, name: 'Grüße' }], ['forget', [1, 2], 1]])
  assert.deepEqual(completed.sort(), [['forget', undefined], ['send-welcome', { sent: 42 }]])
  assert.deepEqual((await queue.result(welcome.id, { version: welcome.version })).json(), { sent: 42 })
  assert.equal((await queue.result(forgotten.id)).outcome, 'gone')
})

onEveryStore('any JSON value is a payload, and a result', async ({ client }) => {
  const queue = client.queue('q')
  const echo = queue.task('echo', payload => payload)
  const values = [null, 0, false, '', 'x', [], {}, { deep: [1, { a: null }] }, '\ud800']
  const ids = []
  for (const value of values) ids.push((await echo.enqueue(value)).id)
  await queue.worker({ tasks: [echo], ...DRAIN }).finished
  for (const [n, id] of ids.entries()) assert.deepEqual((await queue.result(id)).json(), values[n])
})

onEveryStore('what an enqueue says counts, then what the kind says', async ({ client }) => {
  const queue = client.queue('q')
  const options = {
    headers: { by: 'kind' }, delayMs: 60_000, priority: 3, maxAttempts: 4, expiresMs: 3_600_000, timeoutMs: 1_000, backoff: [5],
    keepResultMs: 9_000, onDuplicate: 'replace'
  }
  const one = queue.task('one', () => {}, options)
  options.priority = 9
  await one.enqueue(1, { id: 'a' })
  const first = await queue.get('a')
  assert.deepEqual(
    [first.state, first.priority, first.maxAttempts, first.timeoutMs, first.backoff, first.headers.by, first.expires instanceof Date],
    ['scheduled', 3, 4, 1_000, [5], 'kind', true])
  assert.equal((await one.enqueue(2, { id: 'a', delayMs: 0, priority: 7, backoff: { base: 5 }, timeoutMs: undefined })).outcome, 'replaced')
  const again = await queue.get('a')
  assert.deepEqual([again.state, again.json, again.priority, again.timeoutMs, again.backoff.base], ['ready', 2, 7, 1_000, 5])
  const due = new Date(Date.now() + 3_600_000)
  assert.deepEqual((await one.enqueue(3, { id: 'b', due })).due, due)
  const many = await queue.enqueueMany([one.task(4, { id: 'c' }), one.task(5), { id: 'other' }])
  assert.deepEqual(many.map(({ outcome }) => outcome), ['added', 'added', 'added'])
  assert.deepEqual([(await queue.get('c')).kind, (await queue.get('other')).kind], ['one', null])
})

test('what is wrong with a kind is said where it is declared', async () => {
  const queue = (await memoryClient()).queue('q')
  const wrong = [
    [() => queue.task('x'), 'the handler is a function, not undefined: task(kind, handler, options)'],
    [() => queue.task(() => {}), /^the handler is a function, not undefined/],
    [() => queue.task('x', { a: 1 }), /^the handler is a function, not an object/],
    [() => queue.task(5, () => {}), 'the kind is a text: task(kind, handler, options)'],
    [() => queue.task('', () => {}), /kind "" is not 1 to 128 bytes/],
    [() => queue.task('a\nb', () => {}), /is not 1 to 128 bytes without control characters$/],
    [() => queue.task('x', () => {}, { timeout: 5 }), /there is no option timeout; .*; say timeoutMs, in milliseconds$/],
    [() => queue.task('x', () => {}, { id: 'a' }), /there is no option id/],
    [() => queue.task('x', () => {}, { kind: 'y' }), /there is no option kind/],
    [() => queue.task('x', () => {}, { timeoutMs: 0 }), /timeout/],
    [() => queue.task('x', () => {}, { backoff: [] }), /backoff has 0 pauses/],
    [() => queue.task('x', () => {}, { maxAttempts: 0 }), /max_attempts/],
    [() => queue.task('x', () => {}, { onDuplicate: 'drop' }), /onDuplicate/],
    [() => queue.task('x', () => {}, null), /options are an object/],
    [() => new TaskKind('x'), 'a kind is made by queue.task(kind, handler, options)'],
  ]
  for (const [make, message] of wrong) assert.throws(make, { name: 'InvalidArgumentError', code: INVALID, message }, String(make))
  const kind = queue.task('x', () => {})
  assert.equal(inspect(kind), 'TaskKind { kind: "x", queue: "q" }')
})

test('what is wrong with an enqueue rejects', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  const one = queue.task('one', () => {})
  const wrong = [
    [() => one.enqueue(), 'the payload of a kind is a JSON value, not undefined; null says that there is none'],
    [() => one.enqueue(Buffer.from('{}')), 'the payload of a kind is a JSON value, not bytes'],
    [() => one.enqueue(new ArrayBuffer(2)), /not bytes$/],
    [() => one.enqueue(new Map()), /a Map or Set/],
    [() => one.enqueue({ n: 5n }), /a bigint/],
    [() => one.enqueue(1, { delay: 5 }), /there is no option delay; .*say delayMs/],
    [() => one.enqueue(1, { payload: 5 }), /there is no option payload/],
    [() => one.enqueue(1, { kind: 'other' }), /there is no option kind/],
    [() => one.enqueue(1, { id: 5 }), 'id is a text, not 5'],
    [() => one.enqueue(1, 'x'), /options are an object/],
    [() => one.enqueue(1, { delayMs: 5, due: new Date() }), /a delay or a due time, not both/],
  ]
  for (const [call, message] of wrong) {
    const promise = call()
    assert.ok(promise instanceof Promise)
    await assert.rejects(promise, { name: 'InvalidArgumentError', code: INVALID, message, operation: 'enqueue', resource: 'q' }, String(call))
  }
  assert.equal((await queue.stats()).enqueued, 0)
  await queue.configure({ maxLen: 1 })
  await one.enqueue(1)
  await assert.rejects(one.enqueue(2), QueueFullError)
})

test('what is wrong with a worker rejects', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  const one = queue.task('one', () => {})
  const wrong = [
    [{ tasks: [] }, 'tasks is an empty list: this worker would do nothing'],
    [{ tasks: one }, 'tasks are a list, not an object'],
    [{ tasks: undefined }, /^tasks are a list/],
    [{ tasks: [() => {}] }, 'tasks are what queue.task(kind, handler) gives, not a function'],
    [{ tasks: ['one'] }, /not "one"$/],
    [{ tasks: [one, queue.task('one', () => {})] }, 'there are two tasks of the kind "one"'],
    [{ tasks: [client.queue('other').task('two', () => {})] }, 'the task "two" is one of queue "other"'],
    [{ tasks: [one], handler: 5 }, 'the handler is a function, not 5: worker({ tasks, handler })'],
    [{ tasks: [one], concurrency: 'x' }, /^concurrency is/],
    [{ tasks: [one], wait: 5 }, /^there is no option wait/],
  ]
  for (const [options, message] of wrong) {
    await assert.rejects(
      queue.worker(options).finished, { name: 'InvalidArgumentError', code: INVALID, message, operation: 'work', resource: 'q' }, inspect(options))
  }
  // Another object of the same queue is the same queue.
  await client.queue('q').worker({ tasks: new Set([one]), ...DRAIN }).finished
})

test('an unknown kind goes back, for longer each time, and no attempt counts', async t => {
  overheard(t)
  const clock = new Clock()
  const queue = (await memoryClient({ clock })).queue('q')
  const known = queue.task('known', () => {})
  await queue.enqueue({ id: 'a', kind: 'of tomorrow', payload: 1, maxAttempts: 1 })
  const worker = queue.worker({ tasks: [known] })
  const seen = []
  worker.on('unknownKind', (task, delayMs) => seen.push([task.id, task.kind, delayMs]))
  worker.on('failed', () => assert.fail())
  for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const before = seen.length
    await eventually(() => seen.length > before)
    assert.deepEqual(seen.at(-1), ['a', 'of tomorrow', seconds * 1_000])
    const { state, attempts } = await queue.get('a')
    assert.deepEqual([state, attempts], ['scheduled', 0])
    clock.advance(seconds * 1_000 - 1)
    assert.equal((await queue.get('a')).state, 'scheduled')
    clock.advance(1)
  }
  await eventually(() => seen.length === 9)
  // Counted by kind, and none is one, too.
  await queue.enqueue({ id: 'b', kind: 'of today' })
  await queue.enqueue({ id: 'c' })
  await eventually(() => seen.length === 11)
  assert.deepEqual(seen.slice(-2), [['b', 'of today', 1_000], ['c', null, 1_000]])
  const { completed, failed, dead, lost } = await worker.close()
  assert.deepEqual([completed, failed, dead, lost], [0, 0, 0, 0])
  // Who has it, does it.
  clock.advance(60_000)
  const done = []
  const later = queue.task('of tomorrow', (payload, claim) => { done.push([claim.id, claim.attempt]) })
  await queue.worker({ tasks: [later, known], ...DRAIN }).finished
  assert.deepEqual(done, [['a', 1]])
})

test('an unknown kind that nobody listens for is written to stderr now and then', async t => {
  const said = overheard(t)
  const queue = (await memoryClient({ clock: new Clock() })).queue('q')
  for (let n = 0; n < 9; n++) await queue.enqueue({ id: `a${n}`, kind: 'new' })
  await queue.enqueue({ id: 'b' })
  await queue.worker({ tasks: [queue.task('old', () => {})], ...DRAIN }).finished
  assert.deepEqual(said.sort(), [
    'stanchion: task "a0" of queue "q" has the kind "new", which this worker does not have: put back for 1 s',
    'stanchion: task "a1" of queue "q" has the kind "new", which this worker does not have: put back for 2 s',
    'stanchion: task "a3" of queue "q" has the kind "new", which this worker does not have: put back for 8 s',
    'stanchion: task "a7" of queue "q" has the kind "new", which this worker does not have: put back for 60 s',
    'stanchion: task "b" of queue "q" has no kind: put back for 1 s',
  ])
})

onEveryStore('tasks without a kind have a handler, if one is given', async ({ client }) => {
  const queue = client.queue('q')
  const seen = []
  const one = queue.task('one', payload => { seen.push(payload) })
  await one.enqueue('a')
  await queue.enqueue({ id: 'b', payload: 'b' })
  await queue.enqueue({ id: 'c', kind: 'other', payload: 'c' })
  const worker = queue.worker({ tasks: [one], handler: claim => { seen.push(claim.json); return 'ignored' }, ...DRAIN })
  const unknown = told(worker, 'unknownKind')
  await worker.finished
  assert.deepEqual(seen.sort(), ['a', 'b'])
  assert.equal((await unknown)[0].id, 'c')
  assert.equal((await queue.result('b')).outcome, 'gone')
})

onEveryStore('a payload that is no JSON makes the task dead, and says why', async ({ client, t }) => {
  const said = overheard(t)
  const queue = client.queue('q')
  const one = queue.task('one', () => assert.fail())
  await queue.enqueue({ id: 'a', kind: 'one', payload: Buffer.from('{"to":') })
  await queue.enqueue({ id: 'b', kind: 'one' })
  assert.deepEqual(await queue.worker({ tasks: [one], ...DRAIN }).finished, { completed: 0, failed: 2, dead: 2, lost: 0 })
  for (const id of ['a', 'b']) {
    const { state, reason, attempts } = await queue.get(id)
    assert.match(reason, /^the payload of kind "one" is no JSON: Unexpected end of JSON input|^the payload of kind "one" is no JSON: .*JSON/)
    assert.deepEqual([state, attempts], ['dead', 1])
  }
  assert.match(said[0], /^stanchion: task "a" of queue "q" failed at attempt 1 of 20: it is dead\. Error: the payload of kind "one" is no JSON/)
  await queue.kick(['a'])
  const worker = queue.worker({ tasks: [one], ...DRAIN })
  const [failed, dead] = [told(worker, 'failed'), told(worker, 'dead')]
  await worker.finished
  const [task, error] = await failed
  assert.ok(task.id === 'a' && error.cause instanceof SyntaxError && (await dead)[1] === error)
})

onEveryStore('a handler that throws is tried again; one that settles has the last word', async ({ client, t }) => {
  overheard(t)
  const queue = client.queue('q')
  let runs = 0
  const flaky = queue.task('flaky', async (payload, claim) => {
    runs += 1
    if (claim.attempt === 1) throw new Error('not yet')
    return claim.attempt
  }, { backoff: [0] })
  const own = queue.task('own', async (verdict, claim) => {
    await claim[verdict]('mine')
    return 'not this'
  })
  await flaky.enqueue(null, { id: 'a' })
  await own.enqueue('ack', { id: 'b' })
  await own.enqueue('bury', { id: 'c' })
  const report = await queue.worker({ tasks: [flaky, own], ...DRAIN }).finished
  assert.deepEqual([report, runs], [{ completed: 2, failed: 2, dead: 1, lost: 0 }, 2])
  assert.equal((await queue.result('a')).json(), 2)
  assert.equal(`${(await queue.result('b')).result}`, 'mine')
  assert.deepEqual({ ...await queue.result('c') }, { outcome: 'dead', result: null, version: null, reason: 'mine' })
})

onEveryStore('a result that cannot be kept makes the task dead: the work was done', async ({ client, t }) => {
  overheard(t)
  const queue = client.queue('q')
  let runs = 0
  const results = { map: new Map([[1, 2]]), bigint: { n: 5n }, long: 'x'.repeat(2 ** 20), function: () => {} }
  const one = queue.task('one', name => { runs += 1; return results[name] }, { backoff: [0], maxAttempts: 3 })
  for (const name of Object.keys(results)) await one.enqueue(name, { id: name })
  const { dead } = await queue.worker({ tasks: [one], ...DRAIN }).finished
  assert.deepEqual([dead, runs], [4, 4])
  const reason = async id => (await queue.get(id)).reason
  assert.match(await reason('map'), /^the handler of kind "one" has given no result that can be kept: .*a Map or Set/)
  assert.match(await reason('bigint'), /a bigint \(write String\(n\), or Number\(n\)\) as "n"$/)
  assert.match(await reason('long'), /the result has more than 1048576 bytes \(1048578\)$/)
  assert.match(await reason('function'), /a result is undefined or a JSON value, not a function$/)
})

test('a generator is a failed attempt', async t => {
  const said = overheard(t)
  const queue = (await memoryClient({ clock: new Clock() })).queue('q')
  const one = queue.task('one', function* () { yield 1 })
  await one.enqueue(1, { id: 'a' })
  await queue.worker({ tasks: [one], ...DRAIN }).finished
  assert.equal((await queue.get('a')).state, 'scheduled')
  assert.match(said[0], /it is tried again\. TypeError: the handler returned a generator/)
})

test('a result waits for a store that is away for a while', async t => {
  overheard(t)
  const server = await mortalRedis(t)
  const client = await connect(server.url, { timeoutMs: 500 })
  const queue = client.queue('q')
  let runs = 0
  const one = queue.task('one', async () => {
    runs += 1
    server.process.kill('SIGSTOP')
    setTimeout(() => server.process.kill('SIGCONT'), 1_500)
    return 'done all the same'
  })
  const { id } = await one.enqueue(null)
  const worker = queue.worker({ tasks: [one] })
  await told(worker, 'completed')
  assert.equal((await queue.result(id)).json(), 'done all the same')
  assert.deepEqual([runs, (await worker.close()).completed], [1, 1])
  await client.close()
})

test('who declares and who works may be two programs, and the kinds of one may be used in several workers', async () => {
  const name = `kinds-${process.pid}`
  const [producer, consumer] = [await memoryClient({ name }), await memoryClient({ name })]
  const of = client => client.queue('mails').task('welcome', ({ to }) => `sent to ${to}`)
  const { id, version } = await of(producer).enqueue({ to: 'x' })
  const kind = of(consumer)
  const workers = [1, 2].map(() => consumer.queue('mails').worker({ tasks: [kind] }))
  const found = await producer.queue('mails').result(id, { version, waitMs: 20_000 })
  assert.equal(found.json(), 'sent to x')
  await Promise.all(workers.map(worker => worker.close()))
})
