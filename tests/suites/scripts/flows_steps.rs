//! queue/read_outbox.lua and queue/step_flows.lua

use stanchion::ErrorKind;
use stanchion::protocol::{FailureKind, FlowStep};

use crate::case::{Bench, describe, given};
use crate::flow_case::{CALM, FLOW_AGE, calm, read_outbox, step, step_of, two};
use crate::queue_case::request;
use crate::state::{Content, State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

#[test]
fn an_outbox_tells_messages_and_the_flows_that_they_are_about() {
    let full = |state: State| {
        state
            .done("60", "0 f", "mine")
            .done("61", "1 other\nhome", "theirs")
            .message("62", 3, "1 f")
            .message("63", 4, "5 unknown")
            .outbox("first_message 60, last_message 63, last_step 5, walk_at {then+9000}, live_flows 1")
    };
    let state = || full(calm());
    given(state())
        .call(read_outbox(9))
        .replies(
            "60 Done 0 f; 61 Done 1 other/home theirs; 62 Dead 1 f; 63 Cancelled 5 unknown | f version 30 g s",
        )
        .changes_nothing();
    given(state())
        .call(read_outbox(2))
        .replies("60 Done 0 f; 61 Done 1 other/home theirs and more | f version 30 g s")
        .changes_nothing();
    given(nothing()).call(read_outbox(9)).replies("").changes_nothing();
    // One that has ended is told, too; a draft is not.
    let ended = two(nothing()).ended_flow("f", "{then-5}", "node_count 2").message("60", 7, "0 f");
    let ended = ended.outbox("first_message 60, last_message 60").no_live_flow().counts(COUNTS);
    given(ended).call(read_outbox(9)).replies("60 Retry 0 f | f version 30 g s").changes_nothing();
    let draft = nothing().draft("f", "{then-5}", "").message("60", 6, "0 f");
    let draft = draft.outbox("first_message 60, last_message 60").no_live_flow().counts(COUNTS);
    given(draft).call(read_outbox(9)).replies("60 Cancel 0 f").changes_nothing();
}

/// The first one in any case.
#[test]
fn an_outbox_tells_no_more_than_fits() {
    let big = "r".repeat(600_000);
    let mut bench = Bench::new();
    bench.set_up(&nothing());
    let told = |bench: &mut Bench| describe(&bench.call(request(read_outbox(9))).unwrap());
    let put = |bench: &mut Bench, number: u64, mark: &str| {
        redis::cmd("HSET")
            .arg("stanchion:body:{Queue:q}")
            .arg(format!("\u{2}{number}"))
            .arg(&big)
            .exec(&mut bench.raw)
            .unwrap();
        let packed = crate::packed::packed(
            "q:state",
            &format!("={number}"),
            &format!("event 2, mark {mark}, result_size 600000"),
        );
        redis::cmd("HSET")
            .arg("stanchion:state:{Queue:q}")
            .arg(format!("\u{2}{number}"))
            .arg(packed)
            .exec(&mut bench.raw)
            .unwrap();
        let outbox =
            crate::packed::packed("q:queue", "flows", &format!("first_message 60, last_message {number}"));
        redis::cmd("HSET")
            .arg("stanchion:queue:{Queue:q}")
            .arg("flows")
            .arg(outbox)
            .exec(&mut bench.raw)
            .unwrap();
    };
    put(&mut bench, 60, "1 f\nhome");
    put(&mut bench, 61, "2 f\nhome");
    assert_eq!(told(&mut bench), "60 Done 1 f/home 600000 bytes and more");
    // Of flows of this queue results are not told.
    for number in 60..63 {
        put(&mut bench, number, "1 f");
    }
    assert_eq!(told(&mut bench), "60 Done 1 f; 61 Done 1 f; 62 Done 1 f");
    for number in 60..80 {
        put(&mut bench, number, "1 f");
    }
    // But a step moves them.
    assert!(describe(&bench.call(request(read_outbox(99))).unwrap()).ends_with("72 Done 1 f and more"));
}

#[test]
fn messages_that_somebody_deleted_are_passed_by() {
    let after = |first: u64| {
        calm().outbox(&format!(
            "first_message {first}, last_message 63, last_step 5, walk_at {{then+9000}}, live_flows 1"
        ))
    };
    given(after(60).message("62", 2, "1 f"))
        .call(read_outbox(9))
        .replies("62 Done 1 f | f version 30 g s")
        .leaves(after(62).message("62", 2, "1 f"));
    let all = nothing().outbox("first_message 60, last_message 63").counts(COUNTS);
    given(all).call(read_outbox(9)).replies("").leaves(nothing().counts("counter 63, sequence 20").resting());
}

/// Each in its turn, the sooner the more there are, and not oftener than once a second.
#[test]
fn flows_that_live_are_looked_after_one_after_the_other() {
    let three = |rank: u32, at: &str| {
        nothing()
            .ended_flow("e", "{then-500}", "")
            .flow("a", "{then-9}", "")
            .flow("b", "{then-8}", "")
            .flow("c", "{then-7}", "")
            .outbox(&format!(
                "first_message 60, last_message 59, walk_at {at}, walk_rank {rank}, live_flows 3"
            ))
            .counts(COUNTS)
    };
    for (rank, id) in [(0, "a"), (1, "b"), (2, "c")] {
        given(three(rank, "{then-1}"))
            .call(read_outbox(9))
            .replies(&format!(" | walk {id}"))
            .leaves(three(rank + 1, "{now+20000}"));
    }
    given(three(3, "{then-1}")).call(read_outbox(9)).replies(" | walk a").leaves(three(1, "{now+20000}"));
    given(three(1, "{then+9000}")).call(read_outbox(9)).replies("").changes_nothing();
    let many = |rank: u32, at: &str| {
        let outbox =
            format!("first_message 60, last_message 59, walk_at {at}, walk_rank {rank}, live_flows 90");
        (10..100)
            .fold(nothing(), |state, number| state.flow(&number.to_string(), "{then-5}", ""))
            .outbox(&outbox)
    };
    given(many(3, "{then-1}").counts(COUNTS))
        .call(read_outbox(9))
        .replies(" | walk 13")
        .leaves(many(4, "{now+1000}").counts(COUNTS));
}

#[test]
fn a_draft_that_nobody_went_on_with_is_dropped_in_its_turn() {
    let with = |state: State, at: &str, rank: u32| {
        let rank = if rank > 0 { format!(", walk_rank {rank}") } else { String::new() };
        let outbox = format!("first_message 60, last_message 59, walk_at {at}{rank}, live_flows 1");
        state.flow("g", "{then-5}", "").outbox(&outbox).counts(COUNTS)
    };
    let old = nothing().draft("f", "{then-3600001}", "node_count 2").node(0, "a", "").node(1, "b", "");
    given(with(old, "{then-1}", 0)).call(read_outbox(9)).replies("").leaves(with(
        nothing(),
        "{now+60000}",
        0,
    ));
    // A young one is passed by.
    let young = || nothing().draft("f", "{then-3500000}", "node_count 1").node(0, "a", "");
    given(with(young(), "{then-1}", 0)).call(read_outbox(9)).replies(" | walk g").leaves(with(
        young(),
        "{now+60000}",
        2,
    ));
}

/// What is left of flows has an end again if those that live are not there any more.
#[test]
fn flows_that_somebody_deleted_are_counted_no_more() {
    let gone = "first_message 60, last_message 59, walk_at {then-1}, live_flows 1";
    given(nothing().outbox(gone).counts(COUNTS))
        .call(read_outbox(9))
        .replies("")
        .leaves(nothing().counts("counter 59, sequence 20").resting());
}

#[test]
fn a_step_puts_nodes_in() {
    let named = |state: State| state.node(0, "a", "node_options i5000 9 3 700 k0 k").node(1, "b", "");
    let before = named(nothing())
        .flow("f", "{then-5}", "node_count 2")
        .message("60", 1, "0 f")
        .outbox("first_message 60, last_message 60, last_step 5, walk_at {then+9000}, live_flows 1")
        .idle(5, LIVE)
        .counts(COUNTS);
    let puts = FlowStep { puts: vec![0, 1], ..step_of(30) };
    given(before).call(step(60, 60, [puts])).replies("done").hints(5).leaves(
        stepped(named(nothing()), "{then-5}", "flow_version {us+2}, node_count 2")
            .scheduled(
                "f/a",
                "{now+5000}",
                "version {us}, first {now}, priority 9, max_attempts 3, expires {now+700}, key k, node 0 f",
            )
            .ready("f/b", 21, "version {us+1}, due {now}, first {now}, node 1 f")
            .outbox("first_message 61, last_message 60, last_step {now}, walk_at {then+9000}, live_flows 1")
            .counts("counter {us+2}, sequence 21, enqueued 2"),
    );
}

#[test]
fn nodes_with_the_same_options_have_their_own_marks_and_bodies() {
    let named = |state: State| state.empty_node(0, "a").node(1, "b", "").node(2, "c", "").node_body(2, "d");
    let before = named(nothing())
        .flow("f", "{then-5}", "node_count 3")
        .message("60", 1, "0 f")
        .outbox("first_message 60, last_message 60, last_step 5, walk_at {then+9000}, live_flows 1")
        .counts(COUNTS);
    let puts = FlowStep { puts: vec![0, 1, 2], ..step_of(30) };
    let node = |number: u64| {
        format!("version {{us+{number}}}, due {{now}}, first {{now}}, node {number} f").replace("+0", "")
    };
    given(before).call(step(60, 60, [puts])).replies("done").leaves(
        stepped(named(nothing()), "{then-5}", "flow_version {us+3}, node_count 3")
            .ready("f/a", 21, &node(0))
            .no_body("f/a")
            .ready("f/b", 22, &node(1))
            .ready("f/c", 23, &node(2))
            .body("f/c", "d")
            .outbox("first_message 61, last_message 60, last_step {now}, walk_at {then+9000}, live_flows 1")
            .counts("counter {us+3}, sequence 23, enqueued 3"),
    );
}

/// The flow f after a step.
fn stepped(state: State, created: &str, fields: &str) -> State {
    let fields = format!("flow_token 7, flow_created {created}, flow_summary new, {fields}");
    state.flow_with("g", "n", "t", "f", &fields).live_since("f", created)
}

#[test]
fn a_step_of_anything_that_is_not_as_it_was_read_changes_nothing() {
    let state = || {
        calm()
            .message("60", 1, "0 f")
            .message("61", 2, "1 f")
            .outbox("first_message 60, last_message 61, last_step 5, walk_at {then+9000}, live_flows 1")
    };
    for (first, through) in [(59, 60), (61, 61), (60, 62), (60, 58), (62, 61)] {
        given(state()).call(step(first, through, [step_of(30)])).replies("stale").changes_nothing();
    }
    given(state()).call(step(60, 60, [step_of(29)])).replies("stale").changes_nothing();
    let other = FlowStep { id: stanchion::internals::task_id("g").unwrap(), ..step_of(30) };
    given(state()).call(step(60, 60, [step_of(30), other])).replies("stale").changes_nothing();
    given(calm()).call(step(60, 60, [])).replies("stale").changes_nothing();
    given(nothing()).call(step(60, 60, [])).replies("stale").changes_nothing();
    given(nothing()).call(step(0, 0, [step_of(30)])).replies("stale").changes_nothing();
}

/// A queue's keys are not looked at before it has tasks with some: also then all of it fails before anything is written.
#[test]
fn a_step_that_finds_a_key_of_another_type_changes_nothing() {
    for key in ["q:held", "q:keys", "q:key-waits", "q:window", "q:intake", "q:claimed"] {
        let before = nothing()
            .node(0, "a", "node_options i0 0 20 0 k0 k")
            .node(1, "b", "")
            .flow("f", "{then-5}", "node_count 2")
            .message("60", 1, "0 f")
            .outbox("first_message 60, last_message 60, walk_at {then+9000}, live_flows 1")
            .with_key(key, Content::List, None)
            .counts(COUNTS);
        let mut bench = Bench::new();
        bench.set_up(&before);
        let steps = FlowStep { puts: vec![0], cancels: vec![1], ..step_of(30) };
        let failure = bench.call(request(step(60, 60, [steps]))).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::WrongType), "{key}");
        assert_eq!(before.differences(&bench.state(), &bench.context), "", "{key}");
    }
}

