//! The hand-off in release, leave and break_lease: the same part of all three.

use stanchion::protocol::{Leave, Release};

use crate::case::{Call, break_lease, given, leave, release};
use crate::state::{State, WEEK, WINDOW, nothing};

const META: &str = "fence 100, born 50, owner x, since 1";
const OFFERED: &str = "fence {us}, born 50, owner x, since 1";
const LIVE: &str = "{then-100} 0 {C} 5";
const LIVE_OFFERED: &str = "{then-100} 1 {C} 5";
const DEAD: &str = "{then-2501} 0 {C} 6";
const UNANSWERED: &str = "{then-100} 1 {C} 7";

/// A verb that takes the lock from token 1, its reply, what it adds to the record, and to the rest.
struct Row {
    call: Call,
    reply: &'static str,
    adds: &'static str,
    ends: bool,
}

fn verbs() -> [Row; 3] {
    [
        Row { call: release(1).into(), reply: "released", adds: "", ends: false },
        Row {
            call: leave(1).into(),
            reply: "left",
            adds: ", calm_until 0, ended_until {now+60000}",
            ends: true,
        },
        Row { call: break_lease().into(), reply: "broken", adds: ", broken 100", ends: false },
    ]
}

/// Runs all three verbs: `before` and `after` are the line; the lock is held by token 1 before, and by
/// `next` after.
fn handed_on(
    before: &dyn Fn(State) -> State,
    next: Option<&str>,
    hint: Option<u64>,
    after: &dyn Fn(State) -> State,
) {
    for Row { call, reply, adds, ends } in verbs() {
        let meta = if next.is_some() { OFFERED } else { META };
        let mut expected = after(nothing().meta(&format!("{meta}{adds}"), WEEK));
        if let Some(next) = next {
            expected = expected.lock(next, WINDOW);
        }
        if ends {
            expected = expected.ended(1);
        }
        let case = given(before(nothing().lock("{T1}", 3_000).meta(META, WEEK))).call(call).replies(reply);
        match hint {
            Some(seq) => case.hints(seq).leaves(expected),
            None => case.leaves(expected),
        }
    }
}

#[test]
fn without_a_line_the_lock_is_free() {
    handed_on(&|state| state, None, None, &|state| state);
}

#[test]
fn the_oldest_live_waiter_is_offered_the_lock() {
    let line = [(2, "900"), (3, "901")];
    handed_on(
        &|state| state.line(&line).waiters(&[(2, LIVE), (3, "{then-200} 0 {C} 8")]),
        Some("{T2}"),
        Some(5),
        &|state| state.line(&line).waiters(&[(2, LIVE_OFFERED), (3, "{then-200} 0 {C} 8")]),
    );
}

#[test]
fn dead_waiters_are_dropped() {
    handed_on(
        &|state| state.line(&[(4, "898"), (3, "899"), (2, "900")]).waiters(&[(4, DEAD), (2, LIVE)]),
        Some("{T2}"),
        Some(5),
        &|state| state.line(&[(2, "900")]).waiters(&[(2, LIVE_OFFERED)]),
    );
}

#[test]
fn an_all_dead_line_disappears() {
    handed_on(
        &|state| state.line(&[(4, "898"), (3, "899")]).waiters(&[(4, DEAD), (3, DEAD)]),
        None,
        None,
        &|state| state,
    );
}

#[test]
fn a_waiter_that_did_not_answer_an_offer_is_skipped_and_keeps_its_place() {
    let line = [(3, "899"), (2, "900")];
    handed_on(
        &|state| state.line(&line).waiters(&[(3, UNANSWERED), (2, LIVE)]),
        Some("{T2}"),
        Some(5),
        &|state| state.line(&line).waiters(&[(3, UNANSWERED), (2, LIVE_OFFERED)]),
    );
}

#[test]
fn if_nobody_answers_offers_the_lock_is_free_for_who_polls_next() {
    let line = [(3, "899")];
    let waiters = [(3, UNANSWERED)];
    handed_on(&|state| state.line(&line).waiters(&waiters), None, None, &|state| {
        state.line(&line).waiters(&waiters)
    });
}

#[test]
fn a_garbled_entry_counts_as_dead() {
    handed_on(
        &|state| state.line(&[(3, "899"), (2, "900")]).waiters(&[(3, "nonsense"), (2, LIVE)]),
        Some("{T2}"),
        Some(5),
        &|state| state.line(&[(2, "900")]).waiters(&[(2, LIVE_OFFERED)]),
    );
}

