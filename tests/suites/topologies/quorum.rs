//! Locks on a majority of independent servers, of which some are killed, frozen, cut off, or come back empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stanchion::{Client, ErrorKind, Fence, LockOptions, Task};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyClient, AnyLock, Face};
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::quorum::{Quorum, url_of};
use stanchion_tests::redis_server::RedisServerBuilder;
use stanchion_tests::wait::{SOON, eventually, eventually_some, task};

use crate::{fixed, ms, open, refused, renewed};

/// How long work may take to get on after a server failed.
const GETS_ON: Duration = Duration::from_secs(40);

/// What a client does with a lock, and what a majority must remember of it.
fn use_it(client: &AnyClient, other: &AnyClient, name: &str) {
    let lock = client.lock(name);
    let lease = lock.acquire(fixed(30_000, 5_000)).unwrap();
    let first = lease.fence();
    assert!(other.lock(name).try_acquire(LockOptions::new()).unwrap().is_none());
    assert_eq!(lock.holder().unwrap().unwrap().fence, first);
    let waiter = other.lock(name);
    let waiting = task(move || waiter.acquire(renewed(10_000, 30_000)).unwrap());
    lease.extend(ms(40_000)).unwrap();
    assert!(lease.remaining() > ms(35_000));
    lease.release().unwrap();
    let lease = waiting.join();
    assert!(lease.fence() > first);
    let second = lease.fence();
    let handle = lease.detach(ms(5_000)).unwrap();
    let lease = client.resume_lease(&handle).unwrap();
    assert_eq!(lease.fence(), second);
    assert_eq!(other.resume_lease(&handle).unwrap_err().kind(), ErrorKind::LeaseLost);
    lease.release().unwrap();
    assert!(!lock.is_locked().unwrap());
    let lease = lock.acquire(fixed(30_000, 0)).unwrap();
    assert!(other.lock(name).break_lease().unwrap());
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
}

fn try_it(lock: &AnyLock) -> Result<bool, ErrorKind> {
    lock.try_acquire(fixed(30_000, 0)).map(|lease| lease.is_some()).map_err(|error| error.kind())
}

