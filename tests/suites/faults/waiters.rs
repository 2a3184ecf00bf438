//! Waiters that die, wake-ups that are lost, and very many at once.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stanchion::{Client, LockOptions};
use stanchion_tests::faces::{Face, runtime};
use stanchion_tests::proxy::{Fault, Flow, Proxy};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, eventually_some, task};
use stanchion_tests::{RedisServer, shared, unique};

use crate::{POLL, SLACK, actor, assert_within, fixed, ms, open};

/// An offered lock waits so long for its waiter.
const GRANT_WINDOW: Duration = stanchion::protocol::GRANT_WINDOW;

on_shared_stores! {
    /// The head of the line is dead: the next one waits for one grant window more, and not longer.
    fn waiter_dead(bench) {
        let lock = bench.client().lock("job");
        let holder = lock.acquire(fixed(60_000, 0)).unwrap();
        let mut first = actor(bench);
        first.order("acquire job 5000 60000 fixed");
        eventually(SOON, || lock.waiters() == 1);
        let second = lock.clone();
        let waiting = task(move || second.acquire(fixed(5_000, 60_000)).unwrap());
        eventually(SOON, || lock.waiters() == 2);

        first.kill9();
        let lapsed = Instant::now();
        holder.release().unwrap();
        let lease = waiting.join();
        assert_within(GRANT_WINDOW, lapsed);
        lease.release().unwrap();
        // Nobody is left, and nobody is waited for.
        let begun = Instant::now();
        lock.try_acquire(fixed(5_000, 0)).unwrap().unwrap().release().unwrap();
        assert_within(ms(0), begun);
    }

    /// A frozen waiter loses its turn, but keeps its place.
    fn waiter_frozen(bench) {
        let lock = bench.client().lock("job");
        let holder = lock.acquire(fixed(60_000, 0)).unwrap();
        let mut first = actor(bench);
        first.order("acquire job 5000 60000 fixed");
        eventually(SOON, || lock.waiters() == 1);
        first.freeze();
        let second = lock.clone();
        let waiting = task(move || second.acquire(fixed(5_000, 60_000)).unwrap());
        eventually(SOON, || lock.waiters() == 2);
        // It does not poll, so it counts as dead.
        let pids = || lock.who_waits().unwrap().iter().map(|one| one.pid).collect::<Vec<_>>();
        eventually(SOON, || pids() == [std::process::id()]);
        holder.release().unwrap();
        let lease = waiting.join();
        first.thaw();
        eventually(SOON, || matches!(pids()[..], [pid] if pid != std::process::id()));
        // It still waits, and is next.
        assert!(first.is_silent());
        let released = Instant::now();
        lease.release().unwrap();
        let reply = first.reply();
        assert!(reply["fence"].is_u64(), "{reply}");
        assert_within(GRANT_WINDOW + POLL, released);
        first.ok("release");
    }
}

