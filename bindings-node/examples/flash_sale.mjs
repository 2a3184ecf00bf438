/**
 * Ten items, many buyers: an Express application in several processes, which sell under one lock.
 *
 *     STANCHION_URL=redis://localhost STOCK=stock.txt PORT=8000 node flash_sale.mjs
 *     curl -X POST http://localhost:8000/buy
 */

import cluster from 'node:cluster'
import { readFile, writeFile } from 'node:fs/promises'
import express from 'express'
import { connect, LockTimeoutError } from 'stanchion'

const PROCESSES = 4

async function serve() {
  const client = await connect() // STANCHION_URL
  const stock = process.env.STOCK
  const app = express()

  app.post('/buy', async (request, response) => {
    // A buyer who hangs up does not keep a place in the line.
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    try {
      const answer = await client.lock('flash-sale').hold(async lease => {
        const left = Number(await readFile(stock, 'utf8'))
        if (left === 0) return { sold: false }
        // Without the lock, others would now sell the same item.
        await writeFile(stock, String(left - 1))
        return { sold: true, fence: String(lease.fence) }
      }, { waitMs: 30_000, signal: gone.signal })
      response.status(answer.sold ? 200 : 409).json(answer)
    } catch (error) {
      if (gone.signal.aborted) return
      response.status(error instanceof LockTimeoutError ? 503 : 500).json({ error: error.message })
    }
  })

  const server = app.listen(process.env.PORT)
  // Answers those who are there, and takes no more: then nothing keeps the process alive.
  process.on('SIGTERM', () => {
    server.close()
    server.closeIdleConnections()
    cluster.worker.disconnect()
  })
}

if (cluster.isPrimary) {
  const workers = Array.from({ length: PROCESSES }, () => cluster.fork())
  process.on('SIGTERM', () => workers.forEach(worker => worker.process.kill('SIGTERM')))
  cluster.once('listening', () => console.log('ready'))
} else {
  await serve()
}
