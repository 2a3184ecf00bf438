//! Requests and replies that are lost, late, doubled or slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stanchion::{Client, ErrorKind, Fence, LossReason};
use stanchion_tests::faces::{AnyClient, AnyLock, Face};
use stanchion_tests::proxy::{Fault, Flow, Proxy};
use stanchion_tests::wait::{SOON, eventually, task};
use stanchion_tests::{shared, unique};

use crate::{RESEND, assert_within, fixed, ms, open, renewed};

/// All ways in which a request that was carried out can stay without its reply.
fn lost_replies() -> [Fault; 3] {
    [Fault::SwallowReply, Fault::CutAfter, Fault::DelayReply(ms(1_100))]
}

/// A client behind a proxy, and one that sees the truth.
struct Stage {
    proxy: Proxy,
    client: AnyClient,
    truth: AnyClient,
    name: String,
}

impl Stage {
    fn new(face: Face) -> Self {
        let proxy = Proxy::start(shared());
        let client = open(face, &proxy.url());
        Self { client, truth: open(Face::Blocking, &shared().url()), name: unique("reply"), proxy }
    }

    fn lock(&self) -> AnyLock {
        self.client.lock(&self.name)
    }

    /// What the store says about the lock, whatever the proxy does.
    fn true_lock(&self) -> AnyLock {
        self.truth.lock(&self.name)
    }

    fn stored(&self) -> String {
        shared().cli(&["GET", &format!("Lock:{}", self.name)])
    }

    fn stored_fence(&self) -> String {
        shared().cli(&["HGET", &format!("stanchion:meta:{{Lock:{}}}", self.name), "fence"])
    }

    /// Fails unless the ordered faults came to pass.
    #[track_caller]
    fn assert_faults_used(&self) {
        assert_eq!(self.proxy.faults_left(), 0, "not every fault came to pass");
    }
}

