//! Tasks that are nodes of flows: whose mark they have, through all that happens to them.

use crate::case::given;
use crate::flow_case::{marked, node_of};
use crate::queue_case::{Tweak, claim, enqueue, kick, nack, plain, reschedule, settle};
use crate::state::{State, nothing};
use stanchion::protocol::{Due, NewTask};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

#[test]
fn a_node_is_stored_with_its_mark_and_a_claim_tells_it() {
    given(nothing().counts(COUNTS).resting()).call(enqueue([marked(plain("a"))])).replies("*").leaves(
        nothing()
            .ready("a", 21, "version {us}, due {now}, first {now}, node 3 f")
            .call("7: [13 15 {us} {now}]")
            .counts("counter {us}, sequence 21, enqueued 1"),
    );
    let elsewhere = NewTask { node: Some(node_of("f g", 3, Some("mails"))), ..plain("a") };
    given(nothing().counts(COUNTS).resting())
        .call(enqueue([elsewhere.delayed(5_000).key("k")]))
        .replies("*")
        .leaves(
            nothing()
                .scheduled("a", "{now+5000}", "version {us}, first {now}, key k, node 3 f g\nmails")
                .call("7: [13 15 {us} {now+5000}]")
                .counts("counter {us}, sequence 20, enqueued 1"),
        );
    given(nothing().ready("a", 1, "node 3 f g\nmails").counts(COUNTS))
        .call(claim(1))
        .replies("a b receipt {us} attempt 1/20 version 1 due 1 priority 0 left 30000 node 3 f g/mails")
        .leaves(
            nothing()
                .claimed("a", "{now+30000}", "receipt {us}, attempts 1, node 3 f g\nmails")
                .call("7: [[a {us}]]")
                .counts("counter {us}, sequence 20"),
        );
}

#[test]
fn a_task_that_is_kept_gets_the_mark() {
    given(nothing().ready("a", 1, "").counts(COUNTS))
        .call(enqueue([marked(plain("a")), plain("a")]))
        .replies("kept {us} due 1; kept {us+1} due 1")
        .leaves(
            nothing()
                .ready("a", 1, "version {us+1}, node 3 f")
                .call("7: [13 16 {us} 1 16 {us+1} 1]")
                .counts("counter {us+1}, sequence 20, enqueued 2"),
        );
    let runs = || nothing().claimed("a", LIVE, "receipt 40, attempts 1, has_successor 1");
    given(runs().successor("a", "version 9").counts(COUNTS))
        .call(enqueue([marked(plain("a"))]))
        .replies("kept {us} due 1")
        .leaves(
            runs()
                .successor("a", "version {us}, node 3 f")
                .call("7: [13 16 {us} 1]")
                .counts("counter {us}, sequence 20, enqueued 1"),
        );
}

#[test]
fn there_is_room_for_a_node_where_the_queue_is_full() {
    let full = |state: State| state.settings("max_len 1").ready("a", 1, "");
    given(full(nothing()).counts(COUNTS))
        .call(enqueue([plain("b"), marked(plain("c"))]))
        .replies("full; added {us} due {now}")
        .leaves(
            full(nothing())
                .ready("c", 21, "version {us}, due {now}, first {now}, node 3 f")
                .call("7: [13 20 0 0 15 {us} {now}]")
                .counts("counter {us}, sequence 21, enqueued 1"),
        );
}

#[test]
fn what_replaces_a_node_is_that_node_unless_it_is_another() {
    let waits = || nothing().ready("a", 1, "node 3 f").counts(COUNTS);
    let replaced = |node: &str, before: &str| {
        nothing()
            .ready("a", 1, &format!("version {{us}}, first {{now}}, node {node}{before}"))
            .call("7: [13 17 {us} 1]")
            .counts("counter {us}, sequence 20, enqueued 1")
    };
    given(waits()).call(enqueue([plain("a").replace()])).replies("*").leaves(replaced("3 f", ""));
    given(waits())
        .call(enqueue([plain("a").debounce(5_000)]))
        .replies("*")
        .leaves(replaced("3 f", ", first 1"));
    let other = NewTask { node: Some(node_of("g", 4, None)), ..plain("a") };
    given(waits()).call(enqueue([other.replace()])).replies("*").leaves(replaced("4 g", ""));
}

/// A mark is nothing to the place in line; a key is.
#[test]
fn a_mark_does_not_make_a_key_another_one() {
    given(nothing().ready("a", 1, "").counts(COUNTS))
        .call(enqueue([marked(plain("a")).replace()]))
        .replies("replaced {us} due 1")
        .leaves(
            nothing()
                .ready("a", 1, "version {us}, first {now}, node 3 f")
                .call("7: [13 17 {us} 1]")
                .counts("counter {us}, sequence 20, enqueued 1"),
        );
    // A retry in line, and the successor that takes its place.
    let retry = "receipt 40, attempts 1, has_successor 1, node 3 f";
    given(nothing().claimed("a", LIVE, retry).successor("a", "version 9, replaces 1").counts(COUNTS))
        .call(settle(&[("a", 40, stanchion::protocol::Verdict::PUT_BACK)]))
        .replies("done")
        .leaves(
            nothing()
                .ready("a", 21, "version 9, node 3 f, settled 40, verdict 4")
                .counts("counter 50, sequence 21"),
        );
}

#[test]
fn a_successor_has_the_mark_if_it_takes_the_place_of_a_retry() {
    let runs = |replaces: u8| {
        nothing()
            .claimed("a", LIVE, "receipt 40, attempts 1, has_successor 1, node 3 f")
            .successor("a", &format!("version 9, replaces {replaces}"))
            .counts(COUNTS)
    };
    given(runs(1)).call(settle(&[("a", 40, nack(700))])).replies("done").leaves(
        nothing()
            .scheduled("a", "{now+700}", "version 9, node 3 f, settled 40, verdict 2, backoff {now+700}")
            .counts("counter 50, sequence 20, retried 1"),
    );
    // It waits until the run ends for good.
    given(runs(0)).call(settle(&[("a", 40, nack(700))])).replies("done").leaves(
        nothing()
            .scheduled(
                "a",
                "{now+700}",
                "attempts 1, first {now}, settled 40, verdict 2, reason no luck, backoff {now+700}, \
                 has_successor 1, node 3 f",
            )
            .successor("a", "version 9")
            .counts("counter 50, sequence 20, retried 1"),
    );
}

#[test]
fn a_dead_node_is_the_same_node_when_it_is_tried_again() {
    given(nothing().dead("40", "a", "{then-5}", "settled 40, verdict 3, node 3 f").counts(COUNTS).resting())
        .call(kick(&["a"]))
        .replies("1")
        .leaves(
            nothing()
                .ready("a", 21, "version {us}, due {now}, first {now}, settled 40, verdict 3, node 3 f")
                .counts("counter {us}, sequence 21"),
        );
}

#[test]
fn a_node_that_is_moved_keeps_its_mark() {
    given(nothing().ready("a", 1, "node 3 f").counts(COUNTS))
        .call(reschedule("a", Due::In(std::time::Duration::from_secs(5))))
        .replies("moved to {now+5000}")
        .leaves(nothing().scheduled("a", "{now+5000}", "node 3 f").counts(COUNTS));
}
