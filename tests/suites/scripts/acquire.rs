//! acquire.lua without others in line.

use std::time::Duration;

use stanchion::protocol::{Acquire, Fence};

use crate::case::{TTL, acquire, given, wait};
use crate::state::{BEYOND, WEEK, WINDOW, nothing};

/// What an earlier grant left.
const META: &str = "fence 100, born 50, owner x, since 1, calm_until {then+1000000}";
/// The same after another grant.
const GRANTED: &str = "fence {fence}, born 50, owner o, since {sec}, calm_until {then+1000000}";
/// The same two of a lock that somebody waited for, or with a token that ended.
const STIRRED: &str = "fence 100, born 50, owner x, since 1, calm_until 0";
const STIRRED_GRANTED: &str = "fence {fence}, born 50, owner o, since {sec}, calm_until 0";
/// Calm again after a grant.
const CALMED: &str = "fence {fence}, born 50, owner o, since {sec}, calm_until {now+60000}";

#[test]
fn a_free_lock_without_a_record_is_granted_and_gets_one() {
    let record = "fence {fence}, born {fence}, owner o, since {sec}, calm_until {now+60000}";
    given(nothing())
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(record, WEEK));
}

/// Calm says all that the others say: a waiter, and a token that ended, take it away.
#[test]
fn a_calm_lock_is_granted_without_a_look_at_anything_else() {
    let before = nothing().meta(&format!("{META}, wait_until {{then+2000}}, hand_offs 7"), WEEK);
    let after = format!("{GRANTED}, wait_until {{then+2000}}, hand_offs 7");
    for request in [acquire(1), wait(1, 5)] {
        given(before.clone())
            .call(request)
            .replies("granted {us} 5000")
            .leaves(nothing().lock("{T1}", TTL).meta(&after, WEEK));
    }
}

#[test]
fn a_record_is_kept_and_its_life_is_renewed_only_once_a_minute() {
    given(nothing().meta(META, 500_000))
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, 500_000));
    given(nothing().meta("fence 100, born 50, owner x, since 1, calm_until {then}", 500_000))
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&GRANTED.replace("then+1000000", "now+60000"), WEEK));
}

/// As long as the record's life can bear it, a calm lock does not renew it.
#[test]
fn a_lease_of_100_s_renews_the_record_of_a_calm_lock() {
    for (ttl, meta, life) in [(99_999, GRANTED, 500_000), (100_000, CALMED, WEEK)] {
        given(nothing().meta(META, 500_000))
            .call(Acquire { ttl: Duration::from_millis(ttl), ..acquire(1) })
            .replies(&format!("granted {{us}} {ttl}"))
            .leaves(nothing().lock("{T1}", ttl).meta(meta, life));
    }
}

#[test]
fn the_record_outlives_a_long_lease() {
    let ttl = Duration::from_millis(3 * WEEK);
    given(nothing().meta(META, WEEK))
        .call(Acquire { ttl, ..acquire(1) })
        .replies("granted {us} 4080000")
        .leaves(nothing().lock("{T1}", 3 * WEEK).meta(CALMED, 3 * WEEK + BEYOND));
}

/// Fences above 10^14 must not lose digits on their way through Lua: 9007199254740991 is 2^53 - 1.
#[test]
fn the_fence_is_the_largest_of_stored_plus_one_and_time_and_the_clients() {
    let cases = [
        ("100", 0, "{us}"),
        ("9007199254740989", 0, "9007199254740990"),
        ("9007199254740990", 0, "9007199254740991"),
        ("9007199254740001", 9_007_199_254_740_987, "9007199254740987"),
        ("9007199254740987", 9_007_199_254_740_987, "9007199254740988"),
        ("9007199254740986", 9_007_199_254_740_983, "9007199254740987"),
        ("100", 9_007_199_254_740_991, "9007199254740991"),
        ("0", 1, "{us}"),
    ];
    for (stored, min_fence, expected) in cases {
        given(nothing().meta(&META.replace("fence 100", &format!("fence {stored}")), WEEK))
            .call(Acquire { min_fence: Fence::new(min_fence), ..acquire(1) })
            .replies(&format!("granted {expected} 5000"))
            .leaves(nothing().lock("{T1}", TTL).meta(&GRANTED.replace("{fence}", expected), WEEK));
    }
}

