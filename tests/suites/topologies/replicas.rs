//! Leases that count only when a replica has them.

use stanchion::{Client, ErrorKind, Health, LockOptions};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyLock, Face};
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::sentinel::Sentinels;
use stanchion_tests::wait::{SOON, eventually, eventually_some, task};

use crate::{fixed, ms, open, renewed};

/// A master, and a replica that has caught up.
fn pair() -> (RedisServer, RedisServer) {
    let master = RedisServer::builder().arg("--repl-diskless-sync-delay", "0").start();
    let replica = RedisServer::start();
    assert_eq!(replica.cli(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]), "OK");
    caught_up(&master);
    (master, replica)
}

fn caught_up(master: &RedisServer) {
    eventually(SOON, || {
        master.cli(&["SET", "canary", "1"]);
        master.cli(&["WAIT", "1", "100"]) == "1"
    });
}

fn refused(lock: &AnyLock, wait: u64) {
    let error = lock.acquire(fixed(30_000, wait)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.is_retryable() && error.to_string().contains("0 replicas"), "{error}");
}

on_both_faces! {
    /// Whatever is granted or prolonged is on the replica by then; what a frozen one does not have is not granted.
    fn a_lease_is_on_the_replica(face) {
        let (master, replica) = pair();
        let url = |timeout: &str| format!("{}?min_replicas=1&replica_timeout={timeout}", master.url());
        let lock = open(face, Client::builder(&url("0.5"))).lock("a");
        // On a machine that stands still the replica may be late: that is no yes.
        let mut prolonged = 0;
        eventually(3 * SOON, || {
            let lease = match lock.acquire(fixed(30_000, 5_000)) {
                Ok(lease) => lease,
                Err(error) if error.kind() == ErrorKind::StoreUnavailable => return false,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(replica.cli(&["GET", "Lock:a"]), lease.token().as_str());
            match lease.extend(ms(90_000)) {
                Ok(()) => {
                    let life: u64 = replica.cli(&["PTTL", "Lock:a"]).parse().unwrap();
                    assert!(life > 60_000, "the replica has {life} ms");
                    prolonged += 1;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
            }
            lease.release().unwrap();
            prolonged == 50
        });
        let client = open(face, Client::builder(&url("0.2")));
        // The replica may be late once.
        let granted = |name: &str, options: LockOptions| {
            eventually_some(SOON, || client.lock(name).try_acquire(options.clone()).ok().flatten())
        };
        let lease = granted("a", fixed(1_500, 0));
        let other = granted("b", renewed(1_500, 0));
        replica.stop_signal();
        let before = lease.remaining();
        let error = lease.extend(ms(60_000)).unwrap_err();
        assert!(error.kind() == ErrorKind::Indeterminate || error.is_lost(), "{error}");
        assert!(lease.remaining() <= before, "prolonged without the replica");
        refused(&client.lock("c"), 0);
        assert_eq!(master.cli(&["EXISTS", "Lock:c"]), "0", "it was given back");
        refused(&client.lock("c"), 300);
        assert_eq!(master.cli(&["EXISTS", "Lock:c"]), "0", "it was given back");
        // A renewal counts no more than an acquire.
        assert!(other.wait_lost(ms(10_000)));
        // What needs no lease goes on as before.
        assert!(!client.lock("c").is_locked().unwrap());

        let waiter = client.lock("c");
        let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap());
        replica.cont_signal();
        let lease = waiting.join();
        assert_eq!(replica.cli(&["GET", "Lock:c"]), lease.token().as_str());
        lease.release().unwrap();
    }

    /// A grant that too few replicas have is given back; if nobody knows whether it was, the call ends: what gives it
    /// back may come late, and would end what the same call is granted later.
    fn a_grant_that_may_be_given_back_late_ends_the_call(face) {
        let server = RedisServer::start();
        let proxy = Proxy::start(&server);
        let url = format!("{}?min_replicas=1&replica_timeout=0.001", proxy.url());
        let client = open(face, Client::builder(&url));
        let lock = client.lock("a");
        refused(&lock, 500);
        assert!(proxy.count("acquire") > 1, "it tries again");
        let before = proxy.count("acquire");
        proxy.fault("release", 1, Fault::SwallowReply);
        let begun = std::time::Instant::now();
        let error = lock.acquire(fixed(30_000, 60_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert_eq!((proxy.faults_left(), proxy.count("acquire")), (0, before + 1), "it is not sent again");
        assert!(begun.elapsed() < ms(30_000), "it ends long before its wait: {:?}", begun.elapsed());
        eventually(SOON, || server.cli(&["EXISTS", "Lock:a"]) == "0");
    }

    /// Acquires of other tasks and threads do not queue behind one that waits for its replicas.
    fn waits_for_replicas_do_not_add_up(face) {
        let (master, replica) = pair();
        let url = format!("{}?min_replicas=1&replica_timeout=0.5", master.url());
        let client = open(face, Client::builder(&url));
        replica.stop_signal();
        let begun = std::time::Instant::now();
        let tries: Vec<_> = (0..10)
            .map(|number| {
                let lock = client.lock(&format!("n{number}"));
                task(move || lock.try_acquire(fixed(5_000, 0)).unwrap_err().kind())
            })
            .collect();
        for attempt in tries {
            assert_eq!(attempt.join(), ErrorKind::StoreUnavailable);
        }
        // Two waits of half a second each, but not twenty.
        assert!(begun.elapsed() < ms(6_000), "{:?}", begun.elapsed());
        drop(replica);
    }

    fn behind_a_sentinel(face) {
        let group = Sentinels::start();
        let join = if group.url().contains('?') { '&' } else { '?' };
        let client = open(face, Client::builder(&format!("{}{join}min_replicas=1", group.url())));
        let lease = client.lock("a").acquire(fixed(30_000, 10_000)).unwrap();
        let others = group.servers.iter().filter(|server| server.cli(&["EXISTS", "Lock:a"]) == "1").count();
        assert!(others >= 2, "the master and a replica");
        lease.release().unwrap();
    }
}

#[test]
fn the_doctor_counts_replicas() {
    let (master, _replica) = pair();
    let found = |count: u32| {
        let client =
            Client::builder(&format!("{}?min_replicas={count}", master.url())).open_blocking().unwrap();
        let findings = client.doctor().unwrap();
        findings.into_iter().find(|finding| finding.what == "min_replicas").map(|finding| finding.health)
    };
    assert_eq!((found(0), found(1), found(2)), (None, Some(Health::Warning), Some(Health::Bad)));
    let lock =
        Client::builder(&format!("{}?min_replicas=2", master.url())).open_blocking().unwrap().lock("a");
    let error = lock.try_acquire(fixed(5_000, 0)).unwrap_err();
    assert!(error.to_string().contains("1 replicas"), "{error}");
}
