/* What tasks say about their runs, and what becomes of these: timeouts, back-offs, results, progress, cancel. */
#include <pthread.h>
#include <stddef.h>

#include "check.h"

static stanchion_text view(const char *text) {
    stanchion_text view = {text, strlen(text)};
    return view;
}

static void put(stanchion_client client, const char *queue, stanchion_task one) {
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
}

/* A task that must be there; its texts live as long as the list. */
static stanchion_task_info found(stanchion_client client, const char *queue, const char *id, stanchion_tasks *list) {
    stanchion_task_info info;
    info.struct_size = sizeof info;
    OK(stanchion_queue_get(client, T(queue), T(id), list, &err));
    OK(stanchion_tasks_at(*list, 0, &info, &err));
    return info;
}

static stanchion_task_failure failure(stanchion_tasks list, size_t index) {
    stanchion_task_failure one;
    one.struct_size = sizeof one;
    OK(stanchion_tasks_failure_at(list, 0, index, &one, &err));
    return one;
}

/* A client of a store of its own, whose time the clock moves. */
static stanchion_client with_clock(stanchion_clock *clock) {
    stanchion_client client = 0;
    stanchion_connect_options options;
    stanchion_connect_options_init(&options, sizeof options);
    OK(stanchion_clock_new(clock, &err));
    options.clock = *clock;
    OK(stanchion_connect(T("memory:"), &options, &client, &err));
    return client;
}

static void result_is(stanchion_client client, const char *queue, const char *id, const char *wanted, int64_t version) {
    stanchion_result result = 0;
    stanchion_result_info info;
    info.struct_size = sizeof info;
    OK(stanchion_queue_result(client, T(queue), T(id), version, 10000, &result, &err));
    OK(stanchion_result_get(result, &info, &err));
    CHECK(info.result != NULL && info.result_len == strlen(wanted) && memcmp(info.result, wanted, info.result_len) == 0);
    CHECK(info.version > 0 && (version == -1 || info.version == version) && info.reason.data == NULL);
    stanchion_result_free(result);
    stanchion_result_free(result);
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_result_get(result, &info, &err));
}

