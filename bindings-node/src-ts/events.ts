/** What happens to the tasks of a queue. */

import { checkSignal, type Signalled } from './bridge.js'
import type { About } from './errors.js'
import { CLOSED, closable, waiting, type Loop } from './loop.js'
import type { Native } from './native.js'
import { checkOptions } from './values.js'

/** Which events, and how long to wait for them. */
export interface EventsOptions extends Signalled {
  /**
   * Begins after the event with this number; 0 begins with the oldest that is kept. Default: with the next one that happens once
   * the iteration has begun.
   */
  after?: number | undefined
  /**
   * Ends when nothing has happened for so long, in milliseconds, 365 days at most; 0 only looks. Default: waits for ever.
   */
  waitMs?: number | undefined
  /** Gives up: the loop throws the signal's reason. */
  signal?: AbortSignal | undefined
}

const OPTIONS: ReadonlySet<string> = new Set<keyof EventsOptions>(['after', 'waitMs', 'signal'])

/** Something that happened to a task. */
export interface TaskEvent {
  /** One more than that of the event before. */
  number: number
  /** When, by the clock of the store. */
  at: Date
  /**
   * It was `added` (also by a schedule, or kicked), `started`, made `progress`, was `done`, `failed` and will be tried again, is
   * `dead`, was `cancelled`, `removed`, or `put_back`.
   */
  what: 'added' | 'started' | 'progress' | 'done' | 'failed' | 'dead' | 'cancelled' | 'removed' | 'put_back'
  /** Which task. */
  id: string
  /** Of its enqueue, as in `Enqueued`. */
  version: bigint
  /** Which attempt it was; 0 before the first. */
  attempt: number
  /** Why, if it failed or is dead. */
  reason: string | null
  /** Whether there were others before this one that are not kept any more. */
  missed: boolean
}

type Asking = (after: number | undefined, waitMs: number | undefined, signal: AbortSignal) => Promise<Native.EventPage>

/** The events of one page after the other. */
export function events(ask: Asking, about: About, options?: EventsOptions): Loop<TaskEvent> {
  return closable(end => take(ask, end, about, options))
}

async function* take(ask: Asking, end: AbortController, about: About, options: EventsOptions = {}): Loop<TaskEvent> {
  checkOptions(options, OPTIONS, about)
  const { waitMs, signal } = options
  let { after } = options
  checkSignal(signal, about)
  try {
    for (;;) {
      const page = await waiting(end, signal, () => ask(after, waitMs, end.signal))
      for (const event of taskEvents(page)) {
        yield event
        checkSignal(signal)
      }
      if (page.events.length === 0 && waitMs !== undefined && waitMs !== null) return
      after = page.cursor
    }
  } catch (thrown) {
    if (thrown !== CLOSED) throw thrown
  }
}

/** If some are missed, it is before the first one. */
function taskEvents({ events, missed }: Native.EventPage): TaskEvent[] {
  return events.map(({ number, at, what, id, version, attempt, reason }, place) => ({
    number, at: new Date(at), what: what as TaskEvent['what'], id, version, attempt, reason: reason ?? null,
    missed: missed && place === 0
  }))
}
