//! Somebody else changes, deletes or floods what a lock stands on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use redis::Connection;
use stanchion::{ErrorKind, HeldAs, LossReason};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyClient, Face};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, task};

use crate::{assert_within, fixed, ms, open, renewed};

const KEY: &str = "Lock:job";
const SIDECARS: [&str; 3] = ["meta", "line", "waiters"];

fn sidecar(kind: &str) -> String {
    format!("stanchion:{kind}:{{{KEY}}}")
}

fn command(raw: &mut Connection, line: &str) -> redis::Value {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query(raw).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn value(raw: &mut Connection) -> Option<String> {
    redis::cmd("GET").arg(KEY).query(raw).unwrap()
}

fn pttl(raw: &mut Connection) -> i64 {
    redis::cmd("PTTL").arg(KEY).query(raw).unwrap()
}

/// Everything in the database, without lifetimes.
fn contents(raw: &mut Connection) -> BTreeMap<String, Vec<u8>> {
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(raw).unwrap();
    let mut dump = |key: &String| redis::cmd("DUMP").arg(key).query(raw).unwrap();
    keys.iter().map(|key| (key.clone(), dump(key))).collect()
}

on_both_faces! {
    /// The server forgets all scripts again and again: nobody notices.
    fn script_flush_storm(face) {
        let server = RedisServer::start();
        let (over, flushes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (mut raw, stop, count) = (server.raw(), Arc::clone(&over), Arc::clone(&flushes));
        let storm = task(move || {
            while !stop.load(Ordering::SeqCst) {
                redis::cmd("SCRIPT").arg("FLUSH").exec(&mut raw).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let client = open(face, &server.url());
        let workers: Vec<_> = (0..4).map(|_| {
            let (lock, flushes) = (client.lock("job"), Arc::clone(&flushes));
            task(move || {
                let mut rounds = 0;
                while rounds < 25 || flushes.load(Ordering::SeqCst) < 100 {
                    let lease = lock.acquire(fixed(5_000, 10_000)).unwrap();
                    lease.extend(ms(6_000)).unwrap();
                    lease.release().unwrap();
                    rounds += 1;
                }
            })
        }).collect();
        workers.into_iter().for_each(|worker| worker.join());
        over.store(true, Ordering::SeqCst);
        storm.join();
    }

    /// The lease is lost at its next renewal, with the reason; later fences are larger all the same.
    fn flushall_while_held(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        let lease = client.lock("job").acquire(renewed(3_000, 0)).unwrap();
        server.cli(&["FLUSHALL"]);
        let flushed = Instant::now();
        assert!(lease.wait_lost(SOON));
        assert_within(ms(1_000), flushed);
        assert_eq!(lease.loss(), Some(LossReason::Forgotten));
        let fence = lease.fence();
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);

        let next = client.lock("job").acquire(fixed(30_000, 0)).unwrap();
        assert!(next.fence() > fence);
        server.cli(&["FLUSHALL"]);
        let stranger = open(face, &server.url()).lock("job").acquire(fixed(30_000, 0)).unwrap();
        assert!(stranger.fence() > next.fence());
        // It looks like a lease of before the flush, so its release tells the truth, and harms nobody.
        assert_eq!(next.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(stranger.is_valid());
        stranger.release().unwrap();
    }

    /// Deleted by a stranger: noticed at the next renewal, or by `extend`.
    fn foreign_del(face) {
        let bench = Bench::new(Kind::Redis, face);
        let (lock, mut raw) = (bench.client().lock("job"), bench.raw());
        let lease = lock.acquire(renewed(3_000, 0)).unwrap();
        command(&mut raw, &format!("DEL {KEY}"));
        let deleted = Instant::now();
        assert!(lease.wait_lost(SOON));
        assert_within(ms(1_000), deleted);
        assert_eq!(lease.loss(), Some(LossReason::Overwritten));
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);

        let lease = lock.acquire(fixed(5_000, 0)).unwrap();
        command(&mut raw, &format!("DEL {KEY}"));
        assert_eq!(lease.extend(ms(5_000)).unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(!lease.is_valid());
    }

    /// Overwritten by a stranger: the lease is lost, and the stranger's value is never touched.
    fn foreign_set(face) {
        let bench = Bench::new(Kind::Redis, face);
        let (lock, mut raw) = (bench.client().lock("job"), bench.raw());
        let set = |raw: &mut Connection| command(raw, &format!("SET {KEY} theirs"));

        let lease = lock.acquire(renewed(3_000, 0)).unwrap();
        set(&mut raw);
        let overwritten = Instant::now();
        assert!(lease.wait_lost(SOON));
        assert_within(ms(1_000), overwritten);
        assert_eq!(lease.loss(), Some(LossReason::Overwritten));
        drop(lease);

        for release in [true, false] {
            command(&mut raw, &format!("DEL {KEY}"));
            let lease = lock.acquire(fixed(5_000, 0)).unwrap();
            set(&mut raw);
            let result = if release { lease.release() } else { lease.extend(ms(5_000)) };
            assert_eq!(result.unwrap_err().kind(), ErrorKind::LeaseLost);
        }

        assert!(lock.try_acquire(fixed(500, 0)).unwrap().is_none());
        let begun = Instant::now();
        assert_eq!(lock.acquire(fixed(500, 300)).unwrap_err().kind(), ErrorKind::LockTimeout);
        assert_within(ms(300), begun);
        assert_eq!(lock.holder().unwrap().unwrap().held_as, HeldAs::Foreign);
        assert_eq!(value(&mut raw).as_deref(), Some("theirs"));
        assert_eq!(pttl(&mut raw), -1);
    }

    /// A stranger takes the key's lifetime away: the next renewal gives it one again.
    fn foreign_persist(face) {
        let bench = Bench::new(Kind::Redis, face);
        let (lock, mut raw) = (bench.client().lock("job"), bench.raw());
        let lease = lock.acquire(renewed(3_000, 0)).unwrap();
        // Both at once: no renewal comes between them.
        let mut persist = redis::pipe();
        persist.atomic().cmd("PERSIST").arg(KEY).cmd("PTTL").arg(KEY);
        assert_eq!(persist.query::<(i64, i64)>(&mut raw).unwrap(), (1, -1));
        let persisted = Instant::now();
        eventually(SOON, || (1..=3_000).contains(&pttl(&mut raw)));
        assert_within(ms(1_000), persisted);
        assert!(lease.is_valid());
        lease.release().unwrap();
        assert_eq!(value(&mut raw), None);

        let lease = lock.acquire(fixed(30_000, 0)).unwrap();
        command(&mut raw, &format!("PERSIST {KEY}"));
        lease.release().unwrap();
        assert_eq!(value(&mut raw), None);
    }

    /// The key, or a sidecar, holds a list: a typed error that names the lock, and nothing is written.
    fn wrong_type(face) {
        let bench = Bench::new(Kind::Redis, face);
        let (client, mut raw) = (bench.client(), bench.raw());
        command(&mut raw, &format!("LPUSH {KEY} theirs"));
        assert_wrong_type(&client, &mut raw);
        command(&mut raw, &format!("DEL {KEY}"));

        let holder = client.lock("job").acquire(fixed(30_000, 0)).unwrap();
        for kind in SIDECARS {
            let key = sidecar(kind);
            let saved = contents(&mut raw).remove(&key);
            command(&mut raw, &format!("DEL {key}"));
            command(&mut raw, &format!("LPUSH {key} theirs"));
            assert_wrong_type_in_line(&client, &mut raw, kind);
            command(&mut raw, &format!("DEL {key}"));
            if let Some(dump) = saved {
                redis::cmd("RESTORE").arg(&key).arg(0).arg(dump).exec(&mut raw).unwrap();
            }
        }
        holder.release().unwrap();
    }

    /// PEXPIRE stands in for a server clock that jumps forward: two believe to hold, and the fence tells them
    /// apart. This is what the design documents, and no more than that.
    fn clock_jump(face) {
        let bench = Bench::new(Kind::Redis, face);
        let (lock, mut raw) = (bench.client().lock("job"), bench.raw());
        let old = lock.acquire(fixed(5_000, 0)).unwrap();
        command(&mut raw, &format!("PEXPIRE {KEY} 1"));
        let new = bench.client().lock("job").acquire(fixed(5_000, 1_000)).unwrap();
        assert!(old.is_valid() && new.is_valid());
        assert!(new.fence() > old.fence());

        assert_eq!(old.extend(ms(5_000)).unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(old.loss(), Some(LossReason::Taken));
        assert_eq!(old.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(value(&mut raw).as_deref(), Some(new.token().as_str()));
        new.release().unwrap();
    }
}

/// Every call about the lock fails so, and leaves the database as it was.
fn assert_wrong_type(client: &AnyClient, raw: &mut Connection) {
    let lock = client.lock("job");
    let before = contents(raw);
    let errors = [
        lock.try_acquire(fixed(500, 0)).unwrap_err(),
        lock.acquire(fixed(500, 5_000)).unwrap_err(),
        lock.holder().unwrap_err(),
        lock.break_lease().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::WrongType, "{error}");
        assert_eq!(error.name(), Some("job"), "{error}");
    }
    // What an acquire did not do, its clean-up does not do either.
    assert_eq!(contents(raw), before);
}

/// Joining the line fails so, and leaves the database as it was.
fn assert_wrong_type_in_line(client: &AnyClient, raw: &mut Connection, kind: &str) {
    let before = contents(raw);
    let begun = Instant::now();
    let error = client.lock("job").acquire(fixed(500, 5_000)).unwrap_err();
    assert_within(ms(2_000), begun);
    assert_eq!((error.kind(), error.name()), (ErrorKind::WrongType, Some("job")), "{kind}: {error}");
    assert_eq!(contents(raw), before, "{kind}");
}

on_shared_stores! {
    /// Extending never shortens.
    fn extend_that_would_shorten(bench) {
        let lease = bench.client().lock("job").acquire(fixed(5_000, 0)).unwrap();
        lease.extend(ms(100)).unwrap();
        assert!(lease.remaining() > ms(4_000), "{:?}", lease.remaining());
        if bench.kind == Kind::Redis {
            assert!(pttl(&mut bench.raw()) > 4_000);
        }
        lease.extend(ms(10_000)).unwrap();
        assert!(lease.remaining() > ms(9_000), "{:?}", lease.remaining());
        lease.release().unwrap();
    }
}
