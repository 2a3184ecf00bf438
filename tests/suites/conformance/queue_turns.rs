//! That a task gets its turn, whatever is asked of its id meanwhile; and that what failed waits, however it failed.

use std::time::SystemTime;

use stanchion::{OnDuplicate, Outcome, Rescheduled, Retry, Task, TaskState};
use stanchion_tests::faces::AnyQueue;
use stanchion_tests::on_every_store;

use crate::queue_support::{
    assert_nothing, census, claimed_ids, ids, lapse, plain, put, take, take_for, up_to,
};
use crate::{ms, secs, wall};

const REPLACE: OnDuplicate = OnDuplicate::Replace;
const DEBOUNCE: OnDuplicate = OnDuplicate::Debounce { max_wait: secs(3_600) };

/// Asks for the id in each way there is.
fn ask(queue: &AnyQueue, how: &str) {
    let task = plain("hot");
    match how {
        "keep" => drop(queue.enqueue(task).unwrap()),
        "replace" => drop(queue.enqueue(task.on_duplicate(REPLACE)).unwrap()),
        "debounce" => drop(queue.enqueue(task.on_duplicate(DEBOUNCE)).unwrap()),
        _ => assert!(matches!(queue.reschedule("hot", wall()).unwrap(), Rescheduled::Moved(_))),
    }
}

on_every_store! {
    /// Five are before it; it is the sixth, although it is asked for before each delivery, and others come.
    fn a_hot_id_gets_its_turn_beside_a_backlog(bench) {
        for how in ["keep", "replace", "debounce", "reschedule"] {
            let queue = bench.client().queue(how);
            put(&queue, &["b1", "b2", "b3", "b4", "b5", "hot"]);
            let mut delivered = Vec::new();
            for number in 0..6 {
                put(&queue, &[&format!("later{number}")]);
                ask(&queue, how);
                let claim = take(&queue);
                delivered.push(claim.id().to_owned());
                claim.ack().unwrap();
            }
            assert_eq!(delivered, ["b1", "b2", "b3", "b4", "b5", "hot"], "{how}");
        }
    }

    fn another_priority_is_another_line(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["hot", "b1"]);
        let asked = |priority| plain("hot").priority(priority).on_duplicate(REPLACE);
        queue.enqueue(asked(3)).unwrap();
        assert_eq!(ids(&queue.peek(9).unwrap()), ["hot", "b1"]);
        queue.enqueue(asked(0)).unwrap();
        assert_eq!(ids(&queue.peek(9).unwrap()), ["b1", "hot"], "at its end");
        queue.enqueue(asked(0).delay(secs(60))).unwrap();
        assert_eq!(queue.task("hot").state, TaskState::Scheduled, "later is later");
    }

    fn no_enqueue_brings_a_retry_forward_of_its_back_off(bench) {
        for policy in [OnDuplicate::Keep, REPLACE, DEBOUNCE] {
            let queue = bench.client().queue(&format!("q{}", policy == REPLACE));
            queue.purge().unwrap();
            queue.enqueue(plain("a").on_duplicate(policy)).unwrap();
            let end = SystemTime::now() + secs(600);
            take(&queue).nack(Retry::After(secs(600)), "no").unwrap();
            for _ in 0..3 {
                let asked = queue.enqueue(plain("a").on_duplicate(policy)).unwrap();
                assert!(asked.due.unwrap() >= end - secs(1), "{policy:?}");
            }
            assert_eq!(queue.task("a").state, TaskState::Scheduled);
            assert_nothing(&queue);
            // It was asked for while it ran: that waits, too.
            queue.reschedule("a", wall()).unwrap();
            let claim = take(&queue);
            assert_eq!(queue.enqueue(plain("a").on_duplicate(policy)).unwrap().outcome, Outcome::Successor);
            claim.nack(Retry::After(secs(600)), "no").unwrap();
            assert_eq!(queue.task("a").state, TaskState::Scheduled, "{policy:?}");
            assert_nothing(&queue);
        }
    }

    fn what_is_put_back_comes_back_to_its_place(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c"]);
        let mut claims = queue.claim(up_to(2)).unwrap();
        put(&queue, &["d"]);
        // In whatever order.
        claims.remove(1).put_back().unwrap();
        claims.remove(0).put_back().unwrap();
        assert_eq!(claimed_ids(&queue.claim(up_to(9)).unwrap()), ["a", "b", "c", "d"]);
    }

    fn what_is_put_back_with_a_delay_waits_so_long(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        let end = SystemTime::now() + secs(600);
        take(&queue).put_back_after(secs(600)).unwrap();
        let task = queue.task("a");
        assert_eq!((task.state, task.attempts), (TaskState::Scheduled, 0));
        assert!(task.due >= end - secs(1));
        assert!(queue.enqueue(plain("a").on_duplicate(REPLACE)).unwrap().due.unwrap() >= end - secs(1));
        assert_nothing(&queue);
        queue.reschedule("a", wall()).unwrap();
        let verdict = take(&queue).returned_after(secs(600)).unwrap();
        queue.settle(vec![verdict]).unwrap().remove(0).unwrap();
        assert_eq!(queue.task("a").state, TaskState::Scheduled);
    }

    /// Whether a claim has noticed the end of the lease or not.
    fn an_ended_lease_is_the_same_to_every_enqueue(bench) {
        for (number, noticed) in [(0, false), (1, true)] {
            for (attempts, policy) in [(8, OnDuplicate::Keep), (8, REPLACE), (1, OnDuplicate::Keep), (1, REPLACE)] {
                let queue = bench.client().queue(&format!("q{number}{attempts}{}", policy == REPLACE));
                queue.enqueue(plain("a").max_attempts(attempts)).unwrap();
                let claim = take_for(&queue, ms(50));
                lapse(&queue, "a");
                if noticed {
                    queue.enqueue(plain("b").priority(9)).unwrap();
                    take(&queue).ack().unwrap();
                }
                let outcome = queue.enqueue(plain("a").on_duplicate(policy)).unwrap().outcome;
                let (expected, dead) = match (attempts, policy == REPLACE) {
                    (1, _) => (Outcome::Added, 1),
                    (_, true) => (Outcome::Replaced, 0),
                    (_, false) => (Outcome::Kept, 0),
                };
                assert_eq!((outcome, census(&queue)), (expected, [0, 1, 0, dead]), "{policy:?}, noticed: {noticed}");
                drop(claim);
            }
        }
    }

    fn what_expires_keeps_what_it_failed_of(bench) {
        let queue = bench.client().queue("q");
        for id in ["failed", "new"] {
            queue.enqueue(Task::new(id).expires(ms(300))).unwrap();
        }
        take(&queue).nack_now("no luck").unwrap();
        stanchion_tests::wait::eventually(stanchion_tests::wait::SOON, || {
            assert!(queue.claim(up_to(9)).unwrap().iter().all(|claim| claim.put_back().is_ok()));
            census(&queue) == [0, 0, 0, 2]
        });
        assert_eq!(queue.task("failed").reason, "expired; before: no luck");
        assert_eq!(queue.task("new").reason, "expired");
    }
}
