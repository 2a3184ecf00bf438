#include "check.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_TESTS 200
/* A test that takes longer hangs. */
#define LIMIT_S 300

const char *store = "memory:";

static struct {
    const char *name;
    void (*body)(void);
} tests[MOST_TESTS];
static int count;

enum { PASSED = 0, FAILED = 1, SKIPPED = 77 };

void add_test(const char *name, void (*body)(void)) {
    tests[count].name = name;
    tests[count++].body = body;
}

void fail(const char *file, int line, const char *what) {
    printf("%s:%d: %s\n", file, line, what);
    fflush(stdout);
    _exit(FAILED);
}

static bool skips;

void skip(const char *why) {
    printf("skipped: %s\n", why);
    skips = true;
}

void expected(const char *file, int line, const char *call, int32_t wanted, int32_t got, stanchion_error *err) {
    bool told = got < 0 ? err != NULL && stanchion_error_code(err) == got : err == NULL;
    if (got == wanted && told) {
        CHECK(got >= 0 || strlen(stanchion_error_message(err)) > 0);
        stanchion_error_free(err);
        return;
    }
    printf("%s answers %s, not %s: %s\n", call, stanchion_status_name(got), stanchion_status_name(wanted),
           stanchion_error_message(err));
    fail(file, line, told ? "the status is wrong" : "the error does not fit the status");
}

bool is_memory(void) { return strncmp(store, "memory:", 7) == 0; }

stanchion_client opened(void) {
    stanchion_client client = 0;
    OK(stanchion_connect(T(store), NULL, &client, &err));
    CHECK(client > 0);
    return client;
}

const char *unique(const char *stem) {
    static char names[8][128];
    static int next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "%s-%d-%d", stem, (int)getpid(), next);
    return name;
}

bool in_child(void (*body)(void)) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(LIMIT_S);
        body();
        fflush(stdout);
        _exit(PASSED);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == PASSED;
}

void same(const char *file, int line, stanchion_text got, const char *wanted) {
    if (got.len == strlen(wanted) && memcmp(got.data, wanted, got.len) == 0) return;
    printf("\"%.*s\" is not \"%s\"\n", (int)got.len, got.data, wanted);
    fail(file, line, "the text is wrong");
}

void pause_ms(int ms) {
    struct timespec time = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&time, NULL);
}

stanchion_lock_options lock_options(void) {
    stanchion_lock_options options;
    stanchion_lock_options_init(&options, sizeof options);
    return options;
}

stanchion_claim_options claim_options(void) {
    stanchion_claim_options options;
    stanchion_claim_options_init(&options, sizeof options);
    return options;
}

stanchion_list_options list_options(int32_t state) {
    stanchion_list_options options;
    stanchion_list_options_init(&options, sizeof options);
    options.state = state;
    return options;
}

stanchion_rate rate(int64_t count, int64_t per_ms, int64_t burst) {
    stanchion_rate rate = {count, per_ms, burst};
    return rate;
}

stanchion_dead_tasks dead_tasks(void) {
    stanchion_dead_tasks dead;
    stanchion_dead_tasks_init(&dead, sizeof dead);
    return dead;
}

stanchion_task task(const char *id) {
    stanchion_task task;
    stanchion_task_init(&task, sizeof task);
    if (id != NULL) {
        task.id.data = id;
        task.id.len = strlen(id);
    }
    return task;
}

stanchion_lease acquired(stanchion_client client, const char *name) {
    stanchion_lease lease = 0;
    OK(stanchion_lock_acquire(client, T(name), NULL, &lease, &err));
    CHECK(lease > 0 && stanchion_lease_is_valid(lease) == 1);
    return lease;
}

void enqueued(stanchion_client client, const char *queue, const char *id) {
    stanchion_task one = task(id);
    OK(stanchion_queue_enqueue(client, T(queue), &one, NULL, &err));
}

stanchion_claim claimed(stanchion_client client, const char *queue) {
    stanchion_claim claim = 0;
    size_t found = 0;
    stanchion_claim_options options = claim_options();
    options.wait_ms = 10000;
    OK(stanchion_queue_claim(client, T(queue), &options, &claim, 1, &found, &err));
    CHECK(found == 1 && claim > 0);
    return claim;
}

stanchion_stats stats(stanchion_client client, const char *queue) {
    stanchion_stats found;
    found.struct_size = sizeof found;
    OK(stanchion_queue_stats(client, T(queue), &found, &err));
    return found;
}

stanchion_claim_info info(stanchion_claim claim) {
    stanchion_claim_info found;
    found.struct_size = sizeof found;
    OK(stanchion_claim_get(claim, &found, &err));
    return found;
}

/* Runs a test in a process of its own, so that one that crashes is one that failed. */
static int run(int number) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(LIMIT_S);
        tests[number].body();
        exit(skips ? SKIPPED : PASSED);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

/* All in this process, for checkers that are slow to start. The first that fails is the last. */
static int run_here(int number) {
    skips = false;
    printf("%s\n", tests[number].name);
    tests[number].body();
    return skips ? SKIPPED : PASSED;
}

/* Arguments: the store, and names of tests, or --here. */
int main(int argc, char **argv) {
    int passed = 0, failed = 0, skipped = 0;
    /* Who kills one that hangs wants to see which test it was in. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool here = argc > 2 && strcmp(argv[2], "--here") == 0;
    if (argc > 1) store = argv[1];
    for (int number = 0; number < count; number++) {
        bool wanted = argc <= 2 || here;
        for (int index = 2; index < argc; index++) wanted = wanted || strcmp(argv[index], tests[number].name) == 0;
        if (!wanted) continue;
        int status = here ? run_here(number) : run(number);
        passed += status == PASSED;
        skipped += status == SKIPPED;
        if (status != PASSED && status != SKIPPED) {
            failed++;
            printf("FAILED %s (%d)\n", tests[number].name, status);
        }
    }
    printf("%d passed; %d failed; %d ignored;\n", passed, failed, skipped);
    return failed != 0;
}
