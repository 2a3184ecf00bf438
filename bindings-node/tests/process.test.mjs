/** The life of a process: what keeps it alive, how it ends, threads, and copies of the package. */

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker as Thread } from 'node:worker_threads'
import { connect } from 'stanchion'
import { eventually, onSharedStores, redisUrl } from './helpers/stores.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const LIMIT_MS = 20_000
/** How long the end of a process may be delayed by what is released then. */
const FAREWELL_MS = 500

/** Runs a script in a process of its own: its exit code (or signal), and its output. */
function script(code, ...values) {
  return new Promise(resolve => {
    execFile(
      process.execPath, ['--input-type=module', '-e', code, ...values],
      { cwd: HERE, timeout: LIMIT_MS, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? error.signal, stdout, stderr }))
  })
}

const OPEN = "import { connect } from 'stanchion'; const client = await connect(process.argv[1]);"

onSharedStores('an idle client does not keep the process alive, also with a lease and its signal', async ({ url }) => {
  assert.deepEqual(await script(`${OPEN} await client.lock('a').tryAcquire(); console.log('ok')`, url),
    { code: 0, stdout: 'ok\n', stderr: '' })
  assert.deepEqual(await script(`${OPEN} globalThis.lease = await client.lock('b').acquire();
    lease.signal.addEventListener('abort', () => {}); console.log('ok')`, url), { code: 0, stdout: 'ok\n', stderr: '' })
})

onSharedStores('a call that is waited for keeps it alive, a worker too', async ({ client, url }) => {
  const lease = await client.lock('a').acquire()
  const waits = script(
    `${OPEN} const lease = await client.lock('a').acquire(); console.log('got'); await lease.release()`, url)
  await eventually(async () => (await client.lock('a').holder()).waiters === 1)
  await lease.release()
  assert.deepEqual(await waits, { code: 0, stdout: 'got\n', stderr: '' })
  const worked = script(
    `${OPEN} const worker = client.queue('q').worker(task => { console.log(task.id); worker.close() })`, url)
  await client.queue('q').enqueue({ id: 'task' })
  assert.deepEqual(await worked, { code: 0, stdout: 'task\n', stderr: '' })
})

/** How long the end of the process took, which is given FAREWELL_MS: more says that the machine stood still. */
async function farewell(body, end, url) {
  const { stdout } = await script(`${OPEN}
    let began
    process.prependListener('exit', () => { began = performance.now() })
    process.on('exit', () => console.log(performance.now() - began))
    ${body}
    ${end}`, url)
  const took = Number.parseFloat(stdout)
  assert.ok(took > 0, stdout)
  return took
}

/** Plays it under a new name until the machine has not stood still. */
async function inTime(play) {
  for (let tries = 0; tries < 3; tries++) {
    if (await play(`try${tries}`) < FAREWELL_MS) return `try${tries}`
  }
  return assert.fail('the farewell took all of its time, again and again')
}

onSharedStores('calls that are on their way when the process ends leave nothing behind', async ({ client, url }) => {
  for (const [number, end] of ['process.exit()', "throw new Error('the end')"].entries()) {
    // Those that have come to a result meanwhile are not told of it: the loop does not turn.
    for (const blocked of [0, 5, 50]) {
      const name = await inTime(async tried => {
        const name = `${tried}-${number}-${blocked}`
        await client.queue(name).enqueueMany(Array.from({ length: 20 }, (_, n) => ({ id: `t${n}` })))
        return farewell(`
          for (let n = 0; n < 20; n++) {
            client.lock('${name}-' + n).acquire().catch(() => {})
            client.queue('${name}').claim().catch(() => {})
          }
          const until = Date.now() + ${blocked}
          while (Date.now() < until);`, end, url)
      }) + `-${number}-${blocked}`
      const left = async () => (await client.locks()).names.filter(lock => lock.startsWith(`${name}-`))
      await eventually(async () => (await left()).length === 0, 'locks are left')
      await eventually(async () => (await client.queue(name).stats()).claimed === 0, 'claims are left')
    }
  }
})

onSharedStores('process.exit in the middle of everything', async ({ url }) => {
  const began = Date.now()
  const found = await script(`${OPEN}
    await client.lock('a').acquire()
    client.lock('a').acquire().catch(() => {})
    client.queue('q').claim({ waitMs: 60_000 })
    client.queue('q').worker(() => new Promise(() => {}), { concurrency: 5 })
    await client.queue('q').enqueueMany([{}, {}, {}])
    for (let n = 0; n < 200; n++) client.lock('b' + n).acquire()
    setTimeout(() => { console.log('out'); process.exit(7) }, 20)`, url)
  assert.deepEqual(found, { code: 7, stdout: 'out\n', stderr: '' })
  assert.ok(Date.now() - began < LIMIT_MS)
})

