//! What a client counts, and how it tells.

use std::time::Instant;

use stanchion::{ClaimOptions, ErrorKind, LockOptions, Retry, Task};
use stanchion_tests::faces::AnyClient;
use stanchion_tests::stores::Kind;
use stanchion_tests::wait::{SOON, eventually, eventually_async};
use stanchion_tests::{async_on_every_store, on_every_store, on_stores_with_foreign_lockers};

use crate::{fixed, ms, secs, waiter};

/// After so many turns of the runtime a call is given up.
const TURNS: [u32; 8] = [0, 0, 0, 1, 2, 3, 4, 5];

/// Those, and then at once: a store of this machine may answer before anybody can give up, but no server always does.
fn turns() -> impl Iterator<Item = u32> {
    TURNS.into_iter().chain(std::iter::repeat(0))
}

/// The value of a sample without its `stanchion_`; panics if there is none.
fn counted(client: &AnyClient, sample: &str) -> f64 {
    client.metrics().get(&format!("stanchion_{sample}")).unwrap_or_else(|| panic!("no {sample}"))
}

fn acquires(client: &AnyClient) -> [f64; 5] {
    ["granted", "busy", "timeout", "cancelled", "failed"]
        .map(|outcome| counted(client, &format!("lock_acquires_total{{outcome=\"{outcome}\"}}")))
}

fn ended(client: &AnyClient, reason: &str) -> f64 {
    counted(client, &format!("lock_leases_ended_total{{reason=\"{reason}\"}}"))
}

/// Tasks whose enqueue failed, and those whose enqueue was cancelled.
fn failed_enqueues(client: &AnyClient) -> [Option<f64>; 2] {
    ["failed", "cancelled"].map(|outcome| {
        let name = format!("stanchion_queue_enqueued_total{{outcome=\"{outcome}\",queue=\"q\"}}");
        client.metrics().get(&name)
    })
}

