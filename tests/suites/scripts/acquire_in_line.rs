//! acquire.lua when others are in line: confirming an offer, and finding the lock free.

use stanchion_tests::wait::SOON;

use crate::case::{Bench, TTL, acquire, describe, given, wait};
use crate::state::{State, WEEK, WINDOW, nothing, secret};
use stanchion::protocol::Request;

const META: &str = "fence 100, born 50, owner x, since 1, calm_until 0, wait_until {then+2400}";
const GRANTED: &str = "fence {fence}, born 50, owner o, since {sec}, calm_until 0, wait_until {then+2400}";
/// An offer raises the fence and writes no owner.
const OFFERED: &str = "fence {us}, born 50, owner x, since 1, calm_until 0, wait_until {then+2400}";
const LIVE: &str = "{then-100} 0 {C} 5";
const DEAD: &str = "{then-2501} 0 {C} 5";
const UNANSWERED: &str = "{then-100} 1 {C} 5";

fn waiting_meta(meta: &str) -> String {
    meta.replace("{then+2400}", "{now+2500}")
}

/// The server's clock goes on between set-up and call, so "live" leaves two seconds of room.
#[test]
fn the_room_for_delays_is_larger_than_any_test_waits() {
    assert!(SOON > std::time::Duration::from_secs(2));
}

#[test]
fn an_offer_is_confirmed_by_its_waiter() {
    let before = nothing().lock("{T1}", 800).meta(META, WEEK).line(&[(1, "900")]).waiters(&[(1, UNANSWERED)]);
    given(before)
        .call(wait(1, 5))
        .replies("granted 100 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&GRANTED.replace("{fence}", "100"), WEEK));
}

#[test]
fn a_confirmation_sets_the_ttl_exactly_and_leaves_the_others_in_line() {
    let before = nothing()
        .lock("{T1}", 900_000)
        .meta(META, WEEK)
        .line(&[(1, "900"), (2, "901")])
        .waiters(&[(1, UNANSWERED), (2, LIVE)]);
    given(before).call(wait(1, 5)).replies("granted 100 5000").leaves(
        nothing()
            .lock("{T1}", TTL)
            .meta(&GRANTED.replace("{fence}", "100"), WEEK)
            .line(&[(2, "901")])
            .waiters(&[(2, LIVE)]),
    );
}

/// Or foreign_share would never see a row of hand-offs.
#[test]
fn a_confirmation_goes_on_counting_hand_offs() {
    let before = nothing()
        .lock("{T1}", 800)
        .meta(&format!("{META}, hand_offs 7"), WEEK)
        .line(&[(1, "900")])
        .waiters(&[(1, UNANSWERED)]);
    let after = format!("{}, hand_offs 7", GRANTED.replace("{fence}", "100"));
    given(before)
        .call(wait(1, 5))
        .replies("granted 100 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(&after, WEEK));
}

#[test]
fn taking_a_free_lock_ends_a_row_of_hand_offs() {
    let before =
        nothing().meta(&format!("{META}, hand_offs 7"), WEEK).line(&[(1, "900")]).waiters(&[(1, LIVE)]);
    given(before)
        .call(wait(1, 5))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, WEEK));
}

#[test]
fn an_offer_to_another_is_waited_for() {
    let before = |mine: &[(u128, &str)], meta: &str| {
        let waiters: Vec<_> = [(2, UNANSWERED)].iter().chain(mine).copied().collect();
        nothing().lock("{T2}", 800).meta(meta, WEEK).waiters(&waiters)
    };
    given(before(&[], META).line(&[(2, "900")])).call(acquire(1)).replies("busy {~800}").changes_nothing();
    given(before(&[], META).line(&[(2, "900")]))
        .call(wait(1, 8))
        .replies("waiting {~800}")
        .leaves(before(&[(1, "{now} 0 o {C} 8")], &waiting_meta(META)).line(&[(2, "900"), (1, "{us}")]));
}

