/* What the library answers, as JSON. */

#include "player.h"

#include <stdlib.h>
#include <string.h>

json_t *shown_text(stanchion_text text) { return json_stringn(text.data == NULL ? "" : text.data, text.len); }

json_t *shown_bytes(const void *bytes, size_t length) {
  static const char DIGITS[] = "0123456789abcdef";
  const unsigned char *from = bytes;
  char *hex = malloc(2 * length + 1);
  if (hex == NULL) abort();
  for (size_t i = 0; i < length; i++) {
    hex[2 * i] = DIGITS[from[i] >> 4];
    hex[2 * i + 1] = DIGITS[from[i] & 15];
  }
  json_t *shown = json_stringn(hex, 2 * length);
  free(hex);
  return shown;
}

json_t *maybe_number(int64_t number, int64_t none) { return number == none ? json_null() : json_integer(number); }

json_t *maybe_shown(stanchion_text text) { return text.data == NULL ? json_null() : shown_text(text); }

static json_t *shown_headers(const stanchion_header *headers, size_t count) {
  json_t *shown = json_object();
  for (size_t i = 0; i < count; i++) {
    json_t *name = shown_text(headers[i].name);
    json_object_set_new(shown, json_string_value(name), shown_text(headers[i].value));
    json_decref(name);
  }
  return shown;
}

static const char *word(const char *const *words, size_t count, int32_t number) {
  return number > 0 && (size_t)number < count ? words[number] : "other";
}

#define WORD(words, number) word(words, sizeof(words) / sizeof *(words), number)

json_t *shown_loss(int32_t loss) {
  static const char *const WORDS[] = {NULL,          "expired", "max_hold", "taken",   "broken",  "forgotten",
                                      "overwritten", "removed", "refused",  "stopped", "other", "timeout", "cancelled"};
  return loss == STANCHION_LOSS_NONE ? json_null() : json_string(WORD(WORDS, loss));
}

json_t *shown_lease(actor *self, stanchion_lease lease) {
  stanchion_lease_info info = {.struct_size = sizeof info};
  stanchion_error *error = NULL;
  check(self, stanchion_lease_get(lease, &info, &error), &error);
  return json_pack("{s:o, s:I, s:o}", "name", shown_text(info.name), "fence", (json_int_t)info.fence, "token",
                   shown_text(info.token));
}

json_t *shown_holder(const stanchion_holder *holder) {
  static const char *const WORDS[] = {NULL, "lease", "offer", "cooldown", "foreign"};
  return json_pack("{s:s, s:s, s:s, s:i, s:I, s:o, s:o, s:I, s:i}", "held_as", WORD(WORDS, holder->held_as), "label",
                   holder->label, "host", holder->host, "pid", holder->pid, "fence", (json_int_t)holder->fence,
                   "since_ms", maybe_number(holder->since_ms, 0), "remaining_ms",
                   maybe_number(holder->remaining_ms, NOT_GIVEN), "waiters", (json_int_t)holder->waiters,
                   "weight", (int)holder->weight);
}

json_t *shown_waiter(const stanchion_waiter *waiter) {
  return json_pack("{s:s, s:s, s:i, s:o, s:o, s:i}", "label", waiter->label, "host", waiter->host, "pid", waiter->pid,
                   "since_ms", maybe_number(waiter->since_ms, 0), "waiting_ms",
                   maybe_number(waiter->waiting_ms, NOT_GIVEN), "weight", (int)waiter->weight);
}

json_t *shown_claim(actor *self, stanchion_claim claim) {
  stanchion_claim_info info = {.struct_size = sizeof info};
  stanchion_error *error = NULL;
  check(self, stanchion_claim_get(claim, &info, &error), &error);
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:i, s:I}", "id", shown_text(info.id), "flow",
                   maybe_shown(info.flow), "key", maybe_shown(info.key), "kind",
                   maybe_shown(info.kind), "queue",
                   shown_text(info.queue), "payload", shown_bytes(info.payload, info.payload_len), "headers",
                   shown_headers(info.headers, info.header_count), "attempt", (json_int_t)info.attempt, "max_attempts",
                   (json_int_t)info.max_attempts, "receipt", (json_int_t)info.receipt, "version",
                   (json_int_t)info.version, "priority", info.priority, "due_ms", (json_int_t)info.due_ms);
}

json_t *shown_enqueued(const stanchion_enqueued *done) {
  static const char *const WORDS[] = {NULL, "added", "kept", "replaced", "successor", "throttled", "skipped"};
  return json_pack("{s:s%, s:s, s:I, s:o}", "id", done->id, (size_t)done->id_len, "outcome",
                   WORD(WORDS, done->outcome), "version", (json_int_t)done->version, "due_ms",
                   maybe_number(done->due_ms, NOT_GIVEN));
}

static json_t *shown_claimed_by(const stanchion_task_info *info) {
  if (info->claimed_by_pid < 0) return json_null();
  return json_pack("{s:o, s:o, s:i, s:o}", "label", shown_text(info->claimed_by_label), "host",
                   shown_text(info->claimed_by_host), "pid", info->claimed_by_pid, "since_ms",
                   maybe_number(info->claimed_at_ms, NOT_GIVEN));
}

