/* The largest payloads: what the header names works, and one byte more is refused. */
#include "check.h"

/* As they count. */
#define HEADER "{\"h\":\"v\"}"

static const unsigned char *large(void) {
    static unsigned char bytes[STANCHION_MAX_PAYLOAD + 1];
    for (size_t index = 0; index < sizeof bytes; index++) bytes[index] = (unsigned char)(index % 251);
    return bytes;
}

static int32_t put(stanchion_client client, const char *queue, stanchion_task one, size_t len, stanchion_error **err) {
    one.payload = large();
    one.payload_len = len;
    return stanchion_queue_enqueue(client, T(queue), &one, NULL, err);
}

TEST(the_largest_payload) {
    stanchion_client client = opened();
    const char *queue = unique("largest");
    CHECK(STANCHION_MAX_PAYLOAD == 16 << 20);
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, put(client, queue, task("more"), STANCHION_MAX_PAYLOAD + 1, &err));
    CHECK(stats(client, queue).ready == 0);
    OK(put(client, queue, task("most"), STANCHION_MAX_PAYLOAD, &err));
    stanchion_claim claim = claimed(client, queue);
    stanchion_claim_info found = info(claim);
    CHECK(found.payload_len == STANCHION_MAX_PAYLOAD);
    CHECK(memcmp(found.payload, large(), STANCHION_MAX_PAYLOAD) == 0);
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(headers_take_their_part) {
    stanchion_client client = opened();
    const char *queue = unique("headers");
    const stanchion_header header = {{"h", 1}, {"v", 1}};
    const size_t most = STANCHION_MAX_PAYLOAD - strlen(HEADER);
    stanchion_task one = task("headed");
    one.headers = &header;
    one.header_count = 1;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, put(client, queue, one, most + 1, &err));
    OK(put(client, queue, one, most, &err));
    CHECK(stats(client, queue).ready == 1);
    stanchion_client_free(client);
}

TEST(the_largest_cached_value) {
    stanchion_client client = opened();
    const char *name = unique("value");
    const size_t most = STANCHION_MAX_PAYLOAD;
    stanchion_cached_options options;
    stanchion_cached_options_init(&options, sizeof options);
    options.ttl_ms = 60000;
    /* While a busy machine stands still the store does not answer: then nobody computes without it, and who could not store
     * computes again. */
    options.without_store = 0;
    stanchion_cached cached = 0;
    int32_t status = STANCHION_NOT_STORED;
    for (int tries = 0; tries < 10 && status == STANCHION_NOT_STORED; tries++) {
        EXPECT(STANCHION_COMPUTE, stanchion_cached_begin(client, T(name), &options, &cached, &err));
        EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_cached_store(cached, large(), most + 1, &err));
        status = stanchion_cached_store(cached, large(), most, NULL);
        stanchion_cached_free(cached);
    }
    OK(status);
    OK(stanchion_cached_begin(client, T(name), &options, &cached, &err));
    const void *value = NULL;
    size_t len = 0;
    OK(stanchion_cached_get(cached, &value, &len, &err));
    CHECK(len == most && memcmp(value, large(), most) == 0);
    stanchion_cached_free(cached);
    stanchion_client_free(client);
}
