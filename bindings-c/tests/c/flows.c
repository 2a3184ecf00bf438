/* Flows: tasks of which some wait for others. */
#include <stddef.h>

#include "check.h"

static stanchion_text view(const char *text) {
    stanchion_text view = {text, strlen(text)};
    return view;
}

static stanchion_node node(const stanchion_task *task) {
    stanchion_node node;
    stanchion_node_init(&node, sizeof node);
    node.task = task;
    return node;
}

/* The one flow of a list; its texts live as long as that. */
static stanchion_flow_info known(stanchion_client client, const char *queue, const char *id, stanchion_flows *list) {
    stanchion_flow_info info;
    info.struct_size = sizeof info;
    OK(stanchion_queue_get_flow(client, T(queue), T(id), list, &err));
    CHECK(stanchion_flows_len(*list) == 1);
    OK(stanchion_flows_at(*list, 0, &info, &err));
    return info;
}

static stanchion_node_info node_at(stanchion_flows list, size_t number) {
    stanchion_node_info info;
    info.struct_size = sizeof info;
    OK(stanchion_flows_node_at(list, 0, number, &info, &err));
    return info;
}

static stanchion_input input_at(stanchion_inputs list, size_t number) {
    stanchion_input input;
    input.struct_size = sizeof input;
    OK(stanchion_inputs_at(list, number, &input, &err));
    return input;
}

static void nothing_to_claim(stanchion_client client, const char *queue) {
    stanchion_claim claim = 0;
    size_t found = 7;
    EXPECT(STANCHION_EMPTY, stanchion_queue_claim(client, T(queue), NULL, &claim, 1, &found, &err));
    CHECK(found == 0);
}

/* Two parts, of which one fails, and what comes after them. */
static void put_import(stanchion_client client, const char *queue, const char *mails) {
    const stanchion_task parts[] = {task("a"), task("b"), task("join"), task("alarm"), task("last")};
    const stanchion_text a = view("a"), b = view("b");
    stanchion_node nodes[5];
    for (int index = 0; index < 5; index++) nodes[index] = node(&parts[index]);
    nodes[2].after = &a, nodes[2].after_count = 1;
    nodes[2].after_end = &b, nodes[2].after_end_count = 1;
    nodes[3].after_failure = &b, nodes[3].after_failure_count = 1;
    nodes[3].queue = view(mails);
    nodes[4].after_all = STANCHION_AFTER_ALL_FINALLY;
    int32_t was_put = 7;
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("f"), nodes, 5, &was_put, &err));
    CHECK(was_put == 1);
    EXPECT(STANCHION_DUPLICATE, stanchion_queue_enqueue_flow(client, T(queue), T("f"), nodes, 1, &was_put, &err));
    CHECK(was_put == 0);
    EXPECT(STANCHION_DUPLICATE, stanchion_queue_enqueue_flow(client, T(queue), T("f"), nodes, 1, NULL, &err));
}

static void work_on_parts(stanchion_client client, const char *queue) {
    for (int part = 0; part < 2; part++) {
        stanchion_claim claim = claimed(client, queue);
        const stanchion_claim_info about = info(claim);
        SAME(about.flow, "f");
        if (about.id.data[about.id.len - 1] == 'a') {
            OK(stanchion_claim_ack_with(claim, "of a", 4, &err));
        } else {
            OK(stanchion_claim_bury(claim, T("no"), &err));
        }
        stanchion_claim_free(claim);
    }
}

static void work_on_join(stanchion_client client, const char *queue) {
    stanchion_claim claim = claimed(client, queue);
    stanchion_inputs inputs = 0;
    SAME(info(claim).id, "f/join");
    OK(stanchion_claim_inputs(claim, &inputs, &err));
    CHECK(stanchion_inputs_len(inputs) == 2);
    const stanchion_input first = input_at(inputs, 0), second = input_at(inputs, 1);
    SAME(first.node, "a");
    CHECK(first.state == STANCHION_NODE_DONE && first.result_len == 4 && memcmp(first.result, "of a", 4) == 0);
    SAME(second.node, "b");
    CHECK(second.state == STANCHION_NODE_DEAD && second.result == NULL && second.result_len == 0);
    stanchion_input none;
    none.struct_size = sizeof none;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_inputs_at(inputs, 2, &none, &err));
    stanchion_inputs_free(inputs);
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
}

