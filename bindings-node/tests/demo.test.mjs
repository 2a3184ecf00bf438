/** The Node part of `make demo`: buyers in JavaScript beside those in Rust, in one sale. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { redisUrl } from './helpers/stores.mjs'

const DEMO = join(dirname(fileURLToPath(import.meta.url)), '..', 'demo')
const BUYERS = join(DEMO, 'buyers.mjs')
const LIMIT = { timeout: 180_000 }

/** Runs the sale, on an embedded store unless there is a URL. */
function hold(url, ...words) {
  const { STANCHION_URL: _, ...env } = process.env
  if (url !== undefined) env.STANCHION_URL = url
  return new Promise(resolve => {
    const done = (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code, stdout, stderr })
    execFile(process.env.FLASH_SALE, ['--buyers', 'Node', ...words], { env, timeout: 120_000 }, done)
  })
}

for (const [store, url] of [['embedded', async () => undefined], ['redis', redisUrl]]) {
  test(`buyers in Node and Rust share ten items (${store})`, LIMIT, async () => {
    const { code, stdout, stderr } = await hold(await url(), process.execPath, BUYERS)
    assert.equal(code, 0, stdout + stderr)
    assert.match(stdout, /buyers served: 1,000 in Rust, 1,000 in Node\n/)
    assert.match(stdout, /sold 10 of 10, to 10 different buyers/)
    assert.match(stdout, /fences: 2,000, every one larger than the one before/)
  })
}

test('buyers that do not lock break the promise', LIMIT, async () => {
  const greedy = join(DEMO, `greedy-${process.pid}.mjs`)
  const program = readFileSync(BUYERS, 'utf8').replace('name === NO_LOCK', 'true')
  writeFileSync(greedy, program)
  after(() => rmSync(greedy))
  const { code, stdout } = await hold(undefined, process.execPath, greedy)
  assert.equal(code, 1)
  assert.match(stdout, /WRONG/)
})

test('buyers that cannot start fail the demo', LIMIT, async () => {
  const { code, stderr } = await hold(undefined, process.execPath, '-e', 'process.exit(1)')
  assert.equal(code, 1)
  assert.match(stderr, /a process could not start/)
})
