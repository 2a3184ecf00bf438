//! queue/result.lua, and the results that settlements keep

use crate::case::{Bench, describe, given};
use crate::queue_case::{
    ack, ack_with, bury, cancel, enqueue, nack, plain, remove, request, result, settle, settle_and_try,
};
use crate::queue_state::real_key;
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const ACKED: &str = "counter 50, sequence 20, acked 1";
const LIVE: &str = "{then+9000}";
/// Of a packed version below 128 and a result of four bytes.
const SIZE: usize = 7;

fn running() -> State {
    nothing().claimed("a", LIVE, "version 30, receipt 40, attempts 1").counts(COUNTS)
}

#[test]
fn an_ack_keeps_its_result_for_as_long_as_it_says() {
    let kept = |counts: &str| {
        nothing().result("a", "{now+9000}", "version 30, result done").results_size(SIZE).counts(counts)
    };
    given(running())
        .call(settle(&[("a", 40, ack_with("done", 9_000))]))
        .replies("done")
        .leaves(kept(ACKED).resting());
    given(running().result("a", LIVE, "version 20, result old").results_size(99))
        .call(settle(&[("a", 40, ack_with("done", 9_000))]))
        .replies("done")
        // That of the set-up is packed longer: a number has nine bytes there.
        .leaves(
            nothing()
                .result("a", "{now+9000}", "version 30, result done")
                .results_size(99 - 15 + SIZE)
                .counts(ACKED)
                .resting(),
        );
    given(running())
        .call(settle(&[("a", 40, ack_with("", 9_000))]))
        .replies("done")
        .leaves(nothing().result("a", "{now+9000}", "version 30").results_size(3).counts(ACKED).resting());
}

#[test]
fn one_settlement_keeps_the_results_of_many() {
    let two = running().claimed("b", LIVE, "version 31, receipt 41, attempts 1");
    given(two.result("a", LIVE, "version 20, result old").results_size(15))
        .call(settle(&[("a", 40, ack_with("done", 9_000)), ("b", 41, ack_with("done", 9_000))]))
        .replies("done; done")
        .leaves(
            nothing()
                .result("a", "{now+9000}", "version 30, result done")
                .result("b", "{now+9000}", "version 31, result done")
                .results_size(2 * SIZE)
                .counts("counter 50, sequence 20, acked 2")
                .resting(),
        );
}

#[test]
fn what_has_ended_goes_when_another_result_comes() {
    given(running().result("b", "{then-1}", "version 3, result old").results_size(20))
        .call(settle(&[("a", 40, ack_with("done", 9_000))]))
        .replies("done")
        .leaves(
            nothing()
                .result("a", "{now+9000}", "version 30, result done")
                .results_size(20 - 15 + SIZE)
                .counts(ACKED)
                .resting(),
        );
}

/// Servers that evict keys take one without the other.
#[test]
fn what_has_lost_its_end_goes_when_another_result_comes() {
    let mut bench = Bench::new();
    bench.set_up(&running().result("b", LIVE, "version 3, result old").results_size(15));
    let _: u64 = redis::cmd("DEL").arg(real_key("q:results", 0)).query(&mut bench.raw).unwrap();
    bench.call(request(settle(&[("a", 40, ack_with("done", 9_000))]))).unwrap();
    let kept: std::collections::HashMap<String, Vec<u8>> =
        redis::cmd("HGETALL").arg(real_key("q:result", 0)).query(&mut bench.raw).unwrap();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(kept[""], SIZE.to_string().into_bytes());
}

#[test]
fn a_late_ack_of_one_that_was_asked_for_since_keeps_no_result() {
    let state = |fields: &str| nothing().ready("a", 3, &format!("version 45, {fields}"));
    given(state("receipt 40, attempts 1").counts(COUNTS))
        .call(settle(&[("a", 40, ack_with("done", 9_000))]))
        .replies("done late")
        .leaves(state("settled 40, verdict 1").counts(ACKED));
}