TEST(a_flow_goes_to_its_end) {
    stanchion_client client = opened();
    const char *queue = unique("flow"), *mails = unique("mails");
    put_import(client, queue, mails);
    work_on_parts(client, queue);
    work_on_join(client, queue);
    stanchion_claim alarm = claimed(client, mails);
    SAME(info(alarm).queue, mails);
    OK(stanchion_claim_ack(alarm, &err));
    stanchion_claim_free(alarm);
    nothing_to_claim(client, mails);
    stanchion_claim last = claimed(client, queue);
    SAME(info(last).id, "f/last");
    OK(stanchion_claim_ack(last, &err));
    stanchion_claim_free(last);
    nothing_to_claim(client, queue);
    stanchion_flows list = 0;
    const stanchion_flow_info about = known(client, queue, "f", &list);
    SAME(about.id, "f");
    CHECK(about.state == STANCHION_FLOW_FAILED && about.ended_ms >= about.created_ms && about.created_ms > 0);
    CHECK(about.done == 4 && about.dead == 1 && about.waiting + about.put + about.ending + about.cancelled == 0);
    CHECK(about.skipped + about.unneeded == 0 && about.node_count == 5);
    stanchion_flows_free(list);
    stanchion_client_free(client);
}

TEST(nodes_are_shown_as_they_were_put) {
    stanchion_client client = opened();
    const char *queue = unique("shown"), *mails = unique("shown-mails");
    put_import(client, queue, mails);
    stanchion_flows list = 0;
    const stanchion_flow_info about = known(client, queue, "f", &list);
    CHECK(about.state == STANCHION_FLOW_RUNNING && about.ended_ms == -1 && about.put == 2 && about.waiting == 3);
    const stanchion_node_info a = node_at(list, 0), join = node_at(list, 2), alarm = node_at(list, 3), last = node_at(list, 4);
    SAME(a.name, "a");
    CHECK(a.state == STANCHION_NODE_PUT && a.queue.data == NULL && a.after_all == STANCHION_AFTER_ALL_NONE);
    CHECK(a.after_count + a.after_end_count + a.after_failure_count == 0);
    CHECK(join.after_count == 1 && join.after_end_count == 1 && join.after_failure_count == 0);
    SAME(join.after[0], "a");
    SAME(join.after_end[0], "b");
    CHECK(alarm.after_failure_count == 1 && alarm.state == STANCHION_NODE_WAITING);
    SAME(alarm.after_failure[0], "b");
    SAME(alarm.queue, mails);
    CHECK(last.after_all == STANCHION_AFTER_ALL_FINALLY);
    stanchion_node_info none;
    none.struct_size = sizeof none;
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_flows_node_at(list, 0, 5, &none, &err));
    EXPECT(STANCHION_ERR_INVALID_ARGUMENT, stanchion_flows_node_at(list, 1, 0, &none, &err));
    stanchion_flows_free(list);
    stanchion_client_free(client);
}

TEST(flows_grow_and_are_cancelled_and_tried_again) {
    stanchion_client client = opened();
    const char *queue = unique("grows");
    const stanchion_task a = task("a"), b = task("b");
    const stanchion_text before = view("a");
    stanchion_node first = node(&a), second = node(&b);
    second.after = &before, second.after_count = 1;
    EXPECT(STANCHION_ABSENT, stanchion_queue_add_to_flow(client, T(queue), T("f"), &second, 1, &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_cancel_flow(client, T(queue), T("f"), &err));
    EXPECT(STANCHION_ABSENT, stanchion_queue_retry_flow(client, T(queue), T("f"), &err));
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("f"), &first, 1, NULL, &err));
    OK(stanchion_queue_add_to_flow(client, T(queue), T("f"), &second, 1, &err));
    OK(stanchion_queue_cancel_flow(client, T(queue), T("f"), &err));
    nothing_to_claim(client, queue);
    EXPECT(STANCHION_ABSENT, stanchion_queue_cancel_flow(client, T(queue), T("f"), &err));
    stanchion_flows list = 0;
    CHECK(known(client, queue, "f", &list).cancelled == 2);
    stanchion_flows_free(list);
    OK(stanchion_queue_retry_flow(client, T(queue), T("f"), &err));
    stanchion_claim claim = claimed(client, queue);
    SAME(info(claim).id, "f/a");
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

