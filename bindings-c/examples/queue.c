/* Tasks that are not lost, and not doubled. Arguments: the store. */
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
    const char *queue = "emails";
    stanchion_error *err = NULL;
    stanchion_client client = 0;
    if (stanchion_connect(url, strlen(url), NULL, &client, &err) < 0) return failed("connect", err);

    stanchion_task task;
    stanchion_task_init(&task, sizeof task);
    task.id.data = "welcome:user:42";
    task.id.len = strlen(task.id.data);
    task.payload = "hello";
    task.payload_len = 5;
    task.delay_ms = 100;
    for (int turn = 0; turn < 2; turn++) {
        int32_t status = stanchion_queue_enqueue(client, queue, strlen(queue), &task, NULL, &err);
        if (status < 0) return failed("enqueue", err);
        printf("%s\n", status == STANCHION_DUPLICATE ? "it is there already" : "enqueued");
    }

    stanchion_claim_options options;
    stanchion_claim_options_init(&options, sizeof options);
    options.wait_ms = 5000;
    stanchion_claim claims[10];
    size_t count = 0;
    if (stanchion_queue_claim(client, queue, strlen(queue), &options, claims, 10, &count, &err) < 0) {
        return failed("claim", err);
    }
    for (size_t index = 0; index < count; index++) {
        stanchion_claim_info task_of;
        task_of.struct_size = sizeof task_of;
        if (stanchion_claim_get(claims[index], &task_of, &err) < 0) return failed("look", err);
        printf("%.*s says %.*s\n", (int)task_of.id.len, task_of.id.data, (int)task_of.payload_len,
               (const char *)task_of.payload);
        /* If this process dies before the ack, another one gets the task. */
        if (stanchion_claim_ack(claims[index], &err) < 0) return failed("ack", err);
        stanchion_claim_free(claims[index]);
    }
    stanchion_client_free(client);
    return 0;
}
