/* Read-write locks, semaphores, several locks at once, owners that come in again. */
#include <pthread.h>

#include "check.h"

#define INVALID(call) EXPECT(STANCHION_ERR_INVALID_ARGUMENT, call)

static stanchion_lock_options trying(void) {
    stanchion_lock_options options = lock_options();
    options.wait_ms = 0;
    return options;
}

static void release(stanchion_lease lease) {
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
}

TEST(many_read_or_one_writes) {
    stanchion_client client = opened();
    const char *name = unique("rw");
    const stanchion_lock_options try_it = trying();
    stanchion_lease readers[2] = {0, 0}, writer = 0, other = 7;
    for (int index = 0; index < 2; index++) OK(stanchion_read_lock_acquire(client, T(name), NULL, &readers[index], &err));
    CHECK(stanchion_lease_fence(readers[1]) > stanchion_lease_fence(readers[0]));
    EXPECT(STANCHION_BUSY, stanchion_write_lock_acquire(client, T(name), &try_it, &other, &err));
    EXPECT(STANCHION_BUSY, stanchion_rw_lock_is_locked(client, T(name), &err));
    for (int index = 0; index < 2; index++) release(readers[index]);
    OK(stanchion_rw_lock_is_locked(client, T(name), &err));
    OK(stanchion_write_lock_acquire(client, T(name), NULL, &writer, &err));
    EXPECT(STANCHION_BUSY, stanchion_read_lock_acquire(client, T(name), &try_it, &other, &err));
    EXPECT(STANCHION_BUSY, stanchion_write_lock_acquire(client, T(name), &try_it, &other, &err));
    CHECK(other == 7);
    OK(stanchion_rw_lock_break_lease(client, T(name), &err));
    EXPECT(STANCHION_ABSENT, stanchion_rw_lock_break_lease(client, T(name), &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_release(writer, &err));
    stanchion_lease_free(writer);
    stanchion_client_free(client);
}

TEST(a_writer_becomes_a_reader) {
    stanchion_client client = opened();
    const char *name = unique("downgrade");
    const stanchion_lock_options try_it = trying();
    stanchion_lease writer = 0, reader = 0, other = 7, exclusive = acquired(client, name);
    OK(stanchion_write_lock_acquire(client, T(name), NULL, &writer, &err));
    int64_t fence = stanchion_lease_fence(writer);
    OK(stanchion_lease_downgrade(writer, &err));
    OK(stanchion_lease_upgrade(writer, &err));
    CHECK(stanchion_lease_fence(writer) > fence);
    fence = stanchion_lease_fence(writer);
    OK(stanchion_lease_downgrade(writer, &err));
    OK(stanchion_lease_downgrade(writer, &err));
    CHECK(stanchion_lease_fence(writer) == fence && stanchion_lease_is_valid(writer) == 1);
    OK(stanchion_read_lock_acquire(client, T(name), &try_it, &reader, &err));
    EXPECT(STANCHION_BUSY, stanchion_write_lock_acquire(client, T(name), &try_it, &other, &err));
    INVALID(stanchion_lease_downgrade(exclusive, &err));
    release(writer);
    OK(stanchion_lease_release(reader, &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_downgrade(reader, &err));
    stanchion_lease_free(reader);
    release(exclusive);
    stanchion_client_free(client);
}

static stanchion_client shared;
static const char *shared_name;
static stanchion_lease waited;

static void *write_it(void *nothing) {
    OK(stanchion_write_lock_acquire(shared, T(shared_name), NULL, &waited, &err));
    return nothing;
}

TEST(a_writer_waits_for_readers_and_is_not_overtaken) {
    shared = opened();
    shared_name = unique("waits");
    stanchion_lease reader = 0, later = 0;
    OK(stanchion_read_lock_acquire(shared, T(shared_name), NULL, &reader, &err));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, write_it, NULL) == 0);
    const stanchion_lock_options try_it = trying();
    /* Until the writer is in line. */
    int32_t status = STANCHION_OK;
    for (int turns = 0; status != STANCHION_BUSY && turns < 5000; turns++) {
        status = stanchion_read_lock_acquire(shared, T(shared_name), &try_it, &later, NULL);
        if (status == STANCHION_OK) release(later);
        pause_ms(1);
    }
    CHECK(status == STANCHION_BUSY);
    release(reader);
    CHECK(pthread_join(thread, NULL) == 0);
    EXPECT(STANCHION_BUSY, stanchion_read_lock_acquire(shared, T(shared_name), &try_it, &later, &err));
    release(waited);
    stanchion_client_free(shared);
}

