/* What happens to the tasks of a queue, as those who watch it see it. */
#include <pthread.h>
#include <stddef.h>

#include "check.h"

static void keep_events(stanchion_client client, const char *queue, int64_t count) {
    stanchion_queue_config settings;
    stanchion_queue_config_init(&settings, sizeof settings);
    settings.events = count;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    CHECK(stats(client, queue).events == count);
}

static stanchion_task_events events(stanchion_client client, const char *queue, int64_t after) {
    stanchion_task_events list = 0;
    OK(stanchion_queue_events(client, T(queue), after, 0, NULL, &list, &err));
    CHECK(list > 0);
    return list;
}

static stanchion_task_event event(stanchion_task_events list, size_t index) {
    stanchion_task_event one;
    one.struct_size = sizeof one;
    OK(stanchion_task_events_at(list, index, &one, &err));
    return one;
}

static int64_t cursor(stanchion_client client, const char *queue) {
    stanchion_task_events list = events(client, queue, -1);
    int64_t cursor = stanchion_task_events_cursor(list);
    CHECK(stanchion_task_events_len(list) == 0 && stanchion_task_events_missed(list) == 0);
    stanchion_task_events_free(list);
    return cursor;
}

TEST(what_happens_is_told_in_its_order) {
    stanchion_client client = opened();
    const char *queue = unique("order");
    keep_events(client, queue, 100);
    stanchion_task one = task("a");
    stanchion_enqueued put;
    put.struct_size = sizeof put;
    OK(stanchion_queue_enqueue(client, T(queue), &one, &put, &err));
    stanchion_claim claim = claimed(client, queue);
    OK(stanchion_claim_nack(claim, 0, T("no luck"), &err));
    stanchion_claim_free(claim);
    claim = claimed(client, queue);
    OK(stanchion_claim_progress(claim, "half", 4, &err));
    OK(stanchion_claim_put_back(claim, 0, &err));
    stanchion_claim_free(claim);
    claim = claimed(client, queue);
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    enqueued(client, queue, "b");
    claim = claimed(client, queue);
    OK(stanchion_claim_bury(claim, T(""), &err));
    stanchion_claim_free(claim);
    enqueued(client, queue, "c");
    OK(stanchion_queue_cancel(client, T(queue), T("c"), &err));
    enqueued(client, queue, "d");
    OK(stanchion_queue_remove(client, T(queue), T("d"), -1, NULL, &err));

    static const int32_t wanted[] = {
        STANCHION_HAPPENED_ADDED,    STANCHION_HAPPENED_STARTED, STANCHION_HAPPENED_FAILED,  STANCHION_HAPPENED_STARTED,
        STANCHION_HAPPENED_PROGRESS, STANCHION_HAPPENED_PUT_BACK, STANCHION_HAPPENED_STARTED, STANCHION_HAPPENED_DONE,
        STANCHION_HAPPENED_ADDED,    STANCHION_HAPPENED_STARTED, STANCHION_HAPPENED_DEAD,    STANCHION_HAPPENED_ADDED,
        STANCHION_HAPPENED_CANCELLED, STANCHION_HAPPENED_ADDED,  STANCHION_HAPPENED_REMOVED};
    const size_t count = sizeof wanted / sizeof *wanted;
    stanchion_task_events list = events(client, queue, 0);
    CHECK(stanchion_task_events_len(list) == count && stanchion_task_events_missed(list) == 0);
    for (size_t index = 0; index < count; index++) {
        stanchion_task_event one = event(list, index);
        CHECK(one.what == wanted[index] && one.number == event(list, 0).number + (int64_t)index);
        CHECK(one.at_ms > 1000000000000 && one.version > 0);
        bool has_reason = one.what == STANCHION_HAPPENED_FAILED || one.what == STANCHION_HAPPENED_DEAD;
        CHECK((one.reason.data != NULL) == has_reason);
        SAME(one.id, index < 8 ? "a" : index < 11 ? "b" : index < 13 ? "c" : "d");
    }
    CHECK(event(list, 0).version == put.version && event(list, 0).attempt == 0 && event(list, 1).attempt == 1);
    SAME(event(list, 2).reason, "no luck");
    SAME(event(list, 10).reason, "");
    CHECK(event(list, 3).attempt == 2 && stanchion_task_events_cursor(list) == event(list, count - 1).number);

    stanchion_task_events rest = events(client, queue, event(list, count - 2).number);
    CHECK(stanchion_task_events_len(rest) == 1 && event(rest, 0).what == STANCHION_HAPPENED_REMOVED);
    CHECK(cursor(client, queue) == stanchion_task_events_cursor(list));
    stanchion_task_events_free(rest);
    stanchion_task_events_free(list);
    stanchion_client_free(client);
}

TEST(what_was_missed_is_told) {
    stanchion_client client = opened();
    const char *queue = unique("missed");
    keep_events(client, queue, 1);
    enqueued(client, queue, "a");
    int64_t first = cursor(client, queue);
    keep_events(client, queue, 0);
    keep_events(client, queue, 10);
    enqueued(client, queue, "b");
    stanchion_task_events list = events(client, queue, first);
    CHECK(stanchion_task_events_len(list) == 1 && stanchion_task_events_missed(list) == 1);
    SAME(event(list, 0).id, "b");
    stanchion_task_events_free(list);
    list = events(client, queue, 0);
    CHECK(stanchion_task_events_missed(list) == 0);
    stanchion_task_events_free(list);
    stanchion_client_free(client);
}

