//! Keys of tasks: fair shares, concurrency, rates, weights, and throttles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stanchion::{ClaimOptions, KeyLimits, OnDuplicate, QueueConfig, Rate, Retry, Schedule, Task, TaskState};
use stanchion_tests::faces::{AnyClaim, AnyQueue};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::queue_support::{assert_nothing, await_one, plain, take, up_to};
use crate::{ms, secs};

const NOW: Duration = Duration::ZERO;
/// Tasks of a tenant that floods the queue, and of each of the others.
const FLOOD: usize = 5_000;
const OTHERS: usize = 99;
const EACH: usize = 10;

fn of(key: &str, id: &str) -> Task {
    plain(id).key(key)
}

/// Puts tasks of one key in, in this order.
fn put_of(queue: &AnyQueue, key: &str, ids: &[&str]) {
    for result in queue.enqueue_many(ids.iter().map(|id| of(key, id))).unwrap() {
        result.unwrap();
    }
}

fn ids(claims: &[AnyClaim]) -> Vec<&str> {
    claims.iter().map(AnyClaim::id).collect()
}

fn in_state(queue: &AnyQueue, state: TaskState) -> Vec<String> {
    queue.all(state).into_iter().map(|task| task.id).collect()
}

/// The numbers of what runs, stands in line, and is held.
fn counts(queue: &AnyQueue, key: &str) -> (u64, u64, u64) {
    let key = queue.get_key(key).unwrap();
    (key.running, key.in_line, key.held)
}

