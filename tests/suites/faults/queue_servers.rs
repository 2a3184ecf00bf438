//! The server under a queue dies, forgets, is full, or gets very much to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use stanchion::{ClaimOptions, Client, ErrorKind, LossReason, Retry, WorkerEvent};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyClient, Face, Stop};
use stanchion_tests::probe::Probe;
use stanchion_tests::proxy::Proxy;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::queue_support::{await_one, census, claimer, leased, plain, put, take};
use crate::servers::await_a_refused_connection;
use crate::{assert_within, ms, open};

on_both_faces! {
    /// With an append-only file nothing that was acknowledged is lost, and claims go on.
    fn server_restarted_with_its_data(face) {
        let server = RedisServer::builder().appendonly().start();
        let queue = open(face, &server.url()).queue("q");
        put(&queue, &["claimed", "ready", "dead"]);
        let claim = take(&queue);
        let ready = take(&queue);
        take(&queue).bury("dead").unwrap();
        ready.nack(Retry::After(ms(0)), "again").unwrap();
        let version = queue.enqueue(plain("later").delay(ms(600_000))).unwrap().version;
        server.kill9();
        server.start_again();
        assert_eq!(census(&queue), [1, 1, 1, 1]);
        claim.extend(ms(60_000)).unwrap();
        claim.ack().unwrap();
        let again = take(&queue);
        assert_eq!((again.id(), again.attempt(), again.payload()), ("ready", 2, b"ready".as_slice()));
        assert!(again.receipt().get() > version.get());
        again.ack().unwrap();
        assert_eq!(queue.task("dead").payload, b"dead");
    }

    /// A worker that waits for tasks tells of a store that is gone for longer than the client's timeout, once, and when it is
    /// back, once.
    fn server_gone_under_an_idle_worker(face) {
        let server = RedisServer::builder().appendonly().start();
        let client = AnyClient::open(face, Client::builder(&server.url()).timeout(ms(500))).unwrap();
        let (queue, stop) = (client.queue("q"), Stop::default());
        let (send, told) = mpsc::channel();
        let send = Mutex::new(send);
        let worker = queue.worker(&stop, |_| Ok(())).on_event(move |event| {
            let line = match event {
                WorkerEvent::StoreFailed { error } => format!("{:?}", error.kind()),
                WorkerEvent::StoreBack { after } => format!("back after {after:?}"),
                WorkerEvent::Completed { id, .. } => format!("completed {id}"),
                _ => return,
            };
            send.lock().unwrap().send(line).unwrap();
        });
        let running = task(move || worker.run());
        let hears = || told.recv_timeout(SOON).expect("it is told");
        queue.enqueue(plain("before")).unwrap();
        assert_eq!(hears(), "completed before");
        server.kill9();
        assert_eq!(hears(), "StoreUnavailable");
        let gone = Instant::now();
        // Claims of a second fail meanwhile.
        while gone.elapsed() < ms(2_500) {
            assert!(told.recv_timeout(ms(100)).is_err(), "it is told again");
        }
        server.start_again();
        let back = hears();
        assert!(back.starts_with("back after ") && !back.ends_with("ms"), "{back}");
        eventually(SOON, || queue.enqueue(plain("after")).is_ok());
        assert_eq!(hears(), "completed after");
        stop.stop();
        running.join().unwrap();
    }

    /// The task was removed meanwhile. An ack that could not be sent at all is no copy that settled it.
    fn ack_that_could_not_be_sent_at_first(face) {
        let server = RedisServer::builder().appendonly().start();
        let client = AnyClient::open(face, Client::builder(&server.url()).timeout(ms(500))).unwrap();
        let queue = client.queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        queue.remove("a", None).unwrap();
        server.kill9();
        await_a_refused_connection(&client);
        assert_eq!(claim.ack().unwrap_err().kind(), ErrorKind::StoreUnavailable);
        server.start_again();
        eventually(SOON, || queue.stats().is_ok());
        assert_eq!(claim.ack().unwrap_err().kind(), ErrorKind::StaleReceipt);
    }

    /// Its handler ends in time; when the store can be told, its timeout is long over. That is no failure of the task.
    fn server_gone_when_a_handler_ends_in_time(face) {
        const TIMEOUT: Duration = Duration::from_secs(2);
        let server = RedisServer::builder().appendonly().start();
        let client = AnyClient::open(face, Client::builder(&server.url()).timeout(ms(500))).unwrap();
        let (queue, stop) = (client.queue("q"), Stop::default());
        let (begin, begun) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let (begin, ends) = (Mutex::new(begin), Mutex::new(ends));
        let (send, told) = mpsc::channel();
        let send = Mutex::new(send);
        let handler = move |_| {
            begin.lock().unwrap().send(Instant::now()).unwrap();
            ends.lock().unwrap().recv().map_err(|error| error.to_string())
        };
        let worker = queue.worker(&stop, handler).lease(6 * SOON).on_event(move |event| {
            let line = match event {
                WorkerEvent::Completed { id, .. } => format!("completed {id}"),
                WorkerEvent::Failed { id, reason, .. } => format!("failed {id}: {reason}"),
                WorkerEvent::Lost { id, .. } => format!("lost {id}"),
                _ => return,
            };
            send.lock().unwrap().send(line).unwrap();
        });
        let running = task(move || worker.run());
        queue.enqueue(plain("a").timeout(TIMEOUT)).unwrap();
        let begun = begun.recv_timeout(SOON).unwrap();
        server.kill9();
        end.send(()).unwrap();
        // Nobody is told of anything while the store is gone.
        while begun.elapsed() < TIMEOUT + ms(500) {
            assert_eq!(told.recv_timeout(ms(100)), Err(mpsc::RecvTimeoutError::Timeout));
        }
        server.start_again();
        assert_eq!(told.recv_timeout(SOON).unwrap(), "completed a");
        let stats = queue.stats().unwrap();
        assert_eq!((stats.acked, stats.retried), (1, 0));
        stop.stop();
        running.join().unwrap();
    }

    /// Results of 6 MiB are two requests, whichever way they go: no request holds a server for long.
    fn results_that_are_too_large_for_one_request(face) {
        let (server, ids) = (RedisServer::start(), ["a", "b", "c", "d", "e", "f"]);
        let proxy = Proxy::start(&server);
        let queue = open(face, &proxy.url()).queue("q");
        let acked = || -> Vec<_> {
            put(&queue, &ids);
            let claims = queue.claim(leased(60_000).max(6)).unwrap();
            claims.iter().map(|claim| claim.acked_with(&[b'r'; 1 << 20]).unwrap()).collect()
        };
        assert!(queue.settle(acked()).unwrap().iter().all(Result::is_ok));
        assert_eq!(proxy.count("settle"), 2);
        let (results, claims) = queue.settle_and_claim(acked(), leased(60_000)).unwrap();
        assert!(results.len() == 6 && results.iter().all(Result::is_ok) && claims.is_empty());
        assert_eq!((proxy.count("settle"), proxy.count("settle_and_claim")), (3, 1));
        assert_eq!(census(&queue), [0, 0, 0, 0]);
    }

    /// It comes back empty: holders learn that their tasks are gone, waiters wait on, versions still rise.
    fn server_sigkilled_and_back_empty(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        let queue = client.queue("q");
        put(&queue, &["a"]);
        let version = queue.task("a").version;
        let claim = queue.claim(ClaimOptions::new().lease(ms(3_000)).renew(true)).unwrap().remove(0);
        let waiting = claimer(&client.queue("other"));
        Probe::open(&server.url()).wait_for_idle("other", 1);
        server.kill9();
        server.start_again();
        let started = Instant::now();
        assert!(claim.wait_lost(SOON));
        assert_within(ms(1_000), started);
        assert_eq!(claim.loss(), Some(LossReason::Removed));
        assert_eq!(claim.ack().unwrap_err().kind(), ErrorKind::StaleReceipt);
        put(&client.queue("other"), &["b"]);
        waiting.join().ack().unwrap();
        assert!(queue.enqueue(plain("a")).unwrap().version > version);
        take(&queue).ack().unwrap();
    }

    /// The same by a stranger's command; who waits is found again by polling.
    fn flushall_with_claims_and_waiters(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        let queue = client.queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let waiting = claimer(&client.queue("other"));
        Probe::open(&server.url()).wait_for_idle("other", 1);
        server.cli(&["FLUSHALL"]);
        assert_eq!(claim.extend(ms(5_000)).unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(claim.ack().unwrap_err().kind(), ErrorKind::StaleReceipt);
        put(&client.queue("other"), &["b"]);
        let begun = Instant::now();
        waiting.join().ack().unwrap();
        assert_within(ms(1_000), begun);
        assert_eq!(census(&queue), [0; 4]);
    }

    /// The server forgets its scripts all the time.
    fn script_flush_storm(face) {
        let server = RedisServer::start();
        let queue = open(face, &server.url()).queue("q");
        let over = Arc::new(AtomicBool::new(false));
        let (stop, mut raw) = (Arc::clone(&over), server.raw());
        let storm = task(move || while !stop.load(Ordering::SeqCst) {
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut raw).unwrap();
            thread::yield_now();
        });
        for round in 0..150 {
            put(&queue, &[&format!("t{round}")]);
            let claim = take(&queue);
            claim.extend(ms(40_000)).unwrap();
            claim.ack().unwrap();
        }
        over.store(true, Ordering::SeqCst);
        storm.join();
        let stats = queue.stats().unwrap();
        assert_eq!((stats.enqueued, stats.acked, stats.retried), (150, 150, 0));
    }

    /// Memory is full: enqueue is refused in full, and everything that makes room still works.
    fn memory_full_while_settling(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        let queue = client.queue("q");
        queue.enqueue_many((0..8).map(|number| plain(&format!("t{number}")).payload(vec![7; 10_000]))).unwrap();
        let claims = queue.claim(leased(60_000).max(6)).unwrap();
        let before = census(&queue);
        server.config_set("maxmemory-policy", "noeviction");
        server.config_set("maxmemory", "1");
        let error = queue.enqueue(plain("new")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert_eq!(census(&queue), before, "something was half written");
        assert!(queue.get("new").unwrap().is_none());
        claims[0].ack().unwrap();
        claims[1].nack(Retry::After(ms(0)), "full").unwrap();
        claims[2].bury("full").unwrap();
        claims[3].put_back().unwrap();
        claims[4].extend(ms(90_000)).unwrap();
        assert!(queue.settle(vec![claims[5].clone().acked()]).unwrap()[0].is_ok());
        assert_eq!(queue.remove("t6", None).unwrap(), stanchion::Removed::Removed);
        server.config_set("maxmemory", "0");
        assert_eq!(census(&queue), [0, 3, 1, 1]);
        put(&queue, &["new"]);
        claims[4].ack().unwrap();
    }
}

/// Due in the year 9999: kept, never delivered, no number overflows.
#[test]
fn due_in_year_9999() {
    let server = RedisServer::start();
    let queue = open(Face::Blocking, &server.url()).queue("q");
    let far = SystemTime::UNIX_EPOCH + ms(253_402_300_799_999);
    queue.enqueue(plain("far").due(far)).unwrap();
    server.cli(&["ZADD", "Queue:q", "253402300799", "far too"]);
    assert!(queue.claim(leased(1_000).wait(ms(50))).unwrap().is_empty());
    assert_eq!(queue.task("far").due, far);
    assert!(queue.stats().unwrap().next_due.unwrap() > Duration::from_secs(7_000 * 365 * 24 * 3_600));
    put(&queue, &["now"]);
    let claim = await_one(&queue, SOON);
    assert_eq!(claim.id(), "now");
    claim.ack().unwrap();
    eventually(SOON, || queue.stats().unwrap().claimed == 0);
}
