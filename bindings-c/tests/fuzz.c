/* Calls in any order with hostile arguments: NULL, wrong sizes and lengths, text that is no UTF-8, huge numbers, handles
 * that are stale, forged or of another kind; by two threads at once. Whatever is asked, the library answers.
 *
 * Arguments: the store, a seed, seconds. */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stanchion.h>

#define THREADS 2
#define HANDLES 64
#define CLOCKS 4

/* Of all kinds, used and freed by all threads. */
static int64_t handles[HANDLES];
/* These are moved all the time: whoever waits on a clock that stands still waits for ever. */
static int64_t clocks[CLOCKS];
static uint64_t kept;
static const char *store;
static double seconds;

static _Thread_local uint64_t state;
static _Thread_local stanchion_error *last_error;

static uint64_t any(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1D;
}

static bool one_in(unsigned chances) { return (any() >> 33) % chances == 0; }
static size_t below(size_t limit) { return (size_t)((any() >> 33) % limit); }

static int64_t handle(void) {
    if (one_in(20)) return (int64_t)any();
    if (one_in(40)) return (int64_t)(any() % 100);
    int64_t kept = __atomic_load_n(&handles[below(HANDLES)], __ATOMIC_RELAXED);
    return one_in(40) ? kept ^ (int64_t)((uint64_t)1 << below(64)) : kept;
}

static void free_all_kinds(int64_t old) {
    stanchion_client_free(old);
    stanchion_lease_free(old);
    stanchion_claim_free(old);
    stanchion_worker_free(old);
    stanchion_tasks_free(old);
    stanchion_names_free(old);
    stanchion_answers_free(old);
    stanchion_result_free(old);
    stanchion_task_events_free(old);
    stanchion_holders_free(old);
    stanchion_waiters_free(old);
    stanchion_consumers_free(old);
    stanchion_schedules_free(old);
    stanchion_keys_free(old);
    stanchion_flows_free(old);
    stanchion_inputs_free(old);
    stanchion_metrics_free(old);
}

/* In the place of another, which may be in use by another thread. */
static void keep(int64_t fresh) {
    __atomic_fetch_add(&kept, 1, __ATOMIC_RELAXED);
    free_all_kinds(__atomic_exchange_n(&handles[below(HANDLES)], fresh, __ATOMIC_SEQ_CST));
}

static int64_t number(void) {
    static const int64_t numbers[] = {-1, -1, -1, 0, 1, 5, 20, 50, 100, 1000, -2, INT64_MAX, INT64_MIN, 1LL << 53, 255, 256};
    return one_in(10) ? (int64_t)any() : numbers[below(sizeof numbers / sizeof *numbers)];
}

/* For what is waited: no run is to wait for ever. */
static int64_t wait(void) {
    static const int64_t waits[] = {-2, 0, 0, 1, 2, 5, INT64_MIN};
    return waits[below(sizeof waits / sizeof *waits)];
}

static int32_t small(void) { return (int32_t)below(8) - 2; }

static stanchion_text text(void) {
    static const char *const texts[] = {"a", "b", "q", "lock", "{x}", "}{", "", "\n", "\xff", "\xed\xa0\x80", "\xc3\xa9", "{}"};
    static const char large[70000] = {'x'};
    stanchion_text text = {texts[below(sizeof texts / sizeof *texts)], 0};
    text.len = strlen(text.data);
    if (one_in(20)) text.len = below(text.len + 1);
    if (one_in(30)) text.data = NULL;
    if (one_in(40)) text = (stanchion_text){large, sizeof large};
    if (one_in(40)) text.len = (size_t)INT64_MAX + below(3);
    return text;
}

static size_t size_of(size_t right) {
    static const size_t wrong[] = {0, 1, 8, 9, 16, 1 << 20, SIZE_MAX};
    return one_in(15) ? wrong[below(sizeof wrong / sizeof *wrong)] : right;
}

static stanchion_error **err(void) {
    stanchion_error_free(last_error);
    last_error = NULL;
    return one_in(10) ? NULL : &last_error;
}

/* What is wrong in a place is put there after init, which must not write beyond the struct. */
#define MADE(type, name, init) \
    type name; \
    init(&name, sizeof name); \
    name.struct_size = size_of(sizeof name)
#define PLACE(type, name) \
    type name; \
    memset(&name, 0, sizeof name); \
    name.struct_size = size_of(sizeof name)
#define OR_NULL(pointer) (one_in(15) ? NULL : (pointer))

