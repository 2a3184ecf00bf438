//! The dead: their caps, and queue/kick.lua.

use stanchion::protocol::{Configure, DeadOnes, Due, Pause, Pop, QueueVerb, Receipt, Sweep};

use crate::case::given;
use crate::queue_case::{
    Tweak, abandon, bury, claim, enqueue, enqueue_as, kick, ms, plain, remove, reschedule, settle,
};
use crate::queue_state::real_key;
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
fn no_more_than_two_hundred_are_dropped_at_once() {
    let mut bench = crate::case::Bench::new();
    let mut state = nothing().claimed("a", LIVE, "receipt 940").settings("dead_max 10");
    for number in 100..500 {
        state = state.dead(&number.to_string(), &format!("d{number}"), "5", "");
    }
    bench.set_up(&state.counts("counter 950, dead_size 400"));
    bench.call(crate::queue_case::request(settle(&[("a", 940, bury())]))).unwrap();
    let state = bench.state();
    let crate::state::Content::Zset(dead) = &state.0["q:dead"].0 else { panic!("no set") };
    assert_eq!((dead.len(), &*dead[0].0), (201, "300"), "the oldest have gone");
    let crate::state::Content::Hash(grave) = &state.0["q:grave"].0 else { panic!("no hash") };
    assert_eq!(grave.len(), 402);
    let crate::state::Content::Hash(record) = &state.0["q:queue"].0 else { panic!("no hash") };
    assert_eq!(record["counts"], "counter 950, died 1, dead_size 201");
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
                .dead("40", "a", "{now}", BURIED)
                .chained("10", "40")
                .counts("counter 50, died 1, dead_size 2")
                .resting(),
        );
}

fn oldest(count: u32) -> QueueVerb {
    QueueVerb::Kick(Sweep::new(DeadOnes::Oldest, count))
}

#[test]
fn a_kicked_task_starts_again() {
    let fields = "version 3, priority 4, attempts 20, settled 10, verdict 2, reason x, expires {then+9000}";
    let before =
        || nothing().dead("10", "a", "{then-5}", fields).counts("counter 50, sequence 20, dead_size 1");
    let after = || {
        let fields = "version {us}, due {now}, first {now}, priority 4, settled 10, verdict 2, reason x, expires {then+9000}";
        nothing().ready("a", 21, fields).counts("counter {us}, sequence 21")
    };
    given(before()).call(kick(&["a"])).replies("1").leaves(after());
    given(before().idle(6, "{then+6000}")).call(oldest(9)).replies("1").hints(6).leaves(after());
    given(before()).call(kick(&["b"])).replies("0").changes_nothing();
    given(before()).call(oldest(0)).replies("0").changes_nothing();
    given(nothing()).call(oldest(9)).replies("0").changes_nothing();
    // It would die again at once.
    let before = nothing().dead("10", "a", "{then-5}", "expires {then-9}").counts("counter 50, dead_size 1");
    given(before).call(kick(&["a", "a"])).replies("1").leaves(
        nothing().ready("a", 1, "version {us}, due {now}, first {now}").counts("counter {us}, sequence 1"),
    );
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
            .ready("y", 21, "version {us}, due {now}, first {now}")
            .dead("12", "z", "{then-10000}", "")
            .counts("counter {us}, sequence 21, dead_size 2"),
    );
}

#[test]
fn the_newest_record_of_an_id_is_kicked_and_by_count_the_oldest() {
    let before = || {
        nothing()
            .older_dead("10", "a", "{then-9}", "version 3")
            .dead("12", "a", "{then-5}", "version 4")
            .chained("10", "12")
            .counts("counter 50, sequence 20, dead_size 2")
    };
    let counts = "counter {us}, sequence 21, dead_size 1";
    let again = "version {us}, due {now}, first {now}";
    given(before())
        .call(kick(&["a"]))
        .replies("1")
        .leaves(nothing().dead("10", "a", "{then-9}", "version 3").ready("a", 21, again).counts(counts));
    given(before())
        .call(oldest(9))
        .replies("1")
        .leaves(nothing().dead("12", "a", "{then-5}", "version 4").ready("a", 21, again).counts(counts));
}

