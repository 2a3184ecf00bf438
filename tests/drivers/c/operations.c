/* The operations of scenarios, each a call of the library. */

#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a close waits for what is done in the background. */
#define FAREWELL_MS 500
#define HANDLE_TTL_MS 30000

/* A function of a lock or a queue takes the client and a name. */
#define NAMED(name) self->client, (name).data, (name).len
/* Its error is looked at after the call. */
#define CHECK(call) check(self, (call), &error)

static int64_t *slot(held *list, const char *name, int is_new) {
  for (size_t i = 0; i < MOST_HELD; i++) {
    if (strcmp(list[i].name, name) == 0) return &list[i].handle;
    if (list[i].name[0] == 0 && is_new) {
      snprintf(list[i].name, sizeof list[i].name, "%s", name);
      return &list[i].handle;
    }
  }
  fprintf(stderr, "there is no %s\n", name);
  abort();
}

static stanchion_lease lease_of(actor *self, const json_t *request) {
  return *slot(self->leases, label(request, "lease", "lease"), 0);
}

static stanchion_claim claim_of(actor *self, const json_t *request) {
  return *slot(self->claims, label(request, "claim", "claim.0"), 0);
}

static json_t *keep(actor *self, json_t *request, stanchion_lease lease) {
  int64_t *place = slot(self->leases, label(request, "as", "lease"), 1);
  stanchion_lease_free(*place);
  *place = lease;
  return shown_lease(self, lease);
}

static json_t *keep_claims(actor *self, json_t *request, const stanchion_claim *claims, size_t count) {
  json_t *shown = json_array();
  for (size_t i = 0; i < count; i++) {
    char name[80];
    snprintf(name, sizeof name, "%.40s.%zu", label(request, "as", "claim"), i);
    int64_t *place = slot(self->claims, name, 1);
    stanchion_claim_free(*place);
    *place = claims[i];
    json_array_append_new(shown, shown_claim(self, claims[i]));
  }
  return shown;
}

/* Time and clients. */

static json_t *pass_time(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_clock_advance(driver_clock, whole(self, request, "ms", 0), &error));
  return json_null();
}

static json_t *client_open(actor *self, json_t *request) {
  stanchion_connect_options options;
  stanchion_error *error = NULL;
  stanchion_connect_options_init(&options, sizeof options);
  stanchion_text url = text(self, request, "url");
  options.lock_prefix = maybe_text(self, request, "lock_prefix");
  options.queue_prefix = maybe_text(self, request, "queue_prefix");
  options.label = maybe_text(self, request, "label");
  options.timeout_ms = whole(self, request, "timeout_ms", NOT_GIVEN);
  if (url.len >= 7 && memcmp(url.data, "memory:", 7) == 0) options.clock = driver_clock;
  CHECK(stanchion_connect(url.data, url.len, &options, &self->client, &error));
  return json_null();
}

static json_t *client_close(actor *self, json_t *request) {
  (void)request;
  for (size_t i = 0; i < MOST_HELD; i++) {
    stanchion_lease_free(self->leases[i].handle);
    stanchion_claim_free(self->claims[i].handle);
  }
  memset(self->leases, 0, sizeof self->leases);
  memset(self->claims, 0, sizeof self->claims);
  if (self->client != 0) stanchion_client_linger(self->client, FAREWELL_MS, NULL, NULL);
  stanchion_client_free(self->client);
  self->client = 0;
  return json_null();
}

static json_t *resume_lease(actor *self, json_t *request) {
  stanchion_lease lease;
  stanchion_error *error = NULL;
  stanchion_text handle = text(self, request, "handle");
  CHECK(stanchion_client_resume_lease(NAMED(handle), &lease, &error));
  return keep(self, request, lease);
}

static json_t *release_all(actor *self, json_t *request) {
  size_t count = 0;
  stanchion_error *error = NULL;
  (void)request;
  CHECK(stanchion_client_release_all(self->client, &count, &error));
  return json_integer((json_int_t)count);
}

