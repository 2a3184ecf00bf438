/** Two threads load the package at the same time, and take turns in a lock: how often one was in it beside the other. */

import { Worker, isMainThread, threadId, workerData } from 'node:worker_threads'

const TURNS = 50
// What is counted: threads that came, that try to get in, that are inside, that are through; turns, and those beside another.
const [CAME, TRY, INSIDE, THROUGH, TAKEN, BESIDE] = [0, 1, 2, 3, 4, 5]

if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(24))
  const ended = [0, 1].map(() => new Promise((resolve, reject) => {
    new Worker(new URL(import.meta.url), { workerData: shared }).on('error', reject).on('exit', resolve)
  }))
  await Promise.all(ended)
  console.log(`${shared[TAKEN]} turns, ${shared[BESIDE]} of them beside another`)
} else {
  const shared = workerData
  // Whoever comes first waits for the other, so that both load it now.
  if (Atomics.add(shared, CAME, 1) === 0) Atomics.wait(shared, CAME, 1)
  else Atomics.notify(shared, CAME)
  const { connect } = await import('stanchion')
  const client = await connect()
  for (let turn = 0; turn < TURNS; turn++) {
    Atomics.add(shared, TRY, 1)
    await client.lock('turns').hold(async () => {
      Atomics.sub(shared, TRY, 1)
      if (Atomics.add(shared, INSIDE, 1) !== 0) Atomics.add(shared, BESIDE, 1)
      // Until the other one tries, or there is none, or it is in already.
      while (shared[TRY] === 0 && shared[THROUGH] === 0 && Atomics.load(shared, INSIDE) === 1) {
        await new Promise(resolve => setImmediate(resolve))
      }
      // As long as the other one would need to come in, if it could.
      for (let more = 0; more < 3; more++) await client.lock(`of thread ${threadId}`).hold(() => {})
      Atomics.add(shared, TAKEN, 1)
      Atomics.sub(shared, INSIDE, 1)
    })
  }
  Atomics.add(shared, THROUGH, 1)
  await client.close()
}
