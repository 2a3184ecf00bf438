/* A refused argument: the message begins with the function, and names the argument and what it was. */
#include "check.h"

#define SAYS(wanted, call) \
    do { \
        stanchion_error *err = NULL; \
        int32_t status = (call); \
        CHECK(status == STANCHION_ERR_INVALID_ARGUMENT || status == STANCHION_ERR_INVALID_HANDLE); \
        begins(__LINE__, stanchion_error_message(err), wanted); \
        stanchion_error_free(err); \
    } while (0)

static void begins(int line, const char *message, const char *wanted) {
    if (strncmp(message, wanted, strlen(wanted)) != 0) {
        printf("\"%s\" does not begin with \"%s\"\n", message, wanted);
        fail(__FILE__, line, "the message is wrong");
    }
}

TEST(a_refused_option_of_a_lock) {
    stanchion_client client = opened();
    stanchion_lease lease = 0;
    stanchion_lock_options options = lock_options();
    options.ttl_ms = -5;
    SAYS("stanchion_lock_acquire: ttl_ms -5 ", stanchion_lock_acquire(client, T("a"), &options, &lease, &err));
    SAYS("stanchion_read_lock_acquire: ttl_ms -5 ", stanchion_read_lock_acquire(client, T("a"), &options, &lease, &err));
    options = lock_options();
    options.renew = 2;
    SAYS("stanchion_lock_acquire: renew 2 ", stanchion_lock_acquire(client, T("a"), &options, &lease, &err));
    SAYS("stanchion_lock_acquire: name ", stanchion_lock_acquire(client, NULL, 4, NULL, &lease, &err));
    SAYS("stanchion_lock_acquire: the pointer to the lease is NULL", stanchion_lock_acquire(client, T("a"), NULL, NULL, &err));
    /* What the core refuses says what was to be done, and to which lock. */
    options = lock_options();
    options.ttl_ms = 1;
    SAYS("acquire \"a\": ttl 1ms ", stanchion_lock_acquire(client, T("a"), &options, &lease, &err));
    stanchion_client_free(client);
}

TEST(a_refused_argument_of_a_method) {
    stanchion_client client = opened();
    stanchion_lease lease = acquired(client, unique("extended"));
    SAYS("stanchion_lease_extend: ttl_ms -3 ", stanchion_lease_extend(lease, -3, &err));
    SAYS("stanchion_lease_wait_lost: time_ms -1 ", stanchion_lease_wait_lost(lease, -1, &err));
    SAYS("stanchion_claim_ack: this is no handle of a claim", stanchion_claim_ack(lease, &err));
    SAYS("stanchion_client_linger: this is no handle of a client", stanchion_client_linger(77, 1, NULL, &err));
    stanchion_lease_free(lease);
    SAYS("stanchion_lease_extend: this is no handle of a lease", stanchion_lease_extend(lease, 60000, &err));
    stanchion_client_free(client);
}

TEST(a_refused_task) {
    stanchion_client client = opened();
    stanchion_task one = task("a");
    one.priority = 256;
    SAYS("stanchion_queue_enqueue: priority 256 ", stanchion_queue_enqueue(client, T("q"), &one, NULL, &err));
    one = task("a");
    one.payload_len = 3;
    SAYS("stanchion_queue_enqueue: payload is NULL", stanchion_queue_enqueue(client, T("q"), &one, NULL, &err));
    one = task("a");
    one.kind.data = "\n", one.kind.len = 1;
    SAYS("enqueue \"q\": task \"a\": kind ", stanchion_queue_enqueue(client, T("q"), &one, NULL, &err));
    one = task("a");
    one.timeout_ms = -7;
    SAYS("stanchion_queue_enqueue: timeout_ms -7 ", stanchion_queue_enqueue(client, T("q"), &one, NULL, &err));
    one = task("a");
    one.backoff.data = "soon", one.backoff.len = 4;
    SAYS("stanchion_queue_enqueue: backoff is not ", stanchion_queue_enqueue(client, T("q"), &one, NULL, &err));
    stanchion_result result = 0;
    SAYS("stanchion_queue_result: version -2 ", stanchion_queue_result(client, T("q"), T("a"), -2, 0, &result, &err));
    stanchion_task_events events = 0;
    SAYS("stanchion_queue_events: after -2 ", stanchion_queue_events(client, T("q"), -2, 0, NULL, &events, &err));
    stanchion_connect_options options;
    stanchion_connect_options_init(&options, sizeof options);
    options.timeout_ms = -7;
    SAYS("stanchion_connect: timeout_ms -7 ", stanchion_connect(T("memory:"), &options, &client, &err));
    stanchion_client_free(client);
}

TEST(a_refused_option_of_a_schedule) {
    stanchion_client client = opened();
    stanchion_schedule one;
    stanchion_schedule_init(&one, sizeof one);
    one.id.data = "a", one.id.len = 1;
    one.when.data = "@daily", one.when.len = 6;
    stanchion_schedule bad = one;
    bad.missed = 3;
    SAYS("stanchion_queue_schedule: missed 3 is no stanchion_missed", stanchion_queue_schedule(client, T("q"), &bad, NULL, &err));
    bad = one;
    bad.missed = STANCHION_MISSED_ALL;
    SAYS("stanchion_queue_schedule: missed_max ", stanchion_queue_schedule(client, T("q"), &bad, NULL, &err));
    bad = one;
    bad.overlap = -2;
    SAYS("stanchion_queue_sync_schedules: overlap -2 is no stanchion_overlap",
         stanchion_queue_sync_schedules(client, T("q"), T("app"), 1, &bad, 1, NULL, &err));
    SAYS("stanchion_queue_sync_schedules: generation -1 ",
         stanchion_queue_sync_schedules(client, T("q"), T("app"), -1, &one, 1, NULL, &err));
    bad = one;
    bad.priority = 300;
    int64_t times[1];
    size_t count = 0;
    SAYS("stanchion_schedule_preview: priority 300 ", stanchion_schedule_preview(&bad, 0, times, 1, &count, &err));
    bad = one;
    bad.tz.data = "Mars/Phobos", bad.tz.len = 11;
    SAYS("schedule \"q\": schedule \"a\": tz: ", stanchion_queue_schedule(client, T("q"), &bad, NULL, &err));
    stanchion_client_free(client);
}
