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
mod tests {
    use super::*;
    use crate::base::name::Prefixes;
    use crate::base::token::Token;
    use crate::engine::leased::LockLease;
    use crate::protocol::{Absence, ExtendReply};

    const TTL: Duration = Duration::from_secs(30);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn lease(hold_until: Option<Moment>) -> LeaseState {
        let leased = Leased::Lock(LockLease {
            name: Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap(),
            token: Token::from_bits(7),
            granted: Fence::new(100),
            acquire_resent: false,
            foreign_share: false,
            share: None,
            owner: "".into(),
        });
        let deadline = deadline(at(0), TTL);
        LeaseState::new(LeaseTerms { leased, ttl: TTL, deadline, hold_until, timeout: None }, at(0))
    }

    fn extended(left: Duration) -> Result<Reply, Failure> {
        Ok(Reply::Extend(ExtendReply::Extended(left)))
    }

    #[test]
    fn a_fixed_lease_expires_at_its_deadline() {
        let mut lease = lease(None);
        assert!(matches!(lease.need(at(29_000)), Need::Nothing(until) if until == lease.deadline()));
        assert_eq!(lease.status(at(29_697)), Status::Held);
        assert_eq!(lease.status(at(29_698)), Status::Lost(LossReason::Expired));
        assert!(matches!(lease.need(at(29_698)), Need::Announce(None)));
        assert!(matches!(lease.need(at(29_699)), Need::Forget));
    }

    #[test]
    fn a_release_checks_the_fence_when_a_renewal_had_no_answer() {
        let mut lease = lease(Some(at(3_600_000)));
        assert_eq!(lease.fence_to_check(at(9_000)), None);
        lease.extend_request(TTL);
        assert_eq!(lease.fence_to_check(at(10_000)), Some(Fence::new(100)));
        lease.extended(at(10_001), at(10_000), &extended(TTL));
        assert_eq!(lease.fence_to_check(at(10_002)), None);
        assert_eq!(lease.fence_to_check(lease.deadline()), Some(Fence::new(100)));
    }

    #[test]
    fn one_whose_acquire_was_sent_twice_says_farewell_when_it_expires() {
        let mut lease = lease(None);
        let Leased::Lock(lock) = &mut lease.leased else { unreachable!() };
        lock.acquire_resent = true;
        assert!(matches!(lease.need(at(29_698)), Need::Announce(Some(Request::Leave(_)))));
    }

    #[test]
    fn a_renewed_lease_is_extended_after_a_third() {
        let mut lease = lease(Some(at(3_600_000)));
        assert!(
            matches!(lease.need(at(9_000)), Need::Nothing(until) if until > at(9_800) && until < at(10_000))
        );
        assert!(matches!(lease.need(at(10_000)), Need::Renew(Request::Extend(extend)) if extend.ttl == TTL));
        lease.extended(at(10_001), at(10_000), &extended(TTL));
        assert_eq!(lease.deadline(), deadline(at(10_000), TTL));
        assert_eq!(lease.due(), at(20_000));
    }

    #[test]
    fn max_hold_has_its_own_reason() {
        let mut lease = lease(Some(at(40_000)));
        assert!(matches!(lease.need(at(10_000)), Need::Renew(_)));
        lease.extended(at(10_001), at(10_000), &extended(TTL));
        assert!(matches!(lease.need(at(20_000)), Need::Nothing(_)));
        assert_eq!(lease.status(at(40_000)), Status::Lost(LossReason::MaxHold));
    }

    /// One whose owner has so much time.
    fn timed(timeout: Moment) -> LeaseState {
        let LeaseState { leased, ttl, lease_end, .. } = lease(None);
        let timeout = Some(Timeout { at: timeout, request: leased.cleanup().unwrap() });
        LeaseState::new(
            LeaseTerms { leased, ttl, deadline: lease_end, hold_until: Some(Moment::FAR), timeout },
            at(0),
        )
    }

