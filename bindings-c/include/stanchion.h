/*
 * Stanchion for C and C++: distributed locks, and a queue of tasks. Made from the sources of the library: `make headers`.
 *
 * Handles are numbers. 0 is none. One that was freed, is of another kind, or was never given out is noticed, and answered
 * with STANCHION_ERR_INVALID_HANDLE; also if another thread frees it in the middle of a call, which then goes on to its
 * end. Each kind has a function to free it.
 *
 * Statuses: a function that can fail returns STANCHION_OK, which is 0; another outcome that is no error, which is
 * positive; or an error, which is negative (see stanchion_status).
 *
 * Errors: the last argument of such a function is NULL, or the address of a pointer. If it fails, and only then, the
 * pointer gets an error with an explanation, which is yours to free.
 *
 * Out-parameters are written only if the function does not fail, and only if the outcome has a value for them.
 *
 * Texts are UTF-8 with a length; a NUL at the end is neither needed nor counted. NULL with the length 0 is an empty text, or
 * "not given" where a text may be missing. Payloads are any bytes. The library copies what it is passed. A text that it
 * gives is a view, which lives as long as the handle that it came from.
 *
 * Structs begin with their size, so that they can grow. For those that are passed, call their init function with sizeof,
 * and change what is to be changed; for those that are filled in, set struct_size to sizeof. NULL options are the default.
 *
 * Times are milliseconds: spans, or (named so) since 1970. -1 stands for "not given" where a number may be missing.
 *
 * Threads: any thread may call any function, at any time, on any handle. A call that waits holds nobody else up. No function
 * may be called in a signal handler. The library calls no function of the program; its own threads have all signals
 * blocked.
 *
 * Cancellation (Linux): pthread_cancel neither ends a thread in the middle of a call nor the call earlier. The thread ends at its
 * first cancellation point after the call: free in a cleanup handler what calls have given. To end a wait, set the number
 * that `cancel`, mostly in the options, points to. With PTHREAD_CANCEL_ASYNCHRONOUS no function may be called.
 *
 * Forks: a child may go on using a client. A lease, claim or worker stays the parent's: in the child calls on it answer
 * STANCHION_ERR_FORKED, and freeing it there does not end it.
 */

#ifndef STANCHION_H
#define STANCHION_H

#include <stddef.h>
#include <stdint.h>

// The number in the name of the shared library. A program that was built for another number cannot use it.
#define STANCHION_ABI_VERSION 0

// Bytes of an id and the NUL at its end.
#define STANCHION_ID_SIZE 513

// The most bytes of a task's payload: 16 MiB. Of a task with headers these count, too, as a JSON object without spaces.
#define STANCHION_MAX_PAYLOAD 16777216

// What functions return: zero; what happened, if it is no error; or an error, which is negative.
typedef enum stanchion_status {
  // Done.
  STANCHION_OK = 0,
  // Somebody else has the lock.
  STANCHION_BUSY = 1,
  // No task, no event, for now.
  STANCHION_EMPTY = 2,
  // The id was in the queue already; see the outcome.
  STANCHION_DUPLICATE = 3,
  // There is no such task or holder.
  STANCHION_ABSENT = 4,
  // The task has another version; nothing was changed.
  STANCHION_OTHER_VERSION = 5,
  // The task is claimed; nothing was changed.
  STANCHION_CLAIMED = 6,
  // The task is dead; nothing was changed.
  STANCHION_DEAD = 7,
  // The worker has ended: there will be no more tasks.
  STANCHION_OVER = 8,
  // The lease or claim is lost, or has ended.
  STANCHION_LOST = 9,
  // There is no value: this caller is to compute it.
  STANCHION_COMPUTE = 10,
  // The value was not stored: the lease was lost, or the store did not answer. The next caller computes.
  STANCHION_NOT_STORED = 11,
  // The task runs: it ends with this run.
  STANCHION_RUNNING = 12,
  // The task is not done yet.
  STANCHION_PENDING = 13,
  // The lock stayed busy for the whole wait.
  STANCHION_ERR_LOCK_TIMEOUT = -1,
  // The lease is no longer yours: taken, broken, overwritten, or forgotten by the store.
  STANCHION_ERR_LEASE_LOST = -2,
  // The lease ran out; nobody is known to have taken the lock since.
  STANCHION_ERR_LEASE_EXPIRED = -3,
  // A newer delivery of the task exists, or it was settled otherwise.
  STANCHION_ERR_STALE_RECEIPT = -4,
  // The queue is at its limit.
  STANCHION_ERR_QUEUE_FULL = -5,
  // An argument is outside what is allowed; nothing was sent.
  STANCHION_ERR_INVALID_ARGUMENT = -6,
  // The store or its version cannot do this.
  STANCHION_ERR_UNSUPPORTED = -7,
  // The store could not be reached, or refused to work, within the time given.
  STANCHION_ERR_STORE_UNAVAILABLE = -8,
  // The request may or may not have been carried out.
  STANCHION_ERR_INDETERMINATE = -9,
  // The key holds a value of another kind.
  STANCHION_ERR_WRONG_TYPE = -10,
  // The store's user lacks a right.
  STANCHION_ERR_DENIED = -11,
  // The store answered something that makes no sense, or its file is damaged.
  STANCHION_ERR_CORRUPT = -12,
  // The caller gave up.
  STANCHION_ERR_CANCELLED = -13,
  // The client was closed.
  STANCHION_ERR_CLOSED = -14,
  // The object was made before a fork and belongs to the parent process.
  STANCHION_ERR_FORKED = -15,
  // A defect in the library.
  STANCHION_ERR_INTERNAL = -16,
  // Not a handle of this kind: zero, freed already, or never given out. Nothing was done.
  STANCHION_ERR_INVALID_HANDLE = -100,
} stanchion_status;

// How a lock is held.
typedef enum stanchion_held_as {
  // In a way that this header does not know.
  STANCHION_HELD_OTHERWISE = 0,
  // By a lease of this library.
  STANCHION_HELD_LEASE = 1,
  // Offered to a waiter that has not confirmed yet.
  STANCHION_HELD_OFFER = 2,
  // By nobody: closed for a time after a release with cooldown.
  STANCHION_HELD_COOLDOWN = 3,
  // By a value that another program wrote.
  STANCHION_HELD_FOREIGN = 4,
} stanchion_held_as;

// Why a lease or a claim was lost.
typedef enum stanchion_loss {
  // It is not lost.
  STANCHION_LOSS_NONE = 0,
  // It ran out: it was not renewed, or renewals did not get through in time.
  STANCHION_LOSS_EXPIRED = 1,
  // It was renewed for as long as max_hold_ms or max_run_ms allows.
  STANCHION_LOSS_MAX_HOLD = 2,
  // Another has the lock or the task, or the task was settled.
  STANCHION_LOSS_TAKEN = 3,
  // Somebody called stanchion_lock_break_lease.
  STANCHION_LOSS_BROKEN = 4,
  // The store has no record of it: it was flushed, or restarted without its data.
  STANCHION_LOSS_FORGOTTEN = 5,
  // Another program overwrote or deleted the lock's key.
  STANCHION_LOSS_OVERWRITTEN = 6,
  // The task was removed, or its queue purged.
  STANCHION_LOSS_REMOVED = 7,
  // The store refused the renewal for good.
  STANCHION_LOSS_REFUSED = 8,
  // The worker stops, and its grace is over: the claim is still renewed, but who works on it has to end.
  STANCHION_LOSS_STOPPED = 9,
  // For a reason that this header does not know.
  STANCHION_LOSS_OTHERWISE = 10,
  // The run took longer than its timeout: it has failed.
  STANCHION_LOSS_TIMEOUT = 11,
  // Somebody called stanchion_queue_cancel: the task ends with this run. Its ack is still accepted.
  STANCHION_LOSS_CANCELLED = 12,
} stanchion_loss;

// What to do if the id is in the queue already.
typedef enum stanchion_on_duplicate {
  // The task that is there stays as it is.
  STANCHION_KEEP = 0,
  // The new task takes its place, attempts start again.
  STANCHION_REPLACE = 1,
  // As REPLACE, but the due time moves on with every enqueue, until `window_ms` after the first.
  STANCHION_DEBOUNCE = 2,
  // At most one enqueue of the id is accepted per `window_ms`, whatever became of the task; otherwise as KEEP.
  STANCHION_THROTTLE = 3,
  // As KEEP, but if the id is running nothing comes after it.
  STANCHION_SKIP = 4,
} stanchion_on_duplicate;

// What an enqueue did.
typedef enum stanchion_outcome {
  // In a way that this header does not know.
  STANCHION_ENQUEUED_OTHERWISE = 0,
  // A new task.
  STANCHION_ADDED = 1,
  // The id was pending and stays as it is.
  STANCHION_KEPT = 2,
  // The id was pending and has been replaced.
  STANCHION_REPLACED = 3,
  // The id is running: this task comes after it.
  STANCHION_SUCCESSOR = 4,
  // Within the throttle window: nothing was changed.
  STANCHION_THROTTLED = 5,
  // The id is running, and the policy is SKIP: nothing was changed.
  STANCHION_SKIPPED = 6,
} stanchion_outcome;

// Where a task is.
typedef enum stanchion_task_state {
  // Somewhere that this header does not know.
  STANCHION_STATE_OTHERWISE = 0,
  // Due later.
  STANCHION_STATE_SCHEDULED = 1,
  // Due now.
  STANCHION_STATE_READY = 2,
  // Given to a worker.
  STANCHION_STATE_CLAIMED = 3,
  // Given up; kept for a while.
  STANCHION_STATE_DEAD = 4,
  // Due now, and held by a limit of its key.
  STANCHION_STATE_HELD = 5,
} stanchion_task_state;

// How a limiter counts. Each kind has names of its own.
typedef enum stanchion_limit_kind {
  // Evenly spaced, with bursts: a leaky bucket, a token bucket.
  STANCHION_GCRA = 0,
  // So many in each window of the store's clock.
  STANCHION_FIXED_WINDOW = 1,
  // So many in any window, wherever it begins.
  STANCHION_SLIDING_WINDOW = 2,
} stanchion_limit_kind;

// What keeps a queue from giving out tasks that are ready.
typedef enum stanchion_gate {
  // Something that this header does not know.
  STANCHION_GATE_OTHERWISE = 0,
  // Nothing.
  STANCHION_GATE_OPEN = 1,
  // It is paused.
  STANCHION_GATE_PAUSED = 2,
  // As many run as may at once.
  STANCHION_GATE_MAX_RUNNING = 3,
  // Its rate.
  STANCHION_GATE_RATE = 4,
  // A throttle.
  STANCHION_GATE_THROTTLED = 5,
} stanchion_gate;

// How a claim ended.
typedef enum stanchion_verdict_kind {
  // Done.
  STANCHION_ACK = 1,
  // To be tried again.
  STANCHION_NACK = 2,
  // Dead.
  STANCHION_BURY = 3,
  // Not tried.
  STANCHION_PUT_BACK = 4,
  // Not tried, and nothing more of its key for so long: see stanchion_claim_throttle.
  STANCHION_VERDICT_THROTTLE = 5,
} stanchion_verdict_kind;

// What happened to a task of a worker.
typedef enum stanchion_event_kind {
  // The task is done, and the store knows it.
  STANCHION_EVENT_COMPLETED = 1,
  // The task has failed; it will be tried again, unless DEAD follows.
  STANCHION_EVENT_FAILED = 2,
  // The task is dead: it failed for the last time, or was buried.
  STANCHION_EVENT_DEAD = 3,
  // The claim was lost, or its verdict came too late: another may work on the task now.
  STANCHION_EVENT_LOST = 4,
  // All tasks that were taken are settled, and there are no more for now.
  STANCHION_EVENT_EMPTY = 5,
  // The store could not be reached, or refused something, and the worker goes on. The reason is the error. Reported once,
  // until STORE_BACK.
  STANCHION_EVENT_STORE_FAILED = 6,
  // The claim was lost, or the worker stops, 2 s ago, and the task was not settled since: until it is, the worker gives out
  // one less at a time, and leaves this id to others.
  STANCHION_EVENT_STUCK = 7,
  // The store answers again, after STORE_FAILED; the reason is after how long.
  STANCHION_EVENT_STORE_BACK = 8,
  // Slots of the schedule with this id were missed while nobody worked on the queue: the reason says how many.
  STANCHION_EVENT_SLOTS_MISSED = 9,
} stanchion_event_kind;

// What happened to a task.
typedef enum stanchion_happened {
  // Something that this header does not know.
  STANCHION_HAPPENED_OTHERWISE = 0,
  // It was put in: by an enqueue that added or replaced it or made it a successor, by a schedule, by the intake, or because
  // it was dead and was kicked.
  STANCHION_HAPPENED_ADDED = 1,
  // A worker was given it.
  STANCHION_HAPPENED_STARTED = 2,
  // Its run has said how far it is.
  STANCHION_HAPPENED_PROGRESS = 3,
  // It was acked.
  STANCHION_HAPPENED_DONE = 4,
  // Its run failed, or its lease ended; it will be tried again.
  STANCHION_HAPPENED_FAILED = 5,
  // It was given up: it had failed for the last time, was buried, or had expired.
  STANCHION_HAPPENED_DEAD = 6,
  // It was cancelled, and is gone.
  STANCHION_HAPPENED_CANCELLED = 7,
  // It was removed.
  STANCHION_HAPPENED_REMOVED = 8,
  // Its run ended without having failed; it will be tried again.
  STANCHION_HAPPENED_PUT_BACK = 9,
} stanchion_happened;

// What becomes of slots that nobody fired in time, because nobody worked on the queue.
typedef enum stanchion_missed {
  // The last of them is fired, late.
  STANCHION_MISSED_LAST = 0,
  // None that is more than a minute late.
  STANCHION_MISSED_SKIP = 1,
  // All, but for `missed_max` at most: the newest.
  STANCHION_MISSED_ALL = 2,
} stanchion_missed;

// What becomes of a slot while the task of the slot before is pending or running.
typedef enum stanchion_overlap {
  // It gets its task all the same.
  STANCHION_OVERLAP_QUEUE = 0,
  // It gets none.
  STANCHION_OVERLAP_SKIP = 1,
} stanchion_overlap;

