/* Queues: putting in, taking out, settling. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

TEST(a_task_travels_whole) {
    stanchion_client client = opened();
    const char *queue = unique("whole");
    static const unsigned char payload[] = {0, 1, 255, 'x', 0};
    stanchion_header headers[2] = {{{"content-type", 12}, {"text/plain", 10}}, {{"empty", 5}, {NULL, 0}}};
    stanchion_task one = task("user:42");
    one.payload = payload;
    one.payload_len = sizeof payload;
    one.headers = headers;
    one.header_count = 2;
    one.priority = 9;
    one.max_attempts = 3;
    stanchion_enqueued put;
    put.struct_size = sizeof put;
    OK(stanchion_queue_enqueue(client, T(queue), &one, &put, &err));
    CHECK(put.outcome == STANCHION_ADDED && put.version > 0 && put.due_ms > 1000000000000);
    CHECK(strcmp(put.id, "user:42") == 0 && put.id_len == 7);

    stanchion_claim claim = claimed(client, queue);
    stanchion_claim_info found = info(claim);
    SAME(found.id, "user:42");
    SAME(found.queue, queue);
    CHECK(found.payload_len == sizeof payload && memcmp(found.payload, payload, sizeof payload) == 0);
    CHECK(found.header_count == 2);
    SAME(found.headers[0].name, "content-type");
    SAME(found.headers[0].value, "text/plain");
    SAME(found.headers[1].value, "");
    CHECK(found.attempt == 1 && found.max_attempts == 3 && found.priority == 9 && found.version == put.version);
    CHECK(found.receipt > 0 && found.due_ms == put.due_ms);
    CHECK(stanchion_claim_is_valid(claim) == 1 && stanchion_claim_remaining_ms(claim) > 20000);
    OK(stanchion_claim_ack(claim, &err));
    OK(stanchion_claim_ack(claim, &err));
    EXPECT(STANCHION_ERR_STALE_RECEIPT, stanchion_claim_bury(claim, T("no"), &err));
    CHECK(stanchion_claim_is_valid(claim) == 0);
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claim, 0, &err));
    stanchion_claim_free(claim);
    CHECK(stats(client, queue).acked == 1);
    stanchion_client_free(client);
}

TEST(an_id_of_its_own) {
    stanchion_client client = opened();
    const char *queue = unique("auto");
    stanchion_task one = task(NULL);
    stanchion_enqueued first, second;
    first.struct_size = second.struct_size = sizeof first;
    OK(stanchion_queue_enqueue(client, T(queue), &one, &first, &err));
    OK(stanchion_queue_enqueue(client, T(queue), &one, &second, &err));
    CHECK(first.id_len == 32 && strcmp(first.id, second.id) != 0);
    stanchion_client_free(client);
}

static int32_t again(stanchion_client client, const char *queue, int32_t policy, int64_t window_ms) {
    stanchion_task one = task("id");
    one.on_duplicate = policy;
    one.window_ms = window_ms;
    one.delay_ms = 60000;
    stanchion_enqueued put;
    put.struct_size = sizeof put;
    EXPECT(STANCHION_DUPLICATE, stanchion_queue_enqueue(client, T(queue), &one, &put, &err));
    return put.outcome;
}

TEST(duplicates_are_told) {
    stanchion_client client = opened();
    const char *queue = unique("duplicates");
    enqueued(client, queue, "id");
    CHECK(again(client, queue, STANCHION_KEEP, -1) == STANCHION_KEPT);
    CHECK(again(client, queue, -1, -1) == STANCHION_KEPT);
    CHECK(again(client, queue, STANCHION_REPLACE, -1) == STANCHION_REPLACED);
    CHECK(again(client, queue, STANCHION_DEBOUNCE, 60000) == STANCHION_REPLACED);
    CHECK(again(client, queue, STANCHION_THROTTLE, 60000) == STANCHION_KEPT);
    CHECK(again(client, queue, STANCHION_THROTTLE, 60000) == STANCHION_THROTTLED);
    enqueued(client, queue, "runs");
    stanchion_claim claim = claimed(client, queue);
    stanchion_task one = task("runs");
    stanchion_enqueued put;
    put.struct_size = sizeof put;
    EXPECT(STANCHION_DUPLICATE, stanchion_queue_enqueue(client, T(queue), &one, &put, &err));
    CHECK(put.outcome == STANCHION_SUCCESSOR && stats(client, queue).successors == 1);
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(a_full_queue_refuses_some_and_takes_others) {
    stanchion_client client = opened();
    const char *queue = unique("full");
    stanchion_queue_config settings;
    stanchion_queue_config_init(&settings, sizeof settings);
    settings.max_len = 2;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    CHECK(stats(client, queue).max_len == 2);
    stanchion_task tasks[4] = {task("a"), task("a"), task("b"), task("c")};
    stanchion_answers answers = 0;
    OK(stanchion_queue_enqueue_many(client, T(queue), tasks, 4, &answers, &err));
    CHECK(stanchion_answers_len(answers) == 4);
    stanchion_enqueued put;
    put.struct_size = sizeof put;
    OK(stanchion_answers_at(answers, 0, &put, &err));
    CHECK(strcmp(put.id, "a") == 0 && put.outcome == STANCHION_ADDED);
    EXPECT(STANCHION_DUPLICATE, stanchion_answers_at(answers, 1, &put, &err));
    OK(stanchion_answers_at(answers, 2, NULL, &err));
    EXPECT(STANCHION_ERR_QUEUE_FULL, stanchion_answers_at(answers, 3, &put, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_answers_at(answers, 4, &put, &err));
    stanchion_answers_free(answers);
    EXPECT(STANCHION_ERR_QUEUE_FULL, stanchion_queue_enqueue(client, T(queue), &tasks[3], NULL, &err));
    settings.max_len = -2;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    OK(stanchion_queue_enqueue(client, T(queue), &tasks[3], NULL, &err));
    CHECK(stats(client, queue).max_len == -1);
    stanchion_client_free(client);
}

TEST(an_empty_queue_is_no_error) {
    stanchion_client client = opened();
    const char *queue = unique("empty");
    stanchion_claim claim = 7;
    size_t count = 7;
    EXPECT(STANCHION_EMPTY, stanchion_queue_claim(client, T(queue), NULL, &claim, 1, &count, &err));
    CHECK(claim == 7 && count == 0);
    stanchion_tasks tasks = 7;
    EXPECT(STANCHION_EMPTY, stanchion_queue_pop(client, T(queue), 5, &tasks, &err));
    EXPECT(STANCHION_EMPTY, stanchion_queue_peek(client, T(queue), 5, &tasks, &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_get(client, T(queue), T("x"), &tasks, &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_remove(client, T(queue), T("x"), -1, NULL, &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_reschedule(client, T(queue), T("x"), 0, NULL, &err));
    CHECK(tasks == 7 && stats(client, queue).next_due_ms == -1);
    stanchion_client_free(client);
}

TEST(several_are_claimed_and_settled_together) {
    stanchion_client client = opened();
    const char *queue = unique("together");
    const char *ids[4] = {"a", "b", "c", "d"};
    for (int index = 0; index < 4; index++) enqueued(client, queue, ids[index]);
    stanchion_claim claims[10];
    size_t count = 0;
    OK(stanchion_queue_claim(client, T(queue), NULL, claims, 10, &count, &err));
    CHECK(count == 4);
    stanchion_verdict verdicts[4];
    for (int index = 0; index < 4; index++) {
        stanchion_verdict_init(&verdicts[index], sizeof verdicts[index]);
        verdicts[index].claim = claims[index];
        verdicts[index].kind = STANCHION_ACK + index;
        verdicts[index].reason.data = "because";
        verdicts[index].reason.len = 7;
    }
    stanchion_answers answers = 0;
    OK(stanchion_queue_settle(client, T(queue), verdicts, 4, &answers, &err));
    CHECK(stanchion_answers_len(answers) == 4);
    for (size_t index = 0; index < 4; index++) OK(stanchion_answers_at(answers, index, NULL, &err));
    stanchion_answers_free(answers);
    stanchion_stats now = stats(client, queue);
    CHECK(now.acked == 1 && now.scheduled == 1 && now.dead == 1 && now.ready == 1 && now.claimed == 0);

    /* The one that was put back comes again, its attempt uncounted. */
    verdicts[0].kind = STANCHION_NACK;
    size_t more = 0;
    stanchion_claim claim = 0;
    OK(stanchion_queue_settle_and_claim(client, T(queue), verdicts, 1, &answers, NULL, &claim, 1, &more, &err));
    EXPECT(STANCHION_ERR_STALE_RECEIPT, stanchion_answers_at(answers, 0, NULL, &err));
    CHECK(more == 1 && info(claim).attempt == 1);
    SAME(info(claim).id, "d");
    stanchion_answers_free(answers);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_settle(client, T("other"), verdicts, 1, &answers, &err));
    for (int index = 0; index < 4; index++) stanchion_claim_free(claims[index]);
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_queue_settle(client, T(queue), verdicts, 1, &answers, &err));
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(a_failed_task_comes_again_until_it_is_dead) {
    stanchion_client client = opened();
    const char *queue = unique("again");
    stanchion_task one = task("poison");
    one.max_attempts = 2;
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
    for (int attempt = 1; attempt <= 2; attempt++) {
        stanchion_claim claim = claimed(client, queue);
        CHECK(info(claim).attempt == attempt);
        OK(stanchion_claim_nack(claim, 0, T("no luck"), &err));
        stanchion_claim_free(claim);
    }
    stanchion_tasks tasks = 0;
    OK(stanchion_queue_get(client, T(queue), T("poison"), &tasks, &err));
    CHECK(stanchion_tasks_len(tasks) == 1);
    stanchion_task_info found;
    found.struct_size = sizeof found;
    OK(stanchion_tasks_at(tasks, 0, &found, &err));
    CHECK(found.state == STANCHION_STATE_DEAD && found.attempts == 2 && found.max_attempts == 2 && found.died_ms > 0);
    SAME(found.reason, "no luck");
    stanchion_tasks_free(tasks);
    EXPECT(STANCHION_DEAD, stanchion_queue_reschedule(client, T(queue), T("poison"), 0, NULL, &err));
    stanchion_text ids[1] = {{"poison", 6}};
    stanchion_dead_tasks dead = dead_tasks();
    dead.ids = ids;
    uint64_t moved = 7;
    OK(stanchion_queue_kick(client, T(queue), &dead, &moved, &err));
    CHECK(moved == 0);
    dead.id_count = 1;
    OK(stanchion_queue_kick(client, T(queue), &dead, &moved, &err));
    CHECK(moved == 1);
    stanchion_claim claim = claimed(client, queue);
    CHECK(info(claim).attempt == 1);
    OK(stanchion_claim_bury(claim, NULL, 0, &err));
    stanchion_claim_free(claim);
    dead = dead_tasks();
    dead.count = 10;
    OK(stanchion_queue_kick(client, T(queue), &dead, &moved, &err));
    CHECK(moved == 1 && stats(client, queue).ready == 1);
    stanchion_client_free(client);
}

