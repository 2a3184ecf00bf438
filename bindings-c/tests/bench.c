/* Acquire and release of a free lock. Reads from its input how many pairs to do now; prints for each how many nanoseconds
 * it took, as the program with bare hiredis calls does that it is compared with. */
#define _POSIX_C_SOURCE 200809L
#include <stanchion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void pair(stanchion_client client) {
    stanchion_error *err = NULL;
    stanchion_lease lease = 0;
    if (stanchion_lock_acquire(client, "bench:c", 7, NULL, &lease, &err) != STANCHION_OK ||
        stanchion_lease_release(lease, &err) != STANCHION_OK) {
        fprintf(stderr, "bench: %s\n", stanchion_error_message(err));
        exit(1);
    }
    stanchion_lease_free(lease);
}

static long long nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **arguments) {
    stanchion_client client = 0;
    if (count != 2 || stanchion_connect(arguments[1], strlen(arguments[1]), NULL, &client, NULL) != STANCHION_OK) {
        fprintf(stderr, "bench STORE\n");
        return 2;
    }
    long long *taken = NULL;
    int pairs;
    while (scanf("%d", &pairs) == 1) {
        taken = realloc(taken, sizeof *taken * (size_t)pairs);
        for (int number = 0; number < pairs; number++) {
            long long begin = nanoseconds();
            pair(client);
            taken[number] = nanoseconds() - begin;
        }
        for (int number = 0; number < pairs; number++) printf("%lld\n", taken[number]);
        fflush(stdout);
    }
    free(taken);
    stanchion_client_free(client);
    return 0;
}