TEST(what_a_task_says_about_its_runs) {
    stanchion_client client = opened();
    const char *queue = unique("says");
    const stanchion_header headers[1] = {{{"by", 2}, {"me", 2}}};
    stanchion_task one = task("a");
    one.headers = headers;
    one.header_count = 1;
    one.kind = view("send-welcome");
    one.timeout_ms = 90000;
    one.backoff = view("[1000,5000]");
    one.keep_result_ms = 60000;
    put(client, queue, one);
    stanchion_tasks list = 0;
    stanchion_task_info info_a = found(client, queue, "a", &list);
    SAME(info_a.kind, "send-welcome");
    SAME(info_a.backoff, "[1000,5000]");
    CHECK(info_a.timeout_ms == 90000 && info_a.header_count == 1 && info_a.failure_count == 0);
    CHECK(info_a.progress_len == 0 && info_a.cancelled == 0);
    stanchion_tasks_free(list);
    stanchion_claim claim = claimed(client, queue);
    SAME(info(claim).kind, "send-welcome");
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);

    one = task("b");
    one.backoff = view("{\"base\":10}");
    put(client, queue, one);
    stanchion_task_info info_b = found(client, queue, "b", &list);
    CHECK(info_b.kind.data == NULL && info_b.kind.len == 0 && info_b.timeout_ms == -1);
    SAME(info_b.backoff, "{\"base\":10,\"factor\":2.0,\"max\":25200000,\"jitter\":0.5}");
    stanchion_tasks_free(list);
    claim = claimed(client, queue);
    CHECK(info(claim).kind.data == NULL);
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(an_older_programs_structs_are_read_and_written_to_their_end) {
    stanchion_client client = opened();
    const char *queue = unique("older");
    stanchion_task two[2] = {task("a"), task("b")};
    two[0].kind = two[1].kind = view("kind");
    put(client, queue, two[0]);
    stanchion_claim claim = 0;
    size_t count = 0;
    stanchion_claim_options options = claim_options();
    options.struct_size = offsetof(stanchion_claim_options, timeout_ms);
    options.timeout_ms = -77;
    OK(stanchion_queue_claim(client, T(queue), &options, &claim, 1, &count, &err));
    stanchion_claim_info about;
    memset(&about, 170, sizeof about);
    const size_t untouched = about.kind.len;
    about.struct_size = offsetof(stanchion_claim_info, kind);
    OK(stanchion_claim_get(claim, &about, &err));
    SAME(about.id, "a");
    CHECK(about.kind.len == untouched);
    about.struct_size = offsetof(stanchion_claim_info, priority);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_claim_get(claim, &about, &err));
    stanchion_verdict verdict;
    stanchion_verdict_init(&verdict, sizeof verdict);
    verdict.struct_size = offsetof(stanchion_verdict, result);
    verdict.claim = claim;
    verdict.result = "x", verdict.result_len = 1;
    stanchion_answers answers = 0;
    OK(stanchion_queue_settle(client, T(queue), &verdict, 1, &answers, &err));
    OK(stanchion_answers_at(answers, 0, NULL, &err));
    stanchion_answers_free(answers);
    stanchion_claim_free(claim);
    stanchion_result none = 7;
    EXPECT(STANCHION_ABSENT, stanchion_queue_result(client, T(queue), T("a"), -1, 0, &none, &err));

    /* An array of them is as close as they were. */
    const size_t size = offsetof(stanchion_task, kind);
    unsigned char old[2 * offsetof(stanchion_task, kind)];
    for (int index = 0; index < 2; index++) {
        two[index].struct_size = size;
        memcpy(old + index * size, &two[index], size);
    }
    OK(stanchion_queue_enqueue_many(client, T(queue), (stanchion_task *)(void *)old, 2, &answers, &err));
    OK(stanchion_answers_at(answers, 1, NULL, &err));
    stanchion_answers_free(answers);
    stanchion_tasks list = 0;
    CHECK(found(client, queue, "b", &list).kind.data == NULL);
    stanchion_task_info shown;
    memset(&shown, 170, sizeof shown);
    shown.struct_size = offsetof(stanchion_task_info, kind);
    OK(stanchion_tasks_at(list, 0, &shown, &err));
    CHECK(shown.kind.len == untouched && shown.claimed_by_pid == -1);
    stanchion_tasks_free(list);
    stanchion_worker_options working;
    stanchion_worker_options_init(&working, sizeof working);
    working.struct_size = offsetof(stanchion_worker_options, timeout_ms);
    working.timeout_ms = -77;
    stanchion_worker worker = 0;
    OK(stanchion_worker_open(client, T(queue), &working, &worker, &err));
    stanchion_worker_free(worker);
    stanchion_client_free(client);
}

TEST(a_result_is_kept) {
    stanchion_client client = opened();
    const char *queue = unique("result");
    stanchion_task one = task("a");
    stanchion_enqueued put_in;
    put_in.struct_size = sizeof put_in;
    OK(stanchion_queue_enqueue(client, T(queue), &one, &put_in, &err));
    stanchion_result result = 7;
    EXPECT(STANCHION_PENDING, stanchion_queue_result(client, T(queue), T("a"), put_in.version, 1, &result, &err));
    stanchion_claim claim = claimed(client, queue);
    static const unsigned char bytes[] = {0, 255, 'x', 0};
    OK(stanchion_claim_ack_with(claim, bytes, sizeof bytes, &err));
    stanchion_claim_free(claim);
    OK(stanchion_queue_result(client, T(queue), T("a"), put_in.version, 0, &result, &err));
    stanchion_result_info info;
    info.struct_size = sizeof info;
    OK(stanchion_result_get(result, &info, &err));
    CHECK(info.result_len == sizeof bytes && memcmp(info.result, bytes, sizeof bytes) == 0);
    CHECK(info.version == put_in.version && info.reason.data == NULL);
    stanchion_result_free(result);
    result = 7;
    EXPECT(STANCHION_ABSENT, stanchion_queue_result(client, T(queue), T("never"), -1, 10000, &result, &err));
    CHECK(result == 7);

    enqueued(client, queue, "empty");
    claim = claimed(client, queue);
    OK(stanchion_claim_ack_with(claim, NULL, 0, &err));
    stanchion_claim_free(claim);
    result_is(client, queue, "empty", "", -1);
    stanchion_client_free(client);
}

