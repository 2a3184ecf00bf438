//! Acquires that are given up: at every step, with requests and replies delayed or lost. Afterwards nothing
//! of them is left, and the lock is as free as if they had never been.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use stanchion::{Client, ErrorKind, LockOptions, blocking};
use stanchion_tests::faces::{AnyLease, AnyLock, Face, runtime};
use stanchion_tests::proxy::{Fault, Flow, Half, Proxy};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, eventually_some, ran_since, task};
use stanchion_tests::{shared, unique};

use crate::giving_up::{Polls, faults, late};
use crate::{RESEND, SLACK, assert_within, fixed, ms, open};

/// A lease so long that an orphan would be noticed.
fn long() -> LockOptions {
    fixed(60_000, 60_000)
}

/// Fails unless the lock is free of the one that was given up, at once or as soon as the fault allows.
#[track_caller]
pub(crate) fn assert_no_orphan(truth: &AnyLock, holder: Option<AnyLease>, what: &str) {
    let ended = Instant::now();
    eventually(SOON, || truth.waiters() == 0);
    if let Some(holder) = holder {
        assert!(holder.is_valid(), "{what}");
        holder.release().unwrap();
    }
    // What was given up before it was sent may still be on its way, with its clean-up behind it.
    let next = eventually_some(SOON, || truth.try_acquire(fixed(1_000, 0)).unwrap());
    // A clean-up that was swallowed with its connection is sent again.
    assert!(ran_since(ended) < RESEND + SLACK, "{what}: something was left for {:?}", ran_since(ended));
    next.release().unwrap();
}

/// The acquire reaches the server after its own clean-up did, if this fault holds it up.
#[track_caller]
fn assert_late_copy_changes_nothing(
    proxy: &Proxy,
    fault: Option<&Fault>,
    before: Option<usize>,
    truth: &AnyLock,
) {
    if late(proxy, fault, "acquire").is_none() {
        return;
    }
    eventually(SOON, || late(proxy, fault, "acquire") > before);
    // By the second answer the server has read what reached it before the first question.
    for _ in 0..2 {
        let holder = truth.holder().unwrap();
        assert!(holder.is_none(), "a late copy of an acquire that was given up got the lock: {holder:?}");
    }
}

/// The future is dropped at each of its await points, on a lock that is free, and on one that is held.
#[test]
fn cancelled_acquire_leaves_no_orphan_at_any_await() {
    for fault in faults() {
        let proxy = Proxy::start(shared());
        let client = runtime().block_on(Client::open(&proxy.url())).unwrap();
        let truth_client = open(Face::Blocking, &shared().url());
        for is_held in [false, true] {
            for left in 1..=6 {
                let name = unique("cancelled");
                let truth = truth_client.lock(&name);
                let holder = is_held.then(|| truth.acquire(long()).unwrap());
                proxy.behave();
                if let Some(fault) = &fault {
                    proxy.fault("acquire", 1, fault.clone());
                }
                let acquire = client.lock(&name);
                let given_up = async {
                    let polls = Polls::new(acquire.acquire(long()), left);
                    // One that waits for a hint is polled no more, and is given up where it is.
                    tokio::time::timeout(ms(40), polls).await.ok().flatten()
                };
                let (counted, before) = (proxy.count("acquire"), late(&proxy, fault.as_ref(), "acquire"));
                drop(runtime().block_on(given_up));
                let what = format!("{fault:?}, held {is_held}, after {left} polls");
                assert_no_orphan(&truth, holder, &what);
                if proxy.count("acquire") > counted {
                    assert_late_copy_changes_nothing(&proxy, fault.as_ref(), before, &truth);
                }
            }
        }
    }
}

