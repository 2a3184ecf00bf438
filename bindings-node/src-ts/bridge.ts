/**
 * From calls of the native half to promises. Its threads put results down and ring; `deliver` collects them, many at a
 * time, and settles their promises.
 */

import { setImmediate } from 'node:timers'
import { Calls } from './calls.js'
import { InvalidArgumentError, detailsOf, errorOf, refusalOf, type About } from './errors.js'
import { native, type Native } from './native.js'

type Bridge = Native.Bridge

/** Starts a call of the native half under a number. */
export type Start = (bridge: Bridge, call: number) => void

interface Waiting {
  readonly number: number
  resolve(value: any): void
  reject(reason: unknown): void
  convert: ((value: any) => unknown) | undefined
  news: ((news: any) => void) | undefined
  signal: AbortSignal | undefined
  aborted: (() => void) | undefined
  /** Whether the process stays alive for it. */
  counts: boolean
  about: About | undefined
}

// What the kinds of notes are.
const DONE = 0
const NEWS = 2

const waiting = new Calls<Waiting>()
let made: Bridge | undefined
let counted = 0
/** Calls that wait for the end of this turn, to be started together: that saves most of what each would cost. */
let fresh = 0
/** So many are started at once in any case, so that the store works while this thread goes on. */
const AT_ONCE = 24
let keepsAlive = false
let deliversSoon = false

/** Where a call's signal is. Read by the call: what a getter throws rejects the promise, too. */
export interface Signalled {
  signal?: AbortSignal | null | undefined
}

/**
 * Makes a call; whatever goes wrong, also with the arguments, rejects the promise. Aborted, it gives up cleanly and
 * rejects with the signal's reason.
 */
export function call<N, T = N>(
  start: Start, convert?: (value: N) => T, about?: About, options?: Signalled
): Promise<T> {
  return begin(start, { convert, about, options, counts: true })
}

/** As `call`, but the process does not stay alive for it; and it begins at once: this turn may last. */
export function watch<N>(start: Start): Promise<N> {
  const watched = begin<N, N>(start, { counts: false })
  flush()
  return watched
}

/** Like `call`, with a callback for what happens while the call goes on. */
export function follow<N, T>(
  start: Start, convert: (value: N) => T, about: About, news: (news: any) => void
): Promise<T> {
  return begin(start, { convert, about, news, counts: true })
}

/** The callbacks of each signal, called by one listener: Node warns of more than ten. */
const listening = new WeakMap<AbortSignal, Set<() => void>>()

export function onAbort(signal: AbortSignal, tell: () => void): void {
  const told = listening.get(signal)
  if (told !== undefined) {
    told.add(tell)
    return
  }
  listening.set(signal, new Set([tell]))
  signal.addEventListener('abort', tellAll)
}

export function offAbort(signal: AbortSignal, tell: () => void): void {
  const told = listening.get(signal)
  if (told === undefined || !told.delete(tell) || told.size > 0) return
  listening.delete(signal)
  signal.removeEventListener('abort', tellAll)
}

function tellAll(this: AbortSignal): void {
  for (const tell of [...listening.get(this) ?? []]) tell()
}

/** Rejects if the signal is none, or aborted already. */
export function checkSignal(signal: AbortSignal | null | undefined, about?: About): void {
  if (signal === undefined || signal === null) return
  if (typeof signal.addEventListener !== 'function' || typeof signal.aborted !== 'boolean') {
    throw new InvalidArgumentError('signal is no AbortSignal', detailsOf(about))
  }
  if (signal.aborted) throw signal.reason
}

function begin<N, T>(
  start: Start,
  how: {
    convert?: ((value: N) => T) | undefined
    news?: (news: any) => void
    options?: Signalled | undefined
    counts: boolean
    about?: About | undefined
  }
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const { convert, news, options, counts, about } = how
    let signal: AbortSignal | undefined
    try {
      signal = options?.signal ?? undefined
      checkSignal(signal, about)
    } catch (thrown) {
      reject(thrown)
      return
    }
    let number: number
    let bridge: Bridge
    try {
      bridge = made ??= make()
      number = waiting.next()
      start(bridge, number)
    } catch (thrown) {
      reject(refusalOf(thrown, about, begin))
      return
    }
    const one: Waiting = { number, resolve, reject, convert, news, signal, aborted: undefined, counts, about }
    waiting.add(one)
    if (counts) {
      counted += 1
      if (!keepsAlive) keepAlive(bridge, true)
    }
    if (signal !== undefined) {
      one.aborted = () => giveUp(bridge, one)
      onAbort(signal, one.aborted)
    }
    fresh += 1
    if (fresh === 1) process.nextTick(flush)
    if (fresh === AT_ONCE) flush()
    // By a getter of the options.
    if (signal?.aborted === true) giveUp(bridge, one)
  })
}

