//! Keys and limits: what keys.lua, places.lua, pull.lua, promote_keys.lua and gate.lua do in the verbs of tasks;
//! queue/limit_key.lua and queue/list_keys.lua.

use stanchion::internals::task_key;
use stanchion::protocol::{
    Configure, Due, ListKeys, NewTask, OwnLimits, QueueVerb, Rate, TaskState, Verdict,
};

use crate::case::given;
use crate::queue_case::{
    LEASE, Tweak, ack, claim, claim_or_wait, enqueue, get, limit_key, list, list_keys, ms, peek, place,
    plain, pop, remove, reschedule, settle,
};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
/// After everything here.
fn lease() -> String {
    format!("{{now+{LEASE}}}")
}

const LATER: &str = "{then+9000}";
const RUNS: &str = "receipt 40, attempts 1, key k";

fn of_k(id: &str) -> NewTask {
    plain(id).key("k")
}

/// A queue with one task of the key in line, and one held.
fn one_and_one() -> State {
    nothing()
        .ready("a", 20, "key k")
        .held_by_key("b", "k", 21, "")
        .key("k", "held 1, in_line 0")
        .limits("")
        .counts("counter 50, sequence 21")
}

fn limited(limits: &str) -> State {
    nothing().limits(limits).counts(COUNTS)
}

#[test]
fn of_a_key_one_task_stands_in_line_and_the_others_are_held() {
    given(nothing().counts(COUNTS).resting())
        .call(enqueue([of_k("a"), of_k("b"), plain("c")]))
        .replies("*")
        .leaves(
            nothing()
                .ready("a", 21, "version {us}, due {now}, first {now}, key k")
                .held_by_key("b", "k", 22, "version {us+1}, due {now}, first {now}")
                .ready("c", 23, "version {us+2}, due {now}, first {now}")
                .key("k", "held 1, in_line 0")
                .limits("")
                .call("7: [13 15 {us} {now} 15 {us+1} {now} 15 {us+2} {now}]")
                .counts("counter {us+2}, sequence 23, enqueued 3"),
        );
}

#[test]
fn a_higher_priority_than_all_in_line_does_not_wait_behind_them() {
    given(one_and_one()).call(enqueue([NewTask { priority: 9, ..of_k("c") }])).replies("*").leaves(
        one_and_one()
            .ready("c", 22, "version {us}, due {now}, first {now}, priority 9, key k")
            .key("k", "held 1, in_line 0, and 9")
            .call("7: [13 15 {us} {now}]")
            .counts("counter {us}, sequence 22, enqueued 1"),
    );
}

#[test]
fn what_is_claimed_pulls_the_next_of_its_key_to_the_end_of_the_line() {
    let state = nothing()
        .ready("a", 19, "key k")
        .ready("c", 20, "")
        .held_by_key("b", "k", 18, "")
        .key("k", "held 1, in_line 0")
        .limits("")
        .counts(COUNTS);
    let claimed = "receipt {us}, attempts 1, key k";
    given(state).call(claim(1)).replies("*").leaves(
        nothing()
            .claimed("a", &lease(), claimed)
            .ready("c", 20, "")
            .ready("b", 21, "key k")
            .key("k", "in_line 0")
            .limits("")
            .call("7: [[a {us}]]")
            .counts("counter {us}, sequence 21"),
    );
}

#[test]
fn no_more_of_a_key_run_than_its_concurrency_allows() {
    let runs = || limited("key_concurrency 1, counts_runs 1").claimed("a", LATER, RUNS).key("k", "running 1");
    given(runs()).call(enqueue([of_k("b")])).replies("*").leaves(
        runs()
            .held_by_key("b", "k", 21, "version {us}, due {now}, first {now}")
            .key("k", "running 1, held 1")
            .call("7: [13 15 {us} {now}]")
            .counts("counter {us}, sequence 21, enqueued 1"),
    );
    let held = || runs().held_by_key("b", "k", 20, "").key("k", "running 1, held 1");
    given(held()).call(claim(9)).replies("empty {~9000} rank 0").leaves(held().call("7: [[]]"));
    given(held()).call(settle(&[("a", 40, ack())])).replies("done").leaves(
        limited("key_concurrency 1, counts_runs 1")
            .ready("b", 21, "key k")
            .key("k", "in_line 0")
            .counts("counter 50, sequence 21, acked 1"),
    );
}

