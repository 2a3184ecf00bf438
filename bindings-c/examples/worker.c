/* A worker with two threads, which SIGTERM and Ctrl-C drain. Arguments: the store, and "-" to end when nothing is due. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stanchion.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t stop;
static stanchion_worker worker;

static void stop_soon(int signal) {
    (void)signal;
    stop = 1;
}

/* What a thread does: poll, work, settle. */
static void *hand(void *nothing) {
    stanchion_claim claim = 0;
    stanchion_error *err = NULL;
    int32_t status;
    while ((status = stanchion_worker_poll(worker, 200, &claim, &err)) >= 0 && status != STANCHION_OVER) {
        /* No function of the library may be called in a signal handler. */
        if (stop) stanchion_worker_stop(worker, NULL);
        if (status == STANCHION_EMPTY) continue;
        stanchion_claim_info task;
        task.struct_size = sizeof task;
        stanchion_claim_get(claim, &task, NULL);
        printf("attempt %d of %.*s\n", (int)task.attempt, (int)task.id.len, task.id.data);
        if (task.payload_len == 0) {
            stanchion_worker_fail(worker, claim, "no payload", 10, NULL); /* tried again, later and later */
        } else {
            stanchion_worker_complete(worker, claim, NULL); /* acked together with the next claim */
        }
    }
    if (status < 0) {
        fprintf(stderr, "worker: %s\n", stanchion_error_message(err));
        stanchion_error_free(err);
    }
    return nothing;
}

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "memory:";
    stanchion_client client = 0;
    stanchion_error *err = NULL;
    stanchion_worker_options options;
    struct sigaction action;
    pthread_t threads[2];
    memset(&action, 0, sizeof action);
    action.sa_handler = stop_soon;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    stanchion_worker_options_init(&options, sizeof options);
    options.concurrency = 2;
    options.until_empty = argc > 2 ? 1 : 0;
    if (stanchion_connect(url, strlen(url), NULL, &client, &err) < 0 ||
        stanchion_worker_open(client, "thumbnails", 10, &options, &worker, &err) < 0) {
        fprintf(stderr, "%s\n", stanchion_error_message(err));
        return 1;
    }
    for (int index = 0; index < 2; index++) pthread_create(&threads[index], NULL, hand, NULL);
    for (int index = 0; index < 2; index++) pthread_join(threads[index], NULL);

    stanchion_worker_report report;
    report.struct_size = sizeof report;
    stanchion_worker_get_report(worker, &report, NULL);
    printf("%d completed, %d failed\n", (int)report.completed, (int)report.failed);
    stanchion_worker_free(worker);
    stanchion_client_free(client);
    return 0;
}
