//! release.lua; hand-offs are in hand_off.rs.

use std::time::Duration;

use stanchion::protocol::{Fence, Release};

use crate::case::{given, release};
use crate::state::{WEEK, nothing};

const META: &str = "fence 100, born 50, owner x, since 1";

fn marker() -> String {
    format!("9999999999999999{}", "0".repeat(39))
}

fn cooldown(number: u128, millis: u64) -> Release {
    Release { cooldown: Some(Duration::from_millis(millis)), ..release(number) }
}

#[test]
fn a_release_deletes_the_key_and_nothing_else() {
    given(nothing().lock("{T1}", 3_000).meta(META, 500_000))
        .call(release(1))
        .replies("released")
        .leaves(nothing().meta(META, 500_000));
    given(nothing().lock("{T1}", 3_000)).call(release(1)).replies("released").leaves(nothing());
}

#[test]
fn after_a_repeated_acquire_the_token_is_remembered_as_ended() {
    given(nothing().lock("{T1}", 3_000).meta(META, 500_000))
        .call(Release { acquire_resent: true, ..release(1) })
        .replies("released")
        .leaves(nothing().meta(&format!("{META}, calm_until 0, ended_until {{now+60000}}"), WEEK).ended(1));
}

#[test]
fn a_cooldown_leaves_a_marker_that_is_no_token() {
    given(nothing().lock("{T1}", 3_000).meta(META, WEEK))
        .call(cooldown(1, 700))
        .replies("released")
        .leaves(nothing().lock(&marker(), 700).meta(META, WEEK));
    given(nothing().lock("{T1}", 3_000).meta(META, WEEK))
        .call(cooldown(1, 90_000))
        .replies("released")
        .leaves(nothing().lock(&marker(), 90_000).meta(META, WEEK));
}

#[test]
fn a_cooldown_offers_nothing_to_waiters() {
    let waiting = || {
        nothing()
            .meta(&format!("{META}, wait_until {{then+2400}}"), WEEK)
            .line(&[(2, "900")])
            .waiters(&[(2, "{then-100} 0 {C} 5")])
    };
    given(waiting().lock("{T1}", 3_000))
        .call(cooldown(1, 700))
        .replies("released")
        .leaves(waiting().lock(&marker(), 700));
}

#[test]
fn a_cooldown_after_a_repeated_acquire_remembers_the_token_too() {
    given(nothing().lock("{T1}", 3_000).meta(META, WEEK))
        .call(Release { acquire_resent: true, ..cooldown(1, 700) })
        .replies("released")
        .leaves(
            nothing()
                .lock(&marker(), 700)
                .meta(&format!("{META}, calm_until 0, ended_until {{now+60000}}"), WEEK)
                .ended(1),
        );
}

#[test]
fn an_offer_to_the_token_of_an_earlier_lease_is_not_that_lease() {
    let offered = || nothing().lock("{T1}", 900).meta(META, WEEK);
    let own = |fence| Release { own_fence: Some(Fence::new(fence)), ..release(1) };
    given(offered()).call(own(100)).replies("released").leaves(nothing().meta(META, WEEK));
    let gone = "gone fence 100 born 50 broken 0";
    given(offered()).call(own(99)).replies(gone).leaves(nothing().meta(META, WEEK));
    given(offered())
        .call(Release { own_fence: Some(Fence::new(99)), ..cooldown(1, 700) })
        .replies(gone)
        .leaves(nothing().meta(META, WEEK));
}

/// Something that would take the lock for this token may still be on its way.
#[test]
fn a_token_that_is_gone_is_remembered_as_ended_too() {
    let resent = || Release { acquire_resent: true, ..release(1) };
    let gone = "gone fence 100 born 50 broken 0";
    let ended = format!("{META}, calm_until 0, ended_until {{now+60000}}");
    given(nothing().lock("{T2}", 3_000).meta(META, 500_000))
        .call(resent())
        .replies(gone)
        .leaves(nothing().lock("{T2}", 3_000).meta(&ended, WEEK).ended(1));
    given(nothing().lock("stranger", 3_000))
        .call(resent())
        .replies("gone fence 0 born 0 broken 0 foreign")
        .leaves(
            nothing().lock("stranger", 3_000).meta("calm_until 0, ended_until {now+60000}", WEEK).ended(1),
        );
}

#[test]
fn a_release_of_what_is_gone_changes_nothing_and_tells_what_is_known() {
    let gone = "gone fence 100 born 50 broken 0";
    for call in [release(1), cooldown(1, 700)] {
        given(nothing().meta(META, 500_000)).call(call.clone()).replies(gone).changes_nothing();
        given(nothing().lock("{T2}", 3_000).meta(META, WEEK))
            .call(call.clone())
            .replies(gone)
            .changes_nothing();
        given(nothing().lock(&marker(), 3_000).meta(META, WEEK))
            .call(call.clone())
            .replies(gone)
            .changes_nothing();
        given(nothing().lock("stranger", 3_000).meta(META, WEEK))
            .call(call.clone())
            .replies(&format!("{gone} foreign"))
            .changes_nothing();
        given(nothing().lock("stranger", 3_000))
            .call(call.clone())
            .replies("gone fence 0 born 0 broken 0 foreign")
            .changes_nothing();
        given(nothing()).call(call).replies("gone fence 0 born 0 broken 0").changes_nothing();
    }
}

#[test]
fn large_fences_come_back_exactly() {
    given(nothing().meta("fence 9007199254740991, born 9007199254740989, broken 9007199254740990", WEEK))
        .call(release(1))
        .replies("gone fence 9007199254740991 born 9007199254740989 broken 9007199254740990")
        .changes_nothing();
}

/// The lease ran out, a late copy of its acquire got in line again, and the lock was offered to its token: the
/// release passes the offer on, takes the copy out of the line, and says that the lease is gone.
#[test]
fn an_offer_to_the_same_token_is_not_taken_for_the_lease() {
    let offered = || {
        nothing()
            .lock("{T1}", 800)
            .meta(META, WEEK)
            .line(&[(1, "900"), (2, "901")])
            .waiters(&[(1, "{then-100} 1 {C} 5"), (2, "{then-100} 0 {C} 6")])
    };
    let passed_on = || nothing().lock("{T2}", 1_000).meta(&META.replace("fence 100", "fence {us}"), WEEK);
    let taken_out = || passed_on().line(&[(2, "901")]).waiters(&[(2, "{then-100} 1 {C} 6")]);
    let stays = [(1, "{then-100} 1 {C} 5"), (2, "{then-100} 1 {C} 6")];
    let gone = "gone fence 100 born 50 broken 0";
    let late = Release { own_fence: Some(Fence::new(99)), ..release(1) };
    given(offered()).call(late.clone()).replies(gone).hints(6).leaves(taken_out());
    let no_cooldown = Release { own_fence: Some(Fence::new(99)), ..cooldown(1, 700) };
    given(offered()).call(no_cooldown).replies(gone).hints(6).leaves(taken_out());
    let own = Release { own_fence: Some(Fence::new(100)), ..release(1) };
    let stay = passed_on().line(&[(1, "900"), (2, "901")]).waiters(&stays);
    given(offered()).call(own).replies("released").hints(6).leaves(stay);
}

#[test]
fn a_late_release_of_the_lease_itself_is_a_release() {
    for own_fence in [None, Some(Fence::new(100))] {
        given(nothing().lock("{T1}", 3_000).meta(META, WEEK))
            .call(Release { own_fence, ..cooldown(1, 700) })
            .replies("released")
            .leaves(nothing().lock(&marker(), 700).meta(META, WEEK));
    }
}
