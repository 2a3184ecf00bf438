//! Receipts that are no longer the task's: whoever comes too late changes nothing.

use stanchion::{ErrorKind, LossReason, OnDuplicate, Removed, Retry, TaskState};
use stanchion_tests::faces::{AnyClaim, AnyQueue};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{census, kind, lapse, plain, put, take, take_for};
use crate::{ms, secs};

type Say = fn(&AnyClaim) -> Result<(), stanchion::Error>;
const VERDICTS: [(&str, Say); 4] = [
    ("ack", |claim| claim.ack()),
    ("nack", |claim| claim.nack(Retry::After(secs(600)), "late")),
    ("bury", |claim| claim.bury("late")),
    ("put_back", |claim| claim.put_back()),
];

/// A claim whose lease has ended.
fn lapsed(queue: &AnyQueue, id: &str) -> AnyClaim {
    let claim = take_for(queue, ms(50));
    assert_eq!(claim.id(), id);
    lapse(queue, id);
    claim
}

/// Everything there is to see of the queue.
fn picture(queue: &AnyQueue) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut task = queue.get("a").unwrap();
    if let Some(task) = &mut task {
        task.lease_left = ms(0);
    }
    let stats = queue.stats().unwrap();
    (task, census(queue), stats.acked, stats.retried, stats.died)
}

