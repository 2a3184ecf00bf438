import { InvalidArgumentError } from './errors.js'
import { native, type Native } from './native.js'
import { checkObject, checkOptions, listOf } from './values.js'

/**
 * Which dead tasks: of these ids, with these receipts, or so many of the oldest; of them, or else of all, those that fit
 * the rest.
 */
export interface DeadTasks {
  /** The newest dead one of each id. */
  ids?: Iterable<string> | undefined
  /** An id that died more than once has several. */
  receipts?: Iterable<bigint> | undefined
  /** So many of the oldest. */
  count?: number | undefined
  /** Only those whose reason begins so. */
  reason?: string | undefined
  /** Only those whose id begins so. */
  prefix?: string | undefined
  /** Only those that died so many milliseconds ago, or earlier. */
  olderThanMs?: number | undefined
}

const DEAD_TASKS: ReadonlySet<string> = new Set<keyof DeadTasks>(
  ['ids', 'receipts', 'count', 'reason', 'prefix', 'olderThanMs'])

/** @internal */
export function deadTasks(verb: string, which: string | readonly string[] | number | DeadTasks): Native.DeadTasks {
  const { ids, receipts, count, reason, prefix, olderThanMs } = named(which)
  const among = [ids, receipts, count].filter(isGiven)
  if (among.length > 1) throw new InvalidArgumentError(`${verb} takes one of ids, receipts and a count`)
  // A text that happens to be empty must not mean all of them.
  if (among.length === 0 && !reason && !prefix && !isGiven(olderThanMs)) {
    throw new InvalidArgumentError(`${verb} needs ids, receipts, a count, a reason, a prefix or olderThanMs`)
  }
  return new (native().DeadTasks)(
    isGiven(ids) ? listOf(ids, 'ids', id => id) : undefined,
    isGiven(receipts) ? listOf(receipts, 'receipts', receipt => receipt) : undefined,
    count, reason, prefix, olderThanMs)
}

/** The short forms, in full. */
function named(which: string | readonly string[] | number | DeadTasks = {}): DeadTasks {
  if (typeof which === 'number') return { count: which }
  if (typeof which === 'string') return { ids: [which] }
  checkObject(which, 'dead tasks')
  if (Symbol.iterator in which) return { ids: which }
  checkOptions(which, DEAD_TASKS)
  return which
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null
}
