/**
 * Sends e-mails, several at once. SIGTERM and Ctrl-C drain it; killed, it loses no task.
 *
 *     node worker.mjs redis://localhost enqueue alice bob
 *     node worker.mjs redis://localhost
 */

import { connect } from 'stanchion'

const [url, verb, ...names] = process.argv.slice(2)
const queue = (await connect(url)).queue('emails')

async function send(task) {
  if (task.json.to === 'nobody') return task.bury('there is no such address')
  console.log(`sent to ${task.json.to}, attempt ${task.attempt}`)
}

if (verb === 'enqueue') {
  await queue.enqueueMany(names.map(to => ({ id: `welcome:${to}`, payload: { to } })))
} else {
  const worker = queue.worker(send, { concurrency: 8, untilEmpty: verb === 'until-empty' })
  worker.on('failed', (task, error) => console.error(`${task.id}: ${error}`))
  worker.on('error', error => console.error(`the store: ${error.message}`))
  // What is at work is finished; nothing new is taken.
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => worker.close())
  const { completed } = await worker.finished
  console.log(`${completed} sent`)
}