static json_t *shown_failures(actor *self, stanchion_tasks tasks, size_t index, size_t count) {
  json_t *shown = json_array();
  for (size_t i = 0; i < count; i++) {
    stanchion_task_failure one = {.struct_size = sizeof one};
    stanchion_error *error = NULL;
    check(self, stanchion_tasks_failure_at(tasks, index, i, &one, &error), &error);
    json_array_append_new(shown, json_pack("{s:I, s:o}", "at_ms", (json_int_t)one.at_ms, "reason", shown_text(one.reason)));
  }
  return shown;
}

/* What it says about its runs, and what became of them. */
static json_t *shown_runs(const stanchion_task_info *info, json_t *failures) {
  json_t *backoff = info->backoff.data == NULL ? json_null() : json_loadb(info->backoff.data, info->backoff.len, 0, NULL);
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "key", maybe_shown(info->key), "kind", maybe_shown(info->kind), "timeout_ms",
                   maybe_number(info->timeout_ms, NOT_GIVEN), "backoff", backoff, "failures", failures, "progress",
                   shown_bytes(info->progress, info->progress_len), "cancelled", info->cancelled);
}

static json_t *shown_task(const stanchion_task_info *info) {
  static const char *const WORDS[] = {NULL, "scheduled", "ready", "claimed", "dead", "held"};
  return json_pack("{s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:i, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o}", "id",
                   shown_text(info->id), "state", WORD(WORDS, info->state), "payload",
                   shown_bytes(info->payload, info->payload_len), "headers",
                   shown_headers(info->headers, info->header_count), "size", (json_int_t)info->size, "version",
                   (json_int_t)info->version, "due_ms", (json_int_t)info->due_ms, "priority", info->priority, "attempts", (json_int_t)info->attempts,
                   "max_attempts", (json_int_t)info->max_attempts, "expires_ms",
                   maybe_number(info->expires_ms, NOT_GIVEN), "receipt", (json_int_t)info->receipt, "reason",
                   shown_text(info->reason), "claimed_by", shown_claimed_by(info), "died_ms", maybe_number(info->died_ms, NOT_GIVEN), "successor_due_ms",
                   maybe_number(info->successor_due_ms, NOT_GIVEN));
}

json_t *shown_tasks(actor *self, stanchion_tasks tasks) {
  json_t *shown = json_array();
  for (size_t i = 0; i < stanchion_tasks_len(tasks); i++) {
    stanchion_task_info info = {.struct_size = sizeof info};
    stanchion_error *error = NULL;
    check(self, stanchion_tasks_at(tasks, i, &info, &error), &error);
    json_t *one = shown_task(&info), *runs = shown_runs(&info, shown_failures(self, tasks, i, info.failure_count));
    json_object_update(one, runs);
    json_decref(runs);
    json_array_append_new(shown, one);
  }
  stanchion_tasks_free(tasks);
  return shown;
}

json_t *shown_consumer(const stanchion_consumer *one) {
  return json_pack("{s:s, s:s, s:i, s:I, s:I}", "label", one->label, "host", one->host, "pid", one->pid, "waiters",
                   (json_int_t)one->waiters, "claims", (json_int_t)one->claims);
}

json_t *shown_rate(stanchion_rate rate) {
  if (rate.count == NOT_GIVEN) return json_null();
  return json_pack("{s:I, s:I, s:I}", "count", (json_int_t)rate.count, "per_ms", (json_int_t)rate.per_ms, "burst",
                   (json_int_t)rate.burst);
}

static json_t *shown_limits(const stanchion_stats *stats) {
  static const char *const WORDS[] = {NULL, "open", "paused", "max_running", "rate", "throttled"};
  return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:s, s:o}", "max_running",
                   maybe_number(stats->max_running, NOT_GIVEN), "rate", shown_rate(stats->rate), "key_concurrency",
                   maybe_number(stats->key_concurrency, NOT_GIVEN), "key_rate", shown_rate(stats->key_rate), "held",
                   (json_int_t)stats->held, "keys_waiting", (json_int_t)stats->keys_waiting, "next_key_ms",
                   maybe_number(stats->next_key_ms, NOT_GIVEN), "gate", WORD(WORDS, stats->gate), "opens_in_ms",
                   maybe_number(stats->opens_in_ms, NOT_GIVEN));
}

json_t *shown_stats(const stanchion_stats *stats) {
  json_t *limits = shown_limits(stats);
  json_t *shown = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:b, s:I, s:I, s:I}", "scheduled",
                   (json_int_t)stats->scheduled, "ready", (json_int_t)stats->ready, "claimed",
                   (json_int_t)stats->claimed, "dead", (json_int_t)stats->dead, "successors",
                   (json_int_t)stats->successors, "paused", stats->paused, "waiters", (json_int_t)stats->waiters, "next_due_ms",
                   maybe_number(stats->next_due_ms, NOT_GIVEN), "enqueued", (json_int_t)stats->enqueued, "acked",
                   (json_int_t)stats->acked, "retried", (json_int_t)stats->retried, "died", (json_int_t)stats->died,
                   "max_len", maybe_number(stats->max_len, NOT_GIVEN), "dead_max", (json_int_t)stats->dead_max,
                   "dead_age_ms", (json_int_t)stats->dead_age_ms, "dead_bytes", (json_int_t)stats->dead_bytes,
                   "intake", stats->intake, "schedules", (json_int_t)stats->schedules, "schedules_late_ms",
                   (json_int_t)stats->schedules_late_ms, "events", (json_int_t)stats->events);
  json_object_set_new(shown, "flows", json_integer(stats->flows));
  json_object_update(shown, limits);
  json_decref(limits);
  return shown;
}
