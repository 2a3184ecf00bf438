/* What is wrong is told before anything is sent, and nothing is lost. */
#include "check.h"

#ifdef __cplusplus
extern "C"
#endif
int32_t stanchion_private_panic(stanchion_error **err);

#define INVALID(call) EXPECT(STANCHION_ERR_INVALID_ARGUMENT, call)

TEST(a_panic_ends_in_the_library) {
    EXPECT(STANCHION_ERR_INTERNAL, stanchion_private_panic(&err));
    CHECK(stanchion_private_panic(NULL) == STANCHION_ERR_INTERNAL);
    stanchion_client_free(opened());
}

TEST(versions_and_names) {
    CHECK(stanchion_abi_version() == STANCHION_ABI_VERSION);
    CHECK(strcmp(stanchion_version(), VERSION) == 0);
    CHECK(strcmp(stanchion_status_name(STANCHION_ERR_STALE_RECEIPT), "StaleReceipt") == 0);
    CHECK(strcmp(stanchion_status_name(STANCHION_BUSY), "Busy") == 0);
    CHECK(strcmp(stanchion_status_name(INT32_MIN), "Unknown") == 0);
}

TEST(an_error_may_be_none) {
    CHECK(stanchion_error_code(NULL) == 0 && strcmp(stanchion_error_message(NULL), "") == 0);
    CHECK(stanchion_error_is_retryable(NULL) == 0);
    CHECK(strcmp(stanchion_error_operation(NULL), "") == 0 && strcmp(stanchion_error_name(NULL), "") == 0);
    stanchion_error_free(NULL);
}

TEST(an_error_says_what_failed) {
    stanchion_client client = opened();
    const char *name = unique("told");
    stanchion_lock_options options = lock_options();
    options.wait_ms = 1;
    stanchion_lease lease = acquired(client, name), second = 7;
    stanchion_error *error = NULL;
    CHECK(stanchion_lock_acquire(client, T(name), &options, &second, &error) == STANCHION_ERR_LOCK_TIMEOUT);
    CHECK(strcmp(stanchion_error_operation(error), "acquire") == 0 && strcmp(stanchion_error_name(error), name) == 0);
    CHECK(strstr(stanchion_error_message(error), name) != NULL && stanchion_error_is_retryable(error) == 1);
    stanchion_error_free(error);
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(bad_urls_and_options_of_clients) {
    stanchion_client client = 7;
    INVALID(stanchion_connect(T("carrier-pigeon://home"), NULL, &client, &err));
    INVALID(stanchion_connect(T(""), NULL, &client, &err));
    INVALID(stanchion_connect(NULL, 5, NULL, &client, &err));
    INVALID(stanchion_connect("redis://\xff", 9, NULL, &client, &err));
    INVALID(stanchion_connect("memory:", SIZE_MAX, NULL, &client, &err));
    INVALID(stanchion_connect(T("memory:"), NULL, NULL, &err));
    unsetenv("STANCHION_URL");
    INVALID(stanchion_connect(NULL, 0, NULL, &client, &err));
    setenv("STANCHION_URL", store, 1);
    OK(stanchion_connect(NULL, 0, NULL, &client, &err));
    stanchion_client_free(client);
    client = 7;

    stanchion_connect_options options;
    for (int wrong = 0; wrong < 9; wrong++) {
        stanchion_connect_options_init(&options, sizeof options);
        const stanchion_text lone = {"\xed\xa0\x80", 3}, cert = {"cert.pem", 8};
        if (wrong == 0) options.struct_size = 0;
        if (wrong == 1) options.struct_size = sizeof options + 1;
        if (wrong == 2) options.timeout_ms = 0;
        if (wrong == 3) options.timeout_ms = -2;
        if (wrong == 4) options.timeout_ms = INT64_MAX;
        if (wrong == 5) options.foreign_share = 2;
        if (wrong == 6) options.label = lone;
        if (wrong == 7) options.tls_cert = cert;
        if (wrong == 8) options.label.len = 3;
        INVALID(stanchion_connect(T(store), &options, &client, &err));
    }
    stanchion_connect_options_init(&options, sizeof options);
    options.clock = 12345;
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_connect(T(store), &options, &client, &err));
    CHECK(client == 7);
}

TEST(an_unreachable_store_says_so) {
    stanchion_client client = 7;
    stanchion_error *error = NULL;
    const char *url = "redis://user:c4n4ry-pa55w0rd@127.0.0.1:1/?timeout=0.2";
    CHECK(stanchion_connect(T(url), NULL, &client, &error) == STANCHION_ERR_STORE_UNAVAILABLE);
    CHECK(client == 7 && stanchion_error_is_retryable(error) == 1);
    CHECK(strstr(stanchion_error_message(error), "c4n4ry-pa55w0rd") == NULL);
    stanchion_error_free(error);
}

