/* Schedules: put, looked at, fired, previewed. */
#include <stddef.h>

#include "check.h"

#define HOUR_MS 3600000LL

static stanchion_text view(const char *text) {
    stanchion_text view = {text, strlen(text)};
    return view;
}

static stanchion_schedule schedule(const char *id, const char *when) {
    stanchion_schedule schedule;
    stanchion_schedule_init(&schedule, sizeof schedule);
    schedule.id = view(id);
    schedule.when = view(when);
    return schedule;
}

static int32_t put(stanchion_client client, const char *queue, stanchion_schedule one) {
    int32_t outcome = -7;
    OK(stanchion_queue_schedule(client, T(queue), &one, &outcome, &err));
    return outcome;
}

/* One that must be there; its texts live as long as the list. */
static stanchion_schedule_info found(stanchion_client client, const char *queue, const char *id, stanchion_schedules *list) {
    stanchion_schedule_info info;
    info.struct_size = sizeof info;
    OK(stanchion_queue_get_schedule(client, T(queue), T(id), list, &err));
    CHECK(stanchion_schedules_len(*list) == 1);
    OK(stanchion_schedules_at(*list, 0, &info, &err));
    return info;
}

TEST(a_schedule_is_shown_as_it_was_put) {
    stanchion_client client = opened();
    const char *queue = unique("shown");
    stanchion_schedules list = 7;
    EXPECT(STANCHION_ABSENT, stanchion_queue_get_schedule(client, T(queue), T("a"), &list, &err));
    CHECK(list == 7 && stats(client, queue).schedules == 0);
    const stanchion_header headers[1] = {{{"by", 2}, {"cron", 4}}};
    stanchion_schedule one = schedule("a", "30 2 * * MON-FRI");
    one.tz = view("Europe/Berlin");
    one.starts_ms = 4102444800000;
    one.ends_ms = 4133980800000;
    one.jitter_ms = 60000;
    one.missed = STANCHION_MISSED_ALL;
    one.missed_max = 5;
    one.overlap = STANCHION_OVERLAP_SKIP;
    one.priority = 9;
    one.payload = "report";
    one.payload_len = 6;
    one.headers = headers;
    one.header_count = 1;
    one.max_attempts = 3;
    one.expires_ms = 9000;
    CHECK(put(client, queue, one) == STANCHION_SCHEDULE_ADDED);
    stanchion_schedule_info info = found(client, queue, "a", &list);
    SAME(info.id, "a");
    SAME(info.when, "30 2 * * MON-FRI");
    SAME(info.tz, "Europe/Berlin");
    SAME(info.owner, "");
    SAME(info.last_task, "");
    CHECK(info.starts_ms == one.starts_ms && info.ends_ms == one.ends_ms && info.jitter_ms == 60000);
    CHECK(info.next_ms > one.starts_ms && info.late_ms == 0);
    CHECK(info.missed == STANCHION_MISSED_ALL && info.missed_max == 5 && info.overlap == STANCHION_OVERLAP_SKIP);
    CHECK(info.fired == 0 && info.skipped == 0 && info.missed_slots == 0);
    CHECK(info.priority == 9 && info.max_attempts == 3 && info.expires_ms == 9000 && info.size >= 6 && info.paused == 0);
    int64_t next = 0;
    size_t slots = 0;
    OK(stanchion_schedule_preview(&one, one.starts_ms, &next, 1, &slots, &err));
    CHECK(slots == 1 && next == info.next_ms);
    stanchion_text page;
    EXPECT(STANCHION_ABSENT, stanchion_schedules_next(list, &page, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_schedules_at(list, 1, &info, &err));
    stanchion_schedules_free(list);
    CHECK(stanchion_schedules_len(list) == 0);

    CHECK(put(client, queue, one) == STANCHION_SCHEDULE_KEPT);
    one.priority = 8;
    CHECK(put(client, queue, one) == STANCHION_SCHEDULE_CHANGED);
    OK(stanchion_queue_schedule(client, T(queue), &one, NULL, &err));
    CHECK(stats(client, queue).schedules == 1);
    stanchion_client_free(client);
}

TEST(defaults_of_a_schedule_are_those_of_the_core) {
    stanchion_client client = opened();
    const char *queue = unique("defaults");
    CHECK(put(client, queue, schedule("a", "every 90s")) == STANCHION_SCHEDULE_ADDED);
    stanchion_schedules list = 0;
    stanchion_schedule_info info = found(client, queue, "a", &list);
    SAME(info.tz, "UTC");
    CHECK(info.starts_ms == -1 && info.ends_ms == -1 && info.jitter_ms == 0 && info.expires_ms == -1);
    CHECK(info.missed == STANCHION_MISSED_LAST && info.missed_max == -1 && info.overlap == STANCHION_OVERLAP_QUEUE);
    CHECK(info.priority == 0 && info.max_attempts == 20 && info.paused == 0 && info.next_ms > 0);
    stanchion_schedules_free(list);
    stanchion_schedule one = schedule("b", "@daily");
    one.missed = STANCHION_MISSED_SKIP;
    one.paused = 1;
    put(client, queue, one);
    info = found(client, queue, "b", &list);
    CHECK(info.missed == STANCHION_MISSED_SKIP && info.missed_max == -1 && info.paused == 1 && info.next_ms == -1);
    stanchion_schedules_free(list);
    stanchion_client_free(client);
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

TEST(a_claim_fires_what_is_due) {
    stanchion_clock clock = 0;
    stanchion_client client = with_clock(&clock);
    const stanchion_header headers[1] = {{{"by", 2}, {"cron", 4}}};
    stanchion_schedule one = schedule("beat", "every 1h");
    one.missed = STANCHION_MISSED_ALL;
    one.missed_max = 2;
    one.payload = "tick\0";
    one.payload_len = 5;
    one.headers = headers;
    one.header_count = 1;
    one.priority = 7;
    put(client, "q", one);
    stanchion_claim claims[9];
    size_t count = 7;
    EXPECT(STANCHION_EMPTY, stanchion_queue_claim(client, T("q"), NULL, claims, 9, &count, &err));
    OK(stanchion_clock_advance(clock, 3 * HOUR_MS + 60000, &err));
    stanchion_stats late = stats(client, "q");
    CHECK(late.schedules == 1 && late.schedules_late_ms == 2 * HOUR_MS + 60000);
    OK(stanchion_queue_claim(client, T("q"), NULL, claims, 9, &count, &err));
    CHECK(count == 2);
    stanchion_claim_info task = info(claims[1]);
    CHECK(task.payload_len == 5 && memcmp(task.payload, "tick\0", 5) == 0 && task.priority == 7);
    CHECK(task.header_count == 1 && task.id.len > 5 && memcmp(task.id.data, "beat@", 5) == 0);
    SAME(task.headers[0].value, "cron");
    stanchion_schedules list = 0;
    stanchion_schedule_info beat = found(client, "q", "beat", &list);
    CHECK(beat.fired == 2 && beat.missed_slots == 1 && beat.skipped == 0 && beat.late_ms == 0);
    CHECK(beat.last_task.len == task.id.len && memcmp(beat.last_task.data, task.id.data, task.id.len) == 0);
    CHECK(beat.next_ms == task.due_ms + HOUR_MS);
    CHECK(stats(client, "q").schedules_late_ms == 0);
    stanchion_schedules_free(list);
    for (size_t index = 0; index < count; index++) {
        OK(stanchion_claim_ack(claims[index], &err));
        stanchion_claim_free(claims[index]);
    }
    stanchion_client_free(client);
    stanchion_clock_free(clock);
}

TEST(previews_know_the_zone) {
    /* 3 o'clock in Berlin, over the night in which its clocks go forward. */
    static const int64_t slots[3] = {1806112800000, 1806195600000, 1806282000000};
    stanchion_schedule one = schedule("nightly", "0 3 * * *");
    one.tz = view("Europe/Berlin");
    int64_t times[4] = {7, 7, 7, 7};
    size_t count = 0;
    OK(stanchion_schedule_preview(&one, 1806105600000, times, 3, &count, &err));
    CHECK(count == 3 && memcmp(times, slots, sizeof slots) == 0 && times[3] == 7);
    one.ends_ms = slots[1];
    OK(stanchion_schedule_preview(&one, 1806105600000, times, 4, &count, &err));
    CHECK(count == 2 && times[0] == slots[0] && times[1] == slots[1]);
    OK(stanchion_schedule_preview(&one, slots[1], times, 4, &count, &err));
    CHECK(count == 0 && times[0] == slots[0]);
    one = schedule("twice", "at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00");
    OK(stanchion_schedule_preview(&one, 0, times, 4, &count, &err));
    CHECK(count == 2 && times[0] == 1801382400000 && times[1] == 1803798000000);
}

TEST(pages_of_schedules_follow_one_another) {
    stanchion_client client = opened();
    const char *queue = unique("pages");
    static const char *const ids[] = {"c", "a", "b", "e", "d"};
    for (int index = 0; index < 5; index++) {
        char when[16];
        snprintf(when, sizeof when, "every %dh", 1000 + 10 * index);
        put(client, queue, schedule(ids[index], when));
    }
    stanchion_schedules page = 0, last = 0;
    stanchion_text next = {NULL, 0};
    size_t seen = 0;
    int32_t status;
    do {
        OK(stanchion_queue_list_schedules(client, T(queue), next.data, next.len, 2, &page, &err));
        /* The text of the page belonged to the one before. */
        stanchion_schedules_free(last);
        last = page;
        for (size_t index = 0; index < stanchion_schedules_len(page); index++, seen++) {
            stanchion_schedule_info info;
            info.struct_size = sizeof info;
            OK(stanchion_schedules_at(page, index, &info, &err));
            CHECK(seen < 5);
            SAME(info.id, ids[seen]);
        }
        stanchion_error *none = NULL;
        status = stanchion_schedules_next(page, &next, &none);
    } while (status == STANCHION_OK);
    CHECK(status == STANCHION_ABSENT && seen == 5);
    stanchion_schedules_free(page);
    OK(stanchion_queue_list_schedules(client, T(unique("none")), NULL, 0, 100, &page, &err));
    CHECK(stanchion_schedules_len(page) == 0);
    stanchion_schedules_free(page);
    stanchion_client_free(client);
}

TEST(a_schedule_is_paused_run_and_removed) {
    stanchion_client client = opened();
    const char *queue = unique("paused");
    stanchion_ran ran;
    ran.struct_size = sizeof ran;
    ran.id_len = 77;
    EXPECT(STANCHION_ABSENT, stanchion_queue_pause_schedule(client, T(queue), T("a"), &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_resume_schedule(client, T(queue), T("a"), &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_remove_schedule(client, T(queue), T("a"), &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_run_schedule(client, T(queue), T("a"), &ran, &err));
    CHECK(ran.id_len == 77);
    put(client, queue, schedule("a", "every 1000h"));
    stanchion_schedules list = 0;
    OK(stanchion_queue_pause_schedule(client, T(queue), T("a"), &err));
    CHECK(found(client, queue, "a", &list).paused == 1);
    stanchion_schedules_free(list);
    OK(stanchion_queue_run_schedule(client, T(queue), T("a"), &ran, &err));
    CHECK(ran.id_len == (int32_t)strlen(ran.id) && strncmp(ran.id, "a@", 2) == 0);
    stanchion_claim claim = claimed(client, queue);
    SAME(info(claim).id, ran.id);
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    OK(stanchion_queue_resume_schedule(client, T(queue), T("a"), &err));
    CHECK(found(client, queue, "a", &list).paused == 0);
    stanchion_schedules_free(list);
    OK(stanchion_queue_run_schedule(client, T(queue), T("a"), NULL, &err));
    OK(stanchion_queue_remove_schedule(client, T(queue), T("a"), &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_get_schedule(client, T(queue), T("a"), &list, &err));
    CHECK(stats(client, queue).schedules == 0 && stats(client, queue).ready == 1);
    stanchion_client_free(client);
}

static stanchion_synced synced(stanchion_client client, const char *queue, int64_t generation,
                               const stanchion_schedule *list, size_t count) {
    stanchion_synced done;
    done.struct_size = sizeof done;
    OK(stanchion_queue_sync_schedules(client, T(queue), T("app"), generation, list, count, &done, &err));
    return done;
}

TEST(a_list_of_schedules_is_an_owners) {
    stanchion_client client = opened();
    const char *queue = unique("synced");
    put(client, queue, schedule("mine", "@yearly"));
    stanchion_schedule all[3] = {schedule("a", "@yearly"), schedule("b", "@yearly"), schedule("c", "@yearly")};
    stanchion_synced done = synced(client, queue, 3, all, 2);
    CHECK(done.added == 2 && done.changed == 0 && done.kept == 0 && done.removed == 0 && done.newer == -1);
    all[1].priority = 5;
    done = synced(client, queue, 4, &all[1], 2);
    CHECK(done.added == 1 && done.changed == 1 && done.kept == 0 && done.removed == 1 && done.newer == -1);
    /* That of an older deploy. */
    done = synced(client, queue, 3, all, 3);
    CHECK(done.added == 0 && done.changed == 0 && done.kept == 0 && done.removed == 0 && done.newer == 4);
    stanchion_schedules list = 0;
    SAME(found(client, queue, "b", &list).owner, "app");
    stanchion_schedules_free(list);
    CHECK(stats(client, queue).schedules == 3);
    OK(stanchion_queue_sync_schedules(client, T(queue), T("app"), 4, NULL, 0, NULL, &err));
    CHECK(stats(client, queue).schedules == 1);
    stanchion_client_free(client);
}

TEST(an_older_programs_stats_are_not_written_beyond_their_end) {
    stanchion_client client = opened();
    const char *queue = unique("older");
    put(client, queue, schedule("a", "@yearly"));
    stanchion_stats old;
    memset(&old, 170, sizeof old);
    const int64_t untouched = old.schedules;
    old.struct_size = offsetof(stanchion_stats, schedules);
    OK(stanchion_queue_stats(client, T(queue), &old, &err));
    CHECK(old.waiters == 0 && old.schedules == untouched && old.schedules_late_ms == untouched);
    CHECK(old.struct_size == offsetof(stanchion_stats, schedules) && stats(client, queue).schedules == 1);
    old.struct_size = offsetof(stanchion_stats, waiters);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_stats(client, T(queue), &old, &err));
    stanchion_client_free(client);
}