/// A release of several locks that is dropped at each of its await points: what was not sent yet is sent in the
/// background.
#[test]
fn cancelled_release_of_several_locks_leaves_none_behind() {
    let truth = open(Face::Blocking, &shared().url());
    for left in 1..=4 {
        let proxy = Proxy::start(shared());
        proxy.fault("release", usize::MAX, Fault::DelayReply(ms(5)));
        let client = runtime().block_on(Client::open(&proxy.url())).unwrap();
        let names = ["a", "b", "c"].map(|name| unique(&format!("several-{name}")));
        let several = client.multi_lock(&names.each_ref().map(String::as_str));
        let given_up = async {
            let lease = several.acquire(long()).await.unwrap();
            let polls = Polls::new(lease.release(), left);
            assert!(polls.await.is_none() || left > 1, "the release ended before it could be given up");
        };
        runtime().block_on(given_up);
        for name in &names {
            eventually(SOON, || !truth.lock(name).is_locked().unwrap());
        }
    }
}

on_both_faces! {
    /// As for one lock: what was asked for in time is waited for.
    fn several_free_locks_are_got_by_a_wait_that_is_shorter_than_a_round_trip(face) {
        let proxy = Proxy::start(shared());
        let names = ["a", "b"].map(|name| unique(&format!("several-{name}")));
        let several = open(face, &proxy.url()).multi_lock(&names.each_ref().map(String::as_str));
        proxy.fault("acquire_all", 1, Fault::DelayReply(ms(100)));
        several.acquire(fixed(60_000, 20)).unwrap().release().unwrap();
    }

    /// Those that were taken already are given back in the background: each release would wait for its own timeout.
    fn several_locks_end_their_wait_in_time_when_the_server_falls_silent(face) {
        let proxy = Proxy::start(shared());
        let names = ["a", "b", "c", "d"].map(|name| unique(&format!("several-{name}")));
        let truth = open(Face::Blocking, &shared().url());
        let held = truth.lock(&names[3]).acquire(long()).unwrap();
        let several = open(face, &proxy.url()).multi_lock(&names.each_ref().map(String::as_str));
        let waiting = task(move || {
            several.acquire(fixed(60_000, 1_500)).unwrap_err().kind()
        });
        eventually(SOON, || truth.lock(&names[3]).waiters() == 1);
        let silent = Instant::now();
        proxy.flow(Flow { held: Some(Half::Both), ..Flow::default() });
        let kind = waiting.join();
        let took = ran_since(silent);
        assert_eq!(kind, ErrorKind::StoreUnavailable);
        assert!(took < ms(1_500) + RESEND + SLACK, "waited for {took:?}");
        proxy.behave();
        held.release().unwrap();
        for name in &names {
            eventually(SOON, || !truth.lock(name).is_locked().unwrap());
        }
    }

    /// Given up as soon as the request has arrived, and while it waits in line.
    fn cancelled_acquire_leaves_no_orphan(face) {
        for fault in faults() {
            for is_held in [false, true] {
                let proxy = Proxy::start(shared());
                let name = unique("cancelled");
                let truth = open(Face::Blocking, &shared().url()).lock(&name);
                let holder = is_held.then(|| truth.acquire(long()).unwrap());
                if let Some(fault) = &fault {
                    proxy.fault("acquire", 1, fault.clone());
                }
                let cancel = Cancel::start(face, &proxy.url(), &name);
                eventually(SOON, || proxy.count("acquire") > 0);
                let has_ended = cancel.finish();
                assert!(has_ended < RESEND + SLACK, "{fault:?}: gave up after {has_ended:?}");
                assert_no_orphan(&truth, holder, &format!("{fault:?}, held {is_held}"));
                assert_late_copy_changes_nothing(&proxy, fault.as_ref(), Some(0), &truth);
            }
        }
    }

    /// The lock was handed to the one that gives up, who does not know yet: the next in line gets it.
    fn waiter_cancelled_while_being_granted(face) {
        let proxy = Proxy::start(shared());
        let name = unique("granted");
        let truth = open(Face::Blocking, &shared().url()).lock(&name);
        let holder = truth.acquire(long()).unwrap();
        proxy.flow(Flow { drop_messages: true, ..Flow::default() });
        let cancel = Cancel::start(face, &proxy.url(), &name);
        eventually(SOON, || truth.waiters() == 1);
        let second = truth.clone();
        let waiting = task(move || second.acquire(long()).unwrap());
        eventually(SOON, || truth.waiters() == 2);

        holder.release().unwrap();
        let released = Instant::now();
        cancel.finish();
        let next = waiting.join();
        // A blocking wait comes back to its host every 50 ms; without a leave it would be a grant window.
        assert_within(ms(50), released);
        next.release().unwrap();
        assert!(!truth.is_locked().unwrap());
    }

    /// The same, when its poll has been granted and the reply is on its way.
    fn waiter_cancelled_with_the_grant_on_its_way(face) {
        let proxy = Proxy::start(shared());
        let name = unique("granted");
        let truth = open(Face::Blocking, &shared().url()).lock(&name);
        let holder = truth.acquire(long()).unwrap();
        let cancel = Cancel::start(face, &proxy.url(), &name);
        eventually(SOON, || truth.waiters() == 1);
        let second = truth.clone();
        let waiting = task(move || second.acquire(long()).unwrap());
        eventually(SOON, || truth.waiters() == 2);

        let performed = proxy.performed("acquire");
        proxy.fault("acquire", usize::MAX, Fault::DelayReply(ms(300)));
        holder.release().unwrap();
        eventually(SOON, || proxy.performed("acquire") > performed);
        let released = Instant::now();
        cancel.finish();
        let next = waiting.join();
        // A blocking call notices when the delayed reply is there.
        assert_within(ms(300), released);
        next.release().unwrap();
        assert!(!truth.is_locked().unwrap());
    }
}

