//! The keeper: a thread that renews live leases, announces their loss by the deadline, and does the clean-up that
//! abandoned calls left.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::base::clock::{Clock, Moment};
use crate::base::contained::contained;
use crate::base::sigmask::{join, spawn_quietly};
use crate::base::wake::locked;
use crate::engine::lease::{LeaseState, LeaseTerms, Need};
use crate::engine::{Jitter, RESEND_AFTER};
use crate::protocol::{Failure, Reply, Request};
use crate::session::lease_cell::{Account, LeaseCell};
use crate::session::metrics::Meters;
use crate::store::Store;

/// Renewals sent in one round trip.
const BATCH: usize = 256;
/// How long a clean-up is tried: longer than a dead waiter's entry lives, and than most leases.
const CLEANUP_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    clock: Clock,
    meters: Arc<Meters>,
    state: Mutex<KeeperState>,
    changed: Condvar,
    /// A clean-up request has ended.
    ran: Condvar,
}

#[derive(Debug, Default)]
struct KeeperState {
    leases: HashMap<u64, Watched>,
    next_id: u64,
    /// When a lease needs something; the deadline at the latest.
    dues: BTreeSet<(Moment, u64)>,
    cleanups: VecDeque<Cleanup>,
    /// Clean-up requests that are on their way.
    running: usize,
    /// Until when the thread sleeps; earlier needs wake it. It keeps to this even if the lease that it was
    /// woken for has ended meanwhile: to sleep for ever would mean that each short lease wakes it again.
    sleeps_until: Option<Moment>,
    runs: bool,
    closed: bool,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Watched {
    lease: Arc<LeaseCell>,
    /// Its entry in `dues`; none while a renewal is on its way.
    armed: Option<Moment>,
}

fn due_of(lease: &LeaseCell) -> Moment {
    locked(&lease.state).due()
}

/// A clean-up request whose caller has gone or does not wait.
#[derive(Clone, Debug)]
struct Cleanup {
    request: Request,
    next_at: Moment,
    until: Moment,
    failures: u32,
}

impl Cleanup {
    fn new(request: Request, now: Moment) -> Self {
        Self { request, next_at: now, until: now + CLEANUP_FOR, failures: 0 }
    }
}

/// The work of one round: losses to announce, and requests to send: the renewals, then the clean-up.
#[derive(Default)]
struct Round {
    lost: Vec<Arc<LeaseCell>>,
    requests: Vec<Request>,
    renewals: Vec<Arc<LeaseCell>>,
    cleanups: Vec<Cleanup>,
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Clock, meters: Arc<Meters>) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            meters,
            state: Mutex::default(),
            changed: Condvar::new(),
            ran: Condvar::new(),
        })
    }

    /// Watches over a lease that begins now.
    pub(crate) fn keep(self: &Arc<Self>, terms: LeaseTerms, account: Account) -> Arc<LeaseCell> {
        let now = self.clock.now();
        let lease = LeaseState::new(terms, now);
        let due = lease.due();
        let mut state = locked(&self.state);
        let id = state.next_id;
        state.next_id += 1;
        let lease = LeaseCell::new(id, lease, now, account);
        state.leases.insert(id, Watched { lease: Arc::clone(&lease), armed: None });
        state.arm(id, due);
        self.wake(state, due);
        lease
    }

    /// Looks at a lease again: its deadline has moved.
    pub(crate) fn reconsider(self: &Arc<Self>, lease: &LeaseCell) {
        let due = due_of(lease);
        let mut state = locked(&self.state);
        if state.leases.get(&lease.id).is_some_and(|kept| kept.armed.is_some()) {
            state.arm(lease.id, due);
            self.wake(state, due);
        }
    }

    /// Forgets a lease that ended.
    pub(crate) fn forget(&self, lease: &LeaseCell) {
        locked(&self.state).forget(lease.id);
    }

    /// Sends a request until it is answered, in the background.
    pub(crate) fn clean_up(self: &Arc<Self>, request: Request) {
        let now = self.clock.now();
        let mut state = locked(&self.state);
        if state.closed {
            // The client was closed: everything was given back then.
            return;
        }
        state.cleanups.push_back(Cleanup::new(request, now));
        self.wake(state, now);
    }

    /// Waits up to `time` for the clean-up to be done, and returns whether it is.
    pub(crate) fn linger(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = locked(&self.state);
        while !state.cleanups.is_empty() || state.running > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.ran.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// All leases that are kept now.
    pub(crate) fn leases(&self) -> Vec<Arc<LeaseCell>> {
        locked(&self.state).leases.values().map(|kept| Arc::clone(&kept.lease)).collect()
    }

    /// As `close`, and waits until it is done.
    pub(crate) fn finish(&self) {
        self.close();
        let thread = locked(&self.state).thread.take();
        join(thread);
    }

    /// Ends the thread after one more try of what is left to do.
    pub(crate) fn close(&self) {
        let mut state = locked(&self.state);
        state.closed = true;
        self.changed.notify_all();
    }

    /// Starts or wakes the thread if it would sleep past `due`.
    fn wake(self: &Arc<Self>, mut state: std::sync::MutexGuard<'_, KeeperState>, due: Moment) {
        if !state.runs {
            state.runs = true;
            let keeper = Arc::clone(self);
            state.thread = spawn_quietly("stanchion-keeper", move || keeper.run()).ok();
            // Out of threads: the next lease tries again, and validity is computed from the clock anyway.
            state.runs = state.thread.is_some();
        } else if state.sleeps_until.is_some_and(|until| due < until) {
            state.sleeps_until = Some(due);
            self.changed.notify_all();
        }
    }

    fn run(&self) {
        let mut jitter = Jitter::random();
        loop {
            match contained("keeper", || self.work(&mut jitter)) {
                Some(closed) if closed => return,
                Some(_) => {}
                None => {
                    locked(&self.state).recover();
                    thread::sleep(jitter.backoff(0));
                }
            }
        }
    }

    /// Does what is due next. Returns whether the thread is to end.
    fn work(&self, jitter: &mut Jitter) -> bool {
        let (round, closed) = self.next_round();
        // Not under the mutex: it runs subscribers of the trace.
        round.lost.iter().for_each(|lease| lease.announce(self.clock.now()));
        if round.requests.is_empty() {
            return closed;
        }
        self.perform(round, jitter);
        false
    }

    /// Sleeps until something is due, and collects it.
    fn next_round(&self) -> (Round, bool) {
        let mut state = locked(&self.state);
        loop {
            let now = self.clock.now();
            let round = state.collect(now);
            if !round.requests.is_empty() || !round.lost.is_empty() || state.closed {
                state.sleeps_until = None;
                return (round, state.closed);
            }
            let until = state.sleep_until(now);
            state.sleeps_until = Some(until);
            state = if until == Moment::FAR {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                let nap = self.clock.nap(until);
                self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    fn perform(&self, round: Round, jitter: &mut Jitter) {
        let sent = self.clock.now();
        // Whoever waits for a loss looks at the clock itself: a silent store delays no announcement.
        let until = sent + RESEND_AFTER;
        let Round { requests, renewals, cleanups, .. } = round;
        let renewed = renewals.len();
        let mut renewals: Vec<_> = renewals.into_iter().map(Some).collect();
        let mut cleanups: Vec<_> = cleanups.into_iter().map(Some).collect();
        let mut hear = |number: usize, result: Result<Reply, Failure>| match number.checked_sub(renewed) {
            None => {
                if let Some(lease) = renewals[number].take() {
                    self.heard(sent, &result);
                    self.renewed(&lease, sent, &result);
                }
            }
            Some(number) => {
                if let Some(cleanup) = cleanups[number].take() {
                    self.heard(sent, &result);
                    self.ran(cleanup, result, jitter);
                }
            }
        };
        contained("store", || self.store.perform_all(&requests, until, &mut hear));
        (0..requests.len()).for_each(|number| hear(number, no_answer()));
    }

    fn heard(&self, sent: Moment, result: &Result<Reply, Failure>) {
        self.meters.asked(result.as_ref().err(), self.clock.now().since(sent));
    }

    fn renewed(&self, lease: &LeaseCell, sent: Moment, result: &Result<Reply, Failure>) {
        let now = self.clock.now();
        let need = locked(&lease.state).extended(now, sent, result);
        self.meters.renewed(result.is_ok() && matches!(need, Need::Nothing(_)));
        let mut state = locked(&self.state);
        match need {
            Need::Nothing(_) => {
                drop(state);
                let due = due_of(lease);
                locked(&self.state).arm(lease.id, due);
            }
            Need::Announce(cleanup) => {
                state.forget(lease.id);
                state.cleanups.extend(cleanup.map(|request| Cleanup::new(request, now)));
                drop(state);
                lease.announce(now);
            }
            Need::Renew(_) | Need::Forget => state.forget(lease.id),
        }
    }

    fn ran(&self, mut cleanup: Cleanup, result: Result<Reply, Failure>, jitter: &mut Jitter) {
        let now = self.clock.now();
        let mut state = locked(&self.state);
        state.running -= 1;
        if let Err(failure) = result
            && failure.is_retryable()
            && now < cleanup.until
            // After the client was closed, each is tried once.
            && !state.closed
        {
            cleanup.next_at = now + jitter.backoff(cleanup.failures);
            cleanup.failures += 1;
            state.cleanups.push_back(cleanup);
        }
        drop(state);
        self.ran.notify_all();
    }
}

fn no_answer() -> Result<Reply, Failure> {
    Err(Failure::new(crate::protocol::FailureKind::Lost, "the store did not answer"))
}

impl KeeperState {
    fn arm(&mut self, id: u64, due: Moment) {
        self.disarm(id);
        let Some(kept) = self.leases.get_mut(&id) else { return };
        kept.armed = Some(due);
        self.dues.insert((due, id));
    }

    /// Puts back the work of the round in which the thread panicked.
    fn recover(&mut self) {
        self.running = 0;
        let left: Vec<_> = self.leases.iter().filter(|(_, kept)| kept.armed.is_none()).collect();
        let left: Vec<_> = left.into_iter().map(|(id, kept)| (*id, due_of(&kept.lease))).collect();
        left.into_iter().for_each(|(id, due)| self.arm(id, due));
    }

    fn disarm(&mut self, id: u64) {
        if let Some(due) = self.leases.get_mut(&id).and_then(|kept| kept.armed.take()) {
            self.dues.remove(&(due, id));
        }
    }

    fn forget(&mut self, id: u64) {
        self.disarm(id);
        self.leases.remove(&id);
    }

    fn next_due(&self) -> Moment {
        let lease = self.dues.first().map_or(Moment::FAR, |(due, _)| *due);
        self.cleanups.iter().map(|cleanup| cleanup.next_at).fold(lease, Moment::min)
    }

    /// Until when the thread sleeps now. It keeps to what it was woken for even if that lease has ended
    /// meanwhile: if it slept for ever, each short lease would wake it again.
    fn sleep_until(&self, now: Moment) -> Moment {
        let asked = self.sleeps_until.filter(|until| now < *until);
        self.next_due().min(asked.unwrap_or(Moment::FAR))
    }

    /// What is due now.
    fn collect(&mut self, now: Moment) -> Round {
        let mut round = Round::default();
        while round.requests.len() < BATCH
            && let Some(&(due, id)) = self.dues.first()
            && due <= now
        {
            self.disarm(id);
            let Some(lease) = self.leases.get(&id).map(|kept| Arc::clone(&kept.lease)) else { continue };
            let need = locked(&lease.state).need(now);
            match need {
                Need::Nothing(_) => self.arm(id, due_of(&lease)),
                Need::Renew(request) => {
                    round.requests.push(request);
                    round.renewals.push(lease);
                }
                Need::Announce(cleanup) => {
                    self.forget(id);
                    self.cleanups.extend(cleanup.map(|request| Cleanup::new(request, now)));
                    round.lost.push(lease);
                }
                Need::Forget => self.forget(id),
            }
        }
        for _ in 0..self.cleanups.len().min(BATCH) {
            let Some(cleanup) = self.cleanups.pop_front() else { break };
            if cleanup.next_at <= now || self.closed {
                round.requests.push(cleanup.request.clone());
                round.cleanups.push(cleanup);
                self.running += 1;
            } else {
                self.cleanups.push_back(cleanup);
            }
        }
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::blocking::Lock;
    use crate::base::clock::ManualClock;
    use crate::lease::lock_target::{LockTarget, Part};
    use crate::session::builder::ClientBuilder;
    use crate::session::options::LockOptions;

    #[test]
    fn a_thread_woken_for_a_lease_that_has_ended_sleeps_on_until_its_due() {
        let at = |seconds| Moment::from_nanos(0) + Duration::from_secs(seconds);
        let state = KeeperState { sleeps_until: Some(at(10)), ..KeeperState::default() };
        assert_eq!(state.sleep_until(at(1)), at(10));
        assert_eq!(state.sleep_until(at(10)), Moment::FAR);
    }

    /// The machine sleeps while the keeper does; it looks at the clock by itself.
    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_loss_is_noticed_after_a_suspend_though_nobody_waits_for_it() {
        let (clock, ttl) = (ManualClock::that_goes_on(), Duration::from_secs(600));
        let builder = ClientBuilder::new(Some("memory:".into())).clock(&clock);
        let session = Arc::new(builder.session().unwrap());
        let live = Arc::clone(session.live().unwrap());
        let lock = Lock::new(LockTarget::new(session, "a", Part::Exclusive));
        let lease = lock.acquire(LockOptions::new().ttl(ttl)).unwrap();
        let began = Instant::now();
        let until = |what: &str, is_so: &dyn Fn() -> bool| {
            while !is_so() {
                assert!(began.elapsed() < Duration::from_secs(30), "{what}");
                thread::yield_now();
            }
        };
        until("the keeper does not sleep", &|| locked(&live.keeper.state).sleeps_until.is_some());
        clock.advance(ttl);
        until("the keeper sleeps on", &|| locked(&live.keeper.state).dues.is_empty());
        assert!(!lease.is_valid());
    }
}
