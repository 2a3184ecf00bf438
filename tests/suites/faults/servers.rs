//! The server dies, freezes, refuses, or forgets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stanchion::{CachedOptions, Client, ErrorKind, LossReason};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyBegun, AnyClient, Face};
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::wait::{SOON, Task, eventually, eventually_some, ran_since, task};

use crate::replies::Resource;
use crate::{RESEND, SLACK, assert_within, fixed, ms, open, renewed, wait_for_renewal};

/// The longest pause before a request that could not be sent is tried again.
const BACKOFF: Duration = Duration::from_millis(500);

fn open_with_timeout(face: Face, url: &str, timeout: Duration) -> AnyClient {
    AnyClient::open(face, Client::builder(url).timeout(timeout)).unwrap()
}

/// How many requests of the client could not be sent.
pub(crate) fn not_sent(client: &AnyClient) -> f64 {
    client.metrics().get("stanchion_store_failures_total{kind=\"not_sent\"}").unwrap()
}

/// Waits until a client of a dead server knows that its connection is gone: from then on nothing is sent.
#[track_caller]
pub(crate) fn await_a_refused_connection(client: &AnyClient) {
    let before = not_sent(client);
    eventually(SOON, || {
        client.lock("another").try_acquire(fixed(1_000, 0)).unwrap_err();
        not_sent(client) > before
    });
}

