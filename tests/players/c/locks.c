/* Time, clients, locks and leases. */

#include "operations.h"

#include <string.h>

#define HANDLE_TTL_MS 30000

json_t *pass_time(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_clock_advance(player_clock, whole(self, request, "ms", 0), &error));
  return json_null();
}

static void forget(actor *self) {
  for (size_t i = 0; i < MOST_HELD; i++) {
    stanchion_lease_free(self->leases[i].handle);
    stanchion_claim_free(self->claims[i].handle);
  }
  memset(self->leases, 0, sizeof self->leases);
  memset(self->claims, 0, sizeof self->claims);
  stanchion_client_free(self->client);
  self->client = 0;
}

json_t *client_open(actor *self, json_t *request) {
  stanchion_connect_options options;
  stanchion_error *error = NULL;
  forget(self);
  stanchion_connect_options_init(&options, sizeof options);
  stanchion_text url = text(self, request, "url");
  options.lock_prefix = maybe_text(self, request, "lock_prefix");
  options.queue_prefix = maybe_text(self, request, "queue_prefix");
  options.label = maybe_text(self, request, "label");
  options.tls_ca = maybe_text(self, request, "tls_ca");
  options.tls_cert = maybe_text(self, request, "tls_cert");
  options.tls_key = maybe_text(self, request, "tls_key");
  options.foreign_share = flag(self, request, "foreign_share");
  options.timeout_ms = whole(self, request, "timeout_ms", NOT_GIVEN);
  if (url.len >= 7 && memcmp(url.data, "memory:", 7) == 0) options.clock = player_clock;
  CHECK(stanchion_connect(url.data, url.len, &options, &self->client, &error));
  return json_null();
}

json_t *client_close(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  (void)request;
  if (self->client != 0) CHECK(stanchion_client_close(self->client, NULL, &error));
  return json_null();
}

json_t *resume_lease(actor *self, json_t *request) {
  stanchion_lease lease;
  stanchion_error *error = NULL;
  stanchion_text handle = text(self, request, "handle");
  CHECK(stanchion_client_resume_lease(NAMED(handle), &lease, &error));
  return keep(self, request, lease);
}

json_t *release_all(actor *self, json_t *request) {
  size_t count = 0;
  stanchion_error *error = NULL;
  (void)request;
  CHECK(stanchion_client_release_all(self->client, &count, &error));
  return json_integer((json_int_t)count);
}

static json_t *shown_names(actor *self, stanchion_names names, uint64_t next) {
  json_t *items = json_array();
  for (size_t i = 0; i < stanchion_names_len(names); i++) {
    stanchion_text name;
    stanchion_error *error = NULL;
    CHECK(stanchion_names_at(names, i, &name, &error));
    json_array_append_new(items, shown_text(name));
  }
  stanchion_names_free(names);
  return json_pack("{s:o, s:o}", "items", items, "next", maybe_number((int64_t)next, 0));
}

json_t *locks(actor *self, json_t *request) {
  stanchion_names names;
  uint64_t next = 0;
  stanchion_error *error = NULL;
  CHECK(stanchion_client_locks(self->client, size(self, request, "page", 0), &names, &next, &error));
  return shown_names(self, names, next);
}

json_t *metrics(actor *self, json_t *request) {
  stanchion_metrics counted;
  stanchion_error *error = NULL;
  stanchion_text name = {NULL, 0}, text = {NULL, 0};
  double value = 0, again = 0;
  (void)request;
  CHECK(stanchion_client_metrics(self->client, &counted, &error));
  json_t *samples = json_object();
  for (size_t i = 0; i < stanchion_metrics_len(counted); i++) {
    CHECK(stanchion_metrics_at(counted, i, &name, &value, &error));
    CHECK(stanchion_metrics_get(counted, name.data, name.len, &again, &error));
    json_object_setn_new(samples, name.data, name.len, value == again ? json_real(value) : json_null());
  }
  CHECK(stanchion_metrics_text(counted, &text, &error));
  json_t *shown = json_pack("{s:o, s:o}", "samples", samples, "text", shown_text(text));
  stanchion_metrics_free(counted);
  return shown;
}

json_t *queue_names(actor *self, json_t *request) {
  stanchion_names names;
  uint64_t next = 0;
  stanchion_error *error = NULL;
  CHECK(stanchion_client_queues(self->client, size(self, request, "page", 0), &names, &next, &error));
  return shown_names(self, names, next);
}

/* Locks and leases. */

static int32_t acquire_lock(actor *self, json_t *request, stanchion_lock_options options, json_t **shown) {
  stanchion_lease lease;
  stanchion_error *error = NULL;
  const some_lock lock = lock_of(self, request);
  options.owner = lock.owner;
  int32_t status = CHECK(acquire_some(self, &lock, &options, &lease, &error));
  *shown = status == STANCHION_BUSY ? json_null() : keep(self, request, lease);
  return status;
}

json_t *acquire(actor *self, json_t *request) {
  json_t *shown;
  int32_t status = acquire_lock(self, request, lock_options(self, request), &shown);
  if (status == STANCHION_BUSY) refuse(self, "an acquire that may not wait is a try");
  return shown;
}

json_t *try_acquire(actor *self, json_t *request) {
  json_t *shown;
  stanchion_lock_options options = lock_options(self, request);
  options.wait_ms = 0;
  acquire_lock(self, request, options, &shown);
  return shown;
}

