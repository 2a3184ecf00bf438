//! What an enqueue does, by policy and by what is there already.

use std::time::Duration;

use super::SECOND;
use super::queue::*;
use crate::protocol::*;

const KEEP: OnDuplicate = OnDuplicate::Keep;
const REPLACE: OnDuplicate = OnDuplicate::Replace;
const DEBOUNCE: OnDuplicate = OnDuplicate::Debounce { max_wait: Duration::from_secs(60) };
const THROTTLE: OnDuplicate = OnDuplicate::Throttle { window: SECOND };

/// The task "a" with the body "n" and this policy.
fn newer(on_duplicate: OnDuplicate) -> NewTask {
    with_body("n", on_duplicate)
}

fn with_body(body: &str, on_duplicate: OnDuplicate) -> NewTask {
    NewTask { body: body.as_bytes().into(), on_duplicate, ..task("a") }
}

/// A queue in which "a" is in this state.
fn queue_with(state: &str) -> Queue {
    let queue = queue();
    let (state, successor) = state.split_once(" + ").unwrap_or((state, ""));
    match state {
        "none" => return queue,
        "scheduled" => {
            queue.enqueue(NewTask { due: Due::In(10 * SECOND), ..task("a") });
            return queue;
        }
        _ => queue.add(&["a"]),
    }
    if state == "ready" {
        return queue;
    }
    let receipt = queue.take("a");
    match successor {
        "keep" => drop(queue.enqueue(with_body("s", KEEP))),
        "replace" => drop(queue.enqueue(with_body("s", REPLACE))),
        _ => {}
    }
    match state {
        "backoff" => {
            let verdict = Verdict::Nack { delay: 10 * SECOND, reason: "no".into() };
            assert_eq!(queue.settle("a", receipt, verdict), DONE);
        }
        "dead" => assert_eq!(queue.settle("a", receipt, bury()), DEAD),
        "ended" => queue.pass(LEASE),
        "waiting" => {
            queue.pass(LEASE);
            queue.promote();
        }
        other => assert_eq!(other, "claimed"),
    }
    queue
}

#[test]
#[rustfmt::skip] // a table
fn every_policy_on_every_state() {
    use Outcome::{Added, Kept, Replaced, Successor};
    // What is there, what a keep or throttle does, and what a replace or debounce does.
    let table = [
        ("none", (Added, "ready 0 n"), (Added, "ready 0 n")),
        ("dead", (Added, "ready 0 n"), (Added, "ready 0 n")),
        ("scheduled", (Kept, "scheduled 0 a"), (Replaced, "ready 0 n")),
        ("ready", (Kept, "ready 0 a"), (Replaced, "ready 0 n")),
        ("backoff", (Kept, "scheduled 1 a"), (Replaced, "scheduled 0 n")),
        ("claimed", (Successor, "claimed running 1 a, parked 0 n"), (Successor, "claimed running 1 a, parked replaces 0 n")),
        ("ended", (Kept, "ready running 1 a"), (Replaced, "ready 0 n")),
        ("waiting", (Kept, "ready running 1 a"), (Replaced, "ready 0 n")),
        ("claimed + keep", (Kept, "claimed running 1 a, parked 0 s"), (Replaced, "claimed running 1 a, parked replaces 0 n")),
        ("claimed + replace", (Kept, "claimed running 1 a, parked replaces 0 s"), (Replaced, "claimed running 1 a, parked replaces 0 n")),
        ("ended + keep", (Kept, "ready running 1 a, parked 0 s"), (Replaced, "ready 0 n")),
        ("backoff + keep", (Kept, "scheduled 1 a, parked 0 s"), (Replaced, "scheduled 0 n")),
        ("waiting + keep", (Kept, "ready running 1 a, parked 0 s"), (Replaced, "ready 0 n")),
    ];
    for (state, keeping, replacing) in table {
        for (policy, expected) in [(KEEP, keeping), (THROTTLE, keeping), (REPLACE, replacing), (DEBOUNCE, replacing)] {
            let queue = queue_with(state);
            let before = queue.stats().enqueued;
            let accepted = queue.enqueue(newer(policy));
            assert_eq!((outcome(accepted), &*queue.shape("a")), expected, "{state} {policy:?}");
            assert_eq!(queue.stats().enqueued, before + 1);
        }
    }
}