#[test]
fn an_id_that_no_task_may_have_stays_dead() {
    let state = || {
        nothing().older_dead("10", "a\u{1}b", "{then-9}", "nameless yes").counts("counter 50, dead_size 1")
    };
    given(state()).call(oldest(9)).replies("0").changes_nothing();
}

#[test]
fn a_record_that_goes_from_the_middle_leaves_the_others_known() {
    let first = || nothing().older_dead("10", "a", "{then-9}", "");
    let before = first().older_dead("12", "a", "{then-7}", "").dead("14", "a", "{then-5}", "");
    let before = before.chained("10", "12").chained("12", "14").counts("counter 50, dead_size 3");
    let drop_middle = QueueVerb::RemoveDead(Sweep::new(DeadOnes::Receipts([Receipt::new(12)].into()), 9));
    let left = first().dead("14", "a", "{then-5}", "").chained("10", "14");
    given(before).call(drop_middle).replies("1").leaves(left.counts("counter 50, dead_size 2").resting());
}

/// Whatever becomes of a task, its body stays where it is: to move half a megabyte takes the server longer than all
/// else.
#[test]
fn a_body_is_never_moved() {
    let mut bench = crate::case::Bench::new();
    let names = |bench: &mut crate::case::Bench| {
        let mut names: Vec<String> =
            redis::cmd("HKEYS").arg(real_key("q:body", 0)).query(&mut bench.raw).unwrap();
        names.sort();
        names
    };
    let state = nothing()
        .ready("late", 1, "expires 5")
        .ready("a", 2, "receipt 40, attempts 1, has_successor 1")
        .successor("a", "version 9")
        .claimed("b", LIVE, "receipt 41");
    bench.set_up(&state);
    let before = names(&mut bench);
    assert_eq!(before.len(), 4);
    for verb in [settle(&[("b", 41, bury())]), settle(&[("a", 40, bury())]), claim(1), kick(&["late", "b"])] {
        bench.call(crate::queue_case::request(verb)).unwrap();
        assert_eq!(names(&mut bench), before);
    }
}

#[test]
fn what_expired_pushes_no_failure_out() {
    let before = nothing()
        .dead("10", "x", "{then-30000}", "")
        .expired("11", "y", "{then-20000}", "")
        .expired("12", "z", "{then-10000}", "")
        .claimed("a", LIVE, "receipt 40");
    let before =
        |settings| before.clone().settings(settings).counts("counter 50, dead_size 1, expired_size 2");
    let after = nothing()
        .dead("10", "x", "{then-30000}", "")
        .expired("12", "z", "{then-10000}", "")
        .dead("40", "a", "{now}", BURIED);
    let after =
        |settings| after.clone().settings(settings).counts("counter 50, died 1, dead_size 2, expired_size 1");
    given(before("dead_max 2")).call(settle(&[("a", 40, bury())])).replies("done dead").leaves(
        after("dead_max 2")
            .expired("11", "y", "{then-20000}", "")
            .counts("counter 50, died 1, dead_size 2, expired_size 2"),
    );
    given(before("dead_bytes 2")).call(settle(&[("a", 40, bury())])).replies("done dead").leaves(
        after("dead_bytes 2")
            .expired("11", "y", "{then-20000}", "")
            .counts("counter 50, died 1, dead_size 2, expired_size 2"),
    );
    given(before("dead_max 9, dead_age 15000").dead("13", "w", "{then-9000}", ""))
        .call(settle(&[("a", 40, bury())]))
        .replies("done dead")
        .leaves(
            nothing()
                .dead("13", "w", "{then-9000}", "")
                .expired("12", "z", "{then-10000}", "")
                .dead("40", "a", "{now}", BURIED)
                .settings("dead_max 9, dead_age 15000")
                .counts("counter 50, died 1, dead_size 1, expired_size 1"),
        );
}

fn lives(bench: &mut crate::case::Bench, kind: &str) -> Option<i64> {
    let left: i64 = redis::cmd("PTTL").arg(real_key(&format!("q:{kind}"), 0)).query(&mut bench.raw).unwrap();
    (left >= 0).then_some(left)
}