TEST(times_out_of_range) {
    stanchion_client client = opened();
    const char *name = unique("times");
    static const int64_t bad[] = {-2, 0, 1, 49, INT64_MIN, INT64_MAX, 366LL * 24 * 3600 * 1000};
    stanchion_lease lease = 7;
    for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
        stanchion_lock_options options = lock_options();
        options.ttl_ms = bad[index];
        INVALID(stanchion_lock_acquire(client, T(name), &options, &lease, &err));
    }
    for (int wrong = 0; wrong < 6; wrong++) {
        stanchion_lock_options options = lock_options();
        if (wrong == 0) options.wait_ms = INT64_MAX;
        if (wrong == 1) options.wait_ms = -5;
        if (wrong == 2) options.max_hold_ms = 100;
        if (wrong == 3) options.renew = 7;
        if (wrong == 4) options.fail_fast = -2;
        if (wrong == 5) options.adopt_unexpiring_ms = -3;
        INVALID(stanchion_lock_acquire(client, T(name), &options, &lease, &err));
    }
    CHECK(lease == 7);
    OK(stanchion_lock_is_locked(client, T(name), &err));
    lease = acquired(client, name);
    for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
        INVALID(stanchion_lease_extend(lease, bad[index], &err));
        INVALID(stanchion_lease_release_with_cooldown(lease, bad[index], &err));
        stanchion_text text;
        INVALID(stanchion_lease_detach(lease, bad[index], &text, &err));
    }
    INVALID(stanchion_lease_wait_lost(lease, -1, &err));
    INVALID(stanchion_client_linger(client, -1, NULL, &err));
    /* The lease is what it was. */
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(names_that_are_no_names) {
    stanchion_client client = opened();
    stanchion_result result = 7;
    static char large[65536];
    memset(large, 'x', sizeof large);
    stanchion_lease lease = 7;
    stanchion_holders holders = 7;
    stanchion_waiters waiters = 7;
    stanchion_consumers consumers = 7;
    stanchion_task_events events = 7;
    stanchion_task one = task("a");
    const stanchion_text bad[] = {{NULL, 0},        {"", 0},           {"a\0b", 3},       {"a\nb", 3},       {"\xff", 1},
                                  {"\xc3", 1},      {"\xed\xa0\x80", 3}, {large, sizeof large}, {NULL, 1},   {"a", SIZE_MAX},
                                  {"a", SIZE_MAX / 2},
                                  {"{", 1},         {"}", 1},          {"{}", 2},         {"a}{b", 4}};
    for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
        const char *data = bad[index].data;
        size_t len = bad[index].len;
        INVALID(stanchion_lock_acquire(client, data, len, NULL, &lease, &err));
        INVALID(stanchion_lock_is_locked(client, data, len, &err));
        INVALID(stanchion_lock_break_lease(client, data, len, &err));
        INVALID(stanchion_lock_holders(client, data, len, &holders, &err));
        INVALID(stanchion_lock_waiters(client, data, len, &waiters, &err));
        INVALID(stanchion_read_lock_acquire(client, data, len, NULL, &lease, &err));
        INVALID(stanchion_write_lock_acquire(client, data, len, NULL, &lease, &err));
        INVALID(stanchion_rw_lock_holders(client, data, len, &holders, &err));
        INVALID(stanchion_rw_lock_waiters(client, data, len, &waiters, &err));
        INVALID(stanchion_rw_lock_is_locked(client, data, len, &err));
        INVALID(stanchion_rw_lock_break_lease(client, data, len, &err));
        INVALID(stanchion_semaphore_acquire(client, data, len, 3, NULL, &lease, &err));
        INVALID(stanchion_semaphore_holders(client, data, len, &holders, &err));
        INVALID(stanchion_semaphore_waiters(client, data, len, &waiters, &err));
        INVALID(stanchion_semaphore_is_locked(client, data, len, &err));
        INVALID(stanchion_semaphore_break_lease(client, data, len, &err));
        INVALID(stanchion_queue_enqueue(client, data, len, &one, NULL, &err));
        INVALID(stanchion_queue_pause(client, data, len, &err));
        INVALID(stanchion_queue_cancel(client, data, len, T("a"), &err));
        INVALID(stanchion_queue_result(client, data, len, T("a"), -1, 0, &result, &err));
        INVALID(stanchion_queue_events(client, data, len, 0, 0, NULL, &events, &err));
        INVALID(stanchion_queue_consumers(client, data, len, &consumers, &err));
    }
    CHECK(events == 7 && lease == 7 && holders == 7 && waiters == 7 && consumers == 7 && result == 7);
    /* Strange, but names. */
    static const char *const good[] = {"{tag}x", "x:meta", "\xc3\xa9 \xf0\x9f\x94\x92", " "};
    stanchion_lease leases[4];
    for (int index = 0; index < 4; index++) leases[index] = acquired(client, good[index]);
    for (int index = 0; index < 4; index++) {
        OK(stanchion_lease_release(leases[index], &err));
        stanchion_lease_free(leases[index]);
    }
    stanchion_client_free(client);
}