/// `born` must not be later than the store's own time: a client that has seen larger fences would make
/// leases of before its own grant look forgotten.
#[test]
fn a_record_is_born_at_the_servers_time_at_the_latest() {
    let record = "fence 9007199254740991, born {us}, owner o, since {sec}, calm_until {now+60000}";
    given(nothing())
        .call(Acquire { min_fence: Fence::new(9_007_199_254_740_991), ..acquire(1) })
        .replies("granted 9007199254740991 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(record, WEEK));
}

#[test]
fn a_grant_ends_a_row_of_hand_offs() {
    given(nothing().meta(&format!("{STIRRED}, hand_offs 7"), WEEK))
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(CALMED, WEEK));
}

#[test]
fn a_try_on_a_held_lock_changes_nothing() {
    given(nothing().lock("{T2}", 3_000).meta(META, WEEK))
        .call(acquire(1))
        .replies("busy {~3000}")
        .changes_nothing();
    given(nothing().lock("{T2}", 3_000)).call(acquire(1)).replies("busy {~3000}").changes_nothing();
}

#[test]
fn a_try_behind_a_line_changes_nothing() {
    let line = nothing()
        .lock("{T2}", 3_000)
        .meta(&format!("{STIRRED}, wait_until {{then+2000}}"), WEEK)
        .line(&[(3, "1000")])
        .waiters(&[(3, "{then-500} 0 {C} 7")]);
    given(line).call(acquire(1)).replies("busy {~3000}").changes_nothing();
}

