//! The lease of a claim: its end brings the task back, extend prolongs it, loss is announced.

use std::time::Instant;

use stanchion::{ClaimOptions, ErrorKind, LossReason, Receipt, TaskState};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, ran_since};

use crate::queue_support::{assert_nothing, await_one, census, kind, lapse, plain, put, take, take_for};
use crate::{ms, secs};

on_every_store! {
    fn the_end_of_a_lease_brings_the_task_back_with_another_receipt(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").priority(3).header("h", "v")).unwrap();
        let (mut receipt, mut held) = (Receipt::NONE, Vec::new());
        for attempt in 1..=3 {
            let claim = take_for(&queue, ms(50));
            assert_eq!((claim.attempt(), claim.payload(), claim.priority()), (attempt, b"a".as_slice(), 3));
            assert_eq!(claim.headers()["h"], "v");
            assert!(claim.receipt() > receipt);
            receipt = claim.receipt();
            lapse(&queue, "a");
            let task = queue.task("a");
            assert_eq!((task.state, task.attempts, task.receipt), (TaskState::Ready, attempt, receipt));
            // Dropped, it would say that it has failed.
            held.push(claim);
        }
        let last = take(&queue);
        assert_eq!(queue.task("a").reason, "the lease ended");
        assert_eq!(queue.stats().unwrap().retried, 3);
        last.ack().unwrap();
    }

    fn a_lease_that_has_ended_is_seen_before_anybody_claims(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let _claim = take_for(&queue, ms(50));
        lapse(&queue, "a");
        assert_eq!(census(&queue), [0, 1, 0, 0]);
        assert_eq!(queue.peek(5).unwrap().len(), 1);
        assert_eq!(queue.stats().unwrap().next_due, Some(ms(0)));
    }

    fn the_loss_is_announced_no_later_than_the_deadline(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, ms(300));
        let deadline = claim.deadline();
        assert!(!claim.wait_lost(ms(20)) || Instant::now() >= deadline, "announced at once");
        assert!(claim.wait_lost(SOON));
        assert!(ran_since(deadline) < ms(200), "{:?} late", ran_since(deadline));
        assert_eq!(claim.loss(), Some(LossReason::Expired));
        assert!(!claim.is_valid());
        lapse(&queue, "a");
        assert_eq!(kind(claim.extend(secs(5))), ErrorKind::LeaseExpired);
    }

    fn extend_prolongs_and_never_shortens(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, secs(20));
        claim.extend(secs(60)).unwrap();
        assert!(claim.remaining() > secs(55), "{:?}", claim.remaining());
        claim.extend(ms(50)).unwrap();
        assert!(claim.remaining() > secs(55), "it was shortened to {:?}", claim.remaining());
        assert!(queue.task("a").lease_left > secs(55));
        assert_nothing(&queue);
        claim.ack().unwrap();
    }

    fn an_extended_claim_is_kept_past_its_first_lease(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, secs(2));
        let first = claim.deadline();
        claim.extend(secs(30)).unwrap();
        stanchion_tests::wait::eventually(SOON, || Instant::now() > first + ms(20));
        assert!(claim.is_valid() && claim.loss().is_none());
        assert_nothing(&queue);
        claim.ack().unwrap();
    }

    fn a_bad_lease_is_refused_and_the_old_one_goes_on(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        for bad in [ms(0), ms(49), std::time::Duration::MAX] {
            assert_eq!(kind(claim.extend(bad)), ErrorKind::InvalidArgument, "{bad:?}");
        }
        assert!(claim.is_valid());
        claim.ack().unwrap();
    }

    fn a_renewed_claim_that_nobody_holds_comes_back(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let options = ClaimOptions::new().lease(ms(300)).renew(true);
        let claim = queue.claim(options).unwrap().remove(0);
        assert_eq!(claim.id(), "a");
        drop(claim);
        let again = await_one(&queue);
        assert_eq!(again.attempt(), 2);
        again.ack().unwrap();
    }

    fn leases_of_a_batch_end_one_by_one(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c"]);
        let short = take_for(&queue, ms(60));
        let long = take(&queue);
        lapse(&queue, "a");
        assert_eq!(census(&queue), [0, 2, 1, 0]);
        let next = queue.peek(5).unwrap();
        assert_eq!(crate::queue_support::ids(&next), ["c", "a"], "ended leases come after those in line");
        assert!(long.is_valid() && !short.is_valid());
        long.ack().unwrap();
    }
}
