/* Limiters: so many in so long. */
#include <pthread.h>

#include "check.h"

static stanchion_limit hourly(int32_t kind) {
    stanchion_limit limit;
    stanchion_limit_init(&limit, sizeof limit);
    limit.n = 1;
    /* Windows are those of the clock: one of a year ends while no test runs, but at New Year. */
    limit.per_us = (kind == STANCHION_FIXED_WINDOW ? INT64_C(365) * 24 : 1) * 3600 * 1000000;
    limit.kind = kind;
    limit.wait_ms = 0;
    return limit;
}

TEST(so_many_are_allowed_and_then_it_says_when) {
    stanchion_client client = opened();
    const char *name = unique("limiter");
    for (int32_t kind = STANCHION_GCRA; kind <= STANCHION_SLIDING_WINDOW; kind++) {
        stanchion_limit limit = hourly(kind);
        int64_t retry = -7;
        OK(stanchion_limiter_take(client, T(name), &limit, &retry, &err));
        CHECK(retry == -7);
        EXPECT(STANCHION_BUSY, stanchion_limiter_take(client, T(name), &limit, &retry, &err));
        CHECK(retry > 0 && retry <= limit.per_us);
        limit.wait_ms = 100;
        EXPECT(STANCHION_BUSY, stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    }
    stanchion_client_free(client);
}

TEST(whoever_waits_gets_its_turn) {
    stanchion_client client = opened();
    const char *name = unique("limiter");
    stanchion_limit limit;
    stanchion_limit_init(&limit, sizeof limit);
    limit.n = 20;
    for (int index = 0; index < 3; index++) OK(stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    limit.burst = 3;
    limit.count = 3;
    OK(stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    stanchion_client_free(client);
}

TEST(a_wait_that_is_cancelled_gives_its_turn_back) {
    stanchion_client client = opened();
    const char *name = unique("limiter");
    stanchion_limit limit = hourly(STANCHION_GCRA);
    int64_t before = 0, after = 0;
    OK(stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    EXPECT(STANCHION_BUSY, stanchion_limiter_take(client, T(name), &limit, &before, &err));
    const int32_t cancelled = 1;
    limit.wait_ms = 3600 * 1000;
    limit.cancel = &cancelled;
    EXPECT(STANCHION_ERR_CANCELLED, stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    limit = hourly(STANCHION_GCRA);
    EXPECT(STANCHION_BUSY, stanchion_limiter_take(client, T(name), &limit, &after, &err));
    CHECK(after <= before);
    stanchion_client_free(client);
}

TEST(what_is_no_limit_is_refused) {
    stanchion_client client = opened();
    const char *name = unique("limiter");
    stanchion_limit limit = hourly(STANCHION_GCRA);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_limiter_take(client, T(name), NULL, NULL, &err));
    limit.count = 2;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    limit = hourly(9);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    limit = hourly(STANCHION_FIXED_WINDOW);
    limit.burst = 2;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    limit = hourly(STANCHION_GCRA);
    limit.struct_size = 1;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_limiter_take(client, T(name), &limit, NULL, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_limiter_take(client, T("{"), &limit, NULL, &err));
    stanchion_client_free(client);
}
