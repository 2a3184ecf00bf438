//! queue/events.lua, and the events that every script notes

use stanchion::protocol::{Configure, DeadOnes, QueueVerb, Sweep, Verdict};

use crate::case::{Bench, describe, given};
use crate::queue_case::{
    Tweak, abandon, ack, bury, cancel, claim, enqueue, events, fire, fire_of, kick, nack, plain, pop,
    progress, remove, request, settle, settle_and_try,
};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

fn keep(events: u64) -> QueueVerb {
    QueueVerb::Configure(Configure { events: Some(events), ..Configure::default() })
}

/// What the verb leaves among the events, numbers of what it gives out left out.
fn told(state: &State, verb: QueueVerb) -> String {
    let mut bench = Bench::new();
    bench.set_up(&state.clone().watched(100, 7));
    bench.call(request(verb)).unwrap();
    describe(&bench.call(request(events(Some(7), None))).unwrap())
}

fn running() -> State {
    nothing().claimed("a", LIVE, "version 30, receipt 40, attempts 1").counts(COUNTS)
}

#[test]
fn each_verb_notes_what_it_does_to_a_task() {
    let cancelled = || nothing().claimed("a", LIVE, "version 30, receipt 40, attempts 1, cancelled 1");
    let lapsed =
        |fields: &str| nothing().claimed("a", "{then-1}", &format!("version 30, receipt 40, {fields}"));
    let ended_dead =
        || nothing().dead("40", "a", "{then-5}", "version 30, attempts 2, settled 40, verdict 5");
    let rows = [
        (running(), progress("a", 40, 60_000, "half"), "8 a progress of 30 at 1; | last 8"),
        (running(), settle(&[("a", 40, ack())]), "8 a done of 30 at 1; | last 8"),
        (running(), settle(&[("a", 40, nack(500))]), "8 a failed of 30 at 1: no luck; | last 8"),
        (running(), settle(&[("a", 40, bury())]), "8 a dead of 30 at 1: hopeless; | last 8"),
        (running(), settle(&[("a", 40, Verdict::PUT_BACK)]), "8 a put_back of 30 at 1; | last 8"),
        (running().call("6: [[a 40]]"), abandon(Some(6), None), "8 a put_back of 30 at 1; | last 8"),
        (running(), settle_and_try(&[("a", 40, ack())], 1), "8 a done of 30 at 1; | last 8"),
        (running(), remove("a", None), "8 a removed of 30 at 1; | last 8"),
        (running(), cancel("a"), "| last 7"),
        (cancelled(), settle(&[("a", 40, nack(0))]), "8 a cancelled of 30 at 1; | last 8"),
        (cancelled(), settle(&[("a", 40, ack())]), "8 a done of 30 at 1; | last 8"),
        (nothing().ready("a", 3, "version 30"), cancel("a"), "8 a cancelled of 30 at 0; | last 8"),
        (lapsed("attempts 20"), claim(1), "8 a dead of 30 at 20: the lease ended; | last 8"),
        (ended_dead(), settle(&[("a", 40, ack())]), "8 a done of 30 at 2; | last 8"),
        (
            nothing().ready("a", 3, "version 30, expires 5"),
            claim(1),
            "8 a dead of 30 at 0: expired; | last 8",
        ),
        (
            lapsed("attempts 1"),
            claim(1),
            "8 a failed of 30 at 1: the lease ended; 9 a started of 30 at 2; | last 9",
        ),
        (
            nothing().ready("a", 3, "version 30").ready("b", 4, "version 31"),
            pop(9),
            "8 a started of 30 at 1; 9 b started of 31 at 1; 10 a done of 30 at 1; 11 b done of 31 at 1; | last 11",
        ),
    ];
    for (state, verb, expected) in rows {
        assert_eq!(told(&state, verb.clone()), expected, "{verb:?}");
    }
}

#[test]
fn what_comes_in_is_told_whatever_way_it_comes() {
    let ways = [
        (nothing(), enqueue([plain("a")]), true),
        (nothing().ready("a", 3, ""), enqueue([plain("a").replace()]), true),
        (running(), enqueue([plain("a")]), true),
        (nothing().ready("a", 3, ""), enqueue([plain("a")]), false),
        (running(), enqueue([plain("a").skip()]), false),
        (nothing().dead("40", "a", "{then-5}", ""), kick(&["a"]), true),
        (
            nothing().dead("40", "a", "{then-5}", ""),
            QueueVerb::RemoveDead(Sweep::new(DeadOnes::Oldest, 9)),
            false,
        ),
        (
            nothing().schedule("cron", "{then-1}", "").agenda("{then-1}", 1),
            fire([fire_of("cron", 30, &[("a", 5)])]),
            true,
        ),
    ];
    for (state, verb, is_told) in ways {
        let told = told(&state, verb.clone());
        assert_eq!(told.contains("a added of "), is_told, "{verb:?}: {told}");
        assert_eq!(told == "| last 7", !is_told, "{verb:?}: {told}");
    }
    let taken_in = told(&nothing().intake("a", "5"), claim(1));
    assert!(taken_in.starts_with("8 a added of ") && taken_in.contains("9 a started of "), "{taken_in}");
}