static void buried(stanchion_client client, const char *queue, const char *id, const char *reason) {
    enqueued(client, queue, id);
    stanchion_claim claim = claimed(client, queue);
    OK(stanchion_claim_bury(claim, T(reason), &err));
    stanchion_claim_free(claim);
}

TEST(dead_tasks_are_removed_by_receipt_and_reason) {
    stanchion_client client = opened();
    const char *queue = unique("dead");
    buried(client, queue, "a", "timeout: 5 s");
    stanchion_tasks tasks = 0;
    OK(stanchion_queue_get(client, T(queue), T("a"), &tasks, &err));
    stanchion_task_info found;
    found.struct_size = sizeof found;
    OK(stanchion_tasks_at(tasks, 0, &found, &err));
    stanchion_tasks_free(tasks);
    buried(client, queue, "a", "timeout: 9 s");
    buried(client, queue, "b", "refused");

    /* The older one of two with the same id. */
    stanchion_dead_tasks dead = dead_tasks();
    dead.receipts = &found.receipt;
    dead.receipt_count = 1;
    uint64_t removed = 0;
    OK(stanchion_queue_remove_dead(client, T(queue), &dead, &removed, &err));
    CHECK(removed == 1);
    OK(stanchion_queue_get(client, T(queue), T("a"), &tasks, &err));
    OK(stanchion_tasks_at(tasks, 0, &found, &err));
    SAME(found.reason, "timeout: 9 s");
    stanchion_tasks_free(tasks);

    dead = dead_tasks();
    dead.reason.data = "timeout";
    dead.reason.len = 7;
    dead.older_than_ms = 3600000;
    OK(stanchion_queue_remove_dead(client, T(queue), &dead, &removed, &err));
    CHECK(removed == 0);
    dead.older_than_ms = 0;
    OK(stanchion_queue_remove_dead(client, T(queue), &dead, &removed, &err));
    CHECK(removed == 1 && stats(client, queue).dead == 1);
    dead = dead_tasks();
    dead.prefix.data = "b";
    dead.prefix.len = 1;
    OK(stanchion_queue_kick(client, T(queue), &dead, NULL, &err));
    CHECK(stats(client, queue).ready == 1);
    stanchion_client_free(client);
}

