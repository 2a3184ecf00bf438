// Fifty calls that want the same value. Arguments: URL, folder, how many callers there are in all.

const fs = require('node:fs')
const { setTimeout: sleep } = require('node:timers/promises')
const { connect } = require('stanchion')

const [url, folder, everybody] = process.argv.slice(2)

async function compute() {
  for (let waited = 0; fs.statSync(`${folder}/arrived`).size < Number(everybody); waited += 5) {
    if (waited > 60_000) throw new Error('the others did not come')
    await sleep(5)
  }
  fs.appendFileSync(`${folder}/computed`, `node ${process.hrtime.bigint()}\n`)
  return { price: 9.99 }
}

async function main() {
  const client = await connect(url)
  const call = async () => {
    fs.appendFileSync(`${folder}/arrived`, 'x')
    const value = await client.cached('price:7', 60_000, compute, { waitMs: 60_000 })
    return [value, String(process.hrtime.bigint())]
  }
  console.log(JSON.stringify(await Promise.all(Array.from({ length: 50 }, call))))
}

main()
