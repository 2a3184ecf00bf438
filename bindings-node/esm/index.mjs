// The same objects as for `require`: there is one copy of the classes.
import stanchion from '../dist/index.js'

export const {
  CancelledError, Claim, Client, ClosedError, CorruptError, DeniedError, FlowInput, ForkedError, IndeterminateError,
  InternalError, InvalidArgumentError, Lease, LeaseExpiredError, LeaseLostError, Limiter, Lock, LockTimeoutError, Queue,
  QueueFullError, Queues, RwLock, StaleReceiptError, StanchionError, StoreUnavailableError, TaskKind, TaskResult, UnsupportedError,
  Worker, WrongTypeError, chain, connect, previewSchedule
} = stanchion

export default stanchion
