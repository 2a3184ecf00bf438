/* Flows: tasks of which some wait for others. */

#include "operations.h"

#include <stdlib.h>
#include <string.h>

static const stanchion_text *names(actor *self, const json_t *told, const char *key, size_t *count) {
  json_t *list = json_object_get(told, key);
  if (list != NULL && !json_is_array(list)) refuse(self, "it is no array");
  *count = json_array_size(list);
  stanchion_text *found = calloc(*count + 1, sizeof *found);
  if (found == NULL) abort();
  for (size_t i = 0; i < *count; i++) found[i] = text_of(self, json_array_get(list, i));
  return found;
}

static int32_t after_all(actor *self, const json_t *told) {
  static const char *const WORDS[] = {"", "then", "failed", "finally"};
  const char *word = label(told, "after_all", "");
  for (int32_t i = 0; i < 4; i++)
    if (strcmp(WORDS[i], word) == 0) return i;
  refuse(self, "it is no stanchion_after_all");
  return NOT_GIVEN;
}

/* Kept until the process ends: a player is short-lived. */
static const stanchion_node *nodes(actor *self, const json_t *request, size_t *count) {
  json_t *list = json_object_get(request, "nodes");
  *count = json_array_size(list);
  stanchion_node *found = calloc(*count + 1, sizeof *found);
  stanchion_task *tasks = calloc(*count + 1, sizeof *tasks);
  if (found == NULL || tasks == NULL) abort();
  for (size_t i = 0; i < *count; i++) {
    const json_t *told = json_array_get(list, i);
    tasks[i] = task(self, told);
    stanchion_node_init(&found[i], sizeof found[i]);
    found[i].task = &tasks[i];
    found[i].queue = maybe_text(self, told, "queue");
    found[i].after = names(self, told, "after", &found[i].after_count);
    found[i].after_end = names(self, told, "after_end", &found[i].after_end_count);
    found[i].after_failure = names(self, told, "after_failure", &found[i].after_failure_count);
    found[i].after_all = after_all(self, told);
  }
  return found;
}

json_t *enqueue_flow(actor *self, json_t *request) {
  size_t count;
  int32_t was_put = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  const stanchion_node *given = nodes(self, request, &count);
  CHECK(stanchion_queue_enqueue_flow(NAMED(name), id.data, id.len, given, count, &was_put, &error));
  return json_boolean(was_put);
}

json_t *add_to_flow(actor *self, json_t *request) {
  size_t count;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  const stanchion_node *given = nodes(self, request, &count);
  return json_boolean(CHECK(stanchion_queue_add_to_flow(NAMED(name), id.data, id.len, given, count, &error)) == STANCHION_OK);
}

static json_t *shown_node_state(int32_t state) {
  static const char *const WORDS[] = {"other", "waiting", "put", "ending", "done", "dead", "cancelled", "skipped", "unneeded"};
  return json_string(WORDS[state]);
}

static json_t *shown_names(const stanchion_text *names, size_t count) {
  json_t *shown = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(shown, shown_text(names[i]));
  return shown;
}

static json_t *shown_nodes(actor *self, stanchion_flows list, size_t index, size_t count) {
  static const char *const WORDS[] = {NULL, "then", "failed", "finally"};
  json_t *shown = json_array();
  for (size_t i = 0; i < count; i++) {
    stanchion_node_info info = {.struct_size = sizeof info};
    stanchion_error *error = NULL;
    CHECK(stanchion_flows_node_at(list, index, i, &info, &error));
    json_array_append_new(
        shown, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s?}", "name", shown_text(info.name), "state",
                         shown_node_state(info.state), "queue", maybe_shown(info.queue), "after",
                         shown_names(info.after, info.after_count), "after_end",
                         shown_names(info.after_end, info.after_end_count), "after_failure",
                         shown_names(info.after_failure, info.after_failure_count), "after_all", WORDS[info.after_all]));
  }
  return shown;
}

/* Only the states that some node is in. */
static json_t *shown_counts(const stanchion_flow_info *info) {
  const int64_t counts[] = {0,          info->waiting, info->put,     info->ending,  info->done,
                            info->dead, info->cancelled, info->skipped, info->unneeded};
  json_t *shown = json_object();
  for (int32_t state = 1; state < 9; state++) {
    json_t *word = shown_node_state(state);
    if (counts[state] > 0) json_object_set_new(shown, json_string_value(word), json_integer((json_int_t)counts[state]));
    json_decref(word);
  }
  return shown;
}

static json_t *shown_flows(actor *self, stanchion_flows list) {
  static const char *const WORDS[] = {"other", "running", "done", "failed", "cancelled"};
  json_t *shown = json_array();
  for (size_t i = 0; i < stanchion_flows_len(list); i++) {
    stanchion_flow_info info = {.struct_size = sizeof info};
    stanchion_error *error = NULL;
    CHECK(stanchion_flows_at(list, i, &info, &error));
    json_array_append_new(shown, json_pack("{s:o, s:s, s:I, s:o, s:o, s:o}", "id", shown_text(info.id), "state",
                                           WORDS[info.state], "created_ms", (json_int_t)info.created_ms, "ended_ms",
                                           maybe_number(info.ended_ms, NOT_GIVEN), "counts", shown_counts(&info),
                                           "nodes", shown_nodes(self, list, i, info.node_count)));
  }
  stanchion_flows_free(list);
  return shown;
}

json_t *get_flow(actor *self, json_t *request) {
  stanchion_flows found = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  if (CHECK(stanchion_queue_get_flow(NAMED(name), id.data, id.len, &found, &error)) == STANCHION_ABSENT) return json_null();
  json_t *list = shown_flows(self, found), *one = json_incref(json_array_get(list, 0));
  json_decref(list);
  return one;
}

json_t *list_flows(actor *self, json_t *request) {
  stanchion_flows found = 0;
  stanchion_text next;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), page = maybe_text(self, request, "page");
  size_t max = size(self, request, "max", 100);
  CHECK(stanchion_queue_list_flows(NAMED(name), page.data, page.len, max, &found, &error));
  int32_t status = CHECK(stanchion_flows_next(found, &next, &error));
  /* The text lives as long as the list, which is freed when it has been shown. */
  json_t *after = status == STANCHION_OK ? shown_text(next) : json_null();
  return json_pack("{s:o, s:o}", "items", shown_flows(self, found), "next", after);
}

json_t *cancel_flow(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  return json_boolean(CHECK(stanchion_queue_cancel_flow(NAMED(name), id.data, id.len, &error)) == STANCHION_OK);
}

json_t *retry_flow(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), id = text(self, request, "id");
  return json_boolean(CHECK(stanchion_queue_retry_flow(NAMED(name), id.data, id.len, &error)) == STANCHION_OK);
}

json_t *inputs(actor *self, json_t *request) {
  stanchion_inputs found = 0;
  stanchion_error *error = NULL;
  json_t *shown = json_array();
  CHECK(stanchion_claim_inputs(claim_of(self, request), &found, &error));
  for (size_t i = 0; i < stanchion_inputs_len(found); i++) {
    stanchion_input one = {.struct_size = sizeof one};
    CHECK(stanchion_inputs_at(found, i, &one, &error));
    json_t *result = one.result == NULL ? json_null() : shown_bytes(one.result, one.result_len);
    json_array_append_new(shown, json_pack("{s:o, s:o, s:o}", "node", shown_text(one.node), "state",
                                           shown_node_state(one.state), "result", result));
  }
  stanchion_inputs_free(found);
  return shown;
}
