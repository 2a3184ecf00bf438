/** The stores that the tests run on: memory, an SQLite file, and a redis-server of their own. */

import { randomUUID } from 'node:crypto'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect } from 'stanchion'

// So that a hanging call fails its test, and not the whole run.
const LIMIT = { timeout: 60_000 }
/** How often another port is tried when somebody else took it first. */
const PORT_ATTEMPTS = 8
const folder = mkdtempSync(join(tmpdir(), 'stanchion-'))
let server

after(async () => {
  await server?.then(({ process }) => ended(process))
  // A killed program of a test may write its last file meanwhile.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
})

/** Kills a process, and waits until it is gone: a server opens its log anew for each line. */
async function ended(process) {
  if (process.exitCode !== null || process.signalCode !== null) return
  const gone = told(process, 'exit')
  process.kill('SIGKILL')
  await gone
}

/** The URL of a redis-server that is this file's own. */
export async function redisUrl() {
  server ??= startRedis()
  return (await server).url
}

/** A server of the test's own, which it may kill: its URL, and its process. */
export async function mortalRedis(t) {
  const found = await startRedis(`${randomUUID()}.log`)
  t.after(() => ended(found.process))
  return found
}

async function startRedis(name = 'redis.log') {
  const log = join(folder, name)
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
    rmSync(log, { force: true })
    const port = await freePort()
    const found = spawn(
      'redis-server',
      ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder, '--logfile', log], { stdio: 'ignore' })
    const failed = new Promise((_, reject) => found.once('error', reject))
    if (await Promise.race([failed, isReady(found, log)])) return { process: found, url: `redis://127.0.0.1:${port}` }
  }
  throw new Error(`redis-server ended: ${readFileSync(log, 'utf8')}`)
}

/** A port that is free now; somebody else may take it before it is used. */
export function freePort() {
  return new Promise(resolve => {
    const free = createServer().listen(0, '127.0.0.1', () => {
      const { port } = free.address()
      free.close(() => resolve(port))
    })
  })
}

/**
 * Whether the server has the port; if somebody else has taken it meanwhile, the server ends. It is asked by its log: on
 * the port it may be the other one that answers.
 */
async function isReady(server, log) {
  const end = Date.now() + 20_000
  while (server.exitCode === null) {
    if (existsSync(log) && readFileSync(log, 'utf8').includes('Ready to accept connections')) return true
    if (Date.now() > end) throw new Error('redis-server is not ready')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  return false
}

const URLS = {
  memory: async () => `memory:${randomUUID()}`,
  sqlite: async () => `sqlite:${join(folder, `${randomUUID()}.db`)}`,
  redis: async () => {
    const mark = randomUUID().slice(0, 8)
    return `${await redisUrl()}/?lock_prefix=L${mark}:&queue_prefix=Q${mark}:`
  },
}

/** A test on each store: `run({ client, url, t })`; names in it are this test's own. */
export function onEveryStore(title, run) {
  onStores(Object.keys(URLS), title, run)
}

/** A test on each store that other processes can open, too. */
export function onSharedStores(title, run) {
  onStores(['sqlite', 'redis'], title, run)
}

function onStores(names, title, run) {
  for (const name of names) {
    test(`${title} (${name})`, LIMIT, async t => {
      const url = await URLS[name]()
      const client = await connect(url)
      try {
        await run({ client, url, t })
      } finally {
        await client.close()
      }
    })
  }
}

/** Waits until something holds, or fails. */
export async function eventually(holds, what = String(holds)) {
  const end = Date.now() + 20_000
  while (!await holds()) {
    if (Date.now() > end) throw new Error(`never: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** An event of an emitter, once. */
export function told(emitter, name) {
  return new Promise(resolve => emitter.once(name, (...found) => resolve(found)))
}