#[test]
fn a_repeated_acquire_finds_its_grant_and_never_shortens_it() {
    let held = |left| nothing().lock("{T1}", left).meta(META, WEEK);
    let confirmed = GRANTED.replace("{fence}", "100");
    given(held(9_000))
        .call(acquire(1))
        .replies("granted 100 {~9000}")
        .leaves(nothing().lock("{T1}", 9_000).meta(&confirmed, WEEK));
    given(held(1_500))
        .call(acquire(1))
        .replies("granted 100 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&confirmed, WEEK));
}

#[test]
fn a_repeated_acquire_raises_the_fence_to_the_clients_least() {
    given(nothing().lock("{T1}", 1_500).meta(META, WEEK))
        .call(Acquire { min_fence: Fence::new(777), ..acquire(1) })
        .replies("granted 777 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&GRANTED.replace("{fence}", "777"), WEEK));
}

#[test]
fn a_waiter_joins_the_line() {
    given(nothing().lock("{T2}", 3_000).meta(META, WEEK)).call(wait(1, 7)).replies("waiting {~3000}").leaves(
        nothing()
            .lock("{T2}", 3_000)
            .meta(&format!("{STIRRED}, wait_until {{now+2500}}"), WEEK)
            .line(&[(1, "{us}")])
            .waiters(&[(1, "{now} 0 o {C} 7")]),
    );
}

/// A foreign holder has no record; the one that a waiter makes must not stay for ever.
#[test]
fn a_waiter_without_a_record_makes_one_that_expires() {
    let noted = "share_until 0, share_windows 8, foreign_since {now}, foreign_seen {now}";
    given(nothing().lock("stranger", 3_000)).call(wait(1, 7)).replies("waiting {14..26}").leaves(
        nothing()
            .lock("stranger", 3_000)
            .meta(&format!("calm_until 0, wait_until {{now+2500}}, {noted}"), WEEK)
            .line(&[(1, "{us}")])
            .waiters(&[(1, "{now} 0 o {C} 7")]),
    );
}

/// Nobody tells when a locker of another program is done.
#[test]
fn only_the_first_in_line_asks_often_about_a_foreign_value() {
    let line = [(2, "900"), (1, "1000")];
    let waiters = |mine| [(2, "{then-100} 0 {C} 5"), (1, mine)];
    let state = |meta: &str, mine| {
        nothing()
            .lock("stranger", 9_000)
            .meta(&format!("{STIRRED}, {meta}"), WEEK)
            .line(&line)
            .waiters(&waiters(mine))
    };
    let turn = "wait_until {then+2400}, foreign_since {then-700}, foreign_seen {then-100}";
    let seen =
        "wait_until {now+2500}, share_until 0, share_windows 8, foreign_since {then-700}, foreign_seen {now}";
    given(state(turn, "{then-100} 0 {C} 7"))
        .call(wait(1, 8))
        .replies("waiting {~9000}")
        .leaves(state(seen, "{now} 0 o {C} 8"));
    let first = |meta: &str, mine| state(meta, mine).line(&[(1, "1000")]).waiters(&[(1, mine)]);
    given(first(turn, "{then-100} 0 {C} 7"))
        .call(wait(1, 8))
        .replies("waiting {14..26}")
        .leaves(first(seen, "{now} 0 o {C} 8"));
    // One that was seen long ago was another turn.
    let old = "wait_until {then+2400}, foreign_since {then-9000}, foreign_seen {then-3000}";
    given(first(old, "{then-100} 0 {C} 7"))
        .call(wait(1, 8))
        .replies("waiting {14..26}")
        .leaves(first(&seen.replace("{then-700}", "{now}"), "{now} 0 o {C} 8"));
    given(state(turn, "{then-100} 0 {C} 7")).call(acquire(3)).replies("busy {~9000}").changes_nothing();
}

#[test]
fn after_a_foreign_turn_the_row_may_last_twice_as_long() {
    let line = "wait_until {then+2400}";
    let turn = "foreign_since {then-4000}, foreign_seen {then-1000}, hand_offs 2";
    let before = nothing()
        .meta(&format!("{STIRRED}, {line}, {turn}"), WEEK)
        .line(&[(1, "900")])
        .waiters(&[(1, "{then-100} 0 {C} 7")]);
    let granted = format!("{STIRRED_GRANTED}, {line}, row_until {{now+6040}}");
    given(before)
        .call(wait(1, 7))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&granted, WEEK));
}

#[test]
fn a_poll_keeps_the_place_and_takes_back_an_unanswered_offer() {
    let line = [(3, "900"), (1, "1000"), (4, "1100")];
    let waiters = |mine| [(3, "{then-700} 0 {C} 5"), (1, mine), (4, "{then-200} 0 {C} 9")];
    let state = |mine| {
        nothing()
            .lock("{T2}", 3_000)
            .meta(&format!("{STIRRED}, wait_until {{now+2500}}"), WEEK)
            .line(&line)
            .waiters(&waiters(mine))
    };
    let before = state("{then-2000} 1 {C} 7").meta(&format!("{STIRRED}, wait_until {{then+500}}"), WEEK);
    given(before).call(wait(1, 8)).replies("waiting {~3000}").leaves(state("{now} 0 o {C} 8"));
}

#[test]
fn arrivals_grow_even_if_the_clock_went_back() {
    let future = "9007199254740000";
    let behind = "9007199254740001";
    let before = nothing()
        .lock("{T2}", 3_000)
        .meta(META, WEEK)
        .line(&[(3, future)])
        .waiters(&[(3, "{then-700} 0 {C} 5")]);
    given(before).call(wait(1, 7)).replies("waiting {~3000}").leaves(
        nothing()
            .lock("{T2}", 3_000)
            .meta(&format!("{STIRRED}, wait_until {{now+2500}}"), WEEK)
            .line(&[(3, future), (1, behind)])
            .waiters(&[(3, "{then-700} 0 {C} 5"), (1, "{now} 0 o {C} 7")]),
    );
}

