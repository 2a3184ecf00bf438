//! remove and reschedule.

use std::time::{SystemTime, UNIX_EPOCH};

use stanchion::{ErrorKind, OnDuplicate, Outcome, Removed, Rescheduled, Retry, TaskState, Version};
use stanchion_tests::on_every_store;

use crate::queue_support::{assert_nothing, await_one, census, ids, kind, lapse, plain, put, take, take_for};
use crate::{ms, secs, wall};

on_every_store! {
    fn remove_drops_a_task_in_any_state(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("scheduled").delay(secs(60))).unwrap();
        put(&queue, &["claimed"]);
        let claim = take(&queue);
        put(&queue, &["ready"]);
        for id in ["scheduled", "ready", "claimed"] {
            assert_eq!(queue.remove(id, None).unwrap(), Removed::Removed, "{id}");
            assert!(queue.get(id).unwrap().is_none(), "{id}");
            assert_eq!(queue.remove(id, None).unwrap(), Removed::Absent, "{id}");
        }
        assert_eq!(census(&queue), [0; 4]);
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
        assert_nothing(&queue);
        assert_eq!(queue.stats().unwrap().acked, 0);
    }

    fn remove_with_a_version_takes_only_that_one(bench) {
        let queue = bench.client().queue("q");
        let first = queue.enqueue(plain("a")).unwrap().version;
        let second = queue.enqueue(plain("a")).unwrap().version;
        assert_eq!(queue.remove("a", Some(first)).unwrap(), Removed::OtherVersion(second));
        assert_eq!(queue.task("a").version, second);
        assert_eq!(queue.remove("a", Some(second)).unwrap(), Removed::Removed);
        assert_eq!(queue.remove("a", Some(second)).unwrap(), Removed::Absent);
        let third = queue.enqueue(plain("a")).unwrap().version;
        assert_eq!(queue.remove("a", Some(second)).unwrap(), Removed::OtherVersion(third), "the id's next life");
    }

    fn a_successors_version_counts_if_there_is_one(bench) {
        let queue = bench.client().queue("q");
        let first = queue.enqueue(plain("a")).unwrap().version;
        let claim = take(&queue);
        let second = queue.enqueue(plain("a")).unwrap().version;
        assert_eq!(queue.remove("a", Some(first)).unwrap(), Removed::OtherVersion(second));
        assert_eq!(queue.stats().unwrap().successors, 1);
        assert_eq!(queue.remove("a", Some(second)).unwrap(), Removed::Removed);
        assert_eq!((census(&queue), queue.stats().unwrap().successors), ([0; 4], 0), "run and successor");
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
    }

    fn remove_clears_the_throttle_window(bench) {
        let queue = bench.client().queue("q");
        let throttled = || plain("a").on_duplicate(OnDuplicate::Throttle { window: secs(600) });
        queue.enqueue(throttled()).unwrap();
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Throttled);
        queue.remove("a", None).unwrap();
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Added);
    }

    fn a_remove_that_finds_another_version_or_none_leaves_the_window_alone(bench) {
        let queue = bench.client().queue("q");
        let throttled = || plain("a").on_duplicate(OnDuplicate::Throttle { window: secs(600) });
        let version = queue.enqueue(throttled()).unwrap().version;
        assert_eq!(queue.remove("a", Some(Version::new(version.get() - 1))).unwrap(), Removed::OtherVersion(version));
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Throttled);
        take(&queue).ack().unwrap();
        assert_eq!(queue.remove("a", Some(version)).unwrap(), Removed::Absent);
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Throttled);
        assert_eq!(queue.remove("a", None).unwrap(), Removed::Absent);
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Added, "without a version it goes");
    }

    fn a_removed_id_begins_anew(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        take(&queue).nack_now("failed").unwrap();
        queue.remove("a", None).unwrap();
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Added);
        let claim = take(&queue);
        assert_eq!(claim.attempt(), 1);
        claim.ack().unwrap();
    }

    fn reschedule_moves_a_task_both_ways(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").delay(secs(60))).unwrap();
        put(&queue, &["b"]);
        let far = UNIX_EPOCH + secs(4_000_000_000);
        assert_eq!(queue.reschedule("b", far).unwrap(), Rescheduled::Moved(far));
        assert_eq!((queue.task("b").state, queue.task("b").due), (TaskState::Scheduled, far));
        let past = UNIX_EPOCH + secs(1_000);
        assert_eq!(queue.reschedule("a", past).unwrap(), Rescheduled::Moved(past));
        assert_eq!(census(&queue), [1, 1, 0, 0]);
        let claim = take(&queue);
        assert_eq!((claim.id(), claim.due()), ("a", past));
        assert_nothing(&queue);
        claim.ack().unwrap();
    }

    fn reschedule_keeps_everything_else(bench) {
        let queue = bench.client().queue("q");
        let version = queue.enqueue(plain("a").priority(3)).unwrap().version;
        take(&queue).nack(Retry::After(secs(600)), "why").unwrap();
        queue.reschedule("a", wall()).unwrap();
        let task = queue.task("a");
        assert_eq!((task.version, task.priority, task.attempts, task.reason.as_str()), (version, 3, 1, "why"));
        let claim = take(&queue);
        assert_eq!(claim.attempt(), 2);
        claim.ack().unwrap();
    }

    fn reschedule_of_a_task_in_line_that_is_due_at_once_leaves_it_there(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let due = queue.task("a").due;
        assert_eq!(queue.reschedule("a", UNIX_EPOCH).unwrap(), Rescheduled::Moved(due));
        assert_eq!(ids(&queue.peek(5).unwrap()), ["a", "b"]);
    }

    fn reschedule_refuses_what_is_claimed_dead_or_unknown(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["claimed"]);
        let claim = take(&queue);
        put(&queue, &["dead"]);
        take(&queue).bury("dead").unwrap();
        let soon = wall();
        assert_eq!(queue.reschedule("claimed", soon).unwrap(), Rescheduled::Claimed);
        assert_eq!(queue.reschedule("dead", soon).unwrap(), Rescheduled::Dead);
        assert_eq!(queue.reschedule("unknown", soon).unwrap(), Rescheduled::Absent);
        assert_eq!(census(&queue), [0, 0, 1, 1]);
        assert!(claim.is_valid());
        claim.ack().unwrap();
    }

    fn reschedule_moves_a_retry_whose_lease_ended_and_its_late_ack_still_counts(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, ms(50));
        lapse(&queue, "a");
        let far = wall() + secs(600);
        assert!(matches!(queue.reschedule("a", far).unwrap(), Rescheduled::Moved(_)));
        assert_eq!(queue.task("a").state, TaskState::Scheduled);
        assert_nothing(&queue);
        assert_eq!(queue.enqueue(plain("b")).unwrap().outcome, Outcome::Added);
        claim.ack().unwrap();
        assert!(queue.get("a").unwrap().is_none());
        take(&queue).ack().unwrap();
    }

    fn reschedule_gives_nobody_more_attempts_than_allowed(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        let claim = take_for(&queue, ms(50));
        lapse(&queue, "a");
        assert_eq!(queue.reschedule("a", wall()).unwrap(), Rescheduled::Dead);
        assert_eq!((queue.task("a").state, queue.task("a").reason.as_str()), (TaskState::Dead, "the lease ended"));
        assert_nothing(&queue);
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    fn a_rescheduled_task_comes_at_its_new_time(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").delay(secs(60))).unwrap();
        let due = wall() + ms(200);
        queue.reschedule("a", due).unwrap();
        let claim = await_one(&queue);
        assert!(SystemTime::now() >= due);
        claim.ack().unwrap();
    }
}
