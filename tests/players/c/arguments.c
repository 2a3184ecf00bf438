/* The arguments of a request, in the types of the library. */

#include "player.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Doubles hold every whole number up to this. */
#define LARGEST 9007199254740992.0

/* A wait that was cancelled before it began. */
static const int32_t CANCELLED = 1;

static unsigned char nibble(char digit) {
  return (unsigned char)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* A number that has no fraction, without a point. */
static json_t *whole_if_it_is(json_t *value) {
  double number = json_number_value(value);
  int is_whole = json_is_real(value) && number == floor(number) && fabs(number) <= LARGEST;
  return is_whole ? json_integer((json_int_t)number) : json_incref(value);
}

/* Bytes that a request tells in hex. Kept until the process ends: a player is short-lived. */
static stanchion_text unhex(const char *hex) {
  size_t length = strlen(hex) / 2;
  char *bytes = malloc(length + 1);
  if (bytes == NULL) abort();
  for (size_t i = 0; i < length; i++) bytes[i] = (char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  return (stanchion_text){bytes, length};
}

stanchion_text text_of(actor *self, const json_t *value) {
  const char *hex = json_string_value(json_object_get(value, "$text"));
  if (hex != NULL) return unhex(hex);
  if (!json_is_string(value)) refuse(self, "it is no text");
  return (stanchion_text){json_string_value(value), json_string_length(value)};
}

stanchion_text text(actor *self, const json_t *request, const char *key) {
  return text_of(self, json_object_get(request, key));
}

stanchion_text maybe_text(actor *self, const json_t *request, const char *key) {
  const json_t *value = json_object_get(request, key);
  return value == NULL ? (stanchion_text){NULL, 0} : text_of(self, value);
}

int64_t whole(actor *self, const json_t *request, const char *key, int64_t missing) {
  const json_t *value = json_object_get(request, key);
  if (value == NULL) return missing;
  double number = json_number_value(value);
  if (!json_is_number(value) || number != floor(number) || fabs(number) > LARGEST) refuse(self, "it is no int64_t");
  if (number == NOT_GIVEN) refuse(self, "-1 stands for the default");
  return (int64_t)number;
}

int32_t flag(actor *self, const json_t *request, const char *key) {
  const json_t *value = json_object_get(request, key);
  if (value == NULL) return NOT_GIVEN;
  if (!json_is_boolean(value)) refuse(self, "it is not 0 or 1");
  return json_is_true(value);
}

size_t size(actor *self, const json_t *request, const char *key, size_t missing) {
  int64_t number = whole(self, request, key, (int64_t)missing);
  if (number < 0) refuse(self, "it is no size_t");
  return (size_t)number;
}

const char *label(const json_t *request, const char *key, const char *missing) {
  const char *name = json_string_value(json_object_get(request, key));
  return name == NULL ? missing : name;
}

stanchion_lock_options lock_options(actor *self, const json_t *request) {
  stanchion_lock_options options;
  stanchion_lock_options_init(&options, sizeof options);
  options.ttl_ms = whole(self, request, "ttl_ms", NOT_GIVEN);
  options.max_hold_ms = whole(self, request, "max_hold_ms", NOT_GIVEN);
  options.wait_ms = whole(self, request, "wait_ms", NOT_GIVEN);
  options.adopt_unexpiring_ms = whole(self, request, "adopt_unexpiring_ms", NOT_GIVEN);
  options.label = maybe_text(self, request, "label");
  if (json_is_true(json_object_get(request, "cancel"))) options.cancel = &CANCELLED;
  options.weight = whole(self, request, "weight", NOT_GIVEN);
  options.renew = flag(self, request, "renew");
  options.fail_fast = flag(self, request, "fail_fast");
  return options;
}

stanchion_claim_options claim_options(actor *self, const json_t *request) {
  stanchion_claim_options options;
  stanchion_claim_options_init(&options, sizeof options);
  options.lease_ms = whole(self, request, "lease_ms", NOT_GIVEN);
  options.max_run_ms = whole(self, request, "max_run_ms", NOT_GIVEN);
  options.wait_ms = whole(self, request, "wait_ms", NOT_GIVEN);
  options.renew = flag(self, request, "renew");
  options.timeout_ms = whole(self, request, "timeout_ms", NOT_GIVEN);
  return options;
}

static void policy(actor *self, const json_t *told, stanchion_task *task) {
  const char *word = json_string_value(told);
  if (json_object_get(told, "debounce_ms") != NULL) {
    task->on_duplicate = STANCHION_DEBOUNCE;
    task->window_ms = whole(self, told, "debounce_ms", NOT_GIVEN);
  } else if (json_object_get(told, "throttle_ms") != NULL) {
    task->on_duplicate = STANCHION_THROTTLE;
    task->window_ms = whole(self, told, "throttle_ms", NOT_GIVEN);
  } else if (word != NULL && strcmp(word, "keep") == 0) {
    task->on_duplicate = STANCHION_KEEP;
  } else if (word != NULL && strcmp(word, "skip") == 0) {
    task->on_duplicate = STANCHION_SKIP;
  } else if (word != NULL && strcmp(word, "replace") == 0) {
    task->on_duplicate = STANCHION_REPLACE;
  } else if (told != NULL) {
    refuse(self, "it is no stanchion_on_duplicate");
  }
}

const stanchion_header *headers(actor *self, const json_t *request, size_t *count) {
  json_t *told = json_object_get(request, "headers"), *value;
  *count = 0;
  if (told == NULL) return NULL;
  if (!json_is_object(told)) refuse(self, "they are no headers");
  stanchion_header *list = calloc(json_object_size(told) + 1, sizeof *list);
  const char *name;
  if (list == NULL) abort();
  json_object_foreach(told, name, value) {
    list[*count].name = (stanchion_text){name, strlen(name)};
    list[(*count)++].value = text_of(self, value);
  }
  return list;
}

stanchion_text payload(const json_t *request) { return given_bytes(request, "payload"); }

stanchion_text given_bytes(const json_t *request, const char *key) {
  const json_t *told = json_object_get(request, key);
  return !json_is_object(told) ? (stanchion_text){NULL, 0} : unhex(json_string_value(json_object_get(told, "$hex")));
}

/* As JSON, which the library reads; NULL if it is not given. */
static stanchion_text backoff(const json_t *told) {
  if (told == NULL) return (stanchion_text){NULL, 0};
  json_t *numbers = json_deep_copy(told);
  json_t *value;
  const char *name;
  size_t at;
  /* The player reads all numbers as doubles. */
  json_array_foreach(numbers, at, value) json_array_set_new(numbers, at, whole_if_it_is(value));
  json_object_foreach(numbers, name, value) json_object_set_new(numbers, name, whole_if_it_is(value));
  char *text = json_dumps(numbers, JSON_COMPACT | JSON_ENCODE_ANY);
  json_decref(numbers);
  return (stanchion_text){text, strlen(text)};
}

stanchion_task task(actor *self, const json_t *request) {
  stanchion_task task;
  stanchion_task_init(&task, sizeof task);
  task.id = maybe_text(self, request, "id");
  stanchion_text bytes = payload(request);
  task.payload = bytes.data;
  task.payload_len = bytes.len;
  task.headers = headers(self, request, &task.header_count);
  task.delay_ms = whole(self, request, "delay_ms", NOT_GIVEN);
  task.due_ms = whole(self, request, "due_ms", NOT_GIVEN);
  task.max_attempts = whole(self, request, "max_attempts", NOT_GIVEN);
  task.expires_ms = whole(self, request, "expires_ms", NOT_GIVEN);
  task.priority = (int32_t)whole(self, request, "priority", NOT_GIVEN);
  policy(self, json_object_get(request, "on_duplicate"), &task);
  task.kind = maybe_text(self, request, "kind");
  task.timeout_ms = whole(self, request, "timeout_ms", NOT_GIVEN);
  task.backoff = backoff(json_object_get(request, "backoff"));
  task.keep_result_ms = whole(self, request, "keep_result_ms", NOT_GIVEN);
  task.key = maybe_text(self, request, "key");
  return task;
}

stanchion_rate rate(actor *self, const json_t *request, const char *key) {
  const json_t *told = json_object_get(request, key);
  stanchion_rate found = {NOT_GIVEN, NOT_GIVEN, NOT_GIVEN};
  if (json_is_null(told)) {
    found.count = -2;
  } else if (told != NULL) {
    if (!json_is_object(told)) refuse(self, "it is no stanchion_rate");
    found.count = whole(self, told, "count", NOT_GIVEN);
    found.per_ms = whole(self, told, "per_ms", NOT_GIVEN);
    found.burst = whole(self, told, "burst", NOT_GIVEN);
  }
  return found;
}

/* A limit: null takes it away. */
static int64_t limit(actor *self, const json_t *request, const char *key) {
  return json_is_null(json_object_get(request, key)) ? -2 : whole(self, request, key, NOT_GIVEN);
}

stanchion_queue_config settings(actor *self, const json_t *request) {
  stanchion_queue_config settings;
  stanchion_queue_config_init(&settings, sizeof settings);
  settings.max_len = limit(self, request, "max_len");
  settings.dead_max = whole(self, request, "dead_max", NOT_GIVEN);
  settings.dead_age_ms = whole(self, request, "dead_age_ms", NOT_GIVEN);
  settings.dead_bytes = whole(self, request, "dead_bytes", NOT_GIVEN);
  settings.intake = flag(self, request, "intake");
  settings.events = whole(self, request, "events", NOT_GIVEN);
  settings.max_running = limit(self, request, "max_running");
  settings.rate = rate(self, request, "rate");
  settings.key_concurrency = limit(self, request, "key_concurrency");
  settings.key_rate = rate(self, request, "key_rate");
  return settings;
}