// What became of a schedule that was put into a queue.
typedef enum stanchion_schedule_outcome {
  // Something that this header does not know.
  STANCHION_SCHEDULE_OTHERWISE = 0,
  // It is new.
  STANCHION_SCHEDULE_ADDED = 1,
  // It was there, and is changed.
  STANCHION_SCHEDULE_CHANGED = 2,
  // It was there as it is.
  STANCHION_SCHEDULE_KEPT = 3,
} stanchion_schedule_outcome;

// What a node waits for of all others, but for those that wait for all themselves.
typedef enum stanchion_after_all {
  // Nothing.
  STANCHION_AFTER_ALL_NONE = 0,
  // It runs when all have succeeded.
  STANCHION_AFTER_ALL_THEN = 1,
  // It runs as soon as one has ended without success, once.
  STANCHION_AFTER_ALL_FAILED = 2,
  // It runs when all have ended, whatever came of them, also if the flow is cancelled.
  STANCHION_AFTER_ALL_FINALLY = 3,
} stanchion_after_all;

// How a flow is.
typedef enum stanchion_flow_state {
  // In a way that this header does not know.
  STANCHION_FLOW_OTHERWISE = 0,
  // Nodes wait, or are in their queues.
  STANCHION_FLOW_RUNNING = 1,
  // All nodes have ended, and all that were to run have succeeded.
  STANCHION_FLOW_DONE = 2,
  // All nodes have ended, and one that was to run did not succeed.
  STANCHION_FLOW_FAILED = 3,
  // It was cancelled, and all nodes have ended.
  STANCHION_FLOW_CANCELLED = 4,
} stanchion_flow_state;

// What a node of a flow is doing.
typedef enum stanchion_node_state {
  // Something that this header does not know.
  STANCHION_NODE_OTHERWISE = 0,
  // It waits for others.
  STANCHION_NODE_WAITING = 1,
  // Its task is in its queue.
  STANCHION_NODE_PUT = 2,
  // The same, and the task was told to end.
  STANCHION_NODE_ENDING = 3,
  // Its task was acked.
  STANCHION_NODE_DONE = 4,
  // Its task is dead.
  STANCHION_NODE_DEAD = 5,
  // Its task was cancelled, removed, or lost, or the flow was cancelled before it was put into its queue.
  STANCHION_NODE_CANCELLED = 6,
  // What it needs did not succeed, so it never runs.
  STANCHION_NODE_SKIPPED = 7,
  // What it waited to fail has not, so it never runs.
  STANCHION_NODE_UNNEEDED = 8,
} stanchion_node_state;

// An error: its code and an explanation. Freed with stanchion_error_free.
typedef struct stanchion_error stanchion_error;

// A clock that a test moves, for memory: stores. 0 is none.
typedef int64_t stanchion_clock;

// Text or bytes that a program passes or gets. `data` need not end with a NUL.
typedef struct stanchion_text {
  // The bytes; may be NULL if there are none.
  const char *data;
  // How many.
  size_t len;
} stanchion_text;

// How to open a store. Texts with NULL are not given. What is given wins over the same parameter in the URL.
typedef struct stanchion_connect_options {
  // sizeof, set by stanchion_connect_options_init.
  size_t struct_size;
  // Put before a lock's name to make its key (default "Lock:").
  struct stanchion_text lock_prefix;
  // Put before a queue's name to make its key (default "Queue:").
  struct stanchion_text queue_prefix;
  // Shown to others as the holder, and as who claimed a task (default: none; at most 256 bytes).
  struct stanchion_text label;
  // PEM file with the certificate authorities to trust instead of the system's.
  struct stanchion_text tls_ca;
  // PEM file with the client's certificate chain; goes with tls_key.
  struct stanchion_text tls_cert;
  // PEM file with the client's key.
  struct stanchion_text tls_key;
  // How long a call may take, beyond any wait for a lock or a task. -1: 5000.
  int64_t timeout_ms;
  // A clock that a test moves, for memory: stores. 0: the system's.
  stanchion_clock clock;
  // 1: after some hand-offs in a row leave a lock free for a moment, for polling lockers of other programs (Redis only).
  // -1: 0.
  int32_t foreign_share;
} stanchion_connect_options;

// An opened store. 0 is none. One for each process is enough; all threads may share it. After a fork the child may go
// on using it: it connects anew there (not with a memory: store, which stays the parent's).
typedef int64_t stanchion_client;

// How to acquire a lock. -1 stands for the default.
typedef struct stanchion_lock_options {
  // sizeof, set by stanchion_lock_options_init.
  size_t struct_size;
  // How long the store keeps the lease without renewal (50 ms to 365 days). A lease with a ttl given is not renewed,
  // unless `renew` is 1. -1: 30000, renewed.
  int64_t ttl_ms;
  // For how long a lease is renewed at most; then it is lost. -1: 3600000.
  int64_t max_hold_ms;
  // How long to wait for the lock at most. 0: only try; STANCHION_BUSY is the answer if somebody else has it.
  // -1: 10000.
  int64_t wait_ms;
  // Take over the value of another program that never expires, when it was seen unchanged for this long. Unsound if
  // that program still runs. -1: never.
  int64_t adopt_unexpiring_ms;
  // Shown by stanchion_lock_holder (at most 256 bytes). NULL: the client's label.
  struct stanchion_text label;
  // Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED. It may be set by another thread
  // or a signal handler, and must live until the call returns. NULL: nothing does.
  const int32_t *cancel;
  // Whether the lease is renewed until it is released. -1: 1 if no ttl is given, otherwise 0.
  int32_t renew;
  // 1: give up at once when the holder's remaining time is longer than the wait. -1: 0.
  int32_t fail_fast;
  // How many permits of a semaphore to acquire, at most as many as it has; invalid for other locks. -1: 1.
  int64_t weight;
  // An owner that may come in again (text as a name is): while it has the lock, acquires with the same owner and client
  // succeed at once, with the same fence, and the lock is given back when it was released as often. What the first one
  // asked for stays. An owner that wants more than it has gets INVALID_ARGUMENT: a reader does not become a writer. Not
  // for several locks at once. NULL: nobody comes in again.
  struct stanchion_text owner;
} stanchion_lock_options;

// How to claim tasks. -1 stands for the default.
typedef struct stanchion_claim_options {
  // sizeof, set by stanchion_claim_options_init.
  size_t struct_size;
  // How long the store keeps a claim without renewal (50 ms to 365 days). A claim with a lease given is not renewed, unless
  // `renew` is 1. -1: 30000, renewed.
  int64_t lease_ms;
  // For how long a claim is renewed at most; then it is lost. -1: 3600000.
  int64_t max_run_ms;
  // How long to wait for a task. -1: 0.
  int64_t wait_ms;
  // Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED, and no task is lost. It must live
  // until the call returns. NULL: nothing does.
  const int32_t *cancel;
  // Whether claims are renewed until they are settled. -1: 1 if no lease is given, otherwise 0.
  int32_t renew;
  // How long a run may take of a task that does not say so itself (1 ms to 365 days); then its claim is lost, and the attempt
  // has failed. -1: as long as its claim is renewed.
  int64_t timeout_ms;
} stanchion_claim_options;

// Options of a worker. -1 stands for the default.
typedef struct stanchion_worker_options {
  // sizeof, set by stanchion_worker_options_init.
  size_t struct_size;
  // How many tasks are worked on at once: 1 to 1000. -1: 1.
  int64_t concurrency;
  // How long the store keeps a claim without renewal: so long after the worker died its tasks are given to another.
  // -1: 30000.
  int64_t lease_ms;
  // How long a task may be worked on at most; then its claim is lost, and the attempt has failed. -1: 3600000.
  int64_t max_run_ms;
  // 1: end when no task is ready or claimed any more, by this worker or another; tasks due later stay. -1: 0.
  int32_t until_empty;
  // How long tasks that are out go on after stanchion_worker_stop. -1: 25000.
  int64_t grace_ms;
  // How long a task may be worked on that does not say so itself: as in stanchion_claim_options. -1: max_run_ms.
  int64_t timeout_ms;
} stanchion_worker_options;

// What to list, and how much of it. -1 stands for the default.
typedef struct stanchion_list_options {
  // sizeof, set by stanchion_list_options_init.
  size_t struct_size;
  // Only tasks whose id begins so. A page looks at 1000 tasks at most: it may have few or none, and a next page all the
  // same.
  struct stanchion_text prefix;
  // Which page: what stanchion_tasks_next gave for the last one. NULL: the first.
  struct stanchion_text page;
  // At most so many tasks: 1 to 1000. -1: 100.
  int64_t max;
  // Of which state: a stanchion_task_state. It must be given.
  int32_t state;
  // 1: leave payloads and headers out; the size is set all the same. -1: 0.
  int32_t without_payloads;
} stanchion_list_options;

// A list of holders. 0 is none.
typedef int64_t stanchion_holders;

// A holder of a lock, as the store returns it. Out of date as soon as it is read: for people and dashboards. Texts end with a
// NUL; what does not fit is cut off.
typedef struct stanchion_holder {
  // sizeof, set by the caller.
  size_t struct_size;
  // The last fence granted or offered; 0 if there was none. Of a lock with several holders: this holder's.
  int64_t fence;
  // When it was granted, in milliseconds since 1970; 0 if unknown.
  int64_t since_ms;
  // What is left of the holder's time; -1 if it never ends by itself.
  int64_t remaining_ms;
  // How many wait for the lock.
  int64_t waiters;
  // How it is held: a stanchion_held_as.
  int32_t held_as;
  // The holder's process id; 0 if unknown.
  int32_t pid;
  // How many permits it has: 1 if the lock is exclusive; of a read-write lock all of them if it writes.
  int32_t weight;
  // The holder's label; empty if unknown.
  char label[257];
  // The holder's host; empty if unknown.
  char host[257];
} stanchion_holder;

// A list of those who wait, in the order of the line. 0 is none.
typedef int64_t stanchion_waiters;

// A waiter for a lock, as the store lists it. Out of date as soon as it is read: for people and dashboards.
// Texts end with a NUL; what does not fit is cut off.
typedef struct stanchion_waiter {
  // sizeof, set by the caller.
  size_t struct_size;
  // When it got in line, by the store's clock, in milliseconds since 1970; 0 if unknown.
  int64_t since_ms;
  // For how long it has waited, by the store's clock; -1 if unknown.
  int64_t waiting_ms;
  // The waiter's process id; 0 if unknown.
  int32_t pid;
  // How many permits it waits for: 1 if the lock is exclusive; of a read-write lock all of them if it wants to write.
  int32_t weight;
  // The waiter's label; empty if unknown.
  char label[257];
  // The waiter's host; empty if unknown.
  char host[257];
} stanchion_waiter;

// A lock that is yours until it is released, expires, or is lost. 0 is none. In a forked child it is the parent's: calls
// answer STANCHION_ERR_FORKED, and to free it there does nothing to the parent.
typedef int64_t stanchion_lease;

// What a limiter allows, and how to take of it. All who use a limiter should give the same limit. -1 stands for the default.
typedef struct stanchion_limit {
  // sizeof, set by stanchion_limit_init.
  size_t struct_size;
  // So many (1 to 1000000; of a sliding window to 10000), and no more than one per microsecond. It has no default.
  int64_t n;
  // In so many microseconds (1 ms to 365 days). -1: 1000000.
  int64_t per_us;
  // Of STANCHION_GCRA, how many may come at once after a calm time. -1: 1.
  int64_t burst;
  // A stanchion_limit_kind. -1: STANCHION_GCRA.
  int32_t kind;
  // How many to take: no more than the burst, or than a window has. -1: 1.
  int64_t count;
  // How long to wait in line (1 h at most). 0: only try. -1: 10000.
  int64_t wait_ms;
  // Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED, and the turn is given back. It may
  // be set by another thread or a signal handler, and must live until the call returns. NULL: nothing does.
  const int32_t *cancel;
} stanchion_limit;

// How a value is cached, and computed by one caller at a time. -1 stands for the default.
typedef struct stanchion_cached_options {
  // sizeof, set by stanchion_cached_options_init.
  size_t struct_size;
  // How long the value is fresh (1 ms to 365 days). There is no default.
  int64_t ttl_ms;
  // For how long after that the old value is still answered, while somebody computes a new one. -1: 0, then all wait.
  int64_t stale_ms;
  // How long to wait at most for the value that another computes. -1: 10000.
  int64_t wait_ms;
  // How long the others wait for a computing caller that died; renewed while it lives. -1: 30000.
  int64_t lease_ms;
  // How long a computation may take at most before another caller computes. -1: 3600000.
  int64_t max_run_ms;
  // Whether every caller computes by itself, and stores nothing, when the store has not answered for a second; for five
  // seconds then the client asks no more. 0: wait, and fail with STORE_UNAVAILABLE. -1: 1.
  int32_t without_store;
  // Before the value's time is over one caller, drawn by lot, computes it anew while the others still get the old one: the
  // earlier, the longer that takes and the larger beta is (0 to 1000). 0: never. -1: 1.
  double beta;
  // Shown as who computes (at most 256 bytes). NULL: the client's label.
  struct stanchion_text label;
  // Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED. It must live until the call
  // returns. NULL: nothing does.
  const int32_t *cancel;
} stanchion_cached_options;

// What stanchion_cached_begin gave: a value, or the right to compute it, for one caller at a time. 0 is none. In a forked
// child the right to compute is the parent's, as a lease is.
typedef int64_t stanchion_cached;

// What a lease is on. The texts live as long as the handle of the lease.
typedef struct stanchion_lease_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // The lock's name; of several locks the first.
  struct stanchion_text name;
  // The secret that proves the lease is yours. Keep it out of logs.
  struct stanchion_text token;
  // As stanchion_lease_fence.
  int64_t fence;
} stanchion_lease_info;

// A header of a task: a name and a value, both UTF-8.
typedef struct stanchion_header {
  // Its name.
  struct stanchion_text name;
  // Its value.
  struct stanchion_text value;
} stanchion_header;

