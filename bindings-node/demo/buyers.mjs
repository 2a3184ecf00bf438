/**
 * Buyers of the demo's flash sale. Whoever started this says who they are, and where the shop's ledger is.
 *
 * Arguments and output are the same in every language: core/examples/flash_sale/buyers.rs describes them.
 */

import { once } from 'node:events'
import { openSync, readSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'stanchion'

// Stands for the lock's name in the sale without the lock.
const NO_LOCK = '-'
// How long a buyer waits in line.
const PATIENCE_MS = 60_000
// How long the bank takes to say yes.
const BANK_MS = 1

/** Three plain files. It refuses a fence smaller than one that it has seen. */
class Ledger {
  constructor(folder) {
    this.folder = folder
    this.stockFile = openSync(join(folder, 'stock'), 'r+')
    this.fenceFile = openSync(join(folder, 'fence'), 'r+')
    this.journal = openSync(join(folder, 'journal'), 'a')
  }

  stock(fence) {
    this.admit(fence)
    return readNumber(this.stockFile)
  }

  setStock(left, fence) {
    this.admit(fence)
    writeNumber(this.stockFile, left)
  }

  async takePayment(buyer) {
    await sleep(BANK_MS)
    const receipt = await open(join(this.folder, `receipt-${buyer}`), 'w')
    await receipt.write(`buyer ${buyer} has paid\n`)
    await receipt.sync()
    await receipt.close()
  }

  note(process, buyer, fence, item) {
    this.admit(fence)
    // One write of a short line at the end of the file: lines never mix.
    writeSync(this.journal, `${process} ${buyer} ${fence} ${item}\n`)
  }

  admit(fence) {
    if (fence === 0n) return
    const seen = readNumber(this.fenceFile)
    if (fence < seen) throw new Error(`the ledger refused fence ${fence}: it has seen ${seen}`)
    if (fence > seen) writeNumber(this.fenceFile, fence)
  }
}

function readNumber(file) {
  const digits = Buffer.alloc(20)
  readSync(file, digits, 0, digits.length, 0)
  return BigInt(digits.toString())
}

function writeNumber(file, number) {
  writeSync(file, String(number).padStart(20, '0'), 0)
}

class Shop {
  constructor(ledger, lock, process, buyers) {
    this.ledger = ledger
    this.lock = lock
    this.process = process
    this.buyers = buyers
  }

  async serveAll() {
    // All clerks take from the same line.
    for (let buyer = this.buyers.shift(); buyer !== undefined; buyer = this.buyers.shift()) {
      const asked = performance.now()
      let waited = 0
      const serve = async lease => {
        waited = performance.now() - asked
        await this.sell(buyer, lease?.fence ?? 0n)
      }
      await (this.lock === undefined ? serve() : this.lock.hold(serve))
      console.log(Math.round(waited * 1_000))
    }
  }

  /** Read, check, pay, write: right only if nobody else does the same meanwhile. */
  async sell(buyer, fence) {
    const left = this.ledger.stock(fence)
    if (left > 0n) {
      await this.ledger.takePayment(buyer)
      this.ledger.setStock(left - 1n, fence)
    }
    this.ledger.note(this.process, buyer, fence, left)
  }
}

const [folder, name, ...numbers] = process.argv.slice(2)
const [number, processes, last, atATime] = numbers.map(Number)
const lock = name === NO_LOCK ? undefined : (await connect()).lock(name, { waitMs: PATIENCE_MS })
// Buyers are dealt to the processes like cards.
const buyers = Array.from({ length: last }, (_, index) => index + 1).filter(buyer => buyer % processes === number % processes)
const shop = new Shop(new Ledger(folder), lock, number, buyers)

console.log('ready')
const input = createInterface(process.stdin)
await once(input, 'line')
input.close()
await Promise.all(Array.from({ length: atATime }, () => shop.serveAll()))
