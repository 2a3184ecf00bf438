import { InvalidArgumentError, refusalOf } from './errors.js'
import { native, type Native } from './native.js'
import { encode, type Headers, type Payload } from './payload.js'
import { checkNames, dueTime, maybeDate, shown, type Time } from './values.js'

/**
 * Tasks at set times: cron for a queue. Each time is a slot, and each slot makes one task with the id
 * `schedule@2027-01-31T02:00:00Z`, whoever fires it and however many could. Whoever claims from the queue fires what is
 * due. `Json` is the type of the queue's payloads, if it is given.
 */
export interface Schedule<Json = any> {
  /** Is in the queue once. */
  id: string
  /**
   * When its slots are: `0 3 * * *` (a cron text of 5 fields, or of 6 with seconds first), `@daily` and the like,
   * `every 90s`, or `at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00`.
   */
  when: string
  /** The time zone of a cron text, such as `Europe/Berlin`. Default: `UTC`. */
  tz?: string | undefined
  /**
   * What becomes of slots that nobody fired in time: the last one is fired, late; none that is more than a minute late;
   * or all, but for so many at most, the newest (1 to 1,000). Default: `last`.
   */
  missed?: 'last' | 'skip' | number | undefined
  /**
   * What becomes of a slot while the task of the one before is pending or running: it gets its task all the same, or
   * none. Default: `queue`.
   */
  overlap?: 'queue' | 'skip' | undefined
  /**
   * Delays all slots by the same time, which is drawn from the id and is shorter than so many milliseconds, a day at
   * most. Default: none.
   */
  jitterMs?: number | undefined
  /** No slot before. */
  starts?: Time | undefined
  /** No slot after. */
  ends?: Time | undefined
  /** Whether a new one begins paused; one that is there stays as it is. Default: false. */
  paused?: boolean | undefined
  /** Of each of its tasks: bytes, or any JSON value; 16 MiB at most. Default: no bytes. */
  payload?: (unknown extends Json ? Payload : Json) | undefined
  /** Of each of its tasks: short texts that travel along. */
  headers?: Headers | undefined
  /** Of each of its tasks: 0 to 255, higher ones first. Default: 0. */
  priority?: number | undefined
  /** Of each of its tasks: deliveries without success before it is dead. Default: 20. */
  maxAttempts?: number | undefined
  /** Of each of its tasks: not delivered later than so many milliseconds after its slot was fired. Default: never expires. */
  expiresMs?: number | undefined
  /** Of each of its tasks: see `Task`. Default: none. */
  key?: string | undefined
}

/** What became of a schedule that was put: it is new; was there, and is changed; or was there as it is. */
export type ScheduleOutcome = 'added' | 'changed' | 'kept'

/** A schedule as it is in a queue. */
export interface ScheduleInfo {
  id: string
  /** If a newer version has put it, what that has stored. */
  when: string
  tz: string
  /** Null if a newer version has put it. */
  missed: 'last' | 'skip' | number | null
  overlap: 'queue' | 'skip'
  jitterMs: number
  starts: Date | null
  ends: Date | null
  paused: boolean
  /** When its next slot is due; null if it is paused, or none comes any more. */
  next: Date | null
  /** For how long that has been due, in milliseconds: more than a moment means that nobody works on the queue. */
  lateMs: number
  /** Whose list it is in, if it is in one. */
  owner: string | null
  /** How many tasks it has made. */
  fired: number
  /** How many slots got no task: the one before was running, or the queue was full. */
  skipped: number
  /** How many slots were past and were not fired. */
  missedSlots: number
  /** The last task that it made. */
  lastTask: string | null
  priority: number
  maxAttempts: number
  expiresMs: number | null
  /** Bytes of its tasks' payload and headers, as stored. */
  size: number
  /** Of each of its tasks. */
  key: string | null
}

/**
 * Some schedules, in the order in which they are due; those that are paused or over come last. `next` gets the next page;
 * null if this was the last.
 */
export interface SchedulePage {
  schedules: ScheduleInfo[]
  next: string | null
}

/** What became of an owner's list of schedules. */
export interface Synced {
  added: number
  changed: number
  kept: number
  /** How many the owner had and has no more. */
  removed: number
  /** If the queue has a list of a later generation, that one: then nothing was changed. */
  newer: number | null
}

const SCHEDULE: ReadonlySet<string> = new Set<keyof Schedule>([
  'id', 'when', 'tz', 'missed', 'overlap', 'jitterMs', 'starts', 'ends', 'paused', 'payload', 'headers', 'priority',
  'maxAttempts', 'expiresMs', 'key'])

/**
 * When the slots of a schedule after a time are due, so many at most: fewer if it ends. One with a period begins at this
 * time. Asks no store.
 *
 * @throws {InvalidArgumentError} for a schedule that `queue.schedule` would refuse
 */
export function previewSchedule(schedule: Schedule, after: Time, count: number): Date[] {
  try {
    const times = nativeSchedule(schedule).preview(dueTime(after, 'after') as number, count)
    return times.map(time => new Date(time))
  } catch (thrown) {
    throw refusalOf(thrown)
  }
}

/** @internal */
export function nativeSchedule(schedule: Schedule): Native.Schedule {
  if (typeof schedule !== 'object' || schedule === null) {
    throw new InvalidArgumentError(`a schedule is an object, not ${shown(schedule)}: { id, when, payload }`)
  }
  checkNames(schedule, SCHEDULE, 'property of a schedule')
  const { id, when, tz, missed, overlap, jitterMs, starts, ends, paused, priority, maxAttempts, expiresMs, key } = schedule
  for (const [name, given] of Object.entries({ id, when })) {
    if (typeof given !== 'string') throw new InvalidArgumentError(`${name} is a text, not ${shown(given)}: { id, when, payload }`)
  }
  const [payload, headers] = encode(schedule.payload, schedule.headers)
  const [word, most] = typeof missed === 'string' ? [missed] : [undefined, missed]
  return new (native().Schedule)(
    id, when, tz, word, most, overlap, jitterMs, dueTime(starts, 'starts'), dueTime(ends, 'ends'), paused, payload, headers,
    priority, maxAttempts, expiresMs, key)
}

/** @internal */
export function scheduleInfo(found: Native.ScheduleInfo): ScheduleInfo {
  const { jitter, late, expires, ...rest } = found
  return {
    ...rest,
    missed: (found.missed ?? null) as ScheduleInfo['missed'],
    overlap: found.overlap as ScheduleInfo['overlap'],
    jitterMs: jitter,
    starts: maybeDate(found.starts),
    ends: maybeDate(found.ends),
    next: maybeDate(found.next),
    lateMs: late,
    owner: found.owner ?? null,
    lastTask: found.lastTask ?? null,
    expiresMs: expires ?? null,
    key: found.key ?? null,
  }
}

/** @internal */
export function synced(found: Native.Synced): Synced {
  return { ...found, newer: found.newer ?? null }
}