static stanchion_text backoff(void) {
    static const char *const texts[] = {"[0]", "[1000,60000]", "[]", "[-1]", "{\"base\":1}", "{\"base\":5,\"max\":1}",
                                        "{\"base\":1,\"factor\":1e308}", "[[[[", "{\"base\":1,\"jitter\":0,\"max\":9}"};
    if (one_in(4)) return text();
    stanchion_text backoff = {texts[below(sizeof texts / sizeof *texts)], 0};
    backoff.len = strlen(backoff.data);
    if (one_in(30)) backoff.len = below(backoff.len + 1);
    return backoff;
}

static stanchion_task some_task(const stanchion_header *headers) {
    MADE(stanchion_task, task, stanchion_task_init);
    if (!one_in(4)) task.id = text();
    stanchion_text payload = text();
    task.payload = payload.data;
    task.payload_len = payload.len;
    if (one_in(3)) task.headers = headers;
    if (one_in(3)) task.header_count = one_in(5) ? (size_t)any() | (1 << 21) : task.headers ? below(3) : 1;
    if (one_in(4)) task.delay_ms = number();
    if (one_in(6)) task.due_ms = number();
    if (one_in(4)) task.max_attempts = number();
    if (one_in(6)) task.expires_ms = number();
    if (one_in(3)) task.window_ms = number();
    if (one_in(2)) task.on_duplicate = small();
    if (one_in(4)) task.priority = (int32_t)number();
    if (one_in(3)) task.kind = text();
    if (one_in(4)) task.timeout_ms = number();
    if (one_in(3)) task.backoff = backoff();
    if (one_in(4)) task.keep_result_ms = number();
    if (one_in(2)) task.key = text();
    return task;
}

/* As texts are: right, wrong, of wrong lengths. */
static stanchion_text when(void) {
    static const char *const texts[] = {"every 100ms", "* * * * * *", "0 3 * * *", "@yearly", "@every 1h", "0 0 30 2 *",
                                        "at 2100-01-01T00:00:00Z", "at 1999-01-01T00:00:00Z, x", "every -1s", "* * *"};
    if (one_in(8)) return text();
    stanchion_text when = {texts[below(sizeof texts / sizeof *texts)], 0};
    when.len = strlen(when.data);
    if (one_in(30)) when.len = below(when.len + 1);
    return when;
}

static stanchion_schedule some_schedule(const stanchion_header *headers) {
    static const stanchion_text zones[] = {{"UTC", 3}, {"Europe/Berlin", 13}, {"Africa/Casablanca", 17}, {"Mars/Phobos", 11}};
    MADE(stanchion_schedule, schedule, stanchion_schedule_init);
    schedule.id = text();
    schedule.when = when();
    if (one_in(2)) schedule.tz = one_in(8) ? text() : zones[below(4)];
    if (one_in(6)) schedule.starts_ms = number();
    if (one_in(6)) schedule.ends_ms = number();
    if (one_in(4)) schedule.jitter_ms = number();
    if (one_in(2)) schedule.missed = small();
    if (one_in(2)) schedule.missed_max = number();
    if (one_in(3)) schedule.overlap = small();
    if (one_in(4)) schedule.paused = small();
    if (one_in(4)) schedule.priority = (int32_t)number();
    stanchion_text payload = text();
    schedule.payload = payload.data;
    schedule.payload_len = payload.len;
    if (one_in(3)) schedule.headers = headers;
    if (one_in(3)) schedule.header_count = one_in(5) ? (size_t)any() | (1 << 21) : schedule.headers ? below(3) : 1;
    if (one_in(4)) schedule.max_attempts = number();
    if (one_in(6)) schedule.expires_ms = number();
    if (one_in(3)) schedule.key = text();
    return schedule;
}

static stanchion_rate some_rate(void) {
    stanchion_rate rate = {number(), number(), number()};
    return rate;
}

static stanchion_verdict some_verdict(void) {
    MADE(stanchion_verdict, verdict, stanchion_verdict_init);
    verdict.claim = handle();
    verdict.delay_ms = number();
    verdict.reason = text();
    verdict.kind = small();
    if (one_in(2)) {
        stanchion_text result = text();
        verdict.result = result.data;
        verdict.result_len = result.len;
    }
    return verdict;
}

static stanchion_claim_options some_claiming(void) {
    MADE(stanchion_claim_options, options, stanchion_claim_options_init);
    static const int32_t yes = 1;
    options.wait_ms = wait();
    if (one_in(3)) options.lease_ms = number();
    if (one_in(5)) options.max_run_ms = number();
    if (one_in(5)) options.renew = small();
    if (one_in(5)) options.timeout_ms = number();
    if (one_in(8)) options.cancel = &yes;
    return options;
}

/* The right length of a text that is checked when it is read. */
#define GIVEN(text) (text).data, (text).len

