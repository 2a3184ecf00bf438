//! ack, nack, bury, put_back; alone, together, and with a claim.

use std::time::{Duration, SystemTime};

use stanchion::{ErrorKind, Receipt, Retry, TaskState, Verdict};
use stanchion_tests::faces::AnyClaim;
use stanchion_tests::on_every_topology;

use crate::queue_support::{assert_nothing, census, claimed_ids, kind, plain, put, take, up_to};
use crate::{ms, secs, wall};

on_every_topology! {
    fn ack_takes_the_task_away(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        take(&queue).ack().unwrap();
        assert!(queue.get("a").unwrap().is_none());
        assert_eq!(census(&queue), [0, 1, 0, 0]);
        let stats = queue.stats().unwrap();
        assert_eq!((stats.acked, stats.retried, stats.died), (1, 0, 0));
    }

    fn a_second_ack_repeats_the_first_and_touches_nothing(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        claim.ack().unwrap();
        let next = queue.enqueue(plain("a")).unwrap();
        claim.ack().unwrap();
        claim.clone().ack().unwrap();
        assert_eq!(queue.task("a").version, next.version);
        assert_eq!(queue.stats().unwrap().acked, 1);
        let again = take(&queue);
        claim.ack().unwrap();
        assert!(again.is_valid());
        again.ack().unwrap();
    }

    fn another_verdict_after_one_that_was_accepted_is_stale(bench) {
        let queue = bench.client().queue("q");
        type Say = fn(&AnyClaim) -> Result<(), stanchion::Error>;
        let verdicts: [(&str, Say); 4] = [
            ("ack", |claim| claim.ack()),
            ("nack", |claim| claim.nack(Retry::After(secs(600)), "no")),
            ("bury", |claim| claim.bury("dead")),
            ("put_back", |claim| claim.put_back()),
        ];
        for (first, say) in verdicts {
            for (second, contradict) in verdicts {
                queue.purge().unwrap();
                put(&queue, &["a"]);
                let claim = take(&queue);
                say(&claim).unwrap();
                let before = (queue.get("a").unwrap(), census(&queue));
                let result = contradict(&claim);
                if first == second {
                    result.unwrap();
                } else {
                    let error = result.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::StaleReceipt, "{first}, then {second}");
                    assert_eq!((error.operation(), error.name()), (Some(second), Some("q/a")));
                    assert!(!error.is_retryable());
                }
                assert_eq!((queue.get("a").unwrap(), census(&queue)), before, "{first}, then {second}");
            }
        }
    }

    fn a_settled_claim_is_no_longer_valid(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        claim.ack().unwrap();
        assert!(!claim.is_valid());
        assert_eq!(claim.remaining(), Duration::ZERO);
        assert_eq!(claim.loss(), None, "it was not lost");
        assert!(claim.wait_lost(secs(1)), "nobody has to wait for its end");
        assert_eq!(kind(claim.extend(secs(5))), ErrorKind::LeaseLost);
    }

    fn nack_keeps_the_reason_and_brings_the_task_back_after_the_delay(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let before = wall();
        take(&queue).nack(Retry::After(secs(600)), "the printer is on fire").unwrap();
        let task = queue.task("a");
        assert_eq!((task.state, task.attempts, task.receipt), (TaskState::Scheduled, 1, Receipt::NONE));
        assert_eq!(task.reason, "the printer is on fire");
        assert!(task.due >= before + secs(600) && task.due < before + secs(610));
        assert_eq!(task.payload, b"a");
        assert_nothing(&queue);
        assert_eq!(queue.stats().unwrap().retried, 1);
    }

    fn backoff_grows_with_every_attempt(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        for attempt in 1..=6u32 {
            let claim = take(&queue);
            assert_eq!(claim.attempt(), attempt);
            let before = wall();
            claim.nack(Retry::Backoff, "no").unwrap();
            let after = wall() + ms(20);
            let due = queue.task("a").due;
            let most = secs(u64::from(attempt).pow(4));
            assert!(due >= before + most / 2 && due <= after + most, "attempt {attempt}: {before:?} {due:?} {after:?}");
            queue.reschedule("a", SystemTime::now() - secs(1)).unwrap();
        }
    }

    fn a_long_reason_is_cut_at_a_letter(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let claims = queue.claim(up_to(2)).unwrap();
        claims[0].nack_now(&"ß".repeat(2_000)).unwrap();
        claims[1].bury(&format!("x{}", "ß".repeat(2_000))).unwrap();
        assert_eq!(queue.task("a").reason, "ß".repeat(512));
        assert_eq!(queue.task("b").reason, format!("x{}", "ß".repeat(511)));
    }

    fn reasons_of_any_letters_come_back(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        for reason in ["", "\0\u{1}\n\r\n", "'; --", "ünï", "{\"a\": 1}"] {
            take(&queue).nack_now(reason).unwrap();
            assert_eq!(queue.task("a").reason, reason);
        }
    }

    fn bury_makes_the_task_dead_at_once(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        claim.bury("no such user").unwrap();
        let dead = queue.task("a");
        assert_eq!((dead.state, dead.attempts, dead.receipt), (TaskState::Dead, 1, claim.receipt()));
        assert_eq!((dead.reason.as_str(), dead.payload.as_slice()), ("no such user", b"a".as_slice()));
        assert!(dead.died.is_some());
        assert_nothing(&queue);
        assert_eq!(census(&queue), [0, 0, 0, 1]);
        let stats = queue.stats().unwrap();
        assert_eq!((stats.acked, stats.died), (0, 1));
    }

    fn put_back_counts_no_attempt(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        let mut receipt = Receipt::NONE;
        for _ in 0..5 {
            let claim = take(&queue);
            assert_eq!(claim.attempt(), 1);
            assert!(claim.receipt() > receipt);
            receipt = claim.receipt();
            claim.put_back().unwrap();
            let task = queue.task("a");
            assert_eq!((task.state, task.attempts, task.receipt), (TaskState::Ready, 0, Receipt::NONE));
        }
        take(&queue).ack().unwrap();
    }

    fn put_back_keeps_the_due(bench) {
        let queue = bench.client().queue("q");
        let due = queue.enqueue(plain("a")).unwrap().due;
        take(&queue).put_back().unwrap();
        assert_eq!(Some(queue.task("a").due), due);
    }

    fn a_batch_has_one_result_per_verdict(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c", "d", "e"]);
        let mut claims = queue.claim(up_to(5)).unwrap();
        let removed = claims.remove(4);
        queue.remove("e", None).unwrap();
        let settled_before = claims[0].clone();
        settled_before.ack().unwrap();
        let [a, b, c, d]: [AnyClaim; 4] = claims.try_into().unwrap();
        let contradiction = a.clone().buried("no");
        let verdicts: Vec<Verdict> = vec![
            b.nacked(Retry::After(secs(600)), "later").unwrap(), a.acked(), c.buried("dead"), contradiction,
            removed.acked(), d.returned(),
        ];
        let kinds: Vec<_> = queue.settle(verdicts).unwrap().into_iter().map(|result| result.map_err(|error| error.kind())).collect();
        let stale = Err(ErrorKind::StaleReceipt);
        assert_eq!(kinds, [Ok(()), Ok(()), Ok(()), stale, stale, Ok(())]);
        assert_eq!(census(&queue), [1, 1, 0, 1]);
        assert_eq!(queue.task("d").attempts, 0);
    }

    fn an_empty_batch_settles_nothing(bench) {
        let queue = bench.client().queue("q");
        assert!(queue.settle(Vec::new()).unwrap().is_empty());
        let (settled, claims) = queue.settle_and_claim(Vec::new(), up_to(1)).unwrap();
        assert!(settled.is_empty() && claims.is_empty());
    }

    fn the_same_verdict_twice_in_a_batch_counts_once(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let results = queue.settle(vec![claim.clone().acked(), claim.acked()]).unwrap();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        assert_eq!(queue.stats().unwrap().acked, 1);
    }

    fn a_verdict_on_another_queues_claim_is_refused_before_anything_is_sent(bench) {
        let client = bench.client();
        let (one, two) = (client.queue("one"), client.queue("two"));
        put(&one, &["a"]);
        put(&two, &["b"]);
        let (a, b) = (take(&one), take(&two));
        let verdicts = || vec![a.clone().acked(), b.clone().acked()];
        assert_eq!(kind(one.settle(verdicts())), ErrorKind::InvalidArgument);
        assert_eq!(kind(one.settle_and_claim(verdicts(), up_to(1))), ErrorKind::InvalidArgument);
        assert_eq!((census(&one), census(&two)), ([0, 0, 1, 0], [0, 0, 1, 0]));
        assert!(a.is_valid() && b.is_valid(), "the refusal ended a lease");
        a.ack().unwrap();
        b.ack().unwrap();
    }

    fn settle_and_claim_does_both(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c"]);
        let mut claim = take(&queue);
        for (expected, verdict) in [("b", "ack"), ("c", "nack"), ("b2", "bury")] {
            if expected == "b2" {
                put(&queue, &["b2"]);
            }
            let verdict = match verdict {
                "ack" => claim.acked(),
                "nack" => claim.nacked(Retry::After(secs(600)), "later").unwrap(),
                _ => claim.buried("dead"),
            };
            let (settled, claims) = queue.settle_and_claim(vec![verdict], up_to(1)).unwrap();
            assert!(settled.len() == 1 && settled[0].is_ok(), "{settled:?}");
            assert_eq!(claimed_ids(&claims), [expected]);
            claim = claims.into_iter().next().unwrap();
        }
        claim.ack().unwrap();
        assert_eq!(census(&queue), [1, 0, 0, 1]);
    }

    fn settle_and_claim_settles_first(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let receipt = claim.receipt();
        let (settled, claims) = queue.settle_and_claim(vec![claim.returned()], up_to(5)).unwrap();
        assert!(settled[0].is_ok());
        assert_eq!((claimed_ids(&claims), claims[0].attempt()), (vec!["a"], 1), "what came back is claimed again");
        assert!(claims[0].receipt() > receipt);
        claims[0].ack().unwrap();
    }

    fn settle_and_claim_finds_nothing_and_still_settles(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let (settled, claims) = queue.settle_and_claim(vec![claim.acked()], up_to(5).wait(ms(60))).unwrap();
        assert!(settled[0].is_ok() && claims.is_empty());
        assert_eq!(census(&queue), [0; 4]);
    }

    fn more_verdicts_than_one_request_takes_are_settled_in_parts(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..1_200).map(|number| plain(&format!("t{number}")))).unwrap();
        let mut claims = queue.claim(up_to(1_000)).unwrap();
        claims.extend(queue.claim(up_to(1_000)).unwrap());
        assert_eq!(claims.len(), 1_200);
        let verdicts = || claims.iter().map(|claim| claim.clone().acked()).collect::<Vec<_>>();
        assert_eq!(kind(queue.settle_and_claim(verdicts(), up_to(1))), ErrorKind::InvalidArgument);
        let settled = queue.settle(verdicts()).unwrap();
        assert_eq!(settled.iter().filter(|result| result.is_ok()).count(), 1_200);
        assert_eq!((census(&queue), queue.stats().unwrap().acked), ([0; 4], 1_200));
    }

    fn a_dropped_claim_has_failed(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let before = wall();
        drop(take(&queue));
        stanchion_tests::wait::eventually(stanchion_tests::wait::SOON, || queue.task("a").state != TaskState::Claimed);
        let task = queue.task("a");
        assert_eq!((task.attempts, task.reason.as_str()), (1, "dropped without a verdict"));
        assert!(task.due > before, "it comes back after a pause");
        assert_eq!(queue.stats().unwrap().retried, 1);
    }

    fn a_claim_is_dropped_with_its_last_clone(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        drop(claim.clone());
        assert!(claim.is_valid());
        claim.extend(secs(40)).unwrap();
        let verdict = claim.clone().acked();
        drop(claim);
        assert_eq!(census(&queue), [0, 0, 1, 0], "a verdict holds it too");
        queue.settle(vec![verdict]).unwrap()[0].as_ref().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    fn a_claim_outlives_its_client(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let (a, b) = {
            let client = bench.client().queue("q");
            (take(&client), take(&client))
        };
        a.extend(secs(60)).unwrap();
        a.ack().unwrap();
        drop(b);
        stanchion_tests::wait::eventually(stanchion_tests::wait::SOON, || queue.task("b").reason.starts_with("dropped"));
        assert_eq!(census(&queue)[2], 0);
    }
}
