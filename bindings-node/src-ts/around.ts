/** What stands around the handlers of a worker. */

import { types } from 'node:util'
import type { Claim } from './claim.js'
import type { About } from './errors.js'
import { checkFunction } from './values.js'
import type { Around } from './working.js'

/** One function or some, as a worker is given them; the first is outermost. */
export function functionsAround(given: unknown, about: About): Around[] {
  if (given === undefined) return []
  const isList = typeof given === 'object' && given !== null && Symbol.iterator in given
  const all: unknown[] = isList ? [...given as Iterable<unknown>] : [given]
  for (const one of all) checkFunction(one, 'around', 'worker(handler, { around: async (claim, next) => await next() })', about)
  return all as Around[]
}

/** Calls a handler inside of them. */
export function runWithin(around: readonly Around[], claim: Claim, handle: () => unknown): Promise<unknown> {
  return around.reduceRight<() => Promise<unknown>>((next, one) => () => ran(() => one(claim, next)), () => ran(handle))()
}

/** Each: what one further out returns need not be what it has got. */
async function ran(call: () => unknown): Promise<unknown> {
  const outcome = await call()
  // Nobody would run it, and its task would be done.
  if (types.isGeneratorObject(outcome)) throw new TypeError('the handler returned a generator, which nobody runs')
  return outcome
}
