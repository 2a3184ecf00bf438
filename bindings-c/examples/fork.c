/* A client from before a fork goes on in the child; a lease stays the parent's. Arguments: the store, not memory:. */
#define _POSIX_C_SOURCE 200809L
#include <stanchion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "sqlite:fork.db";
    stanchion_error *err = NULL;
    stanchion_client client = 0;
    stanchion_lease lease = 0;
    if (stanchion_connect(url, strlen(url), NULL, &client, &err) < 0 ||
        stanchion_lock_acquire(client, "parent", 6, NULL, &lease, &err) < 0) {
        fprintf(stderr, "%s\n", stanchion_error_message(err));
        return 1;
    }

    pid_t child = fork();
    if (child == 0) {
        int refused = stanchion_lease_release(lease, NULL) == STANCHION_ERR_FORKED;
        stanchion_lease_free(lease); /* does nothing to the parent */
        stanchion_lease own = 0;
        int works = stanchion_lock_acquire(client, "child", 5, NULL, &own, NULL) == STANCHION_OK &&
                    stanchion_lease_release(own, NULL) == STANCHION_OK;
        _exit(refused && works ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    printf("the child %s\n", status == 0 ? "had a lease of its own" : "failed");
    if (stanchion_lease_release(lease, &err) < 0) {
        fprintf(stderr, "%s\n", stanchion_error_message(err));
        return 1;
    }
    printf("the parent's was still valid\n");
    stanchion_lease_free(lease);
    stanchion_client_free(client);
    return status != 0;
}