// A task to put into a queue. -1 stands for the default.
typedef struct stanchion_task {
  // sizeof, set by stanchion_task_init. The same for all tasks of an array.
  size_t struct_size;
  // 1 to 512 bytes of UTF-8 without control characters. Two tasks of a queue with the same id are the same task. NULL: a
  // random id.
  struct stanchion_text id;
  // What the worker gets: any bytes, STANCHION_MAX_PAYLOAD at most.
  const void *payload;
  // How many bytes.
  size_t payload_len;
  // Texts that travel along.
  const struct stanchion_header *headers;
  // How many.
  size_t header_count;
  // Deliver it so long after the store accepted it. -1: at once.
  int64_t delay_ms;
  // Deliver it at this time, in milliseconds since 1970, by the store's clock. Not together with delay_ms. -1: at once.
  int64_t due_ms;
  // After so many deliveries without success it is dead. -1: 20, which takes about two days.
  int64_t max_attempts;
  // Do not deliver it later than so long after it was accepted: then it is dead. -1: never.
  int64_t expires_ms;
  // For DEBOUNCE and THROTTLE.
  int64_t window_ms;
  // What to do if the id is in the queue already: a stanchion_on_duplicate. -1: STANCHION_KEEP.
  int32_t on_duplicate;
  // 0 to 255, higher ones first. -1: 0.
  int32_t priority;
  // What kind of work it is, such as `send-welcome`, by which programs choose what handles it: 1 to 128 bytes of UTF-8 without
  // control characters. NULL: none.
  struct stanchion_text kind;
  // How long a run may take (1 ms to 365 days): one that takes longer loses its claim with STANCHION_LOSS_TIMEOUT, and has
  // failed with the reason `timeout`. -1: as long as its claim is renewed.
  int64_t timeout_ms;
  // How long it waits after a failed attempt, as JSON in milliseconds: a list of pauses, such as `[1000,60000]` (the last one
  // for all that follow; 1 to 100), or `{"base":1000,"factor":2,"max":60000,"jitter":0.5}`, of which base is needed. NULL: as
  // stanchion_claim_nack says.
  struct stanchion_text backoff;
  // For how long the result that its run gives is kept: 1 ms to 30 days. -1: 3600000.
  int64_t keep_result_ms;
  // Whose task it is, such as `tenant:7`: 1 to 512 bytes of UTF-8 without control characters. Tasks with a key in common share
  // the limits that the queue gives each key (stanchion_queue_config), and keys share the queue alike: one with a million tasks
  // does not hold up another with ten. Without any limit one task of each key stands in line, and the next one when that is
  // delivered. NULL: none.
  struct stanchion_text key;
} stanchion_task;

// A list of answers, in the order of what was asked. 0 is none.
typedef int64_t stanchion_answers;

// What became of a task.
typedef struct stanchion_enqueued {
  // sizeof, set by the caller.
  size_t struct_size;
  // The task's version; 0 if throttled.
  int64_t version;
  // When it is due, in milliseconds since 1970; -1 if throttled.
  int64_t due_ms;
  // How it ended: a stanchion_outcome.
  int32_t outcome;
  // Bytes of the id.
  int32_t id_len;
  // The task's id, with a NUL at its end.
  char id[513];
} stanchion_enqueued;

// A task that is yours until it is settled, or until its lease ends or is lost. 0 is none. In a forked child it is the
// parent's, as a lease is.
typedef int64_t stanchion_claim;

// The task of a claim. Its texts, bytes and headers live as long as the handle of the claim.
typedef struct stanchion_claim_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // The task's id.
  struct stanchion_text id;
  // The queue's name.
  struct stanchion_text queue;
  // The task's payload.
  const void *payload;
  // How many bytes.
  size_t payload_len;
  // What travels with it.
  const struct stanchion_header *headers;
  // How many.
  size_t header_count;
  // The number of this delivery: larger than that of every earlier one of the task. Pass it along with writes, as a
  // lock's fence.
  int64_t receipt;
  // The task's version.
  int64_t version;
  // When it was due, in milliseconds since 1970.
  int64_t due_ms;
  // Counts deliveries from one.
  int64_t attempt;
  // After so many the task is dead.
  int64_t max_attempts;
  // The task's priority.
  int32_t priority;
  // The task's kind; NULL if it has none.
  struct stanchion_text kind;
  // The task's key; NULL if it has none.
  struct stanchion_text key;
  // The id of the flow that the task is of; NULL if it is of none.
  struct stanchion_text flow;
} stanchion_claim_info;

// How a claim ended, to be settled together with others.
typedef struct stanchion_verdict {
  // sizeof, set by stanchion_verdict_init. The same for all verdicts of an array.
  size_t struct_size;
  // On which claim.
  stanchion_claim claim;
  // For NACK: when it is tried again; -1: after the back-off of stanchion_claim_nack. For PUT_BACK: not before so long; 0 or
  // -1: at once. For VERDICT_THROTTLE: for how long; it is needed.
  int64_t delay_ms;
  // For NACK and BURY: kept with the task; 1 KiB at most, the rest is cut off; may be NULL.
  struct stanchion_text reason;
  // How it ended: a stanchion_verdict_kind. -1: STANCHION_ACK.
  int32_t kind;
  // For ACK: its result, as in stanchion_claim_ack_with. NULL: none; an empty one is not NULL.
  const void *result;
  // How many bytes.
  size_t result_len;
} stanchion_verdict;

// A list of tasks. 0 is none.
typedef int64_t stanchion_tasks;

// A task as it is in a queue. Its texts, bytes and headers live as long as the handle of the list.
typedef struct stanchion_task_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // Its id.
  struct stanchion_text id;
  // Why the last attempt failed, or why it is dead; empty if nothing failed.
  struct stanchion_text reason;
  // What the worker gets. Empty in a listing without payloads.
  const void *payload;
  // How many bytes.
  size_t payload_len;
  // What travels with it. Empty in a listing without payloads.
  const struct stanchion_header *headers;
  // How many.
  size_t header_count;
  // Bytes of payload and headers, as stored.
  int64_t size;
  // Grows with every accepted enqueue of the id. 0: a plain ZADD, not taken in yet.
  int64_t version;
  // When it is or was due, in milliseconds since 1970.
  int64_t due_ms;
  // Not delivered after this, in milliseconds since 1970; -1 if it does not expire.
  int64_t expires_ms;
  // Of the last delivery that is not settled, or of the dead record; 0 if there is none.
  int64_t receipt;
  // What is left of the lease; 0 if it is not claimed.
  int64_t lease_left_ms;
  // When it died, in milliseconds since 1970; -1 if it lives.
  int64_t died_ms;
  // When the task that waits for the end of this one's run is due, in milliseconds since 1970; -1 if there is none.
  int64_t successor_due_ms;
  // Deliveries so far.
  int64_t attempts;
  // After so many it is dead.
  int64_t max_attempts;
  // Where it is: a stanchion_task_state.
  int32_t state;
  // Higher ones first.
  int32_t priority;
  // Who claimed it last: the client's label; empty if it has none.
  struct stanchion_text claimed_by_label;
  // Its host; empty if unknown.
  struct stanchion_text claimed_by_host;
  // When that was, by the store's clock, in milliseconds since 1970; -1 if the delivery was settled and the task lives, or
  // if nobody claimed it.
  int64_t claimed_at_ms;
  // The process id of who claimed it last; 0 if unknown, -1 if nobody did.
  int32_t claimed_by_pid;
  // Its kind; NULL if it has none. As timeout_ms and backoff not in a listing without payloads.
  struct stanchion_text kind;
  // How long a run may take; -1 if it does not say so.
  int64_t timeout_ms;
  // How long it waits after a failed attempt, as stanchion_task has it; NULL if it does not say so.
  struct stanchion_text backoff;
  // How far its run has come, as that said (stanchion_claim_progress); empty if it did not, or does not run.
  const void *progress;
  // How many bytes.
  size_t progress_len;
  // How many of its failed attempts are known, for stanchion_tasks_failure_at: the last five.
  size_t failure_count;
  // 1 if it was cancelled while it runs: this run is its last.
  int32_t cancelled;
  // Its key; NULL if it has none.
  struct stanchion_text key;
} stanchion_task_info;

// A failed attempt of a task. The text lives as long as the handle of the list.
typedef struct stanchion_task_failure {
  // sizeof, set by the caller.
  size_t struct_size;
  // When it failed; if its lease ended, when that was. In milliseconds since 1970, by the store's clock.
  int64_t at_ms;
  // Why.
  struct stanchion_text reason;
} stanchion_task_failure;

// What became of a task. 0 is none.
typedef int64_t stanchion_result;

// What became of a task. Its bytes and its text live as long as the handle of the result.
typedef struct stanchion_result_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // What came of it. NULL if it is dead.
  const void *result;
  // How many bytes.
  size_t result_len;
  // The version of the task that had it: the one asked for, or a later one. 0 if it is dead.
  int64_t version;
  // Why it is dead. NULL if it is not.
  struct stanchion_text reason;
} stanchion_result_info;

// Some of the events of a queue, in order. 0 is none.
typedef int64_t stanchion_task_events;

// Something that happened to a task. Its texts live as long as the handle of the list.
typedef struct stanchion_task_event {
  // sizeof, set by the caller.
  size_t struct_size;
  // One more than that of the event before.
  int64_t number;
  // When, by the clock of the store, in milliseconds since 1970.
  int64_t at_ms;
  // Which task.
  struct stanchion_text id;
  // Of its enqueue, as in stanchion_enqueued.
  int64_t version;
  // Which attempt it was; 0 before the first.
  int64_t attempt;
  // Why, if it failed or is dead; else NULL.
  struct stanchion_text reason;
  // What: a stanchion_happened.
  int32_t what;
} stanchion_task_event;

// Which dead tasks: `ids`, `receipts` or `count`, one of them at most, and of these only those that match
// `reason`, `prefix` and `older_than_ms`. With none of the first three: all that match. At least one field must be set.
typedef struct stanchion_dead_tasks {
  // sizeof, set by stanchion_dead_tasks_init.
  size_t struct_size;
  // The newest dead record of each of these ids. NULL: not given; an array of none means none.
  const struct stanchion_text *ids;
  // How many.
  size_t id_count;
  // The records with these receipts, as stanchion_task_info has them: an id that died more than once has several.
  // NULL: not given; an array of none means none.
  const int64_t *receipts;
  // How many.
  size_t receipt_count;
  // So many of the oldest: first those that failed, then those that expired. 0: all.
  uint64_t count;
  // Only those whose reason begins so. Empty: any.
  struct stanchion_text reason;
  // Only those whose id begins so. Empty: any.
  struct stanchion_text prefix;
  // Only those that died so long ago, or longer. 0: any.
  int64_t older_than_ms;
} stanchion_dead_tasks;

// Tasks at set times: each time is a slot, and each slot makes one task with the id `schedule@2027-01-31T02:00:00Z`.
// Whoever claims from the queue fires what is due; the store's clock counts. -1 stands for the default.
typedef struct stanchion_schedule {
  // sizeof, set by stanchion_schedule_init. The same for all schedules of an array.
  size_t struct_size;
  // 1 to 480 bytes of UTF-8 without control characters. A queue has one schedule of each id. It must be given.
  struct stanchion_text id;
  // When the slots are; it must be given. A cron text of 5 fields (minute, hour, day of month, month, day of week), or 6
  // with seconds first, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; `every 90s`, `every 1h 30m` (100 ms to
  // 100 years); or `at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00`.
  struct stanchion_text when;
  // The time zone of a cron text, by its IANA name such as `Europe/Berlin`. NULL: UTC.
  struct stanchion_text tz;
  // No slot before this time, in milliseconds since 1970. -1: none.
  int64_t starts_ms;
  // No slot after this time, in milliseconds since 1970. -1: none.
  int64_t ends_ms;
  // Delays all slots by the same time, which is drawn from the id and is shorter than this, a day at most. -1: 0.
  int64_t jitter_ms;
  // For STANCHION_MISSED_ALL: 1 to 1000.
  int64_t missed_max;
  // What becomes of slots that nobody fired in time: a stanchion_missed. -1: STANCHION_MISSED_LAST.
  int32_t missed;
  // What becomes of a slot while the task of the one before lives: a stanchion_overlap. -1: STANCHION_OVERLAP_QUEUE.
  int32_t overlap;
  // 1: it fires nothing for now. Only a new one begins so; one that is there stays as it is. -1: 0.
  int32_t paused;
  // Of each of its tasks: 0 to 255, higher ones first. -1: 0.
  int32_t priority;
  // What the worker gets of each of its tasks: any bytes, STANCHION_MAX_PAYLOAD at most.
  const void *payload;
  // How many bytes.
  size_t payload_len;
  // Texts that travel along with each of its tasks.
  const struct stanchion_header *headers;
  // How many.
  size_t header_count;
  // After so many deliveries without success a task of it is dead. -1: 20.
  int64_t max_attempts;
  // Do not deliver a task of it later than so long after it was made: then it is dead. -1: never.
  int64_t expires_ms;
  // Of each of its tasks: whose it is, as in stanchion_task. NULL: none.
  struct stanchion_text key;
} stanchion_schedule;

// A list of schedules. 0 is none.
typedef int64_t stanchion_schedules;

// A schedule as it is in a queue. Its texts live as long as the handle of the list.
typedef struct stanchion_schedule_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // Its id.
  struct stanchion_text id;
  // When its slots are. If a newer version has put it, what that has stored: it is left alone by this one.
  struct stanchion_text when;
  // The time zone.
  struct stanchion_text tz;
  // Whose list it is in; empty if it is in none.
  struct stanchion_text owner;
  // The id of the last task that it made; empty if it has made none.
  struct stanchion_text last_task;
  // No slot before, in milliseconds since 1970; -1 if that is not set.
  int64_t starts_ms;
  // No slot after, in milliseconds since 1970; -1 if that is not set.
  int64_t ends_ms;
  // By how much its slots are delayed at most.
  int64_t jitter_ms;
  // When its next slot is due, in milliseconds since 1970; -1 if it is paused, or none comes any more.
  int64_t next_ms;
  // For how long that has been due, by the store's clock: more than a moment means that nobody works on the queue.
  int64_t late_ms;
  // How many tasks it has made.
  int64_t fired;
  // How many slots got no task: the one before was running, or the queue was full.
  int64_t skipped;
  // How many slots were past and were not fired.
  int64_t missed_slots;
  // With STANCHION_MISSED_ALL how many are fired at most; otherwise -1.
  int64_t missed_max;
  // Of its tasks.
  int64_t max_attempts;
  // Of its tasks; -1 if they do not expire.
  int64_t expires_ms;
  // Bytes of its tasks' payload and headers, as stored.
  int64_t size;
  // What becomes of missed slots: a stanchion_missed; -1 if a newer version has put it.
  int32_t missed;
  // What becomes of a slot while the task of the one before lives: a stanchion_overlap; -1 if this header does not know it.
  int32_t overlap;
  // 1 if it fires nothing.
  int32_t paused;
  // Of its tasks.
  int32_t priority;
  // Of its tasks; NULL if they have none.
  struct stanchion_text key;
} stanchion_schedule_info;

