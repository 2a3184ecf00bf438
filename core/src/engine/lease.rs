//! The life of a lease after it was granted: renewal, and loss announced in time.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::ErrorKind;
use crate::engine::leased::{Extension, Leased};
use crate::engine::loss::LossReason;
use crate::engine::{BACKOFF_FIRST, deadline, margin};
use crate::protocol::{Failure, FailureKind, Fence, Reply, Request};

/// A lease is renewed when a third of its life has passed: two more tries fit before it ends.
const RENEWALS_PER_TTL: u32 = 3;

/// How far a lease has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Ours, as far as is known; the deadline has the last word.
    Held,
    /// Known to be lost.
    Lost(LossReason),
    /// Released, detached, or resumed elsewhere.
    Ended,
}

/// What a lease needs now.
#[derive(Debug)]
pub enum Need {
    /// Nothing until then.
    Nothing(Moment),
    /// Send this renewal.
    Renew(Request),
    /// It is lost: announce it. The request, if any, tidies the store.
    Announce(Option<Request>),
    /// It has ended; forget it.
    Forget,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct LeaseState {
    leased: Leased,
    ttl: Duration,
    /// Until when the store surely keeps it for us.
    lease_end: Moment,
    /// Until when it may be renewed; `None` if it is not renewed.
    hold_until: Option<Moment>,
    next_renewal: Moment,
    failures: u32,
    /// An extension was sent and not answered: it may have prolonged the key beyond the deadline.
    unanswered: bool,
    /// When its owner has had its time.
    timeout: Option<Timeout>,
    /// Its owner is to end, although the lease is still ours, and renewed.
    withdrawn: bool,
    exact: ExactEnds,
    status: Status,
}

/// Ends that were set exactly. Unlike a prolongation, such a request shortens what a later one has given if it comes
/// late: so while one may be on its way, nothing is believed to prolong the lease by more than that would leave.
#[derive(Debug, Default)]
struct ExactEnds {
    /// Those that were not answered, or not at once: a copy may still come.
    open: u32,
    /// The shortest of those.
    least: Duration,
    /// When the last one was answered. Replies to what was sent before mean nothing.
    answered: Option<Moment>,
}

impl ExactEnds {
    /// For how long the lease surely lives after an extension to `left`.
    fn believe(&self, sent: Moment, left: Duration) -> Duration {
        match self.answered {
            Some(answered) if sent < answered => Duration::ZERO,
            _ if self.open > 0 => left.min(self.least),
            _ => left,
        }
    }
}

/// The end of the time that the owner of a lease has, however long the store keeps the lease.
#[derive(Clone, Debug)]
pub struct Timeout {
    /// When that is.
    pub at: Moment,
    /// What the store is told then.
    pub request: Request,
}

/// What a new lease is made of.
#[derive(Debug)]
pub struct LeaseTerms {
    /// What it is on.
    pub leased: Leased,
    /// The ttl that renewals ask for.
    pub ttl: Duration,
    /// Until when it is surely ours.
    pub deadline: Moment,
    /// Until when it may be renewed; `None` if it is not renewed.
    pub hold_until: Option<Moment>,
    /// When its owner has had its time; `None`: as long as it is renewed.
    pub timeout: Option<Timeout>,
}

impl LeaseState {
    /// A lease that has just begun.
    pub fn new(terms: LeaseTerms, now: Moment) -> Self {
        let LeaseTerms { leased, ttl, deadline, hold_until, timeout } = terms;
        Self {
            leased,
            ttl,
            lease_end: deadline,
            hold_until,
            // Of what is left: a lease may be resumed late in its life.
            next_renewal: now + deadline.since(now) / RENEWALS_PER_TTL,
            failures: 0,
            unanswered: false,
            timeout,
            withdrawn: false,
            exact: ExactEnds::default(),
            status: Status::Held,
        }
    }

    /// What it is on.
    pub fn leased(&self) -> &Leased {
        &self.leased
    }

