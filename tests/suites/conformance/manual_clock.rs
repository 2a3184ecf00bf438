//! `memory:` with a clock that the test moves: what users' own tests do.

use stanchion::{ErrorKind, HeldAs, LockOptions, ManualClock, Task};
use stanchion_tests::faces::{AnyClient, Face, Stop};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, task};

use crate::{fixed, ms, secs};

/// Two clients of a store in memory, and the clock of all three.
pub(crate) struct Fixture {
    pub(crate) clock: ManualClock,
    pub(crate) one: AnyClient,
    pub(crate) two: AnyClient,
    pub(crate) bench: Bench,
}

pub(crate) fn fixture(face: Face) -> Fixture {
    let bench = Bench::new(Kind::Memory, face);
    let clock = ManualClock::new();
    let open = || bench.open(bench.builder().clock(&clock));
    let (one, two) = (open(), open());
    Fixture { clock, one, two, bench }
}

/// Two tests of each function: through either face.
macro_rules! on_both_faces {
    ($(fn $name:ident($fixture:ident) $body:block)+) => {$(
        mod $name {
            use super::*;
            fn run($fixture: &$crate::manual_clock::Fixture) $body
            #[test]
            fn through_async() {
                run(&$crate::manual_clock::fixture(stanchion_tests::faces::Face::Async));
            }
            #[test]
            fn through_blocking() {
                run(&$crate::manual_clock::fixture(stanchion_tests::faces::Face::Blocking));
            }
        }
    )+};
}

on_both_faces! {
    fn a_lease_expires_when_the_clock_says_so(fixture) {
        let lease = fixture.one.lock("a").acquire(fixed(secs(30))).unwrap();
        let lock = fixture.two.lock("a");
        assert_eq!(lease.remaining(), ms(30_000 - 302), "the margin is 1 % and 2 ms");
        fixture.clock.advance(ms(29_697));
        assert!(lease.is_valid());
        fixture.clock.advance(ms(1));
        assert!(!lease.is_valid());
        assert!(lock.try_acquire(LockOptions::new()).unwrap().is_none(), "the store waits the full ttl");
        fixture.clock.advance(ms(302));
        let next = lock.try_acquire(LockOptions::new()).unwrap().unwrap();
        assert!(next.fence() > lease.fence());
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        next.release().unwrap();
    }

    fn time_stands_still_unless_it_is_moved(fixture) {
        let lease = fixture.one.lock("a").acquire(fixed(ms(50))).unwrap();
        let left = lease.remaining();
        assert!(!lease.wait_lost(ms(0)));
        eventually(SOON, || fixture.two.lock("a").is_locked().unwrap());
        assert_eq!(lease.remaining(), left);
        lease.release().unwrap();
    }

    fn a_lease_is_renewed_when_the_clock_moves_on(fixture) {
        let lease = fixture.one.lock("a").acquire(LockOptions::new()).unwrap();
        for _ in 0..10 {
            fixture.clock.advance(secs(12));
            eventually(SOON, || lease.remaining() > secs(25));
        }
        lease.release().unwrap();
    }

    fn max_hold_is_an_hour_unless_given(fixture) {
        let lease = fixture.one.lock("a").acquire(LockOptions::new()).unwrap();
        for _ in 0..297 {
            fixture.clock.advance(secs(12));
            eventually(SOON, || lease.remaining() > secs(25));
        }
        // 36 s of the hour are left; the last renewal is for no more than that.
        fixture.clock.advance(secs(12));
        eventually(SOON, || lease.remaining() > secs(23));
        assert!(lease.remaining() < secs(24));
        fixture.clock.advance(secs(24));
        assert_eq!(lease.loss(), Some(stanchion::LossReason::MaxHold));
    }

    fn a_cooldown_ends_when_the_clock_says_so(fixture) {
        fixture.one.lock("a").acquire(LockOptions::new()).unwrap().release_with_cooldown(secs(60)).unwrap();
        let lock = fixture.two.lock("a");
        fixture.clock.advance(ms(59_999));
        assert_eq!(lock.holder().unwrap().unwrap().held_as, HeldAs::Cooldown);
        assert_eq!(lock.holder().unwrap().unwrap().remaining, Some(ms(1)));
        fixture.clock.advance(ms(1));
        assert!(lock.try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn the_loss_is_signalled_when_the_clock_passes_the_deadline(fixture) {
        let lease = fixture.one.lock("a").acquire(fixed(secs(30))).unwrap();
        fixture.clock.advance(secs(31));
        assert!(lease.wait_lost(secs(1)));
    }

    fn a_worker_until_empty_sees_that_its_own_work_was_the_last(fixture) {
        let queue = fixture.one.queue("q");
        queue.enqueue(Task::new("a")).unwrap();
        // The work takes so long that the worker looks for more meanwhile, and time stands still.
        let work = |_| {
            std::thread::sleep(ms(100));
            Ok(())
        };
        let worker = queue.worker(&Stop::default(), work).concurrency(2).until_empty();
        assert_eq!(task(move || worker.run().unwrap()).join().completed, 1);
    }

    fn a_waiter_gets_the_lock_when_the_clock_ends_the_holder(fixture) {
        let first = fixture.one.lock("a").acquire(fixed(secs(5))).unwrap();
        let waiting = crate::waiter(&fixture.two, "a");
        eventually(SOON, || fixture.one.lock("a").waiters() == 1);
        fixture.clock.advance(ms(4_999));
        assert!(!waiting.has_ended());
        // It asks again no earlier than 5 ms after it has asked in the last moment.
        eventually(SOON, || {
            fixture.clock.advance(ms(1));
            fixture.one.lock("a").holder().unwrap().is_some_and(|holder| holder.fence > first.fence())
        });
        assert!(waiting.join().fence() > first.fence());
    }
}
