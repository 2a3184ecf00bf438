//! configure: settings, and the caps on dead tasks.

use stanchion::{Outcome, QueueConfig, TaskState};
use stanchion_tests::faces::AnyQueue;
use stanchion_tests::on_every_store;

use crate::queue_support::{census, ids, plain, put, take};
use crate::{ms, secs};

fn die(queue: &AnyQueue, id: &str, bytes: usize) {
    queue.enqueue(plain(id).payload(vec![7; bytes])).unwrap();
    take(queue).bury("dead").unwrap();
}

on_every_store! {
    fn the_defaults_are_told(bench) {
        let settings = bench.client().queue("q").stats().unwrap().settings;
        assert_eq!((settings.max_len, settings.dead_max, settings.intake), (None, 10_000, true));
        assert_eq!((settings.dead_age, settings.dead_bytes), (secs(90 * 24 * 3_600), 256 << 20));
    }

    fn what_is_not_given_stays(bench) {
        let queue = bench.client().queue("q");
        let settings = || bench.client().queue("q").stats().unwrap().settings;
        queue.configure(QueueConfig::new().max_len(Some(9)).dead_max(3).dead_age(secs(60))).unwrap();
        queue.configure(QueueConfig::new().dead_bytes(1_000).intake(false)).unwrap();
        let now = settings();
        assert_eq!((now.max_len, now.dead_max, now.dead_age), (Some(9), 3, secs(60)));
        assert_eq!((now.dead_bytes, now.intake), (1_000, false));
        queue.configure(QueueConfig::new()).unwrap();
        assert_eq!(settings(), now);
        queue.configure(QueueConfig::new().max_len(None).intake(true)).unwrap();
        assert_eq!((settings().max_len, settings().intake, settings().dead_max), (None, true, 3));
    }

    fn the_limits_themselves_are_stored_exactly(bench) {
        let queue = bench.client().queue("q");
        let most = 1 << 53;
        let year = secs(365 * 24 * 3_600);
        queue.configure(QueueConfig::new().max_len(Some(most)).dead_max(most).dead_bytes(most).dead_age(year)).unwrap();
        let settings = queue.stats().unwrap().settings;
        assert_eq!((settings.max_len, settings.dead_max, settings.dead_bytes), (Some(most), most, most));
        assert_eq!(settings.dead_age, year);
        put(&queue, &["a"]);
    }

    fn the_oldest_dead_go_beyond_the_count(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().dead_max(3)).unwrap();
        for id in ["a", "b", "c", "d", "e"] {
            die(&queue, id, 10);
        }
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["e", "d", "c"]);
        assert!(queue.get("a").unwrap().is_none());
        assert_eq!((census(&queue), queue.stats().unwrap().died), ([0, 0, 0, 3], 5));
    }

    fn the_oldest_dead_go_beyond_the_bytes(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().dead_bytes(10_000)).unwrap();
        for id in ["a", "b", "c", "d"] {
            die(&queue, id, 3_000);
        }
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["d", "c", "b"]);
        // Larger than all that is kept: one record, or none.
        die(&queue, "large", 50_000);
        assert!(queue.all(TaskState::Dead).len() <= 1);
    }

    fn the_dead_go_when_they_are_too_old(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().dead_age(ms(60))).unwrap();
        die(&queue, "a", 10);
        let died = queue.task("a").died.unwrap();
        stanchion_tests::wait::eventually(stanchion_tests::wait::SOON, || std::time::SystemTime::now() > died + ms(65));
        die(&queue, "b", 10);
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["b"]);
    }

    fn a_cap_that_was_lowered_is_reached_step_by_step(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..250).map(|number| plain(&format!("t{number}")))).unwrap();
        let claims = queue.claim(crate::queue_support::up_to(250)).unwrap();
        let verdicts = claims.into_iter().map(|claim| claim.buried("dead")).collect();
        assert!(queue.settle(verdicts).unwrap().into_iter().all(|result| result.is_ok()));
        assert_eq!(census(&queue), [0, 0, 0, 250]);
        queue.configure(QueueConfig::new().dead_max(10)).unwrap();
        for round in 0..4 {
            die(&queue, &format!("d{round}"), 1);
        }
        let dead = queue.all(TaskState::Dead);
        assert_eq!(dead.len(), 10, "100 per call at most, but every call goes on");
        assert_eq!(ids(&dead)[..4], ["d3", "d2", "d1", "d0"]);
    }

    fn a_cap_that_was_lowered_holds_at_once(bench) {
        let queue = bench.client().queue("q");
        for id in ["a", "b", "c"] {
            die(&queue, id, 1);
        }
        queue.configure(QueueConfig::new().dead_max(1)).unwrap();
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["c"]);
    }

    fn a_queue_that_keeps_no_dead_keeps_none(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().dead_max(0)).unwrap();
        die(&queue, "a", 10);
        assert_eq!(census(&queue), [0; 4]);
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Added);
        assert_eq!(queue.stats().unwrap().died, 1);
    }
}