TEST(flows_come_page_by_page) {
    stanchion_client client = opened();
    const char *queue = unique("pages");
    const stanchion_task one = task("x");
    const stanchion_node only = node(&one);
    stanchion_flows list = 0;
    stanchion_text next = {NULL, 0};
    EXPECT(STANCHION_ABSENT, stanchion_queue_get_flow(client, T(queue), T("a"), &list, &err));
    CHECK(list == 0);
    OK(stanchion_queue_list_flows(client, T(queue), NULL, 0, 10, &list, &err));
    CHECK(list > 0 && stanchion_flows_len(list) == 0);
    stanchion_flows_free(list);
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("a"), &only, 1, NULL, &err));
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("b"), &only, 1, NULL, &err));
    OK(stanchion_queue_list_flows(client, T(queue), NULL, 0, 1, &list, &err));
    stanchion_flow_info about;
    about.struct_size = sizeof about;
    OK(stanchion_flows_at(list, 0, &about, &err));
    CHECK(stanchion_flows_len(list) == 1 && about.node_count == 0 && about.put == 1);
    OK(stanchion_flows_next(list, &next, &err));
    stanchion_flows second = 0;
    OK(stanchion_queue_list_flows(client, T(queue), next.data, next.len, 10, &second, &err));
    CHECK(stanchion_flows_len(second) == 1);
    EXPECT(STANCHION_ABSENT, stanchion_flows_next(second, &next, &err));
    stanchion_flows_free(list);
    stanchion_flows_free(second);
    stanchion_client_free(client);
}

/* An empty result is one, and a task that is of no flow has no inputs. */
TEST(results_may_be_empty_and_inputs_none) {
    stanchion_client client = opened();
    const char *queue = unique("empty");
    const stanchion_task a = task("a"), b = task("b");
    const stanchion_text before = view("a");
    stanchion_node nodes[2] = {node(&a), node(&b)};
    stanchion_inputs inputs = 0;
    nodes[1].after = &before, nodes[1].after_count = 1;
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("f"), nodes, 2, NULL, &err));
    stanchion_claim claim = claimed(client, queue);
    OK(stanchion_claim_inputs(claim, &inputs, &err));
    CHECK(inputs > 0 && stanchion_inputs_len(inputs) == 0);
    stanchion_inputs_free(inputs);
    OK(stanchion_claim_ack_with(claim, "", 0, &err));
    stanchion_claim_free(claim);
    claim = claimed(client, queue);
    OK(stanchion_claim_inputs(claim, &inputs, &err));
    CHECK(stanchion_inputs_len(inputs) == 1 && input_at(inputs, 0).result != NULL && input_at(inputs, 0).result_len == 0);
    stanchion_inputs_free(inputs);
    OK(stanchion_claim_ack(claim, &err));
    stanchion_claim_free(claim);
    enqueued(client, queue, "alone");
    claim = claimed(client, queue);
    CHECK(info(claim).flow.data == NULL);
    OK(stanchion_claim_inputs(claim, &inputs, &err));
    CHECK(stanchion_inputs_len(inputs) == 0);
    stanchion_inputs_free(inputs);
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}

/* A program of the version before knows no flows: what is behind its struct stays as it is. */
TEST(an_older_programs_structs_have_no_flow) {
    stanchion_client client = opened();
    const char *queue = unique("older-flow");
    stanchion_task one = task("a");
    one.struct_size = offsetof(stanchion_task, key);
    const stanchion_node only = node(&one);
    OK(stanchion_queue_enqueue_flow(client, T(queue), T("f"), &only, 1, NULL, &err));
    stanchion_claim claim = claimed(client, queue);
    stanchion_claim_info about;
    about.struct_size = offsetof(stanchion_claim_info, flow);
    about.flow = view("untouched");
    OK(stanchion_claim_get(claim, &about, &err));
    SAME(about.id, "f/a");
    SAME(about.flow, "untouched");
    stanchion_claim_free(claim);
    stanchion_client_free(client);
}