TEST(results_are_settled_together) {
    stanchion_client client = opened();
    const char *queue = unique("together");
    const char *ids[] = {"a", "b", "c", "d"};
    stanchion_verdict verdicts[4];
    for (int index = 0; index < 4; index++) {
        enqueued(client, queue, ids[index]);
        stanchion_verdict_init(&verdicts[index], sizeof verdicts[index]);
        verdicts[index].claim = claimed(client, queue);
    }
    verdicts[0].result = "one", verdicts[0].result_len = 3;
    verdicts[1].result = "", verdicts[1].kind = STANCHION_ACK;
    verdicts[3].kind = STANCHION_BURY, verdicts[3].reason = view("no luck");
    stanchion_answers answers = 0;
    OK(stanchion_queue_settle(client, T(queue), verdicts, 4, &answers, &err));
    for (size_t index = 0; index < 4; index++) OK(stanchion_answers_at(answers, index, NULL, &err));
    stanchion_answers_free(answers);
    for (int index = 0; index < 4; index++) stanchion_claim_free(verdicts[index].claim);
    result_is(client, queue, "a", "one", -1);
    result_is(client, queue, "b", "", -1);
    stanchion_result result = 7;
    EXPECT(STANCHION_ABSENT, stanchion_queue_result(client, T(queue), T("c"), -1, 0, &result, &err));
    CHECK(result == 7);
    EXPECT(STANCHION_DEAD, stanchion_queue_result(client, T(queue), T("d"), -1, 0, &result, &err));
    stanchion_result_info info;
    info.struct_size = sizeof info;
    OK(stanchion_result_get(result, &info, &err));
    SAME(info.reason, "no luck");
    CHECK(info.result == NULL && info.result_len == 0 && info.version == 0);
    stanchion_result_free(result);
    stanchion_client_free(client);
}

static stanchion_client shared;
static char shared_queue[128];

static void *ack_later(void *nothing) {
    pause_ms(50);
    stanchion_claim claim = claimed(shared, shared_queue);
    OK(stanchion_claim_ack_with(claim, "late", 4, &err));
    stanchion_claim_free(claim);
    return nothing;
}

TEST(a_result_is_waited_for) {
    shared = opened();
    snprintf(shared_queue, sizeof shared_queue, "%s", unique("awaited"));
    enqueued(shared, shared_queue, "a");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ack_later, NULL) == 0);
    result_is(shared, shared_queue, "a", "late", -1);
    CHECK(pthread_join(thread, NULL) == 0);
    stanchion_client_free(shared);
}

TEST(progress_is_shown_until_the_run_ends) {
    stanchion_client client = opened();
    const char *queue = unique("progress");
    enqueued(client, queue, "a");
    stanchion_claim claim = claimed(client, queue);
    OK(stanchion_claim_progress(claim, "half", 4, &err));
    stanchion_tasks list = 0;
    stanchion_task_info shown = found(client, queue, "a", &list);
    CHECK(shown.progress_len == 4 && memcmp(shown.progress, "half", 4) == 0);
    stanchion_tasks_free(list);
    OK(stanchion_claim_nack(claim, 60000, T("later"), &err));
    stanchion_claim_free(claim);
    CHECK(found(client, queue, "a", &list).progress_len == 0);
    stanchion_tasks_free(list);
    stanchion_client_free(client);
}

TEST(failures_are_known_in_order) {
    stanchion_client client = opened();
    const char *queue = unique("failures");
    static const char *const reasons[] = {"one", "two", "three", "four", "five", "six"};
    stanchion_task one = task("a");
    one.backoff = view("[0]");
    put(client, queue, one);
    for (int index = 0; index < 6; index++) {
        stanchion_claim claim = claimed(client, queue);
        OK(stanchion_claim_nack(claim, -1, T(reasons[index]), &err));
        stanchion_claim_free(claim);
    }
    stanchion_tasks list = 0;
    CHECK(found(client, queue, "a", &list).failure_count == 5);
    for (size_t index = 0; index < 5; index++) SAME(failure(list, index).reason, reasons[index + 1]);
    CHECK(failure(list, 0).at_ms > 1000000000000 && failure(list, 0).at_ms <= failure(list, 4).at_ms);
    stanchion_task_failure none;
    none.struct_size = sizeof none;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_tasks_failure_at(list, 0, 5, &none, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_tasks_failure_at(list, 1, 0, &none, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_tasks_failure_at(list, 0, 0, NULL, &err));
    stanchion_tasks_free(list);
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_tasks_failure_at(list, 0, 0, &none, &err));
    stanchion_client_free(client);
}

