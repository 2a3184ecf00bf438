/** What each page looks like, at two sizes and in both themes; what is live; and the keyboard. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { HOSTILE, LONGEST, picture } from './place.mjs'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const SIZES = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } }
const PAGES = {
  now: '/', queues: '/queues', queue: '/queues/emails', tasks: '/queues/emails/tasks', task: '/queues/emails/tasks/a',
  running: '/queues/long/tasks/film', dead: '/queues/reports/dead', bulk: '/queues/reports/bulk?state=dead&verb=kick',
  keys: '/queues/tenants/keys', schedules: '/queues/reports/schedules', flows: '/queues/imports/flows',
  flow: '/queues/imports/flows/book', locks: '/locks', lock: '/locks/lock/invoice%3A42', limiters: '/limiters', workers: '/workers',
  server: '/server', search: '/search?q=emails', missing: '/none',
  hostile: `/queues/${encodeURIComponent(HOSTILE)}/tasks/${encodeURIComponent(LONGEST)}`
}
/** What a reader with a screen reader would stumble over. */
const SEVERE = ['serious', 'critical']

export default ({ test, open, place }) => {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      for (const [name, path] of Object.entries(PAGES)) {
        const options = { viewport, colorScheme, mayFail: name === 'missing' }
        test(`${name}, ${size}, ${colorScheme}`, () => open(path, options, async page => {
          const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
          assert.ok(wide <= window, `it is ${wide} wide, in a window of ${window}`)
          // Not as a script of the page's own, which its policy refuses.
          await page.evaluate(AXE)
          const { violations } = await page.evaluate(() => globalThis.axe.run())
          const severe = violations.filter(one => SEVERE.includes(one.impact))
          assert.deepEqual(severe.map(one => [one.id, one.nodes[0].html]), [])
          await picture(page, size === 'wide' ? name : `${name}-narrow`, colorScheme)
        }))
      }
    }
  }

  test('the first page is small', () => open('/', {}, async page => {
    const sizes = await page.evaluate(async () => {
      const files = ['/', ...[...document.querySelectorAll('script[src], link[href]')].map(one => one.src ?? one.href)]
      return Promise.all(files.map(async file => (await (await fetch(file)).blob()).size))
    })
    assert.equal(sizes.length, 4)
    assert.ok(sizes.reduce((sum, size) => sum + size) < 100_000, `${sizes} bytes`)
  }))

  test('what is new comes by itself', () => open('/queues', {}, async page => {
    place.run('enqueue', 'brand-new', 'a')
    const from = Date.now()
    await page.getByRole('link', { name: 'brand-new' }).waitFor()
    console.log(`a new queue is seen after ${Date.now() - from} ms`)
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

  test('names are text', () => open('/queues', {}, async page => {
    await page.getByRole('link', { name: '<script>alert(1)</script>' }).click()
    await page.getByRole('link', { name: '<b>bold</b>' }).click()
    await page.getByRole('heading', { name: 'Task <b>bold</b>' }).waitFor()
    assert.ok(!(await page.content()).includes(HOSTILE))
  }))

  test('many nodes that are alike are one in the picture of a flow', () => open('/queues/imports/flows/book', {}, async page => {
    assert.equal(await page.locator('svg.graph rect').count(), 3)
    await page.locator('svg.graph text', { hasText: '20 like page-0' }).waitFor()
  }))
}