#[test]
fn versions_rise_with_every_accepted_enqueue() {
    let queue = queue();
    let mut last = version(queue.enqueue(newer(KEEP)));
    assert!(last >= queue.now() * 1_000, "so none comes again when the queue's record was forgotten");
    for policy in [KEEP, REPLACE, DEBOUNCE, THROTTLE] {
        let next = version(queue.enqueue(newer(policy)));
        assert!(next > last, "{policy:?}");
        assert_eq!(queue.get("a").unwrap().version, next);
        last = next;
    }
    assert_eq!(version(queue.enqueue(newer(THROTTLE))), 0);
    assert_eq!(queue.get("a").unwrap().version, last);
    let receipt = queue.take("a");
    let successor = version(queue.enqueue(newer(KEEP)));
    assert!(receipt > last && successor > receipt);
}

#[test]
fn a_throttle_window_outlives_the_task_and_binds_no_other_policy() {
    let queue = queue();
    assert_eq!(outcome(queue.enqueue(newer(THROTTLE))), Outcome::Added);
    assert_eq!(outcome(queue.enqueue(newer(THROTTLE))), Outcome::Throttled);
    let receipt = queue.take("a");
    queue.settle("a", receipt, Verdict::Ack);
    assert_eq!(outcome(queue.enqueue(newer(THROTTLE))), Outcome::Throttled);
    assert_eq!(outcome(queue.enqueue(newer(KEEP))), Outcome::Added);
    queue.pass(SECOND);
    assert_eq!(outcome(queue.enqueue(newer(THROTTLE))), Outcome::Kept);
    assert_eq!(outcome(queue.enqueue(newer(THROTTLE))), Outcome::Throttled);
    assert_eq!(queue.stats().enqueued, 3);
}

#[test]
fn ended_windows_are_cleaned_away() {
    let queue = queue();
    for name in ["a", "b", "c"] {
        queue.enqueue(NewTask { on_duplicate: THROTTLE, ..task(name) });
    }
    queue.pass(SECOND);
    queue.enqueue(NewTask { on_duplicate: THROTTLE, ..task("d") });
    assert_eq!(queue.store.count("SELECT count(*) FROM throttle"), 1);
}

#[test]
fn debounce_moves_the_due_until_max_wait_after_the_first() {
    let queue = queue();
    let begun = queue.now();
    let debounce = |delay: u64| NewTask { due: Due::In(Duration::from_secs(delay)), ..newer(DEBOUNCE) };
    assert_eq!(due(queue.enqueue(debounce(90))), begun + 60_000, "a first one waits max_wait at most");
    assert_eq!(due(queue.enqueue(debounce(10))), begun + 10_000);
    queue.pass(10 * SECOND);
    queue.promote();
    assert_eq!(queue.shape("a"), "ready 0 n");
    assert_eq!(due(queue.enqueue(debounce(10))), begun + 20_000);
    assert_eq!(queue.shape("a"), "scheduled 0 n", "a ready one is scheduled again");
    queue.pass(45 * SECOND);
    assert_eq!(due(queue.enqueue(debounce(10))), begun + 60_000);
    // A replace begins anew.
    queue.enqueue(NewTask { due: Due::In(SECOND), ..newer(REPLACE) });
    assert_eq!(due(queue.enqueue(debounce(90))), begun + 115_000);
}

#[test]
fn a_debounced_successor_counts_from_its_own_first() {
    let queue = queue();
    queue.add(&["a"]);
    queue.take("a");
    let begun = queue.now();
    let debounce = NewTask { due: Due::In(90 * SECOND), ..newer(DEBOUNCE) };
    assert_eq!(due(queue.enqueue(debounce.clone())), begun + 60_000);
    queue.pass(5 * SECOND);
    assert_eq!(due(queue.enqueue(debounce)), begun + 60_000);
}