#[test]
fn a_step_may_work_no_message_off() {
    let after = |outbox: &str| {
        stepped(two(nothing()), "{then-5}", "flow_version {us}, node_count 2")
            .outbox(outbox)
            .counts("counter {us}, sequence 20")
    };
    given(calm()).call(step(0, 0, [step_of(30)])).replies("done").leaves(after(
        "first_message 60, last_message 59, last_step {now}, walk_at {then+9000}, live_flows 1",
    ));
    let full = |since: &str| {
        format!("first_message 60, last_message 60, last_step {since}, walk_at {{then+9000}}, live_flows 1")
    };
    for first in [60, 0] {
        given(calm().message("60", 2, "1 f").outbox(&full("5")))
            .call(step(first, u64::saturating_sub(first, 1), [step_of(30)]))
            .replies("done")
            .leaves(after(&full("{now}")).message("60", 2, "1 f"));
    }
}

#[test]
fn a_step_keeps_results_and_a_later_one_takes_the_place_of_an_earlier_one() {
    let outbox = |first: u64, since: &str| {
        format!(
            "first_message {first}, last_message 64, last_step {since}, walk_at {{then+9000}}, live_flows 1"
        )
    };
    let before = two(nothing())
        .flow("f", "{then-5}", "node_count 2, result_bytes 10")
        .node_result(0, "old")
        .node_result(1, "earlier")
        .done("60", "0 f", "first")
        .done("61", "0 f", "second")
        .message("62", 2, "1 f")
        .done("63", "0 g\nhome", "theirs")
        .done("64", "0 f", "later")
        .outbox(&outbox(60, "5"))
        .counts(COUNTS);
    given(before.clone()).call(step(60, 63, [])).replies("done").leaves(
        two(nothing())
            .flow("f", "{then-5}", "node_count 2, result_bytes 6")
            .node_result(0, "second")
            .done("64", "0 f", "later")
            .outbox(&outbox(64, "{now}"))
            .counts(COUNTS),
    );
    given(before).call(step(60, 64, [step_of(30)])).replies("done").leaves(
        stepped(two(nothing()), "{then-5}", "flow_version {us}, node_count 2, result_bytes 5")
            .node_result(0, "later")
            .outbox(&outbox(65, "{now}"))
            .counts("counter {us}, sequence 20"),
    );
}

