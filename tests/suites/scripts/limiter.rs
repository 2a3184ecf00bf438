//! Limiters: what is stored and answered, at a time that the test sets, to the microsecond.

use std::time::Duration;

use stanchion::ErrorKind;
use stanchion::internals::{limiter_name, token};
use stanchion::protocol::{FailureKind, GiveBack, LimitKind, Reply, Request, Rule, Take, TakeReply};
use stanchion_tests::shared;
use stanchion_tests::timed::TimedServer;

use crate::case::{Bench, describe};
use crate::memory_full;
use crate::state::{Content, Context, State, nothing, secret};

/// A full second.
const NOW: u64 = 1_900_000_000_000_000;
/// How long a reservation may be ahead, in us.
const MOST: u64 = 3_600_000_000;
/// How much longer a key lives than it means anything, in ms.
const REST: u64 = 1_000;

/// Ten per second, in bursts of three.
const GCRA: Rule = Rule { kind: LimitKind::Gcra, most: 10, per: 1_000_000, burst: 3 };
const FIXED: Rule = Rule { kind: LimitKind::FixedWindow, most: 3, per: 1_000_000, burst: 3 };
const SLIDING: Rule = Rule { kind: LimitKind::SlidingWindow, most: 3, per: 1_000_000, burst: 3 };

fn trying(rule: Rule, count: u32) -> Request {
    let name = limiter_name("a").unwrap();
    Request::Take(Take { name, rule, count, wait_most: Duration::ZERO, token: None })
}

/// In the name of token 1.
fn waiting(rule: Rule, count: u32, wait_us: u64) -> Request {
    let (name, token) = (limiter_name("a").unwrap(), Some(token(1)));
    Request::Take(Take { name, rule, count, wait_most: Duration::from_micros(wait_us), token })
}

fn giving_back(rule: Rule, count: u32) -> Request {
    Request::GiveBack(GiveBack { name: limiter_name("a").unwrap(), rule, count, token: token(1) })
}

/// What is stored of a limiter: of one with a log each entry, with what it counts.
#[derive(Clone, Debug)]
enum Stored {
    Nothing,
    Text(String),
    Log(Vec<(String, u64)>),
}

/// A plain number, relative to now.
fn at(us: i64) -> Stored {
    Stored::Text(NOW.checked_add_signed(us).unwrap().to_string())
}

/// The same of a reservation of this token.
fn reserved(us: i64, number: u128) -> Stored {
    Stored::Text(format!("{} {}", NOW.checked_add_signed(us).unwrap(), secret(number)))
}

/// Entries of a log, relative to now; those with a token are reservations.
fn log(entries: &[(i64, u128, u64)]) -> Stored {
    let entry = |(us, number, total): &(i64, u128, u64)| {
        let at = NOW.checked_add_signed(*us).unwrap();
        let text = if *number == 0 { at.to_string() } else { format!("{at} {}", secret(*number)) };
        (text, *total)
    };
    Stored::Log(entries.iter().map(entry).collect())
}

fn state(rule: Rule, stored: Stored, ttl: u64) -> State {
    let content = match stored {
        Stored::Nothing => return nothing(),
        Stored::Text(text) => Content::Text(text),
        Stored::Log(entries) => {
            Content::Zset(entries.into_iter().map(|(text, total)| (text, total.to_string())).collect())
        }
    };
    nothing().with(rule.kind.name(), content, Some(ttl))
}

/// State before, request, reply, state after and its life in ms. `None` changes nothing.
#[track_caller]
fn check(rule: Rule, before: Stored, request: &Request, reply: &str, after: Option<(Stored, u64)>) {
    let mut server = TimedServer::at(&shared().fresh_db());
    let time = |server: &mut TimedServer| {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut server.raw).unwrap();
        seconds * 1_000_000 + micros
    };
    let mut context = Context { then: time(&mut server), ..Context::default() };
    let before = state(rule, before, 500_000);
    before.set_up(&mut server.raw, &context);
    let real = server.perform(request, NOW).unwrap();
    assert_eq!(describe(&real), reply);
    let mut after = after.map_or(before, |(stored, ttl)| state(rule, stored, ttl));
    if matches!(request, Request::GiveBack(_)) {
        // A copy of the take may come yet.
        after = after.ended(1);
    }
    let real = State::read(&mut server.raw);
    context.after = time(&mut server);
    assert_eq!(after.differences(&real, &context), "");
}

#[test]
fn the_first_take_of_a_rate_is_at_once_and_the_key_ends_with_it() {
    check(GCRA, Stored::Nothing, &trying(GCRA, 1), "taken 0", Some((at(100_000), 100 + REST)));
    check(GCRA, Stored::Nothing, &trying(GCRA, 3), "taken 0", Some((at(300_000), 300 + REST)));
    check(GCRA, Stored::Nothing, &waiting(GCRA, 1, MOST), "taken 0", Some((at(100_000), 100 + REST)));
    check(GCRA, at(-5), &trying(GCRA, 1), "taken 0", Some((at(100_000), 100 + REST)));
    check(GCRA, at(0), &trying(GCRA, 3), "taken 0", Some((at(300_000), 300 + REST)));
}