#[test]
fn the_head_of_the_line_takes_a_free_lock() {
    let before = nothing().meta(META, WEEK).line(&[(1, "900"), (2, "901")]).waiters(&[(1, LIVE), (2, LIVE)]);
    given(before)
        .call(wait(1, 5))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, WEEK).line(&[(2, "901")]).waiters(&[(2, LIVE)]));
}

#[test]
fn whoever_finds_a_free_lock_offers_it_to_the_head_and_waits() {
    let before = || nothing().meta(META, WEEK).line(&[(2, "901")]).waiters(&[(2, "{then-100} 0 {C} 6")]);
    given(before()).call(wait(1, 5)).replies("waiting 1000").hints(6).leaves(
        nothing()
            .lock("{T2}", WINDOW)
            .meta(&waiting_meta(OFFERED), WEEK)
            .line(&[(2, "901"), (1, "{us}")])
            .waiters(&[(2, "{then-100} 1 {C} 6"), (1, "{now} 0 o {C} 5")]),
    );
}

#[test]
fn a_try_finds_a_free_lock_offers_it_to_the_head_and_is_busy() {
    let before = nothing().meta(META, WEEK).line(&[(2, "901")]).waiters(&[(2, "{then-100} 0 {C} 6")]);
    given(before).call(acquire(1)).replies("busy 1000").hints(6).leaves(
        nothing()
            .lock("{T2}", WINDOW)
            .meta(OFFERED, WEEK)
            .line(&[(2, "901")])
            .waiters(&[(2, "{then-100} 1 {C} 6")]),
    );
}

/// An offer in a record that has no fence yet is the beginning of that record.
#[test]
fn an_offer_makes_a_record_with_its_birth() {
    let before = nothing()
        .meta("wait_until {then+2400}", WEEK)
        .line(&[(2, "901")])
        .waiters(&[(2, "{then-100} 0 {C} 6")]);
    given(before).call(acquire(1)).replies("busy 1000").hints(6).leaves(
        nothing()
            .lock("{T2}", WINDOW)
            .meta("fence {us}, born {us}, wait_until {then+2400}", WEEK)
            .line(&[(2, "901")])
            .waiters(&[(2, "{then-100} 1 {C} 6")]),
    );
}

#[test]
fn dead_waiters_are_dropped_on_the_way() {
    let before = nothing()
        .meta(META, WEEK)
        .line(&[(3, "899"), (4, "900"), (1, "901")])
        .waiters(&[(3, DEAD), (1, LIVE)]);
    given(before)
        .call(wait(1, 5))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, WEEK));
}

#[test]
fn a_dead_line_gives_way_to_a_newcomer() {
    let before = nothing().meta(META, WEEK).line(&[(3, "899"), (4, "900")]).waiters(&[(3, DEAD), (4, DEAD)]);
    given(before)
        .call(acquire(1))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, WEEK));
}

#[test]
fn a_waiter_that_did_not_answer_is_skipped_and_keeps_its_place() {
    let before = nothing().meta(META, WEEK).line(&[(2, "900"), (3, "901"), (1, "902")]).waiters(&[
        (2, UNANSWERED),
        (3, "{then-100} 0 {C} 6"),
        (1, LIVE),
    ]);
    given(before).call(acquire(9)).replies("busy 1000").hints(6).leaves(
        nothing()
            .lock("{T3}", WINDOW)
            .meta(OFFERED, WEEK)
            .line(&[(2, "900"), (3, "901"), (1, "902")])
            .waiters(&[(2, UNANSWERED), (3, "{then-100} 1 {C} 6"), (1, LIVE)]),
    );
}

#[test]
fn a_waiter_whose_offer_ran_out_takes_the_free_lock_when_it_polls() {
    let before =
        nothing().meta(META, WEEK).line(&[(1, "900"), (3, "901")]).waiters(&[(1, UNANSWERED), (3, LIVE)]);
    given(before)
        .call(wait(1, 5))
        .replies("granted {us} 5000")
        .leaves(nothing().lock("{T1}", TTL).meta(GRANTED, WEEK).line(&[(3, "901")]).waiters(&[(3, LIVE)]));
}