/// And so are those of nodes that there are not, and of flows that are gone.
#[test]
fn results_that_a_flow_has_no_room_for_are_dropped() {
    let bytes = (64 << 20) - 4;
    let flow = |more: usize| {
        two(nothing()).flow("f", "{then-5}", &format!("node_count 2, result_bytes {}", bytes + more))
    };
    let before = flow(0)
        .done("60", "0 f", "fits")
        .done("61", "1 f", "x")
        .done("62", "2 f", "none")
        .done("63", "0 gone", "none")
        .outbox("first_message 60, last_message 63, walk_at {then+9000}, live_flows 1")
        .counts(COUNTS);
    given(before).call(step(60, 63, [])).replies("done").leaves(
        flow(4)
            .node_result(0, "fits")
            .outbox("first_message 64, last_message 63, last_step {now}, walk_at {then+9000}, live_flows 1")
            .counts(COUNTS),
    );
}

#[test]
fn a_step_cancels_nodes() {
    let before = calm()
        .ready("f/a", 1, "node 0 f")
        .claimed("f/b", LIVE, "receipt 40, attempts 1, node 1 f")
        .message("60", 6, "0 f")
        .outbox("first_message 60, last_message 60, walk_at {then+9000}, live_flows 1");
    let cancels = FlowStep { cancels: vec![0, 1, 7], goes_on: true, ..step_of(30) };
    given(before).call(step(60, 60, [cancels])).replies("done").leaves(
        stepped(two(nothing()), "{then-5}", "flow_version {us}, node_count 2")
            .claimed("f/b", LIVE, "receipt 40, attempts 1, cancelled 1, node 1 f")
            .message("{us}", 4, "0 f")
            .message("{us+1}", 1, "0 f")
            .outbox(
                "first_message {us}, last_message {us+1}, last_step {now}, walk_at {then+9000}, live_flows 1",
            )
            .counts("counter {us}, sequence 20"),
    );
}

