/* pthread_cancel of a thread in a call: the call ends as ever, and the thread at its next cancellation point. */
#include <pthread.h>

#include "check.h"

typedef struct {
    stanchion_client client;
    const char *name;
    const int32_t *cancel;
    stanchion_lease lease;
    int32_t status;
    bool ended, went_on;
} waiting;

static void note_end(void *argument) {
    waiting *self = (waiting *)argument;
    self->ended = true;
    stanchion_lease_free(self->lease);
}

static void *wait_for_lock(void *argument) {
    waiting *self = (waiting *)argument;
    stanchion_lock_options options = lock_options();
    options.wait_ms = 60000;
    options.cancel = self->cancel;
    pthread_cleanup_push(note_end, self);
    self->status = stanchion_lock_acquire(self->client, T(self->name), &options, &self->lease, NULL);
    pthread_testcancel();
    self->went_on = true;
    pthread_cleanup_pop(1);
    return NULL;
}

static size_t waiters(stanchion_client client, const char *name) {
    stanchion_waiters list = 0;
    OK(stanchion_lock_waiters(client, T(name), &list, &err));
    size_t count = stanchion_waiters_len(list);
    stanchion_waiters_free(list);
    return count;
}

/* Cancels a thread that waits for a lock, once it does. */
static pthread_t cancelled(waiting *self) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_lock, self) == 0);
    for (int tries = 0; waiters(self->client, self->name) == 0; tries++) {
        CHECK(tries < 4000);
        pause_ms(5);
    }
    CHECK(pthread_cancel(thread) == 0);
    return thread;
}

static void joined(pthread_t thread, waiting *self) {
    void *result = NULL;
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED && self->ended && !self->went_on);
}

TEST(a_cancelled_thread_gets_its_lock_first) {
    waiting self = {opened(), unique("cancelled"), NULL, 0, 7, false, false};
    stanchion_lease lease = acquired(self.client, self.name);
    pthread_t thread = cancelled(&self);
    OK(stanchion_lease_release(lease, &err));
    joined(thread, &self);
    CHECK(self.status == STANCHION_OK && self.lease != 0);
    stanchion_lease_free(lease);
    /* It was freed by the thread's cleanup, and nothing stands still. */
    stanchion_lock_options options = lock_options();
    OK(stanchion_lock_acquire(self.client, T(self.name), &options, &lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(self.client);
}

TEST(a_cancelled_thread_is_called_out_of_its_wait) {
    int32_t now = 0;
    waiting self = {opened(), unique("called"), &now, 0, 7, false, false};
    stanchion_lease lease = acquired(self.client, self.name);
    pthread_t thread = cancelled(&self);
    __atomic_store_n(&now, 1, __ATOMIC_RELAXED);
    joined(thread, &self);
    CHECK(self.status == STANCHION_ERR_CANCELLED && self.lease == 0);
    OK(stanchion_lease_release(lease, &err));
    stanchion_lease_free(lease);
    stanchion_client_free(self.client);
}

/* A thread that was cancelled before it calls; what it has switched off stays off. */
static void *call_cancelled(void *argument) {
    waiting *self = (waiting *)argument;
    int before = 0;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) == 0 && before == PTHREAD_CANCEL_ENABLE);
    CHECK(pthread_cancel(pthread_self()) == 0);
    self->lease = acquired(self->client, self->name);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0 && before == PTHREAD_CANCEL_DISABLE);
    self->status = stanchion_lease_release(self->lease, NULL);
    pthread_cleanup_push(note_end, self);
    pthread_testcancel();
    self->went_on = true;
    pthread_cleanup_pop(1);
    return NULL;
}

TEST(a_thread_that_is_cancelled_already) {
    waiting self = {opened(), unique("already"), NULL, 0, 7, false, false};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call_cancelled, &self) == 0);
    joined(thread, &self);
    CHECK(self.status == STANCHION_OK);
    stanchion_client_free(self.client);
}
