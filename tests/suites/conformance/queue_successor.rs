//! An enqueue of an id that is running: its successor, and when that takes over.

use stanchion::{ErrorKind, OnDuplicate, Outcome, Retry, Task, TaskState};
use stanchion_tests::faces::{AnyClaim, AnyQueue};
use stanchion_tests::on_every_store;
use stanchion_tests::stores::Bench;
use stanchion_tests::wait::{SOON, eventually, eventually_some};

use crate::queue_support::{assert_nothing, census, kind, lapse, leased, plain, put, take, take_for};
use crate::{ms, secs};

const KEEP: OnDuplicate = OnDuplicate::Keep;
const REPLACE: OnDuplicate = OnDuplicate::Replace;
const DEBOUNCE: OnDuplicate = OnDuplicate::Debounce { max_wait: secs(3_600) };
const THROTTLE: OnDuplicate = OnDuplicate::Throttle { window: secs(3_600) };

fn next(payload: &str, policy: OnDuplicate) -> Task {
    Task::new("a").payload(payload).on_duplicate(policy)
}

/// A queue, and the claim of its one task, whose lease ends soon and which has a successor: tried again in another
/// queue if the lease ended before the successor came.
#[track_caller]
fn ending_soon(bench: &Bench, task: impl Fn() -> Task, policy: OnDuplicate) -> (AnyQueue, AnyClaim) {
    eventually_some(SOON, || {
        let queue = bench.client().queue(&stanchion_tests::unique("ending-soon"));
        queue.enqueue(task()).unwrap();
        let claim = queue.claim(leased(ms(50))).unwrap().pop()?;
        let outcome = queue.enqueue(next("next", policy)).unwrap().outcome;
        (outcome == Outcome::Successor).then_some((queue, claim))
    })
}

#[track_caller]
fn assert_then_done(queue: &AnyQueue, payload: &str) {
    let claim = take(queue);
    assert_eq!((claim.payload(), claim.attempt()), (payload.as_bytes(), 1));
    claim.ack().unwrap();
    assert_eq!((census(queue)[..3].to_vec(), queue.stats().unwrap().successors), (vec![0; 3], 0));
}