TEST(pages_follow_one_another) {
    stanchion_client client = opened();
    const char *queue = unique("pages");
    stanchion_header headers[1] = {{{"name", 4}, {"value", 5}}};
    const char *ids[] = {"user:1", "user:2", "user:3", "other"};
    for (int index = 0; index < 4; index++) {
        stanchion_task one = task(ids[index]);
        one.payload = "hello";
        one.payload_len = 5;
        one.headers = headers;
        one.header_count = 1;
        OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
    }
    stanchion_list_options options = list_options(STANCHION_STATE_READY);
    options.prefix.data = "user:";
    options.prefix.len = 5;
    options.max = 2;
    options.without_payloads = 1;
    stanchion_tasks page = 0, last = 0;
    stanchion_error *none = NULL;
    size_t seen = 0;
    do {
        OK(stanchion_queue_list(client, T(queue), &options, &page, &err));
        /* The text of the page belonged to the one before. */
        stanchion_tasks_free(last);
        last = page;
        for (size_t index = 0; index < stanchion_tasks_len(page); index++, seen++) {
            stanchion_task_info found;
            found.struct_size = sizeof found;
            OK(stanchion_tasks_at(page, index, &found, &err));
            CHECK(found.payload_len == 0 && found.header_count == 0 && found.size >= 14);
            CHECK(found.id.len == 6 && memcmp(found.id.data, "user:", 5) == 0);
        }
    } while (stanchion_tasks_next(page, &options.page, &none) == STANCHION_OK);
    CHECK(seen == 3);
    stanchion_tasks_free(page);
    stanchion_client_free(client);
}

