/**
 * A cache whose values are computed by one caller at a time, however many ask at once.
 *
 *     node cache.mjs sqlite:cache.db
 */

import { connect } from 'stanchion'

const values = new Map()
let computed = 0

async function price(client, key) {
  if (!values.has(key)) {
    await client.lock(`cache:${key}`).hold(async () => {
      // Somebody may have computed it while this one waited.
      if (!values.has(key)) values.set(key, await compute(key))
    }, { waitMs: 30_000 })
  }
  return values.get(key)
}

async function compute(key) {
  computed += 1
  await new Promise(resolve => setTimeout(resolve, 100))
  return key.length
}

const client = await connect(process.argv[2])
await Promise.all(Array.from({ length: 20 }, () => price(client, 'apples')))
console.log(`20 callers, ${computed} computation`)
