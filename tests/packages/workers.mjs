/** Two threads load the package at the same time, and take turns in a lock: how often one was in it beside the other. */

import { Worker, isMainThread, workerData } from 'node:worker_threads'

const TURNS = 50

if (isMainThread) {
  // How many are inside, who has come so far, turns, and turns beside another.
  const shared = new Int32Array(new SharedArrayBuffer(16))
  const ended = [0, 1].map(() => new Promise((resolve, reject) => {
    new Worker(new URL(import.meta.url), { workerData: shared }).on('error', reject).on('exit', resolve)
  }))
  await Promise.all(ended)
  console.log(`${shared[2]} turns, ${shared[3]} of them beside another`)
} else {
  const shared = workerData
  // Whoever comes first waits for the other, so that both load it now.
  if (Atomics.add(shared, 1, 1) === 0) Atomics.wait(shared, 1, 1)
  else Atomics.notify(shared, 1)
  const { connect } = await import('stanchion')
  const client = await connect()
  for (let turn = 0; turn < TURNS; turn++) {
    await client.lock('turns').hold(async () => {
      if (Atomics.add(shared, 0, 1) !== 0) Atomics.add(shared, 3, 1)
      // The other one would come in here.
      await new Promise(resolve => setImmediate(resolve))
      Atomics.add(shared, 2, 1)
      Atomics.sub(shared, 0, 1)
    })
  }
  await client.close()
}