#[test]
fn what_is_left_of_a_queue_ends_some_time_after_its_last_flow() {
    let before = calm()
        .message("60", 2, "1 f")
        .outbox("first_message 60, last_message 60, walk_at {then+9000}, live_flows 1");
    let ends = || FlowStep { ended: true, ..step_of(30) };
    let ended = |version: &str| {
        let fields = format!(
            "flow_version {version}, flow_token 7, flow_created {{then-5}}, flow_ended {{now}}, node_count 2, \
             flow_summary new"
        );
        two(nothing())
            .flow_with("g", "n", "t", "f", &fields)
            .zset("flow-times", "f", "{now}", None)
            .no_live_flow()
    };
    given(before.clone())
        .call(step(60, 60, [ends()]))
        .replies("done")
        .leaves(ended("{us}").counts("counter {us}, sequence 20").resting());
    // Another flow that lives keeps all of it.
    let other = |state: State, fields: &str| {
        state.flow("g", "{then-9}", "").outbox(&format!("first_message 61, last_message 60, {fields}"))
    };
    let two_live = other(before.clone(), "")
        .outbox("first_message 60, last_message 60, walk_at {then+9000}, live_flows 2");
    let mut both = other(ended("{us}"), "last_step {now}, walk_at {then+9000}, live_flows 1");
    both.0.values_mut().for_each(|(_, ttl)| *ttl = None);
    given(two_live)
        .call(step(60, 60, [ends()]))
        .replies("done")
        .leaves(both.counts("counter {us}, sequence 20"));
    // While there are messages the record stays.
    given(before.message("61", 3, "1 f").outbox("first_message 60, last_message 61, live_flows 1"))
        .call(step(60, 60, [ends()]))
        .replies("done")
        .leaves(
            ended("{us}")
                .message("61", 3, "1 f")
                .outbox("first_message 61, last_message 61, last_step {now}")
                .counts("counter {us}, sequence 20"),
        );
}