#[test]
fn a_repeated_ack_keeps_the_first_result() {
    let mut bench = Bench::new();
    bench.set_up(&running());
    let mut ask = |verb| describe(&bench.call(request(verb)).unwrap());
    assert_eq!(
        ask(settle(&[("a", 40, ack_with("one", 9_000)), ("a", 40, ack_with("two", 9_000))])),
        "done; gone"
    );
    assert_eq!(ask(result("a", 0, None)), "one of 30");
}

#[test]
fn what_became_of_a_task() {
    let kept = |state: State| state.result("a", LIVE, "version 30, result done").counts(COUNTS);
    let rows = [
        (kept(nothing()), 30, "done of 30"),
        (kept(nothing()), 0, "done of 30"),
        (kept(nothing()), 31, "gone"),
        (kept(nothing().ready("a", 3, "version 35")), 30, "done of 30"),
        (kept(nothing().ready("a", 3, "version 35")), 31, "pending"),
        (nothing().result("a", "{then-1}", "version 30, result done").counts(COUNTS), 30, "gone"),
        (running(), 30, "pending"),
        (running(), 31, "gone"),
        (
            nothing()
                .claimed("a", LIVE, "version 30, receipt 40, has_successor 1")
                .successor("a", "version 45")
                .counts(COUNTS),
            45,
            "pending",
        ),
        (nothing().intake("a", "6").counts(COUNTS), 0, "pending"),
        (nothing().dead("40", "a", "{then-5}", "version 30, reason bad").counts(COUNTS), 30, "dead: bad"),
        (nothing().dead("40", "a", "{then-5}", "version 30, reason bad").counts(COUNTS), 31, "gone"),
        (nothing().counts(COUNTS), 0, "gone"),
    ];
    for (state, version, reply) in rows {
        given(state).call(result("a", version, None)).replies(reply).changes_nothing();
    }
}

/// Each verb that ends a task, and whether those who wait for it are told.
#[test]
fn who_waits_is_told_of_the_end() {
    let rows = [
        (settle(&[("a", 40, ack_with("done", 9_000))]), true),
        (settle(&[("a", 40, ack())]), true),
        (settle_and_try(&[("a", 40, ack())], 1), true),
        (settle(&[("a", 40, bury())]), true),
        (settle(&[("a", 40, nack(0))]), false),
        (remove("a", None), true),
        (cancel("a"), false),
        (enqueue([plain("a")]), false),
    ];
    for (verb, is_told) in rows {
        let mut bench = Bench::new();
        bench.set_up(&running());
        for seq in [5, 6] {
            assert_eq!(describe(&bench.call(request(result("a", 30, Some(seq)))).unwrap()), "pending");
        }
        let (_, hints) = bench.hinted(|bench| bench.call(request(verb.clone())).unwrap());
        let mut hints = hints;
        hints.sort();
        let expected: &[&str] = if is_told { &["5", "6"] } else { &[] };
        assert_eq!(hints, expected, "{verb:?}");
    }
}

#[test]
fn who_asks_again_is_noted_once_and_who_does_not_is_forgotten() {
    let mut bench = Bench::new();
    bench.set_up(&running());
    for seq in [5, 6, 5] {
        bench.call(request(result("a", 30, Some(seq)))).unwrap();
    }
    let text = format!("{:?}", bench.state());
    let asked = text.split("asked [").nth(1).unwrap().split(']').next().unwrap().to_owned();
    // Client, number and until when, of each.
    assert_eq!(asked.split_whitespace().count(), 6, "{asked}");
    for seq in 0..100 {
        bench.call(request(result("a", 30, Some(seq)))).unwrap();
    }
    let text = format!("{:?}", bench.state());
    let asked = text.split("asked [").nth(1).unwrap().split(']').next().unwrap();
    assert_eq!(asked.split_whitespace().count(), 3 * 64, "no more than 64");
}