static void check_view(stanchion_text view) {
    volatile char last = 0;
    for (size_t index = 0; index < view.len; index++) last = view.data[index];
    (void)last;
}

static void locks(stanchion_text name) {
    int64_t out = 0;
    MADE(stanchion_lock_options, options, stanchion_lock_options_init);
    options.wait_ms = wait();
    if (one_in(2)) options.ttl_ms = number();
    if (one_in(4)) options.max_hold_ms = number();
    if (one_in(4)) options.adopt_unexpiring_ms = number();
    if (one_in(3)) options.label = text();
    if (one_in(4)) options.renew = small();
    if (one_in(4)) options.fail_fast = small();
    if (one_in(6)) options.weight = number();
    if (one_in(4)) options.owner = text();
    const stanchion_text names[2] = {name, text()};
    size_t count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    int64_t client = handle(), permits = one_in(3) ? number() : 3;
    PLACE(stanchion_holder, holder);
    PLACE(stanchion_lease_info, lease_info);
    stanchion_text view = {NULL, 0};
    switch (below(30)) {
    case 0: case 1: case 2:
        if (stanchion_lock_acquire(handle(), GIVEN(name), &options, OR_NULL(&out), err()) == 0) keep(out);
        break;
    case 3: stanchion_lock_holder(handle(), GIVEN(name), OR_NULL(&holder), err()); break;
    case 4: stanchion_lock_is_locked(handle(), GIVEN(name), err()); break;
    case 5: stanchion_lock_break_lease(handle(), GIVEN(name), err()); break;
    case 6: stanchion_lease_get(handle(), OR_NULL(&lease_info), err()); break;
    case 7: number() % 2 ? stanchion_lease_extend(handle(), number(), err()) : stanchion_lease_extend_exact(handle(), number(), err()); break;
    case 8: stanchion_lease_release(handle(), err()); break;
    case 9: stanchion_lease_release_with_cooldown(handle(), number() % 1000, err()); break;
    case 10: stanchion_lease_wait_lost(handle(), wait(), err()); break;
    case 11: stanchion_lease_detach(handle(), number(), OR_NULL(&view), err()); break;
    case 12: if (stanchion_client_resume_lease(handle(), GIVEN(name), OR_NULL(&out), err()) == 0) keep(out); break;
    case 13: if (stanchion_read_lock_acquire(client, GIVEN(name), &options, OR_NULL(&out), err()) == 0) keep(out); break;
    case 14: if (stanchion_write_lock_acquire(client, GIVEN(name), &options, OR_NULL(&out), err()) == 0) keep(out); break;
    case 15: case 16:
        if (stanchion_semaphore_acquire(client, GIVEN(name), permits, &options, OR_NULL(&out), err()) == 0) keep(out);
        break;
    case 17: if (stanchion_multi_lock_acquire(client, OR_NULL(names), count, &options, OR_NULL(&out), err()) == 0) keep(out); break;
    case 18: if (stanchion_lock_holders(client, GIVEN(name), OR_NULL(&out), err()) == 0) keep(out); break;
    case 19: if (stanchion_rw_lock_holders(client, GIVEN(name), OR_NULL(&out), err()) == 0) keep(out); break;
    case 20: if (stanchion_semaphore_holders(client, GIVEN(name), OR_NULL(&out), err()) == 0) keep(out); break;
    case 27: if (stanchion_lock_waiters(client, GIVEN(name), OR_NULL(&out), err()) == 0) keep(out); break;
    case 28: if (stanchion_semaphore_waiters(client, GIVEN(name), OR_NULL(&out), err()) == 0) keep(out); break;
    case 21: stanchion_rw_lock_is_locked(client, GIVEN(name), err()); break;
    case 22: stanchion_semaphore_is_locked(client, GIVEN(name), err()); break;
    case 23: stanchion_rw_lock_break_lease(client, GIVEN(name), err()); break;
    case 24: stanchion_semaphore_break_lease(client, GIVEN(name), err()); break;
    case 25: number() % 2 ? stanchion_lease_downgrade(handle(), err()) : stanchion_lease_upgrade(handle(), err()); break;
    case 26: {
        int64_t fence = 0;
        if (stanchion_lease_fences_at(handle(), one_in(4) ? (size_t)any() : below(3), OR_NULL(&view), OR_NULL(&fence), err()) == 0) {
            check_view(view);
        }
        break;
    }
    default: {
        int64_t lease = handle();
        stanchion_lease_fences_len(lease);
        stanchion_lease_check(lease, err());
        stanchion_lease_fence(lease);
        stanchion_lease_remaining_ms(lease);
        stanchion_lease_loss(lease);
    }
    }
}