#[test]
fn debounce_leaves_one_attempt_in_any_case() {
    let queue = queue_with("backoff");
    queue.enqueue(NewTask { max_attempts: 1, ..with_body("a", DEBOUNCE) });
    assert_eq!(queue.shape("a"), "scheduled 0 a");
}

#[test]
fn debounce_starts_the_attempts_again_only_for_another_body() {
    for (body, policy, attempts) in [("a", DEBOUNCE, 1), ("b", DEBOUNCE, 0), ("a", REPLACE, 0)] {
        let queue = queue_with("backoff");
        queue.enqueue(with_body(body, policy));
        assert_eq!(queue.shape("a"), format!("scheduled {attempts} {body}"));
    }
}

#[test]
fn an_id_may_come_twice_in_one_call() {
    let queue = queue();
    let outcomes =
        queue.enqueue_all(vec![newer(KEEP), with_body("b", KEEP), with_body("c", REPLACE), task("z")]);
    let outcomes: Vec<_> = outcomes.into_iter().map(outcome).collect();
    assert_eq!(outcomes, [Outcome::Added, Outcome::Kept, Outcome::Replaced, Outcome::Added]);
    assert_eq!(queue.shape("a"), "ready 0 c");
}

#[test]
fn a_full_queue_refuses_new_ids_and_no_others() {
    let queue = queue();
    queue.configure(Configure { max_len: Some(Some(2)), ..Configure::default() });
    let outcomes = queue.enqueue_all(vec![task("a"), task("b"), task("c"), task("a")]);
    assert_eq!(outcomes[2], EnqueueOutcome::Full);
    assert_eq!(outcome(outcomes[3]), Outcome::Kept);
    let receipt = queue.take("a");
    assert_eq!(outcome(queue.enqueue(task("a"))), Outcome::Successor, "a successor is no new id");
    assert_eq!(queue.enqueue(NewTask { on_duplicate: THROTTLE, ..task("c") }), EnqueueOutcome::Full);
    assert_eq!(queue.store.count("SELECT count(*) FROM throttle"), 0);
    queue.settle("a", receipt, Verdict::Ack);
    assert_eq!(queue.enqueue(task("c")), EnqueueOutcome::Full, "the successor lives");
    let receipt = queue.claim(2).iter().find(|task| task.id == id("a")).unwrap().receipt;
    queue.settle("a", receipt, Verdict::Ack);
    assert_eq!(outcome(queue.enqueue(task("c"))), Outcome::Added);
    queue.configure(Configure { max_len: Some(None), ..Configure::default() });
    assert_eq!(outcome(queue.enqueue(task("d"))), Outcome::Added);
    assert_eq!(queue.stats().enqueued, 6);
}

#[test]
fn dues_are_now_a_delay_or_a_time() {
    let queue = queue();
    let now = queue.now();
    let at = |name: &str, due| NewTask { due, ..task(name) };
    assert_eq!(due(queue.enqueue(at("a", Due::Now))), now);
    assert_eq!(due(queue.enqueue(at("b", Due::In(Duration::from_micros(1_500))))), now + 2);
    assert_eq!(due(queue.enqueue(at("c", Due::At(5)))), 5);
    assert_eq!(due(queue.enqueue(at("d", Due::At(now + 9)))), now + 9);
    assert_eq!(queue.shape("c"), "ready 0 c");
    assert_eq!(queue.shape("d"), "scheduled 0 d");
    queue.enqueue(at("e", Due::In(Duration::MAX)));
    assert_eq!(queue.shape("e"), "scheduled 0 e");
}

#[test]
fn bodies_are_kept_as_they_are() {
    let queue = queue();
    let bodies: [&[u8]; 3] = [b"", b"\0\xff\0", &[7; 100_000]];
    for (name, body) in ["a", "größe", "c"].into_iter().zip(bodies) {
        queue.enqueue(NewTask { body: body.into(), ..task(name) });
    }
    let claimed = queue.claim(9);
    assert_eq!(ids(&claimed), "a größe c");
    for (claimed, body) in claimed.iter().zip(bodies) {
        assert_eq!(&*claimed.body, body);
    }
}