for (const [how, end] of [
  ['by itself', ''], ['by process.exit', 'process.exit()'], ['by an error', "throw new Error('the end')"],
]) {
  onSharedStores(`a process that ends ${how} releases what it holds`, async ({ client, url }) => {
    const name = await inTime(tried => farewell(`
      await client.lock('${tried}').acquire()
      globalThis.kept = await client.lock('kept ${tried}').acquire()
      globalThis.told = kept.signal`, end, url))
    const { names } = await client.locks()
    assert.deepEqual(names.filter(lock => lock.endsWith(name)), [])
  })
}

onSharedStores('a close waits until aborted calls have left the line', async ({ client, url }) => {
  const lease = await client.lock('a').acquire()
  const { code, stderr } = await script(`${OPEN}
    const gives = new AbortController()
    const waits = Array.from({ length: 200 }, () => client.lock('a').acquire({ signal: gives.signal }))
    while ((await client.lock('a').holder()).waiters < 200);
    gives.abort()
    await Promise.allSettled(waits)
    await client.close()
    process.kill(process.pid, 'SIGKILL')`, url)
  assert.deepEqual([code, stderr], ['SIGKILL', ''])
  assert.equal((await client.lock('a').holder()).waiters, 0)
  await lease.release()
})

onSharedStores('an uncaught error ends the process as usual', async ({ url }) => {
  const { code, stderr } = await script(`${OPEN} client.lock('a').hold(() => { throw new Error('of the body') })`, url)
  assert.equal(code, 1)
  assert.match(stderr, /of the body/)
})

const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { connect } = require('stanchion')
  connect(workerData.url).then(async client => {
    await client.lock('all').hold(lease => lease.fence)
    parentPort.postMessage('ready')
    if (workerData.ends) return
    for (;;) {
      await Promise.race([
        client.lock('one').acquire(), client.queue('q').claim({ waitMs: 60_000 }),
        ...Array.from({ length: 20 }, (_, n) => client.lock('t' + workerData.number + n).hold(() => {})),
      ])
    }
  })`

function thread(data) {
  const made = new Thread(THREAD, { eval: true, workerData: data })
  const ready = new Promise((resolve, reject) => {
    made.once('message', resolve)
    made.once('error', reject)
  })
  return { made, ready }
}

onSharedStores('many threads at once, which end by themselves', async ({ url }) => {
  const threads = Array.from({ length: 8 }, (_, number) => thread({ url, number, ends: true }))
  const codes = threads.map(({ made }) => new Promise(resolve => made.once('exit', resolve)))
  await Promise.all(threads.map(({ ready }) => ready))
  assert.deepEqual(await Promise.all(codes), Array(8).fill(0))
})

onSharedStores('threads that are terminated in the middle of calls', async ({ client, url }) => {
  for (let round = 0; round < 3; round++) {
    const threads = Array.from({ length: 6 }, (_, number) => thread({ url, number }))
    await Promise.all(threads.map(({ ready }) => ready))
    await Promise.all(threads.map(({ made }) => made.terminate()))
  }
  await client.lock('afterwards').hold(() => {})
})

test('terminated while they begin', async () => {
  const url = await redisUrl()
  for (let round = 0; round < 20; round++) {
    const { made, ready } = thread({ url, number: round })
    ready.catch(() => {})
    if (round % 2 === 0) await new Promise(resolve => setTimeout(resolve, round * 3))
    await made.terminate()
  }
})

test('cluster: a lock among processes', async () => {
  const { code, stdout, stderr } = await script(`
    import cluster from 'node:cluster'
    import { connect } from 'stanchion'
    const url = process.argv[1] ?? process.env.URL
    const client = await connect(url, { lockPrefix: 'cluster:' })
    if (cluster.isPrimary) {
      // The primary has used the library before it forks.
      await client.lock('a').hold(() => {})
      for (let n = 0; n < 4; n++) cluster.fork({ URL: url })
      let sum = 0
      cluster.on('message', (_, fences) => { sum += new Set(fences).size })
      cluster.on('exit', (_, code) => { if (code !== 0) process.exit(2) })
      // Not when the last one has gone: what it said may be heard after its end.
      process.once('beforeExit', () => console.log(sum))
    } else {
      const fences = []
      for (let n = 0; n < 10; n++) await client.lock('a').hold(lease => { fences.push(String(lease.fence)) })
      process.send(fences, () => process.exit(0))
    }`, await redisUrl())
  assert.deepEqual([code, stdout, stderr], [0, '40\n', ''])
})

const copies = mkdtempSync(join(tmpdir(), 'stanchion-copies-'))
after(() => rmSync(copies, { recursive: true, force: true }))

test('loaded twice, from two places', async () => {
  for (const copy of ['one', 'two']) {
    for (const name of ['stanchion', '@stanchion']) {
      cpSync(join(HERE, '..', 'node_modules', name), join(copies, copy, 'node_modules', name), { recursive: true })
    }
  }
  const { code, stdout, stderr } = await script(`
    import { createRequire } from 'node:module'
    const [one, two] = ['one', 'two'].map(name => createRequire(process.argv[1] + '/' + name + '/x')('stanchion'))
    if (one === two) throw new Error('it is the same copy')
    const url = process.argv[2]
    const [first, second] = [await one.connect(url), await two.connect(url)]
    const lease = await first.lock('copies').acquire()
    console.log(await second.lock('copies').tryAcquire())
    await lease.release()
    const next = await second.lock('copies').acquire()
    console.log(next.fence > lease.fence)
    await next.release()`, copies, await redisUrl())
  assert.deepEqual([code, stdout, stderr], [0, 'null\ntrue\n', ''])
})

test('killed: its lock is free when the lease has ended, its task comes again', async () => {
  const url = `${await redisUrl()}/?lock_prefix=kill:&queue_prefix=killq:`
  const client = await connect(url)
  await client.queue('q').enqueue({ id: 'a' })
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${OPEN}
    globalThis.kept = [await client.lock('a').acquire({ ttlMs: 3_000, renew: true }),
      await client.queue('q').claim({ leaseMs: 3_000, renew: true })]
    console.log('ready'); setInterval(() => {}, 1_000)`, url], { cwd: HERE, stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise(resolve => child.stdout.once('data', resolve))
  const busy = await client.lock('a').isLocked()
  child.kill('SIGKILL')
  assert.ok(busy)
  await (await client.lock('a').acquire()).release()
  const [claim] = await client.queue('q').claim({ waitMs: 10_000 })
  assert.deepEqual([claim.id, claim.attempt], ['a', 2])
  await claim.ack()
})