TEST(tasks_that_are_no_tasks) {
    stanchion_client client = opened();
    const char *queue = unique("bad-tasks");
    static const char large[20 << 20] = {0};
    const stanchion_text empty = {"", 0}, wrong_text = {"\xff", 1};
    const stanchion_header header = {{"name", 4}, {"\xff", 1}};
    for (int wrong = 0; wrong < 22; wrong++) {
        stanchion_task one = task("a");
        if (wrong == 0) one.id = empty;
        if (wrong == 1) one.id = wrong_text;
        if (wrong == 2) one.id.len = SIZE_MAX;
        if (wrong == 3) one.payload_len = 1;
        if (wrong == 4) one.payload = large, one.payload_len = sizeof large;
        if (wrong == 5) one.payload = large, one.payload_len = (size_t)1 << 40;
        if (wrong == 6) one.payload = large, one.payload_len = (16 << 20) + 1;
        if (wrong == 7) one.header_count = 1;
        if (wrong == 8) one.headers = &header, one.header_count = 1;
        if (wrong == 9) one.headers = &header, one.header_count = SIZE_MAX;
        if (wrong == 10) one.delay_ms = -2;
        if (wrong == 11) one.delay_ms = INT64_MAX;
        if (wrong == 12) one.due_ms = INT64_MAX;
        if (wrong == 13) one.delay_ms = 5, one.due_ms = 5;
        if (wrong == 14) one.priority = 256;
        if (wrong == 15) one.max_attempts = 0;
        if (wrong == 16) one.max_attempts = INT64_MAX;
        if (wrong == 17) one.expires_ms = 0;
        if (wrong == 18) one.on_duplicate = 99;
        if (wrong == 19) one.on_duplicate = STANCHION_DEBOUNCE;
        if (wrong == 20) one.on_duplicate = STANCHION_THROTTLE, one.window_ms = 0;
        if (wrong == 21) one.struct_size = 8;
        INVALID(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
        stanchion_answers answers = 7;
        stanchion_task pair[2] = {task("good"), one};
        INVALID(stanchion_queue_enqueue_many(client, T(queue), pair, 2, &answers, &err));
        CHECK(answers == 7);
    }
    INVALID(stanchion_queue_enqueue(client, T(queue), NULL, NULL, &err));
    stanchion_answers answers = 7;
    INVALID(stanchion_queue_enqueue_many(client, T(queue), NULL, 1, &answers, &err));
    OK(stanchion_queue_enqueue_many(client, T(queue), NULL, 0, &answers, &err));
    CHECK(stanchion_answers_len(answers) == 0);
    stanchion_answers_free(answers);
    CHECK(stats(client, queue).ready == 0);
    /* No byte, and the most. */
    stanchion_task one = task("none");
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
    one = task("most");
    one.payload = large;
    one.payload_len = 16 << 20;
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
    stanchion_client_free(client);
}

TEST(schedules_that_are_no_schedules) {
    stanchion_client client = opened();
    const char *queue = unique("bad-schedules");
    static char long_id[481];
    memset(long_id, 'x', sizeof long_id);
    const stanchion_text id = {"a", 1}, when = {"0 3 * * *", 9}, wrong_text = {"\xff", 1}, nowhere = {"Europe/Atlantis", 15};
    const stanchion_text noise = {"when the cock crows", 19}, past = {"at 1999-12-31T23:59:59Z", 23};
    const stanchion_text too_long = {long_id, sizeof long_id}, none = {NULL, 0};
    const stanchion_header header = {{"name", 4}, {"\xff", 1}};
    int32_t outcome = 7;
    stanchion_synced synced;
    memset(&synced, 170, sizeof synced);
    const int64_t untouched = synced.added;
    synced.struct_size = sizeof synced;
    for (int wrong = 0; wrong < 32; wrong++) {
        stanchion_schedule one;
        stanchion_schedule_init(&one, sizeof one);
        one.id = id;
        one.when = when;
        if (wrong == 0) one.id = none;
        if (wrong == 1) one.id = wrong_text;
        if (wrong == 2) one.id = too_long;
        if (wrong == 3) one.when = none;
        if (wrong == 4) one.when = noise;
        if (wrong == 5) one.when = wrong_text;
        if (wrong == 6) one.tz = nowhere;
        if (wrong == 7) one.tz = wrong_text;
        if (wrong == 8) one.tz.len = 3;
        if (wrong == 9) one.starts_ms = -2;
        if (wrong == 10) one.ends_ms = INT64_MAX;
        if (wrong == 11) one.starts_ms = 2000, one.ends_ms = 1000;
        if (wrong == 12) one.jitter_ms = -2;
        if (wrong == 13) one.jitter_ms = 86400001;
        if (wrong == 14) one.missed = 3;
        if (wrong == 15) one.missed = -2;
        if (wrong == 16) one.missed = STANCHION_MISSED_ALL;
        if (wrong == 17) one.missed = STANCHION_MISSED_ALL, one.missed_max = 0;
        if (wrong == 18) one.missed = STANCHION_MISSED_ALL, one.missed_max = 1001;
        if (wrong == 19) one.missed = STANCHION_MISSED_ALL, one.missed_max = INT64_MAX;
        if (wrong == 20) one.missed = STANCHION_MISSED_ALL, one.missed_max = -2;
        if (wrong == 21) one.overlap = 2;
        if (wrong == 22) one.overlap = -2;
        if (wrong == 23) one.paused = 2;
        if (wrong == 24) one.priority = 256;
        if (wrong == 25) one.max_attempts = 0;
        if (wrong == 26) one.expires_ms = 0;
        if (wrong == 27) one.payload_len = 1;
        if (wrong == 28) one.header_count = 1;
        if (wrong == 29) one.headers = &header, one.header_count = 1;
        if (wrong == 30) one.struct_size = 8;
        if (wrong == 31) one.id.len = SIZE_MAX;
        INVALID(stanchion_queue_schedule(client, T(queue), &one, &outcome, &err));
        stanchion_schedule pair[2] = {one, one};
        stanchion_schedule_init(&pair[0], sizeof pair[0]);
        pair[0].id.data = "good", pair[0].id.len = 4;
        pair[0].when = when;
        INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), 1, pair, 2, &synced, &err));
    }
    stanchion_schedule one;
    stanchion_schedule_init(&one, sizeof one);
    one.id = id;
    one.when = past;
    INVALID(stanchion_queue_schedule(client, T(queue), &one, &outcome, &err));
    INVALID(stanchion_queue_schedule(client, T(queue), NULL, &outcome, &err));
    INVALID(stanchion_queue_schedule(client, NULL, 0, &one, &outcome, &err));
    CHECK(outcome == 7 && synced.added == untouched && stats(client, queue).schedules == 0);
    stanchion_client_free(client);
}

