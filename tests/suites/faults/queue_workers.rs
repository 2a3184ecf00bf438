//! Workers that die, freeze, or never end; poison tasks; consumers that are chosen and gone.

use std::time::Instant;

use stanchion::TaskState;
use stanchion_tests::actor::Actor;
use stanchion_tests::faces::Face;
use stanchion_tests::proxy::Flow;
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{Stage, await_one, census, claimer, lapse, plain, put};
use crate::{POLL, actor, assert_within, ms};

/// Of a worker's claims, in milliseconds.
const LEASE: u64 = 3_000;

/// A worker in a process of its own that has begun a task.
fn working(bench: &Bench, id: &str, attempt: u64) -> Actor {
    let mut worker = actor(bench);
    worker.order(&format!("work q {LEASE}"));
    // Its first lines may come in either order.
    let begun = [worker.reply(), worker.reply()];
    assert!(begun.iter().any(|line| line["id"] == id && line["attempt"] == attempt), "{begun:?}");
    worker
}

on_shared_stores! {
    /// The task comes back when the dead worker's lease ends, with the next attempt and all its bytes.
    fn worker_sigkilled_in_mid_task(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["endless"]);
        let mut worker = working(bench, "endless", 1);
        worker.kill9();
        let killed = Instant::now();
        let claim = await_one(&queue, SOON);
        assert_within(ms(LEASE) + POLL, killed);
        assert_eq!((claim.attempt(), claim.payload()), (2, b"endless".as_slice()));
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0; 4]);
    }

    /// Whoever wakes up after its lease is over knows it at once, and its verdict changes nothing.
    fn worker_sigstopped_past_its_lease(bench) {
        for renews in ["fixed", "renew"] {
            let queue = bench.client().queue(renews);
            put(&queue, &["a"]);
            let mut sleeper = actor(bench);
            let first = sleeper.ok(&format!("claim {renews} 1 {LEASE} 0 {renews}"))["claims"][0].clone();
            sleeper.freeze();
            let claim = await_one(&queue, SOON);
            assert_eq!(claim.attempt(), 2);
            assert!(claim.receipt().get() > first["receipt"].as_u64().unwrap());

            sleeper.thaw();
            let thawed = Instant::now();
            sleeper.ok("claim_lost");
            assert_within(ms(0), thawed);
            assert_eq!(sleeper.ok("claim_status")["valid"], false);
            assert!(["LeaseLost", "LeaseExpired"].contains(&&*sleeper.error("extend_claim 5000")));
            for verdict in ["ack", "nack 0"] {
                assert_eq!(sleeper.error(verdict), "StaleReceipt", "{verdict}");
            }
            assert_eq!(queue.task("a").receipt, claim.receipt());
            assert!(claim.is_valid());
            claim.ack().unwrap();
        }
    }

    /// A late verdict counts if nobody has had the task since.
    fn worker_sigstopped_past_its_lease_with_nobody_else_there(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let mut sleeper = actor(bench);
        sleeper.ok("claim q 1 300 0 fixed");
        sleeper.freeze();
        lapse(&queue, "a");
        sleeper.thaw();
        sleeper.ok("ack");
        sleeper.ok("ack");
        assert_eq!(census(&queue), [0; 4]);
        assert_eq!(queue.stats().unwrap().acked, 1);
    }

    /// A task that kills its worker is dead after exactly its attempts.
    fn poison_task_that_kills_its_worker(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("deadly").max_attempts(3)).unwrap();
        for attempt in 1..=3 {
            let mut worker = actor(bench);
            worker.order("work q 600");
            let line = loop {
                let line = worker.reply();
                if line["who"] == "worker" {
                    break line;
                }
            };
            assert_eq!((&line["id"], &line["attempt"]), (&"deadly".into(), &attempt.into()));
            assert_eq!(worker.end(), -6, "it aborts");
            lapse(&queue, "deadly");
        }
        assert!(queue.claim(crate::queue_support::leased(30_000)).unwrap().is_empty());
        let dead = queue.task("deadly");
        assert_eq!((dead.state, dead.attempts), (TaskState::Dead, 3));
        assert_eq!((dead.reason.as_str(), dead.payload.as_slice()), ("the lease ended", b"deadly".as_slice()));
    }

    /// A task that never ends keeps one pair of hands busy, and nobody else.
    fn poison_task_that_never_ends(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["endless"]);
        let worker = working(bench, "endless", 1);
        for number in 0..20 {
            put(&queue, &[&format!("t{number}")]);
        }
        let mut begun: Vec<String> =
            (0..20).map(|_| worker.reply()["id"].as_str().unwrap().to_owned()).collect();
        begun.sort();
        begun.dedup();
        assert_eq!(begun.len(), 20, "{begun:?}");
        eventually(SOON, || census(&queue) == [0, 0, 1, 0]);
        assert!(worker.is_silent(), "it was delivered again");
        assert_eq!(queue.task("endless").attempts, 1);
    }

    /// A process with many claims dies: every one of them comes back.
    fn worker_sigkilled_with_many_claims(bench) {
        let queue = bench.client().queue("q");
        let ids: Vec<String> = (0..50).map(|number| format!("t{number:02}")).collect();
        put(&queue, &ids.iter().map(String::as_str).collect::<Vec<_>>());
        let mut worker = actor(bench);
        let claims = worker.ok(&format!("claim q 50 {LEASE} 0 renew"))["claims"].clone();
        assert_eq!(claims.as_array().unwrap().len(), 50);
        worker.kill9();
        eventually(SOON, || census(&queue) == [0, 50, 0, 0]);
        let claims = queue.claim(crate::queue_support::leased(30_000).max(50)).unwrap();
        assert_eq!(claims.len(), 50);
        for claim in claims {
            assert_eq!((claim.attempt(), claim.payload()), (2, claim.id().as_bytes()));
            claim.ack().unwrap();
        }
    }

    /// The consumer that was chosen is dead: another finds the task by its own clock.
    fn consumer_sigkilled_while_waiting(bench) {
        let queue = bench.client().queue("q");
        let probe = bench.probe();
        let mut dead = actor(bench);
        dead.order("claim q 1 30000 60000 fixed");
        probe.wait_for_idle("q", 1);
        let waiting = claimer(&queue);
        probe.wait_for_idle("q", 2);
        dead.kill9();
        put(&bench.client().queue("q"), &["a"]);
        let begun = Instant::now();
        let claim = waiting.join();
        // The second in line polls every two seconds.
        assert_within(ms(2_000), begun);
        assert_eq!(claim.attempt(), 1);
        claim.ack().unwrap();
    }
}

on_both_faces! {
    /// Its hint is lost and it gives up: the next one is woken in its place, at once.
    fn consumer_chosen_and_gone(face) {
        let stage = Stage::new(face);
        let probe = stage.probe();
        stage.proxy.flow(Flow { drop_messages: true, ..Flow::default() });
        let chosen = crate::queue_cancelled::Cancel::start(face, &stage.proxy.url(), &stage.name);
        probe.wait_for_idle(&stage.name, 1);
        let waiting = claimer(&stage.truth);
        probe.wait_for_idle(&stage.name, 2);
        put(&stage.truth, &["a"]);
        let begun = Instant::now();
        chosen.finish();
        let claim = waiting.join();
        // A blocking wait comes back to its host every 50 ms.
        assert_within(ms(50), begun);
        assert_eq!(claim.attempt(), 1);
        claim.ack().unwrap();
        probe.wait_for_idle(&stage.name, 0);
    }
}