static json_t *shown_names(actor *self, stanchion_names names, uint64_t next) {
  json_t *items = json_array();
  for (size_t i = 0; i < stanchion_names_len(names); i++) {
    stanchion_text name;
    stanchion_error *error = NULL;
    CHECK(stanchion_names_at(names, i, &name, &error));
    json_array_append_new(items, shown_text(name));
  }
  stanchion_names_free(names);
  return json_pack("{s:o, s:o}", "items", items, "next", maybe_number((int64_t)next, 0));
}

static json_t *locks(actor *self, json_t *request) {
  stanchion_names names;
  uint64_t next = 0;
  stanchion_error *error = NULL;
  CHECK(stanchion_client_locks(self->client, size(self, request, "page", 0), &names, &next, &error));
  return shown_names(self, names, next);
}

static json_t *queue_names(actor *self, json_t *request) {
  stanchion_names names;
  uint64_t next = 0;
  stanchion_error *error = NULL;
  CHECK(stanchion_client_queues(self->client, size(self, request, "page", 0), &names, &next, &error));
  return shown_names(self, names, next);
}

/* Locks and leases. */

static int32_t acquire_lock(actor *self, json_t *request, stanchion_lock_options options, json_t **shown) {
  stanchion_lease lease;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "lock");
  int32_t status = CHECK(stanchion_lock_acquire(NAMED(name), &options, &lease, &error));
  *shown = status == STANCHION_BUSY ? json_null() : keep(self, request, lease);
  return status;
}

static json_t *acquire(actor *self, json_t *request) {
  json_t *shown;
  int32_t status = acquire_lock(self, request, lock_options(self, request), &shown);
  if (status == STANCHION_BUSY) refuse(self, "an acquire that may not wait is a try");
  return shown;
}

static json_t *try_acquire(actor *self, json_t *request) {
  json_t *shown;
  stanchion_lock_options options = lock_options(self, request);
  options.wait_ms = 0;
  acquire_lock(self, request, options, &shown);
  return shown;
}

static json_t *hold(actor *self, json_t *request) {
  (void)request;
  refuse(self, "C has no scopes that end by themselves");
  return NULL;
}

static json_t *holder(actor *self, json_t *request) {
  stanchion_holder found = {.struct_size = sizeof found};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "lock");
  int32_t status = CHECK(stanchion_lock_holder(NAMED(name), &found, &error));
  return status == STANCHION_ABSENT ? json_null() : shown_holder(&found);
}

static json_t *is_locked(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "lock");
  return json_boolean(CHECK(stanchion_lock_is_locked(NAMED(name), &error)) == STANCHION_BUSY);
}

static json_t *break_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "lock");
  return json_boolean(CHECK(stanchion_lock_break_lease(NAMED(name), &error)) != STANCHION_ABSENT);
}

static json_t *look_at_lease(actor *self, json_t *request) {
  stanchion_lease lease = lease_of(self, request);
  json_t *shown = shown_lease(self, lease);
  json_object_set_new(shown, "remaining_ms", json_integer(stanchion_lease_remaining_ms(lease)));
  json_object_set_new(shown, "valid", json_boolean(stanchion_lease_is_valid(lease)));
  json_object_set_new(shown, "loss", shown_loss(stanchion_lease_loss(lease)));
  return shown;
}

static json_t *check_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_lease_check(lease_of(self, request), &error));
  return json_null();
}

static json_t *wait_lost_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t time = whole(self, request, "time_ms", 0);
  return json_boolean(CHECK(stanchion_lease_wait_lost(lease_of(self, request), time, &error)) == STANCHION_LOST);
}

static json_t *extend_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t ttl = whole(self, request, "ttl_ms", NOT_GIVEN);
  if (ttl == NOT_GIVEN) refuse(self, "it is no int64_t");
  CHECK(stanchion_lease_extend(lease_of(self, request), ttl, &error));
  return json_null();
}

