//! Producers that know nothing of this library: a ZADD of an id at a Unix time, by any client.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use redis::Commands;
use stanchion::{
    ClaimOptions, ListOptions, OnDuplicate, Outcome, QueueConfig, Removed, Rescheduled, Task, TaskState,
    Version,
};
use stanchion_tests::faces::{AnyClaim, AnyQueue};
use stanchion_tests::on_stores_with_foreign_lockers;
use stanchion_tests::stores::Bench;
use stanchion_tests::wait::{SOON, ran_since, task};

use crate::{ms, secs};

const KEY: &str = "Queue:q";

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// What an older producer does.
fn zadd(bench: &Bench, id: &str, time: f64) {
    let _: u32 = bench.raw().zadd(KEY, id, time).unwrap();
}

fn all(queue: &AnyQueue) -> Vec<AnyClaim> {
    queue.claim(ClaimOptions::new().lease(secs(30)).max(1_000)).unwrap()
}

fn ids(claims: &[AnyClaim]) -> Vec<&str> {
    claims.iter().map(AnyClaim::id).collect()
}

on_stores_with_foreign_lockers! {
    /// Added again all the time, it is the third: two are before it.
    fn a_hot_zadd_gets_its_turn(bench) {
        let queue = bench.client().queue("q");
        for id in ["b1", "b2"] {
            queue.enqueue(Task::new(id)).unwrap();
        }
        zadd(bench, "hot", 1.0);
        let mut delivered = Vec::new();
        for number in 0..3 {
            let claim = queue.claim(ClaimOptions::new().lease(secs(30))).unwrap().remove(0);
            delivered.push(claim.id().to_owned());
            claim.ack().unwrap();
            queue.enqueue(Task::new(format!("later{number}"))).unwrap();
            zadd(bench, "hot", 2.0);
        }
        assert_eq!(delivered, ["b1", "b2", "hot"]);
    }

    fn what_others_put_is_listed_page_by_page_and_by_prefix(bench) {
        let queue = bench.client().queue("q");
        for (id, time) in [("first", f64::NEG_INFINITY), ("second", -5.5), ("third", 1e-300), ("last", 2.0)] {
            zadd(bench, id, time);
        }
        let ids = |options: ListOptions| {
            let tasks = queue.pages(&options).concat();
            tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
        };
        let ready = ListOptions::new(TaskState::Ready);
        assert_eq!(ids(ready.clone().max(1)), ["first", "second", "third", "last"]);
        assert_eq!(ids(ready.prefix("s")), ["second"]);
        zadd(bench, "never", f64::INFINITY);
        zadd(bench, "nor this", f64::INFINITY);
        assert_eq!(ids(ListOptions::new(TaskState::Scheduled).max(1)), ["never", "nor this"]);
    }

    fn a_zadd_does_not_bring_a_retry_forward_of_its_back_off(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(Task::new("a")).unwrap();
        let end = SystemTime::now() + secs(600);
        all(&queue)[0].nack(stanchion::Retry::After(secs(600)), "no").unwrap();
        zadd(bench, "a", 1.0);
        assert_eq!(all(&queue).len(), 0);
        assert!(queue.task("a").due >= end - secs(1));
    }

    fn a_zadd_by_redis_cli_is_worked(bench) {
        let queue = bench.client().queue("q");
        let output = Command::new("redis-cli").args(["-u", bench.url(), "ZADD", KEY, "1", "user:42"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1", "{output:?}");
        let seen = queue.task("user:42");
        assert_eq!((seen.state, seen.version, seen.due), (TaskState::Ready, Version::NONE, UNIX_EPOCH + secs(1)));
        let claims = all(&queue);
        assert_eq!(ids(&claims), ["user:42"]);
        assert_eq!((claims[0].payload(), claims[0].attempt(), claims[0].max_attempts()), (b"".as_slice(), 1, 20));
        assert_eq!(claims[0].due(), UNIX_EPOCH + secs(1));
        claims[0].ack().unwrap();
        assert!(queue.get("user:42").unwrap().is_none());
        assert!(!bench.raw().exists::<_, bool>(KEY).unwrap(), "it was taken out of the key");
    }

    fn a_zadd_is_not_delivered_before_its_time(bench) {
        let queue = bench.client().queue("q");
        zadd(bench, "later", now() + 600.0);
        let soon = now() + 3.0;
        zadd(bench, "soon", soon);
        assert_eq!(queue.stats().unwrap().scheduled, 2);
        assert!(all(&queue).is_empty());
        let claims = queue.claim(ClaimOptions::new().lease(secs(30)).wait(SOON)).unwrap();
        assert_eq!(ids(&claims), ["soon"]);
        let due = claims[0].due().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(now() >= due && (due - soon).abs() < 0.002, "due at {due}, put in for {soon}");
        claims[0].ack().unwrap();
        assert_eq!(queue.task("later").state, TaskState::Scheduled);
    }

    fn a_waiting_consumer_finds_a_zadd_by_looking(bench) {
        let queue = bench.client().queue("q");
        let consumer = queue.clone();
        let waiting = task(move || consumer.claim(ClaimOptions::new().lease(secs(30)).wait(secs(30))).unwrap());
        bench.probe().wait_for_idle("q", 1);
        zadd(bench, "a", 1.0);
        let begun = Instant::now();
        let claims = waiting.join();
        // It sends no hints; the first consumer looks once a second.
        assert!(ran_since(begun) < ms(1_300), "took {:?}", ran_since(begun));
        claims[0].ack().unwrap();
    }

    fn entries_come_in_order_of_their_times(bench) {
        let queue = bench.client().queue("q");
        for (id, time) in [("c", 3.0), ("a", 1.0), ("b", 2.0), ("b1", 2.5)] {
            zadd(bench, id, time);
        }
        let peeked: Vec<String> = queue.peek(10).unwrap().into_iter().map(|task| task.id).collect();
        assert_eq!(peeked, ["a", "b", "b1", "c"]);
        assert_eq!(bench.raw().zcard::<_, u64>(KEY).unwrap(), 4, "looking takes nothing in");
        let claims = all(&queue);
        assert_eq!(ids(&claims), ["a", "b", "b1", "c"]);
        claims.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn old_and_new_producers_feed_one_consumer(bench) {
        let queue = bench.client().queue("q");
        let (new, url) = (queue.clone(), bench.url().to_owned());
        let plain = task(move || {
            let mut raw = redis::Client::open(url).unwrap().get_connection().unwrap();
            for number in 0..200 {
                let _: u32 = raw.zadd(KEY, format!("old{number}"), now()).unwrap();
            }
        });
        let ours = task(move || for number in 0..200 {
            new.enqueue(Task::new(format!("new{number}"))).unwrap();
        });
        let mut seen = BTreeSet::new();
        let begun = Instant::now();
        while seen.len() < 400 {
            assert!(begun.elapsed() < 3 * SOON, "{} came", seen.len());
            for claim in queue.claim(ClaimOptions::new().lease(secs(30)).max(50).wait(ms(200))).unwrap() {
                assert!(seen.insert(claim.id().to_owned()), "{} came twice", claim.id());
                claim.ack().unwrap();
            }
        }
        plain.join();
        ours.join();
        let stats = queue.stats().unwrap();
        assert_eq!((stats.ready, stats.scheduled, stats.claimed, stats.dead), (0, 0, 0, 0));
    }

    fn a_zadd_of_a_pending_id_moves_it(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(Task::new("a").payload("ours").delay(secs(600))).unwrap();
        zadd(bench, "a", 1.0);
        let claims = all(&queue);
        assert_eq!((ids(&claims), claims[0].payload()), (vec!["a"], b"ours".as_slice()));
        assert_eq!(claims[0].due(), UNIX_EPOCH + secs(1));
        claims[0].ack().unwrap();
        assert!(all(&queue).is_empty());
    }

    fn a_zadd_of_a_running_id_comes_after_it(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(Task::new("a").payload("ours")).unwrap();
        let first = all(&queue).remove(0);
        zadd(bench, "a", 1.0);
        assert!(all(&queue).is_empty(), "two run at once");
        assert_eq!(queue.stats().unwrap().successors, 1);
        first.ack().unwrap();
        let claims = all(&queue);
        assert_eq!((ids(&claims), claims[0].payload()), (vec!["a"], b"".as_slice()));
        claims[0].ack().unwrap();
    }

    fn an_enqueue_beside_an_entry_of_the_same_id_keeps_both_wishes(bench) {
        let queue = bench.client().queue("q");
        zadd(bench, "a", now() + 600.0);
        let enqueued = queue.enqueue(Task::new("a").payload("ours").on_duplicate(OnDuplicate::Keep)).unwrap();
        assert!(matches!(enqueued.outcome, Outcome::Added | Outcome::Kept));
        let claims = all(&queue);
        assert_eq!((ids(&claims), claims[0].payload()), (vec!["a"], b"ours".as_slice()));
        claims[0].ack().unwrap();
    }

    fn entries_can_be_removed_and_moved_by_us(bench) {
        let queue = bench.client().queue("q");
        zadd(bench, "a", now() + 600.0);
        zadd(bench, "b", now() + 600.0);
        assert_eq!(queue.remove("a", Some(Version::NONE)).unwrap(), Removed::Removed);
        assert_eq!(queue.remove("a", None).unwrap(), Removed::Absent);
        let past = UNIX_EPOCH + secs(5);
        assert_eq!(queue.reschedule("b", past).unwrap(), Rescheduled::Moved(past));
        assert_eq!(bench.raw().zscore::<_, _, Option<f64>>(KEY, "b").unwrap(), Some(5.0));
        assert_eq!(ids(&all(&queue)), ["b"]);
    }

    fn an_old_consumers_view_is_the_plain_set(bench) {
        let queue = bench.client().queue("q");
        zadd(bench, "old", 1.0);
        queue.enqueue(Task::new("new")).unwrap();
        let members: Vec<String> = bench.raw().zrange(KEY, 0, -1).unwrap();
        assert_eq!(members, ["old"], "ours are elsewhere");
        let popped = queue.pop(10).unwrap();
        assert_eq!(popped.len(), 2);
        assert!(bench.raw().zrange::<_, Vec<String>>(KEY, 0, -1).unwrap().is_empty());
    }

    fn an_intake_that_is_off_is_left_alone(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().intake(false)).unwrap();
        zadd(bench, "a", 1.0);
        assert!(all(&queue).is_empty());
        assert!(queue.get("a").unwrap().is_none() && queue.peek(5).unwrap().is_empty());
        assert_eq!(queue.stats().unwrap().ready, 0);
        queue.purge().unwrap();
        assert_eq!(bench.raw().zcard::<_, u64>(KEY).unwrap(), 1, "it is somebody else's");
        queue.configure(QueueConfig::new().intake(true)).unwrap();
        assert_eq!(ids(&all(&queue)), ["a"]);
    }

    fn a_paused_queue_takes_nothing_in(bench) {
        let queue = bench.client().queue("q");
        queue.pause().unwrap();
        zadd(bench, "a", 1.0);
        assert!(all(&queue).is_empty());
        assert_eq!(bench.raw().zcard::<_, u64>(KEY).unwrap(), 1);
        assert_eq!(queue.stats().unwrap().ready, 1, "but sees it");
        assert_eq!(queue.purge().unwrap(), 1);
        assert_eq!(bench.raw().zcard::<_, u64>(KEY).unwrap(), 0);
    }
}