#[test]
fn one_in_line_that_may_not_run_is_held_when_its_turn_comes() {
    // The concurrency was lowered, or a higher priority came before it.
    let state = || {
        limited("key_concurrency 1, counts_runs 1")
            .claimed("a", LATER, RUNS)
            .ready("b", 20, "key k")
            .key("k", "running 1, in_line 0")
    };
    given(state()).call(claim(9)).replies("empty {~9000} rank 0").leaves(
        limited("key_concurrency 1, counts_runs 1")
            .claimed("a", LATER, RUNS)
            .held_by_key("b", "k", 20, "")
            .key("k", "running 1, held 1")
            .call("7: [[]]"),
    );
}

#[test]
fn a_key_with_a_rate_waits_by_time() {
    let rated = "key_count 2, key_per 1000, key_burst 1";
    let state =
        || limited(rated).ready("a", 19, "key k").held_by_key("b", "k", 20, "").key("k", "held 1, in_line 0");
    given(state()).call(claim(9)).replies("*").leaves(
        limited(rated)
            .claimed("a", &lease(), "receipt {us}, attempts 1, key k")
            .held_by_key("b", "k", 20, "")
            .key("k", "held 1, tat {us+500000}, waiting 1")
            .key_waits("k", "{up+400}")
            .call("7: [[a {us}]]")
            .counts("counter {us}, sequence 20"),
    );
}

/// Otherwise nobody would look when that time has come: who waits asked before.
#[test]
fn who_waits_is_told_of_a_key_that_may_go_on_soon() {
    let rated = |per: u64| limited(&format!("key_count 2, key_per {per}, key_burst 1"));
    let state = |per| {
        rated(per)
            .ready("a", 19, "key k")
            .held_by_key("b", "k", 20, "")
            .key("k", "held 1, in_line 0")
            .idle(6, "{then+7500}")
    };
    let after = |per: u64| {
        rated(per)
            .claimed("a", &lease(), "receipt {us}, attempts 1, key k")
            .held_by_key("b", "k", 20, "")
            .key("k", &format!("held 1, tat {{us+{}}}, waiting 1", per * 500))
            .key_waits("k", &format!("{{up+{}}}", per / 2 - 100))
            .call("7: [[a {us}]]")
            .counts("counter {us}, sequence 20")
    };
    given(state(2_000)).call(claim(9)).replies("*").hints(6).leaves(after(2_000));
    given(state(60_000)).call(claim(9)).replies("*").leaves(after(60_000).idle(6, "{then+7500}"));
}

#[test]
fn a_throttle_holds_the_key_and_puts_the_task_back_to_its_place() {
    let state = || limited("").claimed("a", LATER, "receipt 40, attempts 1, turn 7, key k");
    given(state()).call(settle(&[("a", 40, Verdict::Throttle { time: ms(5_000) })])).replies("done").leaves(
        limited("")
            .held_by_key("a", "k", 7, "settled 40, verdict 7")
            .key("k", "held 1, until {now+5000}, waiting 1")
            .key_waits("k", "{now+5000}"),
    );
    let plain = limited("").claimed("a", LATER, "receipt 40, attempts 1, turn 7");
    given(plain)
        .call(settle(&[("a", 40, Verdict::Throttle { time: ms(5_000) })]))
        .replies("done")
        .leaves(limited("held_until {now+5000}").ready("a", 7, "settled 40, verdict 7"));
    let held = || limited("held_until {then+5000}, alike 1").ready("a", 7, "");
    given(held())
        .call(claim_or_wait(9, 5))
        .replies("empty {~5000} rank 0")
        .leaves(held().call("7: [[]]").idle(5, "{now+7500}"));
    given(held()).call(pop(9)).replies("").changes_nothing();
}

