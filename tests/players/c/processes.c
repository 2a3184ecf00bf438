/* Processes: what becomes of them, and of what they hold. */

#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* For the tests of the library itself; in no header. */
int32_t stanchion_private_panic(stanchion_error **err);

json_t *show_nothing(actor *self, json_t *request) {
  (void)request;
  refuse(self, "handles are numbers");
  return NULL;
}

json_t *panic_inside(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  (void)request;
  CHECK(stanchion_private_panic(&error));
  return json_null();
}

/* A child makes the call of the request, and says what came of it. */
json_t *fork_child(actor *self, json_t *request) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  pid_t child = fork();
  if (child == 0) {
    FILE *parent = fdopen(ends[1], "w");
    json_dumpf(answer(self, json_object_get(request, "then")), parent, JSON_COMPACT);
    fclose(parent);
    _exit(0);
  }
  close(ends[1]);
  FILE *told = fdopen(ends[0], "r");
  json_t *said = json_loadf(told, 0, NULL);
  fclose(told);
  waitpid(child, NULL, 0);
  conclude(self, said);
  return NULL;
}
