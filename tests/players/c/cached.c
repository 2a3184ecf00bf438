/* Cached values. In bytes: here the player is what makes them JSON. */

#include "operations.h"

#include <stdlib.h>
#include <string.h>

static stanchion_cached_options cached_options(actor *self, const json_t *request) {
  stanchion_cached_options options;
  const json_t *beta = json_object_get(request, "beta");
  stanchion_cached_options_init(&options, sizeof options);
  options.ttl_ms = whole(self, request, "ttl_ms", NOT_GIVEN);
  options.stale_ms = whole(self, request, "stale_ms", NOT_GIVEN);
  options.wait_ms = whole(self, request, "wait_ms", NOT_GIVEN);
  options.lease_ms = whole(self, request, "lease_ms", NOT_GIVEN);
  options.max_run_ms = whole(self, request, "max_run_ms", NOT_GIVEN);
  options.without_store = flag(self, request, "without_store");
  options.label = maybe_text(self, request, "label");
  if (beta != NULL && (!json_is_number(beta) || json_number_value(beta) == -1)) refuse(self, "it is no double, or the default");
  if (beta != NULL) options.beta = json_number_value(beta);
  return options;
}

static json_t *value_of(actor *self, stanchion_cached found) {
  const void *bytes = NULL;
  size_t length = 0;
  stanchion_error *error = NULL;
  CHECK(stanchion_cached_get(found, &bytes, &length, &error));
  json_t *value = json_loadb(bytes, length, JSON_DECODE_ANY, NULL);
  stanchion_cached_free(found);
  return value;
}

/* What comes of asking for the same value during the computation. */
static json_t *meanwhile(actor *self, stanchion_text name, stanchion_cached_options options) {
  stanchion_cached found = 0;
  stanchion_error *error = NULL;
  options.wait_ms = 0;
  int32_t status = stanchion_cached_begin(NAMED(name), &options, &found, &error);
  if (status == STANCHION_OK) return value_of(self, found);
  stanchion_cached_free(found);
  if (status == STANCHION_COMPUTE) return json_string("twice");
  json_t *told = shown_error(error), *kind = json_incref(json_object_get(told, "kind"));
  json_decref(told);
  return kind;
}

json_t *cached(actor *self, json_t *request) {
  stanchion_text name = text(self, request, "name");
  stanchion_cached_options options = cached_options(self, request);
  const char *body = label(request, "body", "");
  stanchion_cached found = 0;
  stanchion_error *error = NULL;
  json_t *shown = json_object();
  int32_t status = CHECK(stanchion_cached_begin(NAMED(name), &options, &found, &error));
  json_object_set_new(shown, "computed", json_boolean(status == STANCHION_COMPUTE));
  if (status == STANCHION_OK) {
    json_object_set_new(shown, "value", value_of(self, found));
    return shown;
  }
  if (strcmp(body, "fail") == 0) {
    stanchion_cached_free(found);
    json_object_set_new(shown, "failed", json_true());
    return shown;
  }
  if (strcmp(body, "invalidate") == 0) CHECK(stanchion_invalidate(NAMED(name), &error));
  if (strcmp(body, "again") == 0) json_object_set_new(shown, "meanwhile", meanwhile(self, name, options));
  json_t *value = json_object_get(request, "value");
  char *bytes = json_dumps(value == NULL ? json_null() : value, JSON_ENCODE_ANY | JSON_COMPACT);
  if (bytes == NULL) abort();
  CHECK(stanchion_cached_store(found, bytes, strlen(bytes), &error));
  free(bytes);
  stanchion_cached_free(found);
  json_object_set(shown, "value", value == NULL ? json_null() : value);
  return shown;
}

json_t *invalidate(actor *self, json_t *request) {
  stanchion_text name = text(self, request, "name");
  stanchion_error *error = NULL;
  CHECK(stanchion_invalidate(NAMED(name), &error));
  return json_null();
}
