/* Queues. */

#include "operations.h"

#include <stdlib.h>
#include <string.h>

json_t *enqueue(actor *self, json_t *request) {
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

json_t *enqueue_many(actor *self, json_t *request) {
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

json_t *claim(actor *self, json_t *request) {
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

json_t *claim_any(actor *self, json_t *request) {
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
                    : strcmp(kind, "throttle") == 0 ? STANCHION_VERDICT_THROTTLE
                                                : STANCHION_PUT_BACK;
    if (found[i].kind == STANCHION_VERDICT_THROTTLE) found[i].delay_ms = whole(self, told, "time_ms", NOT_GIVEN);
    stanchion_text result = given_bytes(told, "result");
    found[i].result = result.data;
    found[i].result_len = result.len;
  }
  return found;
}

json_t *settle(actor *self, json_t *request) {
  size_t count;
  stanchion_answers answers;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_verdict *given = verdicts(self, request, &count);
  CHECK(stanchion_queue_settle(NAMED(name), given, count, &answers, &error));
  return shown_answers(answers, 0);
}

json_t *settle_and_claim(actor *self, json_t *request) {
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

json_t *pop(actor *self, json_t *request) {
  stanchion_tasks tasks = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_pop(NAMED(name), size(self, request, "n", 1), &tasks, &error));
  return shown_tasks(self, tasks);
}

json_t *peek(actor *self, json_t *request) {
  stanchion_tasks tasks = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_peek(NAMED(name), size(self, request, "n", 1), &tasks, &error));
  return shown_tasks(self, tasks);
}

json_t *get(actor *self, json_t *request) {
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

static stanchion_list_options list_options(actor *self, json_t *request) {
  static const char *const STATES[] = {"scheduled", "ready", "claimed", "dead", "held"};
  const char *state = label(request, "state", "");
  stanchion_list_options options;
  stanchion_list_options_init(&options, sizeof options);
  for (int32_t i = 0; i < 5; i++)
    if (strcmp(STATES[i], state) == 0) options.state = i + 1;
  options.max = whole(self, request, "max", NOT_GIVEN);
  options.page = maybe_text(self, request, "page");
  options.prefix = maybe_text(self, request, "prefix");
  int32_t payloads = flag(self, request, "payloads");
  if (payloads != NOT_GIVEN) options.without_payloads = !payloads;
  return options;
}

json_t *list(actor *self, json_t *request) {
  stanchion_tasks tasks = 0;
  stanchion_text next;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_list_options options = list_options(self, request);
  CHECK(stanchion_queue_list(NAMED(name), &options, &tasks, &error));
  int32_t status = CHECK(stanchion_tasks_next(tasks, &next, &error));
  /* The text lives as long as the list, which is freed when it has been shown. */
  json_t *page = status == STANCHION_OK ? shown_text(next) : json_null();
  return json_pack("{s:o, s:o}", "items", shown_tasks(self, tasks), "next", page);
}

json_t *remove_task(actor *self, json_t *request) {
  int64_t other = 0, version = whole(self, request, "version", NOT_GIVEN);
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int32_t status = CHECK(stanchion_queue_remove(NAMED(name), id.data, id.len, version, &other, &error));
  return json_pack("{s:b, s:o}", "removed", status == STANCHION_OK, "other_version", maybe_number(other, 0));
}

json_t *reschedule(actor *self, json_t *request) {
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

json_t *cancel(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int32_t status = CHECK(stanchion_queue_cancel(NAMED(name), id.data, id.len, &error));
  return json_pack("{s:s}", "outcome",
                   status == STANCHION_OK        ? "removed"
                   : status == STANCHION_RUNNING ? "running"
                                                 : "absent");
}

json_t *result(actor *self, json_t *request) {
  stanchion_result found = 0;
  stanchion_result_info info = {.struct_size = sizeof info};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int64_t version = whole(self, request, "version", NOT_GIVEN), wait = whole(self, request, "wait_ms", NOT_GIVEN);
  int32_t status = CHECK(stanchion_queue_result(NAMED(name), id.data, id.len, version, wait, &found, &error));
  if (found != 0) CHECK(stanchion_result_get(found, &info, &error));
  json_t *shown = json_pack("{s:s, s:o, s:o, s:o}", "outcome",
                            status == STANCHION_OK        ? "done"
                            : status == STANCHION_PENDING ? "pending"
                            : status == STANCHION_DEAD    ? "dead"
                                                          : "gone",
                            "result", info.result == NULL ? json_null() : shown_bytes(info.result, info.result_len),
                            "version", maybe_number(info.version, 0), "reason", maybe_shown(info.reason));
  stanchion_result_free(found);
  return shown;
}

json_t *stats(actor *self, json_t *request) {
  stanchion_stats found = {.struct_size = sizeof found};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_stats(NAMED(name), &found, &error));
  return shown_stats(&found);
}

json_t *consumers(actor *self, json_t *request) {
  stanchion_consumers found;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  json_t *shown = json_array();
  CHECK(stanchion_queue_consumers(NAMED(name), &found, &error));
  for (size_t i = 0; i < stanchion_consumers_len(found); i++) {
    stanchion_consumer one = {.struct_size = sizeof one};
    CHECK(stanchion_consumers_at(found, i, &one, &error));
    json_array_append_new(shown, shown_consumer(&one));
  }
  stanchion_consumers_free(found);
  return shown;
}

json_t *pause_queue(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_pause(NAMED(name), &error));
  return json_null();
}

json_t *resume(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_resume(NAMED(name), &error));
  return json_null();
}

static int64_t *receipts(actor *self, json_t *list, size_t *count) {
  *count = json_array_size(list);
  int64_t *found = calloc(*count + 1, sizeof *found);
  if (found == NULL) abort();
  for (size_t i = 0; i < *count; i++) {
    /* The player reads all numbers as doubles. */
    if (!json_is_real(json_array_get(list, i))) refuse(self, "it is no int64_t");
    found[i] = (int64_t)json_real_value(json_array_get(list, i));
  }
  return found;
}

static stanchion_dead_tasks dead_tasks(actor *self, json_t *request) {
  stanchion_dead_tasks dead;
  stanchion_dead_tasks_init(&dead, sizeof dead);
  if (json_object_get(request, "ids") != NULL) dead.ids = texts(self, request, "ids", &dead.id_count);
  json_t *given = json_object_get(request, "receipts");
  if (given != NULL) dead.receipts = receipts(self, given, &dead.receipt_count);
  dead.count = size(self, request, "count", 0);
  dead.reason = maybe_text(self, request, "reason");
  dead.prefix = maybe_text(self, request, "prefix");
  dead.older_than_ms = whole(self, request, "older_than_ms", 0);
  return dead;
}

json_t *kick(actor *self, json_t *request) {
  uint64_t moved = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_dead_tasks dead = dead_tasks(self, request);
  CHECK(stanchion_queue_kick(NAMED(name), &dead, &moved, &error));
  return json_integer((json_int_t)moved);
}

json_t *remove_dead(actor *self, json_t *request) {
  uint64_t removed = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_dead_tasks dead = dead_tasks(self, request);
  CHECK(stanchion_queue_remove_dead(NAMED(name), &dead, &removed, &error));
  return json_integer((json_int_t)removed);
}

json_t *purge(actor *self, json_t *request) {
  uint64_t dropped = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  CHECK(stanchion_queue_purge(NAMED(name), &dropped, &error));
  return json_integer((json_int_t)dropped);
}

json_t *configure(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_queue_config given = settings(self, request);
  CHECK(stanchion_queue_configure(NAMED(name), &given, &error));
  return json_null();
}