static void tasks(stanchion_text queue) {
    int64_t out[4] = {0, 0, 0, 0}, answers = 0;
    size_t found = 0;
    const stanchion_header headers[2] = {{text(), text()}, {text(), text()}};
    const stanchion_task some[2] = {some_task(headers), some_task(headers)};
    const stanchion_verdict verdicts[2] = {some_verdict(), some_verdict()};
    const stanchion_claim_options options = some_claiming();
    const stanchion_text names[2] = {queue, text()};
    size_t count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    size_t max = one_in(20) ? 1001 + below(1u << 30) : 1 + below(4);
    PLACE(stanchion_enqueued, enqueued);
    int64_t client = handle();
    int32_t status = 0;
    switch (below(12)) {
    case 0: case 1: case 2: case 3:
        stanchion_queue_enqueue(client, GIVEN(queue), OR_NULL(some), OR_NULL(&enqueued), err());
        break;
    case 4: if (stanchion_queue_enqueue_many(client, GIVEN(queue), OR_NULL(some), count, OR_NULL(out), err()) == 0) keep(out[0]); break;
    case 5: case 6: case 7: case 8:
        status = stanchion_queue_claim(client, GIVEN(queue), OR_NULL(&options), OR_NULL(out), max, OR_NULL(&found), err());
        break;
    case 9: status = stanchion_queues_claim(client, OR_NULL(names), count, &options, out, max, &found, err()); break;
    case 10: if (stanchion_queue_settle(client, GIVEN(queue), OR_NULL(verdicts), count, OR_NULL(&answers), err()) == 0) keep(answers); break;
    default:
        status = stanchion_queue_settle_and_claim(client, GIVEN(queue), OR_NULL(verdicts), count, OR_NULL(&answers),
                                                  &options, out, max, &found, err());
        if (status >= 0) keep(answers);
    }
    for (size_t index = 0; status == 0 && index < found; index++) keep(out[index]);
}

static void claims(void) {
    int64_t claim = handle();
    stanchion_text reason = text();
    PLACE(stanchion_claim_info, info);
    switch (below(12)) {
    case 10: stanchion_claim_throttle(claim, number(), err()); break;
    case 0: stanchion_claim_get(claim, OR_NULL(&info), err()); break;
    case 1: stanchion_claim_ack(claim, err()); break;
    case 2: stanchion_claim_nack(claim, number(), GIVEN(reason), err()); break;
    case 3: stanchion_claim_bury(claim, GIVEN(reason), err()); break;
    case 4: stanchion_claim_put_back(claim, number(), err()); break;
    case 5: stanchion_claim_extend(claim, number(), err()); break;
    case 6: stanchion_claim_wait_lost(claim, wait(), err()); break;
    case 8: stanchion_claim_ack_with(claim, GIVEN(reason), err()); break;
    case 9: stanchion_claim_progress(claim, GIVEN(reason), err()); break;
    case 7: stanchion_claim_remaining_ms(claim); stanchion_claim_is_valid(claim); stanchion_claim_loss(claim); break;
    default: stanchion_claim_free(claim);
    }
}

static stanchion_list_options some_listing(void) {
    MADE(stanchion_list_options, options, stanchion_list_options_init);
    options.state = small();
    if (one_in(3)) options.prefix = text();
    if (one_in(3)) options.page = text();
    if (one_in(3)) options.max = number();
    if (one_in(3)) options.without_payloads = small();
    return options;
}

/* The arrays have two elements. */
static stanchion_dead_tasks some_dead(const stanchion_text *ids, const int64_t *receipts) {
    MADE(stanchion_dead_tasks, dead, stanchion_dead_tasks_init);
    if (one_in(2)) {
        dead.ids = OR_NULL(ids);
        dead.id_count = one_in(8) ? (size_t)any() | (1 << 21) : below(3);
    }
    if (one_in(3)) {
        dead.receipts = OR_NULL(receipts);
        dead.receipt_count = one_in(8) ? (size_t)any() | (1 << 21) : below(3);
    }
    if (one_in(3)) dead.count = one_in(2) ? any() : below(10);
    if (one_in(3)) dead.reason = text();
    if (one_in(3)) dead.prefix = text();
    if (one_in(3)) dead.older_than_ms = number();
    return dead;
}

