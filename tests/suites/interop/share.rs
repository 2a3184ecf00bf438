//! foreign_share: a turn for polling lockers while our own line never ends.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stanchion::{CachedOptions, LockOptions};
use stanchion_tests::on_stores_with_foreign_lockers;
use stanchion_tests::stores::Bench;
use stanchion_tests::wait::{SOON, Task, eventually, holds_within, task};

use crate::{PlainLocker, ms, secs};

/// How long the lock is kept for the next in line.
const OFFER: Duration = secs(1);

/// Clients that hand the lock on to each other without a gap: each releases only when another waits.
struct Crowd {
    stop: Arc<AtomicBool>,
    grants: Arc<AtomicU32>,
    /// Since when the lock is being released, and the longest that the next one took to have it.
    gap: Arc<Mutex<(Option<Instant>, Duration)>>,
    tasks: Vec<Task<()>>,
}

impl Crowd {
    fn gather(bench: &Bench, share: bool) -> Self {
        let (stop, grants) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let gap = Arc::<Mutex<(Option<Instant>, Duration)>>::default();
        let mut tasks = Vec::new();
        for _ in 0..3 {
            let lock = bench.open(bench.builder().foreign_share(share)).lock("a");
            let (stop, grants, gap) = (Arc::clone(&stop), Arc::clone(&grants), Arc::clone(&gap));
            tasks.push(task(move || {
                while !stop.load(Ordering::SeqCst) {
                    let lease = lock.acquire(LockOptions::new().wait(secs(30))).unwrap();
                    grants.fetch_add(1, Ordering::SeqCst);
                    {
                        let mut gap = gap.lock().unwrap();
                        let took = gap.0.take().map_or(Duration::ZERO, |released| released.elapsed());
                        gap.1 = gap.1.max(took);
                    }
                    let next = || stop.load(Ordering::SeqCst) || lock.waiters() > 0;
                    assert!(holds_within(SOON, next));
                    gap.lock().unwrap().0 = Some(Instant::now());
                    lease.release().unwrap();
                }
            }));
        }
        Self { stop, grants, gap, tasks }
    }

    fn grants(&self) -> u32 {
        self.grants.load(Ordering::SeqCst)
    }

    /// The longest that the lock took from one of them to the next.
    fn longest_gap(&self) -> Duration {
        let gap = self.gap.lock().unwrap();
        gap.1.max(gap.0.map_or(Duration::ZERO, |released| released.elapsed()))
    }

    fn disperse(self) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.join_within(secs(30));
        }
    }
}

on_stores_with_foreign_lockers! {
    fn a_polling_locker_gets_its_turn_under_endless_contention(bench) {
        let crowd = Crowd::gather(bench, true);
        assert!(holds_within(SOON, || crowd.grants() > 0));
        let mut plain = PlainLocker::new(bench, "worker-1");
        let got_in = holds_within(secs(20), || plain.lock(10_000) || crowd.grants() > 400);
        let inside = plain.get().as_deref() == Some("worker-1");
        let grants = crowd.grants();
        assert!(got_in && inside, "the polling locker never got in during {grants} grants");
        assert!(grants <= 200, "it got in only after {grants} grants");
        assert!(plain.unlock());
        assert!(holds_within(SOON, || crowd.grants() > grants), "and the line goes on");
        crowd.disperse();
    }

    /// There are none at the computation of a cached value: it is handed on however often it fails.
    fn a_computation_is_handed_on_without_end(bench) {
        let clients = [(); 2].map(|()| bench.open(bench.builder().foreign_share(true)));
        let options = || CachedOptions::new(secs(60)).wait(secs(30)).without_store(false);
        let mut ticket = clients[0].begin_cached("a", options()).unwrap().ticket();
        for failure in 1..50 {
            let next = clients[failure % 2].clone();
            let waiting = task(move || next.begin_cached("a", options()).unwrap().ticket());
            let computation = clients[0].computation("a");
            assert!(holds_within(SOON, || computation.waiters() == 1));
            let released = Instant::now();
            ticket.release().unwrap();
            let is_offered = computation.is_locked().unwrap() || released.elapsed() > OFFER - ms(100);
            assert!(is_offered, "after {failure} failures it is offered to nobody");
            ticket = waiting.join();
        }
        ticket.release().unwrap();
    }

    /// That the turn comes from the option, and not from gaps in the test.
    fn without_the_option_it_gets_no_turn(bench) {
        eventually(3 * SOON, || {
            let crowd = Crowd::gather(bench, false);
            assert!(holds_within(SOON, || crowd.grants() > 0));
            let mut plain = PlainLocker::new(bench, "worker-1");
            let ended = holds_within(secs(20), || plain.lock(10_000) || crowd.grants() > 150);
            let (got_in, gap) = (plain.unlock(), crowd.longest_gap());
            assert!(ended && (!got_in || gap > OFFER - ms(100)), "a gap after {} grants", crowd.grants());
            crowd.disperse();
            // Who was given the lock has a second to take it: on a machine that stands still so long there are gaps.
            !got_in
        });
    }
}
