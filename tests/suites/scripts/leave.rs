//! leave.lua; hand-offs are in hand_off.rs.

use crate::case::{given, leave};
use crate::state::{BEYOND, WEEK, WINDOW, nothing};

const META: &str = "fence 100, born 50, owner x, since 1";
const LEFT: &str = "fence 100, born 50, owner x, since 1, calm_until 0, ended_until {now+60000}";

#[test]
fn a_waiter_leaves_the_line_and_its_token_is_ended() {
    given(
        nothing()
            .lock("{T2}", 3_000)
            .meta(META, 500_000)
            .line(&[(1, "900"), (3, "901")])
            .waiters(&[(1, "{then-100} 0 {C} 5"), (3, "{then-100} 0 {C} 6")]),
    )
    .call(leave(1))
    .replies("left")
    .leaves(
        nothing()
            .lock("{T2}", 3_000)
            .meta(LEFT, WEEK)
            .line(&[(3, "901")])
            .waiters(&[(3, "{then-100} 0 {C} 6")])
            .ended(1),
    );
}

#[test]
fn the_record_outlives_anothers_lease_of_weeks() {
    given(nothing().lock("{T2}", 3 * WEEK).meta(META, 3 * WEEK + BEYOND))
        .call(leave(1))
        .replies("left")
        .leaves(nothing().lock("{T2}", 3 * WEEK).meta(LEFT, 3 * WEEK + BEYOND).ended(1));
}

#[test]
fn the_last_waiter_leaves_no_line() {
    given(
        nothing()
            .lock("{T2}", 3_000)
            .meta(META, WEEK)
            .line(&[(1, "900")])
            .waiters(&[(1, "{then-100} 0 {C} 5")]),
    )
    .call(leave(1))
    .replies("left")
    .leaves(nothing().lock("{T2}", 3_000).meta(LEFT, WEEK).ended(1));
}

#[test]
fn a_waiter_that_is_offered_the_lock_passes_it_on() {
    given(
        nothing()
            .lock("{T1}", 800)
            .meta(META, WEEK)
            .line(&[(1, "900"), (2, "901")])
            .waiters(&[(1, "{then-100} 1 {C} 5"), (2, "{then-100} 0 {C} 6")]),
    )
    .call(leave(1))
    .replies("left")
    .hints(6)
    .leaves(
        nothing()
            .lock("{T2}", WINDOW)
            .meta(&LEFT.replace("fence 100", "fence {us}"), WEEK)
            .line(&[(2, "901")])
            .waiters(&[(2, "{then-100} 1 {C} 6")])
            .ended(1),
    );
}

#[test]
fn leaving_without_having_come_only_ends_the_token() {
    given(nothing())
        .call(leave(1))
        .replies("left")
        .leaves(nothing().meta("calm_until 0, ended_until {now+60000}", WEEK).ended(1));
    for value in ["{T2}", "stranger"] {
        given(nothing().lock(value, 3_000).meta(META, WEEK))
            .call(leave(1))
            .replies("left")
            .leaves(nothing().lock(value, 3_000).meta(LEFT, WEEK).ended(1));
    }
}

#[test]
fn leaving_twice_is_leaving_once() {
    let left = || nothing().lock("{T2}", 3_000).meta(LEFT, WEEK).ended(1);
    given(nothing().lock("{T2}", 3_000).meta(&LEFT.replace("now", "then"), WEEK).ended(1))
        .call(leave(1))
        .replies("left")
        .leaves(left());
}

#[test]
fn leaving_does_not_touch_anothers_offer() {
    let other = |meta: &str| {
        nothing().lock("{T2}", 800).meta(meta, WEEK).line(&[(2, "900")]).waiters(&[(2, "{then-100} 1 {C} 6")])
    };
    given(other(META)).call(leave(1)).replies("left").leaves(other(LEFT).ended(1));
}
