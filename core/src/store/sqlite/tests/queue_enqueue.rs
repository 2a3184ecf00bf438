//! What an enqueue does beyond the rules of policies and states, which the conformance suite and the model have: the
//! numbers it gives, the windows it opens, and the attempts that it takes over.

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

/// A queue in which "a" has failed and waits for its back-off.
fn queue_with_a_failure() -> Queue {
    let queue = queue();
    queue.add(&["a"]);
    let receipt = queue.take("a");
    let verdict = Verdict::Nack { delay: 10 * SECOND, reason: "no".into() };
    assert_eq!(queue.settle("a", receipt, verdict), DONE);
    queue
}

#[test]
fn versions_rise_with_every_accepted_enqueue() {
    let queue = queue();
    let mut last = version(queue.enqueue(newer(KEEP)));
    assert!(last.get() >= queue.now() * 1_000, "so none comes again when the queue's record was forgotten");
    for policy in [KEEP, REPLACE, DEBOUNCE, THROTTLE] {
        let next = version(queue.enqueue(newer(policy)));
        assert!(next > last, "{policy:?}");
        assert_eq!(queue.get("a").unwrap().version, next);
        last = next;
    }
    assert_eq!(version(queue.enqueue(newer(THROTTLE))), Version::NONE);
    assert_eq!(queue.get("a").unwrap().version, last);
    let receipt = queue.take("a");
    let successor = version(queue.enqueue(newer(KEEP)));
    assert!(receipt.get() > last.get() && successor.get() > receipt.get());
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
fn debounce_leaves_one_attempt_in_any_case() {
    let queue = queue_with_a_failure();
    queue.enqueue(NewTask { max_attempts: 1, ..with_body("a", DEBOUNCE) });
    assert_eq!(queue.shape("a"), "scheduled 0 a");
}

#[test]
fn debounce_starts_the_attempts_again_only_for_another_body() {
    for (body, policy, attempts) in [("a", DEBOUNCE, 1), ("b", DEBOUNCE, 0), ("a", REPLACE, 0)] {
        let queue = queue_with_a_failure();
        queue.enqueue(with_body(body, policy));
        assert_eq!(queue.shape("a"), format!("scheduled {attempts} {body}"));
    }
}

#[test]
fn what_a_full_queue_refuses_opens_no_window() {
    let queue = queue();
    queue.configure(Configure { max_len: Some(Some(0)), ..Configure::default() });
    assert_eq!(queue.enqueue(newer(THROTTLE)), EnqueueOutcome::Full);
    assert_eq!(queue.store.count("SELECT count(*) FROM throttle"), 0);
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