/// Nothing without an end outlives the record that finds it: while tasks live all of it lives; where none does, the
/// dead end by themselves, and the record an hour later.
#[test]
fn the_dead_end_before_the_record_that_finds_them() {
    let of_the_dead = ["dead", "grave", "body"];
    let mut bench = crate::case::Bench::new();
    bench.set_up(&nothing().claimed("a", LIVE, "receipt 40").claimed("b", LIVE, "receipt 41"));
    let play = |bench: &mut crate::case::Bench, verb| {
        bench.call(crate::queue_case::request(verb)).unwrap();
        let mut live = |kind| lives(bench, kind);
        (live("queue"), of_the_dead.map(&mut live))
    };
    assert_eq!(play(&mut bench, settle(&[("a", 40, bury())])), (None, [None; 3]), "another task lives");
    let (record, dead) = play(&mut bench, settle(&[("b", 41, bury())]));
    let (record, age) = (record.unwrap(), 90 * 24 * 3_600_000);
    for left in dead.map(Option::unwrap) {
        assert!((age - 60_000..=age + 1_000).contains(&left), "{left}");
        assert!(record >= left + 3_540_000, "{record} and {left}");
    }
    assert_eq!(play(&mut bench, enqueue([plain("c")])), (None, [None; 3]), "a task lives again");
    let (record, dead) = play(&mut bench, QueueVerb::Pop(Pop { max: 1 }));
    assert!(record.is_some() && dead.iter().all(Option::is_some));
    // A record that was lost, or dropped by a server without memory, leaves no new body with the end of old ones.
    redis::cmd("DEL").arg(real_key("q:queue", 0)).exec(&mut bench.raw).unwrap();
    let anew = enqueue_as(8, [plain("d").with_body("x")]);
    assert_eq!(play(&mut bench, anew), (None, [None; 3]), "a task lives again");
    let (record, dead) = play(&mut bench, QueueVerb::Pop(Pop { max: 1 }));
    assert!(record.is_some() && dead.iter().all(Option::is_some));
    // A shorter age holds at once.
    let age = Configure { dead_age: Some(std::time::Duration::from_secs(500)), ..Configure::default() };
    let (record, dead) = play(&mut bench, QueueVerb::Configure(age));
    assert_eq!(record, None, "it has settings");
    assert!(dead.iter().all(|left| left.is_some_and(|left| left <= 501_000)), "{dead:?}");
}

/// Where no task lives they end by themselves; what is counted of them ends, too.
#[test]
fn what_has_ended_by_itself_is_not_counted() {
    let mut bench = crate::case::Bench::new();
    bench.set_up(
        &three_dead(nothing()).settings("dead_age 20000").counts("counter 50, dead_size 3, trim_at 5"),
    );
    redis::cmd("DEL").arg(real_key("q:dead", 0)).arg(real_key("q:grave", 0)).exec(&mut bench.raw).unwrap();
    bench.call(crate::queue_case::request(enqueue_as(6, [plain("a").with_body("bb")]))).unwrap();
    for verb in [claim(1), settle(&[("a", 0, bury())])] {
        bench.call(crate::queue_case::request(verb)).unwrap();
    }
    let state = bench.state();
    let crate::state::Content::Hash(record) = &state.0["q:queue"].0 else { panic!("no hash") };
    assert!(!record["counts"].contains("dead_size"), "{record:?}");
}

/// Not only another death does.
#[test]
fn every_verb_enforces_the_age() {
    let state = || three_dead(nothing()).ready("a", 1, "").settings("dead_age 15000");
    let verbs = [
        enqueue([plain("b")]),
        claim(1),
        settle(&[("x", 1, bury())]),
        QueueVerb::Pop(Pop { max: 1 }),
        QueueVerb::Pause(Pause { paused: true }),
        QueueVerb::Configure(Configure { max_len: Some(Some(9)), ..Configure::default() }),
        remove("a", None),
        reschedule("a", Due::In(ms(5_000))),
        abandon(Some(7), Some(5)),
        kick(&["z"]),
    ];
    for verb in verbs {
        let mut bench = crate::case::Bench::new();
        bench.set_up(&state().counts("counter 50, dead_size 3, trim_at 5"));
        bench.call(crate::queue_case::request(verb.clone())).unwrap();
        let state = bench.state();
        let left = match state.0.get("q:dead") {
            Some((crate::state::Content::Zset(dead), _)) => dead.len(),
            _ => 0,
        };
        let expected = usize::from(!matches!(verb, QueueVerb::Kick(_)));
        assert_eq!(left, expected, "{verb:?}");
    }
}
