//! cached_acquire.lua, store_value.lua and invalidate.lua.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stanchion::ErrorKind;
use stanchion::internals::{Clock, name_of_kind, store_config, token};
use stanchion::name::{LockKind, LockName};
use stanchion::protocol::{
    Acquire, AcquireReply, ClientId, Extend, ExtendReply, FailureKind, Fence, GRANT_WINDOW, Invalidate,
    Leave, Release, ReleaseReply, Reply, Request, StoreValue, StoreValueReply, Waiter,
};
use stanchion::store::Store;
use stanchion::store::sqlite::{SqliteStore, SqliteTarget};

use crate::case::{Bench, TTL, acquire, given, leave, release};
use crate::in_time::{Difference, in_time};
use crate::memory_full;
use crate::state::{Content, LINE_TTL, State, nothing, secret};

const FRESH: &str = "fresh_until {then+9000}, took 200, value old";
/// What `store_value` leaves: of the value's life the last part is stale.
const STORED: &str = "fresh_until {then+9000}, took 200, stale {then+9000} 21000, value old";
const STALE: &str = "fresh_until {then-1}, took 200, value old";
const META: &str = "fence 100, born 50, owner x, since 1";
/// The life of a value at set-up.
const LIFE: u64 = 30_000;

fn named(name: &str) -> LockName {
    name_of_kind(LockKind::Cached, name).unwrap()
}

/// Looks for the value, and computes it if need be.
fn begin(number: u128) -> Acquire {
    Acquire { name: named("a"), ..acquire(number) }
}

/// The same, and waits as `seq`.
fn join(number: u128, seq: u64) -> Acquire {
    Acquire { waiter: Some(Waiter { client: ClientId(0), seq }), ..begin(number) }
}

fn store(number: u128, fence: u64) -> StoreValue {
    StoreValue {
        name: named("a"),
        token: token(number),
        fence: Fence::new(fence),
        value: Arc::from(&b"new"[..]),
        ttl: Duration::from_secs(60),
        stale: Duration::from_secs(5),
        took: Duration::from_millis(70),
        acquire_resent: false,
    }
}

fn fields(text: &str) -> Content {
    let field = |text: &str| {
        let (name, value) = text.split_once(' ').expect("a field has a value");
        (name.to_owned(), value.to_owned())
    };
    Content::Hash(text.split(", ").map(field).collect())
}

trait Cached: Sized {
    fn value(self, text: &str, life: u64) -> Self;
    fn held(self, number: u128, ttl: u64) -> Self;
    fn record(self, text: &str, life: u64) -> Self;
    fn waiting(self, waiters: &[(u128, &str, &str)]) -> Self;
}

impl Cached for State {
    fn value(self, text: &str, life: u64) -> Self {
        self.with("cached-value", fields(text), Some(life))
    }

    fn held(self, number: u128, ttl: u64) -> Self {
        self.with("cached", Content::Text(format!("{{T{number}}}")), Some(ttl))
    }

    fn record(self, text: &str, life: u64) -> Self {
        self.with("cached-meta", fields(text), Some(life))
    }

    /// Token, arrival, entry.
    fn waiting(self, waiters: &[(u128, &str, &str)]) -> Self {
        let line = waiters.iter().map(|(number, arrival, _)| (secret(*number), (*arrival).to_owned()));
        let entries = waiters.iter().map(|(number, _, entry)| (secret(*number), (*entry).to_owned()));
        self.with("cached-line", Content::Zset(line.collect()), Some(LINE_TTL)).with(
            "cached-waiters",
            Content::Hash(entries.collect()),
            Some(LINE_TTL),
        )
    }
}

fn two_wait(state: State) -> State {
    state.waiting(&[(2, "900", "{then-100} 0 {C} 6"), (3, "901", "{then-90} 0 {C} 7")])
}

const GRANTED: &str = "fence {fence}, born {fence}, owner o, since {sec}";
const KEPT: u64 = 60_000;

#[test]
fn without_a_value_the_first_caller_computes() {
    given(nothing())
        .call(begin(1))
        .replies(&format!("granted {{us}} {TTL}"))
        .leaves(nothing().held(1, TTL).record(GRANTED, KEPT));
    given(nothing().held(2, 3_000)).call(begin(1)).replies("busy {~3000}").changes_nothing();
    given(nothing().held(2, 3_000))
        .call(join(1, 5))
        .replies("waiting {~3000}")
        .leaves(nothing().held(2, 3_000).waiting(&[(1, "{us}", "{now} 0 o {C} 5")]));
}

