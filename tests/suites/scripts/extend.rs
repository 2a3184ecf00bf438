//! extend.lua

use stanchion::protocol::{Extend, Fence, Granted};

use crate::case::{extend, given};
use crate::state::{BEYOND, WEEK, nothing};

const META: &str = "fence 100, born 50, broken 70, owner x, since 1";

#[test]
fn a_shorter_lease_is_prolonged_and_the_record_lives_on() {
    given(nothing().lock("{T1}", 2_000).meta(META, 500_000))
        .call(extend(1, 9_000))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(META, WEEK));
}

#[test]
fn the_record_outlives_a_long_lease() {
    given(nothing().lock("{T1}", 2_000).meta(META, WEEK))
        .call(extend(1, 3 * WEEK))
        .replies("extended 4080000")
        .leaves(nothing().lock("{T1}", 3 * WEEK).meta(META, 3 * WEEK + BEYOND));
}

#[test]
fn a_longer_lease_is_not_shortened() {
    given(nothing().lock("{T1}", 20_000).meta(META, 500_000))
        .call(extend(1, 9_000))
        .replies("extended {~20000}")
        .leaves(nothing().lock("{T1}", 20_000).meta(META, WEEK));
}

#[test]
fn an_exact_end_shortens_too() {
    let exactly = |ttl| Extend { exact: true, ..extend(1, ttl) };
    given(nothing().lock("{T1}", 20_000).meta(META, 500_000))
        .call(exactly(9_000))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(META, WEEK));
    given(nothing().lock("{T1}", 2_000).meta(META, 500_000))
        .call(exactly(9_000))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(META, WEEK));
    given(nothing().lock("{T2}", 20_000).meta(META, WEEK))
        .call(exactly(9_000))
        .replies("gone fence 100 born 50 broken 70")
        .changes_nothing();
}

#[test]
fn a_lease_that_somebody_persisted_expires_again() {
    given(nothing().lock_for_ever("{T1}").meta(META, WEEK))
        .call(extend(1, 9_000))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(META, WEEK));
}

#[test]
fn a_lost_record_is_not_needed() {
    given(nothing().lock("{T1}", 2_000))
        .call(extend(1, 9_000))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000));
}

#[test]
fn a_lease_that_is_gone_is_not_revived() {
    let gone = "gone fence 100 born 50 broken 70";
    given(nothing().meta(META, WEEK)).call(extend(1, 9_000)).replies(gone).changes_nothing();
    given(nothing().lock("{T2}", 2_000).meta(META, WEEK))
        .call(extend(1, 9_000))
        .replies(gone)
        .changes_nothing();
    let marker = format!("9999999999999999{}", "0".repeat(39));
    given(nothing().lock(&marker, 2_000).meta(META, WEEK))
        .call(extend(1, 9_000))
        .replies(gone)
        .changes_nothing();
}

#[test]
fn a_foreign_value_is_told_apart() {
    let foreign = "gone fence 100 born 50 broken 70 foreign";
    // The last ones are of a token's length, or of its beginning, but no token.
    let values =
        ["stranger", "", "1700000000", &format!("{}x", "9".repeat(54)), &"9".repeat(54), &"8".repeat(55)];
    for value in values {
        given(nothing().lock(value, 2_000).meta(META, WEEK))
            .call(extend(1, 9_000))
            .replies(foreign)
            .changes_nothing();
    }
}

#[test]
fn a_store_that_forgot_everything_says_so() {
    given(nothing()).call(extend(1, 9_000)).replies("gone fence 0 born 0 broken 0").changes_nothing();
}

fn again(number: u128) -> Extend {
    let granted = Some(Granted { fence: Fence::new(90), owner: "me".into() });
    Extend { granted, again: true, ..extend(number, 9_000) }
}

/// A server of a quorum has forgotten the lease, and grants to others since; or has forgotten everything.
#[test]
fn a_forgotten_lease_is_taken_again_with_its_fence() {
    let taken = "fence 90, born 50, broken 70, owner me, since 0, floor 100";
    given(nothing().meta(&format!("{META}, calm_until 999"), 500_000))
        .call(again(1))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(taken, WEEK));
    given(nothing())
        .call(again(1))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta("fence 90, born 90, owner me, since 0, floor 0", WEEK));
}

#[test]
fn a_lock_that_is_anothers_is_not_taken_again() {
    given(nothing().lock("{T2}", 2_000).meta(META, WEEK))
        .call(again(1))
        .replies("gone fence 100 born 50 broken 70")
        .changes_nothing();
    given(nothing().lock("{T1}", 2_000).meta(META, 500_000))
        .call(again(1))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(META, WEEK));
}

#[test]
fn a_token_that_ended_takes_nothing_again() {
    given(nothing().meta(META, WEEK).ended(1))
        .call(again(1))
        .replies("gone fence 100 born 50 broken 70")
        .changes_nothing();
}

#[test]
fn a_broken_lease_is_not_taken_again() {
    given(nothing().meta("fence 100, born 50, broken 90", WEEK))
        .call(again(1))
        .replies("gone fence 100 born 50 broken 90")
        .changes_nothing();
}