TEST(calls_about_schedules_are_checked) {
    stanchion_client client = opened();
    const char *queue = unique("bad-calls");
    const stanchion_text id = {"a", 1}, when = {"@yearly", 7};
    stanchion_schedule pair[2];
    stanchion_synced synced;
    synced.struct_size = sizeof synced;
    for (int index = 0; index < 2; index++) {
        stanchion_schedule_init(&pair[index], sizeof pair[index]);
        pair[index].id = id;
        pair[index].when = when;
    }
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), 1, pair, 2, &synced, &err));
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), -1, pair, 1, &synced, &err));
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), INT64_MAX, pair, 1, &synced, &err));
    INVALID(stanchion_queue_sync_schedules(client, T(queue), NULL, 0, 1, pair, 1, &synced, &err));
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("\xff"), 1, pair, 1, &synced, &err));
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), 1, NULL, 1, &synced, &err));
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), 1, pair, SIZE_MAX, &synced, &err));
    synced.struct_size = 8;
    INVALID(stanchion_queue_sync_schedules(client, T(queue), T("app"), 1, pair, 1, &synced, &err));
    stanchion_schedules list = 7;
    stanchion_ran ran;
    ran.struct_size = 16;
    INVALID(stanchion_queue_get_schedule(client, T(queue), T("a"), NULL, &err));
    INVALID(stanchion_queue_get_schedule(client, T(queue), NULL, 0, &list, &err));
    INVALID(stanchion_queue_list_schedules(client, T(queue), NULL, 0, 100, NULL, &err));
    INVALID(stanchion_queue_list_schedules(client, T(queue), NULL, 0, 0, &list, &err));
    INVALID(stanchion_queue_list_schedules(client, T(queue), NULL, 0, 1001, &list, &err));
    INVALID(stanchion_queue_list_schedules(client, T(queue), NULL, 0, SIZE_MAX, &list, &err));
    INVALID(stanchion_queue_list_schedules(client, T(queue), T("none of ours"), 10, &list, &err));
    INVALID(stanchion_queue_list_schedules(client, T(queue), NULL, 3, 10, &list, &err));
    INVALID(stanchion_queue_pause_schedule(client, T(queue), T(""), &err));
    INVALID(stanchion_queue_resume_schedule(client, T(queue), T("\n"), &err));
    INVALID(stanchion_queue_run_schedule(client, T(queue), T("\xff"), NULL, &err));
    INVALID(stanchion_queue_run_schedule(client, T(queue), T("a"), &ran, &err));
    INVALID(stanchion_queue_remove_schedule(client, T(queue), NULL, 1, &err));
    CHECK(list == 7 && stats(client, queue).schedules == 0);
    stanchion_client_free(client);
}

