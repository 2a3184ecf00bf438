/** A store with something of everything, a dashboard on it, and a browser. */

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const PROGRAM = process.env.STANCHION
/** Without these it looks for the hosts of its makers at each start. */
const QUIET = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'
]
/** Far longer than anything takes. */
export const LONG = 60_000
export const HOSTILE = '</textarea><script>alert(1)</script>\u202e'

export class Place {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'stanchion-browser-'))
    this.environment = { ...process.env, STANCHION_URL: `sqlite:${join(this.folder, 'store.db')}` }
    this.running = []
  }

  /** Runs the command line to its end; what it printed. */
  run(...words) {
    return execFileSync(PROGRAM, [...words], { env: this.environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  json(...words) {
    return JSON.parse(this.run(...words, '--json'))
  }

  start(...words) {
    const child = spawn(PROGRAM, words, { env: this.environment, stdio: ['ignore', 'ignore', 'pipe'] })
    this.running.push(child)
    return child
  }

  /** Starts a dashboard; its address. */
  dashboard(listen = '127.0.0.1:0', ...words) {
    const child = this.start('web', '--listen', listen, ...words)
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

  fill() {
    for (const id of ['a', 'b', 'c']) this.run('enqueue', 'emails', id, '--payload', 'to@example.org')
    this.run('enqueue', 'reports', 'monthly', '--max-attempts', '1')
    this.run('work', 'reports', '--until-empty', '-q', '--', 'false')
    for (const id of ['x', 'y', 'z']) this.run('enqueue', 'tenants', id, '--key', 'tenant:7')
    this.run('queues', 'pause', 'tenants')
    this.run('schedules', 'add', 'reports', 'nightly', '0 3 * * *')
    this.run('enqueue', HOSTILE, '<b>bold</b>', '--payload', '<i>')
    this.holder = this.start('run', 'invoice:42', '--', 'sleep', '600')
    this.waiter = this.start('run', 'invoice:42', '--wait', '600', '--', 'true')
  }

  end() {
    for (const child of this.running) child.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export function browse() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: QUIET })
}
