/* What the parts of the player share. */

#ifndef PLAYER_H
#define PLAYER_H

#include <jansson.h>
#include <setjmp.h>
#include <stanchion.h>

#define MOST_HELD 64
#define NOT_GIVEN (-1)

/* A handle under the name that a request gave it. */
typedef struct held {
  char name[64];
  int64_t handle;
} held;

/* One client, with what it has in its hands; its calls are made one after the other. */
typedef struct actor {
  stanchion_client client;
  held leases[MOST_HELD];
  held claims[MOST_HELD];
  /* Where a request that has no "ok" goes, with its answer. */
  jmp_buf refused;
  json_t *refusal;
  /* Requests that were not begun yet: see player.c. */
  struct queue *requests;
  struct actor *next;
  char name[64];
} actor;

typedef struct operation {
  const char *name;
  json_t *(*run)(actor *, json_t *);
} operation;

extern const operation OPERATIONS[];
extern const size_t OPERATION_COUNT;
/* Moved by scenarios; all stores in memory go by it. */
extern stanchion_clock player_clock;

/* Carries out a request: {"ok": ...}, {"error": ...} or {"cannot": ...}. */
json_t *answer(actor *self, json_t *request);
/* Ends the request with this answer. */
void conclude(actor *self, json_t *answer);
/* Ends the request: the language does not allow it. */
void refuse(actor *self, const char *why);
/* Ends the request with its error, if the status is one; else gives the status back. */
int32_t check(actor *self, int32_t status, stanchion_error **error);
json_t *shown_error(stanchion_error *error);

/* Arguments, in the types of the library. */
stanchion_text text_of(actor *self, const json_t *value);
stanchion_text text(actor *self, const json_t *request, const char *key);
stanchion_text maybe_text(actor *self, const json_t *request, const char *key);
int64_t whole(actor *self, const json_t *request, const char *key, int64_t missing);
int32_t flag(actor *self, const json_t *request, const char *key);
size_t size(actor *self, const json_t *request, const char *key, size_t missing);
stanchion_lock_options lock_options(actor *self, const json_t *request);
stanchion_claim_options claim_options(actor *self, const json_t *request);
stanchion_task task(actor *self, const json_t *request);
/* The headers of a request, and how many. */
const stanchion_header *headers(actor *self, const json_t *request, size_t *count);
/* The payload of a request; NULL with the length 0 if it has none. */
stanchion_text payload(const json_t *request);
/* Other bytes of a request, in the same way. */
stanchion_text given_bytes(const json_t *request, const char *key);
/* A rate of a request; with a count of NOT_GIVEN if it has none, and of -2 if it is null. */
stanchion_rate rate(actor *self, const json_t *request, const char *key);
stanchion_queue_config settings(actor *self, const json_t *request);
const char *label(const json_t *request, const char *key, const char *missing);

/* Answers, as JSON. */
json_t *shown_text(stanchion_text text);
json_t *shown_bytes(const void *bytes, size_t length);
json_t *maybe_number(int64_t number, int64_t none);
/* Null if there is none. */
json_t *maybe_shown(stanchion_text text);
json_t *shown_lease(actor *self, stanchion_lease lease);
json_t *shown_loss(int32_t loss);
json_t *shown_holder(const stanchion_holder *holder);
json_t *shown_waiter(const stanchion_waiter *waiter);
json_t *shown_claim(actor *self, stanchion_claim claim);
json_t *shown_enqueued(const stanchion_enqueued *done);
json_t *shown_tasks(actor *self, stanchion_tasks tasks);
json_t *shown_consumer(const stanchion_consumer *one);
json_t *shown_rate(stanchion_rate rate);
json_t *shown_stats(const stanchion_stats *stats);

#endif
