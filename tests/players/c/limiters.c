/* Limiters: so many in so long. */

#include <string.h>

#include "operations.h"

/* A wait that was cancelled before it began. */
static const int32_t CANCELLED = 1;

static int32_t limit_kind(actor *self, const json_t *request) {
  const char *kind = label(request, "kind", "gcra");
  if (strcmp(kind, "gcra") == 0) return STANCHION_GCRA;
  if (strcmp(kind, "fixed-window") == 0) return STANCHION_FIXED_WINDOW;
  if (strcmp(kind, "sliding-window") == 0) return STANCHION_SLIDING_WINDOW;
  refuse(self, "the kinds are an enum");
  return NOT_GIVEN;
}

static json_t *taken(actor *self, json_t *request, int64_t wait_ms) {
  const stanchion_text name = text(self, request, "limiter");
  const int64_t per_ms = whole(self, request, "per_ms", NOT_GIVEN);
  stanchion_limit limit;
  stanchion_limit_init(&limit, sizeof limit);
  limit.n = whole(self, request, "n", NOT_GIVEN);
  limit.per_us = per_ms == NOT_GIVEN ? NOT_GIVEN : per_ms * 1000;
  limit.burst = whole(self, request, "burst", NOT_GIVEN);
  limit.kind = limit_kind(self, request);
  limit.count = whole(self, request, "count", NOT_GIVEN);
  limit.wait_ms = wait_ms;
  if (json_is_true(json_object_get(request, "cancel"))) limit.cancel = &CANCELLED;
  int64_t retry_after_us = 0;
  stanchion_error *error = NULL;
  int32_t status = CHECK(stanchion_limiter_take(NAMED(name), &limit, &retry_after_us, &error));
  if (status == STANCHION_OK) return json_pack("{s:s, s:n}", "outcome", "allowed", "retry_after_ms");
  return json_pack("{s:s, s:f}", "outcome", "refused", "retry_after_ms", (double)retry_after_us / 1000);
}

json_t *take(actor *self, json_t *request) {
  return taken(self, request, whole(self, request, "wait_ms", NOT_GIVEN));
}

json_t *try_take(actor *self, json_t *request) { return taken(self, request, 0); }
