/** A store with something of everything, a dashboard on it, and a browser. */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const { STANCHION: PROGRAM, PLAYER, DEMO, PICTURES } = process.env
/** A name that is everybody's but ours, and leads here: so another site comes to a dashboard on a loopback address. */
export const ELSEWHERE = 'elsewhere.test'
/** Without these it looks for the hosts of its makers at each start. */
const QUIET = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', `--host-resolver-rules=MAP ${ELSEWHERE} 127.0.0.1`
]
/** Far longer than anything takes. */
export const LONG = 60_000
export const HOSTILE = '</textarea><script>alert(1)</script>\u202e'
/** As long as an id may be. */
export const LONGEST = `${'<img src=x onerror=alert(1)>'.repeat(18)}12345678`
/** All that a terminal or a browser might take for an order. */
export const CONTROLS = `</pre><script>alert(1)</script>\u001b[31m\u0007\u0000\u202e\u2066${'x'.repeat(512)}`

export class Place {
  constructor(url) {
    this.folder = mkdtempSync(join(tmpdir(), 'stanchion-browser-'))
    this.url = url ?? `sqlite:${join(this.folder, 'store.db')}`
    this.environment = { ...process.env, STANCHION_URL: this.url }
    this.running = []
  }

  /** Runs the command line to its end; what it printed. */
  run(...words) {
    return execFileSync(PROGRAM, [...words], { env: this.environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  json(...words) {
    return JSON.parse(this.run(...words, '--json'))
  }

  /** Makes calls of the library, for what the command line cannot do. */
  async call(...requests) {
    const player = spawn(PLAYER, ['blocking'], { stdio: ['pipe', 'pipe', 'inherit'] })
    const answers = createInterface({ input: player.stdout })[Symbol.asyncIterator]()
    for (const request of [{ op: 'client.open', url: this.url }, ...requests]) {
      player.stdin.write(`${JSON.stringify({ call: 1, actor: 'one', ...request })}\n`)
      const answer = JSON.parse((await answers.next()).value)
      if (!('ok' in answer)) throw new Error(`${request.op}: ${JSON.stringify(answer)}`)
    }
    player.stdin.end()
    await once(player, 'exit')
  }

  start(...words) {
    const child = spawn(PROGRAM, words, { env: this.environment, stdio: ['ignore', 'ignore', 'pipe'] })
    this.running.push(child)
    return child
  }

  /** Starts a dashboard; its address. */
  dashboard(listen = '127.0.0.1:0', ...words) {
    return address(this.start('web', '--listen', listen, ...words))
  }

  /** Starts the one that has a demo's store. */
  demo() {
    const child = spawn(DEMO, ['--listen', '127.0.0.1:0'], { env: this.environment, stdio: ['ignore', 'ignore', 'pipe'] })
    this.running.push(child)
    return address(child)
  }

  async fill() {
    for (const id of ['a', 'b', 'c']) this.run('enqueue', 'emails', id, '--payload', 'to@example.org')
    for (const id of ['monthly', 'weekly', 'daily']) this.run('enqueue', 'reports', id, '--max-attempts', '1')
    this.run('work', 'reports', '--until-empty', '-q', '--', 'false')
    for (const id of ['x', 'y', 'z']) this.run('enqueue', 'tenants', id, '--key', 'tenant:7')
    this.run('queues', 'pause', 'tenants')
    this.run('schedules', 'add', 'reports', 'nightly', '0 3 * * *')
    this.run('enqueue', HOSTILE, '<b>bold</b>', '--payload', '<i>')
    this.run('enqueue', HOSTILE, LONGEST, '--payload', CONTROLS.replace('\0', ''))
    const flow = (id, ...nodes) => ({ op: 'queue.enqueue_flow', queue: 'imports', id, nodes })
    const pages = [...Array(20).keys()].map(number => ({ id: `page-${number}` }))
    await this.call(
      flow('book', ...pages, { id: 'join', after: pages.map(page => page.id) }, { id: 'clean', after_all: 'finally' }),
      flow('letter', { id: 'write' }, { id: 'send', after: ['write'] })
    )
    this.holder = this.start('run', 'invoice:42', '--label', 'web-3', '--', 'sleep', '600')
    this.waiter = this.start('run', 'invoice:42', '--label', 'web-7', '--wait', '600', '--', 'true')
    this.worker = this.start('work', 'long', '--', 'sleep', '600')
    this.run('enqueue', 'long', 'film')
    this.run('limit', 'partner-api', '--rate', '10/h')
  }

  end() {
    for (const child of this.running) child.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Where the dashboard is that this process starts. */
function address(child) {
  return new Promise((resolve, reject) => {
    let told = ''
    child.stderr.on('data', data => {
      told += data
      const [, address] = /(http:\/\/\S+?)\/\n/.exec(told) ?? []
      if (address) resolve({ child, address })
    })
    child.on('exit', code => reject(new Error(`the dashboard ended with ${code}: ${told}`)))
  })
}

export function browse() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: QUIET })
}

/** Keeps a picture of a page. */
export async function picture(page, name, colorScheme) {
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({ path: join(PICTURES, `${name}-${colorScheme}.png`), fullPage: true })
}

/** A port that nobody listens on. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
