/* Carries out the steps of scenarios with the C library. What it speaks: contract/players.py. */

#include "player.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stanchion_clock player_clock;

/* Requests on their way to an actor's thread. */
typedef struct queue {
  pthread_mutex_t mutex;
  pthread_cond_t filled;
  json_t *waiting;
} queue;

static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;

static void say(json_t *answer, const json_t *request) {
  json_object_set(answer, "call", json_object_get(request, "call"));
  char *line = json_dumps(answer, JSON_COMPACT);
  pthread_mutex_lock(&speaking);
  puts(line);
  fflush(stdout);
  pthread_mutex_unlock(&speaking);
  free(line);
  json_decref(answer);
}

void conclude(actor *self, json_t *answer) {
  self->refusal = answer;
  longjmp(self->refused, 1);
}

void refuse(actor *self, const char *why) { conclude(self, json_pack("{s:s}", "cannot", why)); }

json_t *shown_error(stanchion_error *error) {
  int32_t code = stanchion_error_code(error);
  const char *operation = stanchion_error_operation(error);
  const char *name = stanchion_error_name(error);
  json_t *shown = json_pack(
      "{s:s, s:i, s:s, s:b, s:s?, s:s?}", "kind", stanchion_status_name(code), "code", code, "message",
      stanchion_error_message(error), "retryable", stanchion_error_is_retryable(error), "operation", operation, "name",
      name);
  stanchion_error_free(error);
  return shown;
}

int32_t check(actor *self, int32_t status, stanchion_error **error) {
  if (status >= 0) return status;
  conclude(self, json_pack("{s:o}", "error", shown_error(*error)));
  return status;
}

static const operation *find(const char *name) {
  for (size_t i = 0; i < OPERATION_COUNT; i++)
    if (strcmp(OPERATIONS[i].name, name) == 0) return &OPERATIONS[i];
  fprintf(stderr, "there is no operation %s\n", name);
  abort();
}

json_t *answer(actor *self, json_t *request) {
  const operation *found = find(json_string_value(json_object_get(request, "op")));
  if (setjmp(self->refused) != 0) return self->refusal;
  return json_pack("{s:o}", "ok", found->run(self, request));
}

static void *work(void *argument) {
  actor *self = argument;
  queue *requests = self->requests;
  for (;;) {
    pthread_mutex_lock(&requests->mutex);
    while (json_array_size(requests->waiting) == 0) pthread_cond_wait(&requests->filled, &requests->mutex);
    json_t *request = json_incref(json_array_get(requests->waiting, 0));
    json_array_remove(requests->waiting, 0);
    pthread_mutex_unlock(&requests->mutex);
    say(answer(self, request), request);
    json_decref(request);
  }
  return NULL;
}

static actor *start(const char *name, actor *others) {
  actor *self = calloc(1, sizeof *self);
  queue *requests = calloc(1, sizeof *requests);
  pthread_t thread;
  if (self == NULL || requests == NULL) abort();
  pthread_mutex_init(&requests->mutex, NULL);
  pthread_cond_init(&requests->filled, NULL);
  requests->waiting = json_array();
  self->requests = requests;
  self->next = others;
  snprintf(self->name, sizeof self->name, "%s", name);
  if (pthread_create(&thread, NULL, work, self) != 0) abort();
  pthread_detach(thread);
  return self;
}

static json_t *operations(void) {
  json_t *names = json_array();
  for (size_t i = 0; i < OPERATION_COUNT; i++) json_array_append_new(names, json_string(OPERATIONS[i].name));
  return json_pack("{s:o}", "ok", names);
}

int main(void) {
  actor *actors = NULL;
  char *line = NULL;
  size_t room = 0;
  if (stanchion_clock_new(&player_clock, NULL) != STANCHION_OK) return 1;
  while (getline(&line, &room, stdin) > 0) {
    /* Whole numbers that do not fit are numbers, too. */
    json_t *request = json_loads(line, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    if (request == NULL) return 1;
    if (strcmp(json_string_value(json_object_get(request, "op")), "operations") == 0) {
      say(operations(), request);
      continue;
    }
    const char *name = json_string_value(json_object_get(request, "actor"));
    actor *found = actors;
    while (found != NULL && strcmp(found->name, name) != 0) found = found->next;
    if (found == NULL) found = actors = start(name, actors);
    pthread_mutex_lock(&found->requests->mutex);
    json_array_append_new(found->requests->waiting, request);
    pthread_cond_signal(&found->requests->filled);
    pthread_mutex_unlock(&found->requests->mutex);
  }
  /* Not in the middle of a line: the end of the process would write it again. */
  pthread_mutex_lock(&speaking);
  return 0;
}
