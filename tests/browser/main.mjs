/** The dashboard as somebody sees and uses it: starts it and a browser, and runs the tests of the other files one by one. */

import assert from 'node:assert/strict'
import actions from './actions.mjs'
import doors from './doors.mjs'
import looks from './looks.mjs'
import { browse, LONG, Place } from './place.mjs'
import stores from './stores.mjs'

export const WIDE = { width: 1280, height: 900 }

const browser = await browse()
const place = new Place()
await place.fill()
const { address } = await place.dashboard()
const tests = []
const test = (name, body) => tests.push([name, body])

/** A page in a window of its own, in which nothing may go wrong. */
async function open(path, options, body) {
  const { at = address, mayFail = false, ...more } = options
  const context = await browser.newContext({ viewport: WIDE, ...more })
  const page = await context.newPage()
  const wrong = []
  page.on('pageerror', error => wrong.push(String(error)))
  page.on('dialog', dialog => { wrong.push(`a dialog: ${dialog.message()}`); dialog.dismiss() })
  page.on('console', message => { if (message.type() === 'error' && !mayFail) wrong.push(message.text()) })
  page.setDefaultTimeout(LONG)
  try {
    await page.goto(at + path)
    await body(page)
    assert.deepEqual(wrong, [])
  } finally {
    await context.close()
  }
}

for (const file of [looks, actions, doors, stores]) file({ test, open, place, address })

const [wanted = ''] = process.argv.slice(2)
const chosen = tests.filter(([name]) => name.includes(wanted))
let failed = 0
for (const [name, body] of chosen) {
  try {
    await body()
    console.log(`test ${name} ... ok`)
  } catch (error) {
    failed += 1
    console.log(`test ${name} ... FAILED\n${error.stack}`)
  }
}
await browser.close()
place.end()
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${chosen.length - failed} passed; ${failed} failed; 0 ignored;`)
process.exit(failed ? 1 : 0)
