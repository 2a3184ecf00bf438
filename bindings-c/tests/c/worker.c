/* Workers: poll, work, settle. */
#include <pthread.h>

#include "check.h"

static stanchion_worker started(stanchion_client client, const char *queue, int64_t concurrency, int32_t until_empty) {
    stanchion_worker_options options;
    stanchion_worker_options_init(&options, sizeof options);
    options.concurrency = concurrency;
    options.until_empty = until_empty;
    stanchion_worker worker = 0;
    OK(stanchion_worker_open(client, T(queue), &options, &worker, &err));
    CHECK(worker > 0);
    return worker;
}

static stanchion_worker_report report(stanchion_worker worker) {
    stanchion_worker_report found;
    found.struct_size = sizeof found;
    OK(stanchion_worker_get_report(worker, &found, &err));
    return found;
}

/* How many events of this kind there were; drops the others. */
static int events(stanchion_worker worker, int32_t kind, const char *id) {
    stanchion_worker_event event;
    event.struct_size = sizeof event;
    int found = 0;
    while (stanchion_worker_get_event(worker, &event, NULL) == STANCHION_OK) {
        found += event.kind == kind && strcmp(event.id, id) == 0;
    }
    return found;
}

static stanchion_claim polled(stanchion_worker worker) {
    stanchion_claim claim = 0;
    OK(stanchion_worker_poll(worker, 10000, &claim, &err));
    return claim;
}

TEST(a_worker_works_until_the_queue_is_empty) {
    stanchion_client client = opened();
    const char *queue = unique("until-empty");
    char id[8];
    for (int index = 0; index < 20; index++) {
        snprintf(id, sizeof id, "%d", index);
        enqueued(client, queue, id);
    }
    stanchion_worker worker = started(client, queue, 4, 1);
    stanchion_claim claim = 0;
    int32_t status, tasks = 0;
    while ((status = stanchion_worker_poll(worker, 10000, &claim, NULL)) == STANCHION_OK) {
        CHECK(info(claim).attempt == 1);
        OK(stanchion_worker_complete(worker, claim, &err));
        EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_worker_complete(worker, claim, &err));
        tasks++;
    }
    CHECK(status == STANCHION_OVER && tasks == 20 && report(worker).completed == 20);
    EXPECT(STANCHION_OVER, stanchion_worker_poll(worker, 0, &claim, &err));
    stanchion_worker_free(worker);
    stanchion_worker_free(worker);
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_worker_poll(worker, 0, &claim, &err));
    CHECK(stats(client, queue).acked == 20);
    stanchion_client_free(client);
}

static stanchion_worker shared;
static int worked;

static void *work(void *nothing) {
    stanchion_claim claim = 0;
    while (stanchion_worker_poll(shared, 10000, &claim, NULL) == STANCHION_OK) {
        __atomic_fetch_add(&worked, 1, __ATOMIC_SEQ_CST);
        OK(stanchion_worker_complete(shared, claim, &err));
    }
    return nothing;
}

TEST(several_threads_are_the_hands_of_one_worker) {
    stanchion_client client = opened();
    const char *queue = unique("hands");
    char id[8];
    for (int index = 0; index < 100; index++) {
        snprintf(id, sizeof id, "%d", index);
        enqueued(client, queue, id);
    }
    shared = started(client, queue, 4, 1);
    pthread_t threads[4];
    for (int index = 0; index < 4; index++) CHECK(pthread_create(&threads[index], NULL, work, NULL) == 0);
    for (int index = 0; index < 4; index++) CHECK(pthread_join(threads[index], NULL) == 0);
    CHECK(worked == 100 && report(shared).completed == 100);
    stanchion_worker_free(shared);
    stanchion_client_free(client);
}