#[test]
fn a_key_whose_time_has_come_goes_on_with_the_next_claim() {
    let state = limited("")
        .held_by_key("a", "k", 7, "")
        .key("k", "held 1, until {then-1}, waiting 1")
        .key_waits("k", "{then-1}");
    given(state).call(claim(1)).replies("*").leaves(
        limited("")
            .claimed("a", &lease(), "receipt {us}, attempts 1, key k")
            .call("7: [[a {us}]]")
            .counts("counter {us}, sequence 21"),
    );
}

#[test]
fn what_leaves_the_line_makes_room_whatever_becomes_of_it() {
    let pulled =
        |counts: &str| nothing().ready("b", 22, "key k").key("k", "in_line 0").limits("").counts(counts);
    given(one_and_one()).call(remove("a", None)).replies("*").leaves(pulled("counter 50, sequence 22"));
    given(one_and_one())
        .call(reschedule("a", Due::In(ms(5_000))))
        .replies("*")
        .leaves(pulled("counter 50, sequence 22").scheduled("a", "{now+5000}", "key k"));
    given(one_and_one()).call(enqueue([plain("a").key("l").replace()])).replies("*").leaves(
        nothing()
            .ready("a", 22, "version {us}, due {now}, first {now}, key l")
            .ready("b", 23, "key k")
            .key("k", "in_line 0")
            .key("l", "in_line 0")
            .limits("")
            .call("7: [13 17 {us} {now}]")
            .counts("counter {us}, sequence 23, enqueued 1"),
    );
}

#[test]
fn a_held_task_is_seen_and_moved_as_any_other() {
    given(one_and_one())
        .call(get("b"))
        .replies("b held b version 1 due 1 attempts 0 receipt 0 key k")
        .changes_nothing();
    given(one_and_one())
        .call(list(TaskState::Held, None, 9))
        .replies("b held b version 1 due 1 attempts 0 receipt 0 key k")
        .changes_nothing();
    given(one_and_one())
        .call(peek(9))
        .replies("a ready b version 1 due 1 attempts 0 receipt 0 key k")
        .changes_nothing();
    let alone = || {
        nothing().ready("a", 20, "key k").key("k", "in_line 0").limits("").counts("counter 50, sequence 21")
    };
    given(one_and_one()).call(remove("b", None)).replies("removed").leaves(alone());
    given(one_and_one()).call(reschedule("b", Due::In(ms(5_000)))).replies("*").leaves(alone().scheduled(
        "b",
        "{now+5000}",
        "key k",
    ));
}

#[test]
fn a_queue_lets_no_more_run_than_it_may() {
    let full =
        || limited("max_running 1, alike 1").claimed("a", LATER, "receipt 40, attempts 1").ready("b", 20, "");
    given(full()).call(claim(9)).replies("empty {~9000} rank 0").leaves(full().call("7: [[]]"));
    given(full()).call(pop(9)).replies("").changes_nothing();
    let free = || {
        limited("max_running 2")
            .claimed("a", LATER, "receipt 40, attempts 1")
            .ready("b", 19, "")
            .ready("c", 20, "")
    };
    given(free()).call(claim(9)).replies("*").leaves(
        limited("max_running 2")
            .claimed("a", LATER, "receipt 40, attempts 1")
            .claimed("b", &lease(), "receipt {us}, attempts 1")
            .ready("c", 20, "")
            .call("7: [[b {us}]]")
            .counts("counter {us}, sequence 20"),
    );
}

