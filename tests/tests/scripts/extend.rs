//! extend.lua

use crate::case::{extend, given};
use crate::state::{WEEK, nothing};

const META: &str = "fence 100, born 50, broken 70, owner x, since 1";

#[test]
fn a_shorter_lease_is_prolonged_and_the_record_lives_on() {
    given(nothing().lock("{T1}", 2_000).meta(META, 500_000))
        .call(extend(1, 9_000))
        .replies("extended 9000")
        .leaves(nothing().lock("{T1}", 9_000).meta(META, WEEK));
}

#[test]
fn the_record_outlives_a_lease_of_weeks() {
    given(nothing().lock("{T1}", 2_000).meta(META, WEEK))
        .call(extend(1, 3 * WEEK))
        .replies("extended 1814400000")
        .leaves(nothing().lock("{T1}", 3 * WEEK).meta(META, 6 * WEEK));
}

#[test]
fn a_longer_lease_is_not_shortened() {
    given(nothing().lock("{T1}", 20_000).meta(META, 500_000))
        .call(extend(1, 9_000))
        .replies("extended {~20000}")
        .leaves(nothing().lock("{T1}", 20_000).meta(META, WEEK));
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
