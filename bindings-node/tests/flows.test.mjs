/** Flows, as the package has them. What they do is in the scenarios. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlowInput, InvalidArgumentError, QueueFullError, StanchionError, chain } from 'stanchion'
import { memoryClient } from 'stanchion/testing'
import { onEveryStore } from './helpers/stores.mjs'

const HOUR = 3_600_000

/** What it looks like in a queue; the rest is as by default. */
const node = (name, state, rest = {}) =>
  ({ name, state, queue: null, after: [], afterEnd: [], afterFailure: [], afterAll: null, ...rest })

/** The call is rejected with a typed error, which says what was called and why. */
async function refuses(called, operation, message) {
  const error = await called.then(assert.fail, found => found)
  assert.ok(error instanceof InvalidArgumentError, `${error.stack}`)
  assert.deepEqual([error.operation, error.resource], [operation, 'q'], error.message)
  if (typeof message === 'string') assert.equal(error.message, message)
  else assert.match(error.message, message)
}

onEveryStore('a flow with inputs, from end to end', async ({ client }) => {
  const queue = client.queue('q')
  const flow = function* () {
    yield { id: 'a', payload: { n: 2 }, key: 'k' }
    yield { id: 'b', queue: 'other', maxAttempts: 1 }
    yield { id: 'join', after: 'a', afterEnd: new Set(['b']) }
    yield { id: 'alarm', afterFailure: ['a'] }
    yield { id: 'last', afterAll: 'finally' }
  }
  assert.equal(await queue.enqueueFlow('f', flow()), true)
  assert.equal(await queue.enqueueFlow('f', [{ id: 'a' }]), false)
  const { created, ...running } = await queue.getFlow('f')
  assert.ok(created instanceof Date && Math.abs(created - Date.now()) < HOUR)
  assert.deepEqual(running, {
    id: 'f', state: 'running', ended: null, counts: { waiting: 3, put: 2 },
    nodes: [
      node('a', 'put'), node('b', 'put', { queue: 'other' }), node('join', 'waiting', { after: ['a'], afterEnd: ['b'] }),
      node('alarm', 'waiting', { afterFailure: ['a'] }), node('last', 'waiting', { afterAll: 'finally' })]
  })

  const [a] = await queue.claim()
  assert.deepEqual([a.id, a.flow, a.json, a.key, await a.inputs()], ['f/a', 'f', { n: 2 }, 'k', []])
  await a.ack('{"n":3}')
  const [b] = await client.queue('other').claim()
  assert.deepEqual([b.id, b.flow], ['f/b', 'f'])
  await b.bury('no')
  // Whoever claims from its queue sends word home.
  assert.deepEqual(await client.queue('other').claim(), [])

  const [join] = await queue.claim({ waitMs: 10_000 })
  const [of, dead] = await join.inputs()
  assert.ok(of instanceof FlowInput && Buffer.isBuffer(of.result))
  assert.deepEqual([of.node, of.state, `${of.result}`, of.json()], ['a', 'done', '{"n":3}', { n: 3 }])
  assert.deepEqual([join.id, dead.node, dead.state, dead.result], ['f/join', 'b', 'dead', null])
  assert.throws(() => dead.json(), error => error instanceof StanchionError && /^there is no result: node "b" is dead$/.test(error.message))
  await join.ack('')
  const [last] = await queue.claim({ waitMs: 10_000 })
  assert.deepEqual((await last.inputs()).map(({ node, state, result }) => [node, state, result && `${result}`]), [
    ['a', 'done', '{"n":3}'], ['b', 'dead', null], ['join', 'done', ''], ['alarm', 'unneeded', null]])
  await last.ack()
  assert.deepEqual(await queue.claim(), [])
  const { state, ended, counts } = await queue.getFlow('f')
  assert.deepEqual([state, counts], ['failed', { done: 3, dead: 1, unneeded: 1 }])
  assert.ok(ended instanceof Date && ended >= created)
})

