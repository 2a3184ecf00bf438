//! holder.lua: reads only, so every case changes nothing. The record has seconds, the reply milliseconds.

use crate::case::{given, holder};
use crate::state::{WEEK, nothing};

const META: &str = "fence 100, born 50, owner 7 host me, since 12345";

#[test]
fn a_free_lock() {
    given(nothing()).call(holder()).replies("free").changes_nothing();
    let waited_for = nothing().meta(META, WEEK).line(&[(1, "900")]).waiters(&[(1, "{then} 0 {C} 5")]);
    given(waited_for).call(holder()).replies("free").changes_nothing();
}

#[test]
fn a_lease() {
    given(nothing().lock("{T1}", 3_000).meta(META, 500_000))
        .call(holder())
        .replies("Lease fence 100 left {~3000} since 12345000 owner \"7 host me\" waiters 0")
        .changes_nothing();
    let waited_for = nothing()
        .lock("{T1}", 3_000)
        .meta(META, WEEK)
        .line(&[(2, "900"), (3, "901")])
        .waiters(&[(2, "{then} 0 {C} 5"), (3, "{then} 0 {C} 6")]);
    given(waited_for)
        .call(holder())
        .replies("Lease fence 100 left {~3000} since 12345000 owner \"7 host me\" waiters 2")
        .changes_nothing();
}

#[test]
fn an_offer_has_no_owner_yet() {
    let offered =
        nothing().lock("{T2}", 800).meta(META, WEEK).line(&[(2, "900")]).waiters(&[(2, "{then} 1 {C} 5")]);
    given(offered)
        .call(holder())
        .replies("Offer fence 100 left {~800} since 0 owner \"\" waiters 1")
        .changes_nothing();
}

#[test]
fn a_cooldown() {
    given(nothing().lock(&format!("9999999999999999{}", "0".repeat(39)), 3_000).meta(META, WEEK))
        .call(holder())
        .replies("Cooldown fence 100 left {~3000} since 0 owner \"\" waiters 0")
        .changes_nothing();
}

#[test]
fn a_foreign_value() {
    let foreign = "Foreign fence 100 left {~3000} since 0 owner \"\" waiters 0";
    for value in ["stranger", "", "1700000000", &"9".repeat(54), &"8".repeat(55)] {
        given(nothing().lock(value, 3_000).meta(META, WEEK))
            .call(holder())
            .replies(foreign)
            .changes_nothing();
    }
    given(nothing().lock_for_ever("stranger"))
        .call(holder())
        .replies("Foreign fence 0 left for ever since 0 owner \"\" waiters 0")
        .changes_nothing();
}

#[test]
fn a_lease_without_a_record() {
    given(nothing().lock("{T1}", 3_000))
        .call(holder())
        .replies("Lease fence 0 left {~3000} since 0 owner \"\" waiters 0")
        .changes_nothing();
}

#[test]
fn a_large_fence_stays_exact() {
    given(nothing().lock("{T1}", 3_000).meta("fence 9007199254740991", WEEK))
        .call(holder())
        .replies("Lease fence 9007199254740991 left {~3000} since 0 owner \"\" waiters 0")
        .changes_nothing();
}
