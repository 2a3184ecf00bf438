//! How claims end: by a verdict, by the end of their lease, or not at all.

use super::SECOND;
use super::queue::*;
use crate::protocol::*;

/// Claims "a" in this state; its receipt. "last" means that there is no attempt left after it.
fn claimed(queue: &Queue, state: &str) -> Receipt {
    let max_attempts = if state.contains("last") { 1 } else { 3 };
    queue.enqueue(NewTask { max_attempts, ..task("a") });
    let receipt = queue.take("a");
    let successor = |on_duplicate| NewTask { body: b"s"[..].into(), on_duplicate, ..task("a") };
    if state.contains("keep") {
        queue.enqueue(successor(OnDuplicate::Keep));
    } else if state.contains("replace") {
        queue.enqueue(successor(OnDuplicate::Replace));
    }
    if state.contains("ended") || state.contains("waiting") {
        queue.pass(LEASE);
    }
    if state.contains("waiting") {
        queue.promote();
    }
    receipt
}

#[test]
#[rustfmt::skip] // a table
fn every_verdict_on_every_state() {
    let table = [
        ("held", Verdict::Ack, DONE, ""),
        ("held", nack(), DONE, "ready 1 a"),
        ("held", bury(), DEAD, ""),
        ("held", Verdict::PUT_BACK, DONE, "ready 0 a"),
        ("ended", Verdict::Ack, LATE, ""),
        ("ended", nack(), LATE, "ready 1 a"),
        ("ended", bury(), LATE_DEAD, ""),
        ("ended", Verdict::PUT_BACK, LATE, "ready 0 a"),
        ("waiting", Verdict::Ack, LATE, ""),
        ("waiting", nack(), LATE, "ready 1 a"),
        ("waiting", bury(), LATE_DEAD, ""),
        ("waiting", Verdict::PUT_BACK, LATE, "ready 0 a"),
        ("held keep", Verdict::Ack, DONE, "ready 0 s"),
        ("held keep", nack(), DONE, "ready 1 a, parked 0 s"),
        ("held keep", bury(), DEAD, "ready 0 s"),
        ("held keep", Verdict::PUT_BACK, DONE, "ready 0 a, parked 0 s"),
        ("held replace", Verdict::Ack, DONE, "ready 0 s"),
        ("held replace", nack(), DONE, "ready 0 s"),
        ("held replace", bury(), DEAD, "ready 0 s"),
        ("held replace", Verdict::PUT_BACK, DONE, "ready 0 s"),
        ("last", Verdict::Ack, DONE, ""),
        ("last", nack(), DEAD, ""),
        ("last", bury(), DEAD, ""),
        ("last", Verdict::PUT_BACK, DONE, "ready 0 a"),
        ("last ended", nack(), LATE_DEAD, ""),
        ("last keep", nack(), DEAD, "ready 0 s"),
        ("last replace", nack(), DEAD, "ready 0 s"),
    ];
    for (state, verdict, settled, shape) in table {
        let queue = queue();
        let receipt = claimed(&queue, state);
        assert_eq!(queue.settle("a", receipt, verdict.clone()), settled, "{state} {verdict:?}");
        assert_eq!(queue.shape("a"), shape, "{state} {verdict:?}");
    }
}

#[test]
fn a_receipt_is_spent_while_the_id_lives() {
    for verdict in [nack(), Verdict::PUT_BACK] {
        let queue = queue();
        let receipt = claimed(&queue, "held");
        assert_eq!(queue.settle("a", receipt, verdict.clone()), DONE);
        let before = (queue.shape("a"), queue.stats());
        assert_eq!(queue.settle("a", receipt, verdict.clone()), DONE);
        for other in [Verdict::Ack, bury(), nack(), Verdict::PUT_BACK] {
            if std::mem::discriminant(&other) != std::mem::discriminant(&verdict) {
                assert_eq!(queue.settle("a", receipt, other), Settled::Stale);
            }
        }
        assert_eq!((queue.shape("a"), queue.stats()), before);
        let next = queue.take("a");
        assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
        assert_eq!(queue.settle("a", next, Verdict::Ack), DONE);
        assert_eq!(queue.settle("a", next, Verdict::Ack), Settled::Gone);
    }
}