#[test]
fn what_is_left_of_a_burst_is_taken_at_once() {
    check(GCRA, at(200_000), &trying(GCRA, 1), "taken 0", Some((at(300_000), 300 + REST)));
    check(GCRA, at(200_001), &trying(GCRA, 1), "refused 1", None);
    check(GCRA, at(100_000), &trying(GCRA, 2), "taken 0", Some((at(300_000), 300 + REST)));
    check(GCRA, at(100_001), &trying(GCRA, 2), "refused 1", None);
    check(GCRA, at(1), &trying(GCRA, 3), "refused 1", None);
}

#[test]
fn who_can_wait_reserves_and_who_cannot_is_told_for_how_long() {
    let after = (reserved(350_000, 1), 350 + REST);
    check(GCRA, at(250_000), &waiting(GCRA, 1, 50_000), "taken 50000", Some(after.clone()));
    check(GCRA, reserved(250_000, 2), &waiting(GCRA, 1, MOST), "taken 50000", Some(after));
    check(GCRA, at(250_000), &waiting(GCRA, 1, 49_999), "refused 50000", None);
    check(GCRA, reserved(250_000, 2), &trying(GCRA, 1), "refused 50000", None);
}

#[test]
fn a_rate_that_is_further_ahead_than_can_be_is_closed_for_an_hour() {
    let most = i64::try_from(MOST).unwrap() + 300_000;
    let closed = Some((at(most), MOST / 1_000 + 300 + REST));
    check(GCRA, at(most), &trying(GCRA, 1), "refused 3600100000", None);
    for ahead in
        [at(most + 1), reserved(90 * most, 2), Stored::Text("nan".into()), Stored::Text("inf".into())]
    {
        check(GCRA, ahead, &waiting(GCRA, 1, MOST), "refused 3600100000", closed.clone());
    }
    check(
        GCRA,
        Stored::Text("stranger".into()),
        &trying(GCRA, 1),
        "taken 0",
        Some((at(100_000), 100 + REST)),
    );
}

#[test]
fn a_reservation_of_a_rate_is_given_back_if_it_is_the_last() {
    let request = &giving_back(GCRA, 2);
    check(GCRA, reserved(500_000, 1), request, "given back", Some((at(300_000), 300 + REST)));
    check(GCRA, reserved(200_000, 1), request, "given back", Some((Stored::Nothing, 0)));
    for gone in [reserved(500_000, 2), at(500_000), Stored::Nothing, Stored::Text("stranger".into())] {
        check(GCRA, gone, request, "gone", None);
    }
}

#[test]
fn a_window_gives_what_it_has() {
    check(FIXED, Stored::Nothing, &trying(FIXED, 2), "taken 0", Some((at(2), 1_000 + REST)));
    check(FIXED, at(2), &trying(FIXED, 1), "taken 0", Some((at(3), 1_000 + REST)));
    check(FIXED, at(-999_997), &trying(FIXED, 3), "taken 0", Some((at(3), 1_000 + REST)));
    check(FIXED, at(3), &trying(FIXED, 1), "refused 1000000", None);
    check(FIXED, at(2), &trying(FIXED, 2), "refused 1000000", None);
    check(FIXED, at(1_000_001), &trying(FIXED, 1), "refused 1000000", None);
    check(FIXED, at(1_000_003), &trying(FIXED, 1), "refused 2000000", None);
}

#[test]
fn a_window_that_has_begun_has_less_time_to_live() {
    let shifted = Rule { per: 7_000_000, ..FIXED };
    let begun = (NOW % 7_000_000).cast_signed();
    assert_ne!(begun, 0, "the test is about the middle of a window");
    let left = (7_000_000 - begun).cast_unsigned();
    let after = Some((at(3 - begun), left.div_ceil(1_000) + REST));
    check(shifted, at(2 - begun), &trying(shifted, 1), "taken 0", after);
    check(shifted, at(3 - begun), &trying(shifted, 1), &format!("refused {left}"), None);
}

#[test]
fn a_window_to_come_is_reserved() {
    let after = (reserved(1_000_001, 1), 2_000 + REST);
    check(FIXED, at(3), &waiting(FIXED, 1, 1_000_000), "taken 1000000", Some(after.clone()));
    check(FIXED, at(3), &waiting(FIXED, 1, 999_999), "refused 1000000", None);
    let after = (reserved(1_000_003, 1), 2_000 + REST);
    check(FIXED, reserved(1_000_002, 2), &waiting(FIXED, 1, MOST), "taken 1000000", Some(after));
}