on_every_store! {
    fn keys_have_their_shares_without_any_setting(bench) {
        let queue = bench.client().queue("q");
        put_of(&queue, "k", &["a", "b", "c"]);
        put_of(&queue, "l", &["d", "e"]);
        assert_eq!(in_state(&queue, TaskState::Ready), ["a", "d"]);
        assert_eq!(in_state(&queue, TaskState::Held), ["b", "c", "e"]);
        assert_eq!((queue.stats().unwrap().held, counts(&queue, "k")), (3, (0, 1, 2)));
        let first = queue.claim(up_to(2)).unwrap();
        assert_eq!(ids(&first), ["a", "d"]);
        // Where nobody else waits, a key gives more than its share.
        let rest = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&rest), ["b", "e", "c"]);
        assert_eq!(queue.stats().unwrap().held, 0);
    }

    fn a_flood_of_one_tenant_does_not_hold_up_the_others(bench) {
        let queue = bench.client().queue("q");
        let flood: Vec<_> = (0..FLOOD).map(|number| of("flood", &format!("flood {number}"))).collect();
        let others = (0..OTHERS * EACH).map(|number| {
            of(&format!("tenant {}", number % OTHERS), &format!("other {number}"))
        });
        for result in queue.enqueue_many(flood.into_iter().chain(others)).unwrap() {
            result.unwrap();
        }
        let (mut left, mut delivered) = (OTHERS * EACH, 0);
        while left > 0 {
            let claims = queue.claim(up_to(50)).unwrap();
            delivered += claims.len();
            left -= claims.iter().filter(|claim| claim.id().starts_with("other")).count();
            queue.settle(claims.iter().map(AnyClaim::acked).collect()).unwrap();
        }
        assert!(delivered <= 2_000, "{delivered} deliveries");
    }

    fn a_weight_is_a_share(bench) {
        let queue = bench.client().queue("q");
        queue.limit_key("big", Some(KeyLimits::new().weight(3))).unwrap();
        for number in 0..12 {
            queue.enqueue(of("big", &format!("big {number}"))).unwrap();
            queue.enqueue(of("small", &format!("small {number}"))).unwrap();
        }
        let claims: Vec<_> = (0..8).map(|_| take(&queue)).collect();
        let big = claims.iter().filter(|claim| claim.key() == Some("big")).count();
        assert_eq!(big, 6, "{:?}", ids(&claims));
    }

    fn two_of_a_key_never_run_at_once(bench) {
        const KEYS: usize = 20;
        let client = bench.client();
        let queue = client.queue("q");
        queue.configure(QueueConfig::new().key_concurrency(Some(1))).unwrap();
        let tasks = (0..KEYS * 10).map(|number| of(&format!("k{}", number % KEYS), &format!("t{number}")).max_attempts(100));
        for result in queue.enqueue_many(tasks).unwrap() {
            result.unwrap();
        }
        let inside: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
        let done = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..8).map(|worker| {
            let (queue, inside, done) = (queue.clone(), Arc::clone(&inside), Arc::clone(&done));
            task(move || {
                let mut turn = worker;
                while done.load(Ordering::SeqCst) < KEYS * 10 {
                    let claims = queue.claim(up_to(3).wait(ms(200))).unwrap();
                    let key = |claim: &AnyClaim| claim.key().unwrap()[1..].parse::<usize>().unwrap();
                    // All that were claimed run, until each is settled.
                    for claim in &claims {
                        assert_eq!(inside[key(claim)].fetch_add(1, Ordering::SeqCst), 0, "two of {}", key(claim));
                    }
                    for claim in claims {
                        turn += 1;
                        inside[key(&claim)].fetch_sub(1, Ordering::SeqCst);
                        match turn % 4 {
                            0 => claim.put_back().unwrap(),
                            1 => claim.nack(Retry::After(NOW), "again").unwrap(),
                            _ => {
                                claim.ack().unwrap();
                                done.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                }
            })
        }).collect();
        workers.into_iter().for_each(|worker| worker.join());
        let stats = queue.stats().unwrap();
        assert_eq!((stats.held, stats.ready, stats.claimed), (0, 0, 0));
    }

    fn a_limit_is_lowered_and_raised_while_it_is_full(bench) {
        let queue = bench.client().queue("q");
        let set = |most| queue.configure(QueueConfig::new().key_concurrency(most)).unwrap();
        set(Some(3));
        put_of(&queue, "k", &["a", "b", "c", "d", "e", "f"]);
        let claims = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&claims), ["a", "b", "c"]);
        set(Some(1));
        claims[0].ack().unwrap();
        claims[1].ack().unwrap();
        assert_nothing(&queue);
        assert_eq!(counts(&queue, "k"), (1, 0, 3));
        set(Some(2));
        let more = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&more), ["d"]);
        queue.limit_key("k", Some(KeyLimits::new().concurrency(4))).unwrap();
        let rest = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&rest), ["e", "f"]);
        queue.limit_key("k", None).unwrap();
        queue.enqueue(of("k", "g")).unwrap();
        assert_nothing(&queue);
    }

    fn who_runs_when_the_first_limit_is_set_counts(bench) {
        let queue = bench.client().queue("q");
        put_of(&queue, "k", &["a", "b", "c"]);
        let claims = queue.claim(up_to(2)).unwrap();
        queue.configure(QueueConfig::new().key_concurrency(Some(2))).unwrap();
        assert_nothing(&queue);
        assert_eq!(counts(&queue, "k"), (2, 0, 1));
        claims[0].ack().unwrap();
        assert_eq!(take(&queue).id(), "c");
    }

    fn a_throttle_holds_the_key_and_counts_no_attempt(bench) {
        let queue = bench.client().queue("q");
        put_of(&queue, "k", &["a", "b"]);
        queue.enqueue(of("l", "c")).unwrap();
        let claim = take(&queue);
        assert_eq!((claim.id(), claim.key()), ("a", Some("k")));
        claim.throttle(secs(600)).unwrap();
        let other = take(&queue);
        assert_eq!(other.id(), "c");
        assert_nothing(&queue);
        let (key, stats) = (queue.get_key("k").unwrap(), queue.stats().unwrap());
        assert_eq!((key.held, stats.held, stats.keys_waiting), (2, 2, 1));
        assert!(key.opens_in.is_some_and(|left| left <= secs(600) && left > secs(500)), "{key:?}");
        assert!(stats.next_key.is_some_and(|left| left <= secs(600) && left > secs(500)), "{stats:?}");
        let held = queue.task("a");
        assert_eq!((held.state, held.attempts, held.key.as_deref()), (TaskState::Held, 0, Some("k")));
    }

    fn a_throttle_of_a_task_without_a_key_holds_the_queue(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a")).unwrap();
        take(&queue).throttle(ms(300)).unwrap();
        assert_eq!(queue.stats().unwrap().gate.name(), "throttled");
        assert_nothing(&queue);
        // Who waits is there when it is over.
        assert_eq!(await_one(&queue).attempt(), 1);
        assert_eq!(queue.stats().unwrap().gate.name(), "open");
    }

    fn no_more_run_than_the_queue_allows_and_who_waits_is_told_of_an_end(bench) {
        let client = bench.client();
        let queue = client.queue("q");
        queue.configure(QueueConfig::new().max_running(Some(2))).unwrap();
        for id in ["a", "b", "c"] {
            queue.enqueue(plain(id)).unwrap();
        }
        let claims = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&claims), ["a", "b"]);
        assert_eq!(queue.stats().unwrap().gate.name(), "max_running");
        let waiter = queue.clone();
        let waiting = task(move || {
            let claims = waiter.claim(ClaimOptions::new().wait(SOON)).unwrap();
            claims.first().map(|claim| claim.id().to_owned())
        });
        eventually(SOON, || queue.stats().unwrap().waiters == 1);
        claims[0].ack().unwrap();
        assert_eq!(waiting.join().as_deref(), Some("c"));
    }

    fn a_rate_is_kept_by_the_stores_clock(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().rate(Some(Rate::new(50, secs(1)).burst(5)))).unwrap();
        for number in 0..60 {
            queue.enqueue(plain(&format!("t{number}"))).unwrap();
        }
        // Receipts are times of the store, in microseconds.
        let times = Mutex::new(Vec::new());
        while times.lock().unwrap().len() < 60 {
            let claims = queue.claim(up_to(100).wait(SOON)).unwrap();
            times.lock().unwrap().extend(claims.iter().map(|claim| claim.receipt().get()));
            queue.settle(claims.iter().map(AnyClaim::acked).collect()).unwrap();
        }
        let times = times.into_inner().unwrap();
        for (at, first) in times.iter().enumerate() {
            let within = times[at..].iter().filter(|time| **time < first + 1_000_000).count();
            assert!(within <= 55, "{within} in a second");
        }
    }

    fn a_key_keeps_its_rate_and_the_others_go_on(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().key_rate(Some(Rate::new(1, secs(600)).burst(2)))).unwrap();
        put_of(&queue, "k", &["a", "b", "c"]);
        put_of(&queue, "l", &["d"]);
        let claims = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&claims), ["a", "d", "b"]);
        assert_nothing(&queue);
        let keys = queue.list_keys(None, 10).unwrap().keys;
        let held: BTreeMap<_, _> = keys.iter().map(|key| (&*key.key, key.held)).collect();
        assert_eq!(held, BTreeMap::from([("k", 1)]));
        queue.limit_key("k", Some(KeyLimits::new().rate(Rate::new(100, secs(1)).burst(100)))).unwrap();
        assert_eq!(await_one(&queue).id(), "c");
    }

    fn keys_are_listed_in_pages(bench) {
        let queue = bench.client().queue("q");
        for number in 0..5 {
            put_of(&queue, &format!("k{number}"), &[&format!("a{number}"), &format!("b{number}")]);
        }
        queue.limit_key("free", Some(KeyLimits::new().weight(2))).unwrap();
        queue.limit_key("k1", Some(KeyLimits::new().weight(2))).unwrap();
        let (mut names, mut from) = (Vec::new(), None);
        loop {
            let page = queue.list_keys(from.as_deref(), 2).unwrap();
            assert!(page.keys.len() <= 2);
            names.extend(page.keys.into_iter().map(|key| key.key));
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        // Both of k1 are in line, as its weight says: it holds none.
        assert_eq!(names, ["k0", "k2", "k3", "k4", "free", "k1"]);
    }

    fn a_task_that_dies_and_is_kicked_keeps_its_key(bench) {
        let queue = bench.client().queue("q");
        put_of(&queue, "k", &["a", "b"]);
        take(&queue).bury("bad").unwrap();
        assert_eq!(in_state(&queue, TaskState::Ready), ["b"]);
        queue.kick(stanchion::DeadTasks::ids(["a"])).unwrap();
        assert_eq!(in_state(&queue, TaskState::Held), ["a"]);
        assert_eq!(queue.task("a").key.as_deref(), Some("k"));
    }

    fn a_task_that_is_replaced_may_get_another_key(bench) {
        let queue = bench.client().queue("q");
        put_of(&queue, "k", &["a", "b"]);
        queue.enqueue(of("l", "a").on_duplicate(OnDuplicate::Replace)).unwrap();
        assert_eq!((counts(&queue, "k"), counts(&queue, "l")), ((0, 1, 0), (0, 1, 0)));
        queue.remove("a", None).unwrap();
        assert_eq!(counts(&queue, "l"), (0, 0, 0));
    }

    fn the_tasks_of_a_schedule_have_its_key(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(Schedule::new("s", "@daily").key("k")).unwrap();
        assert_eq!(queue.the_schedule("s").key.as_deref(), Some("k"));
        queue.run_schedule("s").unwrap();
        assert_eq!(take(&queue).key(), Some("k"));
    }

    fn a_purge_leaves_the_limits_and_drops_what_is_held(bench) {
        let queue = bench.client().queue("q");
        queue.limit_key("k", Some(KeyLimits::new().concurrency(1))).unwrap();
        put_of(&queue, "k", &["a", "b"]);
        let claim = take(&queue);
        assert_eq!(queue.purge().unwrap(), 2);
        drop(claim);
        put_of(&queue, "k", &["c", "d"]);
        let claims = queue.claim(up_to(9)).unwrap();
        assert_eq!((ids(&claims), counts(&queue, "k")), (vec!["c"], (1, 0, 1)));
    }
}