static json_t *release(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t cooldown = whole(self, request, "cooldown_ms", NOT_GIVEN);
  if (cooldown == NOT_GIVEN) {
    CHECK(stanchion_lease_release(lease_of(self, request), &error));
  } else {
    CHECK(stanchion_lease_release_with_cooldown(lease_of(self, request), cooldown, &error));
  }
  return json_null();
}

static json_t *into_handle(actor *self, json_t *request) {
  stanchion_text handle;
  stanchion_error *error = NULL;
  int64_t ttl = whole(self, request, "ttl_ms", HANDLE_TTL_MS);
  CHECK(stanchion_lease_into_handle(lease_of(self, request), ttl, &handle, &error));
  return shown_text(handle);
}

/* Queues and claims. */

static json_t *enqueue(actor *self, json_t *request) {
  stanchion_enqueued done = {.struct_size = sizeof done};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_task given = task(self, request);
  CHECK(stanchion_queue_enqueue(NAMED(name), &given, &done, &error));
  return shown_enqueued(&done);
}

static json_t *shown_answers(stanchion_answers answers, int are_tasks) {
  json_t *shown = json_array();
  for (size_t i = 0; i < stanchion_answers_len(answers); i++) {
    stanchion_enqueued done = {.struct_size = sizeof done};
    stanchion_error *error = NULL;
    int32_t status = stanchion_answers_at(answers, i, are_tasks ? &done : NULL, &error);
    json_t *one = status < 0 ? json_pack("{s:o}", "error", shown_error(error))
                             : are_tasks ? shown_enqueued(&done) : json_null();
    json_array_append_new(shown, one);
  }
  stanchion_answers_free(answers);
  return shown;
}

static json_t *enqueue_many(actor *self, json_t *request) {
  json_t *given = json_object_get(request, "tasks");
  size_t count = json_array_size(given);
  stanchion_task *tasks = calloc(count + 1, sizeof *tasks);
  stanchion_answers answers;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  for (size_t i = 0; i < count; i++) tasks[i] = task(self, json_array_get(given, i));
  CHECK(stanchion_queue_enqueue_many(NAMED(name), tasks, count, &answers, &error));
  free(tasks);
  return shown_answers(answers, 1);
}

/* Where the claims of a request go: as many as it may get, and one more. */
static stanchion_claim *room(size_t max) {
  stanchion_claim *claims = calloc(max + 1, sizeof *claims);
  if (claims == NULL) abort();
  return claims;
}

static json_t *claim(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_claim_options options = claim_options(self, request);
  size_t count = 0, max = size(self, request, "max", 1);
  stanchion_claim *claims = room(max);
  CHECK(stanchion_queue_claim(NAMED(name), &options, claims, max, &count, &error));
  return keep_claims(self, request, claims, count);
}

static stanchion_text *texts(actor *self, json_t *request, const char *key, size_t *count) {
  json_t *list = json_object_get(request, key);
  *count = json_array_size(list);
  stanchion_text *found = calloc(*count + 1, sizeof *found);
  if (found == NULL) abort();
  for (size_t i = 0; i < *count; i++) found[i] = text_of(self, json_array_get(list, i));
  return found;
}

static json_t *claim_any(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  size_t queues, count = 0, max = size(self, request, "max", 1);
  stanchion_text *names = texts(self, request, "queues", &queues);
  stanchion_claim_options options = claim_options(self, request);
  stanchion_claim *claims = room(max);
  CHECK(stanchion_queues_claim(self->client, names, queues, &options, claims, max, &count, &error));
  return keep_claims(self, request, claims, count);
}