TEST(a_queue_keeps_no_events_unless_told) {
    stanchion_client client = opened();
    const char *queue = unique("off");
    stanchion_task_events list = 7;
    enqueued(client, queue, "a");
    CHECK(stats(client, queue).events == 0);
    EXPECT(STANCHION_ERR_UNSUPPORTED, stanchion_queue_events(client, T(queue), 0, 0, NULL, &list, &err));
    EXPECT(STANCHION_ERR_UNSUPPORTED, stanchion_queue_events(client, T(queue), -1, 60000, NULL, &list, &err));
    CHECK(list == 7);
    stanchion_client_free(client);
}

TEST(a_list_of_events_lives_until_it_is_freed) {
    stanchion_client client = opened();
    const char *queue = unique("lives");
    keep_events(client, queue, 10);
    enqueued(client, queue, "a");
    stanchion_task_events list = events(client, queue, 0);
    stanchion_task_event one = event(list, 0), other;
    /* Neither what it was asked of, nor what it tells about, needs to be there still. */
    OK(stanchion_queue_remove(client, T(queue), T("a"), -1, NULL, &err));
    stanchion_client_free(client);
    SAME(one.id, "a");
    memset(&other, 170, sizeof other);
    other.struct_size = sizeof other;
    OK(stanchion_task_events_at(list, 0, &other, &err));
    CHECK(other.number == one.number && other.reason.data == NULL && other.reason.len == 0);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_task_events_at(list, 1, &other, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_task_events_at(list, 0, NULL, &err));
    other.struct_size = 8;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_task_events_at(list, 0, &other, &err));
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_tasks_at(list, 0, NULL, &err));
    stanchion_task_events_free(list);
    stanchion_task_events_free(list);
    stanchion_task_events_free(0);
    other.struct_size = sizeof other;
    EXPECT(STANCHION_ERR_INVALID_HANDLE, stanchion_task_events_at(list, 0, &other, &err));
    CHECK(stanchion_task_events_len(list) == 0 && stanchion_task_events_cursor(list) == -1);
}

typedef struct {
    stanchion_client client;
    char queue[128];
    int64_t after;
    volatile int32_t cancel, begun;
    stanchion_task_events list;
    int32_t status;
} watcher;

static void *watch(void *argument) {
    watcher *self = (watcher *)argument;
    self->begun = 1;
    self->status = stanchion_queue_events(self->client, T(self->queue), self->after, 60000,
                                          (const int32_t *)&self->cancel, &self->list, NULL);
    return NULL;
}

/* A thread that watches; it has begun. */
static pthread_t watching(watcher *self, const char *stem) {
    pthread_t thread;
    self->client = opened();
    snprintf(self->queue, sizeof self->queue, "%s", unique(stem));
    keep_events(self->client, self->queue, 10);
    self->after = cursor(self->client, self->queue);
    CHECK(pthread_create(&thread, NULL, watch, self) == 0);
    for (int tries = 0; !self->begun; tries++) {
        CHECK(tries < 4000);
        pause_ms(5);
    }
    return thread;
}

TEST(who_waits_for_events_is_woken) {
    watcher self = {0, "", 0, 0, 0, 0, 7};
    pthread_t thread = watching(&self, "woken");
    enqueued(self.client, self.queue, "a");
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(self.status == STANCHION_OK && stanchion_task_events_len(self.list) == 1);
    SAME(event(self.list, 0).id, "a");
    stanchion_task_events_free(self.list);
    stanchion_client_free(self.client);
}

TEST(who_waits_for_events_may_be_told_to_end) {
    watcher self = {0, "", 0, 0, 0, 0, 7};
    pthread_t thread = watching(&self, "told");
    self.cancel = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(self.status == STANCHION_ERR_CANCELLED && self.list == 0);
    /* Nobody looks at the number after its call. */
    stanchion_task_events list = 0;
    self.cancel = 0;
    OK(stanchion_queue_events(self.client, T(self.queue), -1, 0, NULL, &list, &err));
    stanchion_task_events_free(list);
    stanchion_client_free(self.client);
}

TEST(questions_about_events_that_make_no_sense) {
    stanchion_client client = opened();
    const char *queue = unique("nonsense");
    keep_events(client, queue, 10);
    stanchion_task_events list = 7;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_events(client, T(queue), -2, 0, NULL, &list, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_events(client, T(queue), INT64_MIN, 0, NULL, &list, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_events(client, T(queue), 0, -2, NULL, &list, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_events(client, T(queue), 0, INT64_MAX, NULL, &list, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_events(client, T(queue), 0, 0, NULL, NULL, &err));
    CHECK(list == 7);
    /* A number that was never given is no error: nothing comes after it yet. */
    OK(stanchion_queue_events(client, T(queue), INT64_MAX, 0, NULL, &list, &err));
    CHECK(stanchion_task_events_len(list) == 0);
    stanchion_task_events_free(list);
    stanchion_client_free(client);
}

TEST(an_older_programs_settings_and_counts_have_no_events) {
    stanchion_client client = opened();
    const char *queue = unique("older-events");
    keep_events(client, queue, 10);
    stanchion_queue_config settings;
    stanchion_queue_config_init(&settings, sizeof settings);
    settings.struct_size = offsetof(stanchion_queue_config, events);
    settings.events = 77;
    settings.max_len = 5;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    stanchion_stats found;
    memset(&found, 170, sizeof found);
    const int64_t untouched = found.events;
    found.struct_size = offsetof(stanchion_stats, events);
    OK(stanchion_queue_stats(client, T(queue), &found, &err));
    CHECK(found.max_len == 5 && found.events == untouched);
    CHECK(stats(client, queue).events == 10);
    stanchion_client_free(client);
}