#[test]
fn a_fresh_value_is_the_answer() {
    given(nothing().value(FRESH, LIFE)).call(begin(1)).replies("cached old").changes_nothing();
    given(nothing().value(FRESH, LIFE).held(2, 3_000))
        .call(join(1, 5))
        .replies("cached old")
        .changes_nothing();
}

#[test]
fn it_counts_as_stale_so_many_computation_times_before_its_end() {
    let early = |early| Acquire { early, ..begin(1) };
    given(nothing().value(FRESH, LIFE)).call(early(44.0)).replies("cached old").changes_nothing();
    given(nothing().value(FRESH, LIFE))
        .call(early(45.0))
        .replies(&format!("granted {{us}} {TTL}"))
        .leaves(nothing().value(FRESH, LIFE).held(1, TTL).record(GRANTED, KEPT));
    given(nothing().value(FRESH, LIFE).held(2, 3_000))
        .call(early(45.0))
        .replies("cached old")
        .changes_nothing();
}

/// A script would wake those in line. It is asked for what is not fresh without a doubt.
#[test]
fn a_look_finds_a_fresh_value_without_a_script() {
    let look = |early| Acquire { early, looks: true, ..begin(9) };
    let held = |text: &str, life| two_wait(nothing().value(text, life).held(1, 3_000));
    given(held(STORED, LIFE)).call(look(0.0)).replies("cached old").changes_nothing();
    given(held(STORED, LIFE)).call(look(44.0)).replies("cached old").changes_nothing();
    let by_script = [
        (STORED.to_owned(), LIFE, 45.0),
        (STORED.replace("{then+9000}", "{then-1}"), 20_999, 0.0),
        // Written by an older library: over a newer one's, and without.
        (STORED.replace("stale {then+9000}", "stale {then+8000}"), LIFE, 0.0),
        (FRESH.to_owned(), LIFE, 0.0),
    ];
    for (text, life, early) in by_script {
        given(held(&text, life))
            .call(look(early))
            .replies("cached old")
            .hints(6)
            .hints(7)
            .leaves(nothing().value(&text, life).held(1, 3_000));
    }
    given(nothing())
        .call(look(0.0))
        .replies(&format!("granted {{us}} {TTL}"))
        .leaves(nothing().with("cached", Content::Text("{T9}".into()), Some(TTL)).record(GRANTED, KEPT));
}

#[tokio::test]
async fn tasks_look_for_a_value_in_the_same_way() {
    let mut bench = Bench::new();
    let before = two_wait(nothing().value(STORED, LIFE).held(1, 3_000));
    bench.set_up(&before);
    let until = Clock::System.now() + Duration::from_secs(5);
    for (looks, is_left_alone) in [(true, true), (false, false)] {
        let request = Request::Acquire(Acquire { looks, ..begin(9) });
        let reply = bench.store.perform_async(&request, until).await.unwrap();
        assert_eq!(reply, Reply::Acquire(AcquireReply::Cached(b"old".to_vec())));
        let real = bench.state();
        bench.context.after = bench.time();
        assert_eq!(before.differences(&real, &bench.context).is_empty(), is_left_alone);
    }
}

#[test]
fn a_stale_value_is_the_answer_while_another_computes() {
    given(nothing().value(STALE, LIFE).held(2, 3_000))
        .call(join(1, 5))
        .replies("cached old")
        .changes_nothing();
    given(nothing().value(STALE, LIFE))
        .call(begin(1))
        .replies(&format!("granted {{us}} {TTL}"))
        .leaves(nothing().value(STALE, LIFE).held(1, TTL).record(GRANTED, KEPT));
    // A copy of the acquire that was granted.
    given(nothing().value(STALE, LIFE).held(1, 3_000).record(META, KEPT))
        .call(begin(1))
        .replies(&format!("granted 100 {TTL}"))
        .leaves(
            nothing()
                .value(STALE, LIFE)
                .held(1, TTL)
                .record("fence 100, born 50, owner o, since {sec}", KEPT),
        );
}

#[test]
fn whoever_finds_a_value_wakes_those_in_line() {
    for (text, number) in [(FRESH, 2), (FRESH, 9), (STALE, 9)] {
        given(two_wait(nothing().value(text, LIFE)))
            .call(join(number, 6))
            .replies("cached old")
            .hints(6)
            .hints(7)
            .leaves(nothing().value(text, LIFE));
    }
}

