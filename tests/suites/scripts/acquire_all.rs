//! acquire_all.lua: what it does to one lock is what acquire.lua does; and all are taken, or none.

use std::time::Duration;

use stanchion::internals::{lock_name, token};
use stanchion::protocol::{AcquireAll, Fence};

use crate::case::{TTL, acquire, given};
use crate::state::{BEYOND, Content, State, WEEK, nothing};

/// What an earlier grant left.
const META: &str = "fence 100, born 50, owner x, since 1, calm_until {then+1000000}";
const STIRRED: &str = "fence 100, born 50, owner x, since 1, calm_until 0";
const CALMED: &str = "fence {fence}, born 50, owner o, since {sec}, calm_until {now+60000}";

/// A request for all of these.
pub fn all(names: &[&str]) -> AcquireAll {
    AcquireAll {
        locks: names.iter().map(|name| (lock_name(name).unwrap(), Fence::NONE)).collect(),
        token: token(1),
        ttl: Duration::from_millis(TTL),
        owner: "o".into(),
    }
}

/// Another lock's key.
fn with_b(mut state: State, value: &str) -> State {
    let key = lock_name("b").unwrap().key().to_owned();
    state.0.insert(key, (Content::Text(value.to_owned()), Some(TTL)));
    state
}

/// Each row: the state before, and what both verbs leave.
#[test]
fn one_lock_is_granted_as_by_an_acquire() {
    let new = "fence {fence}, born {fence}, owner o, since {sec}, calm_until {now+60000}";
    let kept = "fence {fence}, born 50, owner o, since {sec}, calm_until {then+1000000}";
    let ended = "fence 100, born 50, owner x, since 1, calm_until 0, ended_until {then+9000}";
    let still_ended = "fence {fence}, born 50, owner o, since {sec}, calm_until 0, ended_until {then+9000}";
    let rows = [
        (nothing(), nothing().meta(new, WEEK)),
        (nothing().meta(META, 500_000), nothing().meta(kept, 500_000)),
        (nothing().meta(STIRRED, WEEK), nothing().meta(CALMED, WEEK)),
        (nothing().meta(&format!("{STIRRED}, hand_offs 7"), WEEK), nothing().meta(CALMED, WEEK)),
        (
            nothing().meta(&format!("{STIRRED}, wait_until {{then-9}}"), WEEK),
            nothing().meta(&format!("{CALMED}, wait_until {{then-9}}"), WEEK),
        ),
        (nothing().meta(ended, WEEK).ended(2), nothing().meta(still_ended, WEEK).ended(2)),
    ];
    for (before, after) in rows {
        let after = after.lock("{T1}", TTL);
        given(before.clone()).call(acquire(1)).replies("granted {us} 5000").leaves(after.clone());
        given(before).call(all(&["a"])).replies("all granted {us}").leaves(after);
    }
}

#[test]
fn the_record_outlives_a_long_lease() {
    let ttl = Duration::from_millis(3 * WEEK);
    given(nothing().meta(META, WEEK))
        .call(AcquireAll { ttl, ..all(&["a"]) })
        .replies("all granted {us}")
        .leaves(nothing().lock("{T1}", 3 * WEEK).meta(CALMED, 3 * WEEK + BEYOND));
}

#[test]
fn so_does_that_of_a_lock_with_a_token_that_ended() {
    let ttl = Duration::from_millis(3 * WEEK);
    let ended = ", calm_until 0, ended_until {then+9000}";
    let meta = "fence 100, born 50, owner x, since 1";
    given(nothing().meta(&format!("{meta}{ended}"), WEEK).ended(2))
        .call(AcquireAll { ttl, ..all(&["a"]) })
        .replies("all granted {us}")
        .leaves(
            nothing()
                .lock("{T1}", 3 * WEEK)
                .meta(&format!("fence {{fence}}, born 50, owner o, since {{sec}}{ended}"), 3 * WEEK + BEYOND)
                .ended(2),
        );
}

#[test]
fn the_fence_is_the_largest_of_stored_plus_one_and_time_and_the_clients() {
    for (stored, least, expected) in [
        ("9007199254740989", 0, "9007199254740990"),
        ("9007199254740986", 9_007_199_254_740_983, "9007199254740987"),
        ("100", 9_007_199_254_740_991, "9007199254740991"),
    ] {
        given(nothing().meta(&STIRRED.replace("fence 100", &format!("fence {stored}")), WEEK))
            .call(AcquireAll { locks: vec![(lock_name("a").unwrap(), Fence::new(least))], ..all(&[]) })
            .replies(&format!("all granted {expected}"))
            .leaves(nothing().lock("{T1}", TTL).meta(&CALMED.replace("{fence}", expected), WEEK));
    }
}

#[test]
fn a_lock_that_is_not_free_changes_nothing() {
    let waits = format!("{STIRRED}, wait_until {{then+2000}}");
    let rows = [
        nothing().lock("{T2}", 3_000),
        nothing().lock_for_ever("stranger"),
        nothing().lock("{T2}", 3_000).meta(META, WEEK),
        nothing().meta(&waits, WEEK),
        nothing().meta(&waits, WEEK).line(&[(3, "1000")]).waiters(&[(3, "{then-500} 0 {C} 7")]),
        nothing().meta(&format!("{STIRRED}, share_until {{then+2000}}"), WEEK),
    ];
    for state in rows {
        given(state.clone()).call(all(&["a"])).replies("not all").changes_nothing();
        given(state.clone()).call(all(&["b", "a"])).replies("not all").changes_nothing();
        given(state).call(all(&["a", "b"])).replies("not all").changes_nothing();
    }
}

#[test]
fn one_that_is_held_leaves_the_others_free() {
    given(with_b(nothing(), "other")).call(all(&["a", "b"])).replies("not all").changes_nothing();
    given(with_b(nothing().meta(STIRRED, WEEK), "other"))
        .call(all(&["a", "b"]))
        .replies("not all")
        .changes_nothing();
}

/// A copy of the request that took them.
#[test]
fn a_copy_finds_its_own_token_and_neither_raises_the_fence_nor_shortens_the_lease() {
    let taken = |ttl| nothing().lock("{T1}", ttl).meta(META, WEEK);
    let again = "fence 100, born 50, owner o, since {sec}, calm_until {then+1000000}";
    for (left, after) in [(3_000, TTL), (9_000, 9_000)] {
        given(taken(left))
            .call(all(&["a"]))
            .replies("all granted 100")
            .leaves(nothing().lock("{T1}", after).meta(again, WEEK));
    }
}

/// It would be granted to whoever comes, past those who wait.
#[test]
fn a_copy_does_not_calm_a_lock_that_others_wait_for() {
    let waited = |meta: &str| {
        let meta = format!("{meta}, calm_until 0, wait_until {{then+2000}}");
        nothing()
            .lock("{T1}", 9_000)
            .meta(&meta, WEEK)
            .line(&[(3, "1000")])
            .waiters(&[(3, "{then-500} 0 {C} 7")])
    };
    given(waited("fence 100, born 50, owner x, since 1"))
        .call(all(&["a"]))
        .replies("all granted 100")
        .leaves(waited("fence 100, born 50, owner o, since {sec}"));
}

#[test]
fn a_token_that_ended_gets_nothing() {
    let meta = "fence 100, born 50, owner x, since 1, calm_until 0, ended_until {then+60000}";
    let state = nothing().meta(meta, WEEK).ended(1);
    given(state.clone()).call(all(&["a"])).replies("all ended").changes_nothing();
    given(state).call(all(&["b", "a"])).replies("all ended").changes_nothing();
}
