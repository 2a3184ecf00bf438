//! queue/settle.lua and queue/settle_and_claim.lua

use stanchion::protocol::Verdict;

use crate::case::given;
use crate::queue_case::{LEASE, ack, bury, ms, nack, settle, settle_and_claim, settle_and_try};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

/// One settlement of receipt 40 of task a.
#[track_caller]
fn check(before: State, verdict: Verdict, reply: &str, counts: &str, after: State) {
    let after = after.counts(counts);
    let after = if after.0.contains_key("q:state") { after } else { after.resting() };
    given(before.counts(COUNTS)).call(settle(&[("a", 40, verdict)])).replies(reply).leaves(after);
}

/// The settlement changes nothing.
#[track_caller]
fn check_nothing(before: State, verdict: Verdict, reply: &str) {
    check(before.clone(), verdict, reply, COUNTS, before);
}

/// The places in which task a can be while receipt 40 is not settled: its state, and whether a settle is late.
fn unsettled(fields: &str) -> Vec<(State, bool)> {
    let fields = &format!("receipt 40, {fields}");
    vec![
        (nothing().claimed("a", LIVE, fields), false),
        (nothing().claimed("a", "{then-1}", fields), true),
        (nothing().ready("a", 3, fields), true),
        (nothing().scheduled("a", LIVE, fields), true),
    ]
}

fn done(late: bool) -> &'static str {
    if late { "done late" } else { "done" }
}

#[test]
fn an_acked_task_is_gone() {
    for (before, late) in unsettled("attempts 1") {
        check(before, ack(), done(late), "counter 50, sequence 20, acked 1", nothing());
    }
}

#[test]
fn a_nacked_task_is_tried_again_later() {
    for (before, late) in unsettled("attempts 1") {
        let after = nothing().scheduled(
            "a",
            "{now+700}",
            "attempts 1, first {now}, settled 40, verdict 2, reason no luck, backoff {now+700}",
        );
        check(before.clone(), nack(700), done(late), "counter 50, sequence 20, retried 1", after);
        let after = nothing().ready(
            "a",
            21,
            "due {now}, attempts 1, first {now}, settled 40, verdict 2, reason no luck, backoff {now}",
        );
        check(before, nack(0), done(late), "counter 50, sequence 21, retried 1", after);
    }
}

#[test]
fn the_last_nack_and_a_bury_kill() {
    let counts = "counter 50, sequence 20, died 1, dead_size 1";
    let dead = |late: bool| if late { "done late dead" } else { "done dead" };
    for (before, late) in unsettled("attempts 3, max_attempts 3") {
        let due = if before.0.contains_key("q:scheduled") { "due {then+9000}, " } else { "" };
        let fields = format!("{due}attempts 3, max_attempts 3, settled 40, verdict 2, reason no luck");
        let after = nothing().dead("40", "a", "{now}", &fields);
        check(before.clone(), nack(700), dead(late), counts, after);
        let fields = format!("{due}attempts 3, max_attempts 3, settled 40, verdict 3, reason hopeless");
        let after = nothing().dead("40", "a", "{now}", &fields);
        check(before, bury(), dead(late), counts, after);
    }
    let before = nothing().claimed("a", LIVE, "receipt 40, attempts 1");
    let after = nothing().dead("40", "a", "{now}", "attempts 1, settled 40, verdict 3, reason hopeless");
    check(before, bury(), "done dead", counts, after);
}

#[test]
fn a_task_that_is_put_back_has_not_been_tried() {
    let fields = "settled 40, verdict 4, reason x";
    // In its place: it was the seventh to come into line. It may wait already.
    for (before, late) in unsettled("attempts 1, reason x, turn 7") {
        let after = match &before.0 {
            state if state.contains_key("q:scheduled") => nothing().scheduled("a", LIVE, fields),
            state if state.contains_key("q:ready") => nothing().ready("a", 3, fields),
            _ => nothing().ready("a", 7, fields),
        };
        check(before, Verdict::PUT_BACK, done(late), COUNTS, after);
    }
    // An older library did not say which.
    for (before, late) in unsettled("attempts 1, reason x").into_iter().take(2) {
        let after = nothing().ready("a", 21, fields);
        check(before, Verdict::PUT_BACK, done(late), "counter 50, sequence 21", after);
    }
}