json_t *hold(actor *self, json_t *request) {
  (void)request;
  refuse(self, "C has no scopes that end by themselves");
  return NULL;
}

json_t *holder(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  const some_lock lock = lock_of(self, request);
  if (lock.kind == EXCLUSIVE) {
    stanchion_holder found = {.struct_size = sizeof found};
    int32_t status = CHECK(stanchion_lock_holder(NAMED(lock.name), &found, &error));
    return status == STANCHION_ABSENT ? json_null() : shown_holder(&found);
  }
  json_t *all = holders(self, request), *first = json_incref(json_array_get(all, 0));
  json_decref(all);
  return first == NULL ? json_null() : first;
}

json_t *holders(actor *self, json_t *request) {
  stanchion_holders found;
  stanchion_error *error = NULL;
  const some_lock lock = lock_of(self, request);
  json_t *shown = json_array();
  CHECK(holders_of_some(self, &lock, &found, &error));
  for (size_t i = 0; i < stanchion_holders_len(found); i++) {
    stanchion_holder one = {.struct_size = sizeof one};
    CHECK(stanchion_holders_at(found, i, &one, &error));
    json_array_append_new(shown, shown_holder(&one));
  }
  stanchion_holders_free(found);
  return shown;
}

json_t *waiters(actor *self, json_t *request) {
  stanchion_waiters found;
  stanchion_error *error = NULL;
  const some_lock lock = lock_of(self, request);
  json_t *shown = json_array();
  CHECK(waiters_of_some(self, &lock, &found, &error));
  for (size_t i = 0; i < stanchion_waiters_len(found); i++) {
    stanchion_waiter one = {.struct_size = sizeof one};
    CHECK(stanchion_waiters_at(found, i, &one, &error));
    json_array_append_new(shown, shown_waiter(&one));
  }
  stanchion_waiters_free(found);
  return shown;
}

json_t *is_locked(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  const some_lock lock = lock_of(self, request);
  return json_boolean(CHECK(some_is_locked(self, &lock, &error)) == STANCHION_BUSY);
}

json_t *break_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  const some_lock lock = lock_of(self, request);
  return json_boolean(CHECK(break_some(self, &lock, &error)) != STANCHION_ABSENT);
}

static json_t *shown_fences(actor *self, stanchion_lease lease) {
  json_t *shown = json_object();
  for (size_t i = 0; i < stanchion_lease_fences_len(lease); i++) {
    stanchion_text name;
    int64_t fence;
    stanchion_error *error = NULL;
    CHECK(stanchion_lease_fences_at(lease, i, &name, &fence, &error));
    json_t *key = shown_text(name);
    json_object_set_new(shown, json_string_value(key), json_integer(fence));
    json_decref(key);
  }
  return shown;
}

json_t *look_at_lease(actor *self, json_t *request) {
  stanchion_lease lease = lease_of(self, request);
  json_t *shown = shown_lease(self, lease);
  json_object_set_new(shown, "fences", shown_fences(self, lease));
  json_object_set_new(shown, "remaining_ms", json_integer(stanchion_lease_remaining_ms(lease)));
  json_object_set_new(shown, "valid", json_boolean(stanchion_lease_is_valid(lease)));
  json_object_set_new(shown, "loss", shown_loss(stanchion_lease_loss(lease)));
  return shown;
}

json_t *check_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_lease_check(lease_of(self, request), &error));
  return json_null();
}

json_t *wait_lost_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t time = whole(self, request, "time_ms", 0);
  return json_boolean(CHECK(stanchion_lease_wait_lost(lease_of(self, request), time, &error)) == STANCHION_LOST);
}

json_t *extend_lease(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t ttl = whole(self, request, "ttl_ms", NOT_GIVEN);
  if (ttl == NOT_GIVEN) refuse(self, "it is no int64_t");
  CHECK(stanchion_lease_extend(lease_of(self, request), ttl, &error));
  return json_null();
}

json_t *extend_lease_exact(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t ttl = whole(self, request, "ttl_ms", NOT_GIVEN);
  if (ttl == NOT_GIVEN) refuse(self, "it is no int64_t");
  CHECK(stanchion_lease_extend_exact(lease_of(self, request), ttl, &error));
  return json_null();
}

json_t *upgrade(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  return json_boolean(CHECK(stanchion_lease_upgrade(lease_of(self, request), &error)) != STANCHION_BUSY);
}

json_t *downgrade(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  CHECK(stanchion_lease_downgrade(lease_of(self, request), &error));
  return json_null();
}

json_t *release(actor *self, json_t *request) {
  stanchion_error *error = NULL;
  int64_t cooldown = whole(self, request, "cooldown_ms", NOT_GIVEN);
  if (cooldown == NOT_GIVEN) {
    CHECK(stanchion_lease_release(lease_of(self, request), &error));
  } else {
    CHECK(stanchion_lease_release_with_cooldown(lease_of(self, request), cooldown, &error));
  }
  return json_null();
}

json_t *detach(actor *self, json_t *request) {
  stanchion_text handle;
  stanchion_error *error = NULL;
  int64_t ttl = whole(self, request, "ttl_ms", HANDLE_TTL_MS);
  CHECK(stanchion_lease_detach(lease_of(self, request), ttl, &handle, &error));
  return shown_text(handle);
}