TEST(previews_are_checked) {
    stanchion_schedule one;
    stanchion_schedule_init(&one, sizeof one);
    int64_t times[2] = {7, 7};
    size_t count = 7;
    INVALID(stanchion_schedule_preview(&one, 0, times, 2, &count, &err));
    one.when.data = "@daily";
    one.when.len = 6;
    INVALID(stanchion_schedule_preview(NULL, 0, times, 2, &count, &err));
    INVALID(stanchion_schedule_preview(&one, -1, times, 2, &count, &err));
    INVALID(stanchion_schedule_preview(&one, INT64_MAX, times, 2, &count, &err));
    INVALID(stanchion_schedule_preview(&one, 0, NULL, 2, &count, &err));
    INVALID(stanchion_schedule_preview(&one, 0, times, 2, NULL, &err));
    INVALID(stanchion_schedule_preview(&one, 0, times, 0, &count, &err));
    INVALID(stanchion_schedule_preview(&one, 0, times, 1001, &count, &err));
    INVALID(stanchion_schedule_preview(&one, 0, times, SIZE_MAX, &count, &err));
    one.overlap = 9;
    INVALID(stanchion_schedule_preview(&one, 0, times, 2, &count, &err));
    CHECK(count == 7 && times[0] == 7);
}

TEST(counts_states_and_places) {
    stanchion_client client = opened();
    const char *queue = unique("places");
    enqueued(client, queue, "a");
    stanchion_claim claims[2] = {7, 7};
    stanchion_tasks tasks = 7;
    size_t count = 7;
    uint64_t page = 7;
    INVALID(stanchion_queue_claim(client, T(queue), NULL, claims, 0, &count, &err));
    INVALID(stanchion_queue_claim(client, T(queue), NULL, claims, 1001, &count, &err));
    INVALID(stanchion_queue_claim(client, T(queue), NULL, claims, SIZE_MAX, &count, &err));
    INVALID(stanchion_queue_claim(client, T(queue), NULL, NULL, 1, &count, &err));
    INVALID(stanchion_queue_claim(client, T(queue), NULL, claims, 1, NULL, &err));
    INVALID(stanchion_queues_claim(client, NULL, 1, NULL, claims, 1, &count, &err));
    INVALID(stanchion_queue_pop(client, T(queue), 0, &tasks, &err));
    INVALID(stanchion_queue_pop(client, T(queue), 1, NULL, &err));
    INVALID(stanchion_queue_peek(client, T(queue), 1001, &tasks, &err));
    INVALID(stanchion_queue_get(client, T(queue), NULL, 0, &tasks, &err));
    INVALID(stanchion_queue_remove(client, T(queue), T("a"), -2, NULL, &err));
    INVALID(stanchion_queue_reschedule(client, T(queue), T("a"), -1, NULL, &err));
    INVALID(stanchion_queue_reschedule(client, T(queue), T("a"), INT64_MAX, NULL, &err));
    INVALID(stanchion_queue_stats(client, T(queue), NULL, &err));
    INVALID(stanchion_queue_consumers(client, T(queue), NULL, &err));
    INVALID(stanchion_lock_acquire(client, T(queue), NULL, NULL, &err));
    INVALID(stanchion_lock_holder(client, T(queue), NULL, &err));
    INVALID(stanchion_client_locks(client, 0, NULL, &page, &err));
    INVALID(stanchion_client_queues(client, 0, &tasks, NULL, &err));
    INVALID(stanchion_clock_new(NULL, &err));
    stanchion_stats small;
    small.struct_size = 16;
    INVALID(stanchion_queue_stats(client, T(queue), &small, &err));
    CHECK(claims[0] == 7 && tasks == 7 && count == 7 && page == 7);
    CHECK(stats(client, queue).ready == 1);
    stanchion_client_free(client);
}

