//! break_lease.lua; hand-offs are in hand_off.rs.

use crate::case::{break_lease, given};
use crate::state::{WEEK, WINDOW, nothing};

const META: &str = "fence 100, born 50, owner x, since 1";

#[test]
fn a_free_lock_is_left_alone() {
    given(nothing()).call(break_lease()).replies("free").changes_nothing();
    let waited_for = nothing().meta(META, 500_000).line(&[(2, "900")]).waiters(&[(2, "{then-100} 0 {C} 5")]);
    given(waited_for).call(break_lease()).replies("free").changes_nothing();
}

#[test]
fn a_broken_lease_is_noted_by_its_fence() {
    given(nothing().lock("{T1}", 3_000).meta(META, 500_000))
        .call(break_lease())
        .replies("broken")
        .leaves(nothing().meta(&format!("{META}, broken 100"), WEEK));
}

#[test]
fn a_broken_offer_is_noted_and_its_waiter_skipped() {
    let before = nothing()
        .lock("{T2}", 800)
        .meta(META, WEEK)
        .line(&[(2, "900"), (3, "901")])
        .waiters(&[(2, "{then-100} 1 {C} 5"), (3, "{then-100} 0 {C} 6")]);
    given(before).call(break_lease()).replies("broken").hints(6).leaves(
        nothing()
            .lock("{T3}", WINDOW)
            .meta(&format!("{}, broken 100", META.replace("fence 100", "fence {us}")), WEEK)
            .line(&[(2, "900"), (3, "901")])
            .waiters(&[(2, "{then-100} 1 {C} 5"), (3, "{then-100} 1 {C} 6")]),
    );
}

#[test]
fn a_foreign_value_or_a_cooldown_ends_no_lease_of_ours() {
    let marker = format!("9999999999999999{}", "0".repeat(39));
    for value in ["stranger", &marker] {
        given(nothing().lock(value, 3_000).meta(META, 500_000))
            .call(break_lease())
            .replies("broken")
            .leaves(nothing().meta(META, 500_000));
        given(nothing().lock_for_ever(value)).call(break_lease()).replies("broken").leaves(nothing());
    }
}

#[test]
fn after_a_foreign_value_the_line_moves_on() {
    let waiters = [(2, "{then-100} 0 {C} 5")];
    given(nothing().lock_for_ever("stranger").meta(META, WEEK).line(&[(2, "900")]).waiters(&waiters))
        .call(break_lease())
        .replies("broken")
        .hints(5)
        .leaves(
            nothing()
                .lock("{T2}", WINDOW)
                .meta(&META.replace("fence 100", "fence {us}"), WEEK)
                .line(&[(2, "900")])
                .waiters(&[(2, "{then-100} 1 {C} 5")]),
        );
}

#[test]
fn a_lease_without_a_record_is_broken_without_a_note() {
    given(nothing().lock("{T1}", 3_000)).call(break_lease()).replies("broken").leaves(nothing());
}