on_every_store! {
    fn there_is_one_successor_at_most_and_enqueues_act_on_it(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let mut version = claim.version();
        for (payload, policy, outcome, expected_due) in [
            ("one", KEEP, Outcome::Successor, 100),
            ("two", KEEP, Outcome::Kept, 100),
            ("three", REPLACE, Outcome::Replaced, 300),
            ("four", THROTTLE, Outcome::Kept, 300),
            ("five", THROTTLE, Outcome::Throttled, 300),
            ("six", DEBOUNCE, Outcome::Replaced, 600),
            ("seven", KEEP, Outcome::Kept, 600),
        ] {
            let delay = match payload { "one" => 100, "three" => 300, "six" => 600, _ => 50 };
            let enqueued = queue.enqueue(next(payload, policy).delay(secs(delay))).unwrap();
            assert_eq!(enqueued.outcome, outcome, "{payload}");
            if outcome != Outcome::Throttled {
                assert!(enqueued.version > version, "{payload}");
                version = enqueued.version;
            }
            let due = queue.task("a").successor_due.unwrap();
            let away = due.duration_since(std::time::SystemTime::now()).unwrap();
            assert!(away <= secs(expected_due) && away > secs(expected_due - 20), "{payload}: {away:?}");
            assert_eq!(queue.stats().unwrap().successors, 1, "{payload}");
        }
        claim.ack().unwrap();
        let task = queue.task("a");
        assert_eq!((task.payload.as_slice(), task.version, task.state), (b"six".as_slice(), version, TaskState::Scheduled));
    }

    fn a_keep_successor_waits_until_the_run_ends_for_good(bench) {
        for (ending, policy) in [("ack", KEEP), ("bury", THROTTLE), ("last nack", KEEP)] {
            let queue = bench.client().queue(&ending.replace(' ', "-"));
            queue.enqueue(plain("a").max_attempts(3)).unwrap();
            let first = take(&queue);
            assert_eq!(queue.enqueue(next("next", policy)).unwrap().outcome, Outcome::Successor);
            first.nack_now("again").unwrap();
            assert_eq!(queue.stats().unwrap().successors, 1, "{ending}: a nack does not end it");
            let second = take(&queue);
            assert_eq!((second.payload(), second.attempt()), (b"a".as_slice(), 2));
            second.put_back().unwrap();
            let third = take_for(&queue, ms(50));
            assert_eq!((third.payload(), third.attempt()), (b"a".as_slice(), 2));
            lapse(&queue, "a");
            let last = take(&queue);
            assert_eq!((last.payload(), last.attempt()), (b"a".as_slice(), 3), "{ending}: nor does the end of a lease");
            match ending {
                "ack" => last.ack().unwrap(),
                "bury" => last.bury("dead").unwrap(),
                _ => last.nack_now("dead").unwrap(),
            }
            assert_then_done(&queue, "next");
        }
    }

    fn a_keep_successor_follows_a_death_by_lease_end(bench) {
        let (queue, claim) = ending_soon(bench, || plain("a").max_attempts(1), KEEP);
        lapse(&queue, "a");
        let successor = take(&queue);
        assert_eq!(successor.payload(), b"next");
        assert_eq!(census(&queue), [0, 0, 1, 1]);
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0, 0, 1, 0], "the late ack took the dead record back");
        assert!(successor.is_valid());
        successor.ack().unwrap();
    }

    fn a_replacing_successor_takes_the_retrys_place(bench) {
        for policy in [REPLACE, DEBOUNCE] {
            for ending in ["nack", "put_back", "lease end"] {
                let (queue, claim) = match ending {
                    "lease end" => ending_soon(bench, || plain("a"), policy),
                    _ => {
                        let queue = bench.client().queue(&format!("{ending}-{}", policy == REPLACE));
                        put(&queue, &["a"]);
                        let claim = take(&queue);
                        assert_eq!(queue.enqueue(next("next", policy)).unwrap().outcome, Outcome::Successor);
                        (queue, claim)
                    }
                };
                match ending {
                    "nack" => claim.nack_now("no").unwrap(),
                    "put_back" => claim.put_back().unwrap(),
                    _ => lapse(&queue, "a"),
                }
                let successor = take(&queue);
                assert_eq!((successor.payload(), successor.attempt()), (b"next".as_slice(), 1), "{ending}: its own due");
                assert_eq!(queue.stats().unwrap().successors, 0);
                if ending == "lease end" {
                    assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt, "it was settled by that");
                }
                assert!(successor.is_valid());
                successor.ack().unwrap();
                assert_eq!(census(&queue), [0; 4]);
            }
        }
    }

    fn a_keep_successor_turned_by_replace_takes_the_retrys_place(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        queue.enqueue(next("kept", KEEP)).unwrap();
        assert_eq!(queue.enqueue(next("turned", REPLACE)).unwrap().outcome, Outcome::Replaced);
        claim.nack_now("no").unwrap();
        assert_then_done(&queue, "turned");
    }

    fn a_keep_after_a_replace_does_not_turn_it_back(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        queue.enqueue(next("replacing", REPLACE)).unwrap();
        assert_eq!(queue.enqueue(next("kept", KEEP)).unwrap().outcome, Outcome::Kept);
        claim.nack_now("no").unwrap();
        assert_then_done(&queue, "replacing");
    }

    fn a_successor_that_is_replaced_while_the_retry_waits_takes_over_at_once(bench) {
        for lapsed in [false, true] {
            let (queue, claim) = if lapsed {
                let (queue, claim) = ending_soon(bench, || plain("a"), KEEP);
                lapse(&queue, "a");
                (queue, claim)
            } else {
                let queue = bench.client().queue("q");
                put(&queue, &["a"]);
                let claim = take(&queue);
                queue.enqueue(next("kept", KEEP)).unwrap();
                claim.nack(Retry::After(secs(600)), "no").unwrap();
                (queue, claim)
            };
            assert_eq!(queue.stats().unwrap().successors, 1);
            assert_eq!(queue.enqueue(next("new", REPLACE)).unwrap().outcome, Outcome::Replaced);
            assert_eq!(queue.task("a").payload, b"new", "lapsed: {lapsed}");
            assert_eq!(queue.stats().unwrap().successors, 0);
            if lapsed {
                assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
            } else {
                assert_eq!(queue.task("a").state, TaskState::Scheduled, "no earlier than the retry");
                queue.reschedule("a", std::time::SystemTime::UNIX_EPOCH).unwrap();
            }
            assert_then_done(&queue, "new");
        }
    }

    fn a_successor_has_its_own_due(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let due = queue.enqueue(next("next", KEEP).delay(secs(600))).unwrap().due;
        claim.ack().unwrap();
        let task = queue.task("a");
        assert_eq!((task.state, Some(task.due)), (TaskState::Scheduled, due));
        assert_nothing(&queue);
    }

    fn a_successor_of_one_that_expired_is_given_out_by_the_next_claim(bench) {
        let (queue, claim) = ending_soon(bench, || plain("a").expires(ms(100)), KEEP);
        let expiry = queue.task("a").expires.unwrap();
        eventually(SOON, || std::time::SystemTime::now() > expiry);
        lapse(&queue, "a");
        put(&queue, &["b"]);
        let claims = queue.claim(crate::queue_support::up_to(5)).unwrap();
        assert_eq!(crate::queue_support::claimed_ids(&claims), ["b"]);
        assert_eq!(census(&queue), [0, 1, 1, 1]);
        claims[0].ack().unwrap();
        assert_then_done(&queue, "next");
        drop(claim);
    }

    fn a_successor_of_one_that_was_popped_is_given_out_by_the_next_call(bench) {
        let (queue, claim) = ending_soon(bench, || plain("a"), KEEP);
        lapse(&queue, "a");
        assert_eq!(queue.pop(5).unwrap().len(), 1);
        assert_eq!(queue.pop(5).unwrap()[0].payload, b"next");
        drop(claim);
    }

    fn a_successors_run_can_have_a_successor(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let mut claim = take(&queue);
        for round in 0..4 {
            let payload = format!("round {round}");
            assert_eq!(queue.enqueue(next(&payload, KEEP)).unwrap().outcome, Outcome::Successor);
            claim.ack().unwrap();
            let following = take(&queue);
            assert_eq!(following.payload(), payload.as_bytes());
            claim.ack().unwrap();
            claim = following;
        }
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    fn the_last_verdict_of_a_run_is_remembered_beside_its_successor(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        queue.enqueue(next("next", KEEP)).unwrap();
        let twin = claim.clone();
        claim.ack().unwrap();
        twin.ack().unwrap();
        assert_eq!(kind(twin.bury("no")), ErrorKind::StaleReceipt);
        assert_then_done(&queue, "next");
    }
}