static void manage(stanchion_text queue, stanchion_text id) {
    int64_t out = 0, client = handle(), when = 0;
    uint64_t page = one_in(3) ? any() : 0, moved = 0;
    const stanchion_text ids[2] = {id, text()};
    const int64_t receipts[2] = {number(), number()};
    const stanchion_list_options listing = some_listing();
    const stanchion_dead_tasks dead = some_dead(ids, receipts);
    PLACE(stanchion_stats, stats);
    MADE(stanchion_queue_config, settings, stanchion_queue_config_init);
    if (one_in(2)) settings.max_len = number();
    if (one_in(4)) settings.dead_max = number();
    if (one_in(4)) settings.dead_age_ms = number();
    if (one_in(4)) settings.dead_bytes = number();
    if (one_in(4)) settings.intake = small();
    if (one_in(2)) settings.events = one_in(2) ? 5 : number();
    if (one_in(3)) settings.max_running = number();
    if (one_in(3)) settings.rate = some_rate();
    if (one_in(3)) settings.key_concurrency = number();
    if (one_in(3)) settings.key_rate = some_rate();
    size_t max = one_in(5) ? (size_t)any() : below(10);
    int32_t status = 1;
    switch (below(18)) {
    case 0: status = stanchion_queue_pop(client, GIVEN(queue), max, OR_NULL(&out), err()); break;
    case 1: status = stanchion_queue_peek(client, GIVEN(queue), max, OR_NULL(&out), err()); break;
    case 2: status = stanchion_queue_get(client, GIVEN(queue), GIVEN(id), OR_NULL(&out), err()); break;
    case 3: status = stanchion_queue_list(client, GIVEN(queue), OR_NULL(&listing), OR_NULL(&out), err()); break;
    case 4: stanchion_queue_remove(client, GIVEN(queue), GIVEN(id), number(), OR_NULL(&when), err()); break;
    case 5: stanchion_queue_reschedule(client, GIVEN(queue), GIVEN(id), number(), OR_NULL(&when), err()); break;
    case 6: stanchion_queue_kick(client, GIVEN(queue), OR_NULL(&dead), OR_NULL(&moved), err()); break;
    case 7: stanchion_queue_remove_dead(client, GIVEN(queue), OR_NULL(&dead), OR_NULL(&moved), err()); break;
    case 8: stanchion_queue_stats(client, GIVEN(queue), OR_NULL(&stats), err()); break;
    case 9: if (one_in(5)) stanchion_queue_pause(client, GIVEN(queue), err()); break;
    case 10: stanchion_queue_resume(client, GIVEN(queue), err()); break;
    case 11: if (one_in(10)) stanchion_queue_purge(client, GIVEN(queue), OR_NULL(&moved), err()); break;
    case 12: stanchion_queue_configure(client, GIVEN(queue), OR_NULL(&settings), err()); break;
    case 14: stanchion_queue_cancel(client, GIVEN(queue), GIVEN(id), err()); break;
    case 15:
        status = stanchion_queue_result(client, GIVEN(queue), GIVEN(id), number(), wait(), OR_NULL(&out), err());
        if (status == STANCHION_DEAD) keep(out);
        break;
    case 13: status = stanchion_queue_consumers(client, GIVEN(queue), OR_NULL(&out), err()); break;
    case 16: {
        const int32_t cancel = small();
        status = stanchion_queue_events(client, GIVEN(queue), number(), wait(), OR_NULL(&cancel), OR_NULL(&out), err());
        break;
    }
    default: status = stanchion_client_locks(client, page, OR_NULL(&out), OR_NULL(&page), err());
    }
    if (status == 0) keep(out);
}

static void keys(stanchion_text queue, stanchion_text key) {
    int64_t out = 0, client = handle();
    int32_t status = 1;
    MADE(stanchion_key_limits, limits, stanchion_key_limits_init);
    if (one_in(2)) limits.concurrency = number();
    if (one_in(3)) limits.rate = some_rate();
    if (one_in(2)) limits.weight = number();
    const stanchion_text page = one_in(3) ? text() : (stanchion_text){NULL, 0};
    size_t max = one_in(8) ? (size_t)any() | (1 << 21) : below(5);
    switch (below(4)) {
    case 0: case 1: stanchion_queue_limit_key(client, GIVEN(queue), GIVEN(key), OR_NULL(&limits), err()); break;
    case 2: status = stanchion_queue_get_key(client, GIVEN(queue), GIVEN(key), OR_NULL(&out), err()); break;
    default: status = stanchion_queue_list_keys(client, GIVEN(queue), GIVEN(page), max, OR_NULL(&out), err());
    }
    if (status == 0) keep(out);
}

/* The names have two elements. */
static stanchion_node some_node(const stanchion_task *task, const stanchion_text *names) {
    MADE(stanchion_node, node, stanchion_node_init);
    node.task = OR_NULL(task);
    if (one_in(6)) node.queue = text();
    if (one_in(3)) node.after = names;
    if (one_in(4)) node.after_end = names;
    if (one_in(4)) node.after_failure = names;
    if (node.after != NULL || one_in(20)) node.after_count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    if (node.after_end != NULL || one_in(20)) node.after_end_count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    if (node.after_failure != NULL || one_in(20)) node.after_failure_count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    if (one_in(4)) node.after_all = small();
    return node;
}