#[test]
fn a_value_is_written_with_its_life_and_all_are_woken() {
    let stored = "fresh_until {now+60000}, took 70, stale {now+60000} 5000, value new";
    given(two_wait(nothing().value(STALE, 500).held(1, 3_000).record(META, KEPT)))
        .call(store(1, 100))
        .replies("stored")
        .hints(6)
        .hints(7)
        .leaves(nothing().value(stored, 65_000).record(META, KEPT));
    given(nothing().held(1, 3_000).record(META, KEPT))
        .call(StoreValue { acquire_resent: true, ..store(1, 100) })
        .replies("stored")
        .leaves(
            nothing()
                .value(stored, 65_000)
                .record(&format!("{META}, calm_until 0, ended_until {{now+60000}}"), KEPT)
                .with(&format!("cached-ended {}", secret(1)), Content::Text("1".into()), Some(60_000)),
        );
}

#[test]
fn only_the_holder_with_its_own_fence_may_write() {
    let gone = "gone fence 100 born 50 broken 0";
    let held = |number| two_wait(nothing().value(STALE, LIFE).held(number, 3_000).record(META, KEPT));
    given(held(2)).call(store(1, 100)).replies(gone).changes_nothing();
    given(held(1)).call(store(1, 99)).replies(gone).changes_nothing();
    given(nothing().record(META, KEPT)).call(store(1, 100)).replies(gone).changes_nothing();
    given(nothing()).call(store(1, 100)).replies("gone fence 0 born 0 broken 0").changes_nothing();
}

#[test]
fn an_invalidation_takes_the_value_and_the_lease() {
    let invalidate = || Invalidate { name: named("a") };
    given(nothing()).call(invalidate()).replies("invalidated").changes_nothing();
    given(nothing().value(FRESH, LIFE)).call(invalidate()).replies("invalidated").leaves(nothing());
    given(two_wait(nothing().value(FRESH, LIFE).held(1, 3_000).record(META, KEPT)))
        .call(invalidate())
        .replies("invalidated")
        .hints(6)
        .leaves(
            nothing()
                .held(2, 1_000)
                .record("fence {us}, born 50, owner x, since 1, broken 100", KEPT)
                .waiting(&[(2, "900", "{then-100} 1 {C} 6"), (3, "901", "{then-90} 0 {C} 7")]),
        );
}

#[test]
fn a_computation_that_fails_is_offered_to_the_next() {
    let after = |record: &str, life| {
        nothing()
            .held(2, 1_000)
            .record(record, life)
            .waiting(&[(2, "900", "{then-100} 1 {C} 6"), (3, "901", "{then-90} 0 {C} 7")])
    };
    let held = || two_wait(nothing().held(1, 3_000).record(META, KEPT));
    let offered = META.replace("100", "{us}");
    given(held())
        .call(Release { name: named("a"), ..release(1) })
        .replies("released")
        .hints(6)
        .leaves(after(&offered, KEPT));
    given(after("fence 100", KEPT)).call(join(2, 6)).replies(&format!("granted 100 {TTL}")).leaves(
        nothing().held(2, TTL).record("fence 100, owner o, since {sec}", KEPT).waiting(&[(
            3,
            "901",
            "{then-90} 0 {C} 7",
        )]),
    );
}

#[test]
fn with_memory_full_a_value_is_answered_and_none_is_begun_or_stored() {
    let server = memory_full::server();
    let full = |state: &State| memory_full::bench(&server, state);
    for state in [nothing().value(FRESH, LIFE), two_wait(nothing().value(FRESH, LIFE))] {
        let reply = full(&state).call(Request::Acquire(join(2, 6))).unwrap();
        assert_eq!(reply, Reply::Acquire(AcquireReply::Cached(b"old".to_vec())));
    }
    let held = || two_wait(nothing().value(STALE, LIFE).held(1, 9_000).record(META, KEPT));
    for (state, request) in [
        (nothing(), Request::Acquire(begin(1))),
        (nothing().value(STALE, LIFE), Request::Acquire(begin(1))),
        (nothing().held(2, 9_000), Request::Acquire(join(1, 5))),
        (held(), Request::StoreValue(store(1, 100))),
    ] {
        let mut bench = full(&state);
        let failure = bench.call(request.clone()).expect_err("memory is full");
        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable), "{request:?}");
        let real = bench.state();
        bench.context.after = bench.time();
        assert_eq!(state.differences(&real, &bench.context), "", "{request:?}");
    }
    assert!(full(&held()).call(Request::Leave(Leave { name: named("a"), ..leave(1) })).is_ok());
    assert!(full(&held()).call(Request::Invalidate(Invalidate { name: named("a") })).is_ok());
}

