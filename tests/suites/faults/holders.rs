//! What happens to a lease when its holder dies, freezes, exits, or is busy.

use std::thread;
use std::time::Instant;

use stanchion::{CachedOptions, Client, ErrorKind, LossReason};
use stanchion_tests::actor::Actor;
use stanchion_tests::faces::{AnyClient, Face, runtime};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, ran_since, task};
use stanchion_tests::{RedisServer, host, shared, unique};

use crate::{POLL, actor, assert_within, fixed, ms, open, renewed};

/// Its ttl, in milliseconds.
const TTL: u64 = 2_000;

on_shared_stores! {
    /// The next owner gets the lock when the dead one's remaining ttl is over, one poll later at most.
    fn holder_sigkilled(bench) {
        let lock = bench.client().lock("job");
        let mut holder = actor(bench);
        let dead = holder.ok(&format!("acquire job {TTL} 0 renew"))["fence"].as_u64().unwrap();
        let waiter = lock.clone();
        let waiting = task(move || waiter.acquire(fixed(TTL, 5_000)));
        eventually(SOON, || lock.waiters() == 1);

        holder.kill9();
        let killed = Instant::now();
        let lease = waiting.join().unwrap();
        assert_within(ms(TTL) + POLL, killed);
        assert!(lease.fence().get() > dead, "{} after {dead}", lease.fence());
        lease.release().unwrap();
    }

    /// Who waits for a value computes it when the dead one's lease is over, one poll later at most.
    fn computer_sigkilled(bench) {
        let client = bench.client();
        let mut computer = actor(bench);
        computer.ok(&format!("begin_cached price {TTL}"));
        let (one, two) = (client.clone(), bench.client());
        let asks = |client: AnyClient, own: &'static str| {
            let options = CachedOptions::new(ms(60_000)).wait(ms(30_000)).without_store(false);
            task(move || client.cached("price", options, || Ok(own.into())).unwrap())
        };
        let waiting = [asks(one, "one"), asks(two, "two")];
        eventually(SOON, || client.computation("price").waiters() == 2);

        computer.kill9();
        let killed = Instant::now();
        let [first, second] = waiting.map(stanchion_tests::wait::Task::join);
        assert_within(ms(TTL) + 2 * POLL, killed);
        assert!(first == second && (first == b"one" || first == b"two"), "{first:?} and {second:?}");
    }

    /// The same for a process that ends by itself without releasing; it ends at once, with its own code.
    fn exit_while_holding(bench) {
        let lock = bench.client().lock("job");
        let mut holder = actor(bench);
        holder.ok(&format!("acquire job {TTL} 0 renew"));
        holder.order("exit 7");
        let begun = Instant::now();
        assert_eq!(holder.end(), 7);
        assert_within(ms(700), begun);
        lock.acquire(fixed(TTL, 5_000)).unwrap().release().unwrap();
        assert_within(ms(TTL) + POLL, begun);
    }

    /// Whoever wakes up after its ttl is over has lost, knows it at once, and harms nobody.
    fn holder_sigstopped_past_its_ttl(bench) {
        for renews in ["fixed", "renew"] {
            let lock = bench.client().lock("job");
            let mut sleeper = actor(bench);
            let old = sleeper.ok(&format!("acquire job {TTL} 0 {renews}"))["fence"].as_u64().unwrap();
            sleeper.freeze();
            let next = lock.acquire(renewed(TTL, 5_000)).unwrap();
            assert!(next.fence().get() > old);

            sleeper.thaw();
            let thawed = Instant::now();
            sleeper.ok("wait_lost");
            assert_within(ms(0), thawed);
            let status = sleeper.ok("status");
            assert_eq!((&status["valid"], &status["remaining_ms"]), (&false.into(), &0.0.into()), "{status}");
            assert!(["Expired", "Taken"].contains(&status["loss"].as_str().unwrap()), "{status}");
            let (extending, releasing) = (sleeper.error("extend 500"), sleeper.error("release"));
            assert!(["LeaseExpired", "LeaseLost"].contains(&&*extending), "{extending}");
            assert_eq!(releasing, "LeaseLost");

            assert!(next.is_valid(), "{:?}", next.loss());
            next.extend(ms(TTL)).unwrap();
            next.release().unwrap();
        }
    }

    /// When nobody came meanwhile, the truth is that it expired.
    fn holder_sigstopped_and_nobody_came(bench) {
        let lock = bench.client().lock("job");
        let mut sleeper = actor(bench);
        sleeper.ok(&format!("acquire job {TTL} 0 fixed"));
        sleeper.freeze();
        eventually(SOON, || !lock.is_locked().unwrap());
        sleeper.thaw();
        assert_eq!(sleeper.error("release"), "LeaseExpired");
        assert!(!lock.is_locked().unwrap());
    }
}

