//! Replies that are lost, requests that are doubled: nothing is enqueued twice, no attempt is burnt, no task
//! is stranded, and what cannot be known is said to be so.

use std::time::Instant;

use stanchion::{DeadTasks, ErrorKind, OnDuplicate, Outcome, QueueConfig, Retry, TaskState};
use stanchion_tests::faces::Face;
use stanchion_tests::proxy::{Fault, Flow};
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{Stage, await_one, census, leased, plain, put, take};
use crate::{RESEND, assert_within, ms};

/// A request that is carried out, or not, and goes unheard.
const UNHEARD: [Fault; 5] =
    [Fault::SwallowReply, Fault::CutAfter, Fault::Drop, Fault::CutBefore, Fault::Duplicate];

on_both_faces! {
    /// Sent again, it is put in once, and hears what the first one would have heard.
    fn enqueue_retried_after_a_lost_reply(face) {
        for fault in UNHEARD {
            let stage = Stage::new(face);
            stage.proxy.fault("enqueue", 1, fault.clone());
            let begun = Instant::now();
            let task = plain("a").on_duplicate(OnDuplicate::Replace);
            let enqueued = stage.queue.enqueue(task).unwrap();
            assert_within(RESEND, begun);
            stage.assert_faults_used();
            assert_eq!(enqueued.outcome, Outcome::Added, "{fault:?}");
            assert_eq!(stage.truth.task("a").version, enqueued.version, "{fault:?}");
            assert_eq!(stage.truth.stats().unwrap().enqueued, 1, "{fault:?}");
        }
    }

    /// The copy comes when the task has run already: it must not start a second run.
    fn enqueue_retried_after_its_task_was_done(face) {
        let stage = Stage::new(face);
        stage.proxy.fault("enqueue", 1, Fault::SwallowReply);
        let (queue, truth) = (stage.queue.clone(), stage.truth.clone());
        let enqueueing = stanchion_tests::wait::task(move || queue.enqueue(plain("a")).unwrap());
        await_one(&truth, SOON).ack().unwrap();
        assert_eq!(enqueueing.join().outcome, Outcome::Added);
        assert!(stage.truth.get("a").unwrap().is_none(), "the repetition enqueued it again");
        assert_eq!(stage.truth.stats().unwrap().enqueued, 1);
    }

    /// A retry is not refused because its own first copy has filled the queue.
    fn full_queue_under_retry(face) {
        let stage = Stage::new(face);
        stage.truth.configure(QueueConfig::new().max_len(Some(2))).unwrap();
        stage.proxy.fault("enqueue", 1, Fault::SwallowReply);
        let results = stage.queue.enqueue_many([plain("a"), plain("b"), plain("c")]).unwrap();
        let kinds: Vec<_> = results.iter().map(|result| result.as_ref().map(|task| task.outcome).map_err(stanchion::Error::kind)).collect();
        assert_eq!(kinds, [Ok(Outcome::Added), Ok(Outcome::Added), Err(ErrorKind::QueueFull)]);
        assert_eq!(census(&stage.truth), [0, 2, 0, 0]);
    }

    /// The same tasks are given again, once.
    fn claim_reply_lost(face) {
        for fault in UNHEARD {
            let stage = Stage::new(face);
            put(&stage.truth, &["a", "b", "c"]);
            stage.proxy.fault("claim", 1, fault.clone());
            let begun = Instant::now();
            let claims = stage.queue.claim(leased(20_000).max(2).wait(SOON)).unwrap();
            assert_within(RESEND, begun);
            stage.assert_faults_used();
            let got: Vec<_> = claims.iter().map(|claim| (claim.id(), claim.attempt(), claim.payload())).collect();
            assert_eq!(got, [("a", 1, b"a".as_slice()), ("b", 1, b"b")], "{fault:?}");
            assert_eq!(census(&stage.truth), [0, 1, 2, 0], "{fault:?}: something is stranded");
            assert_eq!(stage.truth.task("a").attempts, 1, "{fault:?}: an attempt was burnt");
            for claim in claims {
                assert!(claim.is_valid());
                claim.extend(ms(25_000)).unwrap();
                claim.ack().unwrap();
            }
            assert_eq!(stage.truth.stats().unwrap().acked, 2);
        }
    }

    /// The answer never comes: the error is retryable, and what was claimed goes back uncounted.
    fn claim_replies_lost_for_good(face) {
        let stage = Stage::new(face);
        put(&stage.truth, &["a", "b"]);
        stage.proxy.fault("claim", usize::MAX, Fault::SwallowReply);
        let error = stage.queue.claim(leased(60_000).max(5).wait(ms(1_200))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        stage.proxy.behave();
        eventually(SOON, || census(&stage.truth) == [0, 2, 0, 0]);
        for id in ["a", "b"] {
            assert_eq!(stage.truth.task(id).attempts, 0, "{id}");
        }
        assert_eq!(stage.probe_idle_after_drain(), 0);
    }

    /// The verdict counts once, whatever it is.
    fn settle_reply_lost(face) {
        for fault in UNHEARD {
            for verdict in ["ack", "nack", "bury", "put_back"] {
                let stage = Stage::new(face);
                put(&stage.truth, &["a"]);
                let claim = take(&stage.queue);
                stage.proxy.fault("settle", 1, fault.clone());
                match verdict {
                    "ack" => claim.ack(),
                    "nack" => claim.nack(Retry::After(ms(600_000)), "no"),
                    "bury" => claim.bury("no"),
                    _ => claim.put_back(),
                }.unwrap_or_else(|error| panic!("{fault:?}, {verdict}: {error}"));
                stage.assert_faults_used();
                let (counts, stats) = (census(&stage.truth), stage.truth.stats().unwrap());
                let seen = (counts, stats.acked, stats.retried, stats.died);
                let expected = match verdict {
                    "ack" => ([0, 0, 0, 0], 1, 0, 0),
                    "nack" => ([1, 0, 0, 0], 0, 1, 0),
                    "bury" => ([0, 0, 0, 1], 0, 0, 1),
                    _ => ([0, 1, 0, 0], 0, 0, 0),
                };
                assert_eq!(seen, expected, "{fault:?}, {verdict}");
            }
        }
    }

    /// An ack was carried out unheard, and the id enqueued and claimed again: the repetition leaves that alone.
    fn ack_retried_after_the_next_life_began(face) {
        let stage = Stage::new(face);
        put(&stage.truth, &["a"]);
        let claim = take(&stage.queue);
        stage.proxy.fault("settle", 1, Fault::SwallowReply);
        let acking = stanchion_tests::wait::task(move || claim.ack());
        eventually(SOON, || stage.truth.get("a").unwrap().is_none());
        put(&stage.truth, &["a"]);
        let next = take(&stage.truth);
        // It cannot know that it was its own copy which settled the task: either answer is true.
        let _ = acking.join();
        assert!(next.is_valid());
        next.extend(ms(40_000)).unwrap();
        next.ack().unwrap();
        assert_eq!(stage.truth.stats().unwrap().acked, 2);
    }

    /// Both halves happen once.
    fn settle_and_claim_reply_lost(face) {
        for fault in UNHEARD {
            let stage = Stage::new(face);
            put(&stage.truth, &["a", "b"]);
            let claim = take(&stage.queue);
            stage.proxy.fault("settle_and_claim", 1, fault.clone());
            let (settled, claims) =
                stage.queue.settle_and_claim(vec![claim.acked()], leased(20_000).max(5).wait(SOON)).unwrap();
            stage.assert_faults_used();
            assert!(settled[0].is_ok(), "{fault:?}: {settled:?}");
            assert_eq!((claims.len(), claims[0].id(), claims[0].attempt()), (1, "b", 1), "{fault:?}");
            assert_eq!(census(&stage.truth), [0, 0, 1, 0]);
            claims[0].ack().unwrap();
            assert_eq!(stage.truth.stats().unwrap().acked, 2);
        }
    }

    /// A payload of many megabytes comes over a slow network when it comes: what pop takes is gone.
    fn a_late_reply_to_what_is_sent_once(face) {
        let stage = Stage::new(face);
        put(&stage.truth, &["a"]);
        stage.proxy.fault("pop", 1, Fault::DelayReply(RESEND + ms(500)));
        assert_eq!(stage.queue.pop(1).unwrap()[0].id, "a");
        stage.assert_faults_used();
    }

    /// What must not be repeated is sent once, and its outcome is unknown.
    fn replies_lost_of_what_is_sent_once(face) {
        let stage = Stage::impatient(face);
        put(&stage.truth, &["dead", "a", "b", "c"]);
        take(&stage.truth).bury("dead").unwrap();
        for verb in ["pop", "remove", "kick", "purge"] {
            stage.proxy.fault(verb, 1, Fault::SwallowReply);
            let error = match verb {
                "pop" => stage.queue.pop(1).map(drop),
                "remove" => stage.queue.remove("b", None).map(drop),
                "kick" => stage.queue.kick(DeadTasks::oldest(1)).map(drop),
                _ => stage.queue.purge().map(drop),
            }.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Indeterminate, "{verb}: {error}");
            assert_eq!(stage.proxy.count(verb), 1, "{verb} was sent again");
            let expected = match verb {
                "pop" => [0, 2, 0, 1],
                "remove" => [0, 1, 0, 1],
                "kick" => [0, 2, 0, 0],
                _ => [0, 0, 0, 0],
            };
            assert_eq!(census(&stage.truth), expected, "{verb}");
        }
    }

    /// What a claim remembers is answered without a request.
    fn ack_twice_without_io(face) {
        let stage = Stage::new(face);
        put(&stage.truth, &["a"]);
        let claim = take(&stage.queue);
        claim.ack().unwrap();
        let sent = stage.proxy.count("settle");
        claim.ack().unwrap();
        assert!(stage.queue.settle(vec![claim.clone().acked()]).unwrap()[0].is_ok());
        assert_eq!(claim.bury("no").unwrap_err().kind(), ErrorKind::StaleReceipt);
        assert_eq!(stage.proxy.count("settle"), sent, "it was asked again");
        stage.proxy.refuse(true);
        stage.proxy.cut();
        claim.ack().unwrap();
    }

    /// Every request reaches the server twice.
    fn duplicated_requests(face) {
        let stage = Stage::new(face);
        stage.proxy.fault_where(usize::MAX, Fault::Duplicate, |incoming| {
            ["enqueue", "claim", "settle", "settle_and_claim", "extend_claim"].contains(&&*incoming.verb)
        });
        for round in 0..20 {
            let id = format!("t{round}");
            assert_eq!(stage.queue.enqueue(plain(&id)).unwrap().outcome, Outcome::Added);
            let claim = take(&stage.queue);
            assert_eq!((claim.id(), claim.attempt()), (id.as_str(), 1));
            claim.extend(ms(40_000)).unwrap();
            if round % 2 == 0 {
                claim.ack().unwrap();
            } else {
                claim.bury("odd").unwrap();
            }
        }
        assert!(stage.proxy.performed("claim") > stage.proxy.count("claim"), "nothing was doubled");
        let stats = stage.truth.stats().unwrap();
        assert_eq!((stats.enqueued, stats.acked, stats.died), (20, 10, 10));
        assert_eq!(census(&stage.truth), [0, 0, 0, 10]);
    }

    /// The store has said that the task is gone, before its verdict was sent, and sent again.
    fn settle_reply_lost_of_a_removed_task(face) {
        let stage = Stage::new(face);
        put(&stage.truth, &["a"]);
        let claim = take(&stage.queue);
        stage.truth.purge().unwrap();
        assert_eq!(claim.extend(ms(20_000)).unwrap_err().kind(), ErrorKind::LeaseLost);
        stage.proxy.fault("settle", 1, Fault::SwallowReply);
        assert_eq!(claim.ack().unwrap_err().kind(), ErrorKind::StaleReceipt);
        stage.assert_faults_used();
    }

    /// The first copy was carried out, and the second is answered when others may have had the task.
    fn settled_but_heard_after_the_lease(face) {
        let stage = Stage::new(face);
        put(&stage.truth, &["a"]);
        let claim = stage.queue.claim(leased(800)).unwrap().remove(0);
        stage.proxy.fault("settle", 1, Fault::SwallowReply);
        let error = claim.ack().unwrap_err();
        stage.assert_faults_used();
        assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
        assert_eq!(claim.ack().unwrap_err().kind(), ErrorKind::Indeterminate, "still nobody knows");
        assert_eq!((stage.truth.stats().unwrap().acked, census(&stage.truth)), (1, [0; 4]));
    }

    /// One byte at a time: everything works, only slower.
    fn slow_sliced_link(face) {
        let stage = Stage::new(face);
        stage.proxy.flow(Flow { sliced: Some(std::time::Duration::from_micros(100)), ..Flow::default() });
        put(&stage.queue, &["a"]);
        let begun = Instant::now();
        let claim = stage.queue.claim(leased(20_000)).unwrap().remove(0);
        let (took, remaining) = (begun.elapsed(), claim.remaining());
        // Without the margin for clocks, 1 % and 2 ms.
        assert!(remaining + took / 2 < ms(20_000 - 202), "{remaining:?} left of 20 s after {took:?}");
        claim.ack().unwrap();
        assert_eq!(census(&stage.truth), [0; 4]);
    }

    /// The reply that brings the tasks comes after their lease: they are not given out as if they were ours.
    fn claim_reply_after_its_own_lease(face) {
        eventually(SOON, || {
            let stage = Stage::new(face);
            put(&stage.truth, &["a"]);
            stage.proxy.fault("claim", 1, Fault::DelayReply(ms(800)));
            let begun = Instant::now();
            let claims = stage.queue.claim(leased(600).wait(SOON)).unwrap();
            let is_valid = claims[0].is_valid();
            stage.assert_faults_used();
            // It may have run out here: then this says nothing.
            if begun.elapsed() > ms(1_300) {
                return false;
            }
            assert!(is_valid, "a claim was returned that has run out");
            claims[0].ack().unwrap();
            assert_eq!(census(&stage.truth), [0; 4]);
            true
        });
    }

    /// Hints are lost: the task is found by polling.
    fn hints_lost(face) {
        let stage = Stage::new(face);
        stage.proxy.flow(Flow { drop_messages: true, ..Flow::default() });
        let waiting = crate::queue_support::claimer(&stage.queue);
        stage.probe().wait_for_idle(&stage.name, 1);
        put(&stage.truth, &["a"]);
        let begun = Instant::now();
        let claim = waiting.join();
        // A lone waiter polls every second.
        assert_within(ms(1_000), begun);
        assert_eq!(claim.attempt(), 1);
        assert_eq!(stage.truth.task("a").state, TaskState::Claimed);
        claim.ack().unwrap();
    }
}

impl Stage {
    /// How many consumers are registered, once no task is in the way of asking.
    fn probe_idle_after_drain(&self) -> u64 {
        self.truth.purge().unwrap();
        self.probe().idle(&self.name)
    }
}