TEST(listings_are_checked) {
    stanchion_client client = opened();
    const char *queue = unique("listings");
    stanchion_tasks tasks = 7;
    INVALID(stanchion_queue_list(client, T(queue), NULL, &tasks, &err));
    for (int wrong = 0; wrong < 8; wrong++) {
        stanchion_list_options options = list_options(STANCHION_STATE_READY);
        if (wrong == 0) options.state = 6;
        if (wrong == 1) options.max = 0;
        if (wrong == 2) options.max = 1001;
        if (wrong == 3) options.max = -2;
        if (wrong == 4) options.without_payloads = 2;
        if (wrong == 5) options.page.data = "none of ours", options.page.len = 12;
        if (wrong == 6) options.prefix.data = "\xff", options.prefix.len = 1;
        if (wrong == 7) options.struct_size = 0;
        INVALID(stanchion_queue_list(client, T(queue), &options, &tasks, &err));
    }
    stanchion_list_options options = list_options(STANCHION_STATE_READY);
    INVALID(stanchion_queue_list(client, T(queue), &options, NULL, &err));
    CHECK(tasks == 7);
    stanchion_client_free(client);
}

TEST(dead_tasks_are_named_and_not_twice) {
    stanchion_client client = opened();
    const char *queue = unique("which");
    const stanchion_text ids[1] = {{"a", 1}};
    const int64_t receipts[1] = {-5};
    uint64_t count = 7;
    INVALID(stanchion_queue_remove_dead(client, T(queue), NULL, &count, &err));
    for (int wrong = 0; wrong < 10; wrong++) {
        stanchion_dead_tasks dead = dead_tasks();
        /* The first names nothing: it would be all. */
        if (wrong == 1) dead.id_count = 2;
        if (wrong == 2) dead.receipt_count = 2;
        if (wrong == 3) dead.older_than_ms = -1;
        if (wrong == 4) dead.struct_size = 0;
        if (wrong == 5) dead.receipts = receipts, dead.receipt_count = 1;
        if (wrong == 6) dead.reason.len = 1;
        if (wrong >= 7) dead.ids = ids;
        if (wrong == 7) dead.count = 1;
        if (wrong == 8) dead.receipts = receipts;
        if (wrong == 9) dead.id_count = SIZE_MAX;
        INVALID(stanchion_queue_kick(client, T(queue), &dead, &count, &err));
        INVALID(stanchion_queue_remove_dead(client, T(queue), &dead, &count, &err));
    }
    CHECK(count == 7);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_kick(client, T(queue), NULL, &count, &err));
    stanchion_client_free(client);
}

TEST(settings_and_workers_out_of_range) {
    stanchion_client client = opened();
    const char *queue = unique("settings");
    for (int wrong = 0; wrong < 20; wrong++) {
        stanchion_queue_config settings;
        stanchion_queue_config_init(&settings, sizeof settings);
        if (wrong == 0) settings.max_len = 0;
        if (wrong == 1) settings.max_len = INT64_MAX;
        if (wrong == 2) settings.dead_max = -2;
        if (wrong == 3) settings.dead_age_ms = INT64_MAX;
        if (wrong == 4) settings.dead_bytes = INT64_MAX;
        if (wrong == 5) settings.intake = 2;
        if (wrong == 6) settings.events = 100001;
        if (wrong == 7) settings.events = -2;
        if (wrong == 8) settings.max_running = 0;
        if (wrong == 9) settings.max_running = -3;
        if (wrong == 10) settings.max_running = INT64_MAX;
        if (wrong == 11) settings.key_concurrency = 0;
        if (wrong == 12) settings.key_concurrency = 1LL << 32;
        if (wrong == 13) settings.rate = rate(0, 1000, 1);
        if (wrong == 14) settings.rate = rate(1, 0, 1);
        if (wrong == 15) settings.rate = rate(1, -1, 1);
        if (wrong == 16) settings.rate = rate(1, 1000, 0);
        if (wrong == 17) settings.key_rate = rate(1LL << 32, 1000, 1);
        if (wrong == 18) settings.key_rate = rate(-3, 1000, 1);
        if (wrong == 19) settings.key_rate = rate(1, INT64_MAX, 1);
        INVALID(stanchion_queue_configure(client, T(queue), &settings, &err));
    }
    INVALID(stanchion_queue_configure(client, T(queue), NULL, &err));
    stanchion_worker worker = 7;
    for (int wrong = 0; wrong < 5; wrong++) {
        stanchion_worker_options options;
        stanchion_worker_options_init(&options, sizeof options);
        if (wrong == 0) options.concurrency = 0;
        if (wrong == 1) options.concurrency = 1001;
        if (wrong == 2) options.lease_ms = 1;
        if (wrong == 3) options.max_run_ms = 1;
        if (wrong == 4) options.until_empty = 3;
        INVALID(stanchion_worker_open(client, T(queue), &options, &worker, &err));
    }
    INVALID(stanchion_worker_open(client, NULL, 0, NULL, &worker, &err));
    INVALID(stanchion_worker_open(client, T(queue), NULL, NULL, &err));
    CHECK(worker == 7);
    stanchion_client_free(client);
}

