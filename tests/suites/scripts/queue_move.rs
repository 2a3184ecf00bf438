//! queue/remove.lua and queue/reschedule.lua

use stanchion::protocol::Due;

use crate::case::given;
use crate::queue_case::{ms, remove, reschedule};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

#[test]
fn everything_about_the_id_is_removed() {
    let rest =
        |state: State| state.ready("z", 9, "").window("z", LIVE, 9_000).intake("z", "5").counts(COUNTS);
    let window = || rest(nothing());
    let rows = [
        nothing().ready("a", 3, ""),
        nothing().scheduled("a", LIVE, ""),
        nothing().claimed("a", LIVE, "receipt 40"),
        nothing()
            .claimed("a", LIVE, "receipt 40, has_successor 1")
            .successor("a", "version 9")
            .body("+a", "next"),
        nothing().intake("a", "6"),
        nothing().ready("a", 3, "").intake("a", "6"),
    ];
    for state in rows {
        given(rest(state.window("a", LIVE, 9_000)))
            .call(remove("a", None))
            .replies("removed")
            .leaves(window());
    }
    given(window()).call(remove("a", None)).replies("absent").changes_nothing();
    given(rest(nothing().window("a", LIVE, 9_000)))
        .call(remove("a", None))
        .replies("absent")
        .leaves(window());
    let dead = || nothing().dead("10", "a", "{then-5}", "").counts(COUNTS);
    given(dead()).call(remove("a", None)).replies("absent").leaves(dead().resting());
    given(nothing().ready("a", 3, "").counts(COUNTS))
        .call(remove("a", None))
        .replies("removed")
        .leaves(nothing().counts(COUNTS).resting());
}

#[test]
fn only_the_version_that_was_meant_is_removed() {
    let task = || nothing().ready("a", 3, "version 5").counts(COUNTS);
    let gone = || nothing().counts(COUNTS).resting();
    given(task()).call(remove("a", Some(5))).replies("removed").leaves(gone());
    given(task()).call(remove("a", Some(4))).replies("has version 5").changes_nothing();
    let both = || {
        nothing()
            .claimed("a", LIVE, "version 5, receipt 40, has_successor 1")
            .successor("a", "version 9")
            .counts(COUNTS)
    };
    given(both()).call(remove("a", Some(9))).replies("removed").leaves(gone());
    given(both()).call(remove("a", Some(5))).replies("has version 9").changes_nothing();
    let entry = || nothing().intake("a", "5").counts(COUNTS);
    given(entry()).call(remove("a", Some(5))).replies("has version 0").changes_nothing();
    given(entry()).call(remove("a", Some(0))).replies("removed").leaves(gone());
    let window = || nothing().window("a", LIVE, 9_000).counts(COUNTS);
    given(window()).call(remove("a", Some(5))).replies("absent").changes_nothing();
}

fn soon() -> Due {
    Due::In(ms(700))
}

#[test]
fn a_waiting_task_is_moved() {
    let before = [
        ("", nothing().ready("a", 3, "")),
        ("", nothing().scheduled("a", LIVE, "")),
        ("receipt 40, attempts 1", nothing().ready("a", 3, "receipt 40, attempts 1")),
    ];
    for (fields, state) in before {
        given(state.clone().counts(COUNTS))
            .call(reschedule("a", soon()))
            .replies("moved to {now+700}")
            .leaves(nothing().scheduled("a", "{now+700}", fields).counts(COUNTS));
        let in_line = state.0.contains_key("q:ready");
        let call = given(state.counts(COUNTS).idle(5, "{then+5000}")).call(reschedule("a", Due::At(77)));
        if in_line {
            // It keeps its place, and the due that it had.
            call.replies("moved to 1").hints(5).leaves(nothing().ready("a", 3, fields).counts(COUNTS));
        } else {
            let after = nothing().ready("a", 21, "due 77").counts("counter 50, sequence 21");
            call.replies("moved to 77").hints(5).leaves(after);
        }
    }
    // Said on purpose, it is earlier than its back-off, and that is over.
    given(nothing().scheduled("a", LIVE, "backoff {then+9000}").counts(COUNTS))
        .call(reschedule("a", soon()))
        .replies("moved to {now+700}")
        .leaves(nothing().scheduled("a", "{now+700}", "").counts(COUNTS));
}

#[test]
fn an_entry_of_the_intake_gets_another_score() {
    given(nothing().intake("a", "5").counts(COUNTS).idle(5, "{then+5000}"))
        .call(reschedule("a", Due::At(4_000_000_000_500)))
        .replies("moved to 4000000000500")
        .hints(5)
        .leaves(nothing().intake("a", "4000000000.5").counts(COUNTS).resting());
}

#[test]
fn what_does_not_wait_is_not_moved() {
    let rows = [
        (nothing().claimed("a", LIVE, "receipt 40"), "claimed"),
        (nothing().dead("10", "a", "{then-5}", ""), "dead"),
        (nothing().ready("b", 3, ""), "absent"),
        (nothing().intake("a", "5").settings("intake 0"), "absent"),
    ];
    for (state, reply) in rows {
        given(state.counts(COUNTS)).call(reschedule("a", soon())).replies(reply).changes_nothing();
    }
}

/// Nobody has noticed yet that the lease has ended: that comes first.
#[test]
fn a_task_whose_lease_has_ended_is_moved_or_dies() {
    let ended =
        |fields: &str| nothing().claimed("a", "{then-1}", &format!("receipt 40, {fields}")).counts(COUNTS);
    let waits = "receipt 40, attempts 1, first {then-1}, reason the lease ended";
    given(ended("attempts 1"))
        .call(reschedule("a", soon()))
        .replies("moved to {now+700}")
        .leaves(nothing().scheduled("a", "{now+700}", waits).counts("counter 50, sequence 21, retried 1"));
    let last = "attempts 20, settled 40, verdict 5, reason the lease ended";
    given(ended("attempts 20")).call(reschedule("a", soon())).replies("dead").leaves(
        nothing()
            .dead("40", "a", "{now}", last)
            .counts("counter 50, sequence 20, died 1, dead_size 1")
            .resting(),
    );
}

#[test]
fn a_successor_that_replaces_is_what_waits_when_the_lease_has_ended() {
    let before = |replaces: u64| {
        nothing()
            .claimed("a", "{then-1}", "receipt 40, attempts 1, has_successor 1")
            .successor("a", &format!("version 9, replaces {replaces}"))
            .body("+a", "next")
            .counts(COUNTS)
    };
    given(before(1)).call(reschedule("a", soon())).replies("moved to {now+700}").leaves(
        nothing()
            .scheduled("a", "{now+700}", "version 9, settled 40, verdict 6")
            .body("a", "next")
            .counts("counter 50, sequence 21, retried 1"),
    );
    given(before(0)).call(reschedule("a", soon())).replies("moved to {now+700}").leaves(
        nothing()
            .scheduled(
                "a",
                "{now+700}",
                "receipt 40, attempts 1, first {then-1}, reason the lease ended, has_successor 1",
            )
            .successor("a", "version 9")
            .body("+a", "next")
            .counts("counter 50, sequence 21, retried 1"),
    );
}