#[test]
fn a_flow_that_is_tried_again_lives_again() {
    let ended = two(nothing())
        .ended_flow("f", "{then-5}", "node_count 2")
        .message("60", 7, "0 f")
        .outbox("first_message 60, last_message 60")
        .no_live_flow()
        .counts(COUNTS);
    given(ended).call(step(60, 60, [step_of(30)])).replies("done").leaves(
        stepped(two(nothing()), "5", "flow_version {us}, node_count 2")
            .outbox("first_message 61, last_message 60, last_step {now}, walk_at {now+60000}, live_flows 1")
            .counts("counter {us}, sequence 20"),
    );
}

#[test]
fn flows_that_ended_long_ago_are_dropped_a_few_at_a_time() {
    let long_ago = format!("{{then-{}}}", FLOW_AGE + 1);
    let many = |from: u32| {
        let state = calm().ended_flow("young", "{then-5}", "");
        (from..15).fold(state, |state, number| state.ended_flow(&format!("old{number:02}"), &long_ago, ""))
    };
    let since = |state: State| state.outbox(&CALM.replace("walk_at", "last_step {now}, walk_at"));
    given(many(0)).call(step(0, 0, [])).replies("done").leaves(since(many(10)));
    given(many(10)).call(step(0, 0, [])).replies("done").leaves(since(many(15)));
    // No further one once many nodes have gone.
    let big = many(13).ended_flow("aged", &format!("{{then-{}}}", FLOW_AGE + 9), "node_count 1000");
    given(big).call(step(0, 0, [])).replies("done").leaves(since(many(13)));
    let much = |from: u32| {
        (from..1_003).fold(calm(), |state, number| state.ended_flow(&format!("e{number:04}"), "{then-5}", ""))
    };
    given(much(0)).call(step(0, 0, [])).replies("done").leaves(since(much(3)));
}