static void flows(stanchion_text queue, stanchion_text id) {
    int64_t out = 0, client = handle();
    int32_t status = 1, was_put = 0;
    const stanchion_header headers[2] = {{text(), text()}, {text(), text()}};
    const stanchion_task tasks[2] = {some_task(headers), some_task(headers)};
    const stanchion_text names[2] = {text(), text()};
    const stanchion_node some[2] = {some_node(&tasks[0], names), some_node(&tasks[1], names)};
    const stanchion_text page = one_in(3) ? text() : (stanchion_text){NULL, 0};
    size_t count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    size_t max = one_in(8) ? (size_t)any() | (1 << 21) : below(5);
    switch (below(10)) {
    case 0: case 1: case 2: case 3:
        stanchion_queue_enqueue_flow(client, GIVEN(queue), GIVEN(id), OR_NULL(some), count, OR_NULL(&was_put), err());
        break;
    case 4: stanchion_queue_add_to_flow(client, GIVEN(queue), GIVEN(id), OR_NULL(some), count, err()); break;
    case 5: status = stanchion_queue_get_flow(client, GIVEN(queue), GIVEN(id), OR_NULL(&out), err()); break;
    case 6: status = stanchion_queue_list_flows(client, GIVEN(queue), GIVEN(page), max, OR_NULL(&out), err()); break;
    case 7: stanchion_queue_cancel_flow(client, GIVEN(queue), GIVEN(id), err()); break;
    case 8: stanchion_queue_retry_flow(client, GIVEN(queue), GIVEN(id), err()); break;
    default: status = stanchion_claim_inputs(client, OR_NULL(&out), err());
    }
    if (status == 0) keep(out);
}

static void limiters(stanchion_text name) {
    int64_t retry = 0;
    const int32_t cancel = small();
    MADE(stanchion_limit, limit, stanchion_limit_init);
    limit.n = number();
    if (one_in(2)) limit.per_us = number();
    if (one_in(2)) limit.burst = number();
    if (one_in(2)) limit.kind = small();
    if (one_in(2)) limit.count = number();
    limit.wait_ms = wait();
    if (one_in(3)) limit.cancel = &cancel;
    stanchion_limiter_take(handle(), GIVEN(name), OR_NULL(&limit), OR_NULL(&retry), err());
}

static void schedules(stanchion_text queue, stanchion_text id) {
    int64_t out = 0, client = handle(), times[4];
    int32_t outcome = 0, status = 1;
    const stanchion_header headers[2] = {{text(), text()}, {text(), text()}};
    const stanchion_schedule some[2] = {some_schedule(headers), some_schedule(headers)};
    const stanchion_text page = one_in(3) ? text() : (stanchion_text){NULL, 0};
    size_t count = one_in(20) ? (size_t)any() | (1 << 21) : below(3);
    size_t max = one_in(8) ? (size_t)any() | (1 << 21) : below(5);
    PLACE(stanchion_synced, synced);
    PLACE(stanchion_ran, ran);
    switch (below(12)) {
    case 0: case 1: case 2: stanchion_queue_schedule(client, GIVEN(queue), OR_NULL(some), OR_NULL(&outcome), err()); break;
    case 3: case 4:
        stanchion_queue_sync_schedules(client, GIVEN(queue), GIVEN(id), number(), OR_NULL(some), count, OR_NULL(&synced), err());
        break;
    case 5: status = stanchion_queue_get_schedule(client, GIVEN(queue), GIVEN(id), OR_NULL(&out), err()); break;
    case 6: status = stanchion_queue_list_schedules(client, GIVEN(queue), GIVEN(page), max, OR_NULL(&out), err()); break;
    case 7: stanchion_queue_pause_schedule(client, GIVEN(queue), GIVEN(id), err()); break;
    case 8: stanchion_queue_resume_schedule(client, GIVEN(queue), GIVEN(id), err()); break;
    case 9: stanchion_queue_run_schedule(client, GIVEN(queue), GIVEN(id), OR_NULL(&ran), err()); break;
    case 10: stanchion_queue_remove_schedule(client, GIVEN(queue), GIVEN(id), err()); break;
    default: stanchion_schedule_preview(OR_NULL(some), number(), OR_NULL(times), max, OR_NULL(&count), err());
    }
    if (status == 0) keep(out);
}