static stanchion_verdict *verdicts(actor *self, json_t *request, size_t *count) {
  json_t *list = json_object_get(request, "verdicts");
  *count = json_array_size(list);
  stanchion_verdict *found = calloc(*count + 1, sizeof *found);
  if (found == NULL) abort();
  for (size_t i = 0; i < *count; i++) {
    json_t *told = json_array_get(list, i);
    const char *kind = label(told, "verdict", "ack");
    stanchion_verdict_init(&found[i], sizeof found[i]);
    found[i].claim = claim_of(self, told);
    found[i].delay_ms = whole(self, told, "delay_ms", NOT_GIVEN);
    found[i].reason = maybe_text(self, told, "reason");
    found[i].kind = strcmp(kind, "ack") == 0    ? STANCHION_ACK
                    : strcmp(kind, "nack") == 0 ? STANCHION_NACK
                    : strcmp(kind, "bury") == 0 ? STANCHION_BURY
                                                : STANCHION_PUT_BACK;
  }
  return found;
}

static json_t *settle(actor *self, json_t *request) {
  size_t count;
  stanchion_answers answers;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_verdict *given = verdicts(self, request, &count);
  CHECK(stanchion_queue_settle(NAMED(name), given, count, &answers, &error));
  return shown_answers(answers, 0);
}

static json_t *settle_and_claim(actor *self, json_t *request) {
  size_t count, claimed = 0, max = size(self, request, "max", 1);
  stanchion_answers answers;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_verdict *given = verdicts(self, request, &count);
  stanchion_claim_options options = claim_options(self, request);
  stanchion_claim *claims = room(max);
  CHECK(stanchion_queue_settle_and_claim(NAMED(name), given, count, &answers, &options, claims, max, &claimed, &error));
  return json_pack("{s:o, s:o}", "settled", shown_answers(answers, 0), "claims",
                   keep_claims(self, request, claims, claimed));
}

static json_t *pop(actor *self, json_t *request) {
  stanchion_tasks tasks = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_pop(NAMED(name), size(self, request, "n", 1), &tasks, &error));
  return shown_tasks(self, tasks);
}

static json_t *peek(actor *self, json_t *request) {
  stanchion_tasks tasks = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_peek(NAMED(name), size(self, request, "n", 1), &tasks, &error));
  return shown_tasks(self, tasks);
}

static json_t *get(actor *self, json_t *request) {
  stanchion_tasks tasks = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int32_t status = CHECK(stanchion_queue_get(NAMED(name), id.data, id.len, &tasks, &error));
  if (status == STANCHION_ABSENT) return json_null();
  json_t *list = shown_tasks(self, tasks);
  json_t *one = json_incref(json_array_get(list, 0));
  json_decref(list);
  return one;
}

static json_t *list(actor *self, json_t *request) {
  static const char *const STATES[] = {"scheduled", "ready", "claimed", "dead"};
  const char *state = label(request, "state", "");
  int32_t number = 0;
  stanchion_tasks tasks = 0;
  uint64_t next = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  for (int32_t i = 0; i < 4; i++)
    if (strcmp(STATES[i], state) == 0) number = i + 1;
  CHECK(stanchion_queue_list(NAMED(name), number, size(self, request, "page", 0), size(self, request, "max", 100),
                             &tasks, &next, &error));
  return json_pack("{s:o, s:o}", "items", shown_tasks(self, tasks), "next", maybe_number((int64_t)next, 0));
}

static json_t *remove_task(actor *self, json_t *request) {
  int64_t other = 0, version = whole(self, request, "version", NOT_GIVEN);
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int32_t status = CHECK(stanchion_queue_remove(NAMED(name), id.data, id.len, version, &other, &error));
  return json_pack("{s:b, s:o}", "removed", status == STANCHION_OK, "other_version", maybe_number(other, 0));
}

static json_t *reschedule(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int64_t due = whole(self, request, "due_ms", NOT_GIVEN);
  int32_t status = CHECK(stanchion_queue_reschedule(NAMED(name), id.data, id.len, due, NULL, &error));
  return json_pack("{s:s}", "outcome",
                   status == STANCHION_OK        ? "moved"
                   : status == STANCHION_ABSENT  ? "absent"
                   : status == STANCHION_CLAIMED ? "claimed"
                                                 : "dead");
}

