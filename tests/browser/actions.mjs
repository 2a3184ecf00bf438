/** What can be done on the pages; the store is looked at afterwards. */

import assert from 'node:assert/strict'
import { LONG } from './place.mjs'

/** What the command line ends with if there is no such task. */
const NO_TASK = 9

export default ({ test, open, place }) => {
  const task = (queue, id) => place.json('queues', 'get', queue, id)
  const says = (page, text) => page.getByRole('status').getByText(text).waitFor()
  /** Opens the question behind a button, and answers it. */
  const surely = async (within, name) => {
    await within.locator('summary', { hasText: name }).click()
    await within.getByRole('button', { name }).click()
  }

  test('a queue is paused and goes on', () => open('/queues/emails', {}, async page => {
    await surely(page, 'Pause')
    await says(page, 'The queue is paused.')
    assert.equal(place.json('queues', 'stats', 'emails').paused, true)
    await page.getByRole('button', { name: 'Resume' }).click()
    await says(page, 'The queue goes on.')
    assert.equal(place.json('queues', 'stats', 'emails').paused, false)
  }))

  test('a task is moved, runs now, and is removed', () => open('/queues/emails/tasks/a', {}, async page => {
    await page.getByLabel('Due in').fill('90')
    await page.getByRole('button', { name: 'Reschedule' }).click()
    await says(page, 'It has another time.')
    assert.equal(task('emails', 'a').state, 'scheduled')
    await page.getByRole('button', { name: 'Run now' }).click()
    await says(page, 'It has another time.')
    assert.equal(task('emails', 'a').state, 'ready')
    await surely(page, 'Remove')
    await says(page, 'The task is gone.')
    assert.throws(() => task('emails', 'a'))
  }))

  test('tasks are treated alike by what their ids begin with', () => open('/queues/emails/tasks?prefix=b', {}, async page => {
    await page.getByRole('link', { name: 'Reschedule all of these' }).click()
    await page.getByRole('heading', { name: 'Reschedule 1 ready task of emails?' }).waitFor()
    await page.getByLabel('Due in').fill('60')
    await page.getByRole('button', { name: 'Reschedule them' }).click()
    await says(page, '1 task is due at another time.')
    assert.deepEqual([task('emails', 'b').state, task('emails', 'c').state], ['scheduled', 'ready'])
  }))

  test('a run is told to end', () => open('/queues/long/tasks/film', {}, async page => {
    await surely(page, 'Cancel')
    await says(page, 'Its run is told to end.')
    // Its worker ends the run when it hears of it, and then it is gone.
    const until = Date.now() + LONG
    for (;;) {
      try {
        assert.equal(task('long', 'film').cancelled, true)
      } catch (error) {
        if (error.status === NO_TASK) return
        throw error
      }
      assert.ok(Date.now() < until, 'it still runs')
      await page.waitForTimeout(50)
    }
  }))

  test('a dead task is kicked', () => open('/queues/reports/tasks/daily', {}, async page => {
    await page.getByRole('button', { name: 'Kick' }).click()
    await says(page, 'It is ready again.')
    assert.equal(task('reports', 'daily').state, 'ready')
  }))

  test('the removal of a dead task is undone', () => open('/queues/reports/tasks/weekly', {}, async page => {
    await surely(page, 'Remove')
    await says(page, 'weekly will be removed in a minute.')
    await page.getByRole('button', { name: 'Undo' }).click()
    await says(page, 'nothing was removed')
    assert.equal(task('reports', 'weekly').state, 'dead')
  }))

  test('the dead are counted, and kicked', () => open('/queues/reports/dead?prefix=m', {}, async page => {
    await page.getByRole('link', { name: 'Kick all of these' }).click()
    await page.getByRole('heading', { name: 'Kick 1 dead task' }).waitFor()
    await page.getByRole('button', { name: 'Kick them' }).click()
    await says(page, '1 task is ready again.')
    assert.equal(task('reports', 'monthly').state, 'ready')
  }))

  test('a schedule is paused, goes on, runs and is removed', () => open('/queues/reports/schedules', {}, async page => {
    const nightly = () => place.json('schedules', 'show', 'reports', 'nightly')
    await page.getByRole('button', { name: 'Pause' }).click()
    await says(page, 'The schedule is paused.')
    assert.equal(nightly().paused, true)
    await page.getByRole('button', { name: 'Resume' }).click()
    await says(page, 'The schedule goes on.')
    assert.equal(nightly().paused, false)
    await page.getByRole('button', { name: 'Run now' }).click()
    await says(page, 'It has made the task')
    await surely(page, 'Remove')
    await says(page, 'The schedule is gone.')
    assert.throws(nightly)
  }))

  test('a flow is cancelled, and what did not succeed runs again', () => open('/queues/imports/flows/letter', {}, async page => {
    const state = () => place.json('flows', 'show', 'imports', 'letter').state
    await surely(page, 'Cancel')
    await says(page, 'The flow is cancelled.')
    assert.equal(state(), 'cancelled')
    await page.getByRole('button', { name: 'Retry' }).click()
    await says(page, 'What had not succeeded runs again.')
    assert.equal(state(), 'running')
  }))

  test('a lock is broken by who types its name', () => open('/locks/lock/invoice%3A42', {}, async page => {
    const { fence } = place.json('locks', 'show', 'invoice:42')
    await page.locator('summary', { hasText: 'Break' }).click()
    await page.getByLabel('Type the name').fill('invoice')
    await page.getByRole('button', { name: 'Break' }).click()
    await says(page, 'nothing was done')
    assert.equal(place.json('locks', 'show', 'invoice:42').fence, fence)
    await page.locator('summary', { hasText: 'Break' }).click()
    await page.getByLabel('Type the name').fill('invoice:42')
    await page.getByRole('button', { name: 'Break' }).click()
    await says(page, 'The lock is broken.')
    assert.notEqual(place.json('locks', 'show', 'invoice:42').fence, fence)
  }))
}