// What became of an owner's list of schedules.
typedef struct stanchion_synced {
  // sizeof, set by the caller.
  size_t struct_size;
  // How many are new.
  int64_t added;
  // How many were changed.
  int64_t changed;
  // How many are as they were.
  int64_t kept;
  // How many the owner had and has no more.
  int64_t removed;
  // If the queue has a list of a later generation, that one: then nothing was changed. Otherwise -1.
  int64_t newer;
} stanchion_synced;

// The task that stanchion_queue_run_schedule made.
typedef struct stanchion_ran {
  // sizeof, set by the caller.
  size_t struct_size;
  // Bytes of the id.
  int32_t id_len;
  // The task's id, with a NUL at its end.
  char id[513];
} stanchion_ran;

// A list of those who work on a queue. 0 is none.
typedef int64_t stanchion_consumers;

// A process that works on a queue, as the store lists it. Out of date as soon as it is read: for people and dashboards.
// Texts end with a NUL; what does not fit is cut off.
typedef struct stanchion_consumer {
  // sizeof, set by the caller.
  size_t struct_size;
  // How many of its calls wait for a task.
  int64_t waiters;
  // How many tasks it has claimed.
  int64_t claims;
  // Its process id; 0 if unknown.
  int32_t pid;
  // Its client's label; empty if it has none.
  char label[257];
  // Its host; empty if unknown.
  char host[257];
} stanchion_consumer;

// So many per time: over any time `per_ms` at most `count + burst`.
typedef struct stanchion_rate {
  // How many. -1: the rate is not given.
  int64_t count;
  // In how many milliseconds: 1 to 366 days.
  int64_t per_ms;
  // How many may come at once after a pause. -1: 1.
  int64_t burst;
} stanchion_rate;

// Limits of a key of its own, instead of those that the queue gives each key.
typedef struct stanchion_key_limits {
  // sizeof, set by stanchion_key_limits_init.
  size_t struct_size;
  // How many of its tasks are in line and running at most. -1: as the queue has it.
  int64_t concurrency;
  // How many of its tasks are delivered per time. With a count of -1: as the queue has it.
  struct stanchion_rate rate;
  // Its share beside other keys, 1 to 100: one of weight 3 gets three tasks done while one of weight 1 gets one. -1: 1.
  int64_t weight;
} stanchion_key_limits;

// A list of keys. 0 is none.
typedef int64_t stanchion_keys;

// What is known of a key. Its text lives as long as the handle of the list.
typedef struct stanchion_key_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // The key.
  struct stanchion_text key;
  // How many of its tasks are claimed.
  int64_t running;
  // How many stand in line.
  int64_t in_line;
  // How many are due, and held by its limits.
  int64_t held;
  // In how long its rate, or a throttle, lets more of it go; -1 if neither is in the way.
  int64_t opens_in_ms;
  // Of its own: how many of its tasks are in line and running at most; -1: as the queue has it.
  int64_t concurrency;
  // Of its own: how many are delivered per time; with a count of -1: as the queue has it.
  struct stanchion_rate rate;
  // Of its own: its share beside other keys; -1 if it has no limits of its own.
  int64_t weight;
} stanchion_key_info;

// A task of a flow, and what it waits for: all of it, where there is more than one. Its name is the id of its task, which no
// two nodes of a flow have; in its queue the task has the id `FLOW/NAME`.
typedef struct stanchion_node {
  // sizeof, set by stanchion_node_init. The same for all nodes of an array.
  size_t struct_size;
  // Its task. `delay_ms` counts from when it is put into its queue; `on_duplicate` is not for nodes.
  const struct stanchion_task *task;
  // The queue of the task, which has the same store and prefix. NULL: the flow's.
  struct stanchion_text queue;
  // Names of nodes after whose success it runs. If one ends otherwise, this one is skipped.
  const struct stanchion_text *after;
  // How many.
  size_t after_count;
  // Names of nodes after whose end it runs, whatever came of them.
  const struct stanchion_text *after_end;
  // How many.
  size_t after_end_count;
  // Names of nodes of which one must have ended without success: it is dead, was cancelled or removed, or was skipped because
  // of another. If none of them comes to that, this one is not needed.
  const struct stanchion_text *after_failure;
  // How many.
  size_t after_failure_count;
  // What it waits for of all others: a stanchion_after_all.
  int32_t after_all;
} stanchion_node;

// A list of flows. 0 is none.
typedef int64_t stanchion_flows;

// A flow as it is in a queue. Its text lives as long as the handle of the list.
typedef struct stanchion_flow_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // Its id.
  struct stanchion_text id;
  // When it was put in, in milliseconds since 1970.
  int64_t created_ms;
  // When it was noted that its last node had ended, in milliseconds since 1970; -1 while it runs.
  int64_t ended_ms;
  // How many of its nodes wait for others.
  int64_t waiting;
  // How many are in their queues.
  int64_t put;
  // How many are in their queues, and were told to end.
  int64_t ending;
  // How many are done.
  int64_t done;
  // How many are dead.
  int64_t dead;
  // How many were cancelled.
  int64_t cancelled;
  // How many were skipped.
  int64_t skipped;
  // How many were not needed.
  int64_t unneeded;
  // How many of its nodes are known, for stanchion_flows_node_at: all, each behind those that it waits for; of a page none.
  size_t node_count;
  // How it is: a stanchion_flow_state.
  int32_t state;
} stanchion_flow_info;

// A node of a flow as it is in a queue. Its texts live as long as the handle of the list.
typedef struct stanchion_node_info {
  // sizeof, set by the caller.
  size_t struct_size;
  // Its name.
  struct stanchion_text name;
  // The queue of its task; NULL if that is the flow's.
  struct stanchion_text queue;
  // The nodes that must have succeeded.
  const struct stanchion_text *after;
  // How many.
  size_t after_count;
  // The nodes that must have ended.
  const struct stanchion_text *after_end;
  // How many.
  size_t after_end_count;
  // The nodes of which one must have ended without success.
  const struct stanchion_text *after_failure;
  // How many.
  size_t after_failure_count;
  // What it is doing: a stanchion_node_state.
  int32_t state;
  // What it waits for of all others: a stanchion_after_all; -1 if this header does not know it.
  int32_t after_all;
} stanchion_node_info;

// A list of inputs. 0 is none.
typedef int64_t stanchion_inputs;

// What a task that comes after others is given of one of them. Its text and its bytes live as long as the handle of the list.
typedef struct stanchion_input {
  // sizeof, set by the caller.
  size_t struct_size;
  // The node's name.
  struct stanchion_text node;
  // The result of its ack (stanchion_claim_ack_with). NULL if it gave none; an empty one is not NULL.
  const void *result;
  // How many bytes.
  size_t result_len;
  // What has become of it: a stanchion_node_state.
  int32_t state;
} stanchion_input;

// How many tasks there are, what happened so far, and the settings.
typedef struct stanchion_stats {
  // sizeof, set by the caller.
  size_t struct_size;
  // Due later, those of the intake included.
  int64_t scheduled;
  // Due now, those of the intake included.
  int64_t ready;
  // Claimed, lease not ended.
  int64_t claimed;
  // Dead records.
  int64_t dead;
  // Tasks that wait for the end of a run of the same id.
  int64_t successors;
  // How long until the next task becomes due or a lease ends; 0 if something is due now; -1 if there is nothing.
  int64_t next_due_ms;
  // Since the queue was made or its record forgotten: enqueues accepted.
  int64_t enqueued;
  // Acks accepted, pops included.
  int64_t acked;
  // Failures that another try follows: nacks, ends of leases. The last one of a task that dies is not among them.
  int64_t retried;
  // Tasks that died.
  int64_t died;
  // The queue's settings: live tasks at most. -1: no limit.
  int64_t max_len;
  // Dead tasks kept at most.
  int64_t dead_max;
  // For how long dead tasks are kept.
  int64_t dead_age_ms;
  // Bytes of dead tasks' payloads kept at most.
  int64_t dead_bytes;
  // 1 if plain ZADDs to the queue's key are taken in (Redis only).
  int32_t intake;
  // 1 if the queue gives out no tasks.
  int32_t paused;
  // How many calls wait for a task.
  int64_t waiters;
  // How many schedules there are.
  int64_t schedules;
  // For how long the first of them has been due, by the store's clock: more than a moment means that nobody works on the
  // queue. 0 if none is.
  int64_t schedules_late_ms;
  // The settings again: events kept at most, for stanchion_queue_events. 0: none.
  int64_t events;
  // The settings again: tasks that run at once at most. -1: no limit.
  int64_t max_running;
  // Deliveries per time. With a count of -1: no limit.
  struct stanchion_rate rate;
  // Tasks of each key that are in line and running at most. -1: no limit.
  int64_t key_concurrency;
  // Deliveries of each key per time. With a count of -1: no limit.
  struct stanchion_rate key_rate;
  // Due, and held by the limits of their keys.
  int64_t held;
  // How many keys wait for a time, by their rate or a throttle.
  int64_t keys_waiting;
  // In how long the first of them may go on; -1 if none waits.
  int64_t next_key_ms;
  // Of STANCHION_GATE_RATE and STANCHION_GATE_THROTTLED, in how long it opens; -1 otherwise.
  int64_t opens_in_ms;
  // What keeps the queue from giving out tasks that are ready: a stanchion_gate.
  int32_t gate;
  // How many flows have begun and not ended.
  int64_t flows;
} stanchion_stats;

// Settings of a queue to change. -1: it stays as it is.
typedef struct stanchion_queue_config {
  // sizeof, set by stanchion_queue_config_init.
  size_t struct_size;
  // Refuse new ids when so many tasks are live. -2: no limit, as without settings.
  int64_t max_len;
  // Keep so many dead tasks at most; the oldest go first. Without settings 10000.
  int64_t dead_max;
  // Keep dead tasks for so long. Without settings 90 days.
  int64_t dead_age_ms;
  // Keep so many bytes of dead tasks' payloads at most; the oldest go first. Without settings 256 MiB.
  int64_t dead_bytes;
  // Whether plain ZADDs to the queue's key are taken in (Redis only). Without settings 1.
  int32_t intake;
  // Keep so many events, for stanchion_queue_events: 0 to 100000; the oldest go first. What processes of 0.1.0 do is not
  // among them. Without settings 0: none.
  int64_t events;
  // So many tasks run at once at most, whoever runs them. -2: no limit, as without settings.
  int64_t max_running;
  // So many tasks are delivered per time; every delivery counts, also a retry and one that is put back. With a count of -2:
  // no limit, as without settings.
  struct stanchion_rate rate;
  // So many tasks of each key (of stanchion_task) are in line and running at most, unless the key has limits of its own:
  // stanchion_queue_limit_key. -2: no limit, as without settings.
  int64_t key_concurrency;
  // So many tasks of each key are delivered per time, unless the key has limits of its own. With a count of -2: no limit, as
  // without settings.
  struct stanchion_rate key_rate;
} stanchion_queue_config;

// Takes tasks of a queue for the threads that poll it. 0 is none. In a forked child it is the parent's.
typedef int64_t stanchion_worker;

// What a worker has done so far.
typedef struct stanchion_worker_report {
  // sizeof, set by the caller.
  size_t struct_size;
  // Tasks acked.
  int64_t completed;
  // Attempts that failed, those that killed the task included.
  int64_t failed;
  // Tasks that died.
  int64_t dead;
  // Claims that were lost.
  int64_t lost;
} stanchion_worker_report;

// Something that happened. Texts end with a NUL.
typedef struct stanchion_worker_event {
  // sizeof, set by the caller.
  size_t struct_size;
  // Counts deliveries of the task from one; 0 if it is about no task.
  int64_t attempt;
  // What happened: a stanchion_event_kind.
  int32_t kind;
  // Bytes of the id.
  int32_t id_len;
  // Bytes of the reason.
  int32_t reason_len;
  // The task; empty if it is about none.
  char id[513];
  // Why; what does not fit is cut off.
  char reason[1025];
} stanchion_worker_event;

// A list of names. 0 is none.
typedef int64_t stanchion_names;

// What a client had counted at one moment. 0 is none.
typedef int64_t stanchion_metrics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, such as "0.1.0". Never NULL, and never freed. Any thread.
const char *stanchion_version(void);

// The STANCHION_ABI_VERSION of the library that is loaded, to be compared with that of the header. Any thread.
int32_t stanchion_abi_version(void);

// Of which kind it is: a negative stanchion_status. Zero for NULL. Any thread.
int32_t stanchion_error_code(const struct stanchion_error *error);

// What happened, in words: UTF-8 with a NUL at its end. Of a refused argument it names the function, the argument and what
// it was. It lives as long as the error, and holds no secret. Empty for NULL. Any thread.
const char *stanchion_error_message(const struct stanchion_error *error);

// The operation that failed, such as "acquire"; empty if it failed before it began. As stanchion_error_message. Any thread.
const char *stanchion_error_operation(const struct stanchion_error *error);

// The name of the lock or queue that it concerns; empty if it concerns none. As stanchion_error_message. Any thread.
const char *stanchion_error_name(const struct stanchion_error *error);

// 1 if the same call may succeed later without any other change, otherwise 0. Any thread.
int32_t stanchion_error_is_retryable(const struct stanchion_error *error);

// Frees an error, once. NULL is harmless. Any thread.
void stanchion_error_free(struct stanchion_error *error);

// The name of a status, such as "LockTimeout" or "Busy"; "Unknown" for others. Never NULL, and never freed. Any
// thread.
const char *stanchion_status_name(int32_t status);

// Makes a clock for stanchion_connect_options. It stands still until it is moved. Does no I/O. Any thread.
int32_t stanchion_clock_new(stanchion_clock *out, struct stanchion_error **err);

// Moves the time of all stores with this clock forward. Does no I/O. Any thread.
int32_t stanchion_clock_advance(stanchion_clock clock, int64_t time_ms, struct stanchion_error **err);