#[test]
fn patience_decides_whether_to_join() {
    let held = || nothing().lock("{T2}", 3_000).meta(META, WEEK);
    let patient = |millis| Acquire { patience: Some(Duration::from_millis(millis)), ..wait(1, 7) };
    given(held()).call(patient(2_000)).replies("busy {~3000}").changes_nothing();
    given(held()).call(patient(3_000)).replies("waiting {~3000}").leaves(
        held()
            .meta(&format!("{STIRRED}, wait_until {{now+2500}}"), WEEK)
            .line(&[(1, "{us}")])
            .waiters(&[(1, "{now} 0 o {C} 7")]),
    );
    let for_ever = nothing().lock_for_ever("{T2}").meta(META, WEEK);
    given(for_ever).call(patient(9_999_999)).replies("busy for ever").changes_nothing();
}

#[test]
fn an_ended_token_gets_nothing() {
    let ended = |extra| nothing().meta(&format!("{STIRRED}, ended_until {{then+{extra}}}"), WEEK).ended(1);
    given(ended(60_000)).call(acquire(1)).replies("ended").changes_nothing();
    given(ended(60_000)).call(wait(1, 7)).replies("ended").changes_nothing();
    let held = ended(60_000).lock("{T2}", 3_000);
    given(held).call(wait(1, 7)).replies("ended").changes_nothing();
}

#[test]
fn another_tokens_end_is_its_own() {
    given(nothing().meta(&format!("{STIRRED}, ended_until {{then+60000}}"), WEEK).ended(2))
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(
            nothing()
                .lock("{T1}", TTL)
                .meta(&format!("{STIRRED_GRANTED}, ended_until {{then+60000}}"), WEEK)
                .ended(2),
        );
}

#[test]
fn during_a_foreign_share_a_free_lock_counts_as_held() {
    let shared = || nothing().meta(&format!("{STIRRED}, share_until {{then+200000}}"), WEEK);
    given(shared()).call(acquire(1)).replies("busy {~200000}").changes_nothing();
    given(shared()).call(wait(1, 7)).replies("waiting 1").leaves(
        nothing()
            .meta(&format!("{STIRRED}, share_until {{then+200000}}, wait_until {{now+2500}}"), WEEK)
            .line(&[(1, "{us}")])
            .waiters(&[(1, "{now} 0 o {C} 7")]),
    );
}

#[test]
fn after_a_foreign_share_a_free_lock_is_free() {
    given(nothing().meta(&format!("{STIRRED}, share_until {{then-1}}"), WEEK))
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&format!("{CALMED}, share_until {{then-1}}"), WEEK));
}

/// The line is looked at as long as there is one, whatever the record says of when somebody polled.
#[test]
fn a_line_is_looked_at_although_nobody_is_said_to_have_polled_lately() {
    let meta = format!("{STIRRED}, wait_until {{then-1}}");
    let before = |entry| nothing().meta(&meta, WEEK).line(&[(3, "900")]).waiters(&[(3, entry)]);
    given(before("{then-2600} 0 {C} 5"))
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&format!("{STIRRED_GRANTED}, wait_until {{then-1}}"), WEEK));
    given(before("{then-100} 0 {C} 5")).call(acquire(1)).replies("busy 1000").hints(5).leaves(
        nothing()
            .lock("{T3}", WINDOW)
            .meta(&meta.replace("fence 100", "fence {us}"), WEEK)
            .line(&[(3, "900")])
            .waiters(&[(3, "{then-100} 1 {C} 5")]),
    );
}

#[test]
fn a_waiter_silent_for_too_long_takes_its_own_entry_along() {
    let before = nothing()
        .meta(&format!("{STIRRED}, wait_until {{then-1}}"), WEEK)
        .line(&[(1, "900"), (3, "901")])
        .waiters(&[(1, "{then-2600} 0 {C} 7"), (3, "{then-2600} 0 {C} 5")]);
    given(before)
        .call(wait(1, 7))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&format!("{STIRRED_GRANTED}, wait_until {{then-1}}"), WEEK));
}
