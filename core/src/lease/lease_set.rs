//! The set of leases behind a `Lease`: on one lock, or on several that are held together; perhaps one of several
//! entries of the same owner.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::base::error::Error;
use crate::engine::call::{Answer, CallMachine};
use crate::engine::loss::LossReason;
use crate::lease::held_lock::{HeldLock, Releasing};
use crate::lease::lease_handle::LeaseHandle;
use crate::lease::reentrancy::Entry;
use crate::protocol::Fence;
use crate::session::Live;
use crate::session::options::Extent;
use crate::session::tracked_lease::released;

/// How often a thread that waits for the loss of any of several leases checks all of them.
const LOOK_AROUND: Duration = Duration::from_millis(10);

pub(crate) struct LeaseSet {
    /// Never empty: a lease begins with a grant. In the order of their names.
    pub(super) first: HeldLock,
    others: Vec<HeldLock>,
    pub(super) entry: Option<Entry>,
    /// Whether this entry was released; the owner may have others.
    pub(super) left: AtomicBool,
}

impl LeaseSet {
    pub(crate) fn new(held: HeldLock, entry: Option<Entry>) -> Self {
        Self { first: held, others: Vec::new(), entry, left: AtomicBool::new(false) }
    }

    /// Of several locks; `None` if there is none.
    pub(crate) fn of(mut all: impl Iterator<Item = HeldLock>) -> Option<Self> {
        let first = all.next()?;
        Some(Self { others: all.collect(), ..Self::new(first, None) })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &HeldLock> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The lock, if it is one.
    pub(crate) fn only(&self, operation: &'static str) -> Result<&HeldLock, Error> {
        if self.others.is_empty() {
            return Ok(&self.first);
        }
        let error = Error::invalid("not possible with a lease of several locks");
        Err(error.during(operation, self.name()))
    }

    pub(crate) fn first(&self) -> &HeldLock {
        &self.first
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.first.kept.live
    }

    pub(crate) fn name(&self) -> &str {
        self.first.lock.name.as_str()
    }

    pub(crate) fn fence(&self) -> Fence {
        self.first.lock.fence()
    }

    pub(crate) fn fences(&self) -> Vec<(String, Fence)> {
        self.all().map(|held| (held.lock.name.as_str().to_owned(), held.lock.fence())).collect()
    }

    pub(crate) fn remaining(&self) -> Duration {
        if self.has_left() {
            return Duration::ZERO;
        }
        self.all().map(|held| held.kept.remaining()).min().unwrap_or_default()
    }

    pub(crate) fn is_valid(&self) -> bool {
        !self.has_left() && self.all().all(|held| held.kept.is_valid())
    }

    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Error> {
        if self.has_left() {
            return Err(released().during(operation, self.name()));
        }
        self.all().try_for_each(|held| held.check(operation))
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.all().find_map(|held| held.kept.loss())
    }

    /// Waits as a thread for the loss of any of them; see [`TrackedLease::wait_lost`](crate::session::tracked_lease::TrackedLease::wait_lost).
    pub(crate) fn wait_lost(&self, time: Duration, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> bool {
        let kept = &self.first.kept;
        if self.others.is_empty() || !kept.can_be_lost() {
            return kept.wait_lost(time, interrupt);
        }
        let until = kept.live.clock.now() + time;
        loop {
            if self.loss().is_some() || self.has_left() {
                return true;
            }
            let now = kept.live.clock.now();
            if now >= until {
                return false;
            }
            kept.wait_lost(LOOK_AROUND.min(until.since(now)), &mut || ControlFlow::Continue(()));
            if interrupt().is_break() {
                return false;
            }
        }
    }

    /// The requests that prolong all leases; an error if one of them is known to be lost.
    pub(crate) fn extend(&self, extent: Extent) -> Result<Vec<CallMachine>, Error> {
        extent.check().map_err(|error| error.during("extend", self.name()))?;
        self.check("extend")?;
        self.all().map(|held| held.extend(extent)).collect()
    }

    /// Applies the replies to an extension, and returns the first error.
    pub(crate) fn extended(&self, extent: Extent, answers: Vec<Result<Answer, Error>>) -> Result<(), Error> {
        let extended = |(held, answer): (&HeldLock, Result<Answer, Error>)| held.extended(extent, answer?);
        self.all().zip(answers).map(extended).fold(Ok(()), Result::and)
    }

    /// Ends it on our side, and returns the releases to send: none if the owner has other entries.
    pub(crate) fn release(&self, cooldown: Option<Duration>) -> Result<Releases, Error> {
        if let Some(cooldown) = cooldown {
            // Before anything ends.
            self.all().try_for_each(|held| held.check_cooldown(cooldown))?;
        }
        if self.entry.is_none() && self.others.is_empty() {
            return self.first.release(cooldown).map(Releases::of_one);
        }
        self.live().check_generation().map_err(|error| error.during("release", self.name()))?;
        if self.left.swap(true, Ordering::Relaxed) {
            return Err(released().during("release", self.name()));
        }
        if self.entry.as_ref().is_some_and(|entry| !entry.leave(&self.first)) {
            return self.first.check("release").map(|()| Releases::default());
        }
        let mut releases = Releases::default();
        self.all().for_each(|held| releases.add(held.release(cooldown)));
        Ok(releases)
    }

    pub(crate) fn detach(&self) -> LeaseHandle {
        if let Some(entry) = &self.entry {
            entry.leave(&self.first);
        }
        self.first.detach()
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

/// The releases of all locks of a lease, on their way.
pub(crate) struct Releases {
    sent: Vec<Releasing>,
    /// The first error that was found before anything was sent.
    told: Result<(), Error>,
}

impl Default for Releases {
    fn default() -> Self {
        Self { sent: Vec::new(), told: Ok(()) }
    }
}

impl Releases {
    fn of_one(releasing: Releasing) -> Self {
        Self { sent: vec![releasing], told: Ok(()) }
    }

    fn add(&mut self, releasing: Result<Releasing, Error>) {
        match releasing {
            Ok(releasing) => self.sent.push(releasing),
            Err(error) => self.told = std::mem::replace(&mut self.told, Ok(())).and(Err(error)),
        }
    }

    pub(crate) fn machines(&mut self) -> impl Iterator<Item = &mut CallMachine> {
        self.sent.iter_mut().map(|releasing| &mut releasing.machine)
    }

    /// Judges all replies, and returns the first error: a lease that was not valid to the end.
    pub(crate) fn judge(self, answers: Vec<Result<Answer, Error>>) -> Result<(), Error> {
        let judge = |(releasing, answer): (&Releasing, Result<Answer, Error>)| releasing.judge(answer);
        self.told.and(self.sent.iter().zip(answers).map(judge).fold(Ok(()), Result::and))
    }
}