#[test]
fn a_queue_with_a_rate_says_when_the_next_may_go() {
    let rated =
        |tat: &str| limited(&format!("rate_count 1, rate_per 60000, rate_burst 1, rate_tat {tat}, alike 1"));
    given(rated("0").ready("a", 19, "").ready("b", 20, "")).call(claim(9)).replies("*").leaves(
        rated("{us+60000000}")
            .claimed("a", &lease(), "receipt {us}, attempts 1")
            .ready("b", 20, "")
            .call("7: [[a {us}]]")
            .counts("counter {us}, sequence 20"),
    );
    // Nine tenths of a gap earlier, and no more than 100 ms.
    let waits = || rated("{then_us+60000000}").ready("b", 20, "");
    given(waits())
        .call(claim_or_wait(9, 5))
        .replies("empty {~59899} rank 0")
        .leaves(waits().call("7: [[]]").idle(5, "{now+7500}"));
}

/// The clock was set back, or another master's is behind: no more than one gap is waited for.
#[test]
fn a_rate_whose_time_is_too_far_ahead_counts_as_just_used() {
    let rate = "rate_count 1, rate_per 60000, rate_burst 1, rate_tat {then_us+3600000000}, alike 1";
    given(limited(rate).ready("b", 20, ""))
        .call(claim(9))
        .replies("empty {~60000} rank 0")
        .leaves(limited(rate).ready("b", 20, "").call("7: [[]]"));
}

/// As long as no key has had more than one task in line, or less, nobody asks what is known of those that leave it.
#[test]
fn where_all_keys_are_alike_what_leaves_the_line_was_its_keys_only_one() {
    let alike = || limited("alike 1").ready("a", 19, "key k").key("k", "in_line 0");
    given(alike()).call(claim(1)).replies("*").leaves(
        limited("alike 1")
            .claimed("a", &lease(), "receipt {us}, attempts 1, key k")
            .call("7: [[a {us}]]")
            .counts("counter {us}, sequence 20"),
    );
    // One that is held ends that, and nothing that is known of any key begins it anew.
    given(alike()).call(enqueue([of_k("b")])).replies("*").leaves(
        limited("")
            .ready("a", 19, "key k")
            .held_by_key("b", "k", 21, "version {us}, due {now}, first {now}")
            .key("k", "held 1, in_line 0")
            .call("7: [13 15 {us} {now}]")
            .counts("counter {us}, sequence 21, enqueued 1"),
    );
    given(limited("").claimed("a", LATER, "receipt 40, attempts 1, key k"))
        .call(claim(1))
        .replies("empty {~9000} rank 0")
        .leaves(limited("alike 1").claimed("a", LATER, "receipt 40, attempts 1, key k").call("7: [[]]"));
}

#[test]
fn a_key_gets_limits_of_its_own_and_loses_them() {
    let own = "3 0 0 0 2";
    let rate = Some(Rate { count: 5, per: ms(60_000), burst: 4 });
    let limits = OwnLimits { concurrency: Some(3), rate, weight: 2 };
    let verb = QueueVerb::LimitKey(stanchion::protocol::LimitKey {
        key: task_key("k").unwrap(),
        limits: Some(limits),
    });
    given(nothing())
        .call(verb)
        .replies("done")
        .leaves(nothing().own_limits("k", "3 5 60000 4 2").limits("own_set 1, counts_runs 1, alike 1"));
    let set = || limited("own_set 1, counts_runs 1").own_limits("k", own);
    given(set())
        .call(limit_key("k", Some(3)))
        .replies("done")
        .leaves(limited("own_set 1, counts_runs 1").own_limits("k", "3 0 0 0 1"));
    given(set()).call(limit_key("k", None)).replies("done").leaves(limited("counts_runs 1").resting());
    given(set()).call(limit_key("other", None)).replies("done").changes_nothing();
    // What may run now comes into line at once.
    let waits = limited("key_concurrency 1, counts_runs 1")
        .claimed("a", LATER, RUNS)
        .held_by_key("b", "k", 20, "")
        .key("k", "running 1, held 1");
    given(waits).call(limit_key("k", Some(2))).replies("*").leaves(
        limited("key_concurrency 1, own_set 1, counts_runs 1")
            .own_limits("k", "2 0 0 0 1")
            .claimed("a", LATER, RUNS)
            .ready("b", 21, "key k")
            .key("k", "running 1, in_line 0")
            .counts("counter 50, sequence 21"),
    );
}