// Frees the handle; stores with this clock go on having it. 0 and freed handles are harmless. Any thread.
void stanchion_clock_free(stanchion_clock clock);

// Makes all options the default. `struct_size` is sizeof *options. Any thread.
void stanchion_connect_options_init(struct stanchion_connect_options *options, size_t struct_size);

// Opens a store: "redis://", "redis+unix://", "redis-sentinel://", "redis-cluster://", "redis-quorum://", with TLS
// "rediss://" and so on, "sqlite:PATH" or "memory:". A `url` of NULL is that of the environment variable STANCHION_URL. `options` may be NULL.
// Connects once, and checks the server's version.
//
// Errors: INVALID_ARGUMENT for a bad URL or option; STORE_UNAVAILABLE, DENIED, UNSUPPORTED or CORRUPT if the store cannot
// be used. Any thread.
int32_t stanchion_connect(const char *url,
                          size_t url_len,
                          const struct stanchion_connect_options *options,
                          stanchion_client *out,
                          struct stanchion_error **err);

// Frees the handle. Leases, claims and workers go on until they are freed themselves: stanchion_client_close ends them. 0 and freed handles are harmless.
// Any thread.
void stanchion_client_free(stanchion_client client);

// Releases every lease of this client that is still held; `count` gets how many, and may be NULL. For shutdown.
// The handles of the leases still have to be freed.
//
// Errors: the first one other than a lost lease; the others are released nevertheless. Any thread.
int32_t stanchion_client_release_all(stanchion_client client,
                                     size_t *count,
                                     struct stanchion_error **err);

// Closes the client: calls of other threads that wait end with STANCHION_ERR_CLOSED, and so does every later one; leases are
// released, and claims put back, uncounted. When this returns, its threads have ended and its connections are closed.
// `count` (may be NULL) gets how many leases were released. Stop workers before. The handles are to be freed as ever.
// A client of stanchion_connect_shared is closed for all that have it; the next call of that opens another one.
//
// Errors: the first one of a release other than a lost lease; the client is closed nevertheless. Any thread.
int32_t stanchion_client_close(stanchion_client client,
                               size_t *count,
                               struct stanchion_error **err);

// Waits up to `time_ms` for what this client does in the background, such as releasing leases that were freed; `done`
// (may be NULL) gets 1 if nothing is left, otherwise 0. For a program that is about to exit. Any thread.
int32_t stanchion_client_linger(stanchion_client client,
                                int64_t time_ms,
                                int32_t *done,
                                struct stanchion_error **err);

// Opens a store as stanchion_connect, or gives a client again that this process opened so with the same `url` and options.
// The library keeps it when its handles are freed: for hosts such as PHP-FPM, whose requests forget everything.
// Each call gives a handle of its own, to be freed as ever. A memory: store without a name, and one with a clock,
// is a new one each time.
//
// Errors: as stanchion_connect. Any thread.
int32_t stanchion_connect_shared(const char *url,
                                 size_t url_len,
                                 const struct stanchion_connect_options *options,
                                 stanchion_client *out,
                                 struct stanchion_error **err);

// Frees every handle of this process, as the functions of their kinds do, those of other threads, too. Clients that are
// shared stay open. For the beginning of a request in hosts such as PHP-FPM, if the one before could not free its own.
// Any thread.
void stanchion_free_all(void);

// Makes all options the default. `struct_size` is sizeof *options. Any thread.
void stanchion_lock_options_init(struct stanchion_lock_options *options, size_t struct_size);

// Makes all options the default. `struct_size` is sizeof *options. Any thread.
void stanchion_claim_options_init(struct stanchion_claim_options *options, size_t struct_size);

// Makes all options the default. `struct_size` is sizeof *options. Any thread.
void stanchion_worker_options_init(struct stanchion_worker_options *options, size_t struct_size);

// Makes all options the default. `struct_size` is sizeof *options. Any thread.
void stanchion_list_options_init(struct stanchion_list_options *options, size_t struct_size);

// How many holders are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_holders_len(stanchion_holders holders);

