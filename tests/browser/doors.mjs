/** Who comes in, and who may act. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { ELSEWHERE, HOSTILE, LONGEST } from './place.mjs'

/** The line that `htpasswd -nbB ann secret-of-ann` printed. */
const ANN = 'ann:$2y$05$DGiVja7ndYzriVy1YsCOMOuls6r6lPy/.V6cCmc8TyLArmHKKfdby'
const TOKEN = '0123456789abcdef-token'

export default ({ test, open, place, address }) => {
  const paused = () => place.json('queues', 'stats', 'emails').paused
  const refused = { mayFail: true }

  test('a page of another site cannot act', async () => {
    const form = `<form method="post" action="${address}/queues/emails/pause"><button>go</button></form>`
    const other = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(form)).listen(0, '127.0.0.1')
    await once(other, 'listening')
    await open('/', { ...refused, at: `http://127.0.0.1:${other.address().port}` }, async page => {
      await page.getByRole('button').click()
      await page.getByRole('heading', { name: 'This request came from a page of another site.' }).waitFor()
    })
    other.close()
    assert.equal(paused(), false)
  })

  test('a name that is made to lead here is refused', () => {
    const at = `http://${ELSEWHERE}:${new URL(address).port}`
    return open('/', { ...refused, at }, page => page.getByRole('heading', { name: 'is not known as' }).waitFor())
  })

  test('one that only shows offers no action, and refuses those that come', async () => {
    const { address: at } = await place.dashboard(undefined, '--read-only')
    await open('/queues/emails', { ...refused, at }, async page => {
      await page.getByText('read-only', { exact: true }).waitFor()
      assert.equal(await page.getByRole('button', { name: /Pause|Resume/ }).count(), 0)
      const act = path => page.evaluate(async path => (await fetch(path, { method: 'POST' })).status, path)
      for (const path of [
        '/queues/emails/pause', '/queues/emails/bulk', '/queues/emails/tasks/c/remove', '/queues/emails/flows/f/cancel',
        '/queues/emails/schedules/s/remove', '/locks/lock/invoice%3A42/break', '/undo/1'
      ]) assert.equal(await act(path), 403, path)
    })
    assert.equal(paused(), false)
  })

  test('names and passwords let in', async () => {
    const file = join(place.folder, 'users')
    writeFileSync(file, `${ANN}\n`)
    const { address: at } = await place.dashboard(undefined, '--auth', file)
    const as = password => ({ ...refused, at, httpCredentials: { username: 'ann', password } })
    await open('/', as('wrong'), page => page.getByRole('heading', { name: 'Who are you?' }).waitFor())
    await open('/queues/emails', as('secret-of-ann'), async page => {
      await page.getByText('ann', { exact: true }).waitFor()
      await page.locator('summary', { hasText: 'Pause' }).click()
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByText('The queue is paused.', { exact: true }).waitFor()
    })
    assert.equal(paused(), true)
    place.run('queues', 'resume', 'emails')
  })

  test('a token lets in', async () => {
    const file = join(place.folder, 'token')
    writeFileSync(file, `${TOKEN}\n`)
    const { address: at } = await place.dashboard(undefined, '--token', file)
    const as = token => ({ ...refused, at, extraHTTPHeaders: { Authorization: `Bearer ${token}` } })
    await open('/', as('wrong'), page => page.getByRole('heading', { name: 'Who are you?' }).waitFor())
    await open('/', as(TOKEN), page => page.getByRole('heading', { name: 'What is wrong now' }).waitFor())
  })

  test('a proxy lets in whom it knows', async () => {
    const { address: at } = await place.dashboard(undefined, '--behind-proxy', 'X-User')
    await open('/', { ...refused, at }, page => page.getByRole('heading', { name: 'did not come through the proxy' }).waitFor())
    const extraHTTPHeaders = { 'X-User': 'bob' }
    await open('/', { ...refused, at, extraHTTPHeaders }, page => page.getByText('bob', { exact: true }).waitFor())
  })

  test('a payload is text, whatever is in it', async () => {
    const { address: at } = await place.dashboard(undefined, '--show-payloads')
    const path = `/queues/${encodeURIComponent(HOSTILE)}/tasks/${encodeURIComponent(LONGEST)}`
    await open(path, { at }, async page => {
      const shown = await page.locator('pre').last().textContent()
      assert.ok(shown.startsWith('</pre><script>alert(1)</script>\ufffd[31m\ufffd'), shown)
      assert.ok(!/[\u0000-\u0009\u000b-\u001f\u202a-\u202e\u2066-\u2069]/.test(shown), shown)
      assert.ok(shown.trimEnd().endsWith('x'.repeat(512)), shown)
      assert.equal((await page.locator('h1').textContent()).trim().startsWith('Task <img src=x'), true)
    })
  })
}