on_every_store! {
    fn acquires_and_ends_of_locks_are_counted(bench) {
        let (client, other) = (bench.client(), bench.client());
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        client.lock("a").acquire(LockOptions::new().wait(ms(60))).unwrap_err();
        client.lock("{").acquire(LockOptions::new()).unwrap_err();
        assert_eq!(acquires(&client), [1.0, 1.0, 1.0, 0.0, 0.0], "what is refused before any I/O is none");
        let waiting = waiter(&other, "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        lease.release().unwrap();
        waiting.join().release().unwrap();
        assert_eq!((acquires(&client)[0], acquires(&other)), (1.0, [1.0, 0.0, 0.0, 0.0, 0.0]), "each client counts alone");
        assert_eq!((ended(&client, "released"), ended(&other, "released")), (1.0, 1.0));
        let broken = client.lock("a").acquire(LockOptions::new()).unwrap();
        other.lock("a").break_lease().unwrap();
        broken.extend(secs(60)).unwrap_err();
        assert_eq!(ended(&client, "broken"), 1.0);
        drop(client.lock("a").acquire(LockOptions::new()).unwrap());
        assert_eq!(ended(&client, "dropped"), 1.0);
        let handle = client.lock("b").acquire(LockOptions::new()).unwrap().detach(secs(60)).unwrap();
        assert_eq!(ended(&client, "detached"), 1.0);
        other.resume_lease(&handle).unwrap().release().unwrap();
        assert_eq!(ended(&other, "released"), 2.0);
        assert_eq!(counted(&client, "lock_wait_seconds_count"), acquires(&client)[0]);
        assert_eq!(counted(&client, "lock_hold_seconds_count"), 4.0);
        assert_eq!(counted(&client, "store_retries_total"), 0.0);
        assert!(counted(&client, "store_request_seconds_count") >= 10.0);
    }

    fn a_lease_that_ran_out_is_counted_once_however_it_is_noticed(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(ms(60))).unwrap();
        assert!(lease.wait_lost(SOON));
        eventually(SOON, || ended(&client, "expired") == 1.0);
        // The store may still have it: it keeps it a little longer.
        let _ = lease.release();
        assert_eq!((ended(&client, "expired"), ended(&client, "released")), (1.0, 0.0));
        assert_eq!(counted(&client, "lock_hold_seconds_count"), 1.0);
    }

    fn renewals_are_counted(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new().ttl(secs(2)).renew(true)).unwrap();
        eventually(SOON, || counted(&client, "renewals_total{outcome=\"ok\"}") >= 2.0);
        bench.client().lock("a").break_lease().unwrap();
        assert!(lease.wait_lost(SOON));
        eventually(SOON, || counted(&client, "renewals_total{outcome=\"failed\"}") >= 1.0);
        assert_eq!(ended(&client, "broken"), 1.0);
    }

    fn tasks_are_counted_by_queue(bench) {
        let client = bench.client();
        let queue = client.queue("q");
        let enqueued = |outcome: &str| counted(&client, &format!("queue_enqueued_total{{outcome=\"{outcome}\",queue=\"q\"}}"));
        let settled = |verdict: &str| counted(&client, &format!("queue_settled_total{{queue=\"q\",verdict=\"{verdict}\"}}"));
        for id in ["a", "b", "c", "d", "e", "a"] {
            queue.enqueue(Task::new(id)).unwrap();
        }
        assert_eq!((enqueued("added"), enqueued("kept")), (5.0, 1.0));
        let claims = queue.claim(ClaimOptions::new().max(4)).unwrap();
        claims[0].ack().unwrap();
        claims[0].ack().unwrap();
        claims[1].nack(Retry::After(secs(600)), "no").unwrap();
        claims[2].bury("never").unwrap();
        claims[3].put_back().unwrap();
        assert_eq!(["ack", "nack", "bury", "put_back"].map(settled), [1.0; 4], "a repeated ack is one");
        assert_eq!(counted(&client, "queue_claimed_total{queue=\"q\"}"), 4.0);
        assert_eq!(counted(&client, "queue_lateness_seconds_count{queue=\"q\"}"), 4.0);
        assert_eq!(counted(&client, "queue_run_seconds_count{queue=\"q\"}"), 4.0);
        let late = queue.claim(ClaimOptions::new().lease(ms(60)).renew(false)).unwrap().remove(0);
        assert!(late.wait_lost(SOON));
        eventually(SOON, || client.metrics().get("stanchion_queue_claims_lost_total{queue=\"q\",reason=\"expired\"}") == Some(1.0));
        let again = loop {
            let claims = client.queue("q").claim(ClaimOptions::new().wait(secs(10)).max(10)).unwrap();
            if let Some(again) = claims.into_iter().find(|claim| claim.id() == late.id()) {
                break again;
            }
        };
        again.ack().unwrap();
        assert_eq!(late.ack().unwrap_err().kind(), ErrorKind::StaleReceipt);
        assert_eq!(counted(&client, "queue_stale_receipts_total{queue=\"q\"}"), 1.0);
        assert_eq!(settled("ack"), 2.0);
        queue.enqueue(Task::new("p")).unwrap();
        assert_eq!(queue.pop(10).unwrap().len() as f64, counted(&client, "queue_popped_total{queue=\"q\"}"));
        assert_eq!(client.metrics().get("stanchion_queue_claimed_total{queue=\"other\"}"), None);
    }

    fn the_text_has_the_samples_with_their_types(bench) {
        let client = bench.client();
        client.lock("a").acquire(LockOptions::new()).unwrap().release().unwrap();
        let text = client.metrics_text();
        assert!(text.contains("# TYPE stanchion_lock_acquires_total counter\n"), "{text}");
        assert!(text.contains("# TYPE stanchion_lock_wait_seconds histogram\n"), "{text}");
        assert!(text.contains("\nstanchion_lock_acquires_total{outcome=\"granted\"} 1\n"), "{text}");
        assert!(text.contains("\nstanchion_lock_wait_seconds_bucket{le=\"+Inf\"} 1\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(client.metrics().iter().count(), lines, "the snapshot has every sample");
    }
}

on_stores_with_foreign_lockers! {
    fn tasks_whose_enqueue_failed_are_counted(bench) {
        let client = bench.client();
        let queue = client.queue("q");
        queue.enqueue(Task::new("")).unwrap_err();
        assert_eq!(failed_enqueues(&client), [None, None], "what is refused before any I/O is not counted");
        let _: () = redis::cmd("SET").arg("stanchion:state:{Queue:q}").arg("spoilt").query(&mut bench.raw()).unwrap();
        queue.enqueue(Task::new("a")).unwrap_err();
        assert_eq!(failed_enqueues(&client), [Some(1.0), None]);
        let results = queue.enqueue_many([Task::new("a"), Task::new("b")]).unwrap();
        assert!(results.iter().all(Result::is_err));
        assert_eq!(failed_enqueues(&client), [Some(3.0), None]);
    }
}

async_on_every_store! {
    async fn tasks_whose_enqueue_is_dropped_are_cancelled(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let (queue, counts) = (client.queue("q"), AnyClient::Async(client.clone()));
        let (mut gave_up, begun) = (0.0, Instant::now());
        for (round, turns) in turns().enumerate() {
            if round >= TURNS.len() && (gave_up > 0.0 || bench.kind != Kind::Redis) {
                return;
            }
            assert!(begun.elapsed() < SOON, "none was given up");
            let patience = async {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                results = queue.enqueue_many([Task::auto(), Task::auto()]) => {
                    assert!(results.unwrap().iter().all(Result::is_ok));
                }
                () = patience => gave_up += 2.0,
            }
            assert_eq!(failed_enqueues(&counts), [None, (gave_up > 0.0).then_some(gave_up)], "after {turns} turns");
        }
    }

    async fn an_acquire_of_several_locks_that_is_dropped_is_cancelled(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let (several, counts) = (client.multi_lock(&["a", "b"]), AnyClient::Async(client.clone()));
        let (mut got, mut gave_up, begun) = (0.0, 0.0, Instant::now());
        for (round, turns) in turns().enumerate() {
            if round >= TURNS.len() && (gave_up > 0.0 || bench.kind != Kind::Redis) {
                return;
            }
            assert!(begun.elapsed() < SOON, "none was given up");
            let patience = async {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                lease = several.acquire(LockOptions::new()) => {
                    lease.unwrap().release().await.unwrap();
                    got += 1.0;
                }
                () = patience => gave_up += 1.0,
            }
            assert_eq!(acquires(&counts), [2.0 * got, 0.0, 0.0, gave_up, 0.0], "after {turns} turns");
            for name in ["a", "b"] {
                eventually_async(SOON, || async { !client.lock(name).is_locked().await.unwrap() }).await;
            }
        }
    }
}

on_both_faces! {
    fn times_are_those_of_the_clock(fixture) {
        let client = &fixture.one;
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        fixture.clock.advance(secs(7));
        lease.release().unwrap();
        assert_eq!(counted(client, "lock_hold_seconds_sum"), 7.0);
        assert_eq!(counted(client, "lock_hold_seconds_bucket{le=\"5\"}"), 0.0);
        assert_eq!(counted(client, "lock_hold_seconds_bucket{le=\"10\"}"), 1.0);
        let queue = client.queue("q");
        queue.enqueue(Task::new("a").delay(secs(3))).unwrap();
        fixture.clock.advance(secs(5));
        let claim = queue.claim(ClaimOptions::new()).unwrap().remove(0);
        assert_eq!(counted(client, "queue_lateness_seconds_sum{queue=\"q\"}"), 2.0);
        fixture.clock.advance(ms(250));
        claim.ack().unwrap();
        assert_eq!(counted(client, "queue_run_seconds_sum{queue=\"q\"}"), 0.25);
        let lost = client.lock("b").acquire(fixed(secs(10))).unwrap();
        fixture.clock.advance(secs(60));
        eventually(SOON, || ended(client, "expired") == 1.0);
        assert_eq!(counted(client, "lock_hold_seconds_sum"), 7.0 + 9.898, "up to its deadline");
        drop(lost);
    }
}