on_both_faces! {
    /// The hint is lost: the waiter's own poll finds the offer.
    fn wake_up_lost(face) {
        let proxy = Proxy::start(shared());
        let name = unique("hint");
        let truth = open(Face::Blocking, &shared().url()).lock(&name);
        let waiter = open(face, &proxy.url()).lock(&name);
        proxy.flow(Flow { drop_messages: true, ..Flow::default() });
        for _ in 0..3 {
            let holder = truth.acquire(fixed(60_000, 0)).unwrap();
            let waiter = waiter.clone();
            let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap());
            eventually(SOON, || truth.waiters() == 1);
            holder.release().unwrap();
            let released = Instant::now();
            let lease = waiting.join();
            assert_within(POLL, released);
            lease.release().unwrap();
        }
    }

    /// The subscription is never confirmed: the wait goes on without it, by polling.
    fn subscription_lost(face) {
        for fault in [Fault::Drop, Fault::CutBefore] {
            let proxy = Proxy::start(shared());
            let name = unique("deaf");
            let truth = open(Face::Blocking, &shared().url()).lock(&name);
            proxy.fault("SUBSCRIBE", usize::MAX, fault);
            let holder = truth.acquire(fixed(60_000, 0)).unwrap();
            let waiter = open(face, &proxy.url()).lock(&name);
            let begun = Instant::now();
            let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap());
            eventually(SOON, || truth.waiters() == 1);
            // A confirmation is waited for this long.
            assert_within(ms(1_000), begun);
            holder.release().unwrap();
            let released = Instant::now();
            let lease = waiting.join();
            assert_within(POLL, released);
            lease.release().unwrap();
        }
    }

    /// The server closes the subscriber's connection: the client opens another, and hears hints again.
    fn subscriber_killed(face) {
        let server = RedisServer::start();
        let truth = open(Face::Blocking, &server.url()).lock("job");
        let waiter = open(face, &server.url()).lock("job");
        let holder = truth.acquire(fixed(60_000, 0)).unwrap();
        let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap());
        let subscriber = |other_than: Option<&str>| {
            eventually_some(SOON, || {
                let list = server.cli(&["CLIENT", "LIST", "TYPE", "pubsub"]);
                let id = list.split_whitespace().next()?.to_owned();
                (Some(&*id) != other_than).then_some(id)
            })
        };
        let first = subscriber(None);
        eventually(SOON, || truth.waiters() == 1);
        assert_eq!(server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]), "1");
        let killed = Instant::now();
        subscriber(Some(&first));
        // A broken channel is left alone for a second.
        assert_within(ms(1_000), killed);
        holder.release().unwrap();
        let released = Instant::now();
        let lease = waiting.join();
        // A poll comes after half a second at the earliest, so mostly this shows that a hint was heard.
        assert_within(POLL, released);
        lease.release().unwrap();
    }
}

/// A thousand tasks wait for one lock: each gets it once, in the order of their arrival.
#[test]
fn waiters_1000_in_one_process() {
    const WAITERS: usize = 1_000;
    let bench = Bench::new(Kind::Redis, Face::Async);
    let truth = open(Face::Blocking, bench.url()).lock("job");
    let holder = truth.acquire(fixed(60_000, 0)).unwrap();
    let client = runtime().block_on(Client::open(bench.url())).unwrap();
    let granted = Arc::new(Mutex::new(Vec::new()));
    let (send, ended) = mpsc::channel();
    for _ in 0..WAITERS {
        let (lock, granted, send) = (client.lock("job"), Arc::clone(&granted), send.clone());
        runtime().spawn(async move {
            let lease = lock.acquire(LockOptions::new().wait(ms(60_000))).await.unwrap();
            granted.lock().unwrap().push(lease.token().as_str().to_owned());
            lease.release().await.unwrap();
            send.send(()).unwrap();
        });
    }
    eventually(SOON, || truth.waiters() == WAITERS as u64);
    let line = line(&bench);
    holder.release().unwrap();
    for _ in 0..WAITERS {
        ended.recv_timeout(SOON).unwrap();
    }
    assert_eq!(*granted.lock().unwrap(), line);
    assert!(!truth.is_locked().unwrap());
    assert!(self::line(&bench).is_empty());
}

/// Two hundred threads do the same.
#[test]
fn waiting_threads_200_in_one_process() {
    const WAITERS: usize = 200;
    let bench = Bench::new(Kind::Redis, Face::Blocking);
    let truth = bench.client().lock("job");
    let holder = truth.acquire(fixed(60_000, 0)).unwrap();
    let client = bench.client();
    let granted = Arc::new(Mutex::new(Vec::new()));
    let waiting: Vec<_> = (0..WAITERS)
        .map(|_| {
            let (lock, granted) = (client.lock("job"), Arc::clone(&granted));
            task(move || {
                let lease = lock.acquire(fixed(30_000, 60_000)).unwrap();
                granted.lock().unwrap().push(lease.token().as_str().to_owned());
                lease.release().unwrap();
            })
        })
        .collect();
    eventually(SOON, || truth.waiters() == WAITERS as u64);
    let line = line(&bench);
    holder.release().unwrap();
    waiting.into_iter().for_each(|waiter| waiter.join_within(SOON + SLACK));
    assert_eq!(*granted.lock().unwrap(), line);
    assert!(!truth.is_locked().unwrap());
}

/// The tokens that wait, in order.
fn line(bench: &Bench) -> Vec<String> {
    redis::cmd("ZRANGE").arg("stanchion:line:{Lock:job}").arg(0).arg(-1).query(&mut bench.raw()).unwrap()
}