#[test]
fn a_successor_remembers_how_the_run_before_it_was_settled() {
    let queue = queue();
    let receipt = claimed(&queue, "held keep");
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), DONE);
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), DONE);
    assert_eq!(queue.settle("a", receipt, nack()), Settled::Stale);
    assert_eq!(queue.shape("a"), "ready 0 s");
}

#[test]
fn zero_is_nobodys_receipt() {
    let queue = queue();
    assert_eq!(queue.settle("a", Receipt::NONE, Verdict::Ack), Settled::Gone);
    queue.add(&["a"]);
    assert_eq!(queue.settle("a", Receipt::NONE, Verdict::Ack), Settled::Stale);
    assert_eq!(queue.shape("a"), "ready 0 a");
}

#[test]
fn a_dead_record_answers_for_its_receipt() {
    for (state, verdict) in [("last", nack()), ("held", bury())] {
        let queue = queue();
        let receipt = claimed(&queue, state);
        assert_eq!(queue.settle("a", receipt, verdict.clone()), DEAD);
        assert_eq!(queue.settle("a", receipt, verdict), DEAD);
        assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
        assert_eq!(queue.settle("b", receipt, nack()), Settled::Gone);
        assert_eq!(queue.settle("a", Receipt::new(receipt.get() + 1), nack()), Settled::Gone);
        assert_eq!(queue.stats().died, 1);
    }
}

#[test]
fn a_late_ack_takes_away_the_record_of_a_death_by_lease() {
    for (state, after) in
        [("last waiting", ""), ("last keep waiting", "ready 0 s"), ("last replace waiting", "ready 0 s")]
    {
        let queue = queue();
        let receipt = claimed(&queue, state);
        let record = queue.stats();
        assert_eq!((record.dead, record.retried, record.died), (1, 0, 1));
        for other in [nack(), bury(), Verdict::PUT_BACK] {
            assert_eq!(queue.settle("a", receipt, other), Settled::Stale, "{state}");
        }
        assert_eq!(queue.settle("a", receipt, Verdict::Ack), LATE, "{state}");
        assert_eq!((queue.stats().dead, queue.stats().acked), (0, 1));
        assert_eq!(queue.shape("a"), after);
        let again = if after.is_empty() { Settled::Gone } else { Settled::Stale };
        assert_eq!(queue.settle("a", receipt, Verdict::Ack), again);
    }
}

#[test]
fn a_lease_end_is_a_failed_delivery_that_is_not_settled() {
    let queue = queue();
    let receipt = claimed(&queue, "waiting");
    assert_eq!(queue.shape("a"), "ready running 1 a");
    assert_eq!(queue.get("a").unwrap().reason, "the lease ended");
    assert_eq!(queue.stats().retried, 1);
    let second = queue.take("a");
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
    assert_eq!(queue.settle("a", second, Verdict::Ack), DONE);
}

#[test]
fn a_replacing_successor_settles_the_lease_that_ended() {
    for state in ["held replace", "held replace waiting"] {
        let queue = queue();
        let receipt = claimed(&queue, state);
        queue.pass(LEASE);
        queue.promote();
        assert_eq!(queue.shape("a"), "ready 0 s");
        for verdict in [Verdict::Ack, nack(), bury(), Verdict::PUT_BACK] {
            assert_eq!(queue.settle("a", receipt, verdict), Settled::Stale);
        }
    }
}

#[test]
fn the_last_receipt_that_was_settled_is_the_one_remembered() {
    let queue = queue();
    let first = claimed(&queue, "held");
    queue.settle("a", first, nack());
    queue.take("a");
    assert_eq!(queue.settle("a", first, nack()), DONE);
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Replace, ..task("a") });
    queue.pass(LEASE);
    queue.promote();
    assert_eq!(queue.settle("a", first, nack()), Settled::Stale);
}