    /// It is renewed then for as long as it takes to tell the store; after its time it has failed.
    #[test]
    fn who_has_ended_in_time_does_not_time_out() {
        let mut ended = timed(at(15_000));
        ended.owner_ended(at(9_000));
        assert!(matches!(ended.need(at(10_000)), Need::Renew(_)));
        ended.extended(at(10_001), at(10_000), &extended(TTL));
        assert_eq!(ended.status(at(15_000)), Status::Held);
        assert!(matches!(ended.need(at(60_000)), Need::Announce(_)));
        assert_eq!(ended.loss(), Some(LossReason::Expired));

        let mut late = timed(at(5_000));
        late.owner_ended(at(5_000));
        assert_eq!(late.status(at(5_000)), Status::Lost(LossReason::TimedOut));
    }

    /// The store is told when its time is over, although the lease has some left; an answer that comes then changes nothing.
    #[test]
    fn a_timeout_ends_it_however_often_it_is_renewed() {
        let mut short = timed(at(5_000));
        assert!(matches!(short.need(at(4_000)), Need::Nothing(until) if until == at(5_000)));
        assert_eq!(short.status(at(4_999)), Status::Held);
        assert_eq!(short.status(at(5_000)), Status::Lost(LossReason::TimedOut));
        assert!(matches!(short.need(at(5_000)), Need::Announce(Some(_))));
        assert!(matches!(short.need(at(5_001)), Need::Forget));

        let mut long = timed(at(45_000));
        for now in [10_000, 20_000] {
            assert!(matches!(long.need(at(now)), Need::Renew(_)), "{now}");
            long.extended(at(now + 1), at(now), &extended(TTL));
        }
        assert_eq!(long.deadline(), at(45_000));
        assert!(matches!(long.need(at(30_000)), Need::Nothing(_)), "renewing gains nothing any more");
        assert!(matches!(long.extended(at(45_000), at(44_000), &extended(TTL)), Need::Announce(Some(_))));
        assert_eq!(long.status(at(45_000)), Status::Lost(LossReason::TimedOut));
    }

    #[test]
    fn a_late_answer_revives_nothing_and_gives_the_lock_back() {
        let mut lease = lease(Some(at(3_600_000)));
        assert!(matches!(lease.need(at(29_000)), Need::Renew(_)));
        let need = lease.extended(at(29_700), at(29_000), &extended(TTL));
        assert!(matches!(need, Need::Announce(Some(Request::Leave(_)))));
        assert_eq!(lease.status(at(29_700)), Status::Lost(LossReason::Expired));
    }

    #[test]
    fn an_answer_that_comes_after_the_announcement_gives_the_lock_back_too() {
        let mut lease = lease(None);
        assert!(matches!(lease.need(at(29_698)), Need::Announce(None)));
        let need = lease.extended(at(29_800), at(29_000), &extended(TTL));
        assert!(matches!(need, Need::Announce(Some(Request::Leave(_)))));
        lease.end();
        assert!(matches!(lease.extended(at(29_900), at(29_000), &extended(TTL)), Need::Forget));
    }

    #[test]
    fn a_refused_renewal_is_a_loss_with_its_reason() {
        let gone = |fence, born, broken, foreign| {
            let mut lease = lease(Some(at(3_600_000)));
            let [fence, born, broken] = [fence, born, broken].map(Fence::new);
            let absence = Absence { fence, born, broken, foreign };
            lease.extended(at(10), at(9), &Ok(Reply::Extend(ExtendReply::Gone(absence))));
            lease.status(at(10))
        };
        assert_eq!(gone(0, 0, 0, false), Status::Lost(LossReason::Forgotten));
        assert_eq!(gone(100, 1, 100, false), Status::Lost(LossReason::Broken));
        assert_eq!(gone(101, 1, 0, false), Status::Lost(LossReason::Taken));
        assert_eq!(gone(100, 1, 0, true), Status::Lost(LossReason::Overwritten));
    }

