/** What stands around the handlers of a worker. */

import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { Claim, LeaseExpiredError, connect } from 'stanchion'
import { memoryClient } from 'stanchion/testing'
import { eventually, onEveryStore, told } from './helpers/stores.mjs'

const INVALID = 'ERR_STANCHION_INVALID_ARGUMENT'
const DRAIN = { untilEmpty: true }

/** One that notes when it begins, and what it has got. */
function noting(notes, name, change = got => got) {
  return async (claim, next) => {
    notes.push(`${name} begins ${claim.id}`)
    const got = await next()
    notes.push(`${name} got ${JSON.stringify(got)}`)
    return change(got)
  }
}

/** The worker's report, and what it has told of the task. */
async function run(queue, handler, options) {
  const heard = []
  const worker = queue.worker(handler, { ...DRAIN, ...options })
  worker.on('completed', (task, result) => heard.push(['completed', result]))
  worker.on('failed', (task, error) => heard.push(['failed', error]))
  return [await worker.finished, heard]
}

onEveryStore('the first is outermost, and what it returns is what the handler has returned', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const notes = []
  const around = ['outer', 'middle', 'inner'].map(name => noting(notes, name, n => n + 1))
  const [report, heard] = await run(queue, () => { notes.push('handler'); return 1 }, { around: new Set(around) })
  assert.deepEqual(report, { completed: 1, failed: 0, dead: 0, lost: 0 })
  assert.deepEqual(heard, [['completed', 4]])
  assert.deepEqual(notes, [
    'outer begins a', 'middle begins a', 'inner begins a', 'handler', 'inner got 1', 'middle got 2', 'outer got 3'])
})

test('it is one function, or a list, or nothing', async () => {
  const queue = (await memoryClient()).queue('q')
  const notes = []
  for (const around of [noting(notes, 'one', () => 'more'), [], undefined]) {
    await queue.enqueue({ id: 'a' })
    const [, heard] = await run(queue, claim => claim.id, { around })
    assert.deepEqual(heard, [['completed', typeof around === 'function' ? 'more' : 'a']])
  }
  assert.deepEqual(notes, ['one begins a', 'one got "a"'])
  // It need not be async.
  await queue.enqueue({ id: 'a' })
  assert.deepEqual((await run(queue, () => 5, { around: (claim, next) => next() }))[1], [['completed', 5]])
})

test('it sees the claim, and the handler runs in its context', async () => {
  const queue = (await memoryClient()).queue('q')
  await queue.enqueue({ id: 'a', payload: { n: 1 } })
  const tenant = new AsyncLocalStorage()
  const seen = []
  await run(queue, async (claim, { signal }) => {
    seen.push(tenant.getStore(), claim, signal instanceof AbortSignal)
  }, {
    around: (claim, next) => {
      assert.ok(claim instanceof Claim && claim.json.n === 1)
      seen.push(claim)
      return tenant.run('t7', next)
    }
  })
  assert.deepEqual([seen[1], seen[3], seen[2] === seen[0]], ['t7', true, true])
})

onEveryStore('of a handler of a kind, what it returns is the result', async ({ client }) => {
  const queue = client.queue('q')
  const notes = []
  const send = queue.task('send', ({ n }) => ({ sent: n }))
  const nothing = queue.task('nothing', () => {})
  const around = [noting(notes, 'it', got => got && { ...got, more: [1] })]
  await send.enqueue({ n: 7 }, { id: 'send' })
  await nothing.enqueue(null, { id: 'nothing' })
  assert.equal((await queue.worker({ tasks: [send, nothing], around, ...DRAIN }).finished).completed, 2)
  assert.deepEqual((await queue.result('send')).json(), { sent: 7, more: [1] })
  assert.equal((await queue.result('nothing')).outcome, 'gone')
  assert.deepEqual(notes.sort(), ['it begins nothing', 'it begins send', 'it got undefined', 'it got {"sent":7}'])
  // What can be none ends the task, as if the handler had returned it.
  await send.enqueue({ n: 8 }, { id: 'bad' })
  const worker = queue.worker({ tasks: [send], around: noting([], 'it', () => 5n), ...DRAIN })
  worker.on('failed', () => {})
  assert.equal((await worker.finished).dead, 1)
  assert.match((await queue.get('bad')).reason, /^the handler of kind "send" has given no result that can be kept/)
})

test('it stands around handlers, and nothing else', async () => {
  const queue = (await memoryClient()).queue('q')
  const notes = []
  const send = queue.task('send', n => { notes.push(n) })
  await queue.enqueueMany([
    { id: 'plain' }, { id: 'newer', kind: 'newer' }, { id: 'misfit', kind: 'send', payload: Buffer.from('{') }])
  await send.enqueue(1, { id: 'good' })
  const worker = queue.worker({
    tasks: [send], handler: () => { notes.push('plain') }, ...DRAIN,
    around: async (claim, next) => { notes.push(claim.id); return await next() }
  })
  worker.on('failed', () => {})
  worker.on('unknownKind', () => {})
  const { completed, dead } = await worker.finished
  assert.deepEqual([completed, dead], [2, 1])
  assert.deepEqual(notes, ['plain', 'plain', 'good', 1])
})

onEveryStore('what it throws fails the task', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueueMany([{ id: 'early', maxAttempts: 1 }, { id: 'late', maxAttempts: 1 }])
  const handled = []
  const [report, heard] = await run(queue, claim => { handled.push(claim.id) }, {
    around: async (claim, next) => {
      if (claim.id === 'early') throw new RangeError('no tenant')
      await next()
      throw new TypeError('no commit')
    }
  })
  assert.deepEqual([report.dead, handled], [2, ['late']])
  assert.deepEqual(heard.map(([what, { name, message }]) => [what, name, message]), [
    ['failed', 'RangeError', 'no tenant'], ['failed', 'TypeError', 'no commit']])
  assert.equal((await queue.get('early')).reason, 'RangeError: no tenant')
  assert.equal((await queue.get('late')).reason, 'TypeError: no commit')
})

