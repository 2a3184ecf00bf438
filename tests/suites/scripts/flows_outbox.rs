//! The outbox: what comes into it when tasks end that are nodes; what claims say of it; queue/post_messages.lua and
//! queue/lost_nodes.lua.

use stanchion::protocol::{Message, NodeEvent, OUTBOX_MANY, QueueVerb, Verdict};

use crate::case::{Bench, describe, given};
use crate::flow_case::{lost_nodes, message, node_of, post, read_outbox};
use crate::queue_case::{
    Tweak, abandon, ack, ack_with, bury, cancel, claim, claim_or_wait, enqueue, nack, plain, pop, remove,
    request, settle, settle_and_try,
};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";
const RUNS: &str = "receipt 40, attempts 1, node 3 f";
const DONE: u8 = 2;
const DEAD: u8 = 3;
const CANCELLED: u8 = 4;

/// One message that has just come into an empty outbox.
fn told(state: State, event: u8) -> State {
    state.message("{us}", event, "3 f").outbox("first_message {us}, last_message {us}")
}

fn running(fields: &str) -> State {
    nothing().claimed("a", LIVE, &format!("{RUNS}{fields}")).counts(COUNTS)
}

#[test]
fn a_node_that_is_acked_is_done() {
    let acked = "counter 50, sequence 20, acked 1";
    given(running(""))
        .call(settle(&[("a", 40, ack())]))
        .replies("done")
        .leaves(told(nothing(), DONE).counts(acked));
    let late = nothing().claimed("a", "{then-1}", RUNS).counts(COUNTS);
    given(late)
        .call(settle(&[("a", 40, ack())]))
        .replies("done late")
        .leaves(told(nothing(), DONE).counts(acked));
    given(running("").idle(5, LIVE))
        .call(settle(&[("a", 40, ack())]))
        .replies("done")
        .hints(5)
        .leaves(told(nothing(), DONE).counts(acked));
}

#[test]
fn the_result_of_a_node_is_told_whether_or_not_it_is_kept() {
    for result in ["done", ""] {
        given(running("")).call(settle(&[("a", 40, ack_with(result, 0))])).replies("done").leaves(
            nothing()
                .done("{us}", "3 f", result)
                .outbox("first_message {us}, last_message {us}")
                .counts("counter 50, sequence 20, acked 1"),
        );
    }
}

/// What was asked for since is yet to be done.
#[test]
fn a_node_that_was_asked_for_again_is_not_done_by_a_late_ack() {
    let again = nothing().ready("a", 3, "version 45, receipt 40, attempts 1, node 3 f").counts(COUNTS);
    given(again).call(settle(&[("a", 40, ack())])).replies("done late").leaves(
        nothing()
            .ready("a", 3, "version 45, settled 40, verdict 1, node 3 f")
            .counts("counter 50, sequence 20, acked 1"),
    );
}

#[test]
fn a_node_that_is_dead_is_told() {
    let dead = |fields: &str, counts: &str| {
        told(nothing(), DEAD)
            .dead("40", "a", "{now}", &format!("attempts 1, node 3 f{fields}"))
            .counts(&format!("counter 50, sequence 20{counts}, died 1, dead_size 1"))
    };
    given(running(""))
        .call(settle(&[("a", 40, bury())]))
        .replies("done dead")
        .leaves(dead(", settled 40, verdict 3, reason hopeless", ""));
    given(running(", max_attempts 1"))
        .call(settle(&[("a", 40, nack(5))]))
        .replies("done dead")
        .leaves(dead(", max_attempts 1, settled 40, verdict 2, reason no luck", ""));
    // By the end of its lease, which a claim finds that gets nothing and tells of it at once.
    let ended = nothing().claimed("a", "{then-1}", &format!("{RUNS}, max_attempts 1")).counts(COUNTS);
    given(ended)
        .call(claim(1))
        .replies("flows due; empty never rank 0")
        .leaves(dead(", max_attempts 1, settled 40, verdict 5, reason the lease ended", "").call("7: [[]]"));
    let expired = nothing().ready("a", 1, "expires 5, receipt 40, node 3 f").counts(COUNTS);
    given(expired).call(claim(1)).replies("flows due; empty never rank 0").leaves(
        told(nothing(), DEAD)
            .expired("40", "a", "{now}", "expires 5, reason expired, node 3 f")
            .call("7: [[]]")
            .counts("counter 50, sequence 20, died 1, expired_size 1"),
    );
}

