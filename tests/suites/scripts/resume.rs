//! resume.lua

use crate::case::{given, resume, undo_resume};
use crate::state::{BEYOND, WEEK, nothing};

const META: &str = "fence 100, born 50, owner x, since 1";
const RESUMED: &str = "fence 100, born 50, owner taker, since 1";

#[test]
fn the_token_is_swapped_and_fence_and_life_stay() {
    given(nothing().lock("{T1}", 3_000).meta(META, 500_000))
        .call(resume(1, 2))
        .replies("resumed 100 {~3000}")
        .leaves(nothing().lock("{T2}", 3_000).meta(RESUMED, WEEK));
}

#[test]
fn the_record_outlives_a_long_lease() {
    given(nothing().lock("{T1}", 3 * WEEK).meta(META, 500_000))
        .call(resume(1, 2))
        .replies("resumed 100 {~4080000}")
        .leaves(nothing().lock("{T2}", 3 * WEEK).meta(RESUMED, 3 * WEEK + BEYOND));
}

#[test]
fn the_same_swap_again_changes_nothing() {
    given(nothing().lock("{T2}", 3_000).meta(RESUMED, 500_000))
        .call(resume(1, 2))
        .replies("resumed 100 {~3000}")
        .changes_nothing();
}

#[test]
fn a_swap_is_taken_back_and_stays_so() {
    let undone = || nothing().lock("{T1}", 3_000).meta(RESUMED, WEEK).ended(2);
    given(nothing().lock("{T2}", 3_000).meta(RESUMED, 500_000))
        .call(undo_resume(1, 2))
        .replies("resumed 100 {~3000}")
        .leaves(undone());
    given(undone()).call(resume(1, 2)).replies("gone fence 100 born 50 broken 0").changes_nothing();
    given(undone())
        .call(resume(1, 3))
        .replies("resumed 100 {~3000}")
        .leaves(nothing().lock("{T3}", 3_000).meta(RESUMED, WEEK).ended(2));
}

/// What was sent first may come last.
#[test]
fn a_swap_that_is_yet_to_come_is_taken_back() {
    given(nothing().lock("{T1}", 3_000).meta(META, 500_000))
        .call(undo_resume(1, 2))
        .replies("resumed 100 {~3000}")
        .leaves(nothing().lock("{T1}", 3_000).meta(META, 500_000).ended(2));
}

#[test]
fn another_swap_of_a_used_handle_finds_nothing() {
    given(nothing().lock("{T2}", 3_000).meta(RESUMED, WEEK))
        .call(resume(1, 3))
        .replies("gone fence 100 born 50 broken 0")
        .changes_nothing();
}

#[test]
fn a_lease_that_ended_is_not_resumed() {
    let gone = "gone fence 100 born 50 broken 0";
    given(nothing().meta(META, WEEK)).call(resume(1, 2)).replies(gone).changes_nothing();
    given(nothing()).call(resume(1, 2)).replies("gone fence 0 born 0 broken 0").changes_nothing();
    given(nothing().lock("stranger", 3_000).meta(META, WEEK))
        .call(resume(1, 2))
        .replies(&format!("{gone} foreign"))
        .changes_nothing();
}

#[test]
fn a_large_fence_stays_exact() {
    let meta = |owner| format!("fence 9007199254740991, born 50, owner {owner}");
    given(nothing().lock("{T1}", 3_000).meta(&meta("x"), WEEK))
        .call(resume(1, 2))
        .replies("resumed 9007199254740991 {~3000}")
        .leaves(nothing().lock("{T2}", 3_000).meta(&meta("taker"), WEEK));
}

#[test]
fn a_lease_without_a_record_has_no_fence_and_is_not_resumed() {
    given(nothing().lock("{T1}", 3_000))
        .call(resume(1, 2))
        .replies("gone fence 0 born 0 broken 0")
        .changes_nothing();
}
