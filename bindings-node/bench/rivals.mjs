/** The same work with other packages. */

import { Mutex } from 'redis-semaphore'
import BeeQueue from 'bee-queue'
import { Queue, Worker } from 'bullmq'
import Redis from 'ioredis'
import Redlock from 'redlock'

const TTL_MS = 30_000

/** Locks: each gives `pair(name)`, an acquire and a release, and `close()`. */
export const locks = {
  async redlock(port) {
    const redis = new Redis(port, '127.0.0.1')
    const redlock = new Redlock([redis], { retryCount: 0, automaticExtensionThreshold: 100 })
    return {
      async pair(name) {
        const lock = await redlock.acquire([name], TTL_MS)
        await lock.release()
      },
      close: () => redis.quit(),
    }
  },
  async 'redis-semaphore'(port) {
    const redis = new Redis(port, '127.0.0.1')
    return {
      async pair(name) {
        const mutex = new Mutex(redis, name, { lockTimeout: TTL_MS, refreshInterval: 0 })
        await mutex.acquire()
        await mutex.release()
      },
      close: () => redis.quit(),
    }
  },
}

/** Queues: each gives `fill(count)`, `drain(count, concurrency)` until so many no-op tasks are done, and `close()`. */
export const queues = {
  async bullmq(port) {
    const connection = { port, host: '127.0.0.1', maxRetriesPerRequest: null }
    const queue = new Queue('bench', { connection })
    return {
      async fill(count) {
        for (let from = 0; from < count; from += 1_000) {
          await queue.addBulk(Array.from({ length: 1_000 }, () => (
            { name: 'task', data: {}, opts: { removeOnComplete: true } })))
        }
      },
      async drain(count, concurrency) {
        const worker = new Worker('bench', async () => {}, { connection, concurrency })
        await times(count, done => worker.on('completed', done))
        await worker.close()
      },
      close: () => queue.close(),
    }
  },
  async 'bee-queue'(port) {
    const settings = { redis: { port, host: '127.0.0.1' }, removeOnSuccess: true, sendEvents: false, storeJobs: false }
    const queue = new BeeQueue('bench', settings)
    await queue.ready()
    return {
      async fill(count) {
        for (let from = 0; from < count; from += 1_000) {
          await queue.saveAll(Array.from({ length: 1_000 }, () => queue.createJob({})))
        }
      },
      async drain(count, concurrency) {
        await times(count, done => {
          queue.on('succeeded', done)
          queue.process(concurrency, async () => {})
        })
      },
      close: () => queue.close(),
    }
  },
}

export function times(count, listen) {
  return new Promise(resolve => listen(() => { if (--count === 0) resolve() }))
}