TEST(a_run_that_takes_too_long_has_failed) {
    stanchion_clock clock = 0;
    stanchion_client client = with_clock(&clock);
    stanchion_task own = task("own"), other = task("other");
    own.timeout_ms = 80;
    put(client, "q", own);
    put(client, "q", other);
    stanchion_claim claims[2];
    size_t count = 0;
    stanchion_claim_options options = claim_options();
    options.timeout_ms = 500;
    options.renew = 1;
    OK(stanchion_queue_claim(client, T("q"), &options, claims, 2, &count, &err));
    CHECK(count == 2);
    OK(stanchion_clock_advance(clock, 100, &err));
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claims[0], 10000, &err));
    CHECK(stanchion_claim_loss(claims[0]) == STANCHION_LOSS_TIMEOUT && stanchion_claim_is_valid(claims[1]) == 1);
    EXPECT(STANCHION_ERR_LEASE_EXPIRED, stanchion_claim_extend(claims[0], 60000, &err));
    OK(stanchion_clock_advance(clock, 500, &err));
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claims[1], 10000, &err));
    CHECK(stanchion_claim_loss(claims[1]) == STANCHION_LOSS_TIMEOUT);
    stanchion_claim_free(claims[0]);
    stanchion_claim_free(claims[1]);
    stanchion_tasks list = 0;
    for (int tries = 0; tries < 2000; tries++, pause_ms(5)) {
        if (found(client, "q", "own", &list).failure_count == 1) break;
        stanchion_tasks_free(list);
    }
    SAME(failure(list, 0).reason, "timeout");
    stanchion_tasks_free(list);
    stanchion_client_free(client);
    stanchion_clock_free(clock);
}

TEST(a_worker_says_how_long_runs_may_take) {
    stanchion_client client = opened();
    const char *queue = unique("worker-timeout");
    stanchion_task one = task("a");
    one.max_attempts = 1;
    put(client, queue, one);
    stanchion_worker_options options;
    stanchion_worker_options_init(&options, sizeof options);
    options.timeout_ms = 100;
    options.until_empty = 1;
    stanchion_worker worker = 0;
    stanchion_claim claim = 0;
    OK(stanchion_worker_open(client, T(queue), &options, &worker, &err));
    OK(stanchion_worker_poll(worker, 10000, &claim, &err));
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claim, 10000, &err));
    CHECK(stanchion_claim_loss(claim) == STANCHION_LOSS_TIMEOUT);
    OK(stanchion_worker_complete(worker, claim, &err));
    EXPECT(STANCHION_OVER, stanchion_worker_poll(worker, 10000, &claim, &err));
    stanchion_worker_free(worker);
    stanchion_result result = 0;
    EXPECT(STANCHION_DEAD, stanchion_queue_result(client, T(queue), T("a"), -1, 10000, &result, &err));
    stanchion_result_free(result);
    stanchion_client_free(client);
}

TEST(a_worker_gives_a_result) {
    stanchion_client client = opened();
    const char *queue = unique("worker-result");
    enqueued(client, queue, "a");
    stanchion_worker worker = 0;
    stanchion_claim claim = 0;
    OK(stanchion_worker_open(client, T(queue), NULL, &worker, &err));
    OK(stanchion_worker_poll(worker, 10000, &claim, &err));
    OK(stanchion_claim_ack_with(claim, "done", 4, &err));
    OK(stanchion_worker_complete(worker, claim, &err));
    stanchion_worker_free(worker);
    result_is(client, queue, "a", "done", -1);
    stanchion_client_free(client);
}

