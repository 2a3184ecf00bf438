/** Async iterators that may wait for ever, and end all the same. */

import { offAbort, onAbort } from './bridge.js'

export type Loop<T> = AsyncGenerator<T, void, undefined>

/** Why a wait ends whose iterator was closed. */
export const CLOSED = Symbol('closed')

/** A generator that ends also while it waits: its waits are to end when what it is made with is aborted. */
export function closable<T>(make: (end: AbortController) => Loop<T>): Loop<T> {
  const end = new AbortController()
  const loop = make(end)
  const { return: close, throw: fail } = loop
  // A generator does either when its wait is over; and that may be never.
  loop.return = value => {
    end.abort(CLOSED)
    return close.call(loop, value)
  }
  loop.throw = error => {
    end.abort(CLOSED)
    return fail.call(loop, error)
  }
  return loop
}

/** One of its waits, which the caller's signal ends, too. */
export async function waiting<T>(
  end: AbortController, signal: AbortSignal | null | undefined, wait: () => Promise<T>
): Promise<T> {
  const abort = (): void => end.abort(signal?.reason)
  if (signal) onAbort(signal, abort)
  try {
    return await wait()
  } finally {
    if (signal) offAbort(signal, abort)
  }
}