onEveryStore('a chain of kinds, worked on', async ({ client }) => {
  const queue = client.queue('q')
  const first = queue.task('first', n => ({ n: n + 1 }))
  const second = queue.task('second', async (_, claim) => {
    const [input] = await claim.inputs()
    return input.json().n * 2
  })
  await queue.enqueueFlow('f', chain([first.task(4), { ...second.task(null), id: 'end' }]))
  await queue.worker({ tasks: [first, second], untilEmpty: true }).finished
  assert.equal((await queue.result('f/end')).json(), 10)
  assert.equal((await queue.getFlow('f')).state, 'done')
})

onEveryStore('nodes are added, and a flow is cancelled and tried again', async ({ client }) => {
  const queue = client.queue('q')
  for (const verb of ['cancelFlow', 'retryFlow']) assert.equal(await queue[verb]('f'), false)
  assert.equal(await queue.addToFlow('f', [{ id: 'x' }]), false)
  assert.equal(await queue.getFlow('f'), null)
  await queue.enqueueFlow('f', [{ id: 'a', delayMs: HOUR }])
  assert.equal(await queue.addToFlow('f', chain([{ id: 'b', after: 'a' }, { id: 'c' }])), true)
  assert.deepEqual((await queue.getFlow('f')).nodes.map(({ name, after }) => [name, after]), [['a', []], ['b', ['a']], ['c', ['b']]])
  assert.equal(await queue.cancelFlow('f'), true)
  assert.deepEqual(await queue.claim(), [])
  assert.deepEqual((await queue.getFlow('f')).counts, { cancelled: 3 })
  assert.equal(await queue.retryFlow('f'), true)
  assert.equal((await queue.getFlow('f')).state, 'running')
})

onEveryStore('flows, page by page', async ({ client }) => {
  const queue = client.queue('q')
  assert.deepEqual(await queue.listFlows(), { flows: [], next: null })
  for (const id of ['a', 'b', 'c']) await queue.enqueueFlow(id, [{ id: 'x' }])
  const found = []
  let page
  do {
    const { flows, next } = await queue.listFlows({ max: 2, page })
    found.push(...flows)
    assert.ok(found.length <= 3, 'the pages do not end')
    page = next
  } while (page !== null)
  assert.deepEqual(found.map(({ id, state, ended, counts, nodes }) => [id, state, ended, counts, nodes]),
    ['c', 'b', 'a'].map(id => [id, 'running', null, { put: 1 }, []]))
  for (const bad of [null, 5, 'x', { from: 'x' }, { page: 5 }, { page: 'x' }, { max: 0 }, { max: '2' }]) {
    await assert.rejects(queue.listFlows(bad), { name: 'InvalidArgumentError', operation: 'list_flows', resource: 'q' })
  }
})

onEveryStore('a task of no flow has no inputs', async ({ client }) => {
  const queue = client.queue('q')
  await queue.enqueue({ id: 'alone' })
  const [claim] = await queue.claim()
  assert.deepEqual([claim.flow, await claim.inputs()], [null, []])
  assert.throws(() => { claim.flow = 'f' }, TypeError)
  await queue.configure({ maxLen: 1 })
  await assert.rejects(queue.enqueueFlow('f', [{ id: 'a' }]), error =>
    error instanceof QueueFullError && error.operation === 'enqueue_flow' && error.resource === 'q')
})