#[test]
fn a_replacing_enqueue_settles_a_retry_that_waits() {
    let queue = queue();
    let receipt = claimed(&queue, "waiting");
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Replace, ..task("a") });
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
    assert_eq!(queue.shape("a"), "ready 0 a");
}

#[test]
fn a_replacing_enqueue_forgets_no_settlement() {
    let queue = queue();
    let receipt = claimed(&queue, "held keep");
    queue.settle("a", receipt, nack());
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Replace, ..task("a") });
    assert_eq!(queue.shape("a"), "ready 0 a");
    assert_eq!(queue.settle("a", receipt, nack()), DONE);
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
}

#[test]
fn a_replaced_task_remembers_the_settlement_before() {
    let queue = queue();
    let receipt = claimed(&queue, "held");
    queue.settle("a", receipt, nack());
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Replace, ..task("a") });
    assert_eq!(queue.settle("a", receipt, nack()), DONE);
}

#[test]
fn a_nack_waits_for_its_delay_and_leaves_its_reason() {
    let queue = queue();
    let receipt = claimed(&queue, "held");
    queue.settle("a", receipt, Verdict::Nack { delay: SECOND, reason: "no".into() });
    assert_eq!(queue.shape("a"), "scheduled 1 a");
    let record = queue.get("a").unwrap();
    assert_eq!((&*record.reason, record.due, record.receipt), ("no", queue.now() + 1_000, Receipt::NONE));
    queue.pass(SECOND);
    assert_eq!(queue.claim(1)[0].attempt, 2);
}

#[test]
fn a_batch_is_settled_in_order() {
    let queue = queue();
    queue.add(&["a", "b"]);
    let claimed = queue.claim(2);
    let settlement =
        |at: usize, verdict| Settlement { id: claimed[at].id.clone(), receipt: claimed[at].receipt, verdict };
    let items = [
        settlement(0, nack()),
        settlement(0, Verdict::Ack),
        settlement(1, Verdict::Ack),
        settlement(1, nack()),
    ];
    let reply = queue.ask(QueueVerb::Settle(Settle { items: items.to_vec().into() }));
    assert_eq!(reply, QueueReply::Settle(vec![DONE, Settled::Stale, DONE, Settled::Gone]));
    assert_eq!((queue.stats().acked, queue.stats().retried), (1, 1));
}

#[test]
fn an_extension_prolongs_and_never_shortens() {
    let queue = queue();
    let receipt = claimed(&queue, "held");
    let extend = |receipt, seconds: u32| {
        let verb = ExtendClaim { id: id("a"), receipt, lease: SECOND * seconds, progress: None };
        match queue.ask(QueueVerb::ExtendClaim(verb)) {
            QueueReply::ExtendClaim(reply) => reply,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(extend(receipt, 10), ExtendClaimReply::Extended(LEASE));
    assert_eq!(extend(receipt, 60), ExtendClaimReply::Extended(60 * SECOND));
    assert_eq!(extend(Receipt::new(receipt.get() + 1), 60), ExtendClaimReply::Stale);
    assert_eq!(extend(Receipt::NONE, 60), ExtendClaimReply::Stale);
    queue.pass(59 * SECOND);
    assert_eq!(extend(receipt, 60), ExtendClaimReply::Extended(60 * SECOND));
    queue.pass(60 * SECOND);
    assert_eq!(extend(receipt, 60), ExtendClaimReply::Expired);
    queue.promote();
    assert_eq!(extend(receipt, 60), ExtendClaimReply::Expired);
    queue.settle("a", receipt, nack());
    assert_eq!(extend(receipt, 60), ExtendClaimReply::Stale);
    assert_eq!(extend(Receipt::NONE, 60), ExtendClaimReply::Stale);
    let next = queue.take("a");
    queue.settle("a", next, Verdict::Ack);
    assert_eq!(extend(next, 60), ExtendClaimReply::Gone);
}