on_every_store! {
    fn every_verdict_after_a_newer_delivery_is_stale(bench) {
        for (name, say) in VERDICTS {
            let (client, other) = (bench.client(), bench.client());
            let queue = client.queue(name);
            put(&queue, &["a"]);
            let old = lapsed(&queue, "a");
            let new = take(&other.queue(name));
            assert_eq!((new.attempt(), new.receipt() > old.receipt()), (2, true));
            let before = picture(&queue);
            assert_eq!(kind(say(&old)), ErrorKind::StaleReceipt, "{name}");
            assert_eq!(picture(&queue), before, "{name} changed something");
            assert!(new.is_valid());
            new.ack().unwrap();
        }
    }

    fn every_verdict_after_a_newer_delivery_was_settled_is_stale(bench) {
        for (name, say) in VERDICTS {
            for (settled, settle) in VERDICTS {
                let queue = bench.client().queue(&format!("{name}-{settled}"));
                put(&queue, &["a"]);
                let old = lapsed(&queue, "a");
                settle(&take(&queue)).unwrap();
                let before = picture(&queue);
                assert_eq!(kind(say(&old)), ErrorKind::StaleReceipt, "{name} after {settled}");
                assert_eq!(picture(&queue), before, "{name} after {settled} changed something");
            }
        }
    }

    fn a_late_verdict_is_accepted_if_nobody_has_had_the_task_since(bench) {
        for (name, say) in VERDICTS {
            let queue = bench.client().queue(name);
            put(&queue, &["a"]);
            let claim = lapsed(&queue, "a");
            assert!(!claim.is_valid());
            say(&claim).unwrap();
            let expected = match name {
                "ack" => [0, 0, 0, 0],
                "nack" => [1, 0, 0, 0],
                "bury" => [0, 0, 0, 1],
                _ => [0, 1, 0, 0],
            };
            assert_eq!(census(&queue), expected, "{name}");
            say(&claim).unwrap();
            assert_eq!(census(&queue), expected, "{name}, repeated");
        }
    }

    fn a_late_verdict_is_accepted_after_its_task_was_promoted(bench) {
        for (name, say) in VERDICTS {
            let queue = bench.client().queue(name);
            put(&queue, &["a", "b"]);
            let claim = lapsed(&queue, "a");
            // Takes b, and with it notices the end of the lease.
            let other = take(&queue);
            assert_eq!(other.id(), "b");
            say(&claim).unwrap();
            other.ack().unwrap();
            let expected = match name {
                "ack" => [0, 0, 0, 0],
                "nack" => [1, 0, 0, 0],
                "bury" => [0, 0, 0, 1],
                _ => [0, 1, 0, 0],
            };
            assert_eq!(census(&queue), expected, "{name}");
        }
    }

    fn the_claim_of_a_removed_task_is_stale_and_lost(bench) {
        let client = bench.client();
        for (number, (name, say)) in VERDICTS.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            put(&queue, &["a"]);
            let claim = take(&queue);
            assert_eq!(queue.remove("a", None).unwrap(), Removed::Removed);
            assert_eq!(kind(claim.extend(secs(60))), ErrorKind::LeaseLost, "{name}");
            assert_eq!(claim.loss(), Some(LossReason::Removed));
            assert_eq!(kind(say(&claim)), ErrorKind::StaleReceipt, "{name}");
            assert_eq!(census(&queue), [0; 4]);
        }
    }

    fn the_claim_of_an_earlier_life_of_an_id_is_stale(bench) {
        for (name, say) in VERDICTS {
            let queue = bench.client().queue(name);
            put(&queue, &["a"]);
            let old = take(&queue);
            queue.remove("a", None).unwrap();
            put(&queue, &["a"]);
            let before = picture(&queue);
            assert_eq!(kind(say(&old)), ErrorKind::StaleReceipt, "{name}");
            assert_eq!(picture(&queue), before, "{name} changed the id's next life");
        }
    }

    fn the_claim_of_a_purged_task_is_stale_and_its_loss_is_announced(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let options = stanchion::ClaimOptions::new().lease(secs(3)).renew(true);
        let claim = queue.claim(options).unwrap().remove(0);
        assert_eq!(queue.purge().unwrap(), 1);
        assert!(claim.wait_lost(SOON));
        assert_eq!(claim.loss(), Some(LossReason::Removed), "the next renewal says so");
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
    }

    fn the_claim_of_a_task_that_was_delivered_again_is_lost(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let old = lapsed(&queue, "a");
        let new = take(&queue);
        assert!(matches!(kind(old.extend(secs(5))), ErrorKind::LeaseExpired | ErrorKind::LeaseLost));
        assert!(!old.is_valid() && new.is_valid());
        new.extend(secs(60)).unwrap();
        new.ack().unwrap();
    }

    fn a_replaced_runs_late_verdict_is_stale(bench) {
        for (name, say) in VERDICTS {
            let queue = bench.client().queue(name);
            put(&queue, &["a"]);
            let old = lapsed(&queue, "a");
            queue.enqueue(plain("a").payload("new").on_duplicate(OnDuplicate::Replace)).unwrap();
            let before = picture(&queue);
            assert_eq!(kind(say(&old)), ErrorKind::StaleReceipt, "{name}");
            assert_eq!(picture(&queue), before, "{name} changed something");
            assert_eq!(queue.task("a").payload, b"new");
        }
    }

    fn a_late_ack_takes_back_a_death_by_lease_end_and_other_verdicts_do_not(bench) {
        for (name, say) in VERDICTS {
            let queue = bench.client().queue(name);
            queue.enqueue(plain("a").max_attempts(1)).unwrap();
            put(&queue, &["b"]);
            let claim = lapsed(&queue, "a");
            // Promotes, and so notices the death.
            take(&queue).ack().unwrap();
            assert_eq!(queue.task("a").state, TaskState::Dead);
            if name == "ack" {
                say(&claim).unwrap();
                assert!(queue.get("a").unwrap().is_none());
                assert_eq!(census(&queue), [0; 4]);
            } else {
                assert_eq!(kind(say(&claim)), ErrorKind::StaleReceipt, "{name}");
                assert_eq!(queue.task("a").reason, "the lease ended");
            }
        }
    }

    fn a_late_ack_leaves_a_death_of_a_later_delivery_alone(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(2)).unwrap();
        put(&queue, &["b"]);
        let first = lapsed(&queue, "a");
        take(&queue).ack().unwrap();
        let second = lapsed(&queue, "a");
        put(&queue, &["c"]);
        take(&queue).ack().unwrap();
        assert_eq!(queue.task("a").state, TaskState::Dead);
        assert_eq!(kind(first.ack()), ErrorKind::StaleReceipt);
        assert_eq!(census(&queue), [0, 0, 0, 1]);
        second.ack().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    fn a_death_by_verdict_is_final_for_its_receipt(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        let claim = take(&queue);
        claim.nack_now("failed").unwrap();
        assert_eq!(queue.task("a").state, TaskState::Dead);
        claim.nack_now("failed").unwrap();
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
        assert_eq!(census(&queue), [0, 0, 0, 1]);
    }

    fn a_verdict_that_was_refused_is_refused_again(bench) {
        for (name, say) in VERDICTS {
            let queue = bench.client().queue(name);
            put(&queue, &["a"]);
            let claim = take(&queue);
            queue.purge().unwrap();
            for _ in 0..3 {
                assert_eq!(kind(say(&claim)), ErrorKind::StaleReceipt, "{name}");
            }
            put(&queue, &["b"]);
            let claim = take(&queue);
            queue.remove("b", None).unwrap();
            let twins = || vec![claim.clone().acked(), claim.clone().acked()];
            for result in queue.settle(twins()).unwrap().into_iter().chain(queue.settle(twins()).unwrap()) {
                assert_eq!(kind(result), ErrorKind::StaleReceipt, "a verdict on a task that was removed");
            }
        }
    }

    fn dropping_a_stale_claim_changes_nothing(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let old = lapsed(&queue, "a");
        let new = take(&queue);
        drop(old);
        put(&queue, &["flush"]);
        take(&queue).ack().unwrap();
        eventually(SOON, || census(&queue) == [0, 0, 1, 0]);
        assert_eq!(queue.task("a").receipt, new.receipt());
        new.ack().unwrap();
    }
}