on_shared_stores! {
    /// The same on every store, while waiting and nothing is wrong.
    fn cancelled_wait(bench) {
        let truth = bench.client().lock("job");
        let holder = truth.acquire(long()).unwrap();
        let cancel = Cancel::start(bench.face, bench.url(), "job");
        eventually(SOON, || truth.waiters() == 1);
        let has_ended = cancel.finish();
        assert!(has_ended < ms(50) + SLACK, "{has_ended:?}");
        assert_no_orphan(&truth, Some(holder), "waiting");
    }
}

/// An acquire that is under way and will be given up.
struct Cancel {
    stop: Arc<AtomicBool>,
    wake: Arc<tokio::sync::Notify>,
    ended: stanchion_tests::wait::Task<()>,
}

impl Cancel {
    fn start(face: Face, url: &str, name: &str) -> Self {
        let (stop, wake) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
        let (url, name) = (url.to_owned(), name.to_owned());
        let (stopped, woken) = (Arc::clone(&stop), Arc::clone(&wake));
        let ended = task(move || match face {
            Face::Blocking => {
                let client = blocking::Client::open(&url).unwrap();
                let mut turn = || match stopped.load(Ordering::SeqCst) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                match client.lock(&name).acquire_while(long(), &mut turn) {
                    Ok(lease) => lease.release().unwrap(),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
                }
                // What an abandoned call leaves undone is done by the client's keeper.
                drop(client);
            }
            Face::Async => runtime().block_on(async {
                let client = Client::open(&url).await.unwrap();
                let lock = client.lock(&name);
                tokio::select! {
                    biased;
                    () = woken.notified() => {}
                    lease = lock.acquire(long()) => lease.unwrap().release().await.unwrap(),
                }
            }),
        });
        Self { stop, wake, ended }
    }

    /// Gives the acquire up; how long it took to return, as far as it could run.
    fn finish(self) -> std::time::Duration {
        let begun = Instant::now();
        self.stop.store(true, Ordering::SeqCst);
        self.wake.notify_one();
        self.ended.join();
        ran_since(begun)
    }
}
