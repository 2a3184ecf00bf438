import { types } from 'node:util'
import type { Failure } from '../native'

/** What is known about an error besides its message. */
export interface ErrorDetails {
  /** What was attempted, such as `acquire`. */
  operation?: string | undefined
  /** The name of the lock or queue. */
  resource?: string | undefined
  /** Whether the same call may succeed later without any change. */
  retryable?: boolean | undefined
}

/**
 * Something went wrong in the store or in this library.
 *
 * Every error of this package is one; `code` is stable, and belongs to one class each.
 */
export class StanchionError extends Error {
  /** Such as `ERR_STANCHION_LOCK_TIMEOUT`. */
  declare readonly code: `ERR_STANCHION_${string}`
  /** What was attempted, such as `acquire`. */
  readonly operation: string | undefined
  /** The name of the lock or queue. */
  readonly resource: string | undefined
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean

  constructor(message: string, details: ErrorDetails = {}) {
    super(message)
    this.operation = details.operation
    this.resource = details.resource
    this.retryable = details.retryable ?? false
  }

  static {
    named(this, 'StanchionError', 'ERR_STANCHION_INTERNAL')
  }
}

/** The lock stayed busy for the whole wait. */
export class LockTimeoutError extends StanchionError {
  static { named(this, 'LockTimeoutError', 'ERR_STANCHION_LOCK_TIMEOUT') }
}

/** The lease is no longer ours: taken, broken, overwritten, or forgotten by the store. */
export class LeaseLostError extends StanchionError {
  static { named(this, 'LeaseLostError', 'ERR_STANCHION_LEASE_LOST') }
}

/** The lease ran out; nobody is known to have taken the lock since. */
export class LeaseExpiredError extends LeaseLostError {
  static { named(this, 'LeaseExpiredError', 'ERR_STANCHION_LEASE_EXPIRED') }
}

/** A newer delivery of the task exists, or it was settled otherwise. */
export class StaleReceiptError extends StanchionError {
  static { named(this, 'StaleReceiptError', 'ERR_STANCHION_STALE_RECEIPT') }
}

/** The queue is at its limit. */
export class QueueFullError extends StanchionError {
  static { named(this, 'QueueFullError', 'ERR_STANCHION_QUEUE_FULL') }
}

/** An argument is outside what is allowed; nothing was sent. */
export class InvalidArgumentError extends StanchionError {
  static { named(this, 'InvalidArgumentError', 'ERR_STANCHION_INVALID_ARGUMENT') }
}

/** The store or its version cannot do this, or there is no build for this platform. */
export class UnsupportedError extends StanchionError {
  static { named(this, 'UnsupportedError', 'ERR_STANCHION_UNSUPPORTED') }
}

/** The store could not be reached, or refused to work, within the time given. */
export class StoreUnavailableError extends StanchionError {
  static { named(this, 'StoreUnavailableError', 'ERR_STANCHION_STORE_UNAVAILABLE') }
}

/** The request may or may not have been carried out. */
export class IndeterminateError extends StanchionError {
  static { named(this, 'IndeterminateError', 'ERR_STANCHION_INDETERMINATE') }
}

/** The key holds a value of another kind. */
export class WrongTypeError extends StanchionError {
  static { named(this, 'WrongTypeError', 'ERR_STANCHION_WRONG_TYPE') }
}

/** The store's user lacks a right. */
export class DeniedError extends StanchionError {
  static { named(this, 'DeniedError', 'ERR_STANCHION_DENIED') }
}

/** The store answered something that makes no sense, or its file is damaged. */
export class CorruptError extends StanchionError {
  static { named(this, 'CorruptError', 'ERR_STANCHION_CORRUPT') }
}

/** The caller gave up. A call that an `AbortSignal` ends rejects with the signal's reason instead. */
export class CancelledError extends StanchionError {
  static { named(this, 'CancelledError', 'ERR_STANCHION_CANCELLED') }
}

/** The client was closed. */
export class ClosedError extends StanchionError {
  static { named(this, 'ClosedError', 'ERR_STANCHION_CLOSED') }
}

