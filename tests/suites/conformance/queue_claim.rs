//! claim: order, batches, leases, and what a claim shows.

use std::collections::BTreeSet;
use std::time::Instant;

use stanchion::{ClaimOptions, Task, TaskState};
use stanchion_tests::on_every_topology;
use stanchion_tests::wait::{SOON, eventually, eventually_some, ran_since, task};

use crate::queue_support::{assert_nothing, census, claimed_ids, ids, leased, plain, put, take, up_to};
use crate::{ms, secs};

on_every_topology! {
    fn an_empty_queue_gives_nothing_at_once(bench) {
        let queue = bench.client().queue("q");
        let begun = Instant::now();
        assert!(queue.claim(ClaimOptions::new()).unwrap().is_empty());
        assert!(ran_since(begun) < secs(2));
        assert_eq!(census(&queue), [0; 4]);
    }

    fn higher_priorities_come_first_then_those_that_became_ready_first(bench) {
        let queue = bench.client().queue("q");
        for (id, priority) in [("a0", 0), ("b7", 7), ("c0", 0), ("d255", 255), ("e7", 7), ("f1", 1), ("g255", 255)] {
            queue.enqueue(plain(id).priority(priority)).unwrap();
        }
        let expected = ["d255", "g255", "b7", "e7", "f1", "a0", "c0"];
        assert_eq!(ids(&queue.peek(10).unwrap()), expected, "peek knows the order");
        assert_eq!(ids(&queue.all(TaskState::Ready)), expected, "list too");
        let claims = queue.claim(up_to(4)).unwrap();
        assert_eq!(claimed_ids(&claims), expected[..4]);
        assert_eq!(claims[0].priority(), 255);
        let rest = queue.claim(up_to(10)).unwrap();
        assert_eq!(claimed_ids(&rest), expected[4..]);
        assert_nothing(&queue);
        claims.iter().chain(&rest).for_each(|claim| claim.ack().unwrap());
    }

    fn a_retry_goes_to_the_end_of_its_priority(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let claim = take(&queue);
        claim.nack_now("again").unwrap();
        let claims = queue.claim(up_to(2)).unwrap();
        assert_eq!(claimed_ids(&claims), ["b", "a"]);
        claims.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn a_batch_is_never_larger_than_asked_for(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c", "d", "e"]);
        let mut taken = Vec::new();
        for (max, expected) in [(2, 2), (2, 2), (10, 1)] {
            let claims = queue.claim(up_to(max)).unwrap();
            assert_eq!(claims.len(), expected);
            taken.extend(claims);
        }
        assert_eq!(claimed_ids(&taken), ["a", "b", "c", "d", "e"]);
        let receipts: BTreeSet<_> = taken.iter().map(stanchion_tests::faces::AnyClaim::receipt).collect();
        assert_eq!(receipts.len(), 5, "every delivery has its own receipt");
        assert_eq!(census(&queue), [0, 0, 5, 0]);
        taken.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn the_default_is_one_task_under_a_renewed_lease_of_30_s(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let claims = queue.claim(ClaimOptions::new()).unwrap();
        assert_eq!(claimed_ids(&claims), ["a"]);
        let left = claims[0].remaining();
        assert!(left > secs(25) && left <= ms(30_000 - 302), "{left:?}: the margin is 1 % and 2 ms");
        assert!(claims[0].is_valid() && claims[0].loss().is_none());
        assert!(claims[0].deadline() > Instant::now() + secs(25));
        let info = queue.task("a");
        let left = claims[0].remaining();
        assert_eq!((info.state, info.attempts, info.receipt), (TaskState::Claimed, 1, claims[0].receipt()));
        assert!(info.lease_left > left && info.lease_left <= secs(30));
        claims[0].ack().unwrap();
    }

    fn one_task_is_never_claimed_by_two(bench) {
        const TASKS: usize = 120;
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..TASKS).map(|number| plain(&format!("t{number}")))).unwrap();
        let claimers: Vec<_> = (0..4).map(|_| {
            let queue = bench.client().queue("q");
            task(move || {
                let mut seen = Vec::new();
                loop {
                    let claims = queue.claim(up_to(3)).unwrap();
                    if claims.is_empty() {
                        return seen;
                    }
                    for claim in claims {
                        seen.push(claim.id().to_owned());
                        claim.ack().unwrap();
                    }
                }
            })
        }).collect();
        let seen: Vec<String> = claimers.into_iter().flat_map(|claimer| claimer.join_within(secs(30))).collect();
        assert_eq!(seen.len(), TASKS, "each exactly once");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), TASKS);
        assert_eq!(census(&queue), [0; 4]);
        assert_eq!(queue.stats().unwrap().acked, TASKS as u64);
    }

    fn several_queues_are_asked_in_the_order_given(bench) {
        let client = bench.client();
        let (first, second) = (client.queue("first"), client.queue("second"));
        put(&second, &["s1", "s2"]);
        put(&first, &["f1"]);
        let both = client.queues(&["first", "second"]);
        let claims = both.claim(up_to(10)).unwrap();
        assert_eq!(claimed_ids(&claims), ["f1"], "those of the first queue that has some");
        assert_eq!(claims[0].queue(), "first");
        let more = both.claim(up_to(10)).unwrap();
        assert_eq!(claimed_ids(&more), ["s1", "s2"]);
        assert_eq!(more[0].queue(), "second");
        assert!(both.claim(up_to(10)).unwrap().is_empty());
        claims.iter().chain(&more).for_each(|claim| claim.ack().unwrap());
        assert_eq!((census(&first), census(&second)), ([0; 4], [0; 4]));
    }

    fn a_task_that_was_not_delivered_in_time_is_dead_and_does_not_count(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").expires(ms(60))).unwrap();
        queue.enqueue(Task::new("later").delay(ms(80)).expires(ms(60))).unwrap();
        queue.enqueue(plain("b").expires(secs(600))).unwrap();
        let info = queue.task("b");
        assert!(info.expires.unwrap() > info.due + secs(599));
        // By then both are due, and over.
        let last = queue.task("later").due;
        eventually(SOON, || std::time::SystemTime::now() > last);
        let claims = queue.claim(up_to(1)).unwrap();
        assert_eq!(claimed_ids(&claims), ["b"], "expired ones do not count");
        assert_nothing(&queue);
        let dead = queue.task("a");
        assert_eq!((dead.state, dead.reason.as_str(), dead.attempts), (TaskState::Dead, "expired", 0));
        assert_eq!(dead.payload, b"a");
        assert_eq!(queue.task("later").state, TaskState::Dead);
        claims[0].ack().unwrap();
        assert_eq!(queue.stats().unwrap().died, 2);
    }

    fn a_running_task_may_outlive_its_expiry(bench) {
        let queue = bench.client().queue("q");
        let mut round = 0;
        // Until one is claimed in time.
        let claim = eventually_some(SOON, || {
            round += 1;
            queue.enqueue(plain(&format!("a{round}")).expires(ms(100))).unwrap();
            queue.claim(leased(secs(30))).unwrap().pop()
        });
        let expiry = queue.task(claim.id()).expires.unwrap();
        eventually(SOON, || std::time::SystemTime::now() > expiry);
        assert_nothing(&queue);
        claim.ack().unwrap();
        assert!(queue.get(claim.id()).unwrap().is_none());
    }
}