on_both_faces! {
    /// It comes back empty: the holder learns that it was forgotten, and the next fence is larger.
    fn server_restarted_empty(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        let lease = client.lock("job").acquire(renewed(3_000, 0)).unwrap();
        server.kill9();
        server.start_again();
        let started = Instant::now();
        assert!(lease.wait_lost(SOON));
        assert_within(ms(1_000), started);
        assert_eq!(lease.loss(), Some(LossReason::Forgotten));
        let next = open(face, &server.url()).lock("job").acquire(fixed(1_000, 0)).unwrap();
        assert!(next.fence() > lease.fence());
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        next.release().unwrap();
    }

    /// With an append-only file the lease outlives the server.
    fn server_restarted_with_its_data(face) {
        let server = RedisServer::builder().appendonly().start();
        let client = open(face, &server.url());
        let lease = client.lock("job").acquire(renewed(5_000, 0)).unwrap();
        server.kill9();
        server.start_again();
        let other = open(face, &server.url()).lock("job");
        assert!(other.try_acquire(fixed(1_000, 0)).unwrap().is_none());
        lease.extend(ms(6_000)).unwrap();
        let fence = lease.fence();
        lease.release().unwrap();
        let next = other.acquire(fixed(1_000, 0)).unwrap();
        assert!(next.fence() > fence);
        next.release().unwrap();
    }

    /// The key was deleted and another had the lock. What could not be sent at first is no copy that released it.
    fn release_that_could_not_be_sent_at_first(face) {
        let server = RedisServer::builder().appendonly().start();
        let client = open(face, &server.url());
        let lease = client.lock("job").acquire(fixed(60_000, 0)).unwrap();
        server.cli(&["DEL", "Lock:job"]);
        let other = open(face, &server.url()).lock("job").acquire(fixed(60_000, 0)).unwrap();
        server.kill9();
        await_a_refused_connection(&client);
        let unsent = not_sent(&client);
        let releasing = task(move || lease.release());
        eventually(SOON, || not_sent(&client) > unsent);
        server.start_again();
        assert_eq!(releasing.join().unwrap_err().kind(), ErrorKind::LeaseLost);
        other.release().unwrap();
    }

    /// The loss is known; what the store would have said is not.
    fn release_of_a_lease_that_ran_out_while_the_server_was_away(face) {
        let server = RedisServer::start();
        let client = AnyClient::open(face, Client::builder(&server.url()).timeout(ms(500))).unwrap();
        let lease = client.lock("job").acquire(renewed(1_000, 0)).unwrap();
        let early = client.lock("other").acquire(fixed(60_000, 0)).unwrap();
        server.kill9();
        assert!(lease.wait_lost(SOON));
        let error = lease.release().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseExpired, "{error}");
        assert!(error.to_string().contains("cannot tell"), "{error}");
        let error = early.release().unwrap_err();
        assert!(error.is_retryable(), "nothing is known of what had not run out: {error}");
    }

    /// Those who wait go on waiting, and get the lock from the new server.
    fn server_killed_while_waiting(face) {
        let server = RedisServer::start();
        let lock = open(face, &server.url()).lock("job");
        let old = lock.acquire(fixed(60_000, 0)).unwrap();
        let waiter = open(face, &server.url()).lock("job");
        let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap());
        eventually(SOON, || lock.waiters() == 1);
        server.kill9();
        server.start_again();
        let started = Instant::now();
        let next = waiting.join();
        assert_within(BACKOFF, started);
        assert!(next.fence() > old.fence());
        assert_eq!(old.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(next.is_valid());
        next.release().unwrap();
    }

    /// It stays down: calls end in time with a retryable error, and leases at their deadline.
    fn server_down(face) {
        let server = RedisServer::start();
        let client = open_with_timeout(face, &server.url(), ms(1_000));
        let lock = client.lock("job");
        let lease = lock.acquire(renewed(900, 0)).unwrap();
        server.kill9();
        let killed = Instant::now();
        assert!(lease.wait_lost(SOON));
        assert_within(ms(900), killed);
        assert_eq!(lease.loss(), Some(LossReason::Expired));

        for wait in [0, 400] {
            let begun = Instant::now();
            let error = lock.acquire(fixed(500, wait)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert!(error.is_retryable());
            assert_within(if wait == 0 { RESEND } else { ms(wait) }, begun);
        }
        let begun = Instant::now();
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseExpired);
        assert_within(ms(1_000), begun);
        let error = AnyClient::open(face, Client::builder(&server.url())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    }

    /// Frozen for longer than the ttl: the lease ends by its holder's clock, and nothing revives it.
    fn server_paused(face) {
        let server = RedisServer::start();
        let lock = open(face, &server.url()).lock("job");
        let lease = lock.acquire(renewed(900, 0)).unwrap();
        server.stop_signal();
        let paused = Instant::now();
        assert!(lease.wait_lost(SOON));
        assert_within(ms(900), paused);
        assert!(!lease.is_valid());
        server.cont_signal();
        // A renewal that was on its way must not keep the lock from others.
        let next = lock.acquire(fixed(5_000, 5_000)).unwrap();
        assert!(!lease.is_valid());
        assert_eq!(lease.loss(), Some(LossReason::Expired));
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(next.is_valid());
        next.release().unwrap();
    }

    /// Who wants a cached value computes it without the store, which is then not asked for five seconds; unless told to
    /// wait for it.
    fn cached_values_without_a_server(face) {
        for is_frozen in [false, true] {
            let server = RedisServer::start();
            let client = open_with_timeout(face, &server.url(), ms(3_000));
            let truth = open(Face::Blocking, &server.url());
            let options = || CachedOptions::new(ms(60_000)).wait(ms(60_000));
            if is_frozen { server.stop_signal() } else { server.kill9() }
            let begun = Instant::now();
            assert_eq!(client.cached("a", options(), || Ok(b"1".into())).unwrap(), b"1");
            assert_within(RESEND + BACKOFF, begun);
            // Nothing is asked for a while: where no answer comes, that would take a second.
            let begun = Instant::now();
            let ticket = client.begin_cached("a", options()).unwrap().ticket();
            assert!(!ticket.is_valid());
            assert!(!ticket.store(b"2".to_vec()).unwrap());
            assert_within(RESEND / 2, begun);
            let strict = options().without_store(false).wait(ms(100));
            let error = client.cached("a", strict, || panic!("it is not to compute")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            if is_frozen { server.cont_signal() } else { server.start_again() }
            eventually(SOON, || {
                client.cached("a", options(), || Ok(b"3".into())).unwrap();
                truth.begin_cached("a", options()).is_ok_and(|begun| matches!(begun, AnyBegun::Value(value) if value == b"3"))
            });
        }
    }

    /// A renewal's reply that comes after the deadline revives nothing, and the lock is given back.
    fn renewal_reply_after_the_deadline(face) {
        let server = RedisServer::start();
        let proxy = Proxy::start(&server);
        let truth = open(Face::Blocking, &server.url()).lock("job");
        let lease = open(face, &proxy.url()).lock("job").acquire(renewed(1_500, 0)).unwrap();
        let begun = Instant::now();
        proxy.fault("extend", 2, Fault::DelayReply(ms(2_500)));
        assert!(lease.wait_lost(SOON));
        assert!(ran_since(begun) < ms(1_500) + ms(50), "announced after {:?}", ran_since(begun));
        assert_eq!(lease.loss(), Some(LossReason::Expired));
        // The server has prolonged it, to two seconds at least; nobody waits for that.
        assert!(proxy.performed("extend") > 0);
        eventually(SOON, || !truth.is_locked().unwrap());
        assert_within(ms(1_500), begun);
        assert!(!lease.is_valid());
    }

    /// The same for an extension that the holder asked for.
    fn extension_reply_after_the_deadline(face) {
        let server = RedisServer::start();
        let proxy = Proxy::start(&server);
        let truth = open(Face::Blocking, &server.url()).lock("job");
        let lease = open(face, &proxy.url()).lock("job").acquire(fixed(400, 0)).unwrap();
        proxy.fault("extend", 1, Fault::DelayReply(ms(700)));
        let error = lease.extend(ms(60_000)).unwrap_err();
        assert!(error.is_lost() || error.kind() == ErrorKind::Indeterminate, "{error:?}");
        assert!(!lease.is_valid());
        // Extended by a minute, and given back.
        eventually(SOON, || !truth.is_locked().unwrap());
    }

    /// No call takes longer than the client's timeout, or than its own wait and a farewell.
    fn timeouts_on_a_frozen_server(face) {
        let server = RedisServer::start();
        let client = open_with_timeout(face, &server.url(), ms(300));
        let lock = client.lock("job");
        let [extended, released] = ["a", "b"].map(|name| client.lock(name).acquire(fixed(60_000, 0)).unwrap());
        let mut released = Some(released);
        let names = ["a:0", "a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7", "a:8", "a:9", "a:10", "a:11"];
        let mut several = Some(client.multi_lock(&names).acquire(fixed(60_000, 0)).unwrap());
        server.stop_signal();
        let mut took = Vec::new();
        let mut time = |what: &'static str, bound: Duration, call: &mut dyn FnMut()| {
            let begun = Instant::now();
            call();
            took.push((what, bound, ran_since(begun)));
        };
        time("try_acquire", ms(300), &mut || assert!(lock.try_acquire(fixed(500, 0)).is_err()));
        time("holder", ms(300), &mut || assert!(lock.holder().is_err()));
        time("break_lease", ms(300), &mut || assert!(lock.break_lease().is_err()));
        time("extend", ms(300), &mut || assert!(extended.extend(ms(60_000)).is_err()));
        time("release", ms(300), &mut || assert!(released.take().unwrap().release().is_err()));
        time("release of several", ms(300), &mut || assert!(several.take().unwrap().release().is_err()));
        time("acquire for 300 ms", ms(300) + RESEND, &mut || assert!(lock.acquire(fixed(500, 300)).is_err()));
        server.cont_signal();
        let late: Vec<_> = took.iter().filter(|(_, bound, time)| *time > *bound + SLACK).collect();
        assert!(late.is_empty(), "(call, bound, took): {late:?}");
    }

    /// Commands are held back for a while.
    fn client_pause(face) {
        let server = RedisServer::start();
        let lock = open(face, &server.url()).lock("job");
        for pause in [300, 1_300] {
            let lease = lock.acquire(renewed(6_000, 0)).unwrap();
            server.cli(&["CLIENT", "PAUSE", &pause.to_string(), "ALL"]);
            let begun = Instant::now();
            lease.extend(ms(7_000)).unwrap();
            lease.release().unwrap();
            lock.acquire(fixed(5_000, 5_000)).unwrap().release().unwrap();
            assert_within(ms(pause) + RESEND, begun);
        }
    }

    /// All connections are killed again and again: calls go on, and nobody meets another inside.
    fn client_kill_storm(face) {
        let server = RedisServer::start();
        let (over, killed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (mut raw, stop, kills) = (server.raw(), Arc::clone(&over), Arc::clone(&killed));
        let storm = task(move || {
            while !stop.load(Ordering::SeqCst) {
                for kind in ["normal", "pubsub"] {
                    let mut kill = redis::cmd("CLIENT");
                    kill.arg("KILL").arg("TYPE").arg(kind).arg("SKIPME").arg("yes");
                    kills.fetch_add(kill.query(&mut raw).unwrap(), Ordering::SeqCst);
                }
                // The pace of the storm.
                thread::sleep(ms(5));
            }
        });
        let client = open_in_a_storm(face, &server);
        let resource = Arc::new(Resource::default());
        let workers: Vec<_> = (0..3).map(|_| {
            let (lock, resource, killed) = (client.lock("job"), Arc::clone(&resource), Arc::clone(&killed));
            task(move || while killed.load(Ordering::SeqCst) < 40 {
                let lease = lock.acquire(fixed(30_000, 30_000)).unwrap();
                resource.visit(lease.fence(), || {});
                lease.release().unwrap();
            })
        }).collect();
        workers.into_iter().for_each(|worker| worker.join_within(3 * SOON));
        over.store(true, Ordering::SeqCst);
        storm.join();
        eventually(SOON, || !client.lock("job").is_locked().unwrap());
    }

    /// No connection is left for newcomers: they are told so, and those who have one keep their leases.
    fn maxclients(face) {
        let server = RedisServer::builder().arg("--maxclients", "16").start();
        let client = open(face, &server.url());
        let lease = client.lock("job").acquire(renewed(3_000, 0)).unwrap();
        // The first renewal gives the keeper its connection.
        wait_for_renewal(&lease);
        let mut crowd = Vec::new();
        while let Ok(raw) = server.try_raw() {
            crowd.push(raw);
        }
        let error = AnyClient::open(face, Client::builder(&server.url())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        let begun = Instant::now();
        while begun.elapsed() < ms(3_500) {
            assert!(!lease.wait_lost(ms(100)), "{:?}", lease.loss());
        }
        drop(crowd);
        eventually(SOON, || AnyClient::open(face, Client::builder(&server.url())).is_ok());
        lease.release().unwrap();
    }

    /// Out of memory: an acquire fails as a whole; holders can extend, release, and hand on.
    fn oom(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        let (lock, held) = (client.lock("job"), client.lock("held"));
        let lease = lock.acquire(fixed(60_000, 0)).unwrap();
        let mine = held.acquire(renewed(3_000, 0)).unwrap();
        server.config_set("maxmemory", "1");
        let keys = server.cli(&["DBSIZE"]);
        for options in [fixed(500, 0), fixed(500, 5_000)] {
            let error = client.lock("new").acquire(options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert!(error.to_string().contains("out of memory"), "{error}");
        }
        assert_eq!(server.cli(&["DBSIZE"]), keys);
        lease.extend(ms(70_000)).unwrap();
        wait_for_renewal(&mine);
        mine.release().unwrap();

        server.config_set("maxmemory", "0");
        let mut waiter = crate::Actor::connected(env!("CARGO_BIN_EXE_actor"), &server.url(), "blocking");
        waiter.order("acquire job 5000 60000 fixed");
        eventually(SOON, || lock.waiters() == 1);
        // It must not ask again before the lock is handed to it.
        waiter.freeze();
        let mut raw = server.raw();
        server.config_set("maxmemory", "1");
        lease.release().unwrap();
        let life: i64 = redis::cmd("PTTL").arg("Lock:job").query(&mut raw).unwrap();
        assert!((1..=1_000).contains(&life), "the lock was not offered to its waiter: {life}");

        server.config_set("maxmemory", "0");
        waiter.thaw();
        assert!(waiter.reply()["fence"].is_u64());
        waiter.ok("release");
        assert!(!lock.is_locked().unwrap());
    }

    /// The server closes idle connections: the first command after that works, whichever it is.
    fn idle_connection_closed_by_the_server(face) {
        let server = RedisServer::builder().arg("--timeout", "1").start();
        let clients: Vec<AnyClient> = (0..5).map(|_| open(face, &server.url())).collect();
        let held = |index: usize| {
            clients[index].lock(&format!("job{index}")).acquire(fixed(60_000, 0)).unwrap()
        };
        let (extended, released) = (held(0), held(1));
        let handle = held(2).detach(ms(60_000)).unwrap();
        held(3).release().unwrap();
        held(4).release().unwrap();
        wait_for_idle_connections_to_close(&server);

        let begun = Instant::now();
        extended.extend(ms(70_000)).unwrap();
        released.release().unwrap();
        clients[2].resume_lease(&handle).unwrap().release().unwrap();
        clients[3].lock("job3").try_acquire(fixed(5_000, 0)).unwrap().unwrap().release().unwrap();
        assert!(clients[4].lock("job4").holder().unwrap().is_none());
        assert_within(ms(200), begun);
    }

    /// The same for the one request that is never repeated.
    fn idle_connection_closed_before_break_lease(face) {
        let server = RedisServer::builder().arg("--timeout", "1").start();
        let client = open(face, &server.url());
        let lease = client.lock("job").acquire(fixed(60_000, 0)).unwrap();
        wait_for_idle_connections_to_close(&server);
        assert!(client.lock("job").break_lease().unwrap());
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    /// A master that was demoted: refused in time, and found again as soon as it writes.
    fn readonly(face) {
        let server = RedisServer::start();
        let client = open_with_timeout(face, &server.url(), SOON);
        let lock = client.lock("job");
        let lease = client.lock("held").acquire(fixed(60_000, 0)).unwrap();
        server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        for wait in [0, 400] {
            let begun = Instant::now();
            let error = lock.acquire(fixed(500, wait)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert_within(if wait == 0 { RESEND + BACKOFF } else { ms(wait) }, begun);
        }
        let waiting = task(move || lock.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
        let releasing = task(move || lease.release().unwrap());
        let refused = || server.cli(&["INFO", "errorstats"]).contains("errorstat_READONLY");
        eventually(SOON, refused);
        server.cli(&["REPLICAOF", "NO", "ONE"]);
        let promoted = Instant::now();
        waiting.join();
        releasing.join();
        assert_within(BACKOFF, promoted);
    }

    /// A script of somebody else's runs and runs: bounded tries, and recovery when it is killed.
    fn busy_script(face) {
        let server = RedisServer::builder().arg("--busy-reply-threshold", "20").start();
        let client = open(face, &server.url());
        let lock = client.lock("job");
        let mut raw = server.raw();
        let endless = task(move || redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut raw).is_err());
        eventually(SOON, || {
            redis::cmd("PING").query::<String>(&mut server.raw()).is_err_and(|error| error.code() == Some("BUSY"))
        });
        for wait in [0, 400] {
            let begun = Instant::now();
            let error = lock.acquire(fixed(500, wait)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert_within(if wait == 0 { RESEND + BACKOFF } else { ms(wait) }, begun);
        }
        let waiting = task(move || lock.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
        server.cli(&["SCRIPT", "KILL"]);
        let killed = Instant::now();
        waiting.join();
        assert_within(BACKOFF, killed);
        assert!(endless.join());
    }

    /// Replicas that must follow are missing: refused, until one is not needed any more.
    fn noreplicas(face) {
        let server = RedisServer::start();
        let lock = open(face, &server.url()).lock("job");
        server.config_set("min-replicas-to-write", "1");
        let error = lock.try_acquire(fixed(500, 0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        let waiting = task(move || lock.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
        server.config_set("min-replicas-to-write", "0");
        let lifted = Instant::now();
        waiting.join();
        assert_within(BACKOFF, lifted);
    }

    /// What a server says that starts, or cannot work for a time, is waited out.
    fn temporary_refusals(face) {
        let server = RedisServer::start();
        let proxy = Proxy::start(&server);
        let client = open(face, &proxy.url());
        for refusal in [
            "LOADING Redis is loading the dataset in memory",
            "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.",
            "CLUSTERDOWN The cluster is down",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        ] {
            proxy.fault("acquire", 3, Fault::Rewrite(format!("-{refusal}\r\n").into_bytes()));
            let lease = client.lock(refusal.split(' ').next().unwrap()).acquire(fixed(5_000, 5_000));
            lease.unwrap_or_else(|error| panic!("{refusal}: {error}")).release().unwrap();
            assert_eq!(proxy.faults_left(), 0, "{refusal}");
        }
    }
}

/// Until the only connection is that of the one who asks.
fn wait_for_idle_connections_to_close(server: &RedisServer) {
    eventually(SOON, || server.cli(&["CLIENT", "LIST"]).lines().count() == 1);
}

/// A storm may hit the opening, which is one try.
fn open_in_a_storm(face: Face, server: &RedisServer) -> AnyClient {
    eventually_some(SOON, || AnyClient::open(face, Client::builder(&server.url())).ok())
}

/// Many idle connections to a server that froze: their checks do not add up.
#[test]
fn frozen_server_behind_many_idle_connections() {
    const THREADS: usize = 8;
    let server = RedisServer::start();
    let client = open_with_timeout(Face::Blocking, &server.url(), ms(500));
    // As many connections as calls at the same time: again if one of them came too late for its timeout.
    eventually(SOON, || {
        server.cli(&["CLIENT", "PAUSE", "200", "ALL"]);
        let calls: Vec<_> = (0..THREADS)
            .map(|index| {
                let lock = client.lock(&format!("job{index}"));
                task(move || lock.holder().is_ok())
            })
            .collect();
        calls.into_iter().map(Task::join).filter(|answered| *answered).count() == THREADS
    });
    let idle_since = Instant::now();
    // One idle for over a second is checked before use.
    eventually(SOON, || idle_since.elapsed() > ms(1_050));
    server.stop_signal();
    let begun = Instant::now();
    client.lock("job").try_acquire(fixed(500, 0)).unwrap_err();
    let took = ran_since(begun);
    server.cont_signal();
    assert!(took <= RESEND + SLACK, "a call with a timeout of 500 ms took {took:?}");
}

/// The host's turn comes every 50 ms, also while the server is silent.
#[test]
fn host_turn_while_the_server_is_frozen() {
    let server = RedisServer::start();
    let client = stanchion::blocking::Client::open(&server.url()).unwrap();
    let lock = client.lock("job");
    let holder = lock.acquire(fixed(60_000, 0)).unwrap();
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    let begun = Instant::now();
    let mut is_frozen = false;
    let result = lock.acquire_while(fixed(500, 60_000), &mut || {
        longest = longest.max(ran_since(last));
        if !is_frozen && begun.elapsed() > ms(100) {
            server.stop_signal();
            is_frozen = true;
        }
        last = Instant::now();
        if begun.elapsed() > ms(3_000) {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    server.cont_signal();
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    drop(holder);
    assert!(longest <= ms(50) + SLACK, "the host's turn did not come for {longest:?}");
}

/// The time of one call is that of all its releases, also where the host has its turns.
#[test]
fn several_locks_released_to_a_frozen_server_with_host_turns() {
    let server = RedisServer::start();
    let builder = Client::builder(&server.url()).timeout(ms(300));
    let client = builder.open_blocking().unwrap();
    let names = ["a:0", "a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7", "a:8", "a:9", "a:10", "a:11"];
    let go_on = || std::ops::ControlFlow::Continue(());
    let lease = client.multi_lock(&names).acquire(fixed(60_000, 0)).unwrap();
    server.stop_signal();
    let begun = Instant::now();
    let released = stanchion::blocking::with_interrupt_check(go_on, || lease.release());
    let took = ran_since(begun);
    server.cont_signal();
    assert_eq!(released.unwrap_err().kind(), ErrorKind::Indeterminate);
    assert!(took <= ms(300) + SLACK, "a release with a timeout of 300 ms took {took:?}");
}

/// Many renewals go in one round trip. When their connection falls silent, all are sent on another a second later: they do
/// not wait for each reply that does not come.
#[test]
fn connection_of_many_renewals_falls_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::start(&server);
    let client = stanchion::blocking::Client::open(&proxy.url()).unwrap();
    let names: Vec<_> = (0..20).map(|number| format!("a:{number}")).collect();
    let acquire = |name: &String| client.lock(name).acquire(renewed(6_000, 0)).unwrap();
    let leases: Vec<_> = names.iter().map(acquire).collect();
    // The first that is due goes alone, the others are due by then.
    proxy.fault("extend", 2, Fault::Drop);
    eventually(SOON, || proxy.faults_left() == 0);
    eventually(SOON, || {
        proxy.performed("extend") >= leases.len() || leases.iter().any(|lease| !lease.is_valid())
    });
    for lease in &leases {
        assert!(lease.is_valid(), "{lease:?} was lost");
    }
}
