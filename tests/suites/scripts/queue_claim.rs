//! queue/claim.lua, with what promote.lua and take.lua do for it.

use stanchion::protocol::NewTask;

use crate::case::{Bench, describe, given};
use crate::queue_case::{LEASE, Tweak, by, claim, claim_or_wait, enqueue, plain, request};
use crate::queue_state::CALL_TTL;
use crate::state::{Content, QUEUE_WEEK, State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
/// The counts after one claim.
const ONE: &str = "counter {us}, sequence 20";

fn after(state: State, counts: &str, stored: &str) -> State {
    state.counts(counts).call(&format!("7: [[{stored}]]"))
}

/// The reply for the first attempt at a plain task.
fn told(id: &str, receipt: &str) -> String {
    format!("{id} b receipt {receipt} attempt 1/20 version 1 due 1 priority 0 left {LEASE}")
}

fn lease() -> String {
    format!("{{now+{LEASE}}}")
}

#[test]
fn ready_tasks_are_claimed_in_their_order() {
    let three = || nothing().ready("b", 3, "priority 1").ready("a", 1, "").ready("c", 2, "");
    let b = "b b receipt {us} attempt 1/20 version 1 due 1 priority 1 left 30000";
    given(three().counts(COUNTS)).call(claim(2)).replies(&format!("{b}; {}", told("a", "{us+1}"))).leaves(
        after(
            nothing()
                .claimed("a", &lease(), "receipt {us+1}, attempts 1")
                .claimed("b", &lease(), "receipt {us}, attempts 1, priority 1")
                .ready("c", 2, ""),
            "counter {us+1}, sequence 20",
            "b {us} a {us+1}",
        ),
    );
}

#[test]
fn what_a_task_was_is_told_and_kept() {
    let fields = "version 9, due 5, priority 7, attempts 2, max_attempts 3, expires {then+9000}, settled 40, \
                  verdict 2, reason x";
    given(nothing().ready("a", 1, fields).body("a", "text").counts(COUNTS))
        .call(claim(9))
        .replies("a text receipt {us} attempt 3/3 version 9 due 5 priority 7 left 30000")
        .leaves(after(
            nothing()
                .claimed("a", &lease(), &format!("{fields}, attempts 3, receipt {{us}}"))
                .body("a", "text"),
            ONE,
            "a {us}",
        ));
}

#[test]
fn an_empty_queue_is_told_with_the_time_until_the_next_due() {
    let rows = [
        (nothing(), "never"),
        (nothing().scheduled("a", "{then+5000}", ""), "{~5000}"),
        (nothing().scheduled("a", "{then+5000}", "").claimed("b", "{then+4000}", "receipt 1"), "{~4000}"),
        (nothing().scheduled("a", "{then+5000}", "").intake("c", "4000000000"), "{~5000}"),
    ];
    for (state, next) in rows {
        given(state.clone().counts(COUNTS))
            .call(claim(1))
            .replies(&format!("empty {next} rank 0"))
            .leaves(after(if next == "never" { state.counts(COUNTS).resting() } else { state }, COUNTS, ""));
    }
}

#[test]
fn who_finds_nothing_is_registered_and_told_its_rank() {
    let later = || nothing().scheduled("a", "{then+5000}", "").counts(COUNTS);
    given(later()).call(claim_or_wait(1, 5)).replies("empty {~5000} rank 0").leaves(after(
        later().idle(5, "{now+7500}"),
        COUNTS,
        "",
    ));
    given(later().idle(4, "{then-1}").idle(5, "{then+5000}").idle(6, "{then+6000}"))
        .call(claim_or_wait(1, 5))
        .replies("empty {~5000} rank 1")
        .leaves(after(later().idle(6, "{then+6000}").idle(5, "{now+7500}"), COUNTS, ""));
    // Paused: it waits as well.
    let paused = || nothing().ready("a", 1, "").settings("paused yes").counts(COUNTS);
    given(paused()).call(claim_or_wait(1, 5)).replies("paused rank 0").leaves(after(
        paused().idle(5, "{now+7500}"),
        COUNTS,
        "",
    ));
    given(paused()).call(claim(1)).replies("paused rank 0").leaves(after(paused(), COUNTS, ""));
}

#[test]
fn who_claims_is_kept_with_the_task_and_with_the_wait() {
    const WHO: &str = "7 host web";
    given(nothing().ready("a", 1, "").idle_of(WHO, 5, "{then+5000}").counts(COUNTS))
        .call(by(WHO, claim_or_wait(1, 5)))
        .replies(&told("a", "{us}"))
        .leaves(after(
            nothing().claimed("a", &lease(), &format!("receipt {{us}}, attempts 1, consumer {WHO}")),
            ONE,
            "a {us}",
        ));
    let later = || nothing().scheduled("a", "{then+5000}", "").counts(COUNTS);
    given(later()).call(by(WHO, claim_or_wait(1, 5))).replies("empty {~5000} rank 0").leaves(after(
        later().idle_of(WHO, 5, "{now+7500}"),
        COUNTS,
        "",
    ));
    // Another takes it over.
    given(
        nothing()
            .ready("a", 1, "attempts 1, has_successor 1, consumer 6 host ")
            .successor("a", "version 9")
            .counts(COUNTS),
    )
    .call(by(WHO, claim(1)))
    .replies(&told("a", "{us}").replace("attempt 1", "attempt 2"))
    .leaves(after(
        nothing()
            .claimed("a", &lease(), &format!("receipt {{us}}, attempts 2, has_successor 1, consumer {WHO}"))
            .successor("a", "version 9"),
        ONE,
        "a {us}",
    ));
}

#[test]
fn who_gets_something_waits_no_more_and_the_next_is_hinted_if_there_is_more() {
    let idle = |state: State| state.idle(5, "{then+5000}").idle(6, "{then+6000}").counts(COUNTS);
    let claimed = || nothing().claimed("a", &lease(), "receipt {us}, attempts 1");
    given(idle(nothing().ready("a", 1, "")))
        .call(claim_or_wait(1, 5))
        .replies(&told("a", "{us}"))
        .leaves(after(claimed().idle(6, "{then+6000}"), ONE, "a {us}"));
    given(idle(nothing().ready("a", 1, "").ready("b", 2, "")))
        .call(claim_or_wait(1, 5))
        .replies(&told("a", "{us}"))
        .hints(6)
        .leaves(after(claimed().ready("b", 2, ""), ONE, "a {us}"));
}

#[test]
fn due_tasks_come_into_line_in_order_of_due_behind_those_that_are_there() {
    let before = nothing()
        .ready("c", 1, "")
        .scheduled("b", "{then-20}", "")
        .scheduled("a", "{then-10}", "")
        .scheduled("d", "{then-5}", "priority 1")
        .scheduled("e", "{then+9000}", "");
    let d = "d b receipt {us} attempt 1/20 version 1 due {then-5} priority 1 left 30000";
    given(before.counts(COUNTS)).call(claim(2)).replies(&format!("{d}; {}", told("c", "{us+1}"))).leaves(
        after(
            nothing()
                .claimed("c", &lease(), "receipt {us+1}, attempts 1")
                .claimed("d", &lease(), "due {then-5}, receipt {us}, attempts 1, priority 1")
                .ready("b", 21, "due {then-20}")
                .ready("a", 22, "due {then-10}")
                .scheduled("e", "{then+9000}", ""),
            "counter {us+1}, sequence 23",
            "d {us} c {us+1}",
        ),
    );
}

#[test]
fn a_task_whose_lease_has_ended_is_delivered_again() {
    let before = nothing().claimed("a", "{then-1}", "receipt 40, attempts 1");
    given(before.counts(COUNTS))
        .call(claim(1))
        .replies("a b receipt {us} attempt 2/20 version 1 due 1 priority 0 left 30000")
        .leaves(after(
            nothing().claimed(
                "a",
                &lease(),
                "receipt {us}, attempts 2, first {then-1}, reason the lease ended",
            ),
            "counter {us}, sequence 21, retried 1",
            "a {us}",
        ));
}

#[test]
fn a_task_whose_last_lease_has_ended_dies() {
    let fields = "receipt 40, attempts 3, max_attempts 3";
    let dead = || {
        nothing().dead(
            "40",
            "a",
            "{now}",
            "attempts 3, max_attempts 3, reason the lease ended, settled 40, verdict 5",
        )
    };
    let counts = "counter 50, sequence 20, died 1, dead_size 1";
    given(nothing().claimed("a", "{then-1}", fields).counts(COUNTS))
        .call(claim(1))
        .replies("empty never rank 0")
        .leaves(after(dead().counts(counts).resting(), counts, ""));
    // Its successor lives on.
    let before = nothing()
        .claimed("a", "{then-1}", &format!("{fields}, has_successor 1"))
        .successor("a", "version 9")
        .body("+a", "next");
    given(before.counts(COUNTS))
        .call(claim(1))
        .replies("a next receipt {us} attempt 1/20 version 9 due 1 priority 0 left 30000")
        .leaves(after(
            dead().claimed("a", &lease(), "version 9, receipt {us}, attempts 1").body("a", "next"),
            "counter {us}, sequence 21, died 1, dead_size 1",
            "a {us}",
        ));
}

#[test]
fn a_successor_that_replaces_takes_the_place_of_the_retry_when_the_lease_ends() {
    let before = |replaces: u64| {
        nothing()
            .claimed("a", "{then-1}", "receipt 40, attempts 1, has_successor 1")
            .successor("a", &format!("version 9, replaces {replaces}"))
            .body("+a", "next")
            .counts(COUNTS)
    };
    given(before(1))
        .call(claim(1))
        .replies("a next receipt {us} attempt 1/20 version 9 due 1 priority 0 left 30000")
        .leaves(after(
            nothing()
                .claimed("a", &lease(), "version 9, receipt {us}, attempts 1, settled 40, verdict 6")
                .body("a", "next"),
            "counter {us}, sequence 21, retried 1",
            "a {us}",
        ));
    given(before(0))
        .call(claim(1))
        .replies("a b receipt {us} attempt 2/20 version 1 due 1 priority 0 left 30000")
        .leaves(after(
            nothing()
                .claimed(
                    "a",
                    &lease(),
                    "receipt {us}, attempts 2, first {then-1}, reason the lease ended, has_successor 1",
                )
                .successor("a", "version 9")
                .body("+a", "next"),
            "counter {us}, sequence 21, retried 1",
            "a {us}",
        ));
}

#[test]
fn expired_tasks_die_and_do_not_count() {
    let before = nothing()
        .ready("a", 1, "expires {then-1}")
        .ready("b", 2, "expires {then-1}, receipt 40, attempts 1, reason no luck")
        .ready("c", 3, "expires {then+9000}")
        .ready("d", 4, "");
    given(before.counts(COUNTS))
        .call(claim(1))
        .replies("c b receipt {us+1} attempt 1/20 version 1 due 1 priority 0 left 30000")
        .leaves(after(
            nothing()
                .expired("40", "b", "{now}", "expires {then-1}, attempts 1, reason expired; before: no luck")
                .expired("{us}", "a", "{now}", "expires {then-1}, reason expired")
                .claimed("c", &lease(), "expires {then+9000}, receipt {us+1}, attempts 1")
                .ready("d", 4, ""),
            "counter {us+1}, sequence 20, died 2, expired_size 2",
            "c {us+1}",
        ));
}

#[test]
fn no_more_bodies_than_fit_are_given_but_always_one() {
    let mut bench = Bench::new();
    let large = |id: &str, size: usize| NewTask { body: vec![b'x'; size].into(), ..plain(id) };
    let tasks = [large("a", 9 << 17), large("b", 5 << 17), large("c", 3 << 17), large("d", 1)];
    bench.call(request(enqueue(tasks))).unwrap();
    let mut given = Vec::new();
    for number in 8..11 {
        let mut verb = claim(9);
        let stanchion::protocol::QueueVerb::Claim(claim) = &mut verb else { panic!("no claim") };
        claim.call.number = number;
        let reply = describe(&bench.call(request(verb)).unwrap());
        given.push(reply.split("; ").map(|task| task[..1].to_owned()).collect::<String>());
    }
    assert_eq!(given, ["a", "bc", "d"]);
}

#[test]
fn a_repeated_claim_is_given_the_same_as_far_as_it_still_has_it() {
    let state = || {
        nothing()
            .claimed("a", "{then+9000}", "receipt 40, attempts 1")
            // Settled, delivered again, ended, gone.
            .claimed("c", "{then+9000}", "receipt 90, attempts 2")
            .claimed("d", "{then-1}", "receipt 43, attempts 1")
            .ready("b", 3, "attempts 1, settled 41, verdict 2")
            .counts(COUNTS)
            .call("7: [[a 40 b 41 c 42 d 43 e 44]]")
    };
    given(state().idle(5, "{then+5000}"))
        .call(claim_or_wait(9, 5))
        .replies("a b receipt 40 attempt 1/20 version 1 due 1 priority 0 left {~9000}")
        .leaves(state());
    // What is left is nothing: it waits as if there had been nothing.
    let nothing_left = || nothing().scheduled("a", "{then+5000}", "").counts(COUNTS).call("7: [[a 40]]");
    given(nothing_left())
        .call(claim_or_wait(9, 5))
        .replies("empty {~5000} rank 0")
        .leaves(nothing_left().idle(5, "{now+7500}"));
    let later = state().with_key("q:call 0", Content::Text("8: [[]]".into()), Some(CALL_TTL));
    given(later).call(claim_or_wait(9, 5)).replies("superseded").changes_nothing();
}

#[test]
fn members_whose_state_was_deleted_are_dropped() {
    let z = |member: &str, score: &str| Content::Zset(vec![(member.to_owned(), score.to_owned())]);
    let before = nothing()
        .with_key("q:ready", z("a", "5"), None)
        .with_key("q:scheduled", z("b", "5"), None)
        .with_key("q:claimed", z("c", "5"), None)
        .counts(COUNTS);
    given(before).call(claim(9)).replies("empty never rank 0").leaves(after(
        nothing().counts(COUNTS).resting(),
        COUNTS,
        "",
    ));
}

/// At most a thousand are moved by one call: first leases, then tasks, then the intake.
#[test]
fn promotion_is_bounded() {
    let mut bench = Bench::new();
    let mut state = nothing();
    for number in 0..600 {
        state = state.claimed(&format!("l{number:03}"), "5", "receipt 40, attempts 1");
        state = state.scheduled(&format!("s{number:03}"), "5", "");
        state = state.intake(&format!("i{number:03}"), "5");
    }
    bench.set_up(&state.counts(COUNTS));
    let lengths = |bench: &mut Bench| {
        let state = bench.state();
        let length = |key: &str| match state.0.get(key) {
            Some((Content::Zset(members), _)) => members.len(),
            _ => 0,
        };
        ["q:claimed", "q:scheduled", "q:intake", "q:ready"].map(length)
    };
    let mut found = Vec::new();
    for number in 7..9 {
        let mut verb = claim(1);
        let stanchion::protocol::QueueVerb::Claim(claim) = &mut verb else { panic!("no claim") };
        claim.call.number = number;
        bench.call(request(verb)).unwrap();
        found.push(lengths(&mut bench));
    }
    // One of the moved ones is claimed each time.
    assert_eq!(found, [[1, 200, 600, 999], [2, 0, 0, 1_798]]);
}

#[test]
fn the_intake_takes_in_what_there_is_room_for() {
    let before = nothing().intake("x", "5").intake("b", "6").intake("a", "7").intake("c", "8");
    let before = before.scheduled("x", "{then+9000}", "version 3").settings("max_len 2").counts(COUNTS);
    given(before)
        .call(claim(1))
        // Of x, which lives already, the due is moved.
        .replies("x b receipt {us} attempt 1/20 version {us} due 5000 priority 0 left 30000")
        .leaves(
            nothing()
                .claimed("x", &lease(), "version {us}, due 5000, receipt {us}, attempts 1")
                .ready("b", 22, "version {us}, due 6000, first {now}")
                .no_body("b")
                .intake("a", "7")
                .intake("c", "8")
                .settings("max_len 2")
                .counts("counter {us}, sequence 22, enqueued 2")
                .call("7: [[x {us}]]"),
        );
    // A full queue does not say that there is something to take in.
    let full = || nothing().claimed("x", "{then+9000}", "receipt 40").intake("a", "7").settings("max_len 1");
    given(full().counts(COUNTS))
        .call(claim(1))
        .replies("empty {~9000} rank 0")
        .leaves(full().counts(COUNTS).call("7: [[]]"));
}

/// A life that still lasts for longer than it has to is not written anew by each of them.
#[test]
fn an_empty_poll_writes_its_number_alone() {
    let before = || {
        let mut state = nothing().counts(COUNTS).resting();
        state.0.get_mut("q:queue").unwrap().1 = Some(QUEUE_WEEK - 1_800_000);
        state
    };
    given(before()).call(claim(1)).replies("empty never rank 0").leaves(before().call("7: [[]]"));
}

#[test]
fn no_more_than_two_hundred_expired_tasks_die_at_once() {
    let mut bench = Bench::new();
    let state =
        (0..500).fold(nothing(), |state, number| state.ready(&format!("{number}"), number, "expires 5"));
    bench.set_up(&state.counts(COUNTS));
    for (number, left) in [(8, 300), (9, 100)] {
        let mut verb = claim(900);
        let stanchion::protocol::QueueVerb::Claim(claim) = &mut verb else { panic!("no claim") };
        claim.call.number = number;
        assert_eq!(describe(&bench.call(request(verb)).unwrap()), "empty 0 rank 0");
        let state = bench.state();
        let Content::Zset(ready) = &state.0["q:ready"].0 else { panic!("no line") };
        assert_eq!(ready.len(), left);
    }
}

#[test]
fn the_intake_becomes_tasks() {
    let before = nothing()
        .intake("new", "5.0001")
        .intake("waits", "6")
        .intake("runs", "7")
        .intake("later", "4000000000")
        .scheduled("waits", "{then+9000}", "version 3, priority 4")
        .claimed("runs", "{then+9000}", "receipt 40, attempts 1");
    given(before.counts(COUNTS))
        .call(claim(1))
        .replies("waits b receipt {us+3} attempt 1/20 version {us+1} due 6000 priority 4 left 30000")
        .leaves(after(
            nothing()
                .intake("later", "4000000000")
                .ready("new", 21, "version {us}, due 5001, first {now}")
                .no_body("new")
                .claimed("runs", "{then+9000}", "receipt 40, attempts 1, has_successor 1")
                .successor("runs", "version {us+2}, due 7000, first {now}")
                .no_body("+runs")
                .claimed(
                    "waits",
                    &lease(),
                    "version {us+1}, due 6000, priority 4, receipt {us+3}, attempts 1",
                ),
            "counter {us+3}, sequence 22, enqueued 3",
            "waits {us+3}",
        ));
}

#[test]
fn the_intake_moves_a_successor() {
    let main = "receipt 40, attempts 1, has_successor 1";
    let before = nothing()
        .intake("a", "7")
        .claimed("a", "{then+9000}", main)
        .successor("a", "version 3, due 9, priority 4, replaces 1");
    given(before.counts(COUNTS)).call(claim(1)).replies("empty {~9000} rank 0").leaves(after(
        nothing()
            .claimed("a", "{then+9000}", main)
            .successor("a", "version {us}, due 7000, priority 4, replaces 1"),
        "counter {us}, sequence 20, enqueued 1",
        "",
    ));
}

#[test]
fn what_the_intake_holds_that_is_no_task_dies_at_once() {
    let no_time = "version 0, due 4503599627370496, first {now}, reason the score is no Unix time in seconds";
    let no_id = "version 0, due 5000, first {now}, nameless yes, reason no task may have this id";
    let long = "x".repeat(513);
    let rows = [
        ("a", "1e16", no_time, true),
        ("a", "inf", no_time, true),
        ("a\nb", "5", no_id, false),
        ("", "5", no_id, false),
        ("\u{85}", "5", no_id, false),
        (&*long, "5", no_id, false),
    ];
    for (id, score, fields, known) in rows {
        let shown = &id[..id.len().min(512)];
        let dead = match known {
            true => nothing().dead("{us}", shown, "{now}", fields),
            false => nothing().older_dead("{us}", shown, "{now}", fields),
        };
        let dead = dead.no_dead_body("r{us}");
        let counts = "counter {us}, sequence 20, died 1";
        given(nothing().intake(id, score).counts(COUNTS))
            .call(claim(1))
            .replies("empty never rank 0")
            .leaves(after(dead.counts(counts).resting(), counts, ""));
    }
}

#[test]
fn ids_with_letters_of_any_length_are_taken_in() {
    for id in ["größe", "日本", "🙂", "a b"] {
        given(nothing().intake(id, "5").counts(COUNTS))
            .call(claim(1))
            .replies(&format!(
                "{id}  receipt {{us+1}} attempt 1/20 version {{us}} due 5000 priority 0 left 30000"
            ))
            .leaves(after(
                nothing()
                    .claimed(id, &lease(), "version {us}, due 5000, first {now}, receipt {us+1}, attempts 1")
                    .no_body(id),
                "counter {us+1}, sequence 21, enqueued 1",
                &format!("{id} {{us+1}}"),
            ));
    }
}

#[test]
fn negative_times_are_long_ago() {
    for score in ["-5", "-inf"] {
        given(nothing().intake("a", score).counts(COUNTS))
            .call(claim(1))
            .replies("a  receipt {us+1} attempt 1/20 version {us} due 0 priority 0 left 30000")
            .leaves(after(
                nothing()
                    .claimed("a", &lease(), "version {us}, due 0, first {now}, receipt {us+1}, attempts 1")
                    .no_body("a"),
                "counter {us+1}, sequence 21, enqueued 1",
                "a {us+1}",
            ));
    }
}

#[test]
fn an_intake_that_is_off_is_not_touched() {
    let before = || nothing().intake("a", "5").intake("b", "inf").settings("intake 0");
    given(before().counts(COUNTS)).call(claim(1)).replies("empty never rank 0").leaves(after(
        before(),
        COUNTS,
        "",
    ));
}

#[test]
fn delayed_tasks_are_not_given() {
    let mut bench = Bench::new();
    bench.call(request(enqueue([plain("a").delayed(60_000)]))).unwrap();
    let mut verb = claim(1);
    let stanchion::protocol::QueueVerb::Claim(claim) = &mut verb else { panic!("no claim") };
    claim.call.number = 8;
    assert!(describe(&bench.call(request(verb)).unwrap()).starts_with("empty"));
}
