/* Schedules. */

#include "operations.h"

#include <stdlib.h>
#include <string.h>

/* What becomes of missed slots: "last", "skip" or a number. */
static void set_missed(actor *self, const json_t *request, stanchion_schedule *schedule) {
  const json_t *told = json_object_get(request, "missed");
  const char *word = json_string_value(told);
  if (json_is_number(told)) {
    schedule->missed = STANCHION_MISSED_ALL;
    schedule->missed_max = whole(self, request, "missed", NOT_GIVEN);
  } else if (word != NULL && strcmp(word, "last") == 0) {
    schedule->missed = STANCHION_MISSED_LAST;
  } else if (word != NULL && strcmp(word, "skip") == 0) {
    schedule->missed = STANCHION_MISSED_SKIP;
  } else if (told != NULL) {
    refuse(self, "it is no stanchion_missed");
  }
}

static void set_overlap(actor *self, const json_t *request, stanchion_schedule *schedule) {
  const json_t *told = json_object_get(request, "overlap");
  const char *word = json_string_value(told);
  if (word != NULL && strcmp(word, "queue") == 0) {
    schedule->overlap = STANCHION_OVERLAP_QUEUE;
  } else if (word != NULL && strcmp(word, "skip") == 0) {
    schedule->overlap = STANCHION_OVERLAP_SKIP;
  } else if (told != NULL) {
    refuse(self, "it is no stanchion_overlap");
  }
}

static stanchion_schedule schedule_of(actor *self, const json_t *request) {
  stanchion_schedule schedule;
  stanchion_schedule_init(&schedule, sizeof schedule);
  schedule.id = maybe_text(self, request, "id");
  schedule.when = maybe_text(self, request, "when");
  schedule.tz = maybe_text(self, request, "tz");
  set_missed(self, request, &schedule);
  set_overlap(self, request, &schedule);
  schedule.jitter_ms = whole(self, request, "jitter_ms", NOT_GIVEN);
  schedule.starts_ms = whole(self, request, "starts_ms", NOT_GIVEN);
  schedule.ends_ms = whole(self, request, "ends_ms", NOT_GIVEN);
  schedule.paused = flag(self, request, "paused");
  stanchion_text bytes = payload(request);
  schedule.payload = bytes.data;
  schedule.payload_len = bytes.len;
  schedule.headers = headers(self, request, &schedule.header_count);
  schedule.priority = (int32_t)whole(self, request, "priority", NOT_GIVEN);
  schedule.max_attempts = whole(self, request, "max_attempts", NOT_GIVEN);
  schedule.expires_ms = whole(self, request, "expires_ms", NOT_GIVEN);
  schedule.key = maybe_text(self, request, "key");
  return schedule;
}

json_t *put_schedule(actor *self, json_t *request) {
  static const char *const WORDS[] = {"other", "added", "changed", "kept"};
  int32_t outcome = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  stanchion_schedule given = schedule_of(self, request);
  CHECK(stanchion_queue_schedule(NAMED(name), &given, &outcome, &error));
  return json_pack("{s:s}", "outcome", WORDS[outcome > 0 && outcome < 4 ? outcome : 0]);
}

json_t *sync_schedules(actor *self, json_t *request) {
  json_t *given = json_object_get(request, "schedules");
  size_t count = json_array_size(given);
  stanchion_schedule *list = calloc(count + 1, sizeof *list);
  stanchion_synced done = {.struct_size = sizeof done};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), owner = text(self, request, "owner");
  int64_t generation = whole(self, request, "generation", NOT_GIVEN);
  if (list == NULL) abort();
  for (size_t i = 0; i < count; i++) list[i] = schedule_of(self, json_array_get(given, i));
  CHECK(stanchion_queue_sync_schedules(NAMED(name), owner.data, owner.len, generation, list, count, &done, &error));
  free(list);
  return json_pack("{s:I, s:I, s:I, s:I, s:o}", "added", (json_int_t)done.added, "changed", (json_int_t)done.changed,
                   "kept", (json_int_t)done.kept, "removed", (json_int_t)done.removed, "newer",
                   maybe_number(done.newer, NOT_GIVEN));
}

static json_t *shown_missed(const stanchion_schedule_info *info) {
  switch (info->missed) {
  case STANCHION_MISSED_LAST: return json_string("last");
  case STANCHION_MISSED_SKIP: return json_string("skip");
  case STANCHION_MISSED_ALL: return json_integer((json_int_t)info->missed_max);
  default: return json_null();
  }
}

/* Empty where there is none. */
static json_t *shown_maybe(stanchion_text text) { return text.len == 0 ? json_null() : shown_text(text); }

