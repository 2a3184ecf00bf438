/** The dashboard as somebody sees and uses it. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { browse, HOSTILE, LONG, Place } from './place.mjs'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const SIZES = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } }
const PAGES = {
  now: '/', queues: '/queues', queue: '/queues/emails', tasks: '/queues/emails/tasks', task: '/queues/emails/tasks/a',
  dead: '/queues/reports/dead', bulk: '/queues/reports/dead/bulk?verb=kick', keys: '/queues/tenants/keys',
  schedules: '/queues/reports/schedules', flows: '/queues/reports/flows', locks: '/locks', lock: '/locks/lock/invoice%3A42',
  workers: '/workers', server: '/server', search: '/search?q=emails', missing: '/none'
}
/** What a reader with a screen reader would stumble over. */
const SEVERE = ['serious', 'critical']

const place = new Place()
const browser = await browse()
place.fill()
const { child, address } = await place.dashboard()
const tests = []
const test = (name, body) => tests.push([name, body])

/** A page in a window of its own, in which nothing may go wrong. */
async function open(path, options = {}, body) {
  const context = await browser.newContext({ viewport: SIZES.wide, ...options })
  const page = await context.newPage()
  const wrong = []
  page.on('pageerror', error => wrong.push(String(error)))
  page.on('dialog', dialog => { wrong.push(`a dialog: ${dialog.message()}`); dialog.dismiss() })
  page.on('console', message => { if (message.type() === 'error' && !options.mayFail) wrong.push(message.text()) })
  page.setDefaultTimeout(LONG)
  try {
    await page.goto(address + path)
    await body(page)
    assert.deepEqual(wrong, [])
  } finally {
    await context.close()
  }
}

for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, path] of Object.entries(PAGES)) {
      test(`${name}, ${size}, ${colorScheme}`, () => open(path, { viewport, colorScheme, mayFail: name === 'missing' }, async page => {
        const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
        assert.ok(wide <= window, `it is ${wide} wide, in a window of ${window}`)
        // Not as a script of the page's own, which its policy refuses.
        await page.evaluate(AXE)
        const { violations } = await page.evaluate(() => globalThis.axe.run())
        const severe = violations.filter(one => SEVERE.includes(one.impact))
        assert.deepEqual(severe.map(one => [one.id, one.nodes[0].html]), [])
        mkdirSync(process.env.PICTURES, { recursive: true })
        await page.screenshot({ path: join(process.env.PICTURES, `${name}-${size}-${colorScheme}.png`), fullPage: true })
      }))
    }
  }
}

test('what is new comes by itself', () => open('/queues', {}, async page => {
  place.run('enqueue', 'brand-new', 'a')
  await page.getByRole('link', { name: 'brand-new' }).waitFor()
}))

test('without scripts the page asks for itself again', () => open('/', { javaScriptEnabled: false }, async page => {
  assert.equal(await page.locator('noscript meta[http-equiv=refresh]').count(), 1)
  await page.getByRole('heading', { name: 'What is wrong now' }).waitFor()
}))

test('keys move through the rows, search and explain', () => open('/queues', {}, async page => {
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('k')
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), '')
  await page.keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('/')
  await page.keyboard.type('emails')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Search: emails' }).waitFor()
}))

test('a queue is paused and goes on', () => open('/queues/emails', {}, async page => {
  await page.locator('summary', { hasText: 'Pause' }).click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('The queue is paused.', { exact: true }).waitFor()
  assert.equal(place.json('queues', 'stats', 'emails').paused, true)
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('The queue goes on.').waitFor()
  assert.equal(place.json('queues', 'stats', 'emails').paused, false)
}))

test('the dead are counted, and kicked', () => open('/queues/reports/dead', {}, async page => {
  await page.getByRole('link', { name: 'Kick all of these' }).click()
  await page.getByRole('heading', { name: 'Kick 1 dead task' }).waitFor()
  await page.getByRole('button', { name: 'Kick them' }).click()
  await page.getByRole('status').getByText('1 task is ready again.').waitFor()
  assert.equal(place.json('queues', 'get', 'reports', 'monthly').state, 'ready')
}))

test('names are text', () => open('/queues', {}, async page => {
  await page.getByRole('link', { name: '<script>alert(1)</script>' }).click()
  await page.getByRole('link', { name: '<b>bold</b>' }).click()
  await page.getByRole('heading', { name: 'Task <b>bold</b>' }).waitFor()
  assert.ok(!(await page.content()).includes(HOSTILE))
}))

test('a page of another site cannot act', async () => {
  const form = `<form method="post" action="${address}/queues/emails/pause"><button>go</button></form>`
  const other = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(form)).listen(0, '127.0.0.1')
  await once(other, 'listening')
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`http://127.0.0.1:${other.address().port}/`)
  await page.getByRole('button').click()
  await page.getByRole('heading', { name: 'This request came from a page of another site.' }).waitFor()
  await context.close()
  other.close()
  assert.equal(place.json('queues', 'stats', 'emails').paused, false)
})

test('a lock is broken by who types its name', () => open('/locks/lock/invoice%3A42', {}, async page => {
  await page.locator('summary', { hasText: 'Break' }).click()
  await page.getByLabel('Type the name').fill('invoice')
  await page.getByRole('button', { name: 'Break' }).click()
  await page.getByText('nothing was done').waitFor()
  await page.locator('summary', { hasText: 'Break' }).click()
  await page.getByLabel('Type the name').fill('invoice:42')
  await page.getByRole('button', { name: 'Break' }).click()
  await page.getByText('The lock is broken.').waitFor()
}))

test('a dashboard that ends and comes back is noticed', () => open('/', { mayFail: true }, async page => {
  await page.getByRole('heading', { name: 'What is wrong now' }).waitFor()
  child.kill('SIGKILL')
  await page.getByText('The dashboard does not answer.').waitFor()
  await place.dashboard(new URL(address).host)
  await page.getByText('The dashboard does not answer.').waitFor({ state: 'hidden' })
}))

let failed = 0
for (const [name, body] of tests) {
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
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${tests.length - failed} passed; ${failed} failed; 0 ignored;`)
process.exit(failed ? 1 : 0)