/// Ctrl-Z and fg cut system calls short; whoever connects or asks meanwhile hears nothing of it.
#[test]
fn stopped_again_and_again_while_the_server_is_slow() {
    for face in ["blocking", "async"] {
        let server = RedisServer::start();
        server.cli(&["CLIENT", "PAUSE", "500", "ALL"]);
        let mut actor = Actor::start(env!("CARGO_BIN_EXE_actor"));
        actor.order(&format!("connect {} {face}", server.url()));
        let begun = Instant::now();
        while begun.elapsed() < ms(400) {
            actor.freeze();
            actor.thaw();
        }
        let reply = actor.reply();
        assert!(reply["error"].is_null(), "{face}: {reply}");
        actor.ok("acquire job 30000 0 fixed");
    }
}

/// The keeper is a thread of its own: a runtime whose only thread is busy for three ttl keeps its lease...
#[test]
fn runtime_blocked_for_three_ttl() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::new(Kind::Redis, Face::Async);
    runtime.block_on(async {
        let client = Client::open(bench.url()).await.unwrap();
        let lease = client.lock("job").acquire(renewed(2_000, 0)).await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < ms(6_000) {
            thread::sleep(ms(1));
            assert!(lease.is_valid(), "{:?} after {:?}", lease.loss(), begun.elapsed());
        }
        lease.release().await.unwrap();
    });
}

/// ... and a loss is known there while the thread is still busy.
#[test]
fn lease_broken_while_the_runtime_is_blocked() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::new(Kind::Redis, Face::Async);
    let other = open(Face::Blocking, bench.url()).lock("job");
    runtime.block_on(async {
        let client = Client::open(bench.url()).await.unwrap();
        let lease = client.lock("job").acquire(renewed(4_500, 0)).await.unwrap();
        assert!(other.break_lease().unwrap());
        let broken = Instant::now();
        while lease.is_valid() {
            thread::sleep(ms(1));
        }
        // At its next renewal: a third of the ttl.
        assert_within(ms(1_500), broken);
        assert_eq!(lease.loss(), Some(LossReason::Broken));
        lease.lost().await;
        assert_eq!(lease.release().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    });
}

/// A host's event loop that stood still reads the answer that came meanwhile, before it judges that none came: a call that
/// is sent once would be in doubt for nothing.
#[test]
fn event_loop_blocked_while_an_answer_comes() {
    let server = RedisServer::start();
    let _held = open(Face::Blocking, &server.url()).lock("job").acquire(fixed(60_000, 0)).unwrap();
    let _timers = runtime().enter();
    host::block_on(async {
        let client = Client::open(&server.url()).await.unwrap();
        let lock = client.lock("job");
        assert!(lock.is_locked().await.unwrap());
        server.stop_signal();
        let blocked = async {
            // The request is on its way then.
            tokio::time::sleep(ms(100)).await;
            server.cont_signal();
            thread::sleep(ms(1_500));
        };
        let (broken, ()) = tokio::join!(lock.break_lease(), blocked);
        assert!(broken.unwrap());
        assert!(!lock.is_locked().await.unwrap());
    });
}

/// Leases that end by themselves are announced to threads and tasks at the deadline, not at the next poll.
#[test]
fn loss_is_announced_at_the_deadline() {
    for face in [Face::Blocking, Face::Async] {
        let client = open(face, &shared().url());
        // A machine that is busy with others may be late once; a library that is late is so each time.
        let late = |_| {
            let lease = client.lock(&unique("deadline")).acquire(fixed(400, 0)).unwrap();
            let deadline = Instant::now() + lease.remaining();
            assert!(lease.wait_lost(SOON));
            let late = ran_since(deadline);
            assert!(!lease.is_valid());
            assert_eq!(lease.loss(), Some(LossReason::Expired));
            late
        };
        let late: Vec<_> = (0..3).map(late).collect();
        assert!(late.iter().any(|late| *late <= ms(50)), "{face:?}: announced so late: {late:?}");
    }
}
