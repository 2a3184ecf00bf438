//! queue/abandon.lua

use crate::case::given;
use crate::queue_case::{abandon, ack, by, claim_or_wait, enqueue, plain, settle_and_claim};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

#[test]
fn a_waiter_that_says_who_it_is_leaves_as_well() {
    let before = || nothing().scheduled("a", LIVE, "").counts(COUNTS);
    given(before().idle_of("7 host web", 5, "{then+5000}"))
        .call(by("7 host web", abandon(None, Some(5))))
        .replies("left")
        .leaves(before());
}

#[test]
fn what_the_call_was_given_goes_back_uncounted() {
    let given_tasks = "7: [[a 40 b 41 c 42 d 43 e 44]]";
    let before = nothing()
        .claimed("a", LIVE, "receipt 40, attempts 2, reason x")
        // Settled, delivered again, ended, gone.
        .ready("b", 3, "attempts 1, settled 41, verdict 2")
        .claimed("c", LIVE, "receipt 90, attempts 2")
        .claimed("d", "{then-1}", "receipt 43, attempts 1")
        .counts(COUNTS)
        .call(given_tasks);
    let after = nothing()
        .ready("a", 21, "attempts 1, reason x, settled 40, verdict 4")
        .ready("b", 3, "attempts 1, settled 41, verdict 2")
        .claimed("c", LIVE, "receipt 90, attempts 2")
        .claimed("d", "{then-1}", "receipt 43, attempts 1")
        .counts("counter 50, sequence 21")
        .call("7: no");
    given(before.clone().idle(6, "{then+6000}"))
        .call(abandon(Some(7), None))
        .replies("left")
        .hints(6)
        .leaves(after.clone());
    given(before).call(abandon(Some(7), Some(5))).replies("left").leaves(after);
}

#[test]
fn a_successor_that_replaces_comes_instead() {
    let before = nothing()
        .claimed("a", LIVE, "receipt 40, attempts 1, has_successor 1")
        .successor("a", "version 9, replaces 1")
        .body("+a", "next");
    given(before.counts(COUNTS).call("7: [[a 40] [24]]"))
        .call(abandon(Some(7), None))
        .replies("left")
        .leaves(
            nothing()
                .ready("a", 21, "version 9, settled 40, verdict 4")
                .body("a", "next")
                .counts("counter 50, sequence 21")
                .call("7: no"),
        );
}

#[test]
fn a_call_that_was_not_carried_out_never_will_be() {
    let state = || nothing().ready("a", 3, "").counts(COUNTS);
    let burned = state().call("7: no");
    given(state()).call(abandon(Some(7), None)).replies("left").leaves(burned.clone());
    given(state().call("6: [[a 40]]")).call(abandon(Some(7), None)).replies("left").leaves(burned.clone());
    given(state().call("8: [[a 40]]")).call(abandon(Some(7), None)).replies("left").changes_nothing();
    given(burned.clone()).call(abandon(Some(7), None)).replies("left").changes_nothing();
    // Nor is the late copy's waiter registered: nobody would hear its hint.
    given(burned.clone()).call(claim_or_wait(1, 5)).replies("empty 0 rank 0").leaves(burned.clone());
    given(burned.clone())
        .call(settle_and_claim(&[("a", 1, ack())], 1))
        .replies("superseded")
        .changes_nothing();
    given(burned).call(enqueue([plain("a")])).replies("superseded").changes_nothing();
}

#[test]
fn a_waiter_that_was_chosen_passes_the_hint_on() {
    let others = |state: State| state.counts(COUNTS).idle(6, "{then+6000}");
    let waits = |state: State| others(state).idle(5, "{then+5000}");
    let call = || abandon(None, Some(5));
    let ready = || nothing().ready("a", 3, "");
    // It was not: it only leaves.
    given(waits(ready())).call(call()).replies("left").leaves(others(ready()));
    let due = [
        ready(),
        nothing().scheduled("a", "{then-1}", ""),
        nothing().claimed("a", "{then-1}", "receipt 40"),
        nothing().intake("a", "5"),
    ];
    for state in due {
        let lives = state.0.contains_key("q:state");
        let after = state.clone().counts(COUNTS);
        let after = if lives { after } else { after.resting() };
        given(others(state)).call(call()).replies("left").hints(6).leaves(after);
    }
    for state in [nothing().scheduled("a", LIVE, ""), ready().settings("paused yes")] {
        given(others(state)).call(call()).replies("left").changes_nothing();
    }
}