/** The object belongs to another process. */
export class ForkedError extends StanchionError {
  static { named(this, 'ForkedError', 'ERR_STANCHION_FORKED') }
}

/** A defect in this library. */
export class InternalError extends StanchionError {
  static { named(this, 'InternalError', 'ERR_STANCHION_INTERNAL') }
}

/** Name and code are the class's, not each instance's. */
function named(kind: { prototype: object }, name: string, code: string): void {
  for (const [key, value] of Object.entries({ name, code })) {
    Object.defineProperty(kind.prototype, key, { value, writable: true, configurable: true, enumerable: false })
  }
}

const KINDS: Readonly<Record<string, new (message: string, details?: ErrorDetails) => StanchionError>> = {
  LockTimeout: LockTimeoutError,
  LeaseLost: LeaseLostError,
  LeaseExpired: LeaseExpiredError,
  StaleReceipt: StaleReceiptError,
  QueueFull: QueueFullError,
  InvalidArgument: InvalidArgumentError,
  Unsupported: UnsupportedError,
  StoreUnavailable: StoreUnavailableError,
  Indeterminate: IndeterminateError,
  WrongType: WrongTypeError,
  Denied: DeniedError,
  Corrupt: CorruptError,
  Cancelled: CancelledError,
  Closed: ClosedError,
  Forked: ForkedError,
  Internal: InternalError,
}

/** What a call is, for errors that do not have it: the operation in the core's words, and what it was called on. */
export interface About {
  readonly operation: string
  readonly on?: { readonly name: string } | { readonly queue: string, readonly id: string } | undefined
}

export function detailsOf(about: About | undefined): ErrorDetails {
  if (about?.on === undefined) return { operation: about?.operation }
  const name: unknown = 'name' in about.on ? about.on.name : `${about.on.queue}/${about.on.id}`
  // What is no text is no name.
  return { operation: about.operation, resource: typeof name === 'string' ? name : undefined }
}

/** The error for a failure of the core; a kind that this version does not know is the base class. */
export function errorOf(failure: Failure, about?: About): StanchionError {
  const { message, operation, name, retryable } = failure
  const other = detailsOf(about)
  return new (KINDS[failure.kind] ?? StanchionError)(
    message, { operation: operation ?? other.operation, resource: name ?? other.resource, retryable })
}

/**
 * The same error; one of our checks gets what was attempted. Its stack begins below `inner`: V8 keeps ten
 * frames, and the caller's are to be among them.
 */
export function during(thrown: unknown, about: About | undefined, inner?: (...given: any[]) => unknown): unknown {
  if (!(thrown instanceof InvalidArgumentError) || thrown.operation !== undefined) return thrown
  if (inner !== undefined) Error.captureStackTrace(thrown, inner)
  return Object.assign(thrown, detailsOf(about))
}

/** What is thrown before a call begins: by a check of ours, or by the native half when it cannot convert an argument. */
export function refusalOf(thrown: unknown, about?: About, inner?: (...given: any[]) => unknown): unknown {
  if (!types.isNativeError(thrown) || thrown instanceof StanchionError) return during(thrown, about, inner)
  const { code, message } = thrown as { code?: unknown, message: string }
  if (typeof code !== 'string') return thrown
  if (code === 'GenericFailure') return new InternalError(message)
  return code === 'InvalidArg' || code.endsWith('Expected') ? new InvalidArgumentError(message, detailsOf(about)) : thrown
}

/** An error, also of another realm, as of `node:vm` or a runner of tests. */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error
}

/** Hangs an error onto the end of another one's chain of causes, if there is a place for it. */
export function attach(to: unknown, error: unknown): void {
  try {
    hang(to, error)
  } catch {
    // Properties of somebody's error throw: then it goes on as it is.
  }
}

function hang(to: unknown, error: unknown): void {
  const seen = new Set<unknown>([error])
  let last = to
  while (isError(last) && !seen.has(last)) {
    seen.add(last)
    if (last.cause === undefined) {
      if (Object.isExtensible(last)) {
        Object.defineProperty(last, 'cause', { value: error, writable: true, configurable: true, enumerable: false })
      }
      return
    }
    last = last.cause
  }
}
