/* Forked children: a client goes on, what is held stays the parent's. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

#define FORKED(call) EXPECT(STANCHION_ERR_FORKED, call)

static stanchion_client client;
static stanchion_lease lease;
static stanchion_claim claim;
static stanchion_worker worker;
static char name[128];

static void child_of_a_holder(void) {
    FORKED(stanchion_lease_check(lease, &err));
    FORKED(stanchion_lease_extend(lease, 1000, &err));
    FORKED(stanchion_lease_release(lease, &err));
    CHECK(stanchion_lease_is_valid(lease) == 0 && stanchion_lease_remaining_ms(lease) == 0);
    FORKED(stanchion_claim_ack(claim, &err));
    FORKED(stanchion_claim_extend(claim, 1000, &err));
    SAME(info(claim).id, "task");
    stanchion_claim other = 7;
    FORKED(stanchion_worker_poll(worker, 1000, &other, &err));
    FORKED(stanchion_worker_stop(worker, &err));
    FORKED(stanchion_worker_complete(worker, claim, &err));
    stanchion_lease_free(lease);
    stanchion_claim_free(claim);
    stanchion_worker_free(worker);
    if (is_memory()) {
        FORKED(stanchion_lock_is_locked(client, T(name), &err));
        return;
    }
    /* The same client goes on, and sees that the parent has the lock. */
    EXPECT(STANCHION_BUSY, stanchion_lock_is_locked(client, T(name), &err));
    stanchion_lease own = acquired(client, unique("child"));
    OK(stanchion_lease_release(own, &err));
    stanchion_lease_free(own);
    const char *queue = unique("child");
    enqueued(client, queue, "a");
    stanchion_claim mine = claimed(client, queue);
    OK(stanchion_claim_ack(mine, &err));
    stanchion_claim_free(mine);
    int32_t done = 0;
    OK(stanchion_client_linger(client, 10000, &done, &err));
    CHECK(done == 1);
    stanchion_client_free(client);
}

TEST(what_is_held_stays_the_parents) {
    client = opened();
    snprintf(name, sizeof name, "%s", unique("held"));
    lease = acquired(client, name);
    enqueued(client, name, "task");
    claim = claimed(client, name);
    OK(stanchion_worker_open(client, T(unique("worker")), NULL, &worker, &err));
    CHECK(in_child(child_of_a_holder));
    CHECK(in_child(child_of_a_holder));
    OK(stanchion_lease_extend(lease, 60000, &err));
    OK(stanchion_lease_release(lease, &err));
    OK(stanchion_claim_ack(claim, &err));
    OK(stanchion_worker_stop(worker, &err));
    EXPECT(STANCHION_OVER, stanchion_worker_poll(worker, 10000, &claim, &err));
    stanchion_lease_free(lease);
    stanchion_claim_free(claim);
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

static int stop;

static void *churn(void *nothing) {
    stanchion_clock clock = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        OK(stanchion_clock_new(&clock, &err));
        OK(stanchion_clock_advance(clock, 1, &err));
        stanchion_clock_free(clock);
        if (!is_memory()) EXPECT(STANCHION_BUSY, stanchion_lock_is_locked(client, T(name), &err));
    }
    return nothing;
}

static void child_of_many_threads(void) {
    stanchion_clock clock = 0;
    OK(stanchion_clock_new(&clock, &err));
    stanchion_clock_free(clock);
    if (!is_memory()) EXPECT(STANCHION_BUSY, stanchion_lock_is_locked(client, T(name), &err));
}

TEST(a_child_inherits_no_lock_of_the_table) {
    client = opened();
    snprintf(name, sizeof name, "%s", unique("churn"));
    lease = acquired(client, name);
    pthread_t threads[2];
    for (int index = 0; index < 2; index++) CHECK(pthread_create(&threads[index], NULL, churn, NULL) == 0);
    for (int turn = 0; turn < 30; turn++) CHECK(in_child(child_of_many_threads));
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    for (int index = 0; index < 2; index++) CHECK(pthread_join(threads[index], NULL) == 0);
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

static void child_that_exits(void) { exit(0); }

TEST(a_child_that_exits_releases_nothing) {
    client = opened();
    snprintf(name, sizeof name, "%s", unique("exits"));
    lease = acquired(client, name);
    CHECK(in_child(child_that_exits));
    OK(stanchion_lease_check(lease, &err));
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

static void child_of_an_owner(void) {
    stanchion_lock_options options = lock_options();
    options.owner.data = "me";
    options.owner.len = 2;
    options.wait_ms = 0;
    stanchion_lease own = 7;
    EXPECT(is_memory() ? STANCHION_ERR_FORKED : STANCHION_BUSY, stanchion_lock_acquire(client, T(name), &options, &own, &err));
    FORKED(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    CHECK(own == 7);
}

TEST(an_owner_is_not_inside_in_a_child) {
    client = opened();
    snprintf(name, sizeof name, "%s", unique("owner"));
    stanchion_lock_options options = lock_options();
    options.owner.data = "me";
    options.owner.len = 2;
    OK(stanchion_lock_acquire(client, T(name), &options, &lease, &err));
    CHECK(in_child(child_of_an_owner));
    OK(stanchion_lease_check(lease, &err));
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}
