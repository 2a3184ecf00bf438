/** The examples, as a user runs them. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePort, onSharedStores } from './helpers/stores.mjs'

const EXAMPLES = join(dirname(fileURLToPath(import.meta.url)), '..', 'examples')
const place = mkdtempSync(join(tmpdir(), 'stanchion-examples-'))
after(() => rmSync(place, { recursive: true, force: true }))

function start(name, values, env = {}) {
  const child = spawn(
    process.execPath, [join(EXAMPLES, name), ...values],
    { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = []
  const reader = createInterface(child.stdout)
  const line = new Promise(resolve => reader.once('line', resolve))
  reader.on('line', one => lines.push(one))
  const ended = new Promise(resolve => child.once('close', code => resolve({ code, lines })))
  return { child, line, ended }
}

const run = (name, ...values) => start(name, values).ended

onSharedStores('the cache', async ({ url }) => {
  assert.deepEqual(await run('cache.mjs', url), { code: 0, lines: ['20 callers, 1 computation'] })
})

onSharedStores('the worker', async ({ client, url }) => {
  await run('worker.mjs', url, 'enqueue', 'alice', 'bob', 'nobody')
  const { code, lines } = await run('worker.mjs', url, 'until-empty')
  assert.equal(code, 0)
  assert.deepEqual(lines.sort(), ['2 sent', 'sent to alice, attempt 1', 'sent to bob, attempt 1'])
  assert.deepEqual((await client.queue('emails').list('dead')).tasks.map(task => task.id), ['welcome:nobody'])
})

onSharedStores('SIGTERM drains the worker', async ({ url }) => {
  const { child, line, ended } = start('worker.mjs', [url])
  await run('worker.mjs', url, 'enqueue', 'carol')
  assert.equal(await line, 'sent to carol, attempt 1')
  child.kill('SIGTERM')
  const { code, lines } = await ended
  assert.deepEqual([code, lines.at(-1)], [0, '1 sent'])
})

onSharedStores('the flash sale: four processes, sixty-four buyers at once', async ({ url, t }) => {
  const port = await freePort()
  const stock = join(place, `${t.name.replaceAll(' ', '-')}.txt`)
  writeFileSync(stock, '10')
  const sale = start('flash_sale.mjs', [], { STANCHION_URL: url, STOCK: stock, PORT: String(port) })
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  let answers
  try {
    assert.equal(await sale.line, 'ready')
    answers = await Promise.all(Array.from({ length: 400 }, () => buy(port, agent)))
  } finally {
    agent.destroy()
    sale.child.kill('SIGTERM')
  }
  const sold = answers.filter(({ status }) => status === 200).map(({ body }) => body.fence)
  assert.deepEqual([sold.length, new Set(sold).size], [10, 10])
  assert.equal(answers.filter(({ status }) => status === 409).length, 390)
  assert.equal(readFileSync(stock, 'utf8'), '0')
  assert.equal((await sale.ended).code, 0)
})

function buy(port, agent) {
  return new Promise((resolve, reject) => {
    const asked = request({ port, host: '127.0.0.1', path: '/buy', method: 'POST', agent }, response => {
      let text = ''
      response.on('data', part => { text += part })
      response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }))
    })
    asked.on('error', reject)
    asked.end()
  })
}