TEST(a_semaphore_has_permits) {
    stanchion_client client = opened();
    const char *name = unique("permits");
    stanchion_lock_options options = trying();
    stanchion_lease one = 0, two = 0, other = 7;
    OK(stanchion_semaphore_is_locked(client, T(name), &err));
    OK(stanchion_semaphore_acquire(client, T(name), 3, &options, &one, &err));
    options.weight = 2;
    OK(stanchion_semaphore_acquire(client, T(name), 3, &options, &two, &err));
    EXPECT(STANCHION_BUSY, stanchion_semaphore_acquire(client, T(name), 3, &options, &other, &err));
    EXPECT(STANCHION_BUSY, stanchion_semaphore_is_locked(client, T(name), &err));
    INVALID(stanchion_semaphore_acquire(client, T(name), 4, &options, &other, &err));
    INVALID(stanchion_lease_downgrade(one, &err));
    release(two);
    OK(stanchion_semaphore_acquire(client, T(name), 3, &options, &two, &err));
    OK(stanchion_semaphore_break_lease(client, T(name), &err));
    EXPECT(STANCHION_ABSENT, stanchion_semaphore_break_lease(client, T(name), &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_release(one, &err));
    CHECK(other == 7);
    stanchion_lease_free(one);
    stanchion_lease_free(two);
    stanchion_client_free(client);
}

TEST(permits_and_weights_out_of_range) {
    stanchion_client client = opened();
    const char *name = unique("range");
    static const int64_t bad[] = {-2, 0, INT64_MIN, INT64_MAX, 1000001, 1LL << 32, (1LL << 32) + 1};
    stanchion_lease lease = 7;
    for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
        stanchion_lock_options options = trying();
        INVALID(stanchion_semaphore_acquire(client, T(name), bad[index], &options, &lease, &err));
        options.weight = bad[index];
        INVALID(stanchion_semaphore_acquire(client, T(name), 3, &options, &lease, &err));
    }
    INVALID(stanchion_semaphore_acquire(client, T(name), -1, NULL, &lease, &err));
    stanchion_lock_options options = trying();
    options.weight = 1;
    const stanchion_text names[] = {{"a", 1}, {"b", 1}};
    INVALID(stanchion_lock_acquire(client, T(name), &options, &lease, &err));
    INVALID(stanchion_read_lock_acquire(client, T(name), &options, &lease, &err));
    INVALID(stanchion_write_lock_acquire(client, T(name), &options, &lease, &err));
    INVALID(stanchion_multi_lock_acquire(client, names, 2, &options, &lease, &err));
    CHECK(lease == 7);
    OK(stanchion_semaphore_is_locked(client, T(name), &err));
    stanchion_client_free(client);
}

TEST(holders_are_told_with_their_weights) {
    stanchion_client client = opened();
    const char *name = unique("holders");
    stanchion_lock_options options = lock_options();
    stanchion_lease leases[2] = {0, 0};
    stanchion_holders holders = 7;
    stanchion_holder holder;
    holder.struct_size = sizeof holder;
    OK(stanchion_semaphore_holders(client, T(name), &holders, &err));
    CHECK(stanchion_holders_len(holders) == 0);
    INVALID(stanchion_holders_at(holders, 0, &holder, &err));
    stanchion_holders_free(holders);
    for (int index = 0; index < 2; index++) {
        options.weight = index + 1;
        options.ttl_ms = 60000 * (index + 1);
        OK(stanchion_semaphore_acquire(client, T(name), 5, &options, &leases[index], &err));
    }
    OK(stanchion_semaphore_holders(client, T(name), &holders, &err));
    CHECK(stanchion_holders_len(holders) == 2);
    for (int index = 0; index < 2; index++) {
        OK(stanchion_holders_at(holders, (size_t)index, &holder, &err));
        CHECK(holder.held_as == STANCHION_HELD_LEASE && holder.weight == index + 1);
        CHECK(holder.fence == stanchion_lease_fence(leases[index]));
    }
    INVALID(stanchion_holders_at(holders, 2, &holder, &err));
    INVALID(stanchion_holders_at(holders, 0, NULL, &err));
    holder.struct_size = 8;
    INVALID(stanchion_holders_at(holders, 0, &holder, &err));
    stanchion_holders_free(holders);
    stanchion_holders_free(holders);
    for (int index = 0; index < 2; index++) release(leases[index]);
    holder.struct_size = sizeof holder;
    OK(stanchion_write_lock_acquire(client, T(name), NULL, &leases[0], &err));
    leases[1] = acquired(client, name);
    OK(stanchion_rw_lock_holders(client, T(name), &holders, &err));
    OK(stanchion_holders_at(holders, 0, &holder, &err));
    CHECK(stanchion_holders_len(holders) == 1 && holder.weight > 1);
    stanchion_holders_free(holders);
    OK(stanchion_lock_holders(client, T(name), &holders, &err));
    OK(stanchion_holders_at(holders, 0, &holder, &err));
    CHECK(stanchion_holders_len(holders) == 1 && holder.weight == 1);
    CHECK(holder.fence == stanchion_lease_fence(leases[1]));
    stanchion_holders_free(holders);
    INVALID(stanchion_lock_holders(client, T(name), NULL, &err));
    for (int index = 0; index < 2; index++) release(leases[index]);
    stanchion_client_free(client);
}