#[test]
fn a_window_further_ahead_than_can_be_is_closed_for_an_hour() {
    let most = i64::try_from(MOST).unwrap() + 1_000_000;
    check(FIXED, at(most), &trying(FIXED, 1), "refused 3601000000", None);
    let closed = Some((at(most), MOST / 1_000 + 2_000 + REST));
    for ahead in [at(most + 1), reserved(90 * most, 2), Stored::Text("nan".into())] {
        check(FIXED, ahead, &waiting(FIXED, 1, MOST), "refused 3601000000", closed.clone());
    }
}

#[test]
fn a_reservation_of_a_window_is_given_back_if_it_is_the_last() {
    let request = &giving_back(FIXED, 2);
    check(FIXED, reserved(1_000_003, 1), request, "given back", Some((at(1_000_001), 2_000 + REST)));
    check(FIXED, reserved(-999_998, 1), request, "given back", Some((Stored::Nothing, 0)));
    for gone in [reserved(1_000_003, 2), at(1_000_003), Stored::Nothing] {
        check(FIXED, gone, request, "gone", None);
    }
}

#[test]
fn a_log_notes_when_some_were_taken() {
    let first = Some((log(&[(0, 0, 2)]), 1_000 + REST));
    check(SLIDING, Stored::Nothing, &trying(SLIDING, 2), "taken 0", first);
    let before = log(&[(-999_999, 0, 2)]);
    let after = Some((log(&[(-999_999, 0, 2), (0, 0, 3)]), 1_000 + REST));
    check(SLIDING, before.clone(), &trying(SLIDING, 1), "taken 0", after);
    check(SLIDING, before, &trying(SLIDING, 2), "refused 1", None);
    let full = log(&[(-800_000, 0, 1), (-500_000, 0, 3)]);
    check(SLIDING, full.clone(), &trying(SLIDING, 1), "refused 200000", None);
    check(SLIDING, full.clone(), &trying(SLIDING, 2), "refused 500000", None);
    check(SLIDING, full, &trying(SLIDING, 3), "refused 500000", None);
}

#[test]
fn what_is_taken_at_one_time_is_one_entry() {
    let after = Some((log(&[(0, 0, 3)]), 1_000 + REST));
    check(SLIDING, log(&[(0, 0, 2)]), &trying(SLIDING, 1), "taken 0", after);
}

#[test]
fn a_log_forgets_what_no_window_has_any_more() {
    let before = [(-3_000_000, 0, 6), (-2_000_000, 0, 7), (-1_500_000, 0, 8), (-1_000_000, 0, 9)];
    // One more than a window has: this one may be given back.
    let after = Some((log(&[before[1], before[2], before[3], (0, 0, 10)]), 1_000 + REST));
    check(SLIDING, log(&before), &trying(SLIDING, 1), "taken 0", after);
    let many: Vec<_> = (1..=100_i64).map(|total| (-2_000_100 + total, 0, total.cast_unsigned())).collect();
    let mut left = many[64..].to_vec();
    left.push((0, 0, 103));
    check(SLIDING, log(&many), &trying(SLIDING, 3), "taken 0", Some((log(&left), 1_000 + REST)));
}

#[test]
fn a_place_in_a_log_is_reserved_behind_those_before() {
    let full = [(-800_000, 0, 1), (-500_000, 0, 3)];
    let after = (log(&[full[0], full[1], (200_000, 1, 4)]), 1_200 + REST);
    check(SLIDING, log(&full), &waiting(SLIDING, 1, 200_000), "taken 200000", Some(after));
    check(SLIDING, log(&full), &waiting(SLIDING, 1, 199_999), "refused 200000", None);
    // One that would have room now is not before those who are in line.
    let line = [(-500_000, 0, 1), (400_000, 2, 2)];
    let after = (log(&[line[0], line[1], (400_000, 1, 3)]), 1_400 + REST);
    check(SLIDING, log(&line), &waiting(SLIDING, 1, MOST), "taken 400000", Some(after));
    check(SLIDING, log(&line), &trying(SLIDING, 1), "refused 400000", None);
}

#[test]
fn a_log_further_ahead_than_can_be_is_closed_for_an_hour() {
    let most = i64::try_from(MOST).unwrap();
    check(SLIDING, log(&[(most, 2, 1)]), &trying(SLIDING, 1), "refused 3600000000", None);
    let after = Some((log(&[(most + 1, 2, 1), (most, 0, 4)]), MOST / 1_000 + 1_000 + REST));
    check(SLIDING, log(&[(most + 1, 2, 1)]), &waiting(SLIDING, 1, MOST), "refused 3601000000", after);
    let closed = log(&[(most + 1, 2, 1), (most, 0, 4)]);
    check(SLIDING, closed, &trying(SLIDING, 1), "refused 3601000000", None);
    let stranger = Stored::Log(vec![("stranger".into(), 7)]);
    let after = Stored::Log(vec![("stranger".into(), 7), ((NOW + MOST).to_string(), 10)]);
    let lives = MOST / 1_000 + 1_000 + REST;
    check(SLIDING, stranger, &trying(SLIDING, 1), "refused 3601000000", Some((after, lives)));
}

