/* Locks of other kinds. Arguments: the store, such as redis://localhost or sqlite:app.db. */
#include <stanchion.h>
#include <stdio.h>
#include <string.h>

static stanchion_error *err;

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, stanchion_error_message(err));
    stanchion_error_free(err);
    return 1;
}

/* Many readers, or one writer. A waiting writer is not overtaken by readers that come later. */
static int read_and_write(stanchion_client client) {
    stanchion_lease writer = 0, reader = 0;
    if (stanchion_write_lock_acquire(client, "index", 5, NULL, &writer, &err) < 0) return failed("write");
    if (stanchion_lease_downgrade(writer, &err) < 0) return failed("downgrade"); /* a reader from here on */
    if (stanchion_read_lock_acquire(client, "index", 5, NULL, &reader, &err) < 0) return failed("read");
    stanchion_lease_free(reader);
    stanchion_lease_free(writer);
    return 0;
}

/* Ten at a time; a heavy job takes four of the ten places. */
static int some_at_a_time(stanchion_client client) {
    stanchion_lock_options options;
    stanchion_lock_options_init(&options, sizeof options);
    options.weight = 4;
    stanchion_lease heavy = 0;
    stanchion_holders holders = 0;
    if (stanchion_semaphore_acquire(client, "jobs", 4, 10, &options, &heavy, &err) < 0) return failed("semaphore");
    if (stanchion_semaphore_holders(client, "jobs", 4, &holders, &err) < 0) return failed("holders");
    for (size_t i = 0; i < stanchion_holders_len(holders); i++) {
        stanchion_holder holder;
        holder.struct_size = sizeof holder;
        if (stanchion_holders_at(holders, i, &holder, NULL) == STANCHION_OK) {
            printf("process %d has %d permits\n", (int)holder.pid, (int)holder.weight);
        }
    }
    stanchion_holders_free(holders);
    stanchion_lease_free(heavy);
    return 0;
}

/* All or none, without deadlock. */
static int several(stanchion_client client) {
    const stanchion_text names[] = {{"account:7", 9}, {"account:9", 9}};
    stanchion_lease both = 0;
    if (stanchion_multi_lock_acquire(client, names, 2, NULL, &both, &err) < 0) return failed("several");
    for (size_t i = 0; i < stanchion_lease_fences_len(both); i++) {
        stanchion_text name;
        int64_t fence;
        if (stanchion_lease_fences_at(both, i, &name, &fence, NULL) == STANCHION_OK) {
            printf("the fence of %.*s is %lld\n", (int)name.len, name.data, (long long)fence);
        }
    }
    stanchion_lease_free(both);
    return 0;
}

/* An owner that is inside comes in again. */
static int again(stanchion_client client) {
    stanchion_lock_options options;
    stanchion_lock_options_init(&options, sizeof options);
    options.owner.data = "request 8f3a";
    options.owner.len = strlen(options.owner.data);
    stanchion_lease outer = 0, inner = 0;
    if (stanchion_lock_acquire(client, "invoice:42", 10, &options, &outer, &err) < 0) return failed("acquire");
    if (stanchion_lock_acquire(client, "invoice:42", 10, &options, &inner, &err) < 0) return failed("acquire again");
    int same = stanchion_lease_fence(outer) == stanchion_lease_fence(inner);
    stanchion_lease_free(inner);
    stanchion_lease_free(outer); /* now it is given back */
    return !same;
}

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "memory:";
    stanchion_client client = 0;
    if (stanchion_connect(url, strlen(url), NULL, &client, &err) < 0) return failed("connect");
    int wrong = read_and_write(client) || some_at_a_time(client) || several(client) || again(client);
    stanchion_client_linger(client, 1000, NULL, NULL); /* for the releases of what was freed */
    stanchion_client_free(client);
    return wrong;
}