/// Nobody knows of those behind whether they live. Whoever does asks, and goes on.
#[test]
fn sixty_four_dead_waiters_are_dropped_and_the_next_is_told_to_ask() {
    let scores: Vec<String> = (0..65).map(|number| (900 + number).to_string()).collect();
    let entry = |number: u128| if number < 64 { DEAD } else { LIVE };
    let line: Vec<_> =
        (0..65u128).zip(&scores).map(|(number, score)| (100 + number, score.as_str())).collect();
    let waiters: Vec<_> = (0..65u128).map(|number| (100 + number, entry(number))).collect();
    handed_on(&|state| state.line(&line).waiters(&waiters), None, Some(5), &|state| {
        state.line(&[(164, "964")]).waiters(&[(164, LIVE)])
    });
}

#[test]
fn the_fence_of_an_offer_is_larger_than_a_stored_one_of_the_future() {
    let meta = |fence| format!("fence {fence}, born 50");
    let line = |state: State, entry| state.line(&[(2, "900")]).waiters(&[(2, entry)]);
    given(line(nothing().lock("{T1}", 3_000).meta(&meta("9007199254740989"), WEEK), LIVE))
        .call(release(1))
        .replies("released")
        .hints(5)
        .leaves(line(nothing().lock("{T2}", WINDOW).meta(&meta("9007199254740990"), WEEK), LIVE_OFFERED));
}

/// The line is of another kind than the hand-offs counted before: at the third the lock is left free.
#[test]
fn after_some_hand_offs_in_a_row_a_client_that_shares_leaves_the_lock_free() {
    let shares: [(Call, &str, &str, bool); 2] = [
        (Release { foreign_share: true, ..release(1) }.into(), "released", "", false),
        (
            Leave { foreign_share: true, ..leave(1) }.into(),
            "left",
            ", calm_until 0, ended_until {now+60000}",
            true,
        ),
    ];
    for (call, reply, adds, ends) in shares {
        let before = nothing()
            .lock("{T1}", 3_000)
            .meta(&format!("{META}, hand_offs 2, row_until {{then-1}}, share_windows 3"), WEEK)
            .line(&[(2, "900")])
            .waiters(&[(2, LIVE)]);
        let shared = "row_until {then-1}, share_until {now+200}, share_windows 2";
        let mut after = nothing()
            .meta(&format!("{META}, {shared}{adds}"), WEEK)
            .line(&[(2, "900")])
            .waiters(&[(2, LIVE)]);
        if ends {
            after = after.ended(1);
        }
        given(before).call(call).replies(reply).hints(5).leaves(after);
    }
}

#[test]
fn hand_offs_are_counted_only_for_who_shares() {
    let before = |count: &str| {
        nothing()
            .lock("{T1}", 3_000)
            .meta(&format!("{META}{count}"), WEEK)
            .line(&[(2, "900")])
            .waiters(&[(2, LIVE)])
    };
    let after = |count: &str| {
        nothing()
            .lock("{T2}", WINDOW)
            .meta(&format!("{OFFERED}{count}"), WEEK)
            .line(&[(2, "900")])
            .waiters(&[(2, LIVE_OFFERED)])
    };
    let share = || Release { foreign_share: true, ..release(1) };
    given(before("")).call(share()).replies("released").hints(5).leaves(after(", hand_offs 1"));
    let counted = after(", hand_offs 2");
    given(before(", hand_offs 1")).call(share()).replies("released").hints(5).leaves(counted);
    let uncounted = after(", hand_offs 2");
    given(before(", hand_offs 2")).call(release(1)).replies("released").hints(5).leaves(uncounted);
    // The row may last a little longer; or nobody took the last turns, and the next is not due.
    let row = ", row_until {then+5000}";
    let longer = after(&format!(", hand_offs 8{row}"));
    given(before(&format!(", hand_offs 7{row}"))).call(share()).replies("released").hints(5).leaves(longer);
    let rare = ", share_until {then-5000}, share_windows 0";
    let alone = after(&format!(", hand_offs 8{rare}"));
    given(before(&format!(", hand_offs 7{rare}"))).call(share()).replies("released").hints(5).leaves(alone);
    let due = ", share_until {then-10001}, share_windows 0";
    given(before(&format!(", hand_offs 7{due}"))).call(share()).replies("released").hints(5).leaves(
        nothing()
            .meta(&format!("{META}, share_until {{now+200}}, share_windows 0"), WEEK)
            .line(&[(2, "900")])
            .waiters(&[(2, LIVE)]),
    );
}

#[test]
fn without_a_line_there_is_nothing_to_share() {
    given(nothing().lock("{T1}", 3_000).meta(&format!("{META}, hand_offs 32"), WEEK))
        .call(Release { foreign_share: true, ..release(1) })
        .replies("released")
        .leaves(nothing().meta(&format!("{META}, hand_offs 32"), WEEK));
}