#[test]
fn what_is_put_back_with_a_delay_waits_so_long() {
    for (before, late) in unsettled("attempts 1, reason x, turn 7") {
        let after =
            nothing().scheduled("a", "{now+700}", "settled 40, verdict 4, reason x, backoff {now+700}");
        check(before, Verdict::PutBack { delay: ms(700) }, done(late), COUNTS, after);
    }
}

#[test]
fn a_successor_comes_when_the_run_ends_for_good_and_one_that_replaces_comes_instead_of_a_retry() {
    let before = |replaces: u64, attempts: u64| {
        nothing()
            .claimed("a", LIVE, &format!("receipt 40, attempts {attempts}, has_successor 1"))
            .successor("a", &format!("version 9, priority 1, replaces {replaces}"))
            .body("+a", "next")
    };
    let next = |verdict: u64| {
        nothing()
            .ready("a", 21, &format!("version 9, priority 1, settled 40, verdict {verdict}"))
            .body("a", "next")
    };
    for replaces in [0, 1] {
        check(before(replaces, 1), ack(), "done", "counter 50, sequence 21, acked 1", next(1));
        let dead = "attempts 1, settled 40, verdict 3, reason hopeless";
        let counts = "counter 50, sequence 21, died 1, dead_size 1";
        check(before(replaces, 1), bury(), "done dead", counts, next(3).dead("40", "a", "{now}", dead));
        let dead = "attempts 20, settled 40, verdict 2, reason no luck";
        let counts = "counter 50, sequence 21, died 1, dead_size 1";
        check(before(replaces, 20), nack(700), "done dead", counts, next(2).dead("40", "a", "{now}", dead));
    }
    // No earlier than the retry that it replaces.
    let held = "version 9, priority 1, settled 40, verdict 2, backoff {now+700}";
    let held = nothing().scheduled("a", "{now+700}", held).body("a", "next");
    check(before(1, 1), nack(700), "done", "counter 50, sequence 20, retried 1", held);
    check(before(1, 1), nack(0), "done", "counter 50, sequence 21, retried 1", next(2));
    check(before(1, 1), Verdict::PUT_BACK, "done", "counter 50, sequence 21", next(4));
    let waits = |state: State| state.successor("a", "version 9, priority 1").body("+a", "next");
    let retry =
        "attempts 1, first {now}, settled 40, verdict 2, reason no luck, backoff {now+700}, has_successor 1";
    let after = waits(nothing().scheduled("a", "{now+700}", retry));
    check(before(0, 1), nack(700), "done", "counter 50, sequence 20, retried 1", after);
    let after = waits(nothing().ready("a", 21, "settled 40, verdict 4, has_successor 1"));
    check(before(0, 1), Verdict::PUT_BACK, "done", "counter 50, sequence 21", after);
}

#[test]
fn the_same_verdict_again_changes_nothing_and_another_is_stale() {
    let verdicts = [ack(), nack(5), bury(), Verdict::PUT_BACK];
    for number in 1..=4 {
        for (other, verdict) in (1..).zip(&verdicts) {
            let reply = if number == other { "done" } else { "stale" };
            let settled = format!("settled 40, verdict {number}, attempts 1");
            check_nothing(nothing().ready("a", 3, &settled), verdict.clone(), reply);
            check_nothing(
                nothing().claimed("a", LIVE, &format!("receipt 41, {settled}")),
                verdict.clone(),
                reply,
            );
        }
    }
    // Spent by a successor that took the retry's place.
    for verdict in verdicts {
        check_nothing(nothing().ready("a", 3, "settled 40, verdict 6"), verdict, "stale");
    }
}

#[test]
fn an_older_receipt_is_stale_and_of_an_unknown_id_it_is_gone() {
    for verdict in [ack(), nack(5), bury(), Verdict::PUT_BACK] {
        check_nothing(
            nothing().claimed("a", LIVE, "receipt 41, settled 39, verdict 1"),
            verdict.clone(),
            "stale",
        );
        check_nothing(nothing().ready("a", 3, ""), verdict.clone(), "stale");
        check(nothing(), verdict.clone(), "gone", COUNTS, nothing());
        check(nothing().ready("b", 3, ""), verdict.clone(), "gone", COUNTS, nothing().ready("b", 3, ""));
        // A receipt of zero is no task's, not even of one that was never claimed.
        given(nothing().ready("a", 3, "").counts(COUNTS))
            .call(settle(&[("a", 0, verdict)]))
            .replies("stale")
            .changes_nothing();
    }
}