#[test]
fn an_ack_that_takes_a_dead_record_away_says_that_it_is_done() {
    given(nothing().dead("40", "a", "{then-5}", "settled 40, verdict 5, node 3 f").counts(COUNTS).resting())
        .call(settle(&[("a", 40, ack())]))
        .replies("done late")
        .leaves(told(nothing(), DONE).counts("counter 50, sequence 20, acked 1"));
}

#[test]
fn a_node_that_is_taken_away_is_done_and_one_that_is_dropped_is_cancelled() {
    let waits = || nothing().ready("a", 1, "node 3 f").counts(COUNTS).idle(5, LIVE);
    given(waits()).call(pop(1)).replies("*").hints(5).leaves(
        nothing()
            .message("{us+1}", DONE, "3 f")
            .outbox("first_message {us+1}, last_message {us+1}")
            .counts("counter {us}, sequence 20, acked 1"),
    );
    for verb in [cancel("a"), remove("a", None)] {
        given(waits())
            .call(verb)
            .replies("removed")
            .hints(5)
            .leaves(told(nothing(), CANCELLED).counts(COUNTS));
    }
}

#[test]
fn a_run_that_is_cancelled_is_told_when_it_ends() {
    given(running("")).call(cancel("a")).replies("running").leaves(running(", cancelled 1"));
    for verdict in [nack(5), bury(), Verdict::PUT_BACK] {
        given(running(", cancelled 1"))
            .call(settle(&[("a", 40, verdict)]))
            .replies("done")
            .leaves(told(nothing(), CANCELLED).counts(COUNTS));
    }
    given(running(", cancelled 1").call("6: [[a 40]]"))
        .call(abandon(Some(6), None))
        .replies("left")
        .leaves(told(nothing(), CANCELLED).call("6: no").counts(COUNTS));
    given(running(", cancelled 1"))
        .call(settle(&[("a", 40, ack())]))
        .replies("done")
        .leaves(told(nothing(), DONE).counts("counter 50, sequence 20, acked 1"));
}

/// The successor ends with it, and at once.
#[test]
fn a_node_that_waits_behind_a_cancelled_run_is_told() {
    let runs = nothing().claimed("a", LIVE, "receipt 40, attempts 1, has_successor 1");
    let both = || runs.clone().successor("a", "version 9, node 3 f").counts(COUNTS);
    given(both()).call(cancel("a")).replies("running").leaves(
        told(nothing(), CANCELLED).claimed("a", LIVE, "receipt 40, attempts 1, cancelled 1").counts(COUNTS),
    );
    given(both())
        .call(remove("a", None))
        .replies("removed")
        .leaves(told(nothing(), CANCELLED).counts(COUNTS));
}

#[test]
fn nothing_is_told_of_a_node_that_goes_on() {
    for verdict in [nack(700), Verdict::PUT_BACK, Verdict::Throttle { time: std::time::Duration::ZERO }] {
        let mut bench = Bench::new();
        bench.set_up(&running(""));
        assert_eq!(describe(&bench.call(request(settle(&[("a", 40, verdict)]))).unwrap()), "done");
        assert_eq!(describe(&bench.call(request(read_outbox(9))).unwrap()), "");
    }
}

#[test]
fn numbers_go_on_behind_all_that_there_were() {
    let full = |state: State, last: &str| {
        state
            .message("60", DONE, "1 f")
            .outbox(&format!("first_message 60, last_message {last}, last_step 5"))
    };
    given(full(running(""), "60"))
        .call(settle(&[("a", 40, ack())]))
        .replies("done")
        .leaves(full(nothing(), "61").message("61", DONE, "3 f").counts("counter 50, sequence 20, acked 1"));
    // Emptied, with a number that the clock has not come to yet.
    let later = "{then_us+9000000}";
    let before = format!("first_message {{then_us+9000001}}, last_message {later}, walk_at 1, live_flows 1");
    let after = "first_message {then_us+9000001}, last_message {then_us+9000001}, walk_at 1, live_flows 1";
    given(running("").outbox(&before)).call(settle(&[("a", 40, ack())])).replies("done").leaves(
        nothing()
            .message("{then_us+9000001}", DONE, "3 f")
            .outbox(after)
            .counts("counter 50, sequence 20, acked 1"),
    );
    // Of an outbox that was given up, the record's counter knows.
    let counted = nothing().claimed("a", LIVE, RUNS).counts("counter {then_us+9000000}, sequence 20");
    given(counted).call(settle(&[("a", 40, ack())])).replies("done").leaves(
        nothing()
            .message("{then_us+9000001}", DONE, "3 f")
            .outbox("first_message {then_us+9000001}, last_message {then_us+9000001}")
            .counts("counter {then_us+9000000}, sequence 20, acked 1"),
    );
}