#[test]
fn a_queue_that_keeps_none_notes_nothing() {
    let mut bench = Bench::new();
    bench.set_up(&running());
    bench.call(request(settle(&[("a", 40, ack())]))).unwrap();
    assert_eq!(describe(&bench.call(request(events(Some(0), Some(5)))).unwrap()), "off");
    let exists: bool = redis::cmd("EXISTS").arg(stream()).query(&mut bench.raw).unwrap();
    assert!(!exists);
}

fn stream() -> String {
    crate::queue_state::real_key("q:events", 0)
}

#[test]
fn the_first_event_gets_a_number_that_none_before_had() {
    let mut bench = Bench::new();
    bench.set_up(&nothing().counts(COUNTS));
    let last = |bench: &mut Bench| {
        let told = describe(&bench.call(request(events(None, None))).unwrap());
        told.strip_prefix("| last ").expect("no event").parse::<u64>().unwrap()
    };
    bench.call(request(keep(9))).unwrap();
    let first = last(&mut bench);
    assert!(first > 1_000_000, "of the clock: {first}");
    bench.call(request(keep(5))).unwrap();
    assert_eq!(last(&mut bench), first, "only how many are kept has changed");
    bench.call(request(enqueue([plain("a")]))).unwrap();
    assert_eq!(last(&mut bench), first + 1);
    bench.call(request(keep(0))).unwrap();
    assert_eq!(describe(&bench.call(request(events(Some(0), None))).unwrap()), "off");
    bench.call(request(keep(9))).unwrap();
    assert!(last(&mut bench) > first + 1, "they are told apart from those before");
    assert_eq!(describe(&bench.call(request(events(Some(0), None))).unwrap()).split('|').next(), Some(""));
}

/// More happened than versions were given out, and the clock was set back meanwhile.
#[test]
fn numbers_go_on_from_the_last_event_also_after_a_pause() {
    let mut bench = Bench::new();
    let far = 9_000_000_000_000_000;
    bench.set_up(&running().watched(100, far));
    bench.call(request(keep(0))).unwrap();
    bench.call(request(keep(9))).unwrap();
    let told = describe(&bench.call(request(events(None, None))).unwrap());
    assert_eq!(told, format!("| last {}", far + 1));
}

#[test]
fn who_waits_for_an_event_is_told_that_none_will_come() {
    let mut bench = Bench::new();
    bench.set_up(&running().watched(100, 7));
    assert_eq!(describe(&bench.call(request(events(Some(7), Some(5)))).unwrap()), "| last 7");
    let (_, hints) = bench.hinted(|bench| bench.call(request(keep(0))).unwrap());
    assert_eq!(hints, ["5"]);
}

/// Nothing that the library writes is lost by it but the events before, which are told as a gap.
#[test]
fn a_larger_number_of_a_stranger_is_dropped_with_what_is_before_it() {
    let mut bench = Bench::new();
    bench.set_up(&running().watched(100, 7));
    bench.call(request(progress("a", 40, 60_000, "half"))).unwrap();
    let _: String = redis::cmd("XADD")
        .arg(stream())
        .arg("9999999999999999-0")
        .arg("foo")
        .arg("bar")
        .query(&mut bench.raw)
        .unwrap();
    bench.call(request(settle(&[("a", 40, ack())]))).unwrap();
    assert_eq!(
        describe(&bench.call(request(events(Some(7), None))).unwrap()),
        "9 a done of 30 at 1; | last 9"
    );
}

#[test]
fn a_queue_with_events_keeps_its_record_and_the_stream_ends_by_itself() {
    let mut bench = Bench::new();
    bench.set_up(&nothing().counts(COUNTS).resting());
    bench.call(request(keep(9))).unwrap();
    let life = |bench: &mut Bench, key: String| -> i64 {
        redis::cmd("PTTL").arg(key).query(&mut bench.raw).unwrap()
    };
    let record = crate::queue_state::real_key("q:queue", 0);
    assert_eq!(life(&mut bench, record.clone()), -1);
    bench.call(request(enqueue([plain("a")]))).unwrap();
    bench.call(request(remove("a", None))).unwrap();
    assert_eq!(life(&mut bench, record), -1);
    let left = life(&mut bench, stream());
    assert!(left > 6 * 86_400_000 && left <= 7 * 86_400_000, "{left}");
}

#[test]
fn who_waits_for_an_event_is_told_of_the_first_and_then_no_more() {
    let mut bench = Bench::new();
    bench.set_up(&running().watched(100, 7));
    for seq in [5, 6] {
        assert_eq!(describe(&bench.call(request(events(Some(7), Some(seq)))).unwrap()), "| last 7");
    }
    let (_, mut hints) = bench.hinted(|bench| bench.call(request(settle(&[("a", 40, nack(0))]))).unwrap());
    hints.sort();
    assert_eq!(hints, ["5", "6"]);
    let (_, hints) = bench.hinted(|bench| bench.call(request(remove("a", None))).unwrap());
    assert_eq!(hints, [""; 0], "they have not asked again");
}

#[test]
fn who_asks_after_an_event_that_is_yet_to_come_gets_what_there_is() {
    given(nothing().watched(100, 7).counts(COUNTS))
        .call(events(Some(99), None))
        .replies("| last 7")
        .changes_nothing();
    let mut bench = Bench::new();
    bench.set_up(&running().watched(100, 7));
    bench.call(request(remove("a", None))).unwrap();
    assert_eq!(
        describe(&bench.call(request(events(Some(1_000), None))).unwrap()),
        "8 a removed of 30 at 1; | last 8"
    );
}
