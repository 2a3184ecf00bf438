/* Handles that are stale, forged, of another kind, freed twice, or freed by another thread. */
#include <pthread.h>

#include "check.h"

#define GONE(call) EXPECT(STANCHION_ERR_INVALID_HANDLE, call)

/* Everything that takes a handle of its kind. */
static void refused(int64_t handle) {
    stanchion_lease lease = 7;
    stanchion_claim claim = 7;
    stanchion_tasks tasks = 7;
    stanchion_names names = 7;
    stanchion_holders holders = 7;
    stanchion_waiters waiters = 7;
    stanchion_consumers consumers = 7;
    stanchion_schedules schedules = 7;
    stanchion_keys keys = 7;
    stanchion_key_limits limits;
    stanchion_limit limit;
    stanchion_key_info key;
    stanchion_flows flows = 7;
    stanchion_inputs inputs = 7;
    stanchion_flow_info flow;
    stanchion_node_info told;
    stanchion_input input;
    stanchion_node node;
    int32_t was_put = 7;
    stanchion_answers answers = 7;
    stanchion_result result = 7;
    stanchion_task_events events = 7;
    stanchion_worker worker = 7;
    stanchion_text text = {NULL, 0};
    stanchion_task one = task("a");
    stanchion_stats stats;
    stanchion_holder holder;
    stanchion_consumer consumer;
    stanchion_lease_info on;
    stanchion_claim_info about;
    stanchion_task_info found;
    stanchion_task_failure failed;
    stanchion_result_info became;
    stanchion_task_event happened;
    stanchion_worker_report report;
    stanchion_worker_event event;
    stanchion_verdict verdict;
    stanchion_queue_config settings;
    stanchion_list_options listing = list_options(STANCHION_STATE_READY);
    stanchion_dead_tasks dead = dead_tasks();
    stanchion_schedule planned;
    stanchion_schedule_info shown;
    stanchion_synced synced;
    stanchion_ran ran;
    int32_t outcome = 7;
    size_t count = 7;
    uint64_t page = 7;
    stats.struct_size = sizeof stats;
    holder.struct_size = sizeof holder;
    consumer.struct_size = sizeof consumer;
    on.struct_size = sizeof on;
    about.struct_size = sizeof about;
    found.struct_size = sizeof found;
    failed.struct_size = sizeof failed;
    became.struct_size = sizeof became;
    happened.struct_size = sizeof happened;
    report.struct_size = sizeof report;
    event.struct_size = sizeof event;
    stanchion_verdict_init(&verdict, sizeof verdict);
    stanchion_queue_config_init(&settings, sizeof settings);
    stanchion_limit_init(&limit, sizeof limit);
    limit.n = 1;
    dead.count = 1;
    stanchion_schedule_init(&planned, sizeof planned);
    shown.struct_size = sizeof shown;
    stanchion_key_limits_init(&limits, sizeof limits);
    key.struct_size = sizeof key;
    flow.struct_size = sizeof flow;
    told.struct_size = sizeof told;
    input.struct_size = sizeof input;
    stanchion_node_init(&node, sizeof node);
    node.task = &one;
    synced.struct_size = sizeof synced;
    ran.struct_size = sizeof ran;

    GONE(stanchion_clock_advance(handle, 1, &err));
    GONE(stanchion_client_release_all(handle, &count, &err));
    GONE(stanchion_client_close(handle, &count, &err));
    GONE(stanchion_client_linger(handle, 1, NULL, &err));
    GONE(stanchion_client_locks(handle, 0, &names, &page, &err));
    GONE(stanchion_client_queues(handle, 0, &names, &page, &err));
    GONE(stanchion_client_resume_lease(handle, T("{}"), &lease, &err));
    GONE(stanchion_lock_acquire(handle, T("a"), NULL, &lease, &err));
    GONE(stanchion_lock_holder(handle, T("a"), &holder, &err));
    GONE(stanchion_lock_is_locked(handle, T("a"), &err));
    GONE(stanchion_lock_break_lease(handle, T("a"), &err));
    GONE(stanchion_lock_holders(handle, T("a"), &holders, &err));
    GONE(stanchion_lock_waiters(handle, T("a"), &waiters, &err));
    GONE(stanchion_read_lock_acquire(handle, T("a"), NULL, &lease, &err));
    GONE(stanchion_write_lock_acquire(handle, T("a"), NULL, &lease, &err));
    GONE(stanchion_rw_lock_holders(handle, T("a"), &holders, &err));
    GONE(stanchion_rw_lock_waiters(handle, T("a"), &waiters, &err));
    GONE(stanchion_rw_lock_is_locked(handle, T("a"), &err));
    GONE(stanchion_rw_lock_break_lease(handle, T("a"), &err));
    GONE(stanchion_semaphore_acquire(handle, T("a"), 3, NULL, &lease, &err));
    GONE(stanchion_semaphore_holders(handle, T("a"), &holders, &err));
    GONE(stanchion_semaphore_waiters(handle, T("a"), &waiters, &err));
    GONE(stanchion_semaphore_is_locked(handle, T("a"), &err));
    GONE(stanchion_semaphore_break_lease(handle, T("a"), &err));
    GONE(stanchion_multi_lock_acquire(handle, &text, 0, NULL, &lease, &err));
    GONE(stanchion_holders_at(handle, 0, &holder, &err));
    CHECK(stanchion_holders_len(handle) == 0 && stanchion_lease_fences_len(handle) == 0);
    GONE(stanchion_lease_fences_at(handle, 0, &text, NULL, &err));
    GONE(stanchion_lease_downgrade(handle, &err));
    GONE(stanchion_lease_upgrade(handle, &err));
    GONE(stanchion_lease_get(handle, &on, &err));
    GONE(stanchion_lease_check(handle, &err));
    GONE(stanchion_lease_wait_lost(handle, 1, &err));
    GONE(stanchion_lease_extend(handle, 1000, &err));
    GONE(stanchion_lease_extend_exact(handle, 1000, &err));
    GONE(stanchion_lease_release(handle, &err));
    GONE(stanchion_lease_release_with_cooldown(handle, 1000, &err));
    GONE(stanchion_lease_detach(handle, 1000, &text, &err));
    CHECK(stanchion_lease_fence(handle) == 0 && stanchion_lease_remaining_ms(handle) == 0);
    CHECK(stanchion_lease_is_valid(handle) == 0 && stanchion_lease_loss(handle) == 0);
    GONE(stanchion_queue_enqueue(handle, T("q"), &one, NULL, &err));
    GONE(stanchion_queue_enqueue_many(handle, T("q"), &one, 1, &answers, &err));
    GONE(stanchion_queue_claim(handle, T("q"), NULL, &claim, 1, &count, &err));
    GONE(stanchion_queues_claim(handle, NULL, 0, NULL, &claim, 1, &count, &err));
    GONE(stanchion_queue_settle(handle, T("q"), &verdict, 1, &answers, &err));
    GONE(stanchion_queue_settle_and_claim(handle, T("q"), &verdict, 1, &answers, NULL, &claim, 1, &count, &err));
    GONE(stanchion_queue_pop(handle, T("q"), 1, &tasks, &err));
    GONE(stanchion_queue_peek(handle, T("q"), 1, &tasks, &err));
    GONE(stanchion_queue_get(handle, T("q"), T("a"), &tasks, &err));
    GONE(stanchion_queue_list(handle, T("q"), &listing, &tasks, &err));
    GONE(stanchion_queue_remove(handle, T("q"), T("a"), -1, NULL, &err));
    GONE(stanchion_queue_cancel(handle, T("q"), T("a"), &err));
    GONE(stanchion_queue_result(handle, T("q"), T("a"), -1, 0, &result, &err));
    GONE(stanchion_result_get(handle, &became, &err));
    CHECK(result == 7);
    GONE(stanchion_queue_events(handle, T("q"), 0, 0, NULL, &events, &err));
    GONE(stanchion_task_events_at(handle, 0, &happened, &err));
    CHECK(events == 7 && stanchion_task_events_len(handle) == 0);
    CHECK(stanchion_task_events_missed(handle) == 0 && stanchion_task_events_cursor(handle) == -1);
    GONE(stanchion_queue_reschedule(handle, T("q"), T("a"), 0, NULL, &err));
    GONE(stanchion_queue_kick(handle, T("q"), &dead, &page, &err));
    GONE(stanchion_queue_remove_dead(handle, T("q"), &dead, &page, &err));
    GONE(stanchion_queue_stats(handle, T("q"), &stats, &err));
    GONE(stanchion_queue_consumers(handle, T("q"), &consumers, &err));
    GONE(stanchion_consumers_at(handle, 0, &consumer, &err));
    GONE(stanchion_queue_pause(handle, T("q"), &err));
    GONE(stanchion_queue_resume(handle, T("q"), &err));
    GONE(stanchion_queue_purge(handle, T("q"), &page, &err));
    GONE(stanchion_queue_configure(handle, T("q"), &settings, &err));
    GONE(stanchion_queue_schedule(handle, T("q"), &planned, &outcome, &err));
    GONE(stanchion_queue_sync_schedules(handle, T("q"), T("a"), 1, &planned, 1, &synced, &err));
    GONE(stanchion_queue_get_schedule(handle, T("q"), T("a"), &schedules, &err));
    GONE(stanchion_queue_list_schedules(handle, T("q"), NULL, 0, 1, &schedules, &err));
    GONE(stanchion_queue_pause_schedule(handle, T("q"), T("a"), &err));
    GONE(stanchion_queue_resume_schedule(handle, T("q"), T("a"), &err));
    GONE(stanchion_queue_run_schedule(handle, T("q"), T("a"), &ran, &err));
    GONE(stanchion_queue_remove_schedule(handle, T("q"), T("a"), &err));
    GONE(stanchion_schedules_at(handle, 0, &shown, &err));
    GONE(stanchion_schedules_next(handle, &text, &err));
    CHECK(stanchion_schedules_len(handle) == 0 && schedules == 7 && outcome == 7);
    GONE(stanchion_queue_limit_key(handle, T("q"), T("k"), &limits, &err));
    GONE(stanchion_limiter_take(handle, T("l"), &limit, NULL, &err));
    GONE(stanchion_queue_get_key(handle, T("q"), T("k"), &keys, &err));
    GONE(stanchion_queue_list_keys(handle, T("q"), NULL, 0, 1, &keys, &err));
    GONE(stanchion_keys_at(handle, 0, &key, &err));
    GONE(stanchion_keys_next(handle, &text, &err));
    CHECK(stanchion_keys_len(handle) == 0 && keys == 7);
    GONE(stanchion_queue_enqueue_flow(handle, T("q"), T("f"), &node, 1, &was_put, &err));
    GONE(stanchion_queue_add_to_flow(handle, T("q"), T("f"), &node, 1, &err));
    GONE(stanchion_queue_get_flow(handle, T("q"), T("f"), &flows, &err));
    GONE(stanchion_queue_list_flows(handle, T("q"), NULL, 0, 1, &flows, &err));
    GONE(stanchion_queue_cancel_flow(handle, T("q"), T("f"), &err));
    GONE(stanchion_queue_retry_flow(handle, T("q"), T("f"), &err));
    GONE(stanchion_flows_at(handle, 0, &flow, &err));
    GONE(stanchion_flows_node_at(handle, 0, 0, &told, &err));
    GONE(stanchion_flows_next(handle, &text, &err));
    GONE(stanchion_claim_inputs(handle, &inputs, &err));
    GONE(stanchion_inputs_at(handle, 0, &input, &err));
    CHECK(stanchion_flows_len(handle) == 0 && stanchion_inputs_len(handle) == 0);
    CHECK(flows == 7 && inputs == 7 && was_put == 7);
    GONE(stanchion_claim_get(handle, &about, &err));
    GONE(stanchion_claim_ack(handle, &err));
    GONE(stanchion_claim_ack_with(handle, "x", 1, &err));
    GONE(stanchion_claim_progress(handle, "x", 1, &err));
    GONE(stanchion_claim_nack(handle, 0, T("x"), &err));
    GONE(stanchion_claim_bury(handle, T("x"), &err));
    GONE(stanchion_claim_put_back(handle, 0, &err));
    GONE(stanchion_claim_throttle(handle, 0, &err));
    GONE(stanchion_claim_extend(handle, 1000, &err));
    GONE(stanchion_claim_wait_lost(handle, 1, &err));
    CHECK(stanchion_claim_remaining_ms(handle) == 0 && stanchion_claim_is_valid(handle) == 0);
    CHECK(stanchion_claim_loss(handle) == 0);
    GONE(stanchion_tasks_at(handle, 0, &found, &err));
    GONE(stanchion_tasks_failure_at(handle, 0, 0, &failed, &err));
    GONE(stanchion_tasks_next(handle, &text, &err));
    GONE(stanchion_names_at(handle, 0, &text, &err));
    GONE(stanchion_answers_at(handle, 0, NULL, &err));
    double number = 7;
    stanchion_metrics counted = 7;
    GONE(stanchion_client_metrics(handle, &counted, &err));
    GONE(stanchion_metrics_at(handle, 0, &text, &number, &err));
    GONE(stanchion_metrics_get(handle, T("x"), &number, &err));
    GONE(stanchion_metrics_text(handle, &text, &err));
    CHECK(number == 7 && counted == 7 && stanchion_metrics_len(handle) == 0 && stanchion_waiters_len(handle) == 0);
    CHECK(stanchion_tasks_len(handle) == 0 && stanchion_names_len(handle) == 0 && stanchion_answers_len(handle) == 0);
    CHECK(stanchion_consumers_len(handle) == 0 && consumers == 7);
    GONE(stanchion_worker_open(handle, T("q"), NULL, &worker, &err));
    GONE(stanchion_worker_poll(handle, 1, &claim, &err));
    GONE(stanchion_worker_complete(handle, 1, &err));
    GONE(stanchion_worker_fail(handle, 1, T("x"), &err));
    GONE(stanchion_worker_stop(handle, &err));
    GONE(stanchion_worker_hurry(handle, &err));
    GONE(stanchion_worker_get_report(handle, &report, &err));
    GONE(stanchion_worker_get_event(handle, &event, &err));
    stanchion_clock_free(handle);
    stanchion_client_free(handle);
    stanchion_lease_free(handle);
    stanchion_claim_free(handle);
    stanchion_tasks_free(handle);
    stanchion_names_free(handle);
    stanchion_answers_free(handle);
    stanchion_result_free(handle);
    stanchion_task_events_free(handle);
    stanchion_holders_free(handle);
    stanchion_waiters_free(handle);
    stanchion_consumers_free(handle);
    stanchion_schedules_free(handle);
    stanchion_keys_free(handle);
    stanchion_flows_free(handle);
    stanchion_inputs_free(handle);
    stanchion_metrics_free(handle);
    stanchion_worker_free(handle);
    CHECK(holders == 7 && waiters == 7 && lease == 7 && claim == 7 && tasks == 7 && names == 7 && answers == 7 && worker == 7 && count == 7 && page == 7);
}