static void lists(void) {
    int64_t list = handle();
    stanchion_text view = {NULL, 0};
    PLACE(stanchion_task_info, task);
    PLACE(stanchion_task_failure, failure);
    PLACE(stanchion_result_info, result);
    PLACE(stanchion_task_event, event);
    PLACE(stanchion_enqueued, enqueued);
    PLACE(stanchion_holder, holder);
    PLACE(stanchion_consumer, consumer);
    PLACE(stanchion_schedule_info, schedule);
    PLACE(stanchion_key_info, key);
    PLACE(stanchion_flow_info, flow);
    PLACE(stanchion_node_info, node);
    PLACE(stanchion_input, input);
    size_t index = one_in(4) ? (size_t)any() : below(4);
    switch (below(15)) {
    case 0: stanchion_names_at(list, index, OR_NULL(&view), err()); break;
    case 1: stanchion_answers_at(list, index, OR_NULL(&enqueued), err()); break;
    case 2:
        stanchion_tasks_at(list, index, OR_NULL(&task), err());
        stanchion_tasks_next(list, OR_NULL(&view), err());
        stanchion_tasks_failure_at(list, index, below(3), OR_NULL(&failure), err());
        break;
    case 6: {
        double value = 0;
        int64_t made = 0;
        stanchion_text name = text();
        if (stanchion_client_metrics(list, OR_NULL(&made), err()) == 0) keep(made);
        stanchion_metrics_at(list, index, OR_NULL(&view), OR_NULL(&value), err());
        stanchion_metrics_get(list, GIVEN(name), OR_NULL(&value), err());
        stanchion_metrics_text(list, OR_NULL(&view), err());
        stanchion_metrics_len(list);
        break;
    }
    case 10:
        stanchion_task_events_len(list);
        stanchion_task_events_at(list, index, OR_NULL(&event), err());
        stanchion_task_events_missed(list);
        stanchion_task_events_cursor(list);
        break;
    case 9: stanchion_result_get(list, OR_NULL(&result), err()); break;
    case 3: stanchion_names_len(list); stanchion_answers_len(list); stanchion_tasks_len(list); stanchion_holders_len(list); break;
    case 4: stanchion_tasks_free(list); stanchion_names_free(list); stanchion_holders_free(list); break;
    case 5: stanchion_holders_at(list, index, OR_NULL(&holder), err()); break;
    case 8:
        stanchion_schedules_len(list);
        stanchion_schedules_at(list, index, OR_NULL(&schedule), err());
        stanchion_schedules_next(list, OR_NULL(&view), err());
        break;
    case 11:
        stanchion_keys_len(list);
        stanchion_keys_at(list, index, OR_NULL(&key), err());
        stanchion_keys_next(list, OR_NULL(&view), err());
        break;
    case 12:
        stanchion_flows_len(list);
        stanchion_flows_at(list, index, OR_NULL(&flow), err());
        stanchion_flows_node_at(list, below(2), index, OR_NULL(&node), err());
        stanchion_flows_next(list, OR_NULL(&view), err());
        break;
    case 13: stanchion_inputs_len(list); stanchion_inputs_at(list, index, OR_NULL(&input), err()); break;
    case 7: stanchion_consumers_len(list); stanchion_consumers_at(list, index, OR_NULL(&consumer), err()); break;
    default: stanchion_answers_free(list);
    }
}

static void workers(stanchion_text queue) {
    int64_t out = 0, worker = handle();
    stanchion_text reason = text();
    MADE(stanchion_worker_options, options, stanchion_worker_options_init);
    if (one_in(2)) options.concurrency = number();
    if (one_in(4)) options.lease_ms = number();
    if (one_in(4)) options.max_run_ms = number();
    if (one_in(4)) options.timeout_ms = number();
    if (one_in(4)) options.grace_ms = number();
    options.until_empty = one_in(3) ? small() : 1;
    PLACE(stanchion_worker_report, report);
    PLACE(stanchion_worker_event, event);
    switch (below(12)) {
    case 0: if (one_in(4) && stanchion_worker_open(handle(), GIVEN(queue), OR_NULL(&options), OR_NULL(&out), err()) == 0) keep(out); break;
    case 1: case 2: case 3: if (stanchion_worker_poll(worker, wait(), OR_NULL(&out), err()) == 0) keep(out); break;
    case 4: case 5: stanchion_worker_complete(worker, handle(), err()); break;
    case 6: stanchion_worker_fail(worker, handle(), GIVEN(reason), err()); break;
    case 7: one_in(2) ? stanchion_worker_stop(worker, err()) : stanchion_worker_hurry(worker, err()); break;
    case 8: stanchion_worker_get_report(worker, OR_NULL(&report), err()); break;
    case 9: stanchion_worker_get_event(worker, OR_NULL(&event), err()); break;
    default: stanchion_worker_free(worker);
    }
}

