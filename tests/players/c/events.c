/* What happens to the tasks of a queue. */

#include "operations.h"

#include <stdbool.h>

static json_t *shown_event(const stanchion_task_event *one, bool missed) {
  static const char *const WORDS[] = {NULL,   "added",     "started", "progress", "done", "failed",
                                      "dead", "cancelled", "removed", "put_back"};
  bool known = one->what > 0 && (size_t)one->what < sizeof WORDS / sizeof *WORDS;
  return json_pack("{s:I, s:I, s:s, s:o, s:I, s:I, s:o, s:b}", "number", (json_int_t)one->number, "at_ms",
                   (json_int_t)one->at_ms, "what", known ? WORDS[one->what] : "other", "id", shown_text(one->id),
                   "version", (json_int_t)one->version, "attempt", (json_int_t)one->attempt, "reason",
                   maybe_shown(one->reason), "missed", (int)missed);
}

/* As the generators of other languages: until nothing comes for so long. */
json_t *events(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  stanchion_text name = text(self, request, "queue");
  int64_t after = whole(self, request, "after", NOT_GIVEN), wait = whole(self, request, "wait_ms", 0);
  json_t *shown = json_array();
  for (size_t found = 1; found != 0;) {
    stanchion_task_events page = 0;
    CHECK(stanchion_queue_events(NAMED(name), after, wait, NULL, &page, &error));
    found = stanchion_task_events_len(page);
    for (size_t i = 0; i < found; i++) {
      stanchion_task_event one = {.struct_size = sizeof one};
      CHECK(stanchion_task_events_at(page, i, &one, &error));
      json_array_append_new(shown, shown_event(&one, i == 0 && stanchion_task_events_missed(page) == 1));
    }
    after = stanchion_task_events_cursor(page);
    stanchion_task_events_free(page);
  }
  return shown;
}
