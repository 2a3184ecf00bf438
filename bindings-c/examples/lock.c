/* One at a time, on all machines that use this store. Arguments: the store, such as redis://localhost or sqlite:app.db. */
#include <stanchion.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what, stanchion_error *err) {
    fprintf(stderr, "%s: %s\n", what, stanchion_error_message(err));
    stanchion_error_free(err);
    return 1;
}

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "memory:";
    const char *name = "invoice:42";
    stanchion_error *err = NULL;
    stanchion_client client = 0;
    if (stanchion_connect(url, strlen(url), NULL, &client, &err) < 0) return failed("connect", err);

    stanchion_lock_options options;
    stanchion_lock_options_init(&options, sizeof options);
    options.wait_ms = 5000; /* without a ttl: renewed until it is released */
    stanchion_lease lease = 0;
    if (stanchion_lock_acquire(client, name, strlen(name), &options, &lease, &err) < 0) return failed("acquire", err);

    /* Pass the fence along with every write, so that the resource can refuse a holder that came too late. */
    printf("nobody else is here; my fence is %lld\n", (long long)stanchion_lease_fence(lease));

    /* Only to try is no error: somebody has it. */
    stanchion_lease second = 0;
    options.wait_ms = 0;
    if (stanchion_lock_acquire(client, name, strlen(name), &options, &second, &err) == STANCHION_BUSY) {
        printf("busy, as it should be\n");
    }

    if (stanchion_lease_release(lease, &err) < 0) return failed("it was not mine to the end", err);
    stanchion_lease_free(lease);
    stanchion_client_free(client);
    return 0;
}
