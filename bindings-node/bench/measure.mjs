/**
 * Measures one thing with one package, in a process of its own: `node measure.mjs WHAT WHO PORT`. Prints JSON.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import Redis from 'ioredis'
import { connect } from 'stanchion'
import { locks, queues, times } from './rivals.mjs'

const IN_FLIGHT = 64
const PAIRS = 40_000
const SINGLE = 4_000
const TASKS = 20_000
const CONCURRENCY = 50
const HOLD_MS = 5
const THINK_MS = 10
const HAND_OVER_MS = 6_000

locks.stanchion = async port => {
  const client = await connect(`redis://127.0.0.1:${port}`)
  return {
    async pair(name) {
      const lease = await client.lock(name).acquire()
      await lease.release()
    },
    close: () => client.close(),
  }
}

queues.stanchion = async port => {
  const queue = (await connect(`redis://127.0.0.1:${port}`)).queue('bench')
  return {
    async fill(count) {
      for (let from = 0; from < count; from += 1_000) await queue.enqueueMany(Array(1_000).fill({}))
    },
    async drain(count, concurrency) {
      const worker = queue.worker(async () => {}, { concurrency })
      await times(count, done => worker.on('completed', done))
      await worker.close()
    },
    close: async () => {},
  }
}

const measures = {
  /** Pairs per second with many in flight, and how late the event loop was. */
  async pairs(who, port) {
    const { pair, close } = await locks[who](port)
    const many = async count => {
      const loop = async name => { for (let n = 0; n < count / IN_FLIGHT; n++) await pair(name) }
      await Promise.all(Array.from({ length: IN_FLIGHT }, (_, n) => loop(`bench:${who}:${n}`)))
    }
    await many(PAIRS / 4)
    const delay = watched()
    const begin = performance.now()
    await many(PAIRS)
    const rate = PAIRS / (performance.now() - begin) * 1_000
    await close()
    return { rate, delay: delay() }
  },

  /** One pair at a time: the median, in microseconds. */
  async single(who, port) {
    const { pair, close } = await locks[who](port)
    const took = []
    for (let n = 0; n < SINGLE; n++) {
      const begin = performance.now()
      await pair(`bench:${who}`)
      took.push((performance.now() - begin) * 1_000)
    }
    await close()
    return { p50: percentile(took.slice(SINGLE / 4), 0.5) }
  },

  /** No-op tasks per second, what each costs the server, and how late the event loop was. */
  async drain(who, port) {
    const { fill, drain, close } = await queues[who](port)
    const redis = new Redis(port, '127.0.0.1')
    await fill(TASKS)
    const before = await cpu(redis)
    const delay = watched()
    const begin = performance.now()
    await drain(TASKS, CONCURRENCY)
    const rate = TASKS / (performance.now() - begin) * 1_000
    const late = delay()
    const server = (await cpu(redis) - before) / TASKS * 1e6
    await Promise.race([close(), sleep(500)])
    await redis.quit()
    return { rate, server, delay: late }
  },

  /** One of the processes on one lock: when it held it, in nanoseconds. */
  async holds(who, port) {
    const lock = (await connect(`redis://127.0.0.1:${port}`)).lock('bench:hand-over')
    const holds = []
    for (const end = performance.now() + HAND_OVER_MS; performance.now() < end;) {
      const lease = await lock.acquire()
      const from = process.hrtime.bigint()
      await sleep(HOLD_MS)
      holds.push([String(from), String(process.hrtime.bigint())])
      await lease.release()
      await sleep(THINK_MS)
    }
    return { holds }
  },
}

/** CPU time of the server, in seconds. */
async function cpu(redis) {
  const info = await redis.info('cpu')
  return ['used_cpu_user', 'used_cpu_sys'].reduce((sum, name) => sum + Number(info.match(`${name}:([0-9.]+)`)[1]), 0)
}

/** The 99th percentile of the event loop's delay beyond the watch's own resolution, in milliseconds. */
function watched() {
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  return () => {
    histogram.disable()
    return Math.max(0, histogram.percentile(99) / 1e6 - 1)
  }
}

function percentile(values, part) {
  return values.sort((a, b) => a - b)[Math.floor(values.length * part)]
}

const [what, who, port] = process.argv.slice(2)
process.stdout.write(JSON.stringify(await measures[what](who, Number(port))), () => process.exit(0))
