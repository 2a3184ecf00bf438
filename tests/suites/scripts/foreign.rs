//! acquire.lua and values that other programs wrote.

use stanchion::protocol::{Acquire, Digest};

use crate::case::{TTL, acquire, given, wait};
use crate::state::{WEEK, WINDOW, nothing};

/// SHA-1 of "stranger".
const STRANGER: &str = "ed5acfe897a4c94a0dfe385ec1ab2087fdf23678";
const META: &str = "fence 100, born 50, owner x, since 1, calm_until {then+1000000}";
const GRANTED: &str = "fence {fence}, born 50, owner o, since {sec}, calm_until {then+1000000}";
/// 365 days in milliseconds, and some.
const OVER_A_YEAR: u64 = 31_536_000_000 + 60_000;

fn adopting(mut acquire: Acquire, digest: &str) -> Acquire {
    acquire.adopt = Some(Digest(digest.into()));
    acquire
}

#[test]
fn a_foreign_value_that_expires_is_busy_and_has_no_digest() {
    given(nothing().lock("stranger", 3_000)).call(acquire(1)).replies("busy {~3000}").changes_nothing();
}

#[test]
fn a_foreign_value_that_never_expires_is_busy_and_has_a_digest() {
    given(nothing().lock_for_ever("stranger"))
        .call(acquire(1))
        .replies(&format!("busy for ever {STRANGER}"))
        .changes_nothing();
    given(nothing().lock("stranger", OVER_A_YEAR))
        .call(acquire(1))
        .replies(&format!("busy {{~{OVER_A_YEAR}}} {STRANGER}"))
        .changes_nothing();
}

#[test]
fn our_own_value_is_never_up_for_adoption() {
    given(nothing().lock_for_ever("{T2}").meta(META, WEEK))
        .call(acquire(1))
        .replies("busy for ever")
        .changes_nothing();
    let marker = format!("9999999999999999{}", "0".repeat(39));
    given(nothing().lock_for_ever(&marker).meta(META, WEEK))
        .call(acquire(1))
        .replies("busy for ever")
        .changes_nothing();
}

#[test]
fn the_value_with_the_digest_is_taken_over() {
    for stuck in [nothing().lock_for_ever("stranger"), nothing().lock("stranger", OVER_A_YEAR)] {
        given(stuck.meta(META, WEEK))
            .call(adopting(acquire(1), STRANGER))
            .replies("granted {us} 5000")
            .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, WEEK));
    }
}

#[test]
fn another_value_than_the_one_seen_is_not_taken_over() {
    given(nothing().lock_for_ever("stranger").meta(META, WEEK))
        .call(adopting(acquire(1), &"0".repeat(40)))
        .replies(&format!("busy for ever {STRANGER}"))
        .changes_nothing();
}

#[test]
fn a_value_that_expires_after_all_is_not_taken_over() {
    given(nothing().lock("stranger", 90_000).meta(META, WEEK))
        .call(adopting(acquire(1), STRANGER))
        .replies("busy {~90000}")
        .changes_nothing();
}

#[test]
fn an_adopted_lock_goes_to_the_head_of_the_line() {
    let stirred = META.replace("{then+1000000}", "0");
    let before = nothing()
        .lock_for_ever("stranger")
        .meta(&format!("{stirred}, wait_until {{then+2400}}"), WEEK)
        .line(&[(2, "900")])
        .waiters(&[(2, "{then-100} 0 {C} 6")]);
    let offered = stirred.replace("fence 100", "fence {us}");
    given(before.clone())
        .call(adopting(wait(1, 5), STRANGER))
        .replies(&format!("waiting 1000 {STRANGER}"))
        .hints(6)
        .leaves(
            nothing()
                .lock("{T2}", WINDOW)
                .meta(&format!("{offered}, wait_until {{now+2500}}"), WEEK)
                .line(&[(2, "900"), (1, "{us}")])
                .waiters(&[(2, "{then-100} 1 {C} 6"), (1, "{now} 0 o {C} 5")]),
        );
    // The head itself just takes it.
    given(before).call(adopting(wait(2, 6), STRANGER)).replies("granted {us} 5000").leaves(
        nothing()
            .lock("{T2}", TTL)
            .meta(&format!("{}, wait_until {{then+2400}}", GRANTED.replace("{then+1000000}", "0")), WEEK),
    );
}
