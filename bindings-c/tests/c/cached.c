/* Cached values: begin, get, store. */
#include <pthread.h>

#include "check.h"

#define INVALID(call) EXPECT(STANCHION_ERR_INVALID_ARGUMENT, call)

static stanchion_cached_options fresh(void) {
    stanchion_cached_options options;
    stanchion_cached_options_init(&options, sizeof options);
    options.ttl_ms = 60000;
    return options;
}

static stanchion_cached begun(stanchion_client client, const char *name, int32_t status) {
    const stanchion_cached_options options = fresh();
    stanchion_cached cached = 0;
    EXPECT(status, stanchion_cached_begin(client, T(name), &options, &cached, &err));
    CHECK(cached != 0);
    return cached;
}

static void holds(stanchion_client client, const char *name, const void *wanted, size_t len) {
    stanchion_cached cached = begun(client, name, STANCHION_OK);
    const void *value = NULL;
    size_t value_len = 7;
    OK(stanchion_cached_get(cached, &value, &value_len, &err));
    CHECK(value_len == len && memcmp(value, wanted, len) == 0);
    INVALID(stanchion_cached_store(cached, "x", 1, &err));
    CHECK(stanchion_cached_is_valid(cached) == 0);
    stanchion_cached_free(cached);
}

TEST(a_value_is_computed_once) {
    stanchion_client client = opened();
    const char *name = unique("value");
    const char bytes[] = {'a', 0, (char)0xff, '\n'};
    stanchion_cached cached = begun(client, name, STANCHION_COMPUTE);
    CHECK(stanchion_cached_is_valid(cached) == 1);
    INVALID(stanchion_cached_get(cached, NULL, NULL, &err));
    OK(stanchion_cached_store(cached, bytes, sizeof bytes, &err));
    EXPECT(STANCHION_NOT_STORED, stanchion_cached_store(cached, bytes, sizeof bytes, &err));
    stanchion_cached_free(cached);
    stanchion_cached_free(cached);
    holds(client, name, bytes, sizeof bytes);
    OK(stanchion_invalidate(client, T(name), &err));
    cached = begun(client, name, STANCHION_COMPUTE);
    OK(stanchion_cached_store(cached, NULL, 0, &err));
    stanchion_cached_free(cached);
    holds(client, name, "", 0);
    stanchion_client_free(client);
}

TEST(what_is_not_stored_is_left_to_the_next) {
    stanchion_client client = opened();
    const char *name = unique("left");
    stanchion_cached first = begun(client, name, STANCHION_COMPUTE);
    stanchion_cached_options options = fresh();
    stanchion_cached other = 7;
    options.wait_ms = 0;
    EXPECT(STANCHION_ERR_LOCK_TIMEOUT, stanchion_cached_begin(client, T(name), &options, &other, &err));
    CHECK(other == 7);
    stanchion_cached_free(first);
    stanchion_cached next = begun(client, name, STANCHION_COMPUTE);
    OK(stanchion_invalidate(client, T(name), &err));
    EXPECT(STANCHION_NOT_STORED, stanchion_cached_store(next, "late", 4, &err));
    stanchion_cached_free(next);
    stanchion_client_free(client);
}

struct waiter {
    stanchion_client client;
    const char *name;
};

static void *wait_for_value(void *it) {
    struct waiter *waiter = (struct waiter *)it;
    holds(waiter->client, waiter->name, "value", 5);
    return NULL;
}

TEST(who_waits_gets_the_value) {
    stanchion_client client = opened();
    struct waiter waiter = {client, unique("waited")};
    stanchion_cached cached = begun(client, waiter.name, STANCHION_COMPUTE);
    pthread_t threads[4];
    for (int index = 0; index < 4; index++) pthread_create(&threads[index], NULL, wait_for_value, &waiter);
    OK(stanchion_cached_store(cached, "value", 5, &err));
    for (int index = 0; index < 4; index++) pthread_join(threads[index], NULL);
    stanchion_cached_free(cached);
    stanchion_client_free(client);
}

TEST(a_wait_for_a_value_is_cancelled) {
    stanchion_client client = opened();
    const char *name = unique("cancelled");
    stanchion_cached first = begun(client, name, STANCHION_COMPUTE), other = 7;
    const int32_t cancel = 1;
    stanchion_cached_options options = fresh();
    options.cancel = &cancel;
    EXPECT(STANCHION_ERR_CANCELLED, stanchion_cached_begin(client, T(name), &options, &other, &err));
    CHECK(other == 7);
    stanchion_cached_free(first);
    stanchion_client_free(client);
}

TEST(bad_cached_arguments) {
    stanchion_client client = opened();
    stanchion_cached out = 7;
    stanchion_cached_options options = fresh();
    INVALID(stanchion_cached_begin(client, T("a"), NULL, &out, &err));
    INVALID(stanchion_cached_begin(client, T(""), &options, &out, &err));
    INVALID(stanchion_cached_begin(client, T("a"), &options, NULL, &err));
    options.beta = -2;
    INVALID(stanchion_cached_begin(client, T("a"), &options, &out, &err));
    options = fresh();
    options.ttl_ms = 0;
    INVALID(stanchion_cached_begin(client, T("a"), &options, &out, &err));
    options = fresh();
    options.struct_size = 3;
    INVALID(stanchion_cached_begin(client, T("a"), &options, &out, &err));
    options = fresh();
    options.lease_ms = -5;
    INVALID(stanchion_cached_begin(client, T("a"), &options, &out, &err));
    CHECK(out == 7);
    INVALID(stanchion_invalidate(client, T(""), &err));
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_cached_store(12345, "x", 1, &err));
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_cached_get(client, NULL, NULL, &err));
    stanchion_cached_free(0);
    stanchion_client_free(client);
}