TEST(a_freed_claim_counts_as_failed) {
    stanchion_client client = opened();
    const char *queue = unique("dropped");
    enqueued(client, queue, "a");
    stanchion_claim_free(claimed(client, queue));
    int32_t done = 0;
    OK(stanchion_client_linger(client, 10000, &done, &err));
    CHECK(done == 1 && stats(client, queue).scheduled == 1);
    stanchion_client_free(client);
}

TEST(a_claim_is_lost_when_its_lease_ends) {
    stanchion_client client = opened();
    const char *queue = unique("lost");
    enqueued(client, queue, "a");
    stanchion_claim_options options = claim_options();
    options.lease_ms = 1500;
    stanchion_claim claim = 0;
    size_t count = 0;
    OK(stanchion_queue_claim(client, T(queue), &options, &claim, 1, &count, &err));
    OK(stanchion_claim_extend(claim, 2000, &err));
    EXPECT(STANCHION_LOST, stanchion_claim_wait_lost(claim, 10000, &err));
    CHECK(stanchion_claim_loss(claim) == STANCHION_LOSS_EXPIRED);
    EXPECT(STANCHION_ERR_LEASE_EXPIRED, stanchion_claim_extend(claim, 1000, &err));
    /* Its id lives on, in the hands of another. */
    stanchion_claim next = claimed(client, queue);
    CHECK(info(next).attempt == 2 && info(next).receipt > info(claim).receipt);
    EXPECT(STANCHION_ERR_STALE_RECEIPT, stanchion_claim_ack(claim, &err));
    OK(stanchion_claim_put_back(next, 0, &err));
    stanchion_claim_free(claim);
    stanchion_claim_free(next);
    stanchion_client_free(client);
}

