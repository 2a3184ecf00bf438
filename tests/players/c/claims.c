/* Claims and workers. */

#include "operations.h"

#include <string.h>

json_t *look_at_claim(actor *self, json_t *request) {
  stanchion_claim claim = claim_of(self, request);
  json_t *shown = shown_claim(self, claim);
  json_object_set_new(shown, "remaining_ms", json_integer(stanchion_claim_remaining_ms(claim)));
  json_object_set_new(shown, "valid", json_boolean(stanchion_claim_is_valid(claim)));
  json_object_set_new(shown, "loss", shown_loss(stanchion_claim_loss(claim)));
  return shown;
}

json_t *ack(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text result = given_bytes(request, "result");
  if (result.data == NULL && json_object_get(request, "result") != NULL) {
    refuse(self, "it is not made of bytes");
  } else if (result.data == NULL) {
    CHECK(stanchion_claim_ack(claim_of(self, request), &error));
  } else {
    CHECK(stanchion_claim_ack_with(claim_of(self, request), result.data, result.len, &error));
  }
  return json_null();
}

json_t *progress(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text done = given_bytes(request, "progress");
  if (done.data == NULL) refuse(self, "it is not made of bytes");
  CHECK(stanchion_claim_progress(claim_of(self, request), done.data, done.len, &error));
  return json_null();
}

json_t *nack(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t delay = whole(self, request, "delay_ms", NOT_GIVEN);
  stanchion_text reason = maybe_text(self, request, "reason");
  CHECK(stanchion_claim_nack(claim_of(self, request), delay, reason.data, reason.len, &error));
  return json_null();
}

json_t *bury(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text reason = maybe_text(self, request, "reason");
  CHECK(stanchion_claim_bury(claim_of(self, request), reason.data, reason.len, &error));
  return json_null();
}

json_t *put_back(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t delay = whole(self, request, "delay_ms", NOT_GIVEN);
  CHECK(stanchion_claim_put_back(claim_of(self, request), delay, &error));
  return json_null();
}

json_t *throttle(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t time = whole(self, request, "time_ms", NOT_GIVEN);
  CHECK(stanchion_claim_throttle(claim_of(self, request), time, &error));
  return json_null();
}

json_t *extend_claim(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t lease = whole(self, request, "lease_ms", NOT_GIVEN);
  CHECK(stanchion_claim_extend(claim_of(self, request), lease, &error));
  return json_null();
}

json_t *wait_lost_claim(actor *self, json_t *request) {
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
  int is_first = 1;
  for (size_t i = 0; i < json_array_size(seen); i++)
    if (json_equal(json_object_get(json_array_get(seen, i), "id"), id)) is_first = 0;
  json_array_append_new(seen, json_pack("{s:o, s:I}", "id", id, "attempt", (json_int_t)info.attempt));
  /* It does not count as an attempt. */
  if (strcmp(act, "throttle") == 0 && is_first) CHECK(stanchion_claim_throttle(claim, 0, &error));
  if (strcmp(act, "ack") == 0) CHECK(stanchion_claim_ack(claim, &error));
  if (strcmp(act, "outlive") == 0) CHECK(stanchion_claim_wait_lost(claim, 10000, &error));
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
    const char *what = event.kind == STANCHION_EVENT_DEAD ? "dead" : event.kind == STANCHION_EVENT_LOST ? "lost"
                       : event.kind == STANCHION_EVENT_SLOTS_MISSED ? "slots_missed" : NULL;
    if (what != NULL) json_array_append_new(shown, json_pack("{s:s, s:s}", "what", what, "id", event.id));
  }
  return shown;
}

/* A worker that does what the request says for each delivery of a task, and then the last again. */
json_t *work(actor *self, json_t *request) {
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
  options.timeout_ms = whole(self, request, "timeout_ms", NOT_GIVEN);
  options.grace_ms = whole(self, request, "grace_ms", NOT_GIVEN);
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