on_both_faces! {
    /// Killed one after the other, as many as may fail; then one more.
    fn servers_die(face) {
        for count in [3, 5] {
            let quorum = Quorum::start(count);
            let client = open(face, Client::builder(&quorum.url()).timeout(ms(1_500)));
            let other = open(face, Client::builder(&quorum.url()));
            use_it(&client, &other, "all");
            let held = client.lock("held").acquire(renewed(3_000, 0)).unwrap();
            let most = (count - 1) / 2;
            for server in 0..most {
                quorum.servers[server].kill9();
                use_it(&client, &other, "some");
            }
            // Renewed by those that are left, past the time that it had at first.
            let begun = Instant::now();
            eventually(SOON, || begun.elapsed() > ms(3_500));
            held.check().unwrap();

            quorum.servers[most].kill9();
            let error = client.lock("none").acquire(fixed(5_000, 0)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert!(error.is_retryable());
            assert!(error.to_string().contains(&format!("{most} of {count} servers answer")), "{error}");
            assert!(held.wait_lost(ms(10_000)), "no majority renews it");

            let waiter = other.lock("none");
            let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
            (0..=most).for_each(|server| quorum.servers[server].start_again());
            waiting.join();
            use_it(&client, &other, "again");
        }
    }

    /// A frozen server is waited for once, is told what it missed when it goes on, and holds up nobody.
    fn a_server_freezes(face) {
        let quorum = Quorum::start(3);
        let client = open(face, Client::builder(&quorum.url()));
        let other = open(face, Client::builder(&quorum.url()));
        let held = client.lock("held").acquire(fixed(60_000, 0)).unwrap();
        assert_eq!(quorum.holding("held"), 3);
        quorum.servers[1].stop_signal();
        let begun = Instant::now();
        for _ in 0..40 {
            client.lock("job").acquire(fixed(60_000, 0)).unwrap().release().unwrap();
        }
        // Each would take a quarter of a second.
        assert!(begun.elapsed() < ms(5_000), "{:?}", begun.elapsed());
        held.release().unwrap();
        let lease = other.lock("held").acquire(fixed(60_000, 5_000)).unwrap();
        quorum.servers[1].cont_signal();
        let gone = || quorum.servers[1].cli(&["EXISTS", "Lock:held", "Lock:job"]) == "0";
        eventually(SOON, gone);
        lease.release().unwrap();
        eventually(SOON, || quorum.holding("held") + quorum.holding("job") == 0);
        // It votes again.
        let lease = eventually_some(SOON, || {
            let lease = client.lock("job").acquire(fixed(60_000, 0)).unwrap();
            (quorum.holding("job") == 3).then_some(lease)
        });
        lease.release().unwrap();
    }

    /// A majority that has forgotten a lease, one server after the other, does not give it to another before it is over.
    fn servers_come_back_empty(face) {
        let quorum = Quorum::start(3);
        let url = quorum.url_with("rejoin_after=3");
        let client = eventually_some(SOON, || AnyClient::open(face, Client::builder(&url)).ok());
        let other = open(face, Client::builder(&url));
        let kept = client.lock("kept");
        let error = kept.acquire(fixed(3_001, 0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "longer than a server stays out: {error}");
        quorum.servers[2].kill9();
        let granted = Instant::now();
        let lease = kept.acquire(fixed(3_000, 0)).unwrap();
        let ends = granted + lease.remaining();
        assert!(matches!(lease.extend(ms(3_001)), Err(error) if error.kind() == ErrorKind::InvalidArgument));
        quorum.servers[1].restart();
        quorum.servers[2].start_again();
        assert!(quorum.holding("kept") <= 1, "a majority has it still");
        let second = other.lock("kept").acquire(fixed(3_000, 60_000)).unwrap();
        let begins = Instant::now();
        assert!(begins >= ends, "given away {:?} before the first lease was over", ends - begins);
        assert!(!lease.is_valid() && second.fence() > lease.fence());
    }

    /// Servers that keep everything are restarted one after the other. A lease that is renewed has a vote there again
    /// before the next goes, though somebody else tries to have it all the while. Nobody asks them all the while.
    fn a_rolling_restart_costs_no_lease(face) {
        let quorum = Quorum::start_with(3, RedisServerBuilder::appendonly_unsynced);
        let url = quorum.url_with("rejoin_after=15&node_timeout=0.5");
        let client = eventually_some(GETS_ON, || AnyClient::open(face, Client::builder(&url)).ok());
        let other = open(face, Client::builder(&url));
        let lease = client.lock("kept").acquire(renewed(15_000, 0)).unwrap();
        let fence = lease.fence();
        let waiter = other.lock("kept");
        let waiting = task(move || waiter.acquire(renewed(15_000, 240_000)).unwrap().fence());
        let mut all: Vec<_> = quorum.servers.iter().map(RedisServer::raw).collect();
        let token = |connection: &mut redis::Connection| {
            redis::cmd("GET").arg("Lock:kept").query::<Option<String>>(connection).unwrap()
        };
        let ends = |connection: &mut redis::Connection| {
            redis::cmd("PEXPIRETIME").arg("Lock:kept").query::<i64>(connection).unwrap()
        };
        // Two let in are enough for the lease; one that was met later stays out for longer, and may have been asked by
        // the other client meanwhile.
        let ours = eventually_some(3 * GETS_ON, || {
            let tokens: Vec<_> = all.iter_mut().map(token).collect();
            (tokens[0].is_some() && tokens.iter().all(|token| *token == tokens[0])).then(|| tokens[0].clone())
        });
        for number in 0..3 {
            quorum.servers[number].restart();
            all[number] = quorum.servers[number].raw();
            // What it has kept is not renewed there and ends; then it is there again, with another end.
            let kept_until = ends(&mut all[number]);
            let is_held = || {
                let told = || format!("{:#?}\n{}", client.doctor(), client.metrics_text());
                assert!(lease.is_valid(), "lost after server {number}: {:?}: {}", lease.loss(), told());
            };
            eventually(3 * GETS_ON, || {
                is_held();
                ends(&mut all[number]) > kept_until
            });
            eventually(3 * GETS_ON, || {
                is_held();
                all.iter_mut().all(|connection| token(connection) == ours)
            });
            let stats: String = redis::cmd("INFO").arg("stats").query(&mut all[number]).unwrap();
            let made = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
            assert!(made.parse::<u32>().unwrap() < 14, "{made} connections while it stayed out");
        }
        assert_eq!(client.lock("kept").holder().unwrap().unwrap().fence, fence);
        lease.release().unwrap();
        assert!(waiting.join() > fence);
    }

    /// It would be a majority of its own.
    fn one_server_under_two_names(face) {
        let quorum = Quorum::start(2);
        let (one, two) = (&quorum.servers[0], &quorum.servers[1]);
        let (port, other) = (one.port(), two.port());
        let url = format!("redis-quorum://127.0.0.1:{port},localhost:{port},127.0.0.1:{other}/?rejoin_after=0");
        let same = "are the same server";
        refused(face, &url, ErrorKind::InvalidArgument, same);
        refused(face, &url, ErrorKind::InvalidArgument, &format!("127.0.0.1:{port}"));
        refused(face, &url, ErrorKind::InvalidArgument, &format!("localhost:{port}"));
        // An address that leads nowhere at first, and to that server later.
        let proxy = Proxy::start(one);
        proxy.refuse(true);
        let url = url_of([port, proxy.port(), other], "rejoin_after=0");
        let client = open(face, Client::builder(&url).timeout(ms(1_500)));
        client.lock("a").acquire(fixed(5_000, 0)).unwrap().release().unwrap();
        let asking = Client::builder(&url).open_blocking().unwrap();
        proxy.refuse(false);
        let told = || asking.doctor().unwrap().into_iter().filter_map(|finding| finding.advice);
        eventually(SOON, || told().any(|advice| advice.contains(same)));
        two.kill9();
        let error = client.lock("a").acquire(fixed(5_000, 0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    }

    /// What that is good for: with `rejoin_after=0` the same lock is given away twice.
    fn servers_that_come_back_empty_at_once(face) {
        let quorum = Quorum::start(3);
        let client = open(face, Client::builder(&quorum.url()));
        let other = open(face, Client::builder(&quorum.url()));
        quorum.servers[2].kill9();
        let lease = client.lock("kept").acquire(fixed(60_000, 0)).unwrap();
        quorum.servers[1].restart();
        quorum.servers[2].start_again();
        let second = other.lock("kept").acquire(fixed(60_000, 30_000)).unwrap();
        assert!(lease.is_valid() && second.is_valid());
        assert!(second.fence() > lease.fence(), "only the fence protects");
    }

    /// The first majority has not the second one's servers but one, which must know the fence.
    fn majorities_that_meet_in_one_server(face) {
        let quorum = Quorum::start(3);
        let proxies: Vec<_> = quorum.servers.iter().map(Proxy::start).collect();
        let url = url_of(proxies.iter().map(Proxy::port), "rejoin_after=0");
        // A clock that is an hour ahead.
        let ahead: u64 = quorum.servers[0].cli(&["TIME"]).lines().next().unwrap().parse::<u64>().unwrap() + 3_600;
        quorum.servers[0].cli(&["HSET", "stanchion:meta:{Lock:job}", "fence", &format!("{ahead}000000")]);
        let away = |number: usize| {
            for (index, proxy) in proxies.iter().enumerate() {
                proxy.refuse(index == number);
                if index == number {
                    proxy.cut();
                }
            }
        };
        away(2);
        let first = open(face, Client::builder(&url)).lock("job").acquire(fixed(5_000, 0)).unwrap();
        assert!(first.fence().get() > ahead * 1_000_000);
        let fence = first.fence();
        away(0);
        // Another client, which has seen no fence.
        let other = open(face, Client::builder(&url)).lock("job");
        assert_ne!(try_it(&other), Ok(true), "a server of both majorities holds it");
        // One of its two servers gives it back; of the other one nothing is known.
        assert_eq!(first.release().unwrap_err().kind(), ErrorKind::Indeterminate);
        let second = other.acquire(fixed(5_000, 10_000)).unwrap();
        assert!(second.fence() > fence, "{} after {fence}", second.fence());
        second.release().unwrap();
    }

    /// Requests that are carried out, and whose replies are lost, by one server and by two.
    fn replies_are_lost(face) {
        let quorum = Quorum::start(3);
        let proxies: Vec<_> = quorum.servers.iter().map(Proxy::start).collect();
        let url = url_of(proxies.iter().map(Proxy::port), "rejoin_after=0&node_timeout=0.5");
        let client = open(face, Client::builder(&url));
        let lock = client.lock("job");
        let mut last = Fence::NONE;
        for (verb, lost) in [("acquire", 1), ("acquire", 2), ("extend", 1), ("extend", 2), ("release", 1), ("release", 2)] {
            // All of them vote again.
            eventually(SOON, || {
                let lease = lock.acquire(fixed(30_000, 10_000)).unwrap();
                let all = quorum.holding("job") == 3;
                lease.release().unwrap();
                all
            });
            for proxy in &proxies[..lost] {
                proxy.fault(verb, 1, Fault::SwallowReply);
            }
            let lease = lock.acquire(fixed(30_000, 10_000)).unwrap();
            assert!(lease.is_valid() && lease.fence() > last, "{verb} {lost}");
            last = lease.fence();
            lease.extend(ms(40_000)).unwrap();
            lease.release().unwrap();
            eventually(SOON, || quorum.holding("job") == 0);
            assert_eq!(proxies.iter().map(Proxy::faults_left).sum::<usize>(), 0, "{verb} {lost}");
        }
    }

    /// Kinds that a majority cannot count are refused, whatever the servers do.
    fn other_kinds_are_refused(face) {
        let quorum = Quorum::start(3);
        let client = open(face, Client::builder(&quorum.url()));
        quorum.servers.iter().for_each(RedisServer::kill9);
        let kinds = [
            client.semaphore("a", 3).try_acquire(LockOptions::new()).map(drop),
            client.reader("a").try_acquire(LockOptions::new()).map(drop),
            client.queue("a").enqueue(Task::new("a")).map(drop),
            client.queue_names(None).map(drop),
        ];
        for refused in kinds {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}

/// Clients of both faces count under the lock, while one server after the other freezes and dies.
#[test]
fn nothing_is_lost_under_contention() {
    let quorum = Quorum::start(3);
    let over = Arc::new(AtomicBool::new(false));
    let inside = Arc::new(AtomicBool::new(false));
    let (written, fenced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let done = Arc::new(AtomicU64::new(0));
    let counting: Vec<_> = (0..8)
        .map(|number| {
            let face = if number % 2 == 0 { Face::Async } else { Face::Blocking };
            let lock = open(face, Client::builder(&quorum.url())).lock("count");
            let (over, inside, written) = (Arc::clone(&over), Arc::clone(&inside), Arc::clone(&written));
            let (fenced, done) = (Arc::clone(&fenced), Arc::clone(&done));
            task(move || {
                while !over.load(Ordering::SeqCst) {
                    let lease = match lock.acquire(fixed(5_000, 60_000)) {
                        Ok(lease) => lease,
                        Err(error) if error.kind() == ErrorKind::StoreUnavailable => continue,
                        Err(error) => panic!("{error}"),
                    };
                    assert!(!inside.swap(true, Ordering::SeqCst), "two are inside");
                    assert!(fenced.swap(lease.fence().get(), Ordering::SeqCst) < lease.fence().get());
                    let before = written.load(Ordering::SeqCst);
                    std::thread::yield_now();
                    written.store(before + 1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    inside.store(false, Ordering::SeqCst);
                    if let Err(error) = lease.release() {
                        let known = [ErrorKind::Indeterminate, ErrorKind::StoreUnavailable];
                        assert!(known.contains(&error.kind()) || error.is_lost(), "{error}");
                    }
                }
            })
        })
        .collect();
    let goes_on = || {
        let before = done.load(Ordering::SeqCst);
        eventually(GETS_ON, || done.load(Ordering::SeqCst) > before + 20);
    };
    goes_on();
    for server in &quorum.servers {
        server.stop_signal();
        goes_on();
        server.cont_signal();
        goes_on();
        server.kill9();
        goes_on();
        server.start_again();
        goes_on();
    }
    over.store(true, Ordering::SeqCst);
    counting.into_iter().for_each(|task| task.join_within(GETS_ON));
    assert_eq!(written.load(Ordering::SeqCst), done.load(Ordering::SeqCst), "an update was lost");
    eventually(SOON, || quorum.holding("count") == 0);
}

/// What opening tells, and the doctor.
#[test]
fn a_quorum_is_checked_when_it_is_opened() {
    let quorum = Quorum::start(3);
    refused(Face::Blocking, &quorum.url_with(""), ErrorKind::StoreUnavailable, "rejoin_after");
    let client = Client::builder(&quorum.url()).open_blocking().unwrap();
    let found = |what| {
        let findings = client.doctor().unwrap();
        findings.into_iter().find(|finding| finding.what == what).unwrap()
    };
    assert_eq!(found("quorum").found, "3 of 3 servers answer, 2 must");
    quorum.servers[2].kill9();
    assert_eq!(found("quorum").health, stanchion::Health::Warning);
    assert_eq!(found("locks").health, stanchion::Health::Good);
    // With one server missing, too.
    let lock = open(Face::Async, Client::builder(&quorum.url())).lock("a");
    lock.acquire(fixed(1_000, 0)).unwrap().release().unwrap();
    quorum.servers[1].kill9();
    refused(Face::Blocking, &quorum.url(), ErrorKind::StoreUnavailable, "1 of 3 servers answer");
}