/// A line of `dead` waiters that are dead, then one that lives.
fn long_line(dead: u128) -> State {
    let scores: Vec<String> = (0..=dead).map(|number| (900 + number).to_string()).collect();
    let line: Vec<_> =
        (0..=dead).map(|number| (100 + number, scores[usize::try_from(number).unwrap()].as_str())).collect();
    let waiters: Vec<_> = (0..=dead)
        .map(|number| (100 + number, if number < dead { DEAD } else { "{then-100} 0 {C} 6" }))
        .collect();
    nothing().meta(META, WEEK).line(&line).waiters(&waiters)
}

#[test]
fn a_call_looks_at_64_entries_of_the_line() {
    let last = 163;
    given(long_line(63)).call(acquire(1)).replies("busy 1000").hints(6).leaves(
        nothing()
            .lock(&secret(last), WINDOW)
            .meta(OFFERED, WEEK)
            .line(&[(last, "963")])
            .waiters(&[(last, "{then-100} 1 {C} 6")]),
    );
}

/// The bound: past 64 dead ones it is not known whether the 65th lives. It is told to ask, and is not overtaken.
#[test]
fn a_call_looks_no_further_than_64_entries() {
    let last = 164;
    let state = |meta: &str| {
        nothing().meta(meta, WEEK).line(&[(last, "964")]).waiters(&[(last, "{then-100} 0 {C} 6")])
    };
    given(long_line(64)).call(acquire(1)).replies("busy 0").hints(6).leaves(state(&waiting_meta(META)));
    given(state(META))
        .call(wait(last, 6))
        .replies("granted {us} 5000")
        .leaves(nothing().lock(&secret(last), TTL).meta(GRANTED, WEEK));
}

/// So whoever compares it with the time finds it alive for as long as it may be silent.
#[test]
fn the_last_poll_of_who_is_far_back_lies_ahead() {
    for (before, ahead) in [(7, 0), (8, 375), (20, 4_875), (100, 19_250)] {
        let scores: Vec<String> = (0..before).map(|number| (900 + number).to_string()).collect();
        let others = || (0..before).map(|number| 100 + number);
        let mut line: Vec<_> = others().zip(scores.iter().map(String::as_str)).collect();
        let mut waiters: Vec<_> = others().map(|number| (number, LIVE)).collect();
        let state = |meta: &str| nothing().lock("{T2}", 3_000).meta(meta, WEEK);
        let given = given(state(META).line(&line).waiters(&waiters));
        let entry = format!("{{now+{ahead}}} 0 o {{C}} 7");
        line.push((1, "{us}"));
        waiters.push((1, &entry));
        let waited = META.replace("{then+2400}", &format!("{{now+{}}}", 2_500 + ahead));
        let expected = state(&waited).line(&line).waiters(&waiters);
        given.call(wait(1, 7)).replies("waiting {~3000}").leaves(expected);
    }
}

/// The whole life of a line through the store: nobody overtakes.
#[test]
fn offers_go_round_the_line_in_order() {
    let mut bench = Bench::new();
    let ask =
        |bench: &mut Bench, number, seq| describe(&bench.call(Request::Acquire(wait(number, seq))).unwrap());
    assert!(ask(&mut bench, 1, 1).starts_with("granted"));
    for number in 2..=4 {
        assert!(ask(&mut bench, number, 2).starts_with("waiting"));
    }
    for number in 1..=3u128 {
        bench.call(Request::Release(crate::case::release(number))).unwrap();
        assert!(ask(&mut bench, 4, 2).starts_with("waiting") || number == 3);
        assert!(ask(&mut bench, number + 1, 2).starts_with("granted"), "{number}");
    }
}
