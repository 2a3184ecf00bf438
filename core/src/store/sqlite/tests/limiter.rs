//! Limiters: what is SQLite's own. That they answer as on a server is shown by the suite `model`.

use std::time::Duration;

use super::{SECOND, Scratch, Stranger, memory, open_file, prefixes, token};
use crate::protocol::{
    GiveBack, LimitKind, Reply, Request, Rule, SLIDING_TRIM, TAKE_WAIT_MOST, Take, TakeReply,
};
use crate::store::sqlite::SqliteStore;

const HOUR: u64 = 3_600_000_000;

fn rule(kind: LimitKind, most: u32, per: u64) -> Rule {
    Rule { kind, most, per, burst: most }
}

fn take(store: &SqliteStore, name: &str, rule: Rule, count: u32, wait: Option<(Duration, u64)>) -> TakeReply {
    let name = prefixes().limiter_name(name).unwrap();
    let token = wait.map(|(_, number)| token(number));
    let wait_most = wait.map_or(Duration::ZERO, |(time, _)| time);
    match store.ask(Request::Take(Take { name, rule, count, wait_most, token })) {
        Reply::Take(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn give_back(store: &SqliteStore, name: &str, rule: Rule, count: u32, number: u64) -> bool {
    let name = prefixes().limiter_name(name).unwrap();
    store.ask(Request::GiveBack(GiveBack { name, rule, count, token: token(number) }))
        == Reply::GiveBack(true)
}

const NOW: TakeReply = TakeReply::Taken(Duration::ZERO);

#[test]
fn a_limit_outlives_the_process_and_the_boot() {
    let scratch = Scratch::new();
    for kind in LimitKind::ALL {
        let hourly = rule(kind, 1, HOUR);
        // Windows are those of the clock: the next one may begin while the test runs.
        let name = kind.name();
        assert_eq!(take(&open_file(&scratch.file()), name, hourly, 1, None), NOW);
        Stranger::open(&scratch.file()).sql("UPDATE store SET boot = 'another'");
        let again = take(&open_file(&scratch.file()), name, hourly, 1, None);
        assert!(kind == LimitKind::FixedWindow || again != NOW, "{kind:?}");
        assert_eq!(open_file(&scratch.file()).count("SELECT count(*) FROM limiter WHERE ends > 0"), 1);
        Stranger::open(&scratch.file()).sql("DELETE FROM limiter; DELETE FROM limiter_take");
    }
}

#[test]
fn a_take_that_comes_after_it_was_given_back_takes_nothing() {
    let (store, clock) = memory();
    for kind in LimitKind::ALL {
        let few = rule(kind, 2, HOUR);
        let wait = |number| Some((TAKE_WAIT_MOST, number));
        assert!(!give_back(&store, kind.name(), few, 1, 7));
        assert_eq!(take(&store, kind.name(), few, 1, wait(7)), TakeReply::Refused(Duration::ZERO));
        assert_eq!(take(&store, kind.name(), few, 2, wait(8)), NOW, "{kind:?}");
    }
    assert_eq!(store.count("SELECT count(*) FROM ended"), 1);
    // Longer than a copy can be on its way it is not remembered.
    clock.advance(61 * SECOND);
    assert!(!give_back(&store, "other", rule(LimitKind::Gcra, 1, HOUR), 1, 9));
    assert_eq!(store.count("SELECT count(*) FROM ended"), 1);
}

#[test]
fn what_means_nothing_any_more_is_dropped_by_later_takes() {
    let (store, clock) = memory();
    for kind in LimitKind::ALL {
        for number in 0..3 {
            assert_eq!(take(&store, &number.to_string(), rule(kind, 2, 1_000_000), 2, None), NOW);
        }
    }
    assert_eq!(store.count("SELECT count(*) FROM limiter"), 9);
    clock.advance(2 * SECOND);
    for _ in 0..3 {
        let _ = take(&store, "other", rule(LimitKind::Gcra, 1, HOUR), 1, None);
    }
    assert_eq!(store.count("SELECT count(*) FROM limiter"), 1);
    assert_eq!(store.count("SELECT count(*) FROM limiter_take"), 0);
}

#[test]
fn a_long_log_is_dropped_in_steps() {
    let (store, clock) = memory();
    let long = rule(LimitKind::SlidingWindow, 200, 1_000_000);
    for _ in 0..200 {
        assert_eq!(take(&store, "a", long, 1, None), NOW);
        clock.advance(Duration::from_micros(1));
    }
    assert_eq!(store.count("SELECT count(*) FROM limiter_take"), 200);
    clock.advance(2 * SECOND);
    let other = || take(&store, "other", rule(LimitKind::Gcra, 1_000, 1_000), 1, None);
    assert_eq!(other(), NOW);
    let left = 200 - i64::from(SLIDING_TRIM);
    assert_eq!(store.count("SELECT count(*) FROM limiter_take"), left);
    let shorter = Rule { most: 1, burst: 1, ..long };
    assert_eq!(take(&store, "a", shorter, 1, None), NOW);
    // It was of both: what has ended, and what the shorter one does not look at.
    assert_eq!(store.count("SELECT count(*) FROM limiter_take"), left + 1 - 2 * i64::from(SLIDING_TRIM));
    clock.advance(2 * SECOND);
    other();
    other();
    assert_eq!(store.count("SELECT count(*) FROM limiter_take"), 0);
}

#[test]
fn a_reservation_is_given_back_once_and_only_as_the_last() {
    let wait = |number| Some((TAKE_WAIT_MOST, number));
    for kind in LimitKind::ALL {
        let (store, _) = memory();
        let (name, one) = (kind.name(), rule(kind, 1, 1_000_000));
        assert_eq!(take(&store, name, one, 1, None), NOW);
        let TakeReply::Taken(first) = take(&store, name, one, 1, wait(1)) else { panic!("{kind:?}") };
        let TakeReply::Taken(second) = take(&store, name, one, 1, wait(2)) else { panic!("{kind:?}") };
        assert_eq!(second - first, SECOND, "{kind:?}");
        assert!(!give_back(&store, name, one, 1, 1), "{kind:?}: somebody is behind it");
        assert!(give_back(&store, name, one, 1, 2) && !give_back(&store, name, one, 1, 2), "{kind:?}");
        assert_eq!(take(&store, name, one, 1, wait(3)), TakeReply::Taken(second), "{kind:?}");
        assert!(!give_back(&store, name, one, 1, 2), "{kind:?}: a late copy takes nothing from another");
    }
}

#[test]
fn what_lies_further_ahead_than_can_be_is_closed_for_an_hour() {
    for kind in LimitKind::ALL {
        let (store, clock) = memory();
        let one = rule(kind, 1, 1_000_000);
        assert_eq!(take(&store, "a", one, 1, None), NOW);
        store.sql(
            "UPDATE limiter SET at = at + 365 * 24 * 3600 * 1000000, ends = at + 365 * 24 * 3600 * 1000000",
        );
        let TakeReply::Refused(retry) = take(&store, "a", one, 1, None) else { panic!("{kind:?}") };
        assert!(retry > TAKE_WAIT_MOST && retry <= TAKE_WAIT_MOST + SECOND, "{kind:?}: {retry:?}");
        clock.advance(retry - Duration::from_micros(1));
        let left = TakeReply::Refused(Duration::from_micros(1));
        assert_eq!(take(&store, "a", one, 1, None), left, "{kind:?}");
        clock.advance(Duration::from_micros(1));
        assert_eq!(take(&store, "a", one, 1, None), NOW, "{kind:?}");
    }
}

#[test]
fn a_file_of_version_12_gets_limiters() {
    let scratch = Scratch::new();
    open_file(&scratch.file()).try_acquire("l", 1).unwrap();
    Stranger::open(&scratch.file())
        .sql("DROP TABLE limiter; DROP TABLE limiter_take; PRAGMA user_version = 12");
    let store = open_file(&scratch.file());
    assert_eq!(take(&store, "a", rule(LimitKind::SlidingWindow, 1, HOUR), 1, None), NOW);
    assert_eq!(store.try_acquire("l", 2), None, "the lock is held as before");
}