TEST(metrics_are_read_by_name_and_in_order) {
    stanchion_client client = opened();
    const char *granted = "stanchion_lock_acquires_total{outcome=\"granted\"}";
    stanchion_metrics metrics = 7;
    double value = 7;
    stanchion_text name, text;
    release(acquired(client, unique("counted")));
    OK(stanchion_client_metrics(client, &metrics, &err));
    OK(stanchion_metrics_get(metrics, T(granted), &value, &err));
    CHECK(value == 1);
    CHECK(stanchion_metrics_get(metrics, T("stanchion_nonsense"), &value, NULL) == STANCHION_ABSENT && value == 1);
    INVALID(stanchion_metrics_get(metrics, T(granted), NULL, &err));
    INVALID(stanchion_metrics_get(metrics, NULL, 3, &value, &err));
    CHECK(stanchion_metrics_len(metrics) > 50);
    OK(stanchion_metrics_at(metrics, 0, &name, &value, &err));
    CHECK(name.len > 10 && memcmp(name.data, "stanchion_", 10) == 0);
    OK(stanchion_metrics_at(metrics, 0, NULL, NULL, &err));
    INVALID(stanchion_metrics_at(metrics, stanchion_metrics_len(metrics), &name, &value, &err));
    OK(stanchion_metrics_text(metrics, &text, &err));
    CHECK(text.len > 1000 && text.data[text.len - 1] == '\n');
    INVALID(stanchion_client_metrics(client, NULL, &err));
    stanchion_metrics_free(metrics);
    stanchion_metrics_free(metrics);
    stanchion_client_free(client);
}

TEST(nobody_waits) {
    stanchion_client client = opened();
    const char *name = unique("waiters");
    stanchion_waiters waiters = 7;
    stanchion_waiter waiter;
    waiter.struct_size = sizeof waiter;
    stanchion_lease lease = acquired(client, name);
    OK(stanchion_lock_waiters(client, T(name), &waiters, &err));
    CHECK(stanchion_waiters_len(waiters) == 0);
    INVALID(stanchion_waiters_at(waiters, 0, &waiter, &err));
    stanchion_waiters_free(waiters);
    CHECK(stanchion_waiters_len(waiters) == 0);
    stanchion_waiters_free(waiters);
    INVALID(stanchion_lock_waiters(client, T(name), NULL, &err));
    release(lease);
    stanchion_client_free(client);
}

TEST(several_locks_are_held_together) {
    stanchion_client client = opened();
    char second[128];
    snprintf(second, sizeof second, "%s", unique("several"));
    const char *first = unique("all");
    const stanchion_text names[] = {{second, strlen(second)}, {first, strlen(first)}, {second, strlen(second)}};
    const stanchion_lock_options try_it = trying();
    stanchion_lease lease = 0, other = 7;
    OK(stanchion_multi_lock_acquire(client, names, 3, NULL, &lease, &err));
    CHECK(stanchion_lease_fences_len(lease) == 2);
    stanchion_text name = {NULL, 0};
    int64_t fences[2] = {0, 0};
    OK(stanchion_lease_fences_at(lease, 0, &name, &fences[0], &err));
    SAME(name, first);
    OK(stanchion_lease_fences_at(lease, 1, &name, &fences[1], &err));
    SAME(name, second);
    OK(stanchion_lease_fences_at(lease, 1, NULL, NULL, &err));
    INVALID(stanchion_lease_fences_at(lease, 2, &name, &fences[1], &err));
    CHECK(stanchion_lease_fence(lease) == fences[0] && fences[1] > 0);
    INVALID(stanchion_lease_downgrade(lease, &err));
    INVALID(stanchion_lease_detach(lease, 1000, &name, &err));
    OK(stanchion_lease_extend(lease, 60000, &err));
    release(lease);
    /* All or none. */
    stanchion_lease one = acquired(client, second);
    EXPECT(STANCHION_BUSY, stanchion_multi_lock_acquire(client, names, 3, &try_it, &other, &err));
    OK(stanchion_lock_is_locked(client, T(first), &err));
    CHECK(stanchion_lease_fences_len(one) == 1);
    release(one);
    CHECK(other == 7);
    stanchion_client_free(client);
}