static json_t *stats(actor *self, json_t *request) {
  stanchion_stats found = {.struct_size = sizeof found};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_stats(NAMED(name), &found, &error));
  return shown_stats(&found);
}

static json_t *pause_queue(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_pause(NAMED(name), &error));
  return json_null();
}

static json_t *resume(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_resume(NAMED(name), &error));
  return json_null();
}

static json_t *kick(actor *self, json_t *request) {
  size_t count;
  uint64_t moved = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  if (json_object_get(request, "count") != NULL) {
    CHECK(stanchion_queue_kick(NAMED(name), size(self, request, "count", 0), &moved, &error));
  } else {
    stanchion_text *ids = texts(self, request, "ids", &count);
    CHECK(stanchion_queue_kick_ids(NAMED(name), ids, count, &moved, &error));
  }
  return json_integer((json_int_t)moved);
}

static json_t *purge(actor *self, json_t *request) {
  uint64_t dropped = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_purge(NAMED(name), &dropped, &error));
  return json_integer((json_int_t)dropped);
}

static json_t *configure(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_queue_settings given = settings(self, request);
  CHECK(stanchion_queue_configure(NAMED(name), &given, &error));
  return json_null();
}

static json_t *look_at_claim(actor *self, json_t *request) {
  stanchion_claim claim = claim_of(self, request);
  json_t *shown = shown_claim(self, claim);
  json_object_set_new(shown, "remaining_ms", json_integer(stanchion_claim_remaining_ms(claim)));
  json_object_set_new(shown, "valid", json_boolean(stanchion_claim_is_valid(claim)));
  json_object_set_new(shown, "loss", shown_loss(stanchion_claim_loss(claim)));
  return shown;
}

static json_t *ack(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_claim_ack(claim_of(self, request), &error));
  return json_null();
}

static json_t *nack(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t delay = whole(self, request, "delay_ms", NOT_GIVEN);
  stanchion_text reason = maybe_text(self, request, "reason");
  CHECK(stanchion_claim_nack(claim_of(self, request), delay, reason.data, reason.len, &error));
  return json_null();
}

static json_t *bury(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text reason = maybe_text(self, request, "reason");
  CHECK(stanchion_claim_bury(claim_of(self, request), reason.data, reason.len, &error));
  return json_null();
}

static json_t *put_back(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_claim_put_back(claim_of(self, request), &error));
  return json_null();
}

static json_t *extend_claim(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t lease = whole(self, request, "lease_ms", NOT_GIVEN);
  CHECK(stanchion_claim_extend(claim_of(self, request), lease, &error));
  return json_null();
}

static json_t *wait_lost_claim(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t time = whole(self, request, "time_ms", 0);
  return json_boolean(CHECK(stanchion_claim_wait_lost(claim_of(self, request), time, &error)) == STANCHION_LOST);
}

/* Workers. */

static void carry_out(actor *self, stanchion_worker worker, stanchion_claim claim, const json_t *plans, json_t *seen) {
  stanchion_error *error = NULL;
  stanchion_claim_info info = {.struct_size = sizeof info};
  CHECK(stanchion_claim_get(claim, &info, &error));
  json_t *id = shown_text(info.id);
  json_t *plan = json_object_get(plans, json_string_value(id));
  size_t acts = json_array_size(plan), at = (size_t)info.attempt < acts ? (size_t)info.attempt : acts;
  const char *act = acts == 0 ? "ok" : json_string_value(json_array_get(plan, at - 1));
  json_array_append_new(seen, json_pack("{s:o, s:I}", "id", id, "attempt", (json_int_t)info.attempt));
  if (strcmp(act, "ack") == 0) CHECK(stanchion_claim_ack(claim, &error));
  if (strcmp(act, "bury") == 0) CHECK(stanchion_claim_bury(claim, NULL, 0, &error));
  if (strcmp(act, "fail") == 0) {
    CHECK(stanchion_worker_fail(worker, claim, "as planned", 10, &error));
  } else {
    CHECK(stanchion_worker_complete(worker, claim, &error));
  }
}