TEST(forged_handles_are_refused_everywhere) {
    static const int64_t forged[] = {0, 1, -1, 2, INT64_MAX, INT64_MIN, 0x41414141, 1LL << 24, (1LL << 24) - 1};
    for (size_t index = 0; index < sizeof forged / sizeof *forged; index++) refused(forged[index]);
}

TEST(stale_handles_are_refused_everywhere) {
    stanchion_client client = opened();
    stanchion_lease lease = acquired(client, unique("stale"));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
    refused(lease);
    refused(client);
    refused(-client);
}

TEST(a_handle_of_another_kind_is_refused_and_stays) {
    stanchion_client client = opened();
    const char *name = unique("kinds");
    stanchion_lease lease = acquired(client, name);
    GONE(stanchion_lease_release(client, &err));
    GONE(stanchion_claim_ack(lease, &err));
    GONE(stanchion_worker_stop(lease, &err));
    stanchion_client_free(lease);
    stanchion_claim_free(lease);
    stanchion_lease_free(client);
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(client);
}

TEST(the_next_handle_is_another_number) {
    stanchion_clock first = 0, second = 0;
    OK(stanchion_clock_new(&first, &err));
    stanchion_clock_free(first);
    OK(stanchion_clock_new(&second, &err));
    CHECK(first != second);
    stanchion_clock_free(first);
    OK(stanchion_clock_advance(second, 1, &err));
    stanchion_clock_free(second);
}