TEST(keys_and_limits_out_of_range) {
    stanchion_client client = opened();
    const char *queue = unique("bad-keys");
    static char long_key[514];
    memset(long_key, 'x', 513);
    const char *const keys[] = {"", "a\nb", "\xff", long_key};
    stanchion_keys list = 7;
    stanchion_key_limits limits;
    stanchion_key_limits_init(&limits, sizeof limits);
    for (size_t index = 0; index < sizeof keys / sizeof *keys; index++) {
        stanchion_task one = task("a");
        one.key.data = keys[index];
        one.key.len = strlen(keys[index]);
        INVALID(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
        INVALID(stanchion_queue_limit_key(client, T(queue), T(keys[index]), &limits, &err));
        INVALID(stanchion_queue_get_key(client, T(queue), T(keys[index]), &list, &err));
    }
    for (int wrong = 0; wrong < 8; wrong++) {
        stanchion_key_limits_init(&limits, sizeof limits);
        if (wrong == 0) limits.concurrency = 0;
        if (wrong == 1) limits.concurrency = -2;
        if (wrong == 2) limits.weight = 0;
        if (wrong == 3) limits.weight = 101;
        if (wrong == 4) limits.rate = rate(0, 1000, 1);
        if (wrong == 5) limits.rate = rate(-2, 1000, 1);
        if (wrong == 6) limits.rate = rate(1, -1, 1);
        if (wrong == 7) limits.struct_size = 8;
        INVALID(stanchion_queue_limit_key(client, T(queue), T("k"), &limits, &err));
    }
    INVALID(stanchion_queue_limit_key(client, T(queue), NULL, 1, NULL, &err));
    INVALID(stanchion_queue_get_key(client, T(queue), T("k"), NULL, &err));
    INVALID(stanchion_queue_list_keys(client, T(queue), NULL, 0, 100, NULL, &err));
    INVALID(stanchion_queue_list_keys(client, T(queue), NULL, 0, 0, &list, &err));
    INVALID(stanchion_queue_list_keys(client, T(queue), NULL, 0, SIZE_MAX, &list, &err));
    INVALID(stanchion_queue_list_keys(client, T(queue), T("none of ours"), 10, &list, &err));
    INVALID(stanchion_queue_list_keys(client, T(queue), NULL, 3, 10, &list, &err));
    CHECK(list == 7 && stats(client, queue).enqueued == 0);
    stanchion_client_free(client);
}

TEST(flows_that_are_no_flows) {
    stanchion_client client = opened();
    const char *queue = unique("bad-flows");
    stanchion_flows list = 7;
    int32_t was_put = 7;
    const stanchion_text circle = {"a", 1}, none = {"none", 4}, broken = {"\xff", 1}, brace = {"{", 1}, empty = {"", 0};
    stanchion_task good = task("a"), bad = task("a");
    bad.max_attempts = 0;
    for (int wrong = 0; wrong < 19; wrong++) {
        stanchion_node nodes[2];
        size_t count = 1;
        for (int index = 0; index < 2; index++) {
            stanchion_node_init(&nodes[index], sizeof nodes[index]);
            nodes[index].task = &good;
        }
        if (wrong == 0) nodes[0].task = NULL;
        if (wrong == 1) nodes[0].task = &bad;
        if (wrong == 2) nodes[0].struct_size = 8;
        if (wrong == 3) nodes[0].struct_size = sizeof *nodes + 1;
        if (wrong == 4) nodes[0].after = &circle, nodes[0].after_count = 1;
        if (wrong == 5) nodes[0].after = &none, nodes[0].after_count = 1;
        if (wrong == 6) nodes[0].after_end = &none, nodes[0].after_end_count = 1;
        if (wrong == 7) nodes[0].after_failure = &none, nodes[0].after_failure_count = 1;
        if (wrong == 8) nodes[0].after = &broken, nodes[0].after_count = 1;
        if (wrong == 9) nodes[0].after_count = 1;
        if (wrong == 10) nodes[0].after_end = &circle, nodes[0].after_end_count = SIZE_MAX;
        if (wrong == 11) nodes[0].after_failure_count = 2;
        if (wrong == 12) nodes[0].after_all = 4;
        if (wrong == 13) nodes[0].after_all = -1;
        if (wrong == 14) nodes[0].queue = brace;
        if (wrong == 15) nodes[0].queue = empty;
        if (wrong == 16) nodes[0].queue = broken;
        if (wrong == 17) count = 2;
        if (wrong == 18) count = SIZE_MAX;
        INVALID(stanchion_queue_enqueue_flow(client, T(queue), T("f"), nodes, count, &was_put, &err));
    }
    stanchion_node node;
    stanchion_node_init(&node, sizeof node);
    node.task = &good;
    INVALID(stanchion_queue_enqueue_flow(client, T(queue), T("f"), NULL, 1, &was_put, &err));
    INVALID(stanchion_queue_enqueue_flow(client, T(queue), T(""), &node, 1, &was_put, &err));
    INVALID(stanchion_queue_enqueue_flow(client, T(queue), T("\xff"), &node, 1, &was_put, &err));
    INVALID(stanchion_queue_get_flow(client, T(queue), T("a\nb"), &list, &err));
    INVALID(stanchion_queue_get_flow(client, T(queue), T("f"), NULL, &err));
    INVALID(stanchion_queue_list_flows(client, T(queue), NULL, 0, 100, NULL, &err));
    INVALID(stanchion_queue_list_flows(client, T(queue), NULL, 0, 0, &list, &err));
    INVALID(stanchion_queue_list_flows(client, T(queue), NULL, 0, SIZE_MAX, &list, &err));
    INVALID(stanchion_queue_list_flows(client, T(queue), T("none of ours"), 10, &list, &err));
    INVALID(stanchion_queue_list_flows(client, T(queue), NULL, 3, 10, &list, &err));
    INVALID(stanchion_queue_cancel_flow(client, T(queue), T(""), &err));
    INVALID(stanchion_queue_retry_flow(client, T(queue), NULL, 1, &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_get_flow(client, T(queue), T("f"), &list, &err));
    CHECK(was_put == 7 && list == 7);
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("f"), &node, 1, NULL, &err));
    good = task("b");
    node.after_all = STANCHION_AFTER_ALL_THEN;
    INVALID(stanchion_queue_add_to_flow(client, T(queue), T("f"), &node, 1, &err));
    node.after_all = STANCHION_AFTER_ALL_NONE;
    INVALID(stanchion_queue_add_to_flow(client, T(queue), T("f"), NULL, 1, &err));
    node.task = NULL;
    INVALID(stanchion_queue_add_to_flow(client, T(queue), T("f"), &node, 1, &err));
    stanchion_claim claim = claimed(client, queue);
    INVALID(stanchion_claim_inputs(claim, NULL, &err));
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(init_never_writes_beyond_the_struct) {
    unsigned char place[16];
    memset(place, 170, sizeof place);
    stanchion_lock_options_init((stanchion_lock_options *)place, 9);
    CHECK(place[0] == 9 && place[9] == 170);
    memset(place, 170, sizeof place);
    stanchion_lock_options_init((stanchion_lock_options *)place, 7);
    CHECK(place[0] == 170);
    stanchion_lock_options_init(NULL, sizeof(stanchion_lock_options));
    struct {
        stanchion_lock_options options;
        unsigned char more[8];
    } larger;
    memset(&larger, 170, sizeof larger);
    stanchion_lock_options_init(&larger.options, sizeof larger);
    CHECK(larger.more[0] == 170 && larger.options.struct_size == sizeof larger && larger.options.ttl_ms == -1);
    stanchion_client client = opened();
    stanchion_lease lease = 7;
    INVALID(stanchion_lock_acquire(client, T("a"), &larger.options, &lease, &err));
    stanchion_client_free(client);
}
