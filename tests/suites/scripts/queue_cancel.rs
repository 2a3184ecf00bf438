//! queue/cancel.lua, and what the other scripts make of a cancelled task and of its progress

use stanchion::protocol::{QueueVerb, Verdict};

use crate::case::{Bench, describe, given};
use crate::queue_case::{
    ack, bury, cancel, claim, enqueue, extend_claim, get, nack, plain, progress, request, settle,
};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

#[test]
fn what_waits_goes_with_all_that_is_about_it() {
    let rest = |state: State| state.ready("z", 9, "").window("z", LIVE, 9_000).counts(COUNTS);
    let rows = [
        nothing().ready("a", 3, ""),
        nothing().scheduled("a", LIVE, "receipt 40"),
        nothing().claimed("a", "{then-1}", "receipt 40, attempts 20"),
        nothing().claimed("a", "{then-1}", "receipt 40, has_successor 1").successor("a", "version 9"),
        nothing().ready("a", 3, "").window("a", LIVE, 9_000),
        nothing().intake("a", "6"),
    ];
    for state in rows {
        given(rest(state)).call(cancel("a")).replies("removed").leaves(rest(nothing()));
    }
    given(rest(nothing())).call(cancel("a")).replies("absent").changes_nothing();
}

#[test]
fn what_runs_is_marked_and_loses_what_comes_after_it() {
    let state = |more: &str| nothing().claimed("a", LIVE, &format!("receipt 40{more}"));
    let rows = [
        state(""),
        state(", has_successor 1").successor("a", "version 9"),
        state("").window("a", LIVE, 9_000),
        state("").intake("a", "6"),
        state(", cancelled 1"),
    ];
    for before in rows {
        given(before.counts(COUNTS))
            .call(cancel("a"))
            .replies("running")
            .leaves(state(", cancelled 1").counts(COUNTS));
    }
}

#[test]
fn a_cancelled_run_is_told_and_ends_its_task_whatever_it_ends_with() {
    let state =
        |ends: &str| nothing().claimed("a", ends, "receipt 40, attempts 1, cancelled 1").counts(COUNTS);
    given(state(LIVE)).call(extend_claim("a", 40, 60_000)).replies("cancelled").changes_nothing();
    given(state(LIVE)).call(progress("a", 40, 60_000, "half")).replies("cancelled").changes_nothing();
    given(state("{then-1}")).call(extend_claim("a", 40, 60_000)).replies("expired").changes_nothing();
    let gone = |counts: &str| nothing().counts(counts).resting();
    for verdict in [nack(0), nack(500), bury(), Verdict::PUT_BACK] {
        given(state(LIVE)).call(settle(&[("a", 40, verdict)])).replies("done").leaves(gone(COUNTS));
    }
    given(state(LIVE))
        .call(settle(&[("a", 40, ack())]))
        .replies("done")
        .leaves(gone("counter 50, sequence 20, acked 1"));
    given(state("{then-1}"))
        .call(claim(1))
        .replies("empty never rank 0")
        .leaves(gone(COUNTS).call("7: [[]]"));
}

#[test]
fn what_is_enqueued_after_the_cancel_comes_after_the_run() {
    let state = || nothing().claimed("a", LIVE, "receipt 40, attempts 1, cancelled 1").counts(COUNTS);
    let mut bench = Bench::new();
    bench.set_up(&state());
    let reply = describe(&bench.call(request(enqueue([plain("a")]))).unwrap());
    assert!(reply.starts_with("successor"), "{reply}");
    let reply = describe(&bench.call(request(settle(&[("a", 40, nack(500))]))).unwrap());
    assert_eq!(reply, "done");
    let reply = describe(&bench.call(request(get("a"))).unwrap());
    assert!(reply.starts_with("a ready b") && reply.contains("attempts 0 receipt 0"), "{reply}");
    let reply = describe(&bench.call(request(extend_claim("a", 40, 9_000))).unwrap());
    assert_eq!(reply, "stale");
}

#[test]
fn progress_is_noted_with_the_lease_until_the_run_ends() {
    let state = |ends: &str, more: &str| {
        nothing().claimed("a", ends, &format!("receipt 40, attempts 1{more}")).counts(COUNTS)
    };
    given(state("{then+2000}", ""))
        .call(progress("a", 40, 9_000, "half"))
        .replies("extended 9000")
        .leaves(state("{now+9000}", ", progress half"));
    given(state("{then+20000}", ", progress half"))
        .call(progress("a", 40, 9_000, "most"))
        .replies("extended {~20000}")
        .leaves(state("{then+20000}", ", progress most"));
    for verdict in [nack(0), Verdict::PUT_BACK] {
        let mut bench = Bench::new();
        bench.set_up(&state(LIVE, ", progress half"));
        bench.call(request(settle(&[("a", 40, verdict)]))).unwrap();
        let state = bench.state();
        let text = format!("{state:?}");
        assert!(text.contains("settled 40") && !text.contains("progress"), "{text}");
    }
}

/// The last five, with when and why.
#[test]
fn failures_are_remembered() {
    let mut bench = Bench::new();
    bench.set_up(&nothing().ready("a", 3, "").counts(COUNTS));
    let ask = |bench: &mut Bench, verb| bench.call(request(verb)).unwrap();
    let fail = |bench: &mut Bench, number: u32| {
        let QueueVerb::Claim(mut verb) = claim(1) else { unreachable!() };
        verb.call.number += u64::from(number);
        let reply = describe(&ask(bench, QueueVerb::Claim(verb)));
        let receipt = reply.split_whitespace().nth(3).unwrap().parse().unwrap();
        let verdict =
            Verdict::Nack { delay: std::time::Duration::ZERO, reason: format!("no {number}").into() };
        ask(bench, settle(&[("a", receipt, verdict)]));
    };
    (1..=7).for_each(|number| fail(&mut bench, number));
    let reply = describe(&ask(&mut bench, get("a")));
    let failures: Vec<&str> = reply.split(" failed ").skip(1).collect();
    assert_eq!(failures.len(), 5, "{reply}");
    let reasons: Vec<_> = failures.iter().map(|failure| failure.split_once(' ').unwrap().1).collect();
    assert_eq!(reasons, ["no 3", "no 4", "no 5", "no 6", "no 7"]);
    let times: Vec<u64> =
        failures.iter().map(|failure| failure.split_once(' ').unwrap().0.parse().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= bench.context.then / 1_000, "{times:?}");
}