test('what is no node is refused before anything is sent', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  const names = 'is the name of a node, or a list of names'
  const refused = [
    ['a', 'a node is an object, not "a": { id, payload, after }'],
    [null, 'a node is an object, not null: { id, payload, after }'],
    [{ id: 5 }, 'id is a text, not 5'],
    [{ delay: 5 }, /^there is no property of a node delay; there are id, .*afterAll; say delayMs, in milliseconds$/],
    [{ dependsOn: 'a' }, /; say after$/],
    [{ queueName: 'a' }, /; say queue$/],
    [{ after_end: 'a' }, /^there is no property of a node after_end/],
    [{ then: true }, /^there is no property of a node then/],
    [{ queue: 5 }, 'queue is a text, not 5'],
    [{ afterAll: true }, "afterAll is 'then', 'failed' or 'finally', not true"],
    [{ afterAll: 'success' }, `afterAll is 'then', 'failed' or 'finally', not "success"`],
    [{ after: ['a', '\ud800'] }, /a lone surrogate/],
    [{ priority: 256 }, 'priority is not between 0 and 255'],
    [{ payload: 5n }, /^the payload is bytes or a JSON value/],
    [{ due: 1_800_000_000 }, /looks like seconds$/]
  ]
  for (const edge of ['after', 'afterEnd', 'afterFailure']) {
    for (const bad of [5, true, {}, Symbol('x'), () => {}]) refused.push([{ [edge]: bad }, new RegExp(`^${edge} ${names}, not `)])
    for (const bad of [5, null]) refused.push([{ [edge]: ['a', bad] }, `${edge} ${names}; one of these is ${bad}`])
  }
  for (const [bad, message] of refused) {
    await refuses(queue.enqueueFlow('f', [{ id: 'a' }, bad]), 'enqueue_flow', message)
    await refuses(queue.addToFlow('f', [{ id: 'a' }, bad]), 'add_to_flow', message)
  }
  await refuses(queue.addToFlow('f', [{ id: 'a', afterAll: 'then' }]), 'add_to_flow', /^nodes that wait for all come with the flow/)
  for (const [bad, message] of [
    [{ queue: '{' }, /name/], [{ after: 'none' }, /is after "none", which the flow has not$/], [{ id: 'a' }, /is in the flow twice$/],
    [{ onDuplicate: 'replace' }, /on_duplicate is not for nodes/]]) {
    await refuses(queue.enqueueFlow('f', [{ id: 'a' }, bad]), 'enqueue_flow', message)
  }
  assert.deepEqual(await queue.listFlows(), { flows: [], next: null })
  assert.equal((await queue.stats()).enqueued, 0)
  await client.close()
})

test('what is no list of nodes, and what is no id', async () => {
  const client = await memoryClient()
  const queue = client.queue('q')
  for (const bad of [undefined, null, 5, 'abc', {}, { id: 'a' }]) {
    await assert.rejects(queue.enqueueFlow('f', bad), /^InvalidArgumentError: nodes are a list/)
    await assert.rejects(queue.addToFlow('f', bad), /^InvalidArgumentError: nodes are a list/)
    assert.throws(() => chain(bad), /^InvalidArgumentError: tasks are a list/)
  }
  for (const bad of [undefined, null, 5, {}, '', 'a\nb', '\ud800', Symbol('x')]) {
    for (const call of [
      () => queue.enqueueFlow(bad, [{ id: 'a' }]), () => queue.addToFlow(bad, [{ id: 'a' }]), () => queue.getFlow(bad),
      () => queue.cancelFlow(bad), () => queue.retryFlow(bad)]) {
      await assert.rejects(call(), { name: 'InvalidArgumentError', resource: 'q' })
    }
  }
  const error = new Error('of the getter')
  await assert.rejects(queue.enqueueFlow('f', [{ get after() { throw error } }]), found => found === error)
  assert.deepEqual((await queue.listFlows()).flows, [])
  await client.close()
})

test('a chain gives nodes that come one after the other', () => {
  const given = [{ id: 'a', payload: 1 }, { id: 'b', after: 'x', queue: 'other' }, { id: 'c', after: ['y', 'z'] }]
  const before = structuredClone(given)
  assert.deepEqual(chain(given), [
    { id: 'a', payload: 1, after: [] }, { id: 'b', after: ['a', 'x'], queue: 'other' }, { id: 'c', after: ['b', 'y', 'z'] }])
  assert.deepEqual(given, before)
  assert.deepEqual(chain([]), [])
  const [first, second] = chain(new Set([{ payload: 1 }, { id: undefined }]))
  assert.ok(first.id.length > 20 && second.id !== first.id)
  assert.deepEqual(second.after, [first.id])
  for (const bad of [5, null, 'a', { delay: 5 }, { after: 5 }, { after: [5] }, { id: 5 }]) assert.throws(() => chain([bad]), InvalidArgumentError)
})