#[test]
fn a_late_ack_takes_a_task_back_from_the_dead() {
    let ended = || nothing().dead("40", "a", "{then-5}", "settled 40, verdict 5, reason the lease ended");
    let counts = "counter 50, sequence 20, died 1, dead_size 1";
    let before = || ended().counts(counts);
    given(before())
        .call(settle(&[("a", 40, ack())]))
        .replies("done late")
        .leaves(nothing().counts("counter 50, sequence 20, acked 1, died 1").resting());
    for verdict in [nack(5), bury(), Verdict::PUT_BACK] {
        given(before()).call(settle(&[("a", 40, verdict)])).replies("stale").leaves(before().resting());
    }
    // Of two records the newer one goes; the older one is the newest then.
    let older = nothing()
        .older_dead("30", "a", "{then-9}", "settled 30, verdict 3")
        .dead("40", "a", "{then-5}", "settled 40, verdict 5")
        .chained("30", "40");
    given(older.counts("counter 50, dead_size 2"))
        .call(settle(&[("a", 40, ack())]))
        .replies("done late")
        .leaves(
            nothing()
                .dead("30", "a", "{then-9}", "settled 30, verdict 3")
                .counts("counter 50, acked 1, dead_size 1")
                .resting(),
        );
    // The receipt of another id is nobody's.
    let other = || nothing().dead("40", "b", "{then-5}", "settled 40, verdict 5");
    given(other().counts(COUNTS))
        .call(settle(&[("a", 40, ack())]))
        .replies("gone")
        .leaves(other().counts(COUNTS).resting());
}

#[test]
fn the_verdict_that_killed_is_repeated_and_others_are_stale() {
    for (number, killer) in [(2, nack(5)), (3, bury())] {
        let before =
            || nothing().dead("40", "a", "{then-5}", &format!("settled 40, verdict {number}")).counts(COUNTS);
        for verdict in [ack(), nack(5), bury(), Verdict::PUT_BACK] {
            let reply = if verdict == killer { "done dead" } else { "stale" };
            given(before()).call(settle(&[("a", 40, verdict)])).replies(reply).leaves(before().resting());
        }
    }
    // Killed by neither: it expired before its next delivery.
    let before =
        || nothing().dead("40", "a", "{then-5}", "settled 39, verdict 2, reason expired").counts(COUNTS);
    given(before()).call(settle(&[("a", 40, nack(5))])).replies("stale").leaves(before().resting());
}

#[test]
fn a_batch_is_settled_one_after_the_other() {
    let before = nothing()
        .claimed("a", LIVE, "receipt 40, attempts 1")
        .claimed("b", LIVE, "receipt 41, attempts 20")
        .claimed("c", LIVE, "receipt 42, attempts 1, has_successor 1")
        .successor("c", "version 9")
        .claimed("d", LIVE, "receipt 43, attempts 1");
    let items = [
        ("a", 40, ack()),
        ("a", 40, ack()),
        ("b", 41, nack(5)),
        ("b", 41, nack(5)),
        ("b", 41, ack()),
        ("c", 42, ack()),
        ("c", 42, ack()),
        ("c", 42, bury()),
        ("d", 9, ack()),
    ];
    given(before.counts(COUNTS))
        .call(settle(&items))
        .replies("done; gone; done dead; done dead; stale; done; done; stale; stale")
        .leaves(
            nothing()
                .ready("c", 21, "version 9, settled 42, verdict 1")
                .claimed("d", LIVE, "receipt 43, attempts 1")
                .dead("41", "b", "{now}", "attempts 20, settled 41, verdict 2, reason no luck")
                .counts("counter 50, sequence 21, acked 2, died 1, dead_size 1"),
        );
}

#[test]
fn a_consumer_is_hinted_if_there_is_something_new_to_claim() {
    let idle = |state: State| state.idle(5, "{then+5000}");
    let before = || idle(nothing().claimed("a", LIVE, "receipt 40, attempts 1").counts(COUNTS));
    given(before()).call(settle(&[("a", 40, nack(0))])).replies("done").hints(5).leaves(
        nothing()
            .ready(
                "a",
                21,
                "due {now}, attempts 1, first {now}, settled 40, verdict 2, reason no luck, backoff {now}",
            )
            .counts("counter 50, sequence 21, retried 1"),
    );
    given(before())
        .call(settle(&[("a", 40, ack())]))
        .replies("done")
        .leaves(idle(nothing().counts("counter 50, sequence 20, acked 1").resting()));
}