TEST(several_that_are_no_names) {
    stanchion_client client = opened();
    const char *name = unique("none");
    const stanchion_text one = {name, strlen(name)}, bad[] = {one, {"\xff", 1}}, empty[] = {{"", 0}, one};
    const stanchion_text good[] = {one, {"b", 1}};
    stanchion_lock_options options = trying();
    stanchion_lease lease = 7;
    INVALID(stanchion_multi_lock_acquire(client, NULL, 0, &options, &lease, &err));
    INVALID(stanchion_multi_lock_acquire(client, NULL, 2, &options, &lease, &err));
    INVALID(stanchion_multi_lock_acquire(client, bad, SIZE_MAX, &options, &lease, &err));
    INVALID(stanchion_multi_lock_acquire(client, bad, 2, &options, &lease, &err));
    INVALID(stanchion_multi_lock_acquire(client, empty, 2, &options, &lease, &err));
    INVALID(stanchion_multi_lock_acquire(client, bad, 1, &options, NULL, &err));
    options.owner = bad[0];
    INVALID(stanchion_multi_lock_acquire(client, good, 2, &options, &lease, &err));
    CHECK(lease == 7);
    OK(stanchion_lock_is_locked(client, T(name), &err));
    stanchion_client_free(client);
}

TEST(an_owner_comes_in_again) {
    stanchion_client client = opened();
    const char *name = unique("owner");
    stanchion_lock_options options = trying(), others = trying();
    options.owner.data = "me";
    options.owner.len = 2;
    others.owner.data = "you";
    others.owner.len = 3;
    stanchion_lease outer = 0, inner = 0, dropped = 0, other = 7;
    OK(stanchion_lock_acquire(client, T(name), &options, &outer, &err));
    OK(stanchion_lock_acquire(client, T(name), &options, &inner, &err));
    OK(stanchion_lock_acquire(client, T(name), &options, &dropped, &err));
    CHECK(stanchion_lease_fence(outer) == stanchion_lease_fence(inner));
    EXPECT(STANCHION_BUSY, stanchion_lock_acquire(client, T(name), &others, &other, &err));
    release(outer);
    stanchion_lease_free(dropped);
    stanchion_lease_free(dropped);
    OK(stanchion_lease_check(inner, &err));
    EXPECT(STANCHION_BUSY, stanchion_lock_is_locked(client, T(name), &err));
    release(inner);
    OK(stanchion_lock_is_locked(client, T(name), &err));
    /* A reader does not become a writer. */
    OK(stanchion_read_lock_acquire(client, T(name), &options, &outer, &err));
    INVALID(stanchion_write_lock_acquire(client, T(name), &options, &other, &err));
    release(outer);
    static const stanchion_text bad[] = {{"", 0}, {"\n", 1}, {"\xff", 1}, {NULL, 1}};
    for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
        options.owner = bad[index];
        INVALID(stanchion_lock_acquire(client, T(name), &options, &other, &err));
    }
    CHECK(other == 7);
    stanchion_client_free(client);
}

TEST(an_owner_that_frees_its_last_lease_lets_others_in) {
    stanchion_client client = opened();
    const char *name = unique("frees");
    stanchion_lock_options options = lock_options();
    options.owner.data = "me";
    options.owner.len = 2;
    stanchion_lease outer = 0, inner = 0;
    OK(stanchion_lock_acquire(client, T(name), &options, &outer, &err));
    OK(stanchion_lock_acquire(client, T(name), &options, &inner, &err));
    stanchion_lease_free(outer);
    OK(stanchion_lease_check(inner, &err));
    stanchion_lease_free(inner);
    int32_t done = 0;
    OK(stanchion_client_linger(client, 10000, &done, &err));
    CHECK(done == 1);
    OK(stanchion_lock_is_locked(client, T(name), &err));
    stanchion_client_free(client);
}