TEST(what_fails_is_tried_again_or_dead) {
    stanchion_client client = opened();
    const char *queue = unique("fails");
    enqueued(client, queue, "again");
    stanchion_task once = task("once");
    once.max_attempts = 1;
    OK(stanchion_queue_enqueue(client, T(queue), &once, NULL, &err));
    stanchion_worker worker = started(client, queue, 1, 1);
    stanchion_claim claim = 0;
    while (stanchion_worker_poll(worker, 10000, &claim, NULL) == STANCHION_OK) {
        OK(stanchion_worker_fail(worker, claim, T("no luck"), &err));
    }
    stanchion_worker_report now = report(worker);
    CHECK(now.failed == 2 && now.dead == 1 && now.completed == 0 && now.lost == 0);
    CHECK(events(worker, STANCHION_EVENT_DEAD, "once") == 1);
    stanchion_worker_event event;
    event.struct_size = sizeof event;
    EXPECT(STANCHION_EMPTY, stanchion_worker_get_event(worker, &event, &err));
    CHECK(stats(client, queue).scheduled == 1 && stats(client, queue).dead == 1);
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

TEST(a_stopped_worker_drains) {
    stanchion_client client = opened();
    const char *queue = unique("stop");
    enqueued(client, queue, "a");
    stanchion_worker worker = started(client, queue, 1, 0);
    stanchion_claim claim = polled(worker), none = 7;
    OK(stanchion_worker_stop(worker, &err));
    enqueued(client, queue, "b");
    EXPECT(STANCHION_EMPTY, stanchion_worker_poll(worker, 20, &none, &err));
    CHECK(none == 7);
    OK(stanchion_worker_complete(worker, claim, &err));
    EXPECT(STANCHION_OVER, stanchion_worker_poll(worker, 10000, &none, &err));
    CHECK(report(worker).completed == 1 && events(worker, STANCHION_EVENT_COMPLETED, "a") == 1);
    CHECK(stats(client, queue).ready == 1);
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

TEST(a_stopped_workers_tasks_have_their_grace) {
    stanchion_client client = opened();
    const char *queue = unique("grace");
    enqueued(client, queue, "a");
    stanchion_worker_options options;
    stanchion_worker_options_init(&options, sizeof options);
    options.grace_ms = 100;
    stanchion_worker worker = 0;
    OK(stanchion_worker_open(client, T(queue), &options, &worker, &err));
    stanchion_claim claim = polled(worker), none = 0;
    OK(stanchion_worker_stop(worker, &err));
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claim, 10000, &err));
    CHECK(stanchion_claim_loss(claim) == STANCHION_LOSS_STOPPED);
    OK(stanchion_worker_fail(worker, claim, T("told to end"), &err));
    EXPECT(STANCHION_OVER, stanchion_worker_poll(worker, 10000, &none, &err));
    CHECK(report(worker).failed == 0 && report(worker).lost == 0 && stats(client, queue).ready == 1);
    stanchion_worker_free(worker);
    worker = started(client, queue, 1, 0);
    claim = polled(worker);
    CHECK(info(claim).attempt == 1);
    OK(stanchion_worker_hurry(worker, &err));
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claim, 10000, &err));
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

TEST(a_handler_may_settle_by_itself) {
    stanchion_client client = opened();
    const char *queue = unique("itself");
    enqueued(client, queue, "a");
    enqueued(client, queue, "b");
    enqueued(client, queue, "c");
    stanchion_worker worker = started(client, queue, 1, 1);
    stanchion_claim claim = polled(worker);
    OK(stanchion_claim_bury(claim, T("hopeless"), &err));
    OK(stanchion_worker_complete(worker, claim, &err));
    claim = polled(worker);
    OK(stanchion_claim_ack(claim, &err));
    /* To free it tells the worker, too. */
    stanchion_claim_free(claim);
    stanchion_claim_free(polled(worker));
    EXPECT(STANCHION_OVER, stanchion_worker_poll(worker, 10000, &claim, &err));
    stanchion_worker_report now = report(worker);
    CHECK(now.completed == 1 && now.dead == 1 && now.failed == 2);
    stanchion_stats left = stats(client, queue);
    CHECK(left.dead == 1 && left.acked == 1 && left.scheduled == 1);
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

TEST(a_freed_worker_lets_its_tasks_go) {
    stanchion_client client = opened();
    const char *queue = unique("let-go");
    enqueued(client, queue, "a");
    stanchion_worker worker = started(client, queue, 1, 0);
    stanchion_claim claim = polled(worker);
    stanchion_worker_free(worker);
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_worker_complete(worker, claim, &err));
    for (int turns = 0; stats(client, queue).scheduled == 0 && turns < 5000; turns++) pause_ms(1);
    CHECK(stats(client, queue).scheduled == 1);
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(a_freed_worker_gives_back_what_nobody_polled) {
    stanchion_client client = opened();
    const char *queue = unique("unpolled");
    enqueued(client, queue, "a");
    stanchion_worker worker = started(client, queue, 1, 0);
    for (int turns = 0; stats(client, queue).claimed == 0 && turns < 10000; turns++) pause_ms(1);
    CHECK(stats(client, queue).claimed == 1);
    stanchion_worker_free(worker);
    for (int turns = 0; stats(client, queue).ready == 0 && turns < 10000; turns++) pause_ms(1);
    CHECK(stats(client, queue).ready == 1);
    stanchion_client_free(client);
}

TEST(claims_of_others_are_refused) {
    stanchion_client client = opened();
    const char *queue = unique("others");
    enqueued(client, queue, "a");
    stanchion_claim claim = claimed(client, queue);
    stanchion_worker worker = started(client, queue, 1, 0);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_worker_complete(worker, claim, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_worker_fail(worker, claim, T("x"), &err));
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

static void *free_later(void *pause) {
    pause_ms(*(int *)pause);
    stanchion_worker_free(shared);
    return NULL;
}

TEST(a_poll_ends_when_its_worker_is_freed) {
    stanchion_client client = opened();
    int32_t status = 0;
    /* On a slow machine it may be freed before the poll begins: that is another case, and is tried again. */
    for (int pause = 50; status != STANCHION_OVER; pause *= 2) {
        CHECK(pause < 10000);
        shared = started(client, unique("poll"), 1, 0);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, free_later, &pause) == 0);
        stanchion_claim claim = 0;
        stanchion_error *err = NULL;
        status = stanchion_worker_poll(shared, 60000, &claim, &err);
        stanchion_error_free(err);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(status == STANCHION_OVER || status == STANCHION_ERR_INVALID_HANDLE);
    }
    stanchion_client_free(client);
}
