//! enqueue of an id that is in the queue already: each policy on each state of the id.

use std::time::{Instant, SystemTime};

use stanchion::{OnDuplicate, Outcome, Retry, Task, TaskState, Version};
use stanchion_tests::faces::AnyQueue;
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{assert_nothing, census, lapse, plain, take, take_for};
use crate::{ms, secs};

const KEEP: OnDuplicate = OnDuplicate::Keep;
const SKIP: OnDuplicate = OnDuplicate::Skip;
const REPLACE: OnDuplicate = OnDuplicate::Replace;
const DEBOUNCE: OnDuplicate = OnDuplicate::Debounce { max_wait: secs(3_600) };
const THROTTLE: OnDuplicate = OnDuplicate::Throttle { window: secs(3_600) };
const ALL: [OnDuplicate; 5] = [KEEP, SKIP, REPLACE, DEBOUNCE, THROTTLE];

fn replaces(policy: OnDuplicate) -> bool {
    matches!(policy, OnDuplicate::Replace | OnDuplicate::Debounce { .. })
}

/// The newer task: other payload, priority, limits and due.
fn newer(policy: OnDuplicate) -> Task {
    Task::new("a").payload("new").header("h", "new").priority(9).max_attempts(2).on_duplicate(policy)
}

fn older() -> Task {
    Task::new("a").payload("old").header("h", "old").priority(4).max_attempts(5)
}

/// What of the two tasks is there.
fn shown(queue: &AnyQueue) -> (String, u8, u32, u32) {
    let task = queue.task("a");
    assert_eq!(task.headers["h"].as_bytes(), task.payload, "headers and payload go together");
    (String::from_utf8(task.payload).unwrap(), task.priority, task.max_attempts, task.attempts)
}

