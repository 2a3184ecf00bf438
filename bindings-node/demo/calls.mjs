/** A caller of the demo's API. Arguments and output are those of core/examples/calls/worker.rs. */

import { connect } from 'stanchion'

const NO_LIMITER = '-'
const PER_SECOND = 20
// How long a call waits for its turn.
const PATIENCE_MS = 60_000

const [api, name, calls] = process.argv.slice(2)
const client = name === NO_LIMITER ? null : await connect()
const limiter = client?.limiter(name, { n: PER_SECOND, perMs: 1_000 })
for (let left = Number(calls); left > 0; left--) {
  const turn = await limiter?.take({ waitMs: PATIENCE_MS })
  if (turn && !turn.allowed) throw new Error('its turn did not come')
  const answer = await fetch(api)
  console.log(answer.status)
}
await client?.close()