    /// Until when it is surely ours.
    pub fn deadline(&self) -> Moment {
        self.timeout.as_ref().map_or(self.lease_end, |timeout| self.lease_end.min(timeout.at))
    }

    /// The fence for its release to check, if it may have ended without our knowledge: it ran out, or a renewal had no answer.
    /// A copy of its acquire that comes late, from ourselves or from the network, is offered the lock anew then.
    pub fn fence_to_check(&self, now: Moment) -> Option<Fence> {
        let Leased::Lock(lock) = &self.leased else { return None };
        let may_have_ended = lock.acquire_resent || now >= self.deadline() || self.unanswered;
        lock.known_fence().filter(|_| may_have_ended)
    }

    /// The ttl that renewals ask for.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Until when it is renewed, if it is.
    pub fn hold_until(&self) -> Option<Moment> {
        self.hold_until
    }

    /// How far it has come. Says `Lost` as soon as the deadline has passed, announced or not.
    pub fn status(&self, now: Moment) -> Status {
        match self.status {
            Status::Held if now >= self.deadline() => Status::Lost(self.expiry()),
            Status::Held if self.withdrawn => Status::Lost(LossReason::Stopped),
            status => status,
        }
    }

    /// When it next needs something.
    pub fn due(&self) -> Moment {
        match self.renews() {
            true => self.next_renewal.min(self.deadline()),
            false => self.deadline(),
        }
    }

    fn renews(&self) -> bool {
        // What the deadline leaves off: renewing for less gains nothing.
        self.hold_until.is_some_and(|limit| self.lease_end + margin(self.ttl) < limit) && !self.times_out()
    }

    /// Whether its deadline is that of its owner.
    fn times_out(&self) -> bool {
        self.timeout.as_ref().is_some_and(|timeout| self.lease_end >= timeout.at)
    }

    fn expiry(&self) -> LossReason {
        match self.hold_until {
            _ if self.times_out() => LossReason::TimedOut,
            Some(_) if !self.renews() => LossReason::MaxHold,
            _ => LossReason::Expired,
        }
    }

    /// What it needs now.
    pub fn need(&mut self, now: Moment) -> Need {
        if self.status != Status::Held {
            return Need::Forget;
        }
        if now >= self.deadline() {
            self.status = Status::Lost(self.expiry());
            return Need::Announce(self.farewell_if(self.may_leave_something()));
        }
        let (Some(limit), true) = (self.hold_until, self.renews() && now >= self.next_renewal) else {
            return Need::Nothing(self.due());
        };
        let ttl = self.ttl.min(limit.since(now));
        // Unless an answer moves it, the next try comes after the usual pause.
        self.next_renewal = now + self.ttl / RENEWALS_PER_TTL;
        Need::Renew(self.extend_request(ttl))
    }

    /// The request that prolongs it. If its answer does not come, a lock is given back at the deadline.
    pub fn extend_request(&mut self, ttl: Duration) -> Request {
        self.unanswered = true;
        self.leased.extend(ttl, false)
    }

    /// The request that has it end `ttl` from now, also earlier than it would. It may end then whatever the answer,
    /// and is not renewed any more.
    pub fn exact_request(&mut self, ttl: Duration, now: Moment) -> Request {
        self.unanswered = true;
        self.hold_until = None;
        self.lease_end = self.lease_end.min(deadline(now, ttl));
        self.exact.least = if self.exact.open == 0 { ttl } else { ttl.min(self.exact.least) };
        self.exact.open += 1;
        self.leased.extend(ttl, true)
    }

    /// After the answer to an exact request of which no other copy is on its way.
    pub fn exactly_ended(&mut self, now: Moment) {
        self.exact.open = self.exact.open.saturating_sub(1);
        self.exact.answered = Some(now);
    }

    /// Has it renewed at this time, if it is renewed.
    pub(crate) fn renew_at(&mut self, moment: Moment) {
        self.next_renewal = moment;
    }