#[test]
fn a_place_in_a_log_is_given_back_if_it_is_the_last() {
    let request = &giving_back(SLIDING, 1);
    let after = Some((log(&[(-500_000, 0, 3)]), 500_000));
    check(SLIDING, log(&[(-500_000, 0, 3), (500_000, 1, 4)]), request, "given back", after);
    let after = Some((log(&[(300_000, 0, 3)]), 500_000));
    check(SLIDING, log(&[(300_000, 1, 3), (500_000, 1, 4)]), request, "given back", after);
    for gone in [log(&[(500_000, 1, 1), (500_000, 2, 2)]), log(&[(-5, 0, 1)]), Stored::Nothing] {
        check(SLIDING, gone, request, "gone", None);
    }
}

#[test]
fn a_take_that_comes_after_it_was_given_back_takes_nothing() {
    for rule in RULES {
        let mut bench = Bench::new();
        assert_eq!(bench.call(giving_back(rule, 1)).unwrap(), Reply::GiveBack(false));
        let late = bench.call(waiting(rule, 1, MOST)).unwrap();
        assert_eq!(late, Reply::Take(TakeReply::Refused(Duration::ZERO)), "{}", rule.kind.name());
        // All of it is there yet.
        assert_eq!(bench.call(trying(rule, 3)).unwrap(), Reply::Take(TakeReply::Taken(Duration::ZERO)));
        // So it is for the copy of one that was carried out, and given back.
        let Reply::Take(TakeReply::Refused(_)) = bench.call(waiting(rule, 1, MOST)).unwrap() else {
            panic!("{} took again", rule.kind.name())
        };
    }
}

const RULES: [Rule; 3] = [GCRA, FIXED, SLIDING];

fn requests(rule: Rule) -> [Request; 3] {
    [trying(rule, 1), waiting(rule, 1, MOST), giving_back(rule, 1)]
}

#[test]
fn a_key_of_another_type_is_an_error_before_any_write() {
    for rule in RULES {
        for request in requests(rule) {
            let mut bench = Bench::new();
            let wrong = nothing().with(rule.kind.name(), Content::List, Some(500_000));
            bench.set_up(&wrong);
            let failure = bench.call(request).expect_err(rule.kind.name());
            assert_eq!(failure.kind, FailureKind::Final(ErrorKind::WrongType), "{}", rule.kind.name());
            let real = bench.state();
            bench.context.after = bench.time();
            assert_eq!(wrong.differences(&real, &bench.context), "");
        }
    }
}

#[test]
fn with_memory_full_a_take_fails_whole_and_what_was_reserved_can_be_given_back() {
    let server = memory_full::server();
    let soon = |bench: &mut Bench| bench.time() + 60_000_000;
    for rule in RULES {
        let mut bench = memory_full::bench(&server, &nothing());
        let failure = bench.call(trying(rule, 1)).expect_err(rule.kind.name());
        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable), "{}", rule.kind.name());
        assert!(bench.state().0.is_empty(), "{}", rule.kind.name());

        let at = format!("{} {}", soon(&mut bench), secret(1));
        let content = match rule.kind {
            LimitKind::SlidingWindow => Content::Zset(vec![(at, "1".into())]),
            _ => Content::Text(at),
        };
        let reserved = nothing().with(rule.kind.name(), content, Some(100_000));
        let mut bench = memory_full::bench(&server, &reserved);
        assert_eq!(bench.call(giving_back(rule, 1)).unwrap(), Reply::GiveBack(true), "{}", rule.kind.name());
        assert_eq!(bench.call(giving_back(rule, 1)).unwrap(), Reply::GiveBack(false), "{}", rule.kind.name());
    }
}

/// The time is the server's own otherwise.
#[test]
fn the_server_decides_what_time_it_is() {
    let mut bench = Bench::new();
    let take = |bench: &mut Bench| match bench.call(trying(GCRA, 3)).unwrap() {
        Reply::Take(reply) => reply,
        other => panic!("{other:?}"),
    };
    assert_eq!(take(&mut bench), TakeReply::Taken(Duration::ZERO));
    let TakeReply::Refused(retry) = take(&mut bench) else { panic!("a second burst") };
    let passed = Duration::from_micros(bench.context.after - bench.context.before);
    assert!(retry <= Duration::from_millis(300) && !retry.is_zero(), "{retry:?} after {passed:?}");
}