#[test]
fn messages_are_no_successors() {
    let mut bench = Bench::new();
    let runs = nothing().claimed("b", LIVE, "receipt 41, has_successor 1").successor("b", "version 9");
    bench.set_up(&told_before(runs, 2).counts(COUNTS));
    let stats = describe(&bench.call(request(QueueVerb::Stats)).unwrap());
    assert!(stats.contains("successors: 1,"), "{stats}");
}

/// Old messages, from the number 60 on.
fn told_before(state: State, count: u64) -> State {
    let outbox = format!("first_message 60, last_message {}, last_step {{then-5000}}", 59 + count);
    (60..60 + count)
        .fold(state, |state, number| state.message(&number.to_string(), DONE, "3 f"))
        .outbox(&outbox)
}

/// A claim: whether it says that somebody is to look after flows.
#[track_caller]
fn is_due(state: State, verb: QueueVerb) -> bool {
    let mut bench = Bench::new();
    bench.set_up(&state.counts(COUNTS));
    describe(&bench.call(request(verb)).unwrap()).contains("flows due")
}

#[test]
fn a_claim_tells_of_messages_at_once_if_it_gets_nothing() {
    let new = |count: u64| {
        let since = format!("first_message 60, last_message {}, last_step {{then}}", 59 + count);
        told_before(nothing(), count).outbox(&since)
    };
    let many = OUTBOX_MANY as u64;
    // A machine may stand still until what came in is not new any more.
    let tries = 20;
    for verb in [claim(1), claim_or_wait(1, 5), settle_and_try(&[], 1)] {
        assert!(is_due(new(1), verb.clone()));
        assert!(!is_due(nothing(), verb.clone()));
        assert!(!is_due(new(1).settings("paused yes"), verb.clone()));
        // Otherwise if there are many, or if they are not new.
        let ready = |state: State| state.ready("b", 1, "");
        assert!(is_due(ready(told_before(nothing(), 1)), verb.clone()));
        assert!((0..tries).all(|_| is_due(ready(new(many)), verb.clone())));
        assert!((0..tries).any(|_| !is_due(ready(new(many - 1)), verb.clone())));
        // A clock that was set back.
        let ahead = "first_message 60, last_message 60, last_step {then+3600000}";
        assert!(is_due(ready(told_before(nothing(), 1).outbox(ahead)), verb.clone()));
    }
    // What has just come in is told to whoever gets a task, unless somebody has just stepped.
    let acks = || settle_and_try(&[("a", 40, ack())], 1);
    let stepped = |state: State| {
        state.outbox("first_message 60, last_message 59, last_step {then}, walk_at {then+9000}, live_flows 1")
    };
    assert!(is_due(running("").ready("b", 1, ""), acks()));
    assert!(is_due(stepped(running("")), acks()));
    assert!((0..tries).any(|_| !is_due(stepped(running("").ready("b", 1, "")), acks())));
}

#[test]
fn a_claim_says_that_a_flow_is_to_be_looked_after_beside_schedules_that_are_due() {
    let live = |at: &str| {
        let outbox = format!("first_message 60, last_message 59, walk_at {at}, live_flows 1");
        nothing().flow("f", "{then-5}", "").outbox(&outbox)
    };
    assert!(is_due(live("{then-1}"), claim(1)));
    assert!(!is_due(live("{then+9000}"), claim(1)));
    assert!(is_due(live("{then+900000}"), claim(1)), "the clock was set back");
    assert!(is_due(live("{then-1}").ready("b", 1, ""), claim(1)));
    let both = live("{then-1}").schedule("s", "{then-5}", "").agenda("{then-5}", 1).counts(COUNTS);
    given(both.clone())
        .call(claim(1))
        .replies("schedules due; flows due; empty never rank 0")
        .leaves(both.clone().call("7: [[]]"));
    given(both.clone())
        .call(settle_and_try(&[], 1))
        .replies(" | schedules due; flows due; empty never rank 0")
        .leaves(both.call("7: [[] []]"));
}

