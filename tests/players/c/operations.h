/* The operations of scenarios, each a call of the library, and what they share. */

#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "player.h"

#define MOST_SEVERAL 16
/* A function of a lock or a queue takes the client and a name. */
#define NAMED(name) self->client, (name).data, (name).len
/* Its error is looked at after the call. */
#define CHECK(call) check(self, (call), &error)

/* A lock of any kind, as a request tells it. */
typedef struct some_lock {
  enum { EXCLUSIVE, READ, WRITE, SEMAPHORE, SEVERAL } kind;
  stanchion_text name;
  int64_t permits;
  stanchion_text several[MOST_SEVERAL];
  size_t count;
  stanchion_text owner;
} some_lock;

some_lock lock_of(actor *self, const json_t *request);
int32_t acquire_some(actor *self, const some_lock *lock, const stanchion_lock_options *options, stanchion_lease *out,
                     stanchion_error **error);
int32_t waiters_of_some(actor *self, const some_lock *lock, stanchion_waiters *out, stanchion_error **error);
int32_t holders_of_some(actor *self, const some_lock *lock, stanchion_holders *out, stanchion_error **error);
int32_t some_is_locked(actor *self, const some_lock *lock, stanchion_error **error);
int32_t break_some(actor *self, const some_lock *lock, stanchion_error **error);

stanchion_lease lease_of(actor *self, const json_t *request);
stanchion_claim claim_of(actor *self, const json_t *request);
json_t *keep(actor *self, json_t *request, stanchion_lease lease);
json_t *keep_claims(actor *self, json_t *request, const stanchion_claim *claims, size_t count);

json_t *pass_time(actor *self, json_t *request);
json_t *fork_child(actor *self, json_t *request);
json_t *show_nothing(actor *self, json_t *request);
json_t *panic_inside(actor *self, json_t *request);
json_t *client_open(actor *self, json_t *request);
json_t *client_close(actor *self, json_t *request);
json_t *resume_lease(actor *self, json_t *request);
json_t *release_all(actor *self, json_t *request);
json_t *cached(actor *self, json_t *request);
json_t *invalidate(actor *self, json_t *request);
json_t *locks(actor *self, json_t *request);
json_t *queue_names(actor *self, json_t *request);
json_t *acquire(actor *self, json_t *request);
json_t *try_acquire(actor *self, json_t *request);
json_t *hold(actor *self, json_t *request);
json_t *holder(actor *self, json_t *request);
json_t *metrics(actor *self, json_t *request);
json_t *waiters(actor *self, json_t *request);
json_t *holders(actor *self, json_t *request);
json_t *is_locked(actor *self, json_t *request);
json_t *break_lease(actor *self, json_t *request);
json_t *take(actor *self, json_t *request);
json_t *try_take(actor *self, json_t *request);
json_t *look_at_lease(actor *self, json_t *request);
json_t *check_lease(actor *self, json_t *request);
json_t *wait_lost_lease(actor *self, json_t *request);
json_t *extend_lease(actor *self, json_t *request);
json_t *extend_lease_exact(actor *self, json_t *request);
json_t *downgrade(actor *self, json_t *request);
json_t *upgrade(actor *self, json_t *request);
json_t *release(actor *self, json_t *request);
json_t *detach(actor *self, json_t *request);
json_t *enqueue(actor *self, json_t *request);
json_t *enqueue_many(actor *self, json_t *request);
json_t *claim(actor *self, json_t *request);
json_t *claim_any(actor *self, json_t *request);
json_t *settle(actor *self, json_t *request);
json_t *settle_and_claim(actor *self, json_t *request);
json_t *pop(actor *self, json_t *request);
json_t *peek(actor *self, json_t *request);
json_t *get(actor *self, json_t *request);
json_t *list(actor *self, json_t *request);
json_t *remove_task(actor *self, json_t *request);
json_t *cancel(actor *self, json_t *request);
json_t *result(actor *self, json_t *request);
json_t *events(actor *self, json_t *request);
json_t *reschedule(actor *self, json_t *request);
json_t *stats(actor *self, json_t *request);
json_t *consumers(actor *self, json_t *request);
json_t *pause_queue(actor *self, json_t *request);
json_t *resume(actor *self, json_t *request);
json_t *kick(actor *self, json_t *request);
json_t *remove_dead(actor *self, json_t *request);
json_t *purge(actor *self, json_t *request);
json_t *configure(actor *self, json_t *request);
json_t *put_schedule(actor *self, json_t *request);
json_t *sync_schedules(actor *self, json_t *request);
json_t *get_schedule(actor *self, json_t *request);
json_t *list_schedules(actor *self, json_t *request);
json_t *pause_schedule(actor *self, json_t *request);
json_t *resume_schedule(actor *self, json_t *request);
json_t *run_schedule(actor *self, json_t *request);
json_t *remove_schedule(actor *self, json_t *request);
json_t *limit_key(actor *self, json_t *request);
json_t *get_key(actor *self, json_t *request);
json_t *list_keys(actor *self, json_t *request);
json_t *enqueue_flow(actor *self, json_t *request);
json_t *add_to_flow(actor *self, json_t *request);
json_t *get_flow(actor *self, json_t *request);
json_t *list_flows(actor *self, json_t *request);
json_t *cancel_flow(actor *self, json_t *request);
json_t *retry_flow(actor *self, json_t *request);
json_t *preview_schedule(actor *self, json_t *request);
json_t *look_at_claim(actor *self, json_t *request);
json_t *inputs(actor *self, json_t *request);
json_t *ack(actor *self, json_t *request);
json_t *progress(actor *self, json_t *request);
json_t *nack(actor *self, json_t *request);
json_t *bury(actor *self, json_t *request);
json_t *put_back(actor *self, json_t *request);
json_t *throttle(actor *self, json_t *request);
json_t *extend_claim(actor *self, json_t *request);
json_t *wait_lost_claim(actor *self, json_t *request);
json_t *work(actor *self, json_t *request);

#endif