static void clients(stanchion_text name) {
    int64_t out = 0;
    size_t count = 0;
    MADE(stanchion_connect_options, options, stanchion_connect_options_init);
    if (one_in(3)) options.lock_prefix = text();
    if (one_in(3)) options.queue_prefix = text();
    if (one_in(3)) options.label = text();
    if (one_in(9)) options.tls_ca = text();
    if (one_in(3)) options.timeout_ms = number();
    if (one_in(3)) options.clock = one_in(4) ? handle() : clocks[below(CLOCKS)];
    if (one_in(3)) options.foreign_share = small();
    stanchion_text url = one_in(3) ? name : (stanchion_text){store, strlen(store)};
    switch (below(9)) {
    case 0: case 1: if (stanchion_connect(GIVEN(url), OR_NULL(&options), OR_NULL(&out), err()) == 0) keep(out); break;
    case 2: if (one_in(4)) stanchion_client_free(handle()); break;
    case 3: if (one_in(10)) stanchion_client_release_all(handle(), OR_NULL(&count), err()); break;
    case 7: if (one_in(100)) stanchion_client_close(handle(), OR_NULL(&count), err()); break;
    case 4: stanchion_client_linger(handle(), wait(), NULL, err()); break;
    case 5: if (stanchion_clock_new(OR_NULL(&out), err()) == 0) stanchion_clock_free(out); break;
    case 6: stanchion_clock_advance(handle(), number(), err()); break;
    default: stanchion_lease_free(handle());
    }
}

static void *run(void *seed) {
    state = *(uint64_t *)seed;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t calls = 0;
    do {
        for (int burst = 0; burst < 64; burst++, calls++) {
            stanchion_text name = text();
            switch (below(23)) {
            case 16: case 17: keys(name, text()); break;
            case 18: limiters(name); break;
            case 20: case 21: case 22: flows(name, text()); break;
            case 0: clients(name); break;
            case 1: case 2: case 3: case 4: locks(name); break;
            case 5: case 6: case 7: case 8: tasks(name); break;
            case 9: case 10: claims(); break;
            case 11: case 12: manage(name, text()); break;
            case 13: workers(name); break;
            case 14: case 15: schedules(name, text()); break;
            default: lists();
            }
            if (last_error != NULL) {
                check_view((stanchion_text){stanchion_error_message(last_error), strlen(stanchion_error_message(last_error))});
                if (stanchion_error_code(last_error) == STANCHION_ERR_INTERNAL) {
                    printf("%s\n", stanchion_error_message(last_error));
                    exit(1);
                }
            }
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
    stanchion_error_free(last_error);
    *(uint64_t *)seed = calls;
    return NULL;
}

static int over;

static void *move_time(void *nothing) {
    struct timespec pause = {0, 1000000};
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        for (int index = 0; index < CLOCKS; index++) stanchion_clock_advance(clocks[index], 10, NULL);
        nanosleep(&pause, NULL);
    }
    return nothing;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    store = argv[1];
    seconds = atof(argv[3]);
    uint64_t numbers[THREADS], calls = 0;
    pthread_t threads[THREADS], time;
    int64_t client = 0;
    for (int index = 0; index < CLOCKS; index++) {
        if (stanchion_clock_new(&clocks[index], NULL) != STANCHION_OK) return 2;
    }
    if (pthread_create(&time, NULL, move_time, NULL) != 0) return 2;
    for (int index = 0; index < 8; index++) {
        if (stanchion_connect(store, strlen(store), NULL, &client, NULL) != STANCHION_OK) return 2;
        handles[index] = client;
    }
    for (int index = 0; index < THREADS; index++) {
        numbers[index] = strtoull(argv[2], NULL, 10) * 1000003 + (uint64_t)index + 1;
        if (pthread_create(&threads[index], NULL, run, &numbers[index]) != 0) return 2;
    }
    for (int index = 0; index < THREADS; index++) {
        pthread_join(threads[index], NULL);
        calls += numbers[index];
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(time, NULL);
    /* A client of its own still works. */
    int64_t lease = 0;
    stanchion_error *error = NULL;
    if (stanchion_connect(store, strlen(store), NULL, &client, &error) != STANCHION_OK ||
        stanchion_lock_acquire(client, "after all that", 14, NULL, &lease, &error) != STANCHION_OK ||
        stanchion_lease_release(lease, &error) != STANCHION_OK) {
        printf("after all that: %s\n", stanchion_error_message(error));
        return 1;
    }
    printf("%" PRIu64 " calls, which gave %" PRIu64 " handles\n", calls, kept);
    /* Otherwise it has tried nothing. */
    return kept < calls / 2000;
}
