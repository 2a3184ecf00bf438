/* Keys, rates and limits. */
#include <stddef.h>

#include "check.h"

static stanchion_text view(const char *text) {
    stanchion_text view = {text, strlen(text)};
    return view;
}

static void put(stanchion_client client, const char *queue, const char *id, const char *key) {
    stanchion_task one = task(id);
    one.key = view(key);
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
}

/* What is known of a key; its text lives as long as the list. */
static stanchion_key_info known(stanchion_client client, const char *queue, const char *key, stanchion_keys *list) {
    stanchion_key_info info;
    info.struct_size = sizeof info;
    OK(stanchion_queue_get_key(client, T(queue), T(key), list, &err));
    CHECK(stanchion_keys_len(*list) == 1);
    OK(stanchion_keys_at(*list, 0, &info, &err));
    return info;
}

TEST(a_key_has_limits_of_its_own) {
    stanchion_client client = opened();
    const char *queue = unique("own");
    stanchion_keys list = 0;
    stanchion_key_info info = known(client, queue, "k", &list);
    SAME(info.key, "k");
    CHECK(info.running == 0 && info.in_line == 0 && info.held == 0 && info.opens_in_ms == -1);
    CHECK(info.concurrency == -1 && info.rate.count == -1 && info.weight == -1);
    stanchion_keys_free(list);
    stanchion_key_limits limits;
    stanchion_key_limits_init(&limits, sizeof limits);
    limits.concurrency = 4;
    limits.rate = rate(20, 1000, -1);
    OK(stanchion_queue_limit_key(client, T(queue), T("k"), &limits, &err));
    info = known(client, queue, "k", &list);
    CHECK(info.concurrency == 4 && info.rate.count == 20 && info.rate.per_ms == 1000 && info.rate.burst == 1 && info.weight == 1);
    stanchion_text next = {NULL, 0};
    EXPECT(STANCHION_ABSENT, stanchion_keys_next(list, &next, &err));
    stanchion_keys_free(list);
    OK(stanchion_queue_limit_key(client, T(queue), T("k"), NULL, &err));
    info = known(client, queue, "k", &list);
    CHECK(info.weight == -1 && info.concurrency == -1);
    stanchion_keys_free(list);
    stanchion_client_free(client);
}

TEST(a_throttle_holds_a_key_and_no_other) {
    stanchion_client client = opened();
    const char *queue = unique("throttled");
    put(client, queue, "a", "k");
    put(client, queue, "b", "k");
    put(client, queue, "x", "other");
    stanchion_stats now = stats(client, queue);
    CHECK(now.ready == 2 && now.held == 1 && now.gate == STANCHION_GATE_OPEN && now.opens_in_ms == -1);
    stanchion_claim claim = claimed(client, queue);
    stanchion_claim_info about = info(claim);
    SAME(about.key, "k");
    OK(stanchion_claim_throttle(claim, 600000, &err));
    stanchion_claim_free(claim);
    claim = claimed(client, queue);
    about = info(claim);
    SAME(about.key, "other");
    stanchion_verdict verdict;
    stanchion_verdict_init(&verdict, sizeof verdict);
    stanchion_answers answers = 0;
    verdict.claim = claim;
    verdict.kind = STANCHION_VERDICT_THROTTLE;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_queue_settle(client, T(queue), &verdict, 1, &answers, &err));
    verdict.delay_ms = 600000;
    OK(stanchion_queue_settle(client, T(queue), &verdict, 1, &answers, &err));
    stanchion_answers_free(answers);
    stanchion_claim_free(claim);
    stanchion_keys list = 0;
    CHECK(known(client, queue, "k", &list).opens_in_ms > 500000);
    stanchion_keys_free(list);
    stanchion_client_free(client);
}

TEST(settings_take_limits_and_give_them_up) {
    stanchion_client client = opened();
    const char *queue = unique("limits");
    stanchion_queue_config settings;
    stanchion_queue_config_init(&settings, sizeof settings);
    settings.max_running = 7;
    settings.rate = rate(20, 1000, 5);
    settings.key_concurrency = 2;
    settings.key_rate = rate(1, 500, -1);
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    stanchion_stats now = stats(client, queue);
    CHECK(now.max_running == 7 && now.rate.count == 20 && now.rate.per_ms == 1000 && now.rate.burst == 5);
    CHECK(now.key_concurrency == 2 && now.key_rate.count == 1 && now.key_rate.per_ms == 500 && now.key_rate.burst == 1);
    stanchion_queue_config_init(&settings, sizeof settings);
    settings.rate.count = -2;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    now = stats(client, queue);
    CHECK(now.max_running == 7 && now.rate.count == -1 && now.key_concurrency == 2);
    settings.max_running = -2;
    settings.key_concurrency = -2;
    settings.key_rate.count = -2;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    now = stats(client, queue);
    CHECK(now.max_running == -1 && now.key_concurrency == -1 && now.key_rate.count == -1);
    stanchion_client_free(client);
}

/* A program of the version before has smaller structs, and asks for no limits. */
TEST(older_structs_have_no_keys) {
    stanchion_client client = opened();
    const char *queue = unique("older");
    stanchion_task one = task("a");
    one.key = view("k");
    one.struct_size = offsetof(stanchion_task, key);
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
    stanchion_claim claim = claimed(client, queue);
    CHECK(info(claim).key.data == NULL);
    stanchion_queue_config settings;
    stanchion_queue_config_init(&settings, offsetof(stanchion_queue_config, max_running));
    settings.max_running = 0;
    settings.events = 5;
    OK(stanchion_queue_configure(client, T(queue), &settings, &err));
    CHECK(stats(client, queue).max_running == -1 && stats(client, queue).events == 5);
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}