TEST(tasks_are_found_moved_and_removed) {
    stanchion_client client = opened();
    const char *queue = unique("manage");
    stanchion_task later = task("later");
    later.delay_ms = 60000;
    later.expires_ms = 120000;
    stanchion_enqueued put;
    put.struct_size = sizeof put;
    OK(stanchion_queue_enqueue(client, T(queue), &later, &put, &err));
    later.id.data = "dated";
    later.delay_ms = -1;
    later.due_ms = 4102444800000;
    OK(stanchion_queue_enqueue(client, T(queue), &later, NULL, &err));
    stanchion_tasks tasks = 0;
    stanchion_text next = {"", 7};
    stanchion_list_options options = list_options(STANCHION_STATE_SCHEDULED);
    OK(stanchion_queue_list(client, T(queue), &options, &tasks, &err));
    CHECK(stanchion_tasks_len(tasks) == 2);
    EXPECT(STANCHION_ABSENT, stanchion_tasks_next(tasks, &next, &err));
    CHECK(next.len == 7);
    stanchion_task_info found;
    found.struct_size = sizeof found;
    OK(stanchion_tasks_at(tasks, 1, &found, &err));
    SAME(found.id, "dated");
    CHECK(found.due_ms == 4102444800000 && found.expires_ms > 0 && found.died_ms == -1 && found.successor_due_ms == -1);
    stanchion_tasks_free(tasks);
    options.state = STANCHION_STATE_DEAD;
    OK(stanchion_queue_list(client, T(queue), &options, &tasks, &err));
    CHECK(stanchion_tasks_len(tasks) == 0);
    stanchion_tasks_free(tasks);

    int64_t moved = 0, version = 0;
    OK(stanchion_queue_reschedule(client, T(queue), T("later"), 1000, &moved, &err));
    CHECK(moved > 0 && moved < put.due_ms);
    OK(stanchion_queue_peek(client, T(queue), 10, &tasks, &err));
    OK(stanchion_tasks_at(tasks, 0, &found, &err));
    SAME(found.id, "later");
    EXPECT(STANCHION_OTHER_VERSION,
           stanchion_queue_remove(client, T(queue), T("later"), put.version + 1000, &version, &err));
    CHECK(version == found.version);
    stanchion_tasks_free(tasks);
    stanchion_claim claim = claimed(client, queue);
    EXPECT(STANCHION_CLAIMED, stanchion_queue_reschedule(client, T(queue), T("later"), 1000, NULL, &err));
    OK(stanchion_queue_remove(client, T(queue), T("later"), version, NULL, &err));
    EXPECT(STANCHION_ERR_STALE_RECEIPT, stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    uint64_t dropped = 0;
    OK(stanchion_queue_purge(client, T(queue), &dropped, &err));
    CHECK(dropped == 1);
    stanchion_client_free(client);
}

/* A client with a label. */
static stanchion_client labelled(const char *label) {
    stanchion_connect_options connect;
    stanchion_connect_options_init(&connect, sizeof connect);
    connect.label.data = label;
    connect.label.len = strlen(label);
    stanchion_client client = 0;
    OK(stanchion_connect(T(store), &connect, &client, &err));
    return client;
}

/* The only task of a queue; its texts live as long as the list. */
static stanchion_task_info found_task(stanchion_client client, const char *queue, stanchion_tasks *tasks) {
    stanchion_task_info found;
    found.struct_size = sizeof found;
    stanchion_tasks_free(*tasks);
    OK(stanchion_queue_get(client, T(queue), T("a"), tasks, &err));
    OK(stanchion_tasks_at(*tasks, 0, &found, &err));
    return found;
}

TEST(who_claimed_a_task_is_told) {
    stanchion_client client = labelled("the importer");
    const char *queue = unique("claimed-by");
    enqueued(client, queue, "a");
    stanchion_tasks tasks = 0;
    stanchion_task_info found = found_task(client, queue, &tasks);
    CHECK(found.claimed_by_pid == -1 && found.claimed_at_ms == -1);
    CHECK(found.claimed_by_label.len == 0 && found.claimed_by_host.len == 0);
    stanchion_claim claim = claimed(client, queue);
    found = found_task(client, queue, &tasks);
    SAME(found.claimed_by_label, "the importer");
    CHECK(found.claimed_by_host.len > 0 && found.claimed_by_pid == (int32_t)getpid());
    /* Receipts count the store's microseconds. */
    CHECK(found.claimed_at_ms == found.receipt / 1000);
    OK(stanchion_claim_nack(claim, 60000, T("later"), &err));
    found = found_task(client, queue, &tasks);
    SAME(found.claimed_by_label, "the importer");
    CHECK(found.claimed_at_ms == -1 && found.claimed_by_pid == (int32_t)getpid());
    stanchion_tasks_free(tasks);
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(pop_takes_for_good_and_priorities_come_first) {
    stanchion_client client = opened();
    const char *queue = unique("pop");
    stanchion_task tasks[3] = {task("low"), task("high"), task("middle")};
    tasks[1].priority = 255;
    tasks[2].priority = 7;
    stanchion_answers answers = 0;
    OK(stanchion_queue_enqueue_many(client, T(queue), tasks, 3, &answers, &err));
    stanchion_answers_free(answers);
    stanchion_tasks popped = 0;
    OK(stanchion_queue_pop(client, T(queue), 2, &popped, &err));
    CHECK(stanchion_tasks_len(popped) == 2);
    stanchion_task_info found;
    found.struct_size = sizeof found;
    OK(stanchion_tasks_at(popped, 0, &found, &err));
    SAME(found.id, "high");
    OK(stanchion_tasks_at(popped, 1, &found, &err));
    SAME(found.id, "middle");
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_tasks_at(popped, 2, &found, &err));
    stanchion_tasks_free(popped);
    CHECK(stats(client, queue).ready == 1 && stats(client, queue).acked == 2);
    stanchion_client_free(client);
}

TEST(a_paused_queue_gives_nothing_out) {
    stanchion_client client = opened();
    const char *queue = unique("paused");
    enqueued(client, queue, "a");
    OK(stanchion_queue_pause(client, T(queue), &err));
    CHECK(stats(client, queue).paused == 1);
    stanchion_claim claim = 0;
    size_t count = 0;
    EXPECT(STANCHION_EMPTY, stanchion_queue_claim(client, T(queue), NULL, &claim, 1, &count, &err));
    OK(stanchion_queue_resume(client, T(queue), &err));
    OK(stanchion_queue_claim(client, T(queue), NULL, &claim, 1, &count, &err));
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(several_queues_are_claimed_in_order) {
    stanchion_client client = opened();
    const char *first = unique("first"), *second = unique("second");
    enqueued(client, second, "b");
    stanchion_text names[2] = {{first, strlen(first)}, {second, strlen(second)}};
    stanchion_claim claim = 0;
    size_t count = 0;
    OK(stanchion_queues_claim(client, names, 2, NULL, &claim, 1, &count, &err));
    SAME(info(claim).queue, second);
    stanchion_claim_free(claim);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queues_claim(client, names, 0, NULL, &claim, 1, &count, &err));
    stanchion_client_free(client);
}

static stanchion_client shared;
static char shared_queue[128];

static void *enqueue_later(void *nothing) {
    pause_ms(50);
    enqueued(shared, shared_queue, "a");
    return nothing;
}

TEST(a_waiting_claim_is_woken) {
    shared = opened();
    snprintf(shared_queue, sizeof shared_queue, "%s", unique("woken"));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, enqueue_later, NULL) == 0);
    stanchion_claim claim = claimed(shared, shared_queue);
    CHECK(pthread_join(thread, NULL) == 0);
    stanchion_claim_free(claim);
    stanchion_client_free(shared);
}