on_every_store! {
    fn an_absent_id_is_added_by_every_policy(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            assert_eq!(queue.enqueue(newer(policy)).unwrap().outcome, Outcome::Added, "{policy:?}");
            assert_eq!(shown(&queue), ("new".into(), 9, 2, 0), "{policy:?}");
            assert_eq!(census(&queue), [0, 1, 0, 0]);
        }
    }

    fn a_scheduled_id_is_kept_or_replaced(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            let first = queue.enqueue(older().delay(secs(600))).unwrap();
            let second = queue.enqueue(newer(policy).delay(secs(60))).unwrap();
            assert!(second.version > first.version, "{policy:?}");
            assert_eq!(queue.task("a").version, second.version);
            if replaces(policy) {
                assert_eq!(second.outcome, Outcome::Replaced, "{policy:?}");
                assert!(second.due.unwrap() < SystemTime::now() + secs(61));
                assert_eq!(shown(&queue), ("new".into(), 9, 2, 0));
            } else {
                assert_eq!(second.outcome, Outcome::Kept, "{policy:?}");
                assert_eq!(second.due, first.due, "{policy:?}: it says when the kept one is due");
                assert_eq!(shown(&queue), ("old".into(), 4, 5, 0));
            }
            assert_eq!(queue.task("a").due, second.due.unwrap(), "{policy:?}");
            assert_eq!(census(&queue), [1, 0, 0, 0]);
        }
    }

    fn a_ready_id_is_kept_or_replaced(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            queue.enqueue(older()).unwrap();
            let second = queue.enqueue(newer(policy)).unwrap();
            if replaces(policy) {
                assert_eq!(second.outcome, Outcome::Replaced);
                assert_eq!(shown(&queue), ("new".into(), 9, 2, 0));
            } else {
                assert_eq!(second.outcome, Outcome::Kept);
                assert_eq!(shown(&queue), ("old".into(), 4, 5, 0));
            }
            assert_eq!(census(&queue), [0, 1, 0, 0]);
            let claim = take(&queue);
            assert_eq!(claim.version(), second.version);
            claim.ack().unwrap();
            assert_nothing(&queue);
        }
    }

    fn a_ready_id_becomes_scheduled_when_its_replacement_is_due_later(bench) {
        let client = bench.client();
        for (number, policy) in [REPLACE, DEBOUNCE].into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            queue.enqueue(older()).unwrap();
            queue.enqueue(newer(policy).delay(secs(60))).unwrap();
            assert_eq!(census(&queue), [1, 0, 0, 0], "{policy:?}");
            assert_nothing(&queue);
            queue.enqueue(newer(policy)).unwrap();
            assert_eq!(census(&queue), [0, 1, 0, 0], "{policy:?}: and back again");
            take(&queue).ack().unwrap();
        }
    }

    fn a_nacked_id_is_pending_and_starts_again_if_replaced(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            queue.enqueue(older()).unwrap();
            take(&queue).nack(Retry::After(secs(600)), "not yet").unwrap();
            let second = queue.enqueue(newer(policy)).unwrap();
            if replaces(policy) {
                assert_eq!(second.outcome, Outcome::Replaced);
                assert_eq!(shown(&queue), ("new".into(), 9, 2, 0));
                assert_eq!(queue.task("a").reason, "", "{policy:?}: the new task has not failed");
                assert_nothing(&queue);
                queue.reschedule("a", SystemTime::UNIX_EPOCH).unwrap();
                take(&queue).ack().unwrap();
            } else {
                assert_eq!(second.outcome, Outcome::Kept);
                assert_eq!(shown(&queue), ("old".into(), 4, 5, 1));
                assert_eq!(queue.task("a").reason, "not yet");
                assert_nothing(&queue);
            }
        }
    }

    fn a_debounce_with_the_same_payload_counts_attempts_on(bench) {
        let queue = bench.client().queue("q");
        let debounced = |payload: &str| Task::new("a").payload(payload).on_duplicate(DEBOUNCE);
        queue.enqueue(debounced("same")).unwrap();
        take(&queue).nack_now("failed").unwrap();
        assert_eq!(queue.enqueue(debounced("same")).unwrap().outcome, Outcome::Replaced);
        assert_eq!(queue.task("a").attempts, 1);
        assert_eq!(queue.enqueue(debounced("other")).unwrap().outcome, Outcome::Replaced);
        assert_eq!(queue.task("a").attempts, 0);
        take(&queue).ack().unwrap();
    }

    fn a_running_id_gets_a_successor(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().filter(|policy| *policy != SKIP).enumerate() {
            let queue = client.queue(&format!("q{number}"));
            let first = queue.enqueue(older()).unwrap();
            let claim = take(&queue);
            let second = queue.enqueue(newer(policy)).unwrap();
            assert_eq!(second.outcome, Outcome::Successor, "{policy:?}");
            assert!(second.version > first.version);
            assert_eq!(shown(&queue), ("old".into(), 4, 5, 1), "the running one is shown");
            assert_eq!(queue.task("a").successor_due, second.due);
            assert_eq!(queue.stats().unwrap().successors, 1);
            assert_eq!(census(&queue), [0, 0, 1, 0]);
            assert_nothing(&queue);
            claim.ack().unwrap();
            assert_eq!(shown(&queue), ("new".into(), 9, 2, 0), "{policy:?}");
            let next = take(&queue);
            assert_eq!((next.payload(), next.attempt(), next.version()), (b"new".as_slice(), 1, second.version));
            assert!(next.receipt() > claim.receipt());
            next.ack().unwrap();
            assert_eq!(census(&queue), [0; 4]);
        }
    }

    fn a_running_id_that_is_skipped_gets_no_successor(bench) {
        let queue = bench.client().queue("q");
        let first = queue.enqueue(older()).unwrap();
        let claim = take(&queue);
        let second = queue.enqueue(newer(SKIP)).unwrap();
        assert_eq!(second.outcome, Outcome::Skipped);
        assert_eq!((second.version, second.due), (first.version, first.due), "of what is running");
        assert_eq!(queue.task("a").successor_due, None);
        assert_eq!(queue.stats().unwrap().enqueued, 1);
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    fn a_late_ack_of_what_was_skipped_ends_it(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(older()).unwrap();
        let claim = take_for(&queue, ms(200));
        assert_eq!(queue.enqueue(newer(SKIP)).unwrap().outcome, Outcome::Skipped);
        lapse(&queue, "a");
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0; 4], "nobody has asked for another run");
    }

    fn an_id_whose_lease_ended_is_pending(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            queue.enqueue(older()).unwrap();
            let old = take_for(&queue, ms(50));
            lapse(&queue, "a");
            let outcome = queue.enqueue(newer(policy)).unwrap().outcome;
            if replaces(policy) {
                assert_eq!(outcome, Outcome::Replaced, "{policy:?}");
                assert_eq!(shown(&queue), ("new".into(), 9, 2, 0), "{policy:?}");
                assert_eq!(old.ack().unwrap_err().kind(), stanchion::ErrorKind::StaleReceipt);
            } else {
                assert_eq!(outcome, Outcome::Kept, "{policy:?}: it waits for its retry, as after a nack");
                assert_eq!(shown(&queue), ("old".into(), 4, 5, 1), "{policy:?}: a lease that ended settles nothing");
                old.ack().unwrap();
                assert_eq!(shown(&queue), ("old".into(), 4, 5, 0), "{policy:?}: it was asked for again since");
            }
            let next = take(&queue);
            assert_eq!(next.attempt(), 1);
            next.ack().unwrap();
            assert_eq!(census(&queue), [0; 4]);
        }
    }

    fn a_dead_id_is_no_duplicate(bench) {
        let client = bench.client();
        for (number, policy) in ALL.into_iter().enumerate() {
            let queue = client.queue(&format!("q{number}"));
            queue.enqueue(older()).unwrap();
            take(&queue).bury("hopeless").unwrap();
            assert_eq!(queue.enqueue(newer(policy)).unwrap().outcome, Outcome::Added, "{policy:?}");
            assert_eq!(shown(&queue), ("new".into(), 9, 2, 0), "the live one is shown");
            assert_eq!(census(&queue), [0, 1, 0, 1]);
        }
    }

    fn every_accepted_enqueue_counts_and_a_throttled_one_does_not(bench) {
        let queue = bench.client().queue("q");
        let outcomes = [KEEP, REPLACE, DEBOUNCE, THROTTLE, THROTTLE, KEEP]
            .map(|policy| queue.enqueue(newer(policy)).unwrap());
        let said = outcomes.each_ref().map(|enqueued| enqueued.outcome);
        assert_eq!(said, [
            Outcome::Added, Outcome::Replaced, Outcome::Replaced, Outcome::Kept, Outcome::Throttled, Outcome::Kept,
        ]);
        assert_eq!((outcomes[4].version, outcomes[4].due), (Version::NONE, None));
        assert_eq!(queue.stats().unwrap().enqueued, 5);
        assert_eq!(queue.task("a").version, outcomes[5].version);
    }

    fn a_throttle_window_outlives_the_ack_and_other_policies_ignore_it(bench) {
        let queue = bench.client().queue("q");
        assert_eq!(queue.enqueue(newer(THROTTLE)).unwrap().outcome, Outcome::Added);
        take(&queue).ack().unwrap();
        assert_eq!(queue.enqueue(newer(THROTTLE)).unwrap().outcome, Outcome::Throttled);
        assert!(queue.get("a").unwrap().is_none());
        let another = Task::new("b").on_duplicate(THROTTLE);
        assert_eq!(queue.enqueue(another).unwrap().outcome, Outcome::Added, "windows are per id");
        for policy in [KEEP, REPLACE, DEBOUNCE] {
            assert!(queue.enqueue(newer(policy).delay(secs(60))).unwrap().version > Version::NONE, "{policy:?}");
        }
        assert_eq!(queue.enqueue(newer(THROTTLE)).unwrap().outcome, Outcome::Throttled);
        assert_eq!(queue.task("a").state, TaskState::Scheduled);
    }

    fn a_throttle_window_ends(bench) {
        let queue = bench.client().queue("q");
        let throttled = || plain("a").on_duplicate(OnDuplicate::Throttle { window: ms(150) });
        let mut begun = Instant::now();
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Added);
        eventually(SOON, || {
            let asked = Instant::now();
            let outcome = queue.enqueue(throttled()).unwrap().outcome;
            if outcome == Outcome::Throttled {
                return false;
            }
            assert_eq!(outcome, Outcome::Kept);
            assert!(begun.elapsed() >= ms(149), "it ended after {:?}", begun.elapsed());
            begun = asked;
            let is_throttled = queue.enqueue(throttled()).unwrap().outcome == Outcome::Throttled;
            assert!(is_throttled || begun.elapsed() >= ms(149), "a new window has begun");
            is_throttled
        });
    }
}
