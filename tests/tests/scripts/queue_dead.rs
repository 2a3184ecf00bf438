//! The dead: their caps, and queue/kick.lua.

use stanchion::verbs::{Kick, QueueVerb};

use crate::case::given;
use crate::queue_case::{bury, kick, settle};
use crate::state::{State, nothing};

const LIVE: &str = "{then+9000}";
const BURIED: &str = "settled 40, verdict 3, reason hopeless";

fn three_dead(state: State) -> State {
    state.dead("10", "x", "{then-30000}", "").dead("11", "y", "{then-20000}", "").dead(
        "12",
        "z",
        "{then-10000}",
        "",
    )
}

#[test]
fn the_oldest_dead_are_dropped_beyond_the_caps() {
    let before = |settings: &str| {
        let state = three_dead(nothing()).claimed("a", LIVE, "receipt 40").settings(settings);
        state.counts("counter 50, dead_size 3")
    };
    let after = |dropped: u64, settings: &str| {
        let dead = [("10", "x", "{then-30000}"), ("11", "y", "{then-20000}"), ("12", "z", "{then-10000}")];
        let left = dead.iter().skip(dropped as usize);
        let state = left.fold(nothing(), |state, (receipt, id, died)| state.dead(receipt, id, died, ""));
        let left = 4 - dropped;
        let state = match left {
            0 => state,
            _ => state.dead("40", "a", "{now}", BURIED),
        };
        let size = if left == 0 { String::new() } else { format!(", dead_size {left}") };
        state.settings(settings).counts(&format!("counter 50, died 1{size}"))
    };
    let rows = [
        ("dead_max 4", 0),
        ("dead_max 2", 2),
        ("dead_max 0", 4),
        ("dead_bytes 3", 1),
        ("dead_age 1000000", 0),
        ("dead_age 15000", 2),
    ];
    for (settings, dropped) in rows {
        given(before(settings))
            .call(settle(&[("a", 40, bury())]))
            .replies("done dead")
            .leaves(after(dropped, settings));
    }
}

#[test]
fn no_more_than_a_hundred_are_dropped_at_once() {
    let mut bench = crate::case::Bench::new();
    let mut state = nothing().claimed("a", LIVE, "receipt 940").settings("dead_max 10");
    for number in 100..300 {
        state = state.dead(&number.to_string(), &format!("d{number}"), "5", "");
    }
    bench.set_up(&state.counts("counter 950, dead_size 200"));
    bench.call(crate::queue_case::request(settle(&[("a", 940, bury())]))).unwrap();
    let state = bench.state();
    let crate::state::Content::Zset(dead) = &state.0["q:dead"].0 else { panic!("no set") };
    assert_eq!((dead.len(), &*dead[0].0), (101, "200"), "the oldest have gone");
    let crate::state::Content::Hash(grave) = &state.0["q:grave"].0 else { panic!("no hash") };
    assert_eq!(grave.len(), 303);
    let crate::state::Content::Hash(record) = &state.0["q:queue"].0 else { panic!("no hash") };
    assert_eq!(record["counts"], "counter 950, died 1, dead_size 101");
}

#[test]
fn an_id_that_dies_again_has_two_records() {
    let before = nothing().claimed("a", LIVE, "receipt 40").dead("10", "a", "{then-5}", "");
    given(before.counts("counter 50, dead_size 1"))
        .call(settle(&[("a", 40, bury())]))
        .replies("done dead")
        .leaves(
            nothing()
                .older_dead("10", "a", "{then-5}", "")
                .dead("40", "a", "{now}", &format!("{BURIED}, older 10"))
                .counts("counter 50, died 1, dead_size 2")
                .resting(),
        );
}

fn oldest(count: u32) -> QueueVerb {
    QueueVerb::Kick(Kick::Count(count))
}

#[test]
fn a_kicked_task_starts_again() {
    let fields = "version 3, priority 4, attempts 8, settled 10, verdict 2, reason x, expires {then+9000}";
    let before =
        || nothing().dead("10", "a", "{then-5}", fields).counts("counter 50, sequence 20, dead_size 1");
    let after = || {
        let fields =
            "version {us}, due {now}, priority 4, settled 10, verdict 2, reason x, expires {then+9000}";
        nothing().ready("a", 21, fields).counts("counter {us}, sequence 21")
    };
    given(before()).call(kick(&["a"])).replies("1").leaves(after());
    given(before().idle(6, "{then+6000}")).call(oldest(9)).replies("1").hints(6).leaves(after());
    given(before()).call(kick(&["b"])).replies("0").changes_nothing();
    given(before()).call(oldest(0)).replies("0").changes_nothing();
    given(nothing()).call(oldest(9)).replies("0").changes_nothing();
    // It would die again at once.
    let before = nothing().dead("10", "a", "{then-5}", "expires {then-9}").counts("counter 50, dead_size 1");
    given(before)
        .call(kick(&["a", "a"]))
        .replies("1")
        .leaves(nothing().ready("a", 1, "version {us}, due {now}").counts("counter {us}, sequence 1"));
}

#[test]
fn a_live_id_is_not_kicked() {
    let state =
        || nothing().dead("10", "a", "{then-5}", "").ready("a", 3, "").counts("counter 50, dead_size 1");
    given(state()).call(kick(&["a"])).replies("0").changes_nothing();
    given(state()).call(oldest(9)).replies("0").changes_nothing();
    let before = three_dead(nothing()).ready("x", 3, "").counts("counter 50, sequence 20, dead_size 3");
    given(before).call(oldest(1)).replies("1").leaves(
        nothing()
            .dead("10", "x", "{then-30000}", "")
            .ready("x", 3, "")
            .ready("y", 21, "version {us}, due {now}")
            .dead("12", "z", "{then-10000}", "")
            .counts("counter {us}, sequence 21, dead_size 2"),
    );
}

#[test]
fn the_newest_record_of_an_id_is_kicked_and_by_count_the_oldest() {
    let before = || {
        nothing()
            .older_dead("10", "a", "{then-9}", "version 3")
            .dead("12", "a", "{then-5}", "version 4, older 10")
            .counts("counter 50, sequence 20, dead_size 2")
    };
    let counts = "counter {us}, sequence 21, dead_size 1";
    let again = "version {us}, due {now}";
    given(before())
        .call(kick(&["a"]))
        .replies("1")
        .leaves(nothing().dead("10", "a", "{then-9}", "version 3").ready("a", 21, again).counts(counts));
    given(before()).call(oldest(9)).replies("1").leaves(
        nothing().dead("12", "a", "{then-5}", "version 4, older 10").ready("a", 21, again).counts(counts),
    );
}

#[test]
fn an_id_that_no_task_may_have_stays_dead() {
    let state =
        || nothing().older_dead("10", "a\u{1}b", "{then-9}", "older no").counts("counter 50, dead_size 1");
    given(state()).call(oldest(9)).replies("0").changes_nothing();
}
