//! What a host's thread notices while it is in a call: its turns come, also when the server freezes right after
//! an answer, and a request that is sent twice for their sake is carried out once.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use stanchion::blocking::{Client, with_interrupt_check};
use stanchion::{ClaimOptions, ErrorKind, LockOptions, Outcome, Retry, Task};
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{RedisServer, shared, unique};

/// Longer than a host's thread waits by itself, shorter than the time after which anything is sent again anyway.
const LATE: Duration = Duration::from_millis(300);

thread_local! {
    static TURNS_LEFT: Cell<u32> = const { Cell::new(0) };
}

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A signal that arrives some turns from now.
fn count_down() -> ControlFlow<()> {
    let left = TURNS_LEFT.get();
    TURNS_LEFT.set(left.saturating_sub(1));
    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn lock_options() -> LockOptions {
    LockOptions::new().ttl(Duration::from_secs(60)).wait(Duration::from_secs(60))
}

#[test]
fn server_frozen_right_after_an_answer() {
    let server = RedisServer::start();
    let client = Client::builder(&server.url()).timeout(Duration::from_secs(60)).open_blocking().unwrap();
    let (lock, queue) = (client.lock("job"), client.queue("q"));
    with_interrupt_check(count_down, || {
        let lease = lock.acquire(lock_options()).unwrap();
        let calls: [&dyn Fn() -> Result<(), stanchion::Error>; 5] = [
            &|| lease.extend(Duration::from_secs(60)),
            &|| queue.enqueue(Task::new("a")).map(drop),
            &|| queue.claim(ClaimOptions::new()).map(drop),
            &|| queue.pop(1).map(drop),
            &|| lock.acquire(lock_options()).map(drop),
        ];
        for call in calls {
            TURNS_LEFT.set(0);
            // So quick an answer that the host had no turn meanwhile.
            eventually(SOON, || lock.holder().is_ok());
            server.stop_signal();
            // The server is frozen for as long as this lasts: only the host's turns can end it.
            TURNS_LEFT.set(2);
            let error = call().unwrap_err();
            server.cont_signal();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        }
        TURNS_LEFT.set(u32::MAX);
        lease.release().unwrap();
    });
    // The interrupted acquire has left neither a lock nor a waiter behind.
    eventually(SOON, || client.lock("job").holder().unwrap().is_none());
}

#[test]
fn answers_late_after_quick_ones() {
    let proxy = Proxy::start(shared());
    let client = Client::open(&proxy.url()).unwrap();
    let (lock, queue) = (client.lock(&unique("lock")), client.queue(&unique("queue")));
    let late = |verb| {
        queue.stats().unwrap();
        proxy.fault(verb, 1, Fault::DelayReply(LATE));
    };
    with_interrupt_check(go_on, || {
        for round in 0..3 {
            late("acquire");
            let lease = lock.acquire(lock_options()).unwrap();
            late("extend");
            lease.extend(Duration::from_secs(90)).unwrap();
            late("release");
            lease.release().unwrap();
            late("enqueue");
            let id = format!("task{round}");
            assert_eq!(queue.enqueue(Task::new(id)).unwrap().outcome, Outcome::Added);
            late("claim");
            let claims = queue.claim(ClaimOptions::new().max(10)).unwrap();
            assert_eq!((claims.len(), claims[0].attempt()), (1, 1));
            late("settle");
            claims[0].nack(Retry::After(Duration::ZERO), "once more").unwrap();
            let claims = queue.claim(ClaimOptions::new().wait(SOON)).unwrap();
            assert_eq!(claims[0].attempt(), 2);
            late("settle");
            claims[0].ack().unwrap();
        }
    });
    let stats = queue.stats().unwrap();
    assert_eq!((stats.enqueued, stats.retried, stats.acked), (3, 3, 3));
    assert!(!lock.is_locked().unwrap());
    assert_eq!(proxy.faults_left(), 0);
}

#[test]
fn calls_that_would_do_more_the_second_time() {
    let proxy = Proxy::start(shared());
    let client = Client::open(&proxy.url()).unwrap();
    let (lock, queue) = (client.lock(&unique("lock")), client.queue(&unique("queue")));
    with_interrupt_check(go_on, || {
        let _lease = lock.acquire(lock_options()).unwrap();
        queue.enqueue_many(["a", "b", "c"].map(Task::new)).unwrap();
        for verb in ["pop", "remove", "break_lease", "purge"] {
            queue.stats().unwrap();
            proxy.fault(verb, 1, Fault::DelayReply(LATE));
            match verb {
                "pop" => assert_eq!(queue.pop(1).unwrap().len(), 1),
                "remove" => assert_eq!(queue.remove("b", None).unwrap(), stanchion::Removed::Removed),
                "break_lease" => assert!(lock.break_lease().unwrap()),
                _ => assert_eq!(queue.purge().unwrap(), 1),
            }
            assert_eq!((proxy.count(verb), proxy.faults_left()), (1, 0), "{verb} was sent again");
        }
    });
}

/// Of a timer, a profiler, or a child that has ended: they cut short what a thread reads.
#[test]
fn signals_during_calls_that_would_do_more_the_second_time() {
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::default()).unwrap();
    let proxy = Proxy::start(shared());
    let client = Client::open(&proxy.url()).unwrap();
    let (lock, queue) = (client.lock(&unique("lock")), client.queue(&unique("queue")));
    let _lease = lock.acquire(lock_options()).unwrap();
    queue.enqueue_many(["a", "b"].map(Task::new)).unwrap();
    let caller = pthread_self();
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let signals = std::thread::spawn(move || {
        while !ended.load(Ordering::Acquire) {
            pthread_kill(caller, Signal::SIGUSR1).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let outcomes = ["pop", "remove", "break_lease"].map(|verb| {
        proxy.fault(verb, 1, Fault::DelayReply(LATE));
        match verb {
            "pop" => queue.pop(1).map(|tasks| tasks.len() == 1),
            "remove" => queue.remove("b", None).map(|removed| removed == stanchion::Removed::Removed),
            _ => lock.break_lease(),
        }
    });
    over.store(true, Ordering::Release);
    signals.join().unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome.as_ref().unwrap()), "{outcomes:?}");
}

#[test]
fn a_close_waits_for_the_calls_of_other_threads() {
    let url = unique("memory:turns");
    let (client, other) = (Client::open(&url).unwrap(), Client::open(&url).unwrap());
    let _held = other.lock("a").acquire(lock_options()).unwrap();
    let (in_turn, began) = std::sync::mpsc::channel();
    let (has_closed, closed) = std::sync::mpsc::channel();
    let waiting = client.lock("a");
    let waiting = std::thread::spawn(move || {
        let mut was_early = None;
        let mut turn = || {
            was_early.get_or_insert_with(|| {
                in_turn.send(()).unwrap();
                closed.recv_timeout(Duration::from_millis(300)).is_ok()
            });
            ControlFlow::Continue(())
        };
        let outcome = waiting.acquire_while(lock_options(), &mut turn).map(drop);
        (outcome.unwrap_err().kind(), was_early)
    });
    began.recv_timeout(SOON).unwrap();
    assert_eq!(client.close().unwrap(), 0);
    // Nobody hears it if the turn is over, as it has to be.
    let _ = has_closed.send(());
    assert_eq!(waiting.join().unwrap(), (ErrorKind::Closed, Some(false)));
}

/// As a signal's handler does. The wait beneath it ends afterwards, and leaves nothing although everything is closed.
#[test]
fn a_close_in_a_turn_waits_for_all_calls_but_the_one_beneath() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}/turns.db", folder.path().display());
    for url in [shared().fresh_db(), file, unique("memory:turns")] {
        let client = Client::builder(&url).timeout(Duration::from_secs(600)).open_blocking().unwrap();
        let other = Client::open(&url).unwrap();
        let held = other.lock("a").acquire(lock_options()).unwrap();
        let mine = client.lock("b").acquire(lock_options()).unwrap();
        let (send, ended) = std::sync::mpsc::channel();
        let elsewhere = client.lock("a");
        let waiting = std::thread::spawn(move || elsewhere.acquire(lock_options()).map(drop));
        eventually(SOON, || other.lock("a").waiters().unwrap().len() == 1);
        let closer = client.clone();
        std::thread::spawn(move || {
            let mut closed = None;
            let mut turn = || {
                let waiters = other.lock("a").waiters().unwrap().len();
                if closed.is_none() && waiters == 2 {
                    closed = Some(closer.close());
                }
                ControlFlow::Continue(())
            };
            let outcome = closer.lock("a").acquire_while(lock_options(), &mut turn).map(drop);
            send.send((outcome, closed, other.lock("a").waiters().unwrap().len())).unwrap();
        });
        let (outcome, closed, waiters) =
            ended.recv_timeout(SOON).expect("the close does not wait for its own thread");
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!((closed.unwrap().unwrap(), waiters), (1, 0));
        assert!(!mine.is_valid());
        held.release().unwrap();
    }
}