    /// Applies the reply to an extension that was sent at `sent`. Returns `Announce` if the lease is lost now.
    pub fn extended(&mut self, now: Moment, sent: Moment, result: &Result<Reply, Failure>) -> Need {
        let extension = result.as_ref().map(|reply| self.leased.extension(reply));
        let is_prolonged = matches!(extension, Ok(Extension::Extended(_)));
        self.unanswered &= result.is_err();
        if self.status != Status::Held {
            // Lost while the extension was on its way: what it prolonged is given back.
            let is_lost = matches!(self.status, Status::Lost(_));
            return if is_lost && is_prolonged {
                Need::Announce(self.leased.cleanup())
            } else {
                Need::Forget
            };
        }
        if now >= self.deadline() {
            // A late answer revives nothing; if it prolonged the key, the lock is given back.
            self.status = Status::Lost(self.expiry());
            return Need::Announce(self.farewell_if(is_prolonged || self.may_leave_something()));
        }
        match extension {
            Ok(Extension::Extended(left)) => {
                self.failures = 0;
                let sure = self.exact.believe(sent, left);
                // The key may outlive the deadline, which gives it back then.
                self.unanswered |= sure < left;
                self.lease_end = self.lease_end.max(deadline(sent, sure));
                self.next_renewal = sent + (self.ttl / RENEWALS_PER_TTL).min(left / RENEWALS_PER_TTL);
                Need::Nothing(self.due())
            }
            Ok(Extension::Ended(reason)) => self.lose(reason),
            Err(failure) if failure.is_retryable() => {
                let pause = BACKOFF_FIRST.saturating_mul(1 << self.failures.min(6)).min(self.ttl / 10);
                self.failures += 1;
                self.next_renewal = now + pause.max(Duration::from_millis(5));
                Need::Nothing(self.due())
            }
            Err(Failure { kind: FailureKind::Final(ErrorKind::StoreUnavailable), .. }) => {
                // Out of memory, perhaps: it may pass before the deadline.
                self.next_renewal = now + self.ttl / 10;
                Need::Nothing(self.due())
            }
            // The wish is wrong, the lease is as it was.
            Err(Failure { kind: FailureKind::Final(ErrorKind::InvalidArgument), .. }) => {
                Need::Nothing(self.due())
            }
            Err(_) => self.lose(LossReason::Refused),
        }
    }

    fn lose(&mut self, reason: LossReason) -> Need {
        self.status = Status::Lost(reason);
        Need::Announce(None)
    }

    /// Why it was lost, if that was noticed already.
    pub fn loss(&self) -> Option<LossReason> {
        match self.status {
            Status::Lost(reason) => Some(reason),
            Status::Held | Status::Ended => None,
        }
    }

    /// Has its owner see it as lost. It is renewed as before, so that nobody else gets it meanwhile.
    pub fn withdraw(&mut self) {
        self.withdrawn = true;
    }

    /// Its owner has ended, in time unless its time was over: however long it takes to say so to the store, the timeout is none
    /// of its any more.
    pub fn owner_ended(&mut self, now: Moment) {
        if self.status == Status::Held && now < self.deadline() {
            self.timeout = None;
        }
    }

    /// Ends it on our side: it was released, or handed over.
    pub fn end(&mut self) {
        self.status = Status::Ended;
    }

    /// Whether the store may have something of it past its deadline: a key that was prolonged, or a copy of its
    /// acquire that comes late and stands in line.
    fn may_leave_something(&self) -> bool {
        self.unanswered || matches!(&self.leased, Leased::Lock(lock) if lock.acquire_resent)
    }

    /// The request that gives it back without asking for the truth, if there is one.
    fn farewell_if(&self, wanted: bool) -> Option<Request> {
        if let Some(timeout) = self.timeout.as_ref().filter(|_| self.times_out()) {
            return Some(timeout.request.clone());
        }
        wanted.then(|| self.leased.cleanup()).flatten()
    }
}

#[cfg(test)]
mod tests;