static json_t *shown_events(actor *self, stanchion_worker worker) {
  json_t *shown = json_array();
  stanchion_worker_event event = {.struct_size = sizeof event};
  stanchion_error *error = NULL;
  while (CHECK(stanchion_worker_get_event(worker, &event, &error)) == STANCHION_OK) {
    const char *what = event.kind == STANCHION_EVENT_DEAD ? "dead" : event.kind == STANCHION_EVENT_LOST ? "lost" : NULL;
    if (what != NULL) json_array_append_new(shown, json_pack("{s:s, s:s}", "what", what, "id", event.id));
  }
  return shown;
}

/* A worker that does what the request says for each delivery of a task, and then the last again. */
static json_t *work(actor *self, json_t *request) {
  stanchion_worker worker;
  stanchion_claim claim;
  stanchion_worker_options options;
  stanchion_worker_report report = {.struct_size = sizeof report};
  stanchion_error *error = NULL;
  json_t *seen = json_array();
  stanchion_text name = text(self, request, "queue");
  int32_t status;
  stanchion_worker_options_init(&options, sizeof options);
  options.concurrency = whole(self, request, "concurrency", NOT_GIVEN);
  options.lease_ms = whole(self, request, "lease_ms", NOT_GIVEN);
  options.max_run_ms = whole(self, request, "max_run_ms", NOT_GIVEN);
  options.until_empty = 1;
  CHECK(stanchion_worker_open(NAMED(name), &options, &worker, &error));
  while ((status = CHECK(stanchion_worker_poll(worker, 10000, &claim, &error))) != STANCHION_OVER)
    if (status == STANCHION_OK) carry_out(self, worker, claim, json_object_get(request, "handler"), seen);
  CHECK(stanchion_worker_get_report(worker, &report, &error));
  json_t *shown = json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "completed", (json_int_t)report.completed, "failed",
                            (json_int_t)report.failed, "dead", (json_int_t)report.dead, "lost",
                            (json_int_t)report.lost, "seen", seen, "events", shown_events(self, worker));
  stanchion_worker_free(worker);
  return shown;
}

const operation OPERATIONS[] = {
    {"time.pass", pass_time},
    {"client.open", client_open},
    {"client.close", client_close},
    {"client.resume_lease", resume_lease},
    {"client.release_all", release_all},
    {"client.locks", locks},
    {"client.queue_names", queue_names},
    {"lock.acquire", acquire},
    {"lock.try_acquire", try_acquire},
    {"lock.hold", hold},
    {"lock.holder", holder},
    {"lock.is_locked", is_locked},
    {"lock.break_lease", break_lease},
    {"lease.look", look_at_lease},
    {"lease.check", check_lease},
    {"lease.wait_lost", wait_lost_lease},
    {"lease.extend", extend_lease},
    {"lease.release", release},
    {"lease.into_handle", into_handle},
    {"queue.enqueue", enqueue},
    {"queue.enqueue_many", enqueue_many},
    {"queue.claim", claim},
    {"queues.claim", claim_any},
    {"queue.settle", settle},
    {"queue.settle_and_claim", settle_and_claim},
    {"queue.pop", pop},
    {"queue.peek", peek},
    {"queue.get", get},
    {"queue.list", list},
    {"queue.remove", remove_task},
    {"queue.reschedule", reschedule},
    {"queue.stats", stats},
    {"queue.pause", pause_queue},
    {"queue.resume", resume},
    {"queue.kick", kick},
    {"queue.purge", purge},
    {"queue.configure", configure},
    {"claim.look", look_at_claim},
    {"claim.ack", ack},
    {"claim.nack", nack},
    {"claim.bury", bury},
    {"claim.put_back", put_back},
    {"claim.extend", extend_claim},
    {"claim.wait_lost", wait_lost_claim},
    {"worker.run", work},
};
const size_t OPERATION_COUNT = sizeof OPERATIONS / sizeof *OPERATIONS;
