/** What a page does while the store, or the dashboard, is away. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort, picture, Place } from './place.mjs'

const AWAY = 'The dashboard does not answer.'

export default ({ test, open, place }) => {
  test('a server that is killed and comes back is noticed', async () => {
    const port = await freePort()
    const redis = () => spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', place.folder], { stdio: 'ignore' })
    let server = redis()
    const there = new Place(`redis://127.0.0.1:${port}`)
    there.run('enqueue', 'emails', 'a')
    const { address: at } = await there.dashboard()
    try {
      await open('/', { at, mayFail: true }, async page => {
        await page.getByRole('link', { name: 'emails' }).first().waitFor()
        server.kill('SIGKILL')
        await once(server, 'exit')
        await page.getByText('cannot be looked at:').waitFor()
        server = redis()
        await page.getByText('cannot be looked at:').waitFor({ state: 'detached' })
      })
    } finally {
      server.kill('SIGKILL')
      there.end()
    }
  })

  test('a dashboard that ends and comes back is noticed', async () => {
    const { child, address: at } = await place.dashboard()
    await open('/', { at, mayFail: true }, async page => {
      await page.getByRole('heading', { name: 'What is wrong now' }).waitFor()
      child.kill('SIGKILL')
      await page.getByText(AWAY).waitFor()
      await place.dashboard(new URL(at).host)
      await page.getByText(AWAY).waitFor({ state: 'hidden' })
    })
  })

  test('the store of the demo has a line at its lock, and the tasks of a worker that was killed', async () => {
    const { address: at, child } = await place.demo()
    try {
      await open('/locks/lock/flash-sale', { at }, async page => {
        await page.getByRole('heading', { name: 'The line' }).waitFor()
        await page.getByRole('cell', { name: /buyer-/ }).nth(3).waitFor()
        await page.goto(`${at}/queues/digests/tasks?state=claimed`)
        await page.getByRole('link', { name: 'file-1', exact: true }).click()
        await page.getByText('killed on').waitFor()
      })
      for (const colorScheme of ['light', 'dark']) {
        await open('/', { at, colorScheme, viewport: { width: 1200, height: 700 } }, async page => {
          await page.getByText('1 task is due, the first for').waitFor()
          await picture(page, 'demo', colorScheme)
        })
      }
    } finally {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
  })
}