#[test]
fn reasons_are_kept_as_they_are() {
    let verdict = Verdict::Nack { delay: std::time::Duration::ZERO, reason: "two\nlines 5 größe".into() };
    let before = nothing().claimed("a", LIVE, "receipt 40, attempts 1");
    let after = nothing().ready(
        "a",
        21,
        "due {now}, attempts 1, first {now}, settled 40, verdict 2, reason two\nlines 5 größe, backoff {now}",
    );
    check(before, verdict, "done", "counter 50, sequence 21, retried 1", after);
}

fn lease() -> String {
    format!("{{now+{LEASE}}}")
}

#[test]
fn settle_and_claim_does_both_in_this_order() {
    let before =
        nothing().claimed("a", LIVE, "receipt 40, attempts 1").claimed("b", LIVE, "receipt 41, attempts 1");
    given(before.counts(COUNTS))
        .call(settle_and_claim(&[("a", 40, Verdict::PUT_BACK), ("b", 41, ack()), ("c", 1, ack())], 9))
        .replies("done; done; gone | a b receipt {us} attempt 1/20 version 1 due 1 priority 0 left 30000")
        .leaves(
            nothing()
                .claimed("a", &lease(), "receipt {us}, attempts 1, settled 40, verdict 4")
                .counts("counter {us}, sequence 21, acked 1")
                .call("7: [[a {us}] [24 24 6]]"),
        );
    // Nothing to claim, and nothing to settle.
    given(nothing().claimed("a", LIVE, "receipt 40, attempts 1").counts(COUNTS))
        .call(settle_and_claim(&[("a", 40, ack())], 9))
        .replies("done | empty never rank 0")
        .leaves(
            nothing()
                .counts("counter 50, sequence 20, acked 1")
                .resting()
                .idle(5, "{now+7500}")
                .call("7: [[] [24]]"),
        );
    given(nothing().ready("a", 3, "").settings("paused yes").claimed("b", LIVE, "receipt 41").counts(COUNTS))
        .call(settle_and_claim(&[("b", 41, ack())], 9))
        .replies("done | paused rank 0")
        .leaves(
            nothing()
                .ready("a", 3, "")
                .settings("paused yes")
                .counts("counter 50, sequence 20, acked 1")
                .idle(5, "{now+7500}")
                .call("7: [[] [24]]"),
        );
}

#[test]
fn settle_and_claim_is_repeated_whole() {
    let state = || nothing().claimed("a", LIVE, "receipt 40, attempts 1").counts(COUNTS);
    let items = || settle_and_claim(&[("x", 1, ack()), ("y", 2, ack())], 9);
    given(state().call("7: [[a 40 b 41] [24 28]]"))
        .call(items())
        .replies("done; stale | a b receipt 40 attempt 1/20 version 1 due 1 priority 0 left {~9000}")
        .changes_nothing();
    given(state().call("8: [[] []]")).call(items()).replies("superseded").changes_nothing();
}

#[test]
fn settle_and_claim_that_does_not_wait_passes_an_earlier_due_on() {
    let before = nothing().claimed("a", LIVE, "receipt 40, attempts 1").idle(6, "{then+6000}");
    given(before.counts(COUNTS))
        .call(settle_and_try(&[("a", 40, nack(700))], 1))
        .replies("done | empty {~700} rank 0")
        .hints(6)
        .leaves(
            nothing()
                .scheduled(
                    "a",
                    "{now+700}",
                    "attempts 1, first {now}, settled 40, verdict 2, reason no luck, backoff {now+700}",
                )
                .counts("counter 50, sequence 20, retried 1")
                .call("7: [[] [24]]"),
        );
}

#[test]
fn settle_and_claim_hints_the_next_if_something_is_left() {
    let before = nothing().ready("a", 3, "").ready("b", 4, "").idle(5, "{then+5000}").idle(6, "{then+6000}");
    given(before.counts(COUNTS))
        .call(settle_and_claim(&[("x", 1, ack())], 1))
        .replies("gone | a b receipt {us} attempt 1/20 version 1 due 1 priority 0 left 30000")
        .hints(6)
        .leaves(
            nothing()
                .claimed("a", &lease(), "receipt {us}, attempts 1")
                .ready("b", 4, "")
                .counts("counter {us}, sequence 20")
                .call("7: [[a {us}] [6]]"),
        );
}
