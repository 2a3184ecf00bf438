/* Keys, and their limits. */

#include "operations.h"

json_t *limit_key(actor *self, json_t *request) {
  stanchion_key_limits limits;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), key = text(self, request, "key");
  stanchion_key_limits_init(&limits, sizeof limits);
  limits.concurrency = whole(self, request, "concurrency", NOT_GIVEN);
  limits.rate = rate(self, request, "rate");
  limits.weight = whole(self, request, "weight", NOT_GIVEN);
  int is_given = json_object_get(request, "concurrency") != NULL || json_object_get(request, "rate") != NULL ||
                 json_object_get(request, "weight") != NULL;
  CHECK(stanchion_queue_limit_key(NAMED(name), key.data, key.len, is_given ? &limits : NULL, &error));
  return json_null();
}

static json_t *shown_key(const stanchion_key_info *info) {
  json_t *own = info->weight == NOT_GIVEN
                    ? json_null()
                    : json_pack("{s:o, s:o, s:I}", "concurrency", maybe_number(info->concurrency, NOT_GIVEN), "rate",
                                shown_rate(info->rate), "weight", (json_int_t)info->weight);
  return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "key", shown_text(info->key), "running", (json_int_t)info->running,
                   "in_line", (json_int_t)info->in_line, "held", (json_int_t)info->held, "opens_in_ms",
                   maybe_number(info->opens_in_ms, NOT_GIVEN), "limits", own);
}

static json_t *shown_keys(actor *self, stanchion_keys list) {
  json_t *shown = json_array();
  for (size_t i = 0; i < stanchion_keys_len(list); i++) {
    stanchion_key_info info = {.struct_size = sizeof info};
    stanchion_error *error = NULL;
    CHECK(stanchion_keys_at(list, i, &info, &error));
    json_array_append_new(shown, shown_key(&info));
  }
  stanchion_keys_free(list);
  return shown;
}

json_t *get_key(actor *self, json_t *request) {
  stanchion_keys found = 0;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), key = text(self, request, "key");
  CHECK(stanchion_queue_get_key(NAMED(name), key.data, key.len, &found, &error));
  json_t *list = shown_keys(self, found), *one = json_incref(json_array_get(list, 0));
  json_decref(list);
  return one;
}

json_t *list_keys(actor *self, json_t *request) {
  stanchion_keys found = 0;
  stanchion_text next;
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue"), page = maybe_text(self, request, "page");
  size_t max = size(self, request, "max", 100);
  CHECK(stanchion_queue_list_keys(NAMED(name), page.data, page.len, max, &found, &error));
  int32_t status = CHECK(stanchion_keys_next(found, &next, &error));
  /* The text lives as long as the list, which is freed when it has been shown. */
  json_t *after = status == STANCHION_OK ? shown_text(next) : json_null();
  return json_pack("{s:o, s:o}", "items", shown_keys(self, found), "next", after);
}
