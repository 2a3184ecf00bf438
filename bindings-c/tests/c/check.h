/* A small frame for tests in C and C++. Each test runs in a process of its own. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stanchion.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The store that the tests use. */
extern const char *store;

void add_test(const char *name, void (*body)(void));
/* Ends the test: it has failed. */
void fail(const char *file, int line, const char *what);
/* Notes that the test is not run, and why. */
void skip(const char *why);
void expected(const char *file, int line, const char *call, int32_t wanted, int32_t got, stanchion_error *err);
/* A client of the store. */
stanchion_client opened(void);
/* A name that no other test uses. Valid for some calls. */
const char *unique(const char *stem);
bool is_memory(void);
/* Runs a function in a forked child; whether it returned, all its checks being right. */
bool in_child(void (*body)(void));
void same(const char *file, int line, stanchion_text got, const char *wanted);
void pause_ms(int ms);

stanchion_lock_options lock_options(void);
stanchion_claim_options claim_options(void);
stanchion_list_options list_options(int32_t state);
/* Which says nothing yet. */
stanchion_dead_tasks dead_tasks(void);
stanchion_rate rate(int64_t count, int64_t per_ms, int64_t burst);
stanchion_task task(const char *id);
/* Acquires without options, which must work. */
stanchion_lease acquired(stanchion_client client, const char *name);
void enqueued(stanchion_client client, const char *queue, const char *id);
/* Claims one task, which must be there. */
stanchion_claim claimed(stanchion_client client, const char *queue);
stanchion_stats stats(stanchion_client client, const char *queue);
stanchion_claim_info info(stanchion_claim claim);

#ifdef __cplusplus
}
#endif

#define TEST(name) \
    static void name(void); \
    __attribute__((constructor)) static void add_##name(void) { add_test(#name, name); } \
    static void name(void)

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
/* A text argument with its length. */
#define T(text) (text), strlen(text)
/* A call with `&err` as its last argument, and the status that it must return. */
#define EXPECT(status, call) \
    do { \
        stanchion_error *err = NULL; \
        int32_t got = (call); \
        expected(__FILE__, __LINE__, #call, (status), got, err); \
    } while (0)
#define OK(call) EXPECT(STANCHION_OK, call)
#define SKIP(why) \
    do { \
        skip(why); \
        return; \
    } while (0)
#define SAME(text, wanted) same(__FILE__, __LINE__, (text), (wanted))

#endif
