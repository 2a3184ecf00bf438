/* Locks and leases. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

TEST(a_lock_is_held_by_one) {
    stanchion_client client = opened();
    const char *name = unique("one");
    stanchion_lease lease = acquired(client, name), second = 7;
    stanchion_lock_options options = lock_options();
    options.wait_ms = 0;
    EXPECT(STANCHION_BUSY, stanchion_lock_acquire(client, T(name), &options, &second, &err));
    options.wait_ms = 20;
    EXPECT(STANCHION_ERR_LOCK_TIMEOUT, stanchion_lock_acquire(client, T(name), &options, &second, &err));
    CHECK(second == 7);
    EXPECT(STANCHION_BUSY, stanchion_lock_is_locked(client, T(name), &err));
    OK(stanchion_lease_check(lease, &err));
    OK(stanchion_lease_release(lease, &err));
    CHECK(stanchion_lease_is_valid(lease) == 0 && stanchion_lease_remaining_ms(lease) == 0);
    OK(stanchion_lock_is_locked(client, T(name), &err));
    stanchion_lease next = acquired(client, name);
    CHECK(stanchion_lease_fence(next) > stanchion_lease_fence(lease));
    stanchion_lease_free(lease);
    OK(stanchion_lease_release(next, &err));
    stanchion_lease_free(next);
    stanchion_client_free(client);
}

static stanchion_client shared;
static const char *shared_name;

static void *release_later(void *lease) {
    pause_ms(50);
    OK(stanchion_lease_release(*(stanchion_lease *)lease, &err));
    return NULL;
}

TEST(a_waiter_gets_the_lock_when_it_is_released) {
    shared = opened();
    shared_name = unique("wait");
    stanchion_lease lease = acquired(shared, shared_name);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, release_later, &lease) == 0);
    stanchion_lease next = acquired(shared, shared_name);
    CHECK(pthread_join(thread, NULL) == 0);
    stanchion_lease_free(lease);
    stanchion_lease_free(next);
    stanchion_client_free(shared);
}

TEST(a_lease_with_a_ttl_runs_out_and_says_so) {
    stanchion_client client = opened();
    stanchion_lock_options options = lock_options();
    options.ttl_ms = 1500;
    const char *name = unique("ttl");
    stanchion_lease lease = 0;
    OK(stanchion_lock_acquire(client, T(name), &options, &lease, &err));
    CHECK(stanchion_lease_remaining_ms(lease) <= 1500 && stanchion_lease_remaining_ms(lease) > 0);
    CHECK(stanchion_lease_loss(lease) == STANCHION_LOSS_NONE);
    EXPECT(STANCHION_LOST, stanchion_lease_wait_lost(lease, 10000, &err));
    CHECK(stanchion_lease_is_valid(lease) == 0 && stanchion_lease_loss(lease) == STANCHION_LOSS_EXPIRED);
    EXPECT(STANCHION_ERR_LEASE_EXPIRED, stanchion_lease_check(lease, &err));
    EXPECT(STANCHION_ERR_LEASE_EXPIRED, stanchion_lease_extend(lease, 1000, &err));
    /* The holder's deadline is a little before the store's. */
    for (int turns = 0; stanchion_lock_is_locked(client, T(name), NULL) == STANCHION_BUSY && turns < 5000; turns++) pause_ms(1);
    EXPECT(STANCHION_ERR_LEASE_EXPIRED, stanchion_lease_release(lease, &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(a_lease_is_renewed_if_asked_for) {
    stanchion_client client = opened();
    stanchion_lock_options options = lock_options();
    options.ttl_ms = 3000;
    options.renew = 1;
    options.max_hold_ms = 60000;
    stanchion_lease lease = 0;
    OK(stanchion_lock_acquire(client, T(unique("renewed")), &options, &lease, &err));
    OK(stanchion_lease_wait_lost(lease, 4000, &err));
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(extend_prolongs_and_never_shortens) {
    stanchion_client client = opened();
    stanchion_lock_options options = lock_options();
    options.ttl_ms = 5000;
    stanchion_lease lease = 0;
    OK(stanchion_lock_acquire(client, T(unique("extend")), &options, &lease, &err));
    OK(stanchion_lease_extend(lease, 60000, &err));
    CHECK(stanchion_lease_remaining_ms(lease) > 50000);
    OK(stanchion_lease_extend(lease, 100, &err));
    CHECK(stanchion_lease_remaining_ms(lease) > 50000);
    OK(stanchion_lease_release(lease, &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_extend(lease, 100, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(a_cooldown_keeps_the_lock_closed) {
    stanchion_client client = opened();
    const char *name = unique("cooldown");
    stanchion_lease lease = acquired(client, name);
    OK(stanchion_lease_release_with_cooldown(lease, 60000, &err));
    stanchion_lock_options options = lock_options();
    options.wait_ms = 0;
    stanchion_lease next = 0;
    EXPECT(STANCHION_BUSY, stanchion_lock_acquire(client, T(name), &options, &next, &err));
    stanchion_holder holder;
    holder.struct_size = sizeof holder;
    OK(stanchion_lock_holder(client, T(name), &holder, &err));
    CHECK(holder.held_as == STANCHION_HELD_COOLDOWN && holder.remaining_ms > 50000);
    OK(stanchion_lock_break_lease(client, T(name), &err));
    EXPECT(STANCHION_ABSENT, stanchion_lock_break_lease(client, T(name), &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(the_holder_is_told) {
    stanchion_connect_options connect;
    stanchion_connect_options_init(&connect, sizeof connect);
    connect.label.data = "the importer";
    connect.label.len = 12;
    stanchion_client client = 0;
    OK(stanchion_connect(T(store), &connect, &client, &err));
    const char *name = unique("holder");
    stanchion_holder holder;
    holder.struct_size = sizeof holder;
    EXPECT(STANCHION_ABSENT, stanchion_lock_holder(client, T(name), &holder, &err));
    stanchion_lease lease = acquired(client, name);
    OK(stanchion_lock_holder(client, T(name), &holder, &err));
    CHECK(holder.held_as == STANCHION_HELD_LEASE && holder.fence == stanchion_lease_fence(lease));
    CHECK(strcmp(holder.label, "the importer") == 0 && strlen(holder.host) > 0);
    CHECK(holder.pid == (int32_t)getpid() && holder.waiters == 0);
    CHECK(holder.remaining_ms > 20000 && holder.since_ms > 0);
    stanchion_lease_info found;
    found.struct_size = sizeof found;
    OK(stanchion_lease_get(lease, &found, &err));
    SAME(found.name, name);
    CHECK(found.token.len == 55 && found.fence == stanchion_lease_fence(lease));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(a_broken_lease_is_lost) {
    stanchion_client client = opened();
    const char *name = unique("broken");
    stanchion_lock_options options = lock_options();
    options.ttl_ms = 3000;
    options.renew = 1;
    stanchion_lease lease = 0;
    OK(stanchion_lock_acquire(client, T(name), &options, &lease, &err));
    OK(stanchion_lock_break_lease(client, T(name), &err));
    EXPECT(STANCHION_LOST, stanchion_lease_wait_lost(lease, 10000, &err));
    CHECK(stanchion_lease_loss(lease) == STANCHION_LOSS_BROKEN);
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_check(lease, &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(a_handle_of_text_resumes_a_lease_once) {
    stanchion_client client = opened();
    const char *name = unique("resume");
    stanchion_lease lease = acquired(client, name), resumed = 0, again = 7;
    stanchion_text text;
    OK(stanchion_lease_detach(lease, 60000, &text, &err));
    CHECK(stanchion_lease_is_valid(lease) == 0);
    OK(stanchion_client_resume_lease(client, text.data, text.len, &resumed, &err));
    CHECK(stanchion_lease_fence(resumed) == stanchion_lease_fence(lease));
    CHECK(stanchion_lease_is_valid(resumed) == 1);
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_client_resume_lease(client, text.data, text.len, &again, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_client_resume_lease(client, T("{}"), &again, &err));
    CHECK(again == 7);
    stanchion_lease_free(lease);
    EXPECT(STANCHION_BUSY, stanchion_lock_is_locked(client, T(name), &err));
    OK(stanchion_lease_release(resumed, &err));
    stanchion_lease_free(resumed);
    stanchion_client_free(client);
}

TEST(release_all_releases_what_is_held) {
    stanchion_client client = opened();
    const char *first = unique("all"), *second = unique("all");
    stanchion_lease leases[2] = {acquired(client, first), acquired(client, second)};
    size_t count = 0;
    OK(stanchion_client_release_all(client, &count, &err));
    CHECK(count == 2);
    OK(stanchion_client_release_all(client, NULL, &err));
    OK(stanchion_lock_is_locked(client, T(first), &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_release(leases[0], &err));
    stanchion_lease_free(leases[0]);
    stanchion_lease_free(leases[1]);
    stanchion_client_free(client);
}

TEST(a_freed_lease_is_released_in_the_background) {
    stanchion_client client = opened();
    const char *name = unique("freed");
    stanchion_lease_free(acquired(client, name));
    int32_t done = 0;
    OK(stanchion_client_linger(client, 10000, &done, &err));
    CHECK(done == 1);
    OK(stanchion_lock_is_locked(client, T(name), &err));
    stanchion_client_free(client);
}

static int32_t cancelled;

static void *cancel_later(void *nothing) {
    pause_ms(50);
    __atomic_store_n(&cancelled, 1, __ATOMIC_SEQ_CST);
    return nothing;
}

TEST(a_wait_can_be_cancelled) {
    stanchion_client client = opened();
    const char *name = unique("cancel");
    stanchion_lease lease = acquired(client, name), second = 7;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel_later, NULL) == 0);
    stanchion_lock_options options = lock_options();
    options.cancel = &cancelled;
    options.wait_ms = 60000;
    EXPECT(STANCHION_ERR_CANCELLED, stanchion_lock_acquire(client, T(name), &options, &second, &err));
    stanchion_claim claim = 7;
    size_t count = 7;
    stanchion_claim_options claiming = claim_options();
    claiming.cancel = &cancelled;
    claiming.wait_ms = 60000;
    EXPECT(STANCHION_ERR_CANCELLED, stanchion_queue_claim(client, T(name), &claiming, &claim, 1, &count, &err));
    CHECK(second == 7 && claim == 7 && count == 7);
    CHECK(pthread_join(thread, NULL) == 0);
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(names_of_locks_are_listed) {
    stanchion_client client = opened();
    const char *name = unique("listed");
    stanchion_lease lease = acquired(client, name);
    uint64_t page = 0;
    int found = 0;
    do {
        stanchion_names names = 0;
        OK(stanchion_client_locks(client, page, &names, &page, &err));
        for (size_t index = 0; index < stanchion_names_len(names); index++) {
            stanchion_text one;
            OK(stanchion_names_at(names, index, &one, &err));
            found += one.len == strlen(name) && memcmp(one.data, name, one.len) == 0;
        }
        stanchion_text beyond;
        EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_names_at(names, stanchion_names_len(names), &beyond, &err));
        stanchion_names_free(names);
    } while (page != 0);
    CHECK(found >= 1);
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(a_test_moves_the_time) {
    if (!is_memory()) SKIP("only memory: stores have a clock that moves");
    stanchion_clock clock = 0;
    OK(stanchion_clock_new(&clock, &err));
    stanchion_connect_options connect;
    stanchion_connect_options_init(&connect, sizeof connect);
    connect.clock = clock;
    stanchion_client client = 0;
    OK(stanchion_connect(T("memory:"), &connect, &client, &err));
    EXPECT(STANCHION_ERR_UNSUPPORTED, stanchion_connect(T("redis://localhost"), &connect, &client, &err));
    stanchion_lock_options options = lock_options();
    options.ttl_ms = 3600000;
    stanchion_lease lease = 0;
    OK(stanchion_lock_acquire(client, T("hour"), &options, &lease, &err));
    OK(stanchion_clock_advance(clock, 3000000, &err));
    CHECK(stanchion_lease_is_valid(lease) == 1);
    OK(stanchion_clock_advance(clock, 1000000, &err));
    CHECK(stanchion_lease_is_valid(lease) == 0);
    stanchion_clock_free(clock);
    stanchion_clock_free(clock);
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_clock_advance(clock, 1, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

static void *waits_until_closed(void *unused) {
    (void)unused;
    stanchion_lease lease = 0;
    stanchion_lock_options options = lock_options();
    options.wait_ms = 60000;
    EXPECT(STANCHION_ERR_CLOSED, stanchion_lock_acquire(shared, T(shared_name), &options, &lease, &err));
    return NULL;
}

TEST(a_closed_client_has_released_its_leases_and_ends_what_waits) {
    const char *url = is_memory() ? "memory:closed" : store;
    stanchion_client other = 0;
    OK(stanchion_connect(T(url), NULL, &other, &err));
    OK(stanchion_connect(T(url), NULL, &shared, &err));
    shared_name = unique("busy");
    const char *name = unique("closed");
    stanchion_lease busy = acquired(other, shared_name), mine = acquired(shared, name);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waits_until_closed, NULL) == 0);
    stanchion_holder holder;
    holder.struct_size = sizeof holder;
    do {
        OK(stanchion_lock_holder(other, T(shared_name), &holder, &err));
    } while (holder.waiters == 0);
    size_t count = 7;
    OK(stanchion_client_close(shared, &count, &err));
    CHECK(count == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(stanchion_lock_is_locked(other, T(name), &err));
    EXPECT(STANCHION_ERR_CLOSED, stanchion_lock_is_locked(shared, T(name), &err));
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_lease_release(mine, &err));
    OK(stanchion_client_close(shared, &count, &err));
    CHECK(count == 0);
    stanchion_lease_free(mine);
    stanchion_client_free(shared);
    OK(stanchion_lease_release(busy, &err));
    stanchion_lease_free(busy);
    stanchion_client_free(other);
}