function giveUp(bridge: Bridge, one: Waiting): void {
  // Ended by what another one of them did.
  if (waiting.get(one.number) !== one) return
  end(one)
  if (native().cancel(bridge, one.number)) deliverSoon()
  one.reject(one.signal?.reason)
  letGo(bridge)
}

/**
 * Starts the calls of this turn now. If that fails there is no thread to work on anything: then none of those that
 * wait was started.
 */
export function flush(): void {
  if (made === undefined || fresh === 0) return
  fresh = 0
  try {
    if (native().flush(made)) deliverSoon()
  } catch (thrown) {
    const failure = refusalOf(thrown)
    for (const one of waiting.all()) {
      native().cancel(made, one.number)
      end(one)
      one.reject(failure)
    }
    letGo(made)
  }
}

function end(one: Waiting): void {
  waiting.delete(one)
  if (one.counts) counted -= 1
  if (one.signal !== undefined && one.aborted !== undefined) {
    offAbort(one.signal, one.aborted)
  }
}

function make(): Bridge {
  // These have functions of libuv's names, too, but Bun's end the process, and Deno's damage its memory.
  const isOther = process.versions['bun'] !== undefined || process.versions['deno'] !== undefined
  const hosted = process.env['STANCHION_HOST_LOOP'] !== '0' && !isOther
  const bridge = native().openBridge(deliver, hosted)
  // Before the clients let go of what they hold: what they are given from then on would be nobody's.
  process.once('exit', () => { native().abandon(bridge) })
  return bridge
}

function keepAlive(bridge: Bridge, yes: boolean): void {
  keepsAlive = yes
  native().keepAlive(bridge, yes)
}

/** The process may end if nothing is waited for. */
function letGo(bridge: Bridge): void {
  if (counted === 0 && keepsAlive) keepAlive(bridge, false)
}

/**
 * Rejects with an error that is made in a turn of its own: there V8 knows who awaits it, and puts the caller's frames on
 * its stack. So that costs nothing as long as nothing fails.
 */
function fail(one: Waiting, failure: Native.Failure): void {
  let begin = (): void => {}
  const turn = new Promise<void>(resolve => { begin = resolve })
  one.resolve(turn.then(() => { throw errorOf(failure, one.about) }))
  // The promise waits for that turn from the next one on.
  begin()
}

/** Delivers in a turn of its own: what else the loop has to do comes in between. */
function deliverSoon(): void {
  if (deliversSoon) return
  deliversSoon = true
  setImmediate(() => {
    deliversSoon = false
    deliver()
  })
}

/** Runs no code of others: that comes with the ticks and microtasks after it. */
function deliver(): void {
  const bridge = made
  if (bridge === undefined) return
  const notes = native().collect(bridge)
  // The first item has whether there are more.
  if (notes[0] === true) deliverSoon()
  for (let at = 1; at < notes.length; at += 3) {
    const value = notes[at + 2]
    const one = waiting.get(notes[at + 1] as number)
    if (one === undefined) continue
    if (notes[at] === NEWS) {
      if (one.news !== undefined) process.nextTick(one.news, value)
      continue
    }
    end(one)
    try {
      if (notes[at] === DONE) one.resolve(one.convert === undefined ? value : one.convert(value))
      else fail(one, value as Native.Failure)
    } catch (thrown) {
      // Such as a Date that somebody has replaced: the others must not wait for ever.
      one.reject(thrown)
    }
  }
  letGo(bridge)
}

/**
 * Aborted when something is lost, with the error of the loss: now, or when the wait for its loss is over. The process
 * does not stay alive for it.
 */
export function lossSignal(loss: Native.Failure | null, waitLost: Start): AbortSignal {
  const controller = new AbortController()
  const tell = (loss: Native.Failure | null) => { if (loss !== null) controller.abort(errorOf(loss)) }
  if (loss !== null) tell(loss)
  else watch<Native.Failure | null>(waitLost).then(tell, () => {})
  return controller.signal
}