#[test]
fn a_changed_limit_is_looked_at_by_the_next_claim() {
    let state = || {
        limited("key_concurrency 1, counts_runs 1")
            .claimed("a", LATER, RUNS)
            .held_by_key("b", "k", 20, "")
            .key("k", "running 1, held 1")
    };
    let more = Configure { key_concurrency: Some(Some(2)), ..Configure::default() };
    given(state()).call(QueueVerb::Configure(more)).replies("done").leaves(
        limited("key_concurrency 2, key_sweep -, counts_runs 1")
            .claimed("a", LATER, RUNS)
            .held_by_key("b", "k", 20, "")
            .key("k", "running 1, held 1"),
    );
    let swept = limited("key_concurrency 2, key_sweep -, counts_runs 1")
        .claimed("a", LATER, RUNS)
        .held_by_key("b", "k", 20, "")
        .key("k", "running 1, held 1");
    given(swept).call(claim(1)).replies("*").leaves(
        limited("key_concurrency 2, counts_runs 1")
            .claimed("a", LATER, RUNS)
            .claimed("b", &lease(), "receipt {us}, attempts 1, key k")
            .key("k", "running 2")
            .call("7: [[b {us}]]")
            .counts("counter {us}, sequence 21"),
    );
}

#[test]
fn keys_are_listed_those_that_hold_tasks_first() {
    let state = || {
        limited("own_set 2")
            .claimed("a", LATER, RUNS)
            .held_by_key("b", "k", 20, "")
            .key("k", "running 1, held 1, until {then+5000}, waiting 1")
            .key_waits("k", "{then+5000}")
            .own_limits("k", "2 0 0 0 3")
            .own_limits("free", "0 7 1000 1 1")
    };
    given(state())
        .call(list_keys(9))
        .replies("k runs 1 in line 0 held 1 opens in {~5000} own Some(2) None weight 3; free runs 0 in line 0 held 0 own None Some(7) weight 1")
        .changes_nothing();
    let next = place("14/0/k");
    let page = QueueVerb::ListKeys(ListKeys::Page { from: Some(next), max: 9 });
    given(state())
        .call(page)
        .replies("free runs 0 in line 0 held 0 own None Some(7) weight 1")
        .changes_nothing();
    given(state())
        .call(QueueVerb::ListKeys(ListKeys::One(task_key("no").unwrap())))
        .replies("no runs 0 in line 0 held 0")
        .changes_nothing();
}

#[test]
fn keys_that_an_older_library_has_left_counted_are_looked_at_again() {
    // It settled the task and did not know that its key counts it.
    let state = || limited("counts_runs 1").held_by_key("b", "k", 20, "").key("k", "running 1, held 1");
    given(state()).call(claim(1)).replies("empty 0 rank 0").leaves(
        limited("key_sweep -, counts_runs 1")
            .held_by_key("b", "k", 20, "")
            .key("k", "running 1, held 1")
            .call("7: [[]]"),
    );
    let swept =
        limited("key_sweep -, counts_runs 1").held_by_key("b", "k", 20, "").key("k", "running 1, held 1");
    given(swept).call(claim(1)).replies("*").leaves(
        limited("counts_runs 1")
            .claimed("b", &lease(), "receipt {us}, attempts 1, key k")
            .key("k", "running 1")
            .call("7: [[b {us}]]")
            .counts("counter {us}, sequence 21"),
    );
}
