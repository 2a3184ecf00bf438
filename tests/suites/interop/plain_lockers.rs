//! Exclusion works both ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stanchion::{ErrorKind, LockOptions};
use stanchion_tests::on_stores_with_foreign_lockers;
use stanchion_tests::wait::{SOON, eventually, holds_within, task};

use crate::{PlainLocker, ms, secs, timed};

on_stores_with_foreign_lockers! {
    fn a_plain_locker_keeps_us_out_until_it_unlocks(bench) {
        let client = bench.client();
        let mut plain = PlainLocker::new(bench, "worker-1");
        assert!(plain.lock(30_000));
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        let error = client.lock("a").acquire(LockOptions::new().wait(ms(100))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        let lock = client.lock("a");
        let waiting = task(move || lock.acquire(LockOptions::new()).unwrap());
        eventually(SOON, || client.lock("a").waiters() == 1);
        assert!(plain.extend(40_000), "we do not touch its key while we wait");
        let (lease, took) = timed(|| {
            assert!(plain.unlock());
            waiting.join()
        });
        // It sends no hints: we find out by our own poll.
        assert!(took.less_than(ms(1_200)), "took {took:?}");
        assert!(lease.is_valid());
        assert!(!plain.lock(30_000));
    }

    fn a_plain_lockers_expiry_lets_us_in(bench) {
        let client = bench.client();
        let mut plain = PlainLocker::new(bench, "worker-1");
        let (lease, took) = timed(|| {
            assert!(plain.lock(250));
            client.lock("a").acquire(LockOptions::new()).unwrap()
        });
        assert!(lease.is_valid());
        assert!(took.at_least(ms(249)) && took.less_than(ms(900)), "took {took:?}");
    }

    fn we_keep_a_plain_locker_out_until_we_release(bench) {
        let lease = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        let mut plain = PlainLocker::new(bench, "worker-1");
        assert!(!plain.lock(30_000));
        assert!(!plain.unlock(), "it deletes only its own value");
        assert!(!plain.extend(1), "and extends only its own");
        assert_eq!(plain.get().as_deref(), Some(lease.token().as_str()), "the value is the token");
        assert!(plain.ttl() > 20_000);
        assert!(lease.is_valid());
        lease.release().unwrap();
        assert!(plain.lock(30_000));
    }

    fn our_expiry_lets_a_plain_locker_in_and_our_late_release_leaves_it_alone(bench) {
        let lease = bench.client().lock("a").acquire(LockOptions::new().ttl(ms(100))).unwrap();
        let mut plain = PlainLocker::new(bench, "worker-1");
        assert!(holds_within(SOON, || plain.lock(30_000)));
        assert!(!lease.is_valid(), "two holders");
        assert!(lease.release().unwrap_err().is_lost());
        assert_eq!(plain.get().as_deref(), Some("worker-1"));
        assert!(plain.unlock());
    }

    fn a_dropped_lease_leaves_a_plain_lockers_value_alone(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new().ttl(ms(60))).unwrap();
        let mut plain = PlainLocker::new(bench, "worker-1");
        assert!(holds_within(SOON, || plain.lock(30_000)));
        drop(lease);
        assert_eq!(client.release_all().unwrap(), 0);
        assert_eq!(plain.get().as_deref(), Some("worker-1"));
    }

    fn our_cooldown_keeps_a_plain_locker_out(bench) {
        let lease = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        let mut plain = PlainLocker::new(bench, "worker-1");
        let (_, took) = timed(|| {
            lease.release_with_cooldown(ms(2_000)).unwrap();
            assert!(!plain.lock(30_000));
            assert!(holds_within(SOON, || plain.lock(30_000)));
        });
        assert!(took.at_least(ms(1_995)), "it got in after {took:?}");
    }

    fn fences_grow_across_a_plain_lockers_turn(bench) {
        let client = bench.client();
        let first = client.lock("a").acquire(LockOptions::new()).unwrap();
        let fence = first.fence();
        first.release().unwrap();
        let mut plain = PlainLocker::new(bench, "worker-1");
        assert!(plain.lock(30_000));
        assert!(plain.unlock());
        assert!(client.lock("a").acquire(LockOptions::new()).unwrap().fence() > fence);
    }

    /// Lockers of all kinds at once; the critical section notices a second one in it.
    fn lockers_of_both_kinds_are_never_inside_together(bench) {
        let inside = Arc::new(AtomicU32::new(0));
        let entries = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let overlap = Arc::new(AtomicBool::new(false));
        let enter = |kind: usize| {
            let (inside, entries, overlap) = (Arc::clone(&inside), Arc::clone(&entries), Arc::clone(&overlap));
            move || {
                overlap.fetch_or(inside.fetch_add(1, Ordering::SeqCst) != 0, Ordering::SeqCst);
                std::thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                entries[kind].fetch_add(1, Ordering::SeqCst);
            }
        };
        let enough = {
            let entries = Arc::clone(&entries);
            move || entries.iter().all(|count| count.load(Ordering::SeqCst) >= 30)
        };
        let mut lockers = Vec::new();
        for value in ["plain-1", "plain-2"] {
            let (mut plain, enter, enough) = (PlainLocker::new(bench, value), enter(0), enough.clone());
            lockers.push(task(move || {
                while !enough() {
                    if plain.lock(10_000) {
                        enter();
                        assert!(plain.unlock());
                    }
                    std::thread::yield_now();
                }
            }));
        }
        for _ in 0..2 {
            let client = bench.open(bench.builder().foreign_share(true));
            let (enter, enough) = (enter(1), enough.clone());
            lockers.push(task(move || {
                while !enough() {
                    let lease = client.lock("a").acquire(LockOptions::new().wait(secs(30))).unwrap();
                    enter();
                    lease.release().unwrap();
                }
            }));
        }
        for locker in lockers {
            locker.join_within(secs(40));
        }
        assert!(!overlap.load(Ordering::SeqCst));
    }

    /// SETNX + GETSET: the value is the time at which the lock ends, and whoever finds it past takes over.
    fn an_old_time_reading_locker_sees_our_lock_end_in_the_far_future(bench) {
        let client = bench.client();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let mut plain = PlainLocker::new(bench, "unused");
        let ends = |plain: &mut PlainLocker| plain.get().unwrap();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let held = ends(&mut plain);
        lease.release_with_cooldown(secs(30)).unwrap();
        let cooling = ends(&mut plain);
        for value in [held, cooling] {
            let mut setnx = redis::cmd("SETNX");
            assert!(!setnx.arg("Lock:a").arg(now + 15.0).query::<bool>(&mut plain.raw).unwrap());
            // As languages read it: as a float, or the digits that fit; in seconds, milli- or microseconds.
            assert!(value.parse::<f64>().unwrap() > now * 1e6 * 2.0, "a time reader would take it over: {value}");
            let leading: u64 = value[..16].parse().unwrap();
            assert!(leading > 4_102_444_800_000_000, "2100 in microseconds");
            assert!(value.bytes().all(|letter| letter.is_ascii_digit()));
        }
    }

    /// What such a locker leaves has no ttl: to us it is busy for as long as it is there.
    fn an_old_time_value_keeps_us_out(bench) {
        let client = bench.client();
        let mut raw = bench.raw();
        redis::cmd("SETNX").arg("Lock:a").arg("1700000000").exec(&mut raw).unwrap();
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        let error = client.lock("a").acquire(LockOptions::new().wait(ms(100))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        redis::cmd("DEL").arg("Lock:a").exec(&mut raw).unwrap();
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }
}