static json_t *shown_schedule(const stanchion_schedule_info *info) {
  const char *overlap = info->overlap == STANCHION_OVERLAP_SKIP    ? "skip"
                        : info->overlap == STANCHION_OVERLAP_QUEUE ? "queue"
                                                                   : "other";
  json_t *shown = json_pack("{s:o, s:o, s:o, s:o, s:s, s:I, s:o, s:o, s:b, s:o}", "id", shown_text(info->id), "when",
                            shown_text(info->when), "tz", shown_text(info->tz), "missed", shown_missed(info), "overlap",
                            overlap, "jitter_ms", (json_int_t)info->jitter_ms, "starts_ms",
                            maybe_number(info->starts_ms, NOT_GIVEN), "ends_ms", maybe_number(info->ends_ms, NOT_GIVEN),
                            "paused", info->paused, "next_ms", maybe_number(info->next_ms, NOT_GIVEN));
  json_t *more = json_pack("{s:I, s:o, s:I, s:I, s:I, s:o, s:i, s:I, s:o, s:I, s:o}", "late_ms", (json_int_t)info->late_ms,
                           "owner", shown_maybe(info->owner), "fired", (json_int_t)info->fired, "skipped",
                           (json_int_t)info->skipped, "missed_slots", (json_int_t)info->missed_slots, "last_task",
                           shown_maybe(info->last_task), "priority", (int)info->priority, "max_attempts",
                           (json_int_t)info->max_attempts, "expires_ms", maybe_number(info->expires_ms, NOT_GIVEN),
                           "size", (json_int_t)info->size, "key", maybe_shown(info->key));
  json_object_update(shown, more);
  json_decref(more);
  return shown;
}

static json_t *shown_schedules(actor *self, stanchion_schedules list) {
  json_t *shown = json_array();
  for (size_t i = 0; i < stanchion_schedules_len(list); i++) {
    stanchion_schedule_info info = {.struct_size = sizeof info};
    stanchion_error *error = NULL;
    CHECK(stanchion_schedules_at(list, i, &info, &error));
    json_array_append_new(shown, shown_schedule(&info));
  }
  stanchion_schedules_free(list);
  return shown;
}

json_t *get_schedule(actor *self, json_t *request) {
  stanchion_schedules found = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int32_t status = CHECK(stanchion_queue_get_schedule(NAMED(name), id.data, id.len, &found, &error));
  if (status == STANCHION_ABSENT) return json_null();
  json_t *list = shown_schedules(self, found), *one = json_incref(json_array_get(list, 0));
  json_decref(list);
  return one;
}

json_t *list_schedules(actor *self, json_t *request) {
  stanchion_schedules found = 0;
  stanchion_text next;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), page = maybe_text(self, request, "page");
  size_t max = size(self, request, "max", 100);
  CHECK(stanchion_queue_list_schedules(NAMED(name), page.data, page.len, max, &found, &error));
  int32_t status = CHECK(stanchion_schedules_next(found, &next, &error));
  /* The text lives as long as the list, which is freed when it has been shown. */
  json_t *after = status == STANCHION_OK ? shown_text(next) : json_null();
  return json_pack("{s:o, s:o}", "items", shown_schedules(self, found), "next", after);
}

json_t *pause_schedule(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  return json_boolean(CHECK(stanchion_queue_pause_schedule(NAMED(name), id.data, id.len, &error)) == STANCHION_OK);
}

json_t *resume_schedule(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  return json_boolean(CHECK(stanchion_queue_resume_schedule(NAMED(name), id.data, id.len, &error)) == STANCHION_OK);
}

json_t *run_schedule(actor *self, json_t *request) {
  stanchion_ran ran = {.struct_size = sizeof ran};
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  int32_t status = CHECK(stanchion_queue_run_schedule(NAMED(name), id.data, id.len, &ran, &error));
  return status == STANCHION_OK ? json_stringn(ran.id, (size_t)ran.id_len) : json_null();
}

json_t *remove_schedule(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  return json_boolean(CHECK(stanchion_queue_remove_schedule(NAMED(name), id.data, id.len, &error)) == STANCHION_OK);
}

json_t *preview_schedule(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_schedule given = schedule_of(self, request);
  size_t found = 0, count = size(self, request, "count", 1);
  int64_t *times = calloc(count + 1, sizeof *times);
  json_t *shown = json_array();
  if (times == NULL) refuse(self, "it is no array");
  CHECK(stanchion_schedule_preview(&given, whole(self, request, "after_ms", NOT_GIVEN), times, count, &found, &error));
  for (size_t i = 0; i < found; i++) json_array_append_new(shown, json_integer((json_int_t)times[i]));
  free(times);
  return shown;
}