// One of the holders. Does no I/O. Any thread.
int32_t stanchion_holders_at(stanchion_holders holders,
                             size_t index,
                             struct stanchion_holder *out,
                             struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_holders_free(stanchion_holders holders);

// How many waiters are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_waiters_len(stanchion_waiters waiters);

// One of the waiters. Does no I/O. Any thread.
int32_t stanchion_waiters_at(stanchion_waiters waiters,
                             size_t index,
                             struct stanchion_waiter *out,
                             struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_waiters_free(stanchion_waiters waiters);

// Acquires a lock, waiting in line for it. `options` may be NULL. With a `wait_ms` of 0 it does not wait, and answers
// STANCHION_BUSY if somebody else has the lock.
//
// Errors: LOCK_TIMEOUT if it stayed busy; CANCELLED; INVALID_ARGUMENT for a bad name or option; STORE_UNAVAILABLE, DENIED
// or WRONG_TYPE from the store. Any thread; others go on meanwhile, with the same client, too.
int32_t stanchion_lock_acquire(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               const struct stanchion_lock_options *options,
                               stanchion_lease *out,
                               struct stanchion_error **err);

// Who holds the lock now. STANCHION_ABSENT: nobody. Any thread.
int32_t stanchion_lock_holder(stanchion_client client,
                              const char *name,
                              size_t name_len,
                              struct stanchion_holder *out,
                              struct stanchion_error **err);

// Who holds the lock now, as a list: one at most. Any thread.
int32_t stanchion_lock_holders(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               stanchion_holders *out,
                               struct stanchion_error **err);

// Who waits for the lock now, as a list in the order of the line: at most 100. One that has not polled for 2.5 s, or for
// 22 s far back in a long line, counts as dead and is left out. Any thread.
int32_t stanchion_lock_waiters(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               stanchion_waiters *out,
                               struct stanchion_error **err);

// Whether the lock is held, offered to a waiter, cooling down, or in foreign hands: STANCHION_BUSY if so, STANCHION_OK if
// it is free. Any thread.
int32_t stanchion_lock_is_locked(stanchion_client client,
                                 const char *name,
                                 size_t name_len,
                                 struct stanchion_error **err);

// Takes the lock from whoever has it and hands it to the next waiter. STANCHION_ABSENT: it was free. The old holder
// learns of it at its next renewal, and may work on until then: its fence is smaller than the next holder's.
//
// Errors: INDETERMINATE if the store did not answer; it is not asked again. Any thread.
int32_t stanchion_lock_break_lease(stanchion_client client,
                                   const char *name,
                                   size_t name_len,
                                   struct stanchion_error **err);

// Becomes a reader of a read-write lock: any number of them may hold it, unless a writer does. Those who wait are served in
// the order in which they came, so that neither readers nor writers starve. Options and errors are those of
// stanchion_lock_acquire: by default a lease of 30 s that is renewed, a wait of 10 s.
// Any thread.
int32_t stanchion_read_lock_acquire(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    const struct stanchion_lock_options *options,
                                    stanchion_lease *out,
                                    struct stanchion_error **err);

// Becomes the writer of a read-write lock: nobody else holds anything then. stanchion_lease_downgrade makes it a reader.
// Otherwise as stanchion_lock_acquire. Any thread.
int32_t stanchion_write_lock_acquire(stanchion_client client,
                                     const char *name,
                                     size_t name_len,
                                     const struct stanchion_lock_options *options,
                                     stanchion_lease *out,
                                     struct stanchion_error **err);

// Who holds the read-write lock now: at most 100, those whose leases end first. Any thread.
int32_t stanchion_rw_lock_holders(stanchion_client client,
                                  const char *name,
                                  size_t name_len,
                                  stanchion_holders *out,
                                  struct stanchion_error **err);

// As stanchion_lock_waiters, of a read-write lock. Any thread.
int32_t stanchion_rw_lock_waiters(stanchion_client client,
                                  const char *name,
                                  size_t name_len,
                                  stanchion_waiters *out,
                                  struct stanchion_error **err);

// As stanchion_lock_is_locked, of a read-write lock. Any thread.
int32_t stanchion_rw_lock_is_locked(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    struct stanchion_error **err);

// As stanchion_lock_break_lease, of a read-write lock: from all who hold it. Any thread.
int32_t stanchion_rw_lock_break_lease(stanchion_client client,
                                      const char *name,
                                      size_t name_len,
                                      struct stanchion_error **err);

// Acquires permits of a semaphore that has `permits` of them (1 to 1000000): one, or `weight` in the options. While anybody
// holds or waits for permits, all must agree on their number; another one is INVALID_ARGUMENT. Otherwise as
// stanchion_lock_acquire. Any thread.
int32_t stanchion_semaphore_acquire(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    int64_t permits,
                                    const struct stanchion_lock_options *options,
                                    stanchion_lease *out,
                                    struct stanchion_error **err);

// Who holds permits of the semaphore now: at most 100, those whose leases end first. Any thread.
int32_t stanchion_semaphore_holders(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    stanchion_holders *out,
                                    struct stanchion_error **err);

// As stanchion_lock_waiters, of a semaphore. Any thread.
int32_t stanchion_semaphore_waiters(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    stanchion_waiters *out,
                                    struct stanchion_error **err);

// As stanchion_lock_is_locked, of a semaphore: whether anybody has permits. Any thread.
int32_t stanchion_semaphore_is_locked(stanchion_client client,
                                      const char *name,
                                      size_t name_len,
                                      struct stanchion_error **err);

// As stanchion_lock_break_lease, of a semaphore: from all who have permits. Any thread.
int32_t stanchion_semaphore_break_lease(stanchion_client client,
                                        const char *name,
                                        size_t name_len,
                                        struct stanchion_error **err);

// Acquires several exclusive locks, all or none: one after another in the order of their names, so that two callers never
// wait for each other. Names that come twice count once; without any it is INVALID_ARGUMENT. One lease is on all of them:
// it is lost when one of them is, and stanchion_lease_fences_at returns the fence of each. It cannot be downgraded, nor
// handed over as a text. Otherwise as stanchion_lock_acquire. Any thread.
int32_t stanchion_multi_lock_acquire(stanchion_client client,
                                     const struct stanchion_text *names,
                                     size_t name_count,
                                     const struct stanchion_lock_options *options,
                                     stanchion_lease *out,
                                     struct stanchion_error **err);

// Makes all options the default; `n` is then 0, which is no limit. `struct_size` is sizeof *limit. Any thread.
void stanchion_limit_init(struct stanchion_limit *limit,
                          size_t struct_size);

// Takes some of what the limiter of this name allows, waiting for its turn. STANCHION_OK: taken. STANCHION_BUSY: nothing was
// taken, and `retry_after_us` (may be NULL) gets the microseconds after which a try would succeed, if nobody else takes any
// meanwhile.
//
// Who waits is in line in the order of arrival, and goes on when its turn has come by the store's clock, without asking again. If
// the turn would come later than `wait_ms`, that is STANCHION_BUSY at once. A wait that is ended by `cancel` gives its turn back,
// unless somebody is in line behind it.
//
// Errors: INVALID_ARGUMENT for a bad name or limit, or a `count` that can never be allowed at once; STORE_UNAVAILABLE,
// INDETERMINATE (it may or may not have been taken), DENIED or WRONG_TYPE from the store; UNSUPPORTED on a quorum. Any thread.
int32_t stanchion_limiter_take(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               const struct stanchion_limit *limit,
                               int64_t *retry_after_us,
                               struct stanchion_error **err);

// Makes all options the default. `struct_size` is sizeof *options. Any thread.
void stanchion_cached_options_init(struct stanchion_cached_options *options, size_t struct_size);

// Looks for the cached value with this name. STANCHION_OK: it is there, and stanchion_cached_get returns it.
// STANCHION_COMPUTE: this caller computes it, while the others wait; stanchion_cached_store stores the result. Both set a
// handle, to be freed: if nothing was stored by then, the next caller computes.
//
// Errors: LOCK_TIMEOUT if another computed for the whole wait; CANCELLED; INVALID_ARGUMENT for a bad name or option;
// STORE_UNAVAILABLE, DENIED or WRONG_TYPE from the store. Any thread; others go on meanwhile, with the same client, too.
int32_t stanchion_cached_begin(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               const struct stanchion_cached_options *options,
                               stanchion_cached *out,
                               struct stanchion_error **err);

// The value. It lives as long as the handle. Does no I/O.
//
// Errors: INVALID_ARGUMENT if it is still to be computed. Any thread.
int32_t stanchion_cached_get(stanchion_cached cached,
                             const void **value,
                             size_t *value_len,
                             struct stanchion_error **err);

// Stores the value that was computed (any bytes, STANCHION_MAX_PAYLOAD at most) and wakes all who wait for it.
// STANCHION_NOT_STORED: the lease was lost, or the store did not answer; the value is as good as ever, and the next caller
// computes. So it does after an error. The handle is to be freed nevertheless.
//
// Errors: INVALID_ARGUMENT if the value is too large, or was there already; DENIED, WRONG_TYPE or FORKED. Any thread.
int32_t stanchion_cached_store(stanchion_cached cached,
                               const void *value,
                               size_t value_len,
                               struct stanchion_error **err);

// 1 if it is still this caller who computes, otherwise 0: then another may. Computed from the clock at the time of the call.
// Does no I/O. Any thread.
int32_t stanchion_cached_is_valid(stanchion_cached cached);

// Frees the handle. A computation that was not stored is left to the next caller, in the background. 0 and stale handles are
// harmless. Any thread.
void stanchion_cached_free(stanchion_cached cached);

// Forgets the cached value with this name. A computation that has begun does not count either: it is not stored, and the next
// caller computes anew.
//
// Errors: INVALID_ARGUMENT for a bad name; STORE_UNAVAILABLE, INDETERMINATE, DENIED or WRONG_TYPE from the store. Any thread.
int32_t stanchion_invalidate(stanchion_client client,
                             const char *name,
                             size_t name_len,
                             struct stanchion_error **err);

// What the lease is on. Does no I/O. Any thread.
int32_t stanchion_lease_get(stanchion_lease lease,
                            struct stanchion_lease_info *out,
                            struct stanchion_error **err);

// The number of this grant: larger than that of every earlier grant of the lock. Pass it along with writes, so that the
// resource can refuse a holder that came too late. 0 if this is no handle of a lease. Does no I/O. Any thread.
int64_t stanchion_lease_fence(stanchion_lease lease);

// For how many milliseconds the lease is surely yours from now on, without further renewal; 0 if it is not, or if this is
// no handle of a lease. Does no I/O. Any thread.
int64_t stanchion_lease_remaining_ms(stanchion_lease lease);

// 1 if the lease is yours now, otherwise 0. Computed from the clock at the time of the call. Does no I/O. Any thread.
int32_t stanchion_lease_is_valid(stanchion_lease lease);

// Why the lease was lost: a stanchion_loss. Does no I/O. Any thread.
int32_t stanchion_lease_loss(stanchion_lease lease);

// How many locks the lease is on: one, or as many as stanchion_multi_lock_acquire was asked for; 0 if this is no handle of
// a lease. Does no I/O. Any thread.
size_t stanchion_lease_fences_len(stanchion_lease lease);

// The name of one of the locks that the lease is on, and its fence, in the order of their names; each place may be NULL.
// The name lives as long as the handle. Does no I/O. Any thread.
int32_t stanchion_lease_fences_at(stanchion_lease lease,
                                  size_t index,
                                  struct stanchion_text *name,
                                  int64_t *fence,
                                  struct stanchion_error **err);

// Fails if the lease is known to be gone, without asking the store: LEASE_LOST, LEASE_EXPIRED or FORKED. Any thread.
int32_t stanchion_lease_check(stanchion_lease lease,
                              struct stanchion_error **err);

// Waits up to `time_ms` for the lease to be lost. STANCHION_LOST: it is, or it has been released. STANCHION_OK: it is
// still yours. A loss is announced at the latest at the lease's deadline. Any thread.
int32_t stanchion_lease_wait_lost(stanchion_lease lease,
                                  int64_t time_ms,
                                  struct stanchion_error **err);

// Prolongs the lease to at least `ttl_ms` from now; never shortens it.
//
// Errors: LEASE_LOST or LEASE_EXPIRED if it has ended; STORE_UNAVAILABLE or INDETERMINATE if the store did not answer, and
// then the lease goes on to its old deadline; FORKED. Any thread.
int32_t stanchion_lease_extend(stanchion_lease lease,
                               int64_t ttl_ms,
                               struct stanchion_error **err);

// Has the lease end `ttl_ms` from now (1 ms to 365 days), also earlier than it would, as lockers do that set an expiry. It
// is not renewed any more.
//
// Errors: as stanchion_lease_extend, but if the store did not answer, the lease goes on to the earlier of both ends;
// LEASE_EXPIRED also if it was over before the answer came: its validity is up to 2 ms and 1 % shorter. Any thread.
int32_t stanchion_lease_extend_exact(stanchion_lease lease,
                                     int64_t ttl_ms,
                                     struct stanchion_error **err);

// Turns the lease of a writer into that of a reader, with the same fence: other readers may come in. A reader's lease stays
// as it is.
//
// Errors: INVALID_ARGUMENT for a lease of another kind of lock; LEASE_LOST or LEASE_EXPIRED if it has ended;
// STORE_UNAVAILABLE or INDETERMINATE if the store did not answer; FORKED. Any thread.
int32_t stanchion_lease_downgrade(stanchion_lease lease,
                                  struct stanchion_error **err);

// Turns the lease of a reader into that of a writer if nobody else holds the lock; STANCHION_BUSY if somebody does. It
// never waits: two readers that both wait to become the writer would wait for each other for ever. The lease gets a new
// fence, above those of the readers before; its end stays. A writer's stays as it is.
//
// Errors: as stanchion_lease_downgrade. If the store did not answer it may be a writer's there until it is released. Any
// thread.
int32_t stanchion_lease_upgrade(stanchion_lease lease,
                                struct stanchion_error **err);

// Gives the lock back and hands it to the next waiter. The handle is to be freed nevertheless.
//
// Errors: LEASE_EXPIRED if the lease had run out, LEASE_LOST if another got the lock meanwhile, INDETERMINATE if that
// cannot be known; FORKED. But for the last, the lease is over in any case. Any thread.
int32_t stanchion_lease_release(stanchion_lease lease,
                                struct stanchion_error **err);

// As stanchion_lease_release, but the lock stays closed for `cooldown_ms` (50 ms to 365 days) before anybody can get it.
// After an error there is no cooldown. Any thread.
int32_t stanchion_lease_release_with_cooldown(stanchion_lease lease,
                                              int64_t cooldown_ms,
                                              struct stanchion_error **err);

// Prolongs the lease to `ttl_ms`, stops renewing it, and gives a text with which another process can resume it within
// that time, once. Whoever has the text can take the lease: treat it as a password. It lives as long as this handle, with
// which nothing else can be done any more.
//
// Errors: as stanchion_lease_extend; the lease goes on as it was. Any thread.
int32_t stanchion_lease_detach(stanchion_lease lease,
                               int64_t ttl_ms,
                               struct stanchion_text *out,
                               struct stanchion_error **err);

// Continues a lease with the text of stanchion_lease_detach, here or in another process.
//
// Errors: LEASE_LOST if the text was used already or its lease has ended; LEASE_EXPIRED if it ran out meanwhile;
// INVALID_ARGUMENT if it is no such text, or of another lock_prefix. Any thread.
int32_t stanchion_client_resume_lease(stanchion_client client,
                                      const char *text_of_handle,
                                      size_t text_len,
                                      stanchion_lease *out,
                                      struct stanchion_error **err);

// Frees the handle. A lease that was not released is released in the background, as far as the store can be reached; to
// be sure, and to learn whether it was yours to the end, release it first. 0 and freed handles are harmless. Never waits.
// Any thread.
void stanchion_lease_free(stanchion_lease lease);

// Makes a task with a random id, no payload, and defaults. `struct_size` is sizeof *task. Any thread.
void stanchion_task_init(struct stanchion_task *task, size_t struct_size);

// How many answers are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_answers_len(stanchion_answers answers);

// One of the answers: what the call for this task or this claim alone would have returned. `out` is filled in if the task
// was accepted; it may be NULL. Does no I/O. Any thread.
int32_t stanchion_answers_at(stanchion_answers answers,
                             size_t index,
                             struct stanchion_enqueued *out,
                             struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_answers_free(stanchion_answers answers);

// The task of a claim. Does no I/O. Any thread.
int32_t stanchion_claim_get(stanchion_claim claim,
                            struct stanchion_claim_info *out,
                            struct stanchion_error **err);

// For how many milliseconds the claim is surely yours from now on, without further renewal; 0 if it is not, or if this is
// no handle of a claim. Does no I/O. Any thread.
int64_t stanchion_claim_remaining_ms(stanchion_claim claim);

// 1 if the claim is yours now, otherwise 0. Computed from the clock at the time of the call. Does no I/O. Any thread.
int32_t stanchion_claim_is_valid(stanchion_claim claim);

// Why the claim was lost: a stanchion_loss. Does no I/O. Any thread.
int32_t stanchion_claim_loss(stanchion_claim claim);

// Waits up to `time_ms` for the claim to be lost or settled: STANCHION_LOST if it is, STANCHION_OK if it is still yours. A
// loss is announced at the latest at the deadline. Any thread.
int32_t stanchion_claim_wait_lost(stanchion_claim claim,
                                  int64_t time_ms,
                                  struct stanchion_error **err);

// Done: the task leaves the queue. A second ack repeats the answer of the first, without I/O. The handle is to be freed
// nevertheless.
//
// Errors: STALE_RECEIPT if the lease had ended and the task was delivered again or settled meanwhile (an ack that is
// merely late is accepted); STORE_UNAVAILABLE or INDETERMINATE if the store did not answer; FORKED. Any thread.
int32_t stanchion_claim_ack(stanchion_claim claim,
                            struct stanchion_error **err);

// Done, with a result (1 MiB at most; NULL and 0: an empty one), which stanchion_queue_result returns for as long as the task
// says in keep_result_ms. Of a queue 10,000 results and 64 MiB are kept.
//
// Errors: as stanchion_claim_ack; INVALID_ARGUMENT for a result that is too large, and nothing is sent then. Any thread.
int32_t stanchion_claim_ack_with(stanchion_claim claim,
                                 const void *result,
                                 size_t result_len,
                                 struct stanchion_error **err);

// Notes how far the work has come (4 KiB at most), which stanchion_queue_get and _list show until the run ends, and renews the
// lease.
//
// Errors: as stanchion_claim_extend; INVALID_ARGUMENT for more bytes, and nothing is sent then. Any thread.
int32_t stanchion_claim_progress(stanchion_claim claim,
                                 const void *progress,
                                 size_t progress_len,
                                 struct stanchion_error **err);

// Not done: the task is tried again after `delay_ms`, or is dead after its last attempt. -1: as the task says; if it does not, 1 s, 16 s, 81 s, 4 min and so on
// after the first, second, ... attempt (the fourth power of its number), less up to half of it by chance, 7 h at most. The
// reason (1 KiB at most, the rest is cut off; may be NULL) is kept with it.
//
// Errors: as stanchion_claim_ack. Any thread.
int32_t stanchion_claim_nack(stanchion_claim claim,
                             int64_t delay_ms,
                             const char *reason,
                             size_t reason_len,
                             struct stanchion_error **err);

// Not done, and not to be retried: the task is dead. The reason (1 KiB at most, the rest is cut off; may be NULL) is kept with it.
//
// Errors: as stanchion_claim_ack. Any thread.
int32_t stanchion_claim_bury(stanchion_claim claim,
                             const char *reason,
                             size_t reason_len,
                             struct stanchion_error **err);

// Not tried: the task goes back without counting an attempt, and waits for `delay_ms`. 0 or -1: it comes back to its
// place in line, so the next claim gets it again.
//
// Errors: as stanchion_claim_ack; INVALID_ARGUMENT for a delay over 365 days. Any thread.
int32_t stanchion_claim_put_back(stanchion_claim claim,
                                 int64_t delay_ms,
                                 struct stanchion_error **err);

// Not tried, because whoever it calls has had enough (a 429, `Retry-After`): the task goes back to its place without counting
// an attempt, and nothing more of its key is given out for `time_ms` (0 to 365 days); if it has no key, nothing of the queue.
// A later throttle makes that longer, never shorter.
//
// Errors: as stanchion_claim_ack; INVALID_ARGUMENT for a time over 365 days. Any thread.
int32_t stanchion_claim_throttle(stanchion_claim claim,
                                 int64_t time_ms,
                                 struct stanchion_error **err);

// Prolongs the lease of the claim to at least `lease_ms` from now; never shortens it.
//
// Errors: as stanchion_lease_extend. Any thread.
int32_t stanchion_claim_extend(stanchion_claim claim, int64_t lease_ms, struct stanchion_error **err);

// Frees the handle. A claim that was not settled counts as failed: its task comes back after a pause. One that a worker
// gave out and that was not settled waits for the store. 0 and freed handles are harmless. Any thread.
void stanchion_claim_free(stanchion_claim claim);

// Makes a verdict "done" on no claim. `struct_size` is sizeof *verdict. Any thread.
void stanchion_verdict_init(struct stanchion_verdict *verdict, size_t struct_size);

// Puts a task in. STANCHION_OK: it is new. STANCHION_DUPLICATE: the id was in the queue already; the outcome in `out` is
// what was done. `out` may be NULL. Sent again if no answer comes, it is still put in once.
//
// Errors: QUEUE_FULL; INVALID_ARGUMENT for a bad name, id or option; INDETERMINATE if no answer came in time;
// STORE_UNAVAILABLE, DENIED or WRONG_TYPE from the store. Any thread.
int32_t stanchion_queue_enqueue(stanchion_client client,
                                const char *queue_name,
                                size_t queue_len,
                                const struct stanchion_task *task,
                                struct stanchion_enqueued *out,
                                struct stanchion_error **err);

// Puts many tasks in, with as few requests as possible. `out` gets a list with an answer for each task, in order: a full
// queue refuses some and takes others.
//
// Errors: INVALID_ARGUMENT if a task is bad; nothing is sent then. Errors of the store are in the answers. Any thread.
int32_t stanchion_queue_enqueue_many(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const struct stanchion_task *tasks,
                                     size_t task_count,
                                     stanchion_answers *out,
                                     struct stanchion_error **err);

// Takes at most `max` tasks (1 to 1000) under a lease, and waits for one if `wait_ms` is set. The options may be NULL. `out`
// has place for `max` handles; `count` gets how many there are. STANCHION_EMPTY: none.
//
// Errors: INVALID_ARGUMENT for a bad name or option; CANCELLED; STORE_UNAVAILABLE, DENIED or WRONG_TYPE from the store. Any
// thread; others go on meanwhile, with the same client, too.
int32_t stanchion_queue_claim(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              const struct stanchion_claim_options *options,
                              stanchion_claim *out,
                              size_t max,
                              size_t *count,
                              struct stanchion_error **err);

// As stanchion_queue_claim, of the first of several queues that has tasks. One round trip per queue. Any thread.
int32_t stanchion_queues_claim(stanchion_client client,
                               const struct stanchion_text *queue_names,
                               size_t queue_count,
                               const struct stanchion_claim_options *options,
                               stanchion_claim *out,
                               size_t max,
                               size_t *count,
                               struct stanchion_error **err);

// Settles claims of this queue together. `out` gets a list with an answer for each verdict, in order, as from
// stanchion_claim_ack. The handles of the claims are to be freed nevertheless.
//
// Errors: INVALID_ARGUMENT if a verdict is bad or its claim of another queue, INVALID_HANDLE if it is on no claim; nothing
// is sent then. Errors of the store are in the answers. Any thread.
int32_t stanchion_queue_settle(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const struct stanchion_verdict *verdict_array,
                               size_t verdict_count,
                               stanchion_answers *out,
                               struct stanchion_error **err);

// Settles claims (1000 at most) and takes new tasks, in one round trip if there are any: stanchion_queue_settle and
// stanchion_queue_claim together. `answers` is written, too, if there are no tasks (STANCHION_EMPTY).
//
// Errors: as both; INDETERMINATE if the settlements may or may not have been carried out. `cancel` is not looked at. Any
// thread.
int32_t stanchion_queue_settle_and_claim(stanchion_client client,
                                         const char *queue_name,
                                         size_t queue_len,
                                         const struct stanchion_verdict *verdict_array,
                                         size_t verdict_count,
                                         stanchion_answers *answers,
                                         const struct stanchion_claim_options *options,
                                         stanchion_claim *out,
                                         size_t max,
                                         size_t *count,
                                         struct stanchion_error **err);

// How many tasks are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_tasks_len(stanchion_tasks tasks);

// One of the tasks. Does no I/O. Any thread.
int32_t stanchion_tasks_at(stanchion_tasks tasks,
                           size_t index,
                           struct stanchion_task_info *out,
                           struct stanchion_error **err);

// One of the failed attempts of one of the tasks: `failure` counts from 0, and the latest is the last. Does no I/O. Any thread.
int32_t stanchion_tasks_failure_at(stanchion_tasks tasks,
                                   size_t index,
                                   size_t failure,
                                   struct stanchion_task_failure *out,
                                   struct stanchion_error **err);

// The page after this one, for `page` of stanchion_list_options; it lives as long as the handle of the list.
// STANCHION_ABSENT: this was the last, or is no page; `out` is not written. Does no I/O. Any thread.
int32_t stanchion_tasks_next(stanchion_tasks tasks, struct stanchion_text *out, struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_tasks_free(stanchion_tasks tasks);

// Takes at most `max` tasks (1 to 1000) for good, without a lease: if this process dies, they are lost. STANCHION_EMPTY:
// none; `out` is not written. Sent once.
//
// Errors: INDETERMINATE if no answer came: the tasks may be gone. Otherwise as stanchion_queue_claim. Any thread.
int32_t stanchion_queue_pop(stanchion_client client,
                            const char *queue_name,
                            size_t queue_len,
                            size_t max,
                            stanchion_tasks *out,
                            struct stanchion_error **err);

// The tasks that would be claimed next, at most `max` (1 to 1000). STANCHION_EMPTY: none; `out` is not written. Any thread.
int32_t stanchion_queue_peek(stanchion_client client,
                             const char *queue_name,
                             size_t queue_len,
                             size_t max,
                             stanchion_tasks *out,
                             struct stanchion_error **err);

// One task, as a list of one: the live one with this id, else the newest dead one. STANCHION_ABSENT: none; `out` is not
// written. Any thread.
int32_t stanchion_queue_get(stanchion_client client,
                            const char *queue_name,
                            size_t queue_len,
                            const char *id,
                            size_t id_len,
                            stanchion_tasks *out,
                            struct stanchion_error **err);

// The tasks of one state, a page of them, by the options. `out` gets the page, also if there is no task in it: there
// may be a next one all the same, which stanchion_tasks_next returns. A task that moves while pages are read may be in two
// of them or in none. Any thread.
int32_t stanchion_queue_list(stanchion_client client,
                             const char *queue_name,
                             size_t queue_len,
                             const struct stanchion_list_options *options,
                             stanchion_tasks *out,
                             struct stanchion_error **err);

// Drops a task, also while it is claimed: its claim is lost then. With a version (-1: any), only if it is still the
// task's. STANCHION_ABSENT: there was none. STANCHION_OTHER_VERSION: it has another version, which `found_version` (may be
// NULL) gets. Sent once.
//
// Errors: as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_remove(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const char *id,
                               size_t id_len,
                               int64_t if_version,
                               int64_t *found_version,
                               struct stanchion_error **err);

// Ends a task. One that waits is dropped, as by stanchion_queue_remove. STANCHION_RUNNING: it runs, and is told at the next
// renewal of its claim, which is lost then (STANCHION_LOSS_CANCELLED): after a third of its lease at the latest. An ack of
// that run is still accepted; whatever else it ends with, the task is not tried again. What comes after the run goes, too;
// what is enqueued later is a new task. STANCHION_ABSENT: there is none. Sent once.
//
// Errors: as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_cancel(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const char *id,
                               size_t id_len,
                               struct stanchion_error **err);

// Gives a waiting task another due time, in milliseconds since 1970; `moved_ms` (may be NULL) gets it as the store keeps
// it. STANCHION_ABSENT: no such task. STANCHION_CLAIMED, STANCHION_DEAD: it is, and nothing was changed. Any thread.
int32_t stanchion_queue_reschedule(stanchion_client client,
                                   const char *queue_name,
                                   size_t queue_len,
                                   const char *id,
                                   size_t id_len,
                                   int64_t due_ms,
                                   int64_t *moved_ms,
                                   struct stanchion_error **err);

// What became of a task. STANCHION_OK: it is done, and `out` gets its result (stanchion_claim_ack_with). STANCHION_DEAD: it is
// dead, and `out` gets why. Otherwise `out` is not written. STANCHION_PENDING: it is not done yet. STANCHION_ABSENT: it was
// done without a result, or removed, or cancelled, or never there; or its result is not kept any more.
//
// `version` is that of stanchion_enqueued, and asks about that task or a later one of the id; -1: about any. Waits up to
// `wait_ms` (365 days at most; 0 or -1: only looks) while the task is not done.
//
// Errors: as stanchion_queue_claim. Any thread; others go on meanwhile, with the same client, too.
int32_t stanchion_queue_result(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const char *id,
                               size_t id_len,
                               int64_t version,
                               int64_t wait_ms,
                               stanchion_result *out,
                               struct stanchion_error **err);

// What became of the task. Does no I/O. Any thread.
int32_t stanchion_result_get(stanchion_result result,
                             struct stanchion_result_info *out,
                             struct stanchion_error **err);

// Frees the result. 0 and freed handles are harmless. Any thread.
void stanchion_result_free(stanchion_result result);

// What happens to the tasks of the queue, if it keeps events (`events` of stanchion_queue_config): the first ones after the
// event with the number `after`, 500 at most. 0 begins with the oldest that is kept, -1 with the next one that happens. Waits
// up to `wait_ms` (365 days at most; 0 or -1: only looks) while there are none. `out` gets the list, also if nothing
// happened; go on with its stanchion_task_events_cursor.
//
// `cancel` ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED. It may be set by another thread
// or a signal handler, and must live until the call returns. NULL: nothing does.
//
// A task is added, started, and then done, failed, dead, cancelled, removed or put back; one that failed or was put back is
// started again. stanchion_queue_purge tells of none. Events tell that something happened, and not what is: a program that acts
// on tasks claims them, or asks for them (stanchion_queue_get, stanchion_queue_result).
//
// Errors: UNSUPPORTED if the queue keeps no events; CANCELLED; else as stanchion_queue_claim. Any thread; others go on
// meanwhile, with the same client, too.
int32_t stanchion_queue_events(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               int64_t after,
                               int64_t wait_ms,
                               const int32_t *cancel,
                               stanchion_task_events *out,
                               struct stanchion_error **err);

// How many events are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_task_events_len(stanchion_task_events events);

// One of the events. Does no I/O. Any thread.
int32_t stanchion_task_events_at(stanchion_task_events events,
                                 size_t index,
                                 struct stanchion_task_event *out,
                                 struct stanchion_error **err);

// 1 if some are not kept any more that came between these and the one after which was asked; 0 if not, or if this is no
// handle of such a list. Does no I/O. Any thread.
int32_t stanchion_task_events_missed(stanchion_task_events events);

// Ask stanchion_queue_events for what comes after this; also if the list is empty. -1 if this is no handle of a list. Does no
// I/O. Any thread.
int64_t stanchion_task_events_cursor(stanchion_task_events events);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_task_events_free(stanchion_task_events events);

// Makes one without any selection yet. `struct_size` is sizeof *dead. Any thread.
void stanchion_dead_tasks_init(struct stanchion_dead_tasks *dead, size_t struct_size);

// Moves dead tasks back to ready, with all their attempts, unless their ids live; `moved` (may be NULL) gets how many. It
// goes in steps of about 1000, each sent once.
//
// Errors: as stanchion_queue_pop, and INVALID_ARGUMENT if `dead` is NULL or has no field set; what earlier steps have moved
// stays moved, and is not counted. Any thread.
int32_t stanchion_queue_kick(stanchion_client client,
                             const char *queue_name,
                             size_t queue_len,
                             const struct stanchion_dead_tasks *dead,
                             uint64_t *moved,
                             struct stanchion_error **err);

// Drops dead tasks; `removed` (may be NULL) gets how many. It goes in steps of about 1000, each sent once.
//
// Errors: as stanchion_queue_kick; what earlier steps have dropped is gone. Any thread.
int32_t stanchion_queue_remove_dead(stanchion_client client,
                                    const char *queue_name,
                                    size_t queue_len,
                                    const struct stanchion_dead_tasks *dead,
                                    uint64_t *removed,
                                    struct stanchion_error **err);

// Makes a schedule without id and times, with no payload, and defaults. `struct_size` is sizeof *schedule. Any thread.
void stanchion_schedule_init(struct stanchion_schedule *schedule,
                             size_t struct_size);

// When the slots after `after_ms` (milliseconds since 1970) are due, at most `count` (1 to 1000): `out` has place for so
// many, and `found` gets how many there are, fewer if the schedule ends. One with a period begins at `after_ms`. Does no
// I/O.
//
// Errors: INVALID_ARGUMENT for a bad count, and for times that stanchion_queue_schedule would refuse. Any thread.
int32_t stanchion_schedule_preview(const struct stanchion_schedule *schedule,
                                   int64_t after_ms,
                                   int64_t *out,
                                   size_t count,
                                   size_t *found,
                                   struct stanchion_error **err);

// How many schedules are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_schedules_len(stanchion_schedules schedules);

// One of the schedules. Does no I/O. Any thread.
int32_t stanchion_schedules_at(stanchion_schedules schedules,
                               size_t index,
                               struct stanchion_schedule_info *out,
                               struct stanchion_error **err);

// The page after this one, for stanchion_queue_list_schedules; it lives as long as the handle of the list.
// STANCHION_ABSENT: this was the last, or is no page; `out` is not written. Does no I/O. Any thread.
int32_t stanchion_schedules_next(stanchion_schedules schedules,
                                 struct stanchion_text *out,
                                 struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_schedules_free(stanchion_schedules schedules);

// Adds a schedule, or changes the one with its id: its slots go on as they are, unless what says when they are is another.
// `outcome` (may be NULL) gets a stanchion_schedule_outcome. Sent once.
//
// Errors: INVALID_ARGUMENT for a bad id, time or option, and if no slot comes any more; otherwise as stanchion_queue_pop.
// Any thread.
int32_t stanchion_queue_schedule(stanchion_client client,
                                 const char *queue_name,
                                 size_t queue_len,
                                 const struct stanchion_schedule *schedule,
                                 int32_t *outcome,
                                 struct stanchion_error **err);

// Makes these (1000 at most) all the schedules of this owner, an application for example: adds what is new, changes what is
// other, removes what the owner has no more. What others have put stays. To be called at each start, with a generation (0
// to 2^52) that grows with each deploy: a list of an older one changes nothing, so that programs of the old deploy that
// still run, or start once more, do no harm. `out` may be NULL.
//
// Errors: as stanchion_queue_claim, and INVALID_ARGUMENT if a schedule is bad or there twice; nothing is sent then. Any
// thread.
int32_t stanchion_queue_sync_schedules(stanchion_client client,
                                       const char *queue_name,
                                       size_t queue_len,
                                       const char *owner,
                                       size_t owner_len,
                                       int64_t generation,
                                       const struct stanchion_schedule *schedules,
                                       size_t schedule_count,
                                       struct stanchion_synced *out,
                                       struct stanchion_error **err);

// One schedule, as a list of one. STANCHION_ABSENT: none; `out` is not written. Any thread.
int32_t stanchion_queue_get_schedule(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const char *id,
                                     size_t id_len,
                                     stanchion_schedules *out,
                                     struct stanchion_error **err);

// The schedules in the order in which they are due, those that are paused or over last: a page of at most `max` (1 to 1000,
// and never more than 100). `page` is NULL first, then what stanchion_schedules_next gave for the last one. `out` gets the
// page, also if there is no schedule in it. Any thread.
int32_t stanchion_queue_list_schedules(stanchion_client client,
                                       const char *queue_name,
                                       size_t queue_len,
                                       const char *page,
                                       size_t page_len,
                                       size_t max,
                                       stanchion_schedules *out,
                                       struct stanchion_error **err);

// Lets a schedule fire nothing until it is resumed. STANCHION_ABSENT: there is no such schedule. Any thread.
int32_t stanchion_queue_pause_schedule(stanchion_client client,
                                       const char *queue_name,
                                       size_t queue_len,
                                       const char *id,
                                       size_t id_len,
                                       struct stanchion_error **err);

// Lets a schedule go on; the slots of the pause are not fired. STANCHION_ABSENT: there is no such schedule. Any thread.
int32_t stanchion_queue_resume_schedule(stanchion_client client,
                                        const char *queue_name,
                                        size_t queue_len,
                                        const char *id,
                                        size_t id_len,
                                        struct stanchion_error **err);

// Makes a task of a schedule now, also if it is paused; its slots stay as they are. `out` (may be NULL) gets the task's id.
// STANCHION_ABSENT: there is no such schedule; `out` is not written. Sent once.
//
// Errors: QUEUE_FULL; otherwise as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_run_schedule(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const char *id,
                                     size_t id_len,
                                     struct stanchion_ran *out,
                                     struct stanchion_error **err);

// Drops a schedule; the tasks that it has made stay. STANCHION_ABSENT: there was none. Sent once.
//
// Errors: as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_remove_schedule(stanchion_client client,
                                        const char *queue_name,
                                        size_t queue_len,
                                        const char *id,
                                        size_t id_len,
                                        struct stanchion_error **err);

// How many consumers are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_consumers_len(stanchion_consumers consumers);

// One of the consumers. Does no I/O. Any thread.
int32_t stanchion_consumers_at(stanchion_consumers consumers,
                               size_t index,
                               struct stanchion_consumer *out,
                               struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_consumers_free(stanchion_consumers consumers);

// Makes limits that are those of the queue, with the weight 1. `struct_size` is sizeof *limits. Any thread.
void stanchion_key_limits_init(struct stanchion_key_limits *limits, size_t struct_size);

// Gives a key limits of its own, at once, also while its tasks run; those that run too many end first. NULL takes them away:
// the key has those that the queue gives each key.
//
// Errors: QUEUE_FULL if 100000 keys have limits of their own; INVALID_ARGUMENT for a bad key or limit; otherwise as
// stanchion_queue_claim. Any thread.
int32_t stanchion_queue_limit_key(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  const char *key,
                                  size_t key_len,
                                  const struct stanchion_key_limits *limits,
                                  struct stanchion_error **err);

// What is known of a key, as a list of one, also if the queue has no task of it: how many of its tasks run, stand in line and
// are held, and what limits it has of its own. Any thread.
int32_t stanchion_queue_get_key(stanchion_client client,
                                const char *queue_name,
                                size_t queue_len,
                                const char *key,
                                size_t key_len,
                                stanchion_keys *out,
                                struct stanchion_error **err);

// The keys that hold tasks, then those that have limits of their own and hold none: a page of at most `max` (1 to 1000, and
// never more than 100). `page` is NULL first, then what stanchion_keys_next gave for the last one. `out` gets the page, also
// if there is no key in it. Any thread.
int32_t stanchion_queue_list_keys(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  const char *page,
                                  size_t page_len,
                                  size_t max,
                                  stanchion_keys *out,
                                  struct stanchion_error **err);

// How many keys are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_keys_len(stanchion_keys keys);

// One of the keys. Does no I/O. Any thread.
int32_t stanchion_keys_at(stanchion_keys keys,
                          size_t index,
                          struct stanchion_key_info *out,
                          struct stanchion_error **err);

// The page after this one, for stanchion_queue_list_keys; it lives as long as the handle of the list. STANCHION_ABSENT: this
// was the last, or is no page; `out` is not written. Does no I/O. Any thread.
int32_t stanchion_keys_next(stanchion_keys keys,
                            struct stanchion_text *out,
                            struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_keys_free(stanchion_keys keys);

// Makes a node without a task, in the flow's queue, that waits for nothing. `struct_size` is sizeof *node. Any thread.
void stanchion_node_init(struct stanchion_node *node,
                         size_t struct_size);

// Puts a flow in, whole: 10000 nodes at most, with 64 MiB of payloads in all. Its id is one that the queue has once: with the
// longest name of its nodes and a slash 512 bytes at most, without control characters, and no slash in it. STANCHION_OK: it is new, and `was_put`
// gets 1. STANCHION_DUPLICATE: the queue has one with this id, which stays as it is, and `was_put` gets 0; it may be NULL.
//
// Whoever claims from the queue puts each task into its queue as soon as what it waits for has come about, also if that queue
// is at its limit. Every flow ends: a task that can never run any more is skipped, and so on down. It is kept for 7 days after
// its end, and of a queue the last 1000 that have ended are.
//
// Errors: QUEUE_FULL if the queue has a limit and is at it; INVALID_ARGUMENT for a bad id, task or node, for nodes that wait for
// each other, or for too many: nothing is sent then; otherwise as stanchion_queue_enqueue. Any thread.
int32_t stanchion_queue_enqueue_flow(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const char *id,
                                     size_t id_len,
                                     const struct stanchion_node *nodes,
                                     size_t node_count,
                                     int32_t *was_put,
                                     struct stanchion_error **err);

// Adds nodes to a flow that runs: 1000 at most, with 4 MiB of payloads, and none of them with `after_all`, for those come with
// the flow. STANCHION_OK: it does. STANCHION_ABSENT: there is no such flow, or it has ended. As long as the caller's task is a
// node of it, it runs. The new ones may come after nodes that are there, and those that wait for all wait for these, too.
//
// Errors: as stanchion_queue_enqueue_flow. Any thread.
int32_t stanchion_queue_add_to_flow(stanchion_client client,
                                    const char *queue_name,
                                    size_t queue_len,
                                    const char *id,
                                    size_t id_len,
                                    const struct stanchion_node *nodes,
                                    size_t node_count,
                                    struct stanchion_error **err);

// Cancels a flow. STANCHION_OK: it is. STANCHION_ABSENT: there is none that runs. Tasks that wait go, those that run are told,
// as by stanchion_queue_cancel, and of the nodes that are not in their queues only those still run that wait for nothing but the
// end of others (STANCHION_AFTER_ALL_FINALLY). Sent once.
//
// Errors: as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_cancel_flow(stanchion_client client,
                                    const char *queue_name,
                                    size_t queue_len,
                                    const char *id,
                                    size_t id_len,
                                    struct stanchion_error **err);

// Tries again what did not succeed in a flow: nodes that are dead, cancelled or skipped, with attempts starting again. Those
// that succeeded do not run again. STANCHION_OK: it does. STANCHION_ABSENT: there is no such flow. Sent once.
//
// Errors: as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_retry_flow(stanchion_client client,
                                   const char *queue_name,
                                   size_t queue_len,
                                   const char *id,
                                   size_t id_len,
                                   struct stanchion_error **err);

// A flow with all its nodes, as a list of one. STANCHION_ABSENT: it is not known; `out` is not written.
//
// Errors: as stanchion_queue_claim. Any thread.
int32_t stanchion_queue_get_flow(stanchion_client client,
                                 const char *queue_name,
                                 size_t queue_len,
                                 const char *id,
                                 size_t id_len,
                                 stanchion_flows *out,
                                 struct stanchion_error **err);

// The flows of the queue without their nodes: those that run, the latest first, then those that have ended; a page of at most
// `max` (1 to 1000, and never more than 100). `page` is NULL first, then what stanchion_flows_next gave for the last one. `out`
// gets the page, also if there is no flow in it.
//
// Errors: as stanchion_queue_claim. Any thread.
int32_t stanchion_queue_list_flows(stanchion_client client,
                                   const char *queue_name,
                                   size_t queue_len,
                                   const char *page,
                                   size_t page_len,
                                   size_t max,
                                   stanchion_flows *out,
                                   struct stanchion_error **err);

// How many flows are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_flows_len(stanchion_flows flows);

// One of the flows. Does no I/O. Any thread.
int32_t stanchion_flows_at(stanchion_flows flows,
                           size_t index,
                           struct stanchion_flow_info *out,
                           struct stanchion_error **err);

// One of the nodes of one of the flows, each behind those that it waits for: `node` counts from 0. Does no I/O. Any thread.
int32_t stanchion_flows_node_at(stanchion_flows flows,
                                size_t index,
                                size_t node,
                                struct stanchion_node_info *out,
                                struct stanchion_error **err);

// The page after this one, for stanchion_queue_list_flows; it lives as long as the handle of the list. STANCHION_ABSENT: this
// was the last, or is no page; `out` is not written. Does no I/O. Any thread.
int32_t stanchion_flows_next(stanchion_flows flows,
                             struct stanchion_text *out,
                             struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_flows_free(stanchion_flows flows);

// What has become of the nodes that this task comes after, with the results that they gave, in the order in which it names them;
// if it comes after all, of all. Of a flow 64 MiB of results are kept. `out` gets the list, also if there is nothing in it, as
// for a task that is of no flow.
//
// Errors: as stanchion_queue_claim. Any thread.
int32_t stanchion_claim_inputs(stanchion_claim claim,
                               stanchion_inputs *out,
                               struct stanchion_error **err);

// How many inputs are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_inputs_len(stanchion_inputs inputs);

// One of the inputs. Does no I/O. Any thread.
int32_t stanchion_inputs_at(stanchion_inputs inputs,
                            size_t index,
                            struct stanchion_input *out,
                            struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_inputs_free(stanchion_inputs inputs);

// How many tasks there are, what happened so far, and the settings. Any thread.
int32_t stanchion_queue_stats(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              struct stanchion_stats *out,
                              struct stanchion_error **err);

// Who works on the queue: the processes of the first 1000 calls that wait for a task, and of the first 1000 claims. `out`
// gets the list, also if nobody is in it. Of a queue without tasks, an empty list means that nobody waits; a worker that
// is busy has claims. Any thread.
int32_t stanchion_queue_consumers(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  stanchion_consumers *out,
                                  struct stanchion_error **err);

// Stops giving out tasks. Claims that are out go on, can be settled and extended. Any thread.
int32_t stanchion_queue_pause(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              struct stanchion_error **err);

// Goes on giving out tasks. Any thread.
int32_t stanchion_queue_resume(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               struct stanchion_error **err);

// Drops every task, live and dead; claims that are out are lost. Settings stay. `dropped` (may be NULL) gets how many
// there were. Sent once.
//
// Errors: as stanchion_queue_pop. Any thread.
int32_t stanchion_queue_purge(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              uint64_t *dropped,
                              struct stanchion_error **err);

// Makes settings that change nothing. `struct_size` is sizeof *settings. Any thread.
void stanchion_queue_config_init(struct stanchion_queue_config *settings, size_t struct_size);

// Changes settings. Any thread.
int32_t stanchion_queue_configure(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  const struct stanchion_queue_config *settings,
                                  struct stanchion_error **err);

// Starts a worker on a queue: a thread of the library takes tasks and settles them, and keeps their leases alive; the
// threads of the program poll for them. `options` may be NULL.
//
// Errors: INVALID_ARGUMENT for a bad name or option; INTERNAL if no thread can be started. Any thread.
int32_t stanchion_worker_open(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              const struct stanchion_worker_options *options,
                              stanchion_worker *out,
                              struct stanchion_error **err);

// The next task to work on. STANCHION_EMPTY: there was none for `wait_ms`. STANCHION_OVER: there will be none, since the
// worker was stopped and everything is settled. Up to `concurrency` tasks are out at once: settle one to get the next.
//
// Errors: what the store refuses for good, which ends the worker (a store that cannot be reached is asked again);
// INVALID_ARGUMENT; FORKED. Any thread, also several at once.
int32_t stanchion_worker_poll(stanchion_worker worker,
                              int64_t wait_ms,
                              stanchion_claim *out,
                              struct stanchion_error **err);

// The task is done: acked, usually together with the next claim, and the handle of the claim is freed. A claim that was
// settled otherwise, with a result for example, stays as it was. stanchion_worker_get_event reports whether the store accepted it. Any thread.
//
// Errors: INVALID_ARGUMENT if the claim is not this worker's; FORKED.
int32_t stanchion_worker_complete(stanchion_worker worker,
                                  stanchion_claim claim,
                                  struct stanchion_error **err);

// The task has failed: tried again after the pause of stanchion_claim_nack, or dead after its last attempt; the handle of the claim is
// freed. The reason (1 KiB at most; may be NULL) is kept with it. A claim that was settled otherwise stays as it was. Any thread.
//
// Errors: as stanchion_worker_complete.
int32_t stanchion_worker_fail(stanchion_worker worker,
                              stanchion_claim claim,
                              const char *reason,
                              size_t reason_len,
                              struct stanchion_error **err);

// Take no more tasks. Those that are out go on for grace_ms. Then stanchion_claim_loss answers STANCHION_LOSS_STOPPED for
// them, and those that fail go back without counting an attempt. What has not ended 2 s later is left behind: its task
// comes back when its lease would have ended, uncounted too. When all are settled or left behind, stanchion_worker_poll
// answers STANCHION_OVER. Does no I/O. Any thread, but no signal handler: set a flag there, and look at it between polls.
int32_t stanchion_worker_stop(stanchion_worker worker,
                              struct stanchion_error **err);

// As stanchion_worker_stop, and no grace is left. Does no I/O. Any thread, but no signal handler.
int32_t stanchion_worker_hurry(stanchion_worker worker, struct stanchion_error **err);

// What the worker has done so far. Does no I/O. Any thread.
int32_t stanchion_worker_get_report(stanchion_worker worker,
                                    struct stanchion_worker_report *out,
                                    struct stanchion_error **err);

// The oldest thing that happened and was not fetched yet, of 1000 at most; STANCHION_EMPTY if there is none. Each is
// reported once. Does no I/O. Any thread.
int32_t stanchion_worker_get_event(stanchion_worker worker,
                                   struct stanchion_worker_event *out,
                                   struct stanchion_error **err);

// Frees the handle and ends the worker without waiting: what is still worked on counts as failed. To drain it, stop it and
// poll until STANCHION_OVER first. 0 and freed handles are harmless. Any thread.
void stanchion_worker_free(stanchion_worker worker);

// Names of locks that are held now, in no order; a name may be in two pages. `page` is 0 first, then what the last page
// gave in `next_page`, which is 0 after the last one. Any thread.
int32_t stanchion_client_locks(stanchion_client client,
                               uint64_t page,
                               stanchion_names *out,
                               uint64_t *next_page,
                               struct stanchion_error **err);

// Names of queues that have tasks or settings, or had some in the last 7 days; pages as in stanchion_client_locks. Any
// thread.
int32_t stanchion_client_queues(stanchion_client client,
                                uint64_t page,
                                stanchion_names *out,
                                uint64_t *next_page,
                                struct stanchion_error **err);

// How many names are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
size_t stanchion_names_len(stanchion_names names);

// One of the names, which lives as long as the handle of the list. Does no I/O. Any thread.
int32_t stanchion_names_at(stanchion_names names,
                           size_t index,
                           struct stanchion_text *out,
                           struct stanchion_error **err);

// Frees the list. 0 and freed handles are harmless. Any thread.
void stanchion_names_free(stanchion_names names);

// What the client has counted since it was opened in this process, one number for each sample of its Prometheus text. The
// samples are listed in docs/METRICS.md. Does no I/O. Any thread.
int32_t stanchion_client_metrics(stanchion_client client,
                                 stanchion_metrics *out,
                                 struct stanchion_error **err);

// All of it in Prometheus' text format, to be served as "text/plain; version=0.0.4". The text lives as long as the handle.
// Does no I/O. Any thread.
int32_t stanchion_metrics_text(stanchion_metrics metrics,
                               struct stanchion_text *out,
                               struct stanchion_error **err);

// The value of a sample, named as in the text with its labels: stanchion_lock_acquires_total{outcome="granted"}.
// STANCHION_ABSENT: there is none of this name. Does no I/O. Any thread.
int32_t stanchion_metrics_get(stanchion_metrics metrics,
                              const char *name,
                              size_t name_len,
                              double *out,
                              struct stanchion_error **err);

// How many samples there are; 0 if this is no handle of metrics. Does no I/O. Any thread.
size_t stanchion_metrics_len(stanchion_metrics metrics);

// One of the samples; its name lives as long as the handle. Does no I/O. Any thread.
int32_t stanchion_metrics_at(stanchion_metrics metrics,
                             size_t index,
                             struct stanchion_text *name,
                             double *value,
                             struct stanchion_error **err);

// Frees the metrics. 0 and freed handles are harmless. Any thread.
void stanchion_metrics_free(stanchion_metrics metrics);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STANCHION_H */