TEST(a_task_is_cancelled) {
    stanchion_client client = opened();
    const char *queue = unique("cancel");
    EXPECT(STANCHION_ABSENT, stanchion_queue_cancel(client, T(queue), T("a"), &err));
    enqueued(client, queue, "a");
    OK(stanchion_queue_cancel(client, T(queue), T("a"), &err));
    CHECK(stats(client, queue).ready == 0);
    enqueued(client, queue, "a");
    stanchion_claim claim = claimed(client, queue);
    EXPECT(STANCHION_RUNNING, stanchion_queue_cancel(client, T(queue), T("a"), &err));
    stanchion_tasks list = 0;
    CHECK(found(client, queue, "a", &list).cancelled == 1);
    stanchion_tasks_free(list);
    EXPECT(STANCHION_ERR_LEASE_LOST, stanchion_claim_progress(claim, "x", 1, &err));
    CHECK(stanchion_claim_loss(claim) == STANCHION_LOSS_CANCELLED);
    OK(stanchion_claim_ack_with(claim, "all the same", 12, &err));
    stanchion_claim_free(claim);
    result_is(client, queue, "a", "all the same", -1);
    CHECK(strcmp(stanchion_status_name(STANCHION_RUNNING), "Running") == 0);
    CHECK(strcmp(stanchion_status_name(STANCHION_PENDING), "Pending") == 0);
    stanchion_client_free(client);
}

TEST(runs_that_make_no_sense) {
    stanchion_client client = opened();
    const char *queue = unique("bad-runs");
    static const char large[(1 << 20) + 1] = {0};
    static const char *const backoffs[] = {"", "5", "[]", "[-1]", "{}", "{\"base\":0}", "[31536000001]", "\xff"};
    for (int wrong = 0; wrong < 17; wrong++) {
        stanchion_task one = task("a");
        if (wrong < 8) one.backoff = view(backoffs[wrong]);
        if (wrong == 8) one.kind = view("");
        if (wrong == 9) one.kind = view("a\nb");
        if (wrong == 10) one.kind.data = large, one.kind.len = 129;
        if (wrong == 11) one.kind.len = 1;
        if (wrong == 12) one.timeout_ms = 0;
        if (wrong == 13) one.timeout_ms = -2;
        if (wrong == 14) one.keep_result_ms = 0;
        if (wrong == 15) one.keep_result_ms = INT64_MAX;
        if (wrong == 16) one.kind = view("\xc3");
        EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
    }
    stanchion_result result = 7;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_result(client, T(queue), T("a"), -2, 0, &result, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_result(client, T(queue), T("a"), -1, -2, &result, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_result(client, T(queue), T("a"), -1, INT64_MAX, &result, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_result(client, T(queue), T(""), -1, 0, &result, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_result(client, T(queue), T("a"), -1, 0, NULL, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_cancel(client, T(queue), NULL, 1, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_cancel(client, T(""), T("a"), &err));
    CHECK(result == 7 && stats(client, queue).ready == 0);

    enqueued(client, queue, "a");
    stanchion_claim claim = claimed(client, queue), none = 7;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_claim_ack_with(claim, large, sizeof large, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_claim_ack_with(claim, NULL, 1, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_claim_progress(claim, large, 4097, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_claim_progress(claim, NULL, 1, &err));
    stanchion_claim_options options = claim_options();
    size_t count = 0;
    options.timeout_ms = 0;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_claim(client, T(queue), &options, &none, 1, &count, &err));
    stanchion_worker_options working;
    stanchion_worker_options_init(&working, sizeof working);
    working.timeout_ms = -3;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_worker_open(client, T(queue), &working, &none, &err));
    stanchion_answers answers = 7;
    for (int wrong = 0; wrong < 4; wrong++) {
        stanchion_verdict verdict;
        stanchion_verdict_init(&verdict, sizeof verdict);
        verdict.claim = claim;
        verdict.result = large;
        if (wrong == 0) verdict.result_len = sizeof large;
        if (wrong == 1) verdict.result = NULL, verdict.result_len = 1;
        if (wrong == 2) verdict.kind = STANCHION_NACK;
        if (wrong == 3) verdict.kind = STANCHION_BURY, verdict.result_len = 1;
        EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_settle(client, T(queue), &verdict, 1, &answers, &err));
    }
    CHECK(none == 7 && answers == 7 && stanchion_claim_is_valid(claim) == 1);
    OK(stanchion_claim_ack_with(claim, large, 1 << 20, &err));
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}
