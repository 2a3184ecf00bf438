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
    assert!(matches!(lease.need(at(9_000)), Need::Nothing(until) if until > at(9_800) && until < at(10_000)));
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
    assert_eq!(lease.deadline(), deadline(at(5_000), Duration::from_secs(1)), "it may be carried out now");
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
    assert!(matches!(lease.need(at(11_900)), Need::Announce(Some(Request::Leave(_)))), "the key lives on");
}

#[test]
fn an_extension_that_was_sent_before_an_exact_end_was_known_does_not_undo_it() {
    let mut lease = lease(None);
    lease.extend_request(TTL * 2);
    lease.exact_request(Duration::from_secs(1), at(2));
    lease.extended(at(4), at(2), &extended(Duration::from_secs(1)));
    lease.exactly_ended(at(4));
    lease.extended(at(5), at(1), &extended(TTL * 2));
    assert_eq!(lease.deadline(), deadline(at(2), Duration::from_secs(1)), "carried out before or after it");
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
