/** What is done when the process (or the thread) ends: leases are released, as far as that is a matter of a moment. */

import { performance } from 'node:perf_hooks'
import { letGoOfAll } from './lease.js'
import type { Native } from './native.js'

/** How long the end of the process may be delayed by that, in milliseconds. */
const FAREWELL_MS = 500

const clients = new Set<WeakRef<Native.Client>>()

/** Releases what a client still holds at the end of the process. */
export function noteClient(client: Native.Client): void {
  if (clients.size === 0) process.once('exit', farewell)
  for (const other of clients) if (other.deref() === undefined) clients.delete(other)
  clients.add(new WeakRef(client))
}

function farewell(): void {
  letGoOfAll()
  const until = performance.now() + FAREWELL_MS
  for (const client of clients) client.deref()?.lingerNow(Math.max(0, until - performance.now()))
}