on_both_faces! {
    /// The repetition finds the lock free, and knows why: the value is stored, once.
    fn store_value_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            let begin = || stage.client.begin_cached(&stage.name, ms(60_000)).unwrap();
            let ticket = begin().ticket();
            stage.proxy.fault("store_value", 1, fault.clone());
            assert!(ticket.store("value").unwrap(), "{fault:?}");
            stage.assert_faults_used();
            assert_eq!(stage.proxy.count("store_value"), 2, "{fault:?}");
            let found = stage.truth.begin_cached(&stage.name, ms(60_000)).unwrap();
            assert_eq!(found.value(), b"value");
            assert_eq!(begin().value(), b"value");
        }
    }

    /// A copy of a downgrade that arrives after an upgrade would let readers in beside a writer.
    fn a_downgrade_that_comes_after_an_upgrade_changes_nothing(face) {
        let stage = Stage::new(face);
        let writer = stage.client.writer(&stage.name).acquire(fixed(60_000, 5_000)).unwrap();
        stage.proxy.fault("permits_downgrade", 1, Fault::CutAndLate(ms(1_000)));
        writer.downgrade().unwrap();
        assert!(writer.upgrade().unwrap());
        eventually(SOON, || stage.proxy.late("permits_downgrade") == 1);
        let reader = stage.truth.reader(&stage.name).try_acquire(fixed(60_000, 0)).unwrap();
        assert!(reader.is_none(), "a reader beside the writer");
        writer.downgrade().unwrap();
        assert!(stage.truth.reader(&stage.name).try_acquire(fixed(60_000, 0)).unwrap().is_some());
        writer.release().unwrap();
    }

    /// After an upgrade that may come late nobody knows the lease's fence: nothing tells a late downgrade from a new one.
    fn an_upgrade_after_a_downgrade_in_doubt_is_refused(face) {
        let stage = Stage::new(face);
        let readers = stage.client.reader(&stage.name);
        let lease = readers.acquire(fixed(60_000, 5_000)).unwrap();
        let other = readers.acquire(fixed(60_000, 5_000)).unwrap();
        stage.proxy.fault("permits_upgrade", 1, Fault::CutAfter);
        assert!(!lease.upgrade().unwrap());
        stage.assert_faults_used();
        lease.downgrade().unwrap();
        other.release().unwrap();
        assert_eq!(lease.upgrade().unwrap_err().kind(), ErrorKind::Indeterminate);
        lease.release().unwrap();
    }

    /// A value that cannot be stored is not lost to who computed it; the next one computes.
    fn store_value_without_an_answer(face) {
        let proxy = Proxy::start(shared());
        let client = AnyClient::open(face, Client::builder(&proxy.url()).timeout(ms(300))).unwrap();
        let (truth, name) = (open(Face::Blocking, &shared().url()), unique("unstored"));
        let ticket = client.begin_cached(&name, ms(60_000)).unwrap().ticket();
        proxy.fault("store_value", 10, Fault::CutBefore);
        assert!(!ticket.store("value").unwrap());
        let next = truth.begin_cached(&name, ms(60_000)).unwrap().ticket();
        assert!(next.store("next").unwrap());
    }

    /// The same lease is granted to the repetition: one token, one fence.
    fn acquire_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            stage.proxy.fault("acquire", 1, fault.clone());
            let begun = Instant::now();
            let lease = stage.lock().acquire(fixed(5_000, 5_000)).unwrap();
            assert_within(RESEND + ms(200), begun);
            stage.assert_faults_used();
            assert_eq!(stage.proxy.count("acquire"), 2, "{fault:?}");
            assert_eq!(stage.stored(), lease.token().as_str());
            assert_eq!(stage.stored_fence(), lease.fence().to_string());
            lease.release().unwrap();
            assert!(!stage.true_lock().is_locked().unwrap());
        }
    }

    /// A try is not a wait, but its lost reply does not make it fail or leave anything behind.
    fn try_acquire_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            stage.proxy.fault("acquire", 1, fault);
            let lease = stage.lock().try_acquire(fixed(5_000, 0)).unwrap().unwrap();
            stage.assert_faults_used();
            assert_eq!(stage.stored(), lease.token().as_str());
            lease.release().unwrap();
            assert!(!stage.true_lock().is_locked().unwrap());
        }
    }

    /// The release says the truth: it was ours to the end, even when another has it by now.
    fn release_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            let lease = stage.lock().acquire(fixed(5_000, 0)).unwrap();
            let waiter = stage.true_lock();
            let waiting = task(move || waiter.acquire(fixed(5_000, 5_000)).unwrap());
            eventually(SOON, || stage.true_lock().waiters() == 1);
            stage.proxy.fault("release", 1, fault);
            lease.release().unwrap();
            stage.assert_faults_used();
            assert_eq!(stage.proxy.count("release"), 2);
            let next = waiting.join();
            assert_eq!(stage.stored(), next.token().as_str());
            next.release().unwrap();
        }
    }

    /// When the deadline passes before an answer comes, nobody can know.
    fn release_reply_lost_until_after_the_deadline(face) {
        let stage = Stage::new(face);
        let lease = stage.lock().acquire(fixed(1_900, 0)).unwrap();
        stage.proxy.fault("release", 2, Fault::SwallowReply);
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Indeterminate);
        assert!(!stage.true_lock().is_locked().unwrap());
    }

    /// A release that never gets through: the lease is given up all the same once the store is back.
    fn release_lost_for_good(face) {
        let stage = Stage::new(face);
        let lease = stage.lock().acquire(fixed(30_000, 0)).unwrap();
        stage.proxy.fault("release", usize::MAX, Fault::CutBefore);
        let begun = Instant::now();
        // Five seconds is the timeout of a client that was given none.
        let kind = lease.release().unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::StoreUnavailable | ErrorKind::Indeterminate), "{kind}");
        assert_within(ms(5_000), begun);
        // The keeper leaves in its place.
        eventually(SOON, || !stage.true_lock().is_locked().unwrap());
    }

    fn extend_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            let lease = stage.lock().acquire(fixed(3_000, 0)).unwrap();
            stage.proxy.fault("extend", 1, fault);
            lease.extend(ms(10_000)).unwrap();
            stage.assert_faults_used();
            assert!(lease.remaining() > ms(9_000), "{:?}", lease.remaining());
            lease.release().unwrap();
        }
    }

    /// The keeper's renewals survive lost replies too.
    fn renewal_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            let lease = stage.lock().acquire(renewed(3_000, 0)).unwrap();
            stage.proxy.fault("extend", 1, fault);
            eventually(SOON, || {
                assert!(lease.is_valid(), "{:?}", lease.loss());
                stage.proxy.performed("extend") >= 3
            });
            lease.release().unwrap();
        }
    }

    /// The handle's token was swapped by a resume whose reply is lost: its repetition gets the lease.
    fn resume_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            let lease = stage.lock().acquire(fixed(5_000, 0)).unwrap();
            let fence = lease.fence();
            let handle = lease.detach(ms(5_000)).unwrap();
            stage.proxy.fault("resume", 1, fault);
            let lease = stage.client.resume_lease(&handle).unwrap();
            stage.assert_faults_used();
            assert_eq!(lease.fence(), fence);
            assert_eq!(stage.stored(), lease.token().as_str());
            assert_eq!(stage.truth.resume_lease(&handle).unwrap_err().kind(), ErrorKind::LeaseLost);
            lease.extend(ms(5_000)).unwrap();
            lease.release().unwrap();
        }
    }

    /// The time that a reply to a resume took is not the new owner's.
    fn resume_answered_late(face) {
        let stage = Stage::new(face);
        let handle = stage.lock().acquire(fixed(5_000, 0)).unwrap().detach(ms(5_000)).unwrap();
        stage.proxy.fault("resume", 1, Fault::DelayReply(ms(600)));
        let lease = stage.client.resume_lease(&handle).unwrap();
        stage.assert_faults_used();
        assert!(lease.remaining() < ms(5_000 - 600), "{:?}", lease.remaining());
        lease.release().unwrap();
    }

    /// A wait that ends leaves the line, whatever becomes of the reply, and does not wait for it long.
    fn leave_reply_lost_after_commit(face) {
        for fault in lost_replies() {
            let stage = Stage::new(face);
            let holder = stage.true_lock().acquire(fixed(30_000, 0)).unwrap();
            stage.proxy.fault("leave", 1, fault);
            let begun = Instant::now();
            assert_eq!(stage.lock().acquire(fixed(500, 200)).unwrap_err().kind(), ErrorKind::LockTimeout);
            assert_within(ms(200) + RESEND, begun);
            stage.assert_faults_used();
            eventually(SOON, || stage.true_lock().waiters() == 0);
            holder.release().unwrap();
            assert!(!stage.true_lock().is_locked().unwrap());
        }
    }

    /// The request to leave is lost itself: the keeper sends it again.
    fn leave_lost(face) {
        for fault in [Fault::Drop, Fault::CutBefore] {
            let stage = Stage::new(face);
            let holder = stage.true_lock().acquire(fixed(30_000, 0)).unwrap();
            stage.proxy.fault("leave", 1, fault);
            assert_eq!(stage.lock().acquire(fixed(500, 200)).unwrap_err().kind(), ErrorKind::LockTimeout);
            let ended = Instant::now();
            eventually(SOON, || stage.true_lock().waiters() == 0);
            assert_within(RESEND, ended);
            holder.release().unwrap();
            assert!(!stage.true_lock().is_locked().unwrap());
        }
    }

    /// Breaking is never repeated: a repetition could break the next owner's lease. Its reply is awaited until the timeout.
    fn break_lease_reply_lost_after_commit(face) {
        for fault in [Fault::SwallowReply, Fault::CutAfter, Fault::CutBefore, Fault::Drop] {
            let stage = Stage::new(face);
            let is_performed = matches!(fault, Fault::SwallowReply | Fault::CutAfter);
            let old = stage.true_lock().acquire(fixed(30_000, 0)).unwrap();
            let waiter = stage.true_lock();
            let waiting = task(move || waiter.acquire(renewed(6_000, 8_000)).unwrap());
            eventually(SOON, || stage.true_lock().waiters() == 1);
            stage.proxy.fault("break_lease", 1, fault.clone());
            let lock = open(face, &format!("{}?timeout=0.7", stage.proxy.url())).lock(&stage.name);
            let begun = Instant::now();
            assert_eq!(lock.break_lease().unwrap_err().kind(), ErrorKind::Indeterminate, "{fault:?}");
            assert_within(ms(700), begun);
            assert_eq!(stage.proxy.count("break_lease"), 1, "{fault:?}");
            if is_performed {
                let next = waiting.join();
                assert_eq!(old.extend(ms(30_000)).unwrap_err().kind(), ErrorKind::LeaseLost);
                assert_eq!(old.loss(), Some(LossReason::Broken));
                assert!(next.is_valid());
                next.extend(ms(6_000)).unwrap();
                next.release().unwrap();
            } else {
                old.release().unwrap();
                waiting.join().release().unwrap();
            }
        }
    }

    /// A store that never answers is unavailable, within the client's timeout or the wait.
    fn requests_lost_for_good(face) {
        let stage = Stage::new(face);
        stage.proxy.fault_where(usize::MAX, Fault::Drop, |incoming| incoming.verb == "acquire");
        let begun = Instant::now();
        let error = stage.lock().acquire(fixed(1_000, 1_500)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        // The wait, and one more try to leave.
        assert_within(ms(1_500) + RESEND, begun);
    }

    /// Every request reaches the server twice: each script is idempotent by its token.
    fn duplicated_requests(face) {
        let proxies = [Proxy::start(shared()), Proxy::start(shared())];
        let name = unique("doubled");
        let resource = Arc::new(Resource::default());
        let workers: Vec<_> = proxies.iter().map(|proxy| {
            proxy.fault_where(usize::MAX, Fault::Duplicate, |incoming| {
                ["acquire", "extend", "release", "leave"].contains(&&*incoming.verb)
            });
            let (lock, resource) = (open(face, &proxy.url()).lock(&name), Arc::clone(&resource));
            task(move || for _ in 0..40 {
                let lease = lock.acquire(fixed(5_000, 10_000)).unwrap();
                resource.visit(lease.fence(), || {});
                lease.extend(ms(6_000)).unwrap();
                lease.release().unwrap();
            })
        }).collect();
        workers.into_iter().for_each(|worker| worker.join());
        assert!(proxies[0].performed("acquire") > proxies[0].count("acquire"), "nothing was doubled");
        let truth = open(face, &shared().url()).lock(&name);
        assert!(!truth.is_locked().unwrap());
    }

    /// One byte at a time: everything works, only slower, and the time it took is taken off the lease.
    fn slow_sliced_link(face) {
        let stage = Stage::new(face);
        stage.proxy.flow(Flow { sliced: Some(Duration::from_micros(100)), ..Flow::default() });
        let begun = Instant::now();
        let lease = stage.lock().acquire(fixed(20_000, 20_000)).unwrap();
        let (took, remaining) = (begun.elapsed(), lease.remaining());
        assert!(took > ms(20), "{took:?} is not slow");
        // Without the margin for clocks, 1 % and 2 ms.
        assert!(remaining + took / 2 < ms(20_000 - 202), "{remaining:?} left of 20 s after {took:?}");
        lease.extend(ms(30_000)).unwrap();
        let waiter = stage.lock();
        let waiting = task(move || waiter.acquire(fixed(20_000, 20_000)).unwrap());
        eventually(SOON, || stage.true_lock().waiters() == 1);
        lease.release().unwrap();
        waiting.join().release().unwrap();
        assert!(!stage.true_lock().is_locked().unwrap());
    }

    /// The reply comes so late that the lease it grants has run out: the acquire asks again.
    fn grant_that_comes_after_its_own_deadline(face) {
        eventually(SOON, || {
            let stage = Stage::new(face);
            stage.proxy.fault("acquire", 1, Fault::DelayReply(ms(900)));
            let begun = Instant::now();
            let lease = stage.lock().acquire(fixed(700, 5_000)).unwrap();
            let is_valid = lease.is_valid();
            stage.assert_faults_used();
            // It may have run out here: then this says nothing.
            if begun.elapsed() > ms(1_500) {
                return false;
            }
            assert!(is_valid, "a lease was returned that has run out");
            lease.release().unwrap();
            true
        });
    }
}

/// A resource that two must not use at once, nor with a fence that falls.
#[derive(Default)]
pub(crate) struct Resource {
    inside: AtomicU64,
    fence: AtomicU64,
}

impl Resource {
    pub(crate) fn visit<T>(&self, fence: Fence, body: impl FnOnce() -> T) -> T {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
        let before = self.fence.swap(fence.get(), Ordering::SeqCst);
        assert!(fence.get() > before, "fence {fence} after {before}");
        let value = body();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        value
    }
}
