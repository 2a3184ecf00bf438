//! pause, resume, purge.

use stanchion::{DeadTasks, ErrorKind, Outcome, QueueConfig, Retry, TaskState};
use stanchion_tests::on_every_store;

use crate::queue_support::{
    assert_nothing, census, claimed_ids, kind, lapse, plain, put, take, take_for, up_to,
};
use crate::{ms, secs};

on_every_store! {
    fn a_paused_queue_gives_nothing_out(bench) {
        let (queue, other) = (bench.client().queue("q"), bench.client().queue("q"));
        put(&queue, &["a", "b"]);
        queue.pause().unwrap();
        queue.pause().unwrap();
        assert!(other.stats().unwrap().paused);
        assert_nothing(&other);
        assert!(other.pop(5).unwrap().is_empty());
        assert_eq!(census(&other), [0, 2, 0, 0]);
        queue.resume().unwrap();
        assert!(!other.stats().unwrap().paused);
        assert_eq!(claimed_ids(&other.claim(up_to(5)).unwrap()), ["a", "b"]);
    }

    fn tasks_come_in_while_paused(bench) {
        let queue = bench.client().queue("q");
        queue.pause().unwrap();
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Added);
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Kept);
        assert_nothing(&queue);
        queue.resume().unwrap();
        take(&queue).ack().unwrap();
    }

    fn claims_in_flight_go_on(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["ack", "nack", "bury", "back", "extend"]);
        let claims = queue.claim(up_to(5)).unwrap();
        queue.pause().unwrap();
        claims[4].extend(secs(90)).unwrap();
        assert!(claims[4].remaining() > secs(80));
        claims[0].ack().unwrap();
        claims[1].nack(Retry::After(secs(600)), "later").unwrap();
        claims[2].bury("dead").unwrap();
        claims[3].put_back().unwrap();
        assert_eq!(census(&queue), [1, 1, 1, 1]);
        assert_nothing(&queue);
        let (settled, got) = queue.settle_and_claim(vec![claims[4].clone().acked()], up_to(5)).unwrap();
        assert!(settled[0].is_ok() && got.is_empty());
        assert_eq!(census(&queue), [1, 1, 0, 1]);
    }

    fn a_lease_that_ends_while_paused_comes_back_after_it(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, ms(50));
        queue.pause().unwrap();
        lapse(&queue, "a");
        assert_nothing(&queue);
        assert_eq!(queue.stats().unwrap().retried, 0, "nothing is promoted while paused");
        queue.resume().unwrap();
        let again = take(&queue);
        assert_eq!(again.attempt(), 2);
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
        again.ack().unwrap();
    }

    fn a_late_ack_is_accepted_while_paused(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, ms(50));
        queue.pause().unwrap();
        lapse(&queue, "a");
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    fn looking_and_changing_work_while_paused(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        queue.pause().unwrap();
        assert_eq!(queue.peek(5).unwrap().len(), 2);
        assert_eq!(queue.task("a").state, TaskState::Ready);
        queue.remove("a", None).unwrap();
        assert_eq!(census(&queue), [0, 1, 0, 0]);
    }

    fn purge_drops_live_and_dead_tasks_and_windows_and_nothing_else(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().max_len(Some(50))).unwrap();
        let throttle = stanchion::OnDuplicate::Throttle { window: secs(600) };
        put(&queue, &["dead"]);
        take(&queue).bury("dead").unwrap();
        put(&queue, &["claimed"]);
        let claim = take(&queue);
        queue.enqueue(plain("scheduled").delay(secs(60)).on_duplicate(throttle)).unwrap();
        put(&queue, &["ready"]);
        queue.pause().unwrap();
        let version = queue.task("ready").version;
        assert_eq!(queue.purge().unwrap(), 4);
        assert_eq!(census(&queue), [0; 4]);
        for id in ["dead", "claimed", "scheduled", "ready"] {
            assert!(queue.get(id).unwrap().is_none(), "{id}");
        }
        let stats = queue.stats().unwrap();
        assert!(stats.paused, "the pause stays");
        assert_eq!(stats.settings.max_len, Some(50), "settings stay");
        assert_eq!((stats.enqueued, stats.died), (4, 1), "counters stay");
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
        queue.resume().unwrap();
        let again = queue.enqueue(plain("scheduled").on_duplicate(throttle)).unwrap();
        assert_eq!(again.outcome, Outcome::Added, "the window is gone");
        assert!(again.version > version, "versions never fall");
        assert_eq!(queue.purge().unwrap(), 1);
        assert_eq!(queue.purge().unwrap(), 0);
        assert_eq!(queue.kick(DeadTasks::oldest(5)).unwrap(), 0);
    }

    fn purge_counts_ids_and_dead_records(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let _claim = take(&queue);
        put(&queue, &["a", "b"]);
        assert_eq!(queue.stats().unwrap().successors, 1);
        assert_eq!(queue.purge().unwrap(), 2);
        assert_eq!(queue.stats().unwrap().successors, 0);
    }

    fn purge_of_one_queue_leaves_others_alone(bench) {
        let client = bench.client();
        let (one, two) = (client.queue("one"), client.queue("two"));
        put(&one, &["a"]);
        put(&two, &["a"]);
        one.purge().unwrap();
        assert_eq!((census(&one), census(&two)), ([0; 4], [0, 1, 0, 0]));
    }

    fn purge_of_very_many_tasks_drops_all(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..3_000).map(|number| plain(&format!("t{number}")))).unwrap();
        assert_eq!(queue.purge().unwrap(), 3_000);
        assert_eq!(census(&queue), [0; 4]);
    }
}