onEveryStore('what the handler throws goes through it', async ({ client }) => {
  const queue = client.queue('q')
  const notes = []
  const rolledBack = async (claim, next) => {
    try {
      return await next()
    } catch (error) {
      notes.push(`rolled back: ${error.message}`)
      throw error
    }
  }
  const quietly = (claim, next) => next().catch(() => 'quiet')
  await queue.enqueue({ id: 'a', maxAttempts: 1 })
  // Also what is thrown before there is a promise.
  const handler = claim => { throw new Error(claim.id) }
  assert.equal((await run(queue, handler, { around: rolledBack }))[0].dead, 1)
  assert.equal((await queue.get('a')).reason, 'Error: a')
  await queue.enqueue({ id: 'b', maxAttempts: 1 })
  assert.deepEqual((await run(queue, handler, { around: [quietly, rolledBack] }))[1], [['completed', 'quiet']])
  assert.deepEqual(notes, ['rolled back: a', 'rolled back: b'])
})

onEveryStore('without a call of next, the task is done without its handler', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const never = () => assert.fail('it was not to be called')
  assert.deepEqual((await run(queue, never, { around: () => 'known already' }))[1], [['completed', 'known already']])
  const send = queue.task('send', never)
  await send.enqueue(1, { id: 'b' })
  await queue.worker({ tasks: [send], around: () => 'known already', ...DRAIN }).finished
  assert.equal((await queue.result('b')).json(), 'known already')
  await queue.enqueue({ id: 'c' })
  const [{ dead }] = await run(queue, never, { around: claim => claim.bury('not wanted') })
  assert.deepEqual([dead, (await queue.get('c')).reason], [1, 'not wanted'])
})

test('a generator that nobody runs fails its task, also if nobody looks at it', async () => {
  const queue = (await memoryClient()).queue('q')
  const send = queue.task('send', function * () {})
  const around = [async (claim, next) => { await next() }]
  await queue.enqueue({ id: 'handler', maxAttempts: 1 })
  assert.equal((await run(queue, function * () {}, { around }))[0].dead, 1)
  await queue.enqueue({ id: 'around', maxAttempts: 1 })
  assert.equal((await run(queue, () => {}, { around: async function * () {} }))[0].dead, 1)
  await send.enqueue(1, { id: 'kind', maxAttempts: 1 })
  const worker = queue.worker({ tasks: [send], around, ...DRAIN })
  worker.on('failed', () => {})
  assert.equal((await worker.finished).dead, 1)
  for (const id of ['handler', 'around', 'kind']) assert.match((await queue.get(id)).reason, /a generator, which nobody runs$/)
})

test('what is no function is refused before anything is claimed', async () => {
  const queue = (await connect('memory:')).queue('q')
  await queue.enqueue({ id: 'a' })
  const send = queue.task('send', () => {})
  const wrong = [[5, '5'], ['text', '"text"'], [null, 'null'], [{}, 'an object'], [[() => {}, undefined], 'undefined']]
  for (const [around, what] of wrong) {
    const message = `around is a function, not ${what}: worker(handler, { around: async (claim, next) => await next() })`
    const expected = { name: 'InvalidArgumentError', code: INVALID, operation: 'work', resource: 'q', message }
    await assert.rejects(queue.worker(() => {}, { around, ...DRAIN }).finished, expected)
    await assert.rejects(queue.worker({ tasks: [send], around, ...DRAIN }).finished, expected)
  }
  await assert.rejects(queue.worker(() => {}, { middleware: [] }).finished, /there is no option middleware; .*; say around$/)
  assert.equal((await queue.get('a')).attempts, 0)
})

onEveryStore('the end of a run goes through it', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a', maxAttempts: 1 })
  const seen = []
  const worker = queue.worker(async (task, { signal }) => {
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
    signal.throwIfAborted()
  }, {
    timeoutMs: 200,
    around: async (claim, next) => {
      try {
        return await next()
      } catch (error) {
        seen.push(error instanceof LeaseExpiredError, claim.signal.aborted, claim.loss)
        throw error
      }
    }
  })
  await told(worker, 'lost')
  await worker.close()
  assert.deepEqual(seen, [true, true, 'timeout'])
  await eventually(async () => (await queue.get('a')).state === 'dead')
  assert.equal((await queue.get('a')).reason, 'timeout')
})

onEveryStore('its own time counts', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a', maxAttempts: 1 })
  const seen = []
  const worker = queue.worker((task, { signal }) => { seen.push(task.loss, signal.aborted) }, {
    timeoutMs: 200,
    around: async ({ signal }, next) => {
      if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve))
      return await next()
    }
  })
  await told(worker, 'lost')
  await worker.close()
  assert.deepEqual(seen, ['timeout', true])
})

onEveryStore('the abort of a worker goes through it; its task goes back uncounted', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'a' })
  const controller = new AbortController()
  const seen = []
  const worker = queue.worker(async (task, { signal }) => {
    queueMicrotask(() => controller.abort(new Error('enough')))
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }, { signal: controller.signal, around: (claim, next) => next().finally(() => seen.push('end')) })
  const { failed, dead } = await worker.finished
  assert.deepEqual([failed, dead, seen], [0, 0, ['end']])
  const { state, attempts } = await queue.get('a')
  assert.deepEqual([state, attempts], ['ready', 0])
})