/// Whoever waits is told, though the caller got a task.
#[test]
fn a_claim_that_gets_a_task_hints_another_of_a_message() {
    let before = running("").ready("b", 1, "").idle(6, LIVE);
    given(before).call(settle_and_try(&[("a", 40, ack())], 1)).replies("*").hints(6).leaves(
        nothing()
            .claimed("b", "{now+30000}", "receipt {us}, attempts 1")
            .message("{us+1}", DONE, "3 f")
            .outbox("first_message {us+1}, last_message {us+1}")
            .call("7: [[b {us}] [24]]")
            .counts("counter {us}, sequence 20, acked 1"),
    );
}

#[test]
fn an_enqueue_that_finds_a_node_dead_tells_it() {
    let ended = nothing().claimed("a", "{then-1}", &format!("{RUNS}, max_attempts 1")).counts(COUNTS);
    given(ended.idle(5, LIVE)).call(enqueue([plain("a").delayed(5_000)])).replies("*").hints(5).leaves(
        nothing()
            .scheduled("a", "{now+5000}", "version {us}, first {now}")
            .dead(
                "40",
                "a",
                "{now}",
                "attempts 1, max_attempts 1, settled 40, verdict 5, reason the lease ended, node 3 f",
            )
            .message("{us+1}", DEAD, "3 f")
            .outbox("first_message {us+1}, last_message {us+1}")
            .call("7: [13 15 {us} {now+5000}]")
            .counts("counter {us}, sequence 20, enqueued 1, died 1, dead_size 1"),
    );
}

#[test]
fn messages_of_another_queue_come_in_once() {
    let two = || [message(70, NodeEvent::Done, Some("r")), message(71, NodeEvent::Dead, None)];
    let both = |state: State| {
        state
            .done("{us}", "3 f", "r")
            .message("{us+1}", DEAD, "3 f")
            .outbox("first_message {us}, last_message {us+1}")
    };
    given(nothing().counts(COUNTS).resting().idle(5, LIVE))
        .call(post(Some("mails"), two()))
        .replies("done")
        .hints(5)
        .leaves(both(nothing()).source("mails", "71").no_live_flow().counts(COUNTS));
    given(nothing().source("mails", "71").no_live_flow().counts(COUNTS).resting())
        .call(post(Some("mails"), two()))
        .replies("done")
        .changes_nothing();
    given(nothing().source("mails", "70").no_live_flow().counts(COUNTS).resting())
        .call(post(Some("mails"), two()))
        .replies("done")
        .leaves(told(nothing(), DEAD).source("mails", "71").no_live_flow().counts(COUNTS));
    // Those of nobody all come in.
    given(nothing().source("mails", "71").no_live_flow().counts(COUNTS).resting())
        .call(post(None, two()))
        .replies("done")
        .leaves(both(nothing()).source("mails", "71").no_live_flow().counts(COUNTS));
}

#[test]
fn a_message_says_how_often_the_flow_had_been_tried_again() {
    let lost = Message { retries: 2, ..message(1, NodeEvent::Lost, None) };
    let mut bench = Bench::new();
    bench.set_up(&nothing());
    bench.call(request(post(None, [lost]))).unwrap();
    let told = describe(&bench.call(request(read_outbox(9))).unwrap());
    assert!(told.ends_with("Lost 3 f after 2"), "{told}");
}

#[test]
fn nodes_are_lost_that_have_no_task_and_no_message() {
    let there =
        |count| told_before(nothing().ready("a", 1, "").claimed("b", LIVE, RUNS), count).counts(COUNTS);
    let asked = [
        ("a", node_of("f", 0, None)),
        ("gone", node_of("f", 1, None)),
        ("told", node_of("f", 3, None)),
        ("elsewhere", node_of("f", 3, Some("mails"))),
        ("b", node_of("f", 4, None)),
    ];
    given(there(1)).call(lost_nodes(&asked)).replies("lost [1, 3]").changes_nothing();
    let mut bench = Bench::new();
    bench.set_up(&there(1_000));
    assert_eq!(describe(&bench.call(request(lost_nodes(&asked))).unwrap()), "lost [1, 3]");
    // Too many to look at.
    let mut bench = Bench::new();
    bench.set_up(&there(1_001));
    assert_eq!(describe(&bench.call(request(lost_nodes(&asked))).unwrap()), "lost []");
    given(nothing()).call(lost_nodes(&asked[..2])).replies("lost [0, 1]").changes_nothing();
}