onSharedStores('SIGTERM: handlers have their grace, and their tasks go back', async ({ client, url }) => {
  const queue = client.queue('q')
  await queue.enqueueMany([{ id: 'a' }, { id: 'b' }])
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${OPEN}
    const worker = client.queue('q').worker(async (task, { signal }) => {
      console.log('begun')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }, { leaseMs: 600_000, graceMs: 200 })
    process.once('SIGTERM', () => worker.close())
    console.log((await worker.finished).failed)`, url], { cwd: HERE, stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise(resolve => child.stdout.once('data', resolve))
  const ended = new Promise(resolve => child.once('exit', resolve))
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
  const { tasks } = await queue.list('ready')
  assert.deepEqual(tasks.map(({ id, attempts }) => [id, attempts]).sort(), [['a', 0], ['b', 0]])
})

onSharedStores('garbage: a lease goes on, a claim counts as failed', async ({ client, url }) => {
  await client.queue('q').enqueue({ id: 'a' })
  const { stdout, stderr } = await script(`${OPEN}
    import { setFlagsFromString } from 'node:v8'
    import { runInNewContext } from 'node:vm'
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc')
    await client.lock('a').acquire()
    await client.queue('q').claim()
    let state = 'claimed'
    for (let n = 0; n < 500 && state === 'claimed'; n++) {
      await new Promise(resolve => setTimeout(resolve, 10))
      gc()
      state = (await client.queue('q').get('a')).state
    }
    console.log(await client.lock('a').isLocked(), state)`, url)
  assert.deepEqual([stdout, stderr], ['true scheduled\n', ''])
})

test('threads that are the only ones to load the addon, terminated while they begin', async () => {
  const { code, stdout, stderr } = await script(`
    import { Worker } from 'node:worker_threads'
    const code = "require('stanchion').connect('memory:').then(client => client.lock('a').acquire())"
    for (let round = 0; round < 60; round++) {
      const threads = Array.from({ length: 3 }, () => new Worker(code, { eval: true, execArgv: [] }))
      await new Promise(resolve => setTimeout(resolve, 20 + round % 20 * 3))
      await Promise.all(threads.map(thread => thread.terminate()))
    }
    console.log('alive')`)
  assert.deepEqual([code, stdout, stderr], [0, 'alive\n', ''])
})

onSharedStores('closed clients keep neither connections nor threads', async ({ client, url }) => {
  await client.lock('busy').acquire()
  // They are kept: nothing goes by itself.
  const { code, stdout, stderr } = await script(`import { readdirSync } from 'node:fs'
    ${OPEN}
    const [clients, count] = [[], what => readdirSync('/proc/self/' + what).length]
    async function one() {
      const other = await connect(process.argv[1])
      await other.lock('held').acquire({ ttlMs: 60_000 })
      const waiting = other.lock('busy').acquire({ waitMs: 60_000 }).catch(error => error.code)
      while ((await client.lock('busy').holder()).waiters === 0) {}
      await other.close()
      if (await waiting !== 'ERR_STANCHION_CLOSED') throw new Error(await waiting)
      clients.push(other)
    }
    for (let i = 0; i < 5; i++) await one()
    const before = [count('fd'), count('task')]
    for (let i = 0; i < 60; i++) await one()
    const after = [count('fd'), count('task')]
    // Each has had two threads and two descriptors, or more. A few come for other reasons: the pool's threads stay for 10 s.
    console.log(after.every((number, i) => number < before[i] + 40), String(before), String(after))`, url)
  assert.deepEqual([code, stderr, stdout.slice(0, 4)], [0, '', 'true'], stdout)
})