static stanchion_lease contended;

static void *free_later(void *nothing) {
    pause_ms(50);
    stanchion_lease_free(contended);
    return nothing;
}

TEST(a_handle_that_is_freed_in_the_middle_of_a_call) {
    stanchion_client client = opened();
    contended = acquired(client, unique("middle"));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_later, NULL) == 0);
    EXPECT(STANCHION_LOST, stanchion_lease_wait_lost(contended, 60000, &err));
    GONE(stanchion_lease_check(contended, &err));
    CHECK(pthread_join(thread, NULL) == 0);
    stanchion_client_free(client);
}

static stanchion_client client_of_all;
static char name_of_all[128];
static int64_t shared[8];
static int stop;

/* Uses handles that others free at any moment. */
static void *use(void *seed) {
    unsigned state = *(unsigned *)seed;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        state = state * 1103515245u + 12345u;
        int64_t *place = &shared[(state >> 16) % 8];
        int64_t handle = __atomic_load_n(place, __ATOMIC_RELAXED);
        switch ((state >> 20) % 6) {
        case 0: {
            stanchion_lease fresh = 0;
            stanchion_lock_options options = lock_options();
            options.wait_ms = 0;
            if (stanchion_lock_acquire(client_of_all, T(name_of_all), &options, &fresh, NULL) == STANCHION_OK) {
                stanchion_lease_free(__atomic_exchange_n(place, fresh, __ATOMIC_SEQ_CST));
            }
            break;
        }
        case 1: stanchion_lease_release(handle, NULL); break;
        case 2: stanchion_lease_free(handle); break;
        case 3: stanchion_lease_extend(handle, 1000, NULL); break;
        case 4: stanchion_lease_fence(handle); break;
        default: stanchion_lease_check(handle, NULL); break;
        }
    }
    return NULL;
}