    #[test]
    fn an_unreachable_store_is_asked_again_until_the_deadline() {
        let mut lease = lease(Some(at(3_600_000)));
        let down = Err(Failure::new(FailureKind::NotSent, "down"));
        let mut now = at(10_000);
        let mut tries = 0;
        while !matches!(lease.need(now), Need::Announce(_)) {
            tries += 1;
            lease.extended(now, now, &down);
            now = lease.due();
        }
        assert!(tries > 10, "{tries}");
        assert_eq!(now, deadline(at(0), TTL));
    }

    #[test]
    fn an_extension_without_an_answer_is_given_back_at_the_deadline() {
        let mut lease = lease(None);
        lease.extend_request(Duration::from_secs(3600));
        assert!(matches!(lease.need(at(29_698)), Need::Announce(Some(Request::Leave(_)))));
    }

    #[test]
    fn an_exact_end_holds_from_its_sending_on_and_nothing_is_renewed_any_more() {
        let mut lease = lease(Some(at(3_600_000)));
        let Request::Extend(extend) = lease.exact_request(Duration::from_secs(1), at(5_000)) else {
            panic!("no extension");
        };
        assert!(extend.exact);
        assert_eq!(
            lease.deadline(),
            deadline(at(5_000), Duration::from_secs(1)),
            "it may be carried out now"
        );
        assert_eq!(lease.due(), lease.deadline());
        lease.extended(at(5_010), at(5_002), &extended(Duration::from_secs(1)));
        lease.exactly_ended(at(5_010));
        assert_eq!(lease.deadline(), deadline(at(5_002), Duration::from_secs(1)));
        assert!(matches!(lease.need(at(6_000)), Need::Announce(None)));
        assert_eq!(lease.status(at(6_000)), Status::Lost(LossReason::Expired));
    }

    #[test]
    fn an_exact_end_may_be_later_too() {
        let mut lease = lease(None);
        lease.exact_request(TTL * 2, at(5_000));
        assert_eq!(lease.deadline(), deadline(at(0), TTL), "until the answer");
        lease.extended(at(5_010), at(5_000), &extended(TTL * 2));
        lease.exactly_ended(at(5_010));
        assert_eq!(lease.deadline(), deadline(at(5_000), TTL * 2));
    }

    #[test]
    fn a_copy_of_an_exact_end_that_may_still_come_limits_what_comes_after() {
        let mut lease = lease(None);
        lease.exact_request(Duration::from_secs(10), at(0));
        lease.extended(at(1_010), at(1_000), &extended(Duration::from_secs(10)));
        // Sent twice: the first may be carried out after the extension that follows.
        lease.extend_request(TTL);
        lease.extended(at(2_010), at(2_000), &extended(TTL));
        assert_eq!(lease.deadline(), deadline(at(2_000), Duration::from_secs(10)));
        assert!(
            matches!(lease.need(at(11_900)), Need::Announce(Some(Request::Leave(_)))),
            "the key lives on"
        );
    }

    #[test]
    fn an_extension_that_was_sent_before_an_exact_end_was_known_does_not_undo_it() {
        let mut lease = lease(None);
        lease.extend_request(TTL * 2);
        lease.exact_request(Duration::from_secs(1), at(2));
        lease.extended(at(4), at(2), &extended(Duration::from_secs(1)));
        lease.exactly_ended(at(4));
        lease.extended(at(5), at(1), &extended(TTL * 2));
        assert_eq!(
            lease.deadline(),
            deadline(at(2), Duration::from_secs(1)),
            "carried out before or after it"
        );
        lease.extend_request(TTL);
        lease.extended(at(10), at(9), &extended(TTL));
        assert_eq!(lease.deadline(), deadline(at(9), TTL), "what comes later prolongs it again");
    }

    #[test]
    fn an_extension_never_shortens() {
        let mut lease = lease(None);
        lease.extended(at(1), at(0), &extended(Duration::from_secs(5)));
        assert_eq!(lease.deadline(), deadline(at(0), TTL));
    }
}