static void *claim_one(void *claim) {
    *(stanchion_claim *)claim = claimed(shared, shared_queue);
    return NULL;
}

/* How many consumers there are; the first of them. */
static size_t first_consumer(stanchion_consumer *consumer) {
    stanchion_consumers consumers = 7;
    OK(stanchion_queue_consumers(shared, T(shared_queue), &consumers, &err));
    size_t count = stanchion_consumers_len(consumers);
    consumer->struct_size = sizeof *consumer;
    if (count > 0) OK(stanchion_consumers_at(consumers, 0, consumer, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_consumers_at(consumers, count, consumer, &err));
    stanchion_consumers_free(consumers);
    CHECK(stanchion_consumers_len(consumers) == 0);
    return count;
}

TEST(consumers_wait_and_have_claims) {
    shared = labelled("the importer");
    snprintf(shared_queue, sizeof shared_queue, "%s", unique("consumers"));
    stanchion_consumer consumer;
    CHECK(first_consumer(&consumer) == 0 && stats(shared, shared_queue).waiters == 0);
    stanchion_claim claim = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, claim_one, &claim) == 0);
    for (int tries = 0; first_consumer(&consumer) == 0; tries++) {
        CHECK(tries < 1000);
        pause_ms(5);
    }
    CHECK(consumer.waiters == 1 && consumer.claims == 0 && stats(shared, shared_queue).waiters == 1);
    CHECK(strcmp(consumer.label, "the importer") == 0 && strlen(consumer.host) > 0);
    CHECK(consumer.pid == (int32_t)getpid());
    enqueued(shared, shared_queue, "a");
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(first_consumer(&consumer) == 1);
    CHECK(consumer.waiters == 0 && consumer.claims == 1 && stats(shared, shared_queue).waiters == 0);
    OK(stanchion_claim_ack(claim, &err));
    CHECK(first_consumer(&consumer) == 0);
    stanchion_claim_free(claim);
    stanchion_client_free(shared);
}

TEST(names_of_queues_are_listed) {
    stanchion_client client = opened();
    const char *queue = unique("names");
    enqueued(client, queue, "a");
    uint64_t page = 0;
    int found = 0;
    do {
        stanchion_names names = 0;
        OK(stanchion_client_queues(client, page, &names, &page, &err));
        for (size_t index = 0; index < stanchion_names_len(names); index++) {
            stanchion_text one;
            OK(stanchion_names_at(names, index, &one, &err));
            found += one.len == strlen(queue) && memcmp(one.data, queue, one.len) == 0;
        }
        stanchion_names_free(names);
    } while (page != 0);
    CHECK(found >= 1);
    stanchion_client_free(client);
}
