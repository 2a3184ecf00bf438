//! queue/extend_claim.lua

use crate::case::given;
use crate::queue_case::extend_claim;
use crate::state::nothing;

const COUNTS: &str = "counter 50, sequence 20";

#[test]
fn a_shorter_lease_is_prolonged_and_a_longer_one_is_not_shortened() {
    let state = |ends: &str| nothing().claimed("a", ends, "receipt 40").counts(COUNTS);
    given(state("{then+2000}"))
        .call(extend_claim("a", 40, 9_000))
        .replies("extended 9000")
        .leaves(state("{now+9000}"));
    given(state("{then+20000}"))
        .call(extend_claim("a", 40, 9_000))
        .replies("extended {~20000}")
        .changes_nothing();
}

#[test]
fn what_has_ended_is_not_prolonged() {
    let rows = [
        (nothing().claimed("a", "{then-1}", "receipt 40"), "expired"),
        (nothing().ready("a", 3, "receipt 40"), "expired"),
        (nothing().scheduled("a", "{then+9000}", "receipt 40"), "expired"),
        (nothing().claimed("a", "{then+9000}", "receipt 41"), "stale"),
        (nothing().ready("a", 3, "settled 40, verdict 2"), "stale"),
        (nothing().ready("b", 3, "receipt 40"), "gone"),
        (nothing().dead("40", "a", "{then-5}", ""), "gone"),
        (nothing(), "gone"),
    ];
    for (state, reply) in rows {
        given(state.counts(COUNTS)).call(extend_claim("a", 40, 9_000)).replies(reply).changes_nothing();
    }
    given(nothing().ready("a", 3, "").counts(COUNTS))
        .call(extend_claim("a", 0, 9_000))
        .replies("stale")
        .changes_nothing();
}