#[test]
fn a_key_of_another_type_is_found_before_anything_is_written() {
    let states = [
        nothing(),
        nothing().value(FRESH, LIFE),
        nothing().value(STALE, LIFE),
        two_wait(nothing().value(FRESH, LIFE)),
        two_wait(nothing()),
        two_wait(nothing().held(1, 9_000).record(META, KEPT)),
        nothing().held(2, 9_000).record(META, KEPT),
    ];
    let requests = [
        Request::Acquire(begin(1)),
        Request::Acquire(join(1, 5)),
        Request::StoreValue(store(1, 100)),
        Request::Invalidate(Invalidate { name: named("a") }),
    ];
    for kind in ["cached", "cached-meta", "cached-line", "cached-waiters", "cached-value"] {
        for (state, request) in states.iter().flat_map(|state| requests.iter().map(move |one| (state, one))) {
            let wrong = state.clone().with(kind, Content::List, Some(500_000));
            let mut bench = Bench::new();
            bench.set_up(&wrong);
            let result = bench.call(request.clone());
            let real = bench.state();
            bench.context.after = bench.time();
            match result {
                Err(failure) => {
                    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::WrongType), "{kind}: {request:?}");
                    assert_eq!(wrong.differences(&real, &bench.context), "", "{kind}: {request:?}");
                }
                // It did not need the key, so the key is as it was.
                Ok(_) => {
                    let there = real.0.get(&crate::state::key(kind));
                    assert!(
                        matches!(there, Some((Content::List, Some(_)))),
                        "{kind}: {request:?}: {there:?}"
                    );
                }
            }
        }
    }
}

/// What a reply says, without times and fences.
fn told(reply: &Reply) -> String {
    match reply {
        Reply::Acquire(AcquireReply::Granted { .. }) => "granted".into(),
        Reply::Acquire(AcquireReply::Waiting(_)) => "waiting".into(),
        Reply::Acquire(AcquireReply::Busy(_)) => "busy".into(),
        Reply::Extend(ExtendReply::Gone(_))
        | Reply::Release(ReleaseReply::Gone(_))
        | Reply::StoreValue(StoreValueReply::Gone(_)) => "gone".into(),
        Reply::Extend(_) => "extended".into(),
        other => format!("{other:?}"),
    }
}

/// Random sequences of verbs on both stores. Fences differ, so each store is told its own. Nothing is invalidated:
/// who is woken and finds the value gone keeps its place in SQLite, and goes to the end of the line on Redis.
#[test]
fn both_stores_answer_alike() {
    let bench = Bench::new();
    let clock = Clock::System;
    let memory =
        SqliteStore::open(SqliteTarget::Memory { name: None }, store_config(clock.clone(), 7).unwrap())
            .unwrap();
    let stores = [&bench.store as &dyn Store, &memory];
    let play = |seed: u64, round: &str| {
        let began = Instant::now();
        let name = named(&format!("both{seed} {round}"));
        let mut jitter = fastrand::Rng::with_seed(seed);
        let mut fences = [[0; 4]; 2];
        for _ in 0..30 {
            let user = jitter.usize(0..4);
            let (mine, waits, choice, early) =
                (token(user as u128 + 1), jitter.bool(), jitter.u32(0..20), jitter.bool());
            let answers = stores.iter().enumerate().map(|(which, place)| {
                let name = name.clone();
                let request = match choice {
                    0..=9 => Request::Acquire(Acquire {
                        name,
                        token: mine.clone(),
                        waiter: waits.then_some(Waiter { client: ClientId(7), seq: user as u64 }),
                        ttl: Duration::from_secs(60),
                        early: if early { 1e6 } else { 0.0 },
                        looks: !waits,
                        ..begin(1)
                    }),
                    10..=14 => Request::StoreValue(StoreValue {
                        name,
                        token: mine.clone(),
                        value: Arc::from(vec![0, user as u8, 255]),
                        ..store(1, fences[which][user])
                    }),
                    15 => Request::Extend(Extend::new(name, mine.clone(), Duration::from_secs(90))),
                    16..=18 => Request::Release(Release { name, token: mine.clone(), ..release(1) }),
                    _ => Request::Leave(Leave { name, token: mine.clone(), foreign_share: false }),
                };
                let reply = place.perform(&request, clock.now() + Duration::from_secs(5)).unwrap();
                if let Reply::Acquire(AcquireReply::Granted { fence, .. }) = reply {
                    fences[which][user] = fence.get();
                }
                (told(&reply), request)
            });
            let answers: Vec<_> = answers.collect();
            if answers[0].0 != answers[1].0 {
                let story =
                    format!("seed {seed}: {:?} and {:?} to {:?}", answers[0].0, answers[1].0, answers[0].1);
                return Err(Difference { after: began.elapsed(), story });
            }
        }
        Ok(())
    };
    for seed in 0..400 {
        in_time(GRANT_WINDOW, |round| play(seed, round));
    }
}