TEST(threads_that_free_what_others_use) {
    client_of_all = opened();
    snprintf(name_of_all, sizeof name_of_all, "%s", unique("wild"));
    pthread_t threads[4];
    unsigned seeds[4] = {1, 2, 3, 4};
    for (int index = 0; index < 4; index++) CHECK(pthread_create(&threads[index], NULL, use, &seeds[index]) == 0);
    pause_ms(500);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    for (int index = 0; index < 4; index++) CHECK(pthread_join(threads[index], NULL) == 0);
    for (int index = 0; index < 8; index++) stanchion_lease_free(shared[index]);
    /* Nothing is held any more. */
    stanchion_lease last = acquired(client_of_all, name_of_all);
    OK(stanchion_lease_release(last, &err));
    stanchion_lease_free(last);
    stanchion_client_free(client_of_all);
}

static int counter;

static void *add(void *nothing) {
    for (int turn = 0; turn < 50; turn++) {
        stanchion_lease lease = acquired(client_of_all, name_of_all);
        int before = counter;
        if (turn % 10 == 0) pause_ms(1);
        counter = before + 1;
        OK(stanchion_lease_release(lease, &err));
        stanchion_lease_free(lease);
    }
    return nothing;
}

TEST(threads_of_one_client_exclude_each_other) {
    client_of_all = opened();
    snprintf(name_of_all, sizeof name_of_all, "%s", unique("count"));
    pthread_t threads[8];
    for (int index = 0; index < 8; index++) CHECK(pthread_create(&threads[index], NULL, add, NULL) == 0);
    for (int index = 0; index < 8; index++) CHECK(pthread_join(threads[index], NULL) == 0);
    CHECK(counter == 400);
    stanchion_client_free(client_of_all);
}

TEST(all_handles_are_freed_at_once) {
    stanchion_client client = opened();
    const char *queue = unique("all");
    enqueued(client, queue, "a");
    stanchion_lease lease = acquired(client, unique("all"));
    stanchion_claim claim = claimed(client, queue);
    stanchion_free_all();
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_lease_release(lease, &err));
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_claim_ack(claim, &err));
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_lock_is_locked(client, T("all"), &err));
    stanchion_free_all();
    if (is_memory()) return; /* It went with its client. */
    client = opened();
    for (int turns = 0; stats(client, queue).claimed == 1 && turns < 5000; turns++) pause_ms(1);
    CHECK(stats(client, queue).scheduled == 1);
    stanchion_client_free(client);
}
