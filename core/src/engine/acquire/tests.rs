//! Every race of an acquire, with the time in hand.

use super::*;
use crate::base::name::Prefixes;
use crate::base::token::Token;
use crate::protocol::{ClientId, Digest, Waiter};

const TTL: Duration = Duration::from_secs(30);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(0) + Duration::from_millis(millis)
}

fn order(wait_ms: u64) -> AcquireParams {
    let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
    let wait = Duration::from_millis(wait_ms);
    AcquireParams {
        plan: LockPlan::new(name, TTL, wait, Duration::from_secs(5), "".into()),
        token: Token::from_bits(7),
        min_fence: Fence::NONE,
        waiter: Waiter { client: ClientId(1), seq: 9 },
    }
}

/// A machine at time zero whose channel of hints is open.
fn machine(wait_ms: u64) -> AcquireMachine {
    AcquireMachine::new(order(wait_ms), at(0), true, None, Jitter::seeded(1))
}

fn granted(ttl: Duration) -> Result<Reply, Failure> {
    Ok(Reply::Acquire(AcquireReply::Granted { fence: Fence::new(100), ttl }))
}

fn waiting(remaining_ms: u64) -> Result<Reply, Failure> {
    let remaining = Some(Duration::from_millis(remaining_ms));
    Ok(Reply::Acquire(AcquireReply::Waiting(Obstacle { remaining, unexpiring: None, rank: 0 })))
}

fn busy(remaining_ms: u64) -> Result<Reply, Failure> {
    let remaining = Some(Duration::from_millis(remaining_ms));
    Ok(Reply::Acquire(AcquireReply::Busy(Obstacle { remaining, unexpiring: None, rank: 0 })))
}

fn lost() -> Result<Reply, Failure> {
    Err(Failure::new(FailureKind::Lost, "no answer"))
}

fn waiting_behind(rank: u32, remaining_ms: u64) -> Result<Reply, Failure> {
    let remaining = Some(Duration::from_millis(remaining_ms));
    Ok(Reply::Acquire(AcquireReply::Waiting(Obstacle { remaining, unexpiring: None, rank })))
}

/// The request that the machine sends now.
fn sent(machine: &mut AcquireMachine, now: Moment) -> (u32, Request) {
    match machine.step(now) {
        Step::Send(call) => (call.number, call.request),
        other => panic!("expected a request, got {other:?}"),
    }
}

fn acquire_sent(machine: &mut AcquireMachine, now: Moment) -> (u32, Acquire) {
    match sent(machine, now) {
        (number, Request::Acquire(acquire)) => (number, acquire),
        other => panic!("expected an acquire, got {other:?}"),
    }
}

fn leave_sent(machine: &mut AcquireMachine, now: Moment) -> u32 {
    match sent(machine, now) {
        (number, Request::Leave(_)) => number,
        other => panic!("expected a leave, got {other:?}"),
    }
}

fn waits_until(machine: &mut AcquireMachine, now: Moment) -> Moment {
    match machine.step(now) {
        Step::Wait { until, .. } => until,
        other => panic!("expected a wait, got {other:?}"),
    }
}

fn grant(machine: &mut AcquireMachine, now: Moment) -> Grant {
    match machine.step(now) {
        Step::Done(Ok(Acquired::Granted(grant))) => grant,
        other => panic!("expected a grant, got {other:?}"),
    }
}

fn error_kind(machine: &mut AcquireMachine, now: Moment) -> ErrorKind {
    match machine.step(now) {
        Step::Done(Err(error)) => error.kind(),
        other => panic!("expected an error, got {other:?}"),
    }
}

#[test]
fn the_deadline_counts_from_the_sending() {
    let mut machine = machine(1_000);
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(900), number, granted(TTL));
    let grant = grant(&mut machine, at(900));
    assert_eq!(grant.deadline, deadline(at(0), TTL));
    assert!(!grant.resent);
    assert!(machine.abandon().is_none(), "the lease is its owner's now");
}

#[test]
fn a_free_lock_is_asked_for_without_registering_until_hints_can_be_heard() {
    let mut machine = AcquireMachine::new(order(1_000), at(0), false, None, Jitter::seeded(1));
    let (number, first) = acquire_sent(&mut machine, at(0));
    assert!(first.waiter.is_none());
    machine.reply(at(1), number, busy(500));
    assert!(matches!(machine.step(at(1)), Step::Listen));
    machine.listening();
    let (_, second) = acquire_sent(&mut machine, at(2));
    assert!(second.waiter.is_some());
    assert_eq!(second.token, first.token, "one call has one token");
}

#[test]
fn a_try_never_registers_and_leaves_no_trace() {
    let mut machine = machine(0);
    let (number, acquire) = acquire_sent(&mut machine, at(0));
    assert!(acquire.waiter.is_none());
    machine.reply(at(1), number, busy(500));
    assert!(matches!(machine.step(at(1)), Step::Done(Ok(Acquired::Busy))));
    assert!(machine.abandon().is_none());
}

#[test]
fn a_try_sent_twice_leaves_before_it_says_busy() {
    let mut machine = machine(0);
    let (first, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(1_000), first, lost());
    let now = waits_until(&mut machine, at(1_000));
    let (second, _) = acquire_sent(&mut machine, now);
    machine.reply(now, second, busy(500));
    let number = leave_sent(&mut machine, now);
    machine.reply(now, number, Ok(Reply::Leave));
    assert!(matches!(machine.step(now), Step::Done(Ok(Acquired::Busy))));
    assert!(machine.abandon().is_none());
}

#[test]
fn a_reply_lost_is_asked_for_again_and_the_grant_knows_of_the_copy() {
    let mut machine = machine(10_000);
    let (first, _) = acquire_sent(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(1)), at(1_000), "sent again after a second");
    let (second, _) = acquire_sent(&mut machine, at(1_000));
    assert_ne!(first, second);
    machine.reply(at(1_001), second, granted(TTL));
    let grant = grant(&mut machine, at(1_001));
    assert!(grant.resent);
    assert_eq!(grant.deadline, deadline(at(1_000), TTL));
}

#[test]
fn a_late_reply_counts_from_its_own_sending() {
    let mut machine = machine(10_000);
    let (first, _) = acquire_sent(&mut machine, at(0));
    acquire_sent(&mut machine, at(1_000));
    machine.reply(at(1_500), first, granted(TTL));
    assert_eq!(grant(&mut machine, at(1_500)).deadline, deadline(at(0), TTL));
}

#[test]
fn a_reply_that_comes_twice_changes_nothing() {
    let mut machine = machine(10_000);
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(5), number, waiting(20_000));
    let until = waits_until(&mut machine, at(5));
    machine.reply(at(6), number, granted(TTL));
    assert_eq!(waits_until(&mut machine, at(6)), until);
}

#[test]
fn a_grant_that_comes_too_late_is_asked_for_again() {
    let mut machine = machine(10_000);
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(900), number, granted(Duration::from_millis(800)));
    let (number, _) = acquire_sent(&mut machine, at(900));
    machine.reply(at(901), number, granted(Duration::from_millis(800)));
    assert_eq!(grant(&mut machine, at(901)).deadline, deadline(at(900), Duration::from_millis(800)));
}

#[test]
fn a_hint_during_a_poll_causes_one_more() {
    let mut machine = machine(10_000);
    let (first, _) = acquire_sent(&mut machine, at(0));
    machine.hint();
    machine.reply(at(1), first, waiting(20_000));
    let (second, _) = acquire_sent(&mut machine, at(1));
    machine.reply(at(2), second, waiting(20_000));
    assert!(waits_until(&mut machine, at(2)) > at(500), "one more, not many");
}

#[test]
fn polls_come_with_jitter_but_not_after_the_holders_end() {
    let mut polled = Vec::new();
    for (seed, remaining) in [(1, 20_000), (2, 20_000), (3, 200), (4, 0)] {
        let mut machine = AcquireMachine::new(order(10_000), at(0), true, None, Jitter::seeded(seed));
        let (number, _) = acquire_sent(&mut machine, at(0));
        machine.reply(at(0), number, waiting(remaining));
        polled.push(waits_until(&mut machine, at(0)));
    }
    assert!(polled[0] >= at(500) && polled[0] <= at(750));
    assert_ne!(polled[0], polled[1]);
    assert_eq!((polled[2], polled[3]), (at(200), at(5)));
}

/// The longest pause that is drawn is the one after which the store counts a waiter as dead, but for its patience.
#[test]
fn whoever_is_far_back_polls_seldom_and_does_not_mind_the_holders_end() {
    let longest = |rank: u32, remaining: u64| {
        let pause = |seed| {
            let mut machine = AcquireMachine::new(order(600_000), at(0), true, None, Jitter::seeded(seed));
            let (number, _) = acquire_sent(&mut machine, at(0));
            machine.reply(at(0), number, waiting_behind(rank, remaining));
            waits_until(&mut machine, at(0)).since(at(0))
        };
        (0..200).map(pause).fold(Duration::ZERO, Duration::max)
    };
    let near = |found: Duration, millis: u64| {
        let most = Duration::from_millis(millis);
        assert!(found <= most && found > most * 95 / 100, "{found:?} of {most:?}");
    };
    for rank in 0..8 {
        near(longest(rank, 60_000), 750);
        assert_eq!(longest(rank, 200), Duration::from_millis(200));
    }
    near(longest(8, 60_000), 1_125);
    near(longest(20, 200), 5_625);
    near(longest(500, 60_000), 20_000);
    near(longest(u32::MAX, 60_000), 20_000);
    assert_eq!(longest(500, 0), POLL_FLOOR, "the lock is free: whose turn it is, is not known yet");
}

#[test]
fn the_holders_end_counts_from_the_question_if_the_answer_took_long() {
    for (took, expected) in [(10, 210), (11, 200), (400, 200)] {
        let mut machine = machine(10_000);
        let (number, _) = acquire_sent(&mut machine, at(0));
        machine.reply(at(took), number, waiting(200));
        match machine.step(at(took)) {
            Step::Wait { until, .. } => assert_eq!(until, at(expected)),
            Step::Send(_) => assert!(at(took) >= at(expected), "asked after {took} ms"),
            other => panic!("expected a wait or a request, got {other:?}"),
        }
    }
}

#[test]
fn a_wait_that_ends_leaves_the_line() {
    let mut machine = machine(300);
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(1), number, waiting(20_000));
    assert_eq!(waits_until(&mut machine, at(1)), at(300));
    let number = leave_sent(&mut machine, at(300));
    machine.reply(at(301), number, Ok(Reply::Leave));
    assert_eq!(error_kind(&mut machine, at(301)), ErrorKind::LockTimeout);
    assert!(machine.abandon().is_none());
}

#[test]
fn a_leave_without_an_answer_is_left_to_others() {
    let mut machine = machine(300);
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(1), number, waiting(20_000));
    let number = leave_sent(&mut machine, at(300));
    machine.reply(at(1_300), number, lost());
    assert_eq!(error_kind(&mut machine, at(1_300)), ErrorKind::LockTimeout);
    assert!(matches!(machine.abandon(), Some(Request::Leave(_))));
}

#[test]
fn cancelled_at_any_step_it_knows_what_to_clean_up() {
    let mut untouched = machine(300);
    assert!(untouched.abandon().is_none(), "nothing was sent");

    let mut in_flight = machine(300);
    acquire_sent(&mut in_flight, at(0));
    assert!(matches!(in_flight.abandon(), Some(Request::Leave(_))));
    assert!(in_flight.abandon().is_none(), "once is enough");

    let mut in_line = machine(300);
    let (number, _) = acquire_sent(&mut in_line, at(0));
    in_line.reply(at(1), number, waiting(20_000));
    assert!(matches!(in_line.abandon(), Some(Request::Leave(_))));

    let mut granted_unseen = machine(300);
    let (number, _) = acquire_sent(&mut granted_unseen, at(0));
    granted_unseen.reply(at(1), number, granted(TTL));
    assert!(matches!(granted_unseen.abandon(), Some(Request::Leave(_))), "nobody took the grant");

    let mut leaving = machine(300);
    let (number, _) = acquire_sent(&mut leaving, at(0));
    leaving.reply(at(1), number, waiting(20_000));
    leave_sent(&mut leaving, at(300));
    assert!(matches!(leaving.abandon(), Some(Request::Leave(_))));
}

#[test]
fn an_unreachable_store_is_unavailable_not_busy() {
    let mut machine = machine(300);
    let mut now = at(0);
    loop {
        match machine.step(now) {
            Step::Send(call) => {
                let down = Failure::new(FailureKind::NotSent, "down");
                machine.reply(now, call.number, Err(down));
            }
            Step::Wait { until, .. } => now = until,
            Step::Done(outcome) => {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::StoreUnavailable);
                break;
            }
            Step::Listen => panic!("nothing to listen to"),
        }
    }
    assert!(now >= at(300) && now < at(900));
    assert!(machine.abandon().is_some(), "it asked to be registered");
}

#[test]
fn a_silent_store_is_unavailable_and_a_leave_is_due() {
    let mut machine = machine(1_500);
    acquire_sent(&mut machine, at(0));
    acquire_sent(&mut machine, at(1_000));
    assert_eq!(error_kind(&mut machine, at(2_000)), ErrorKind::StoreUnavailable);
    assert!(matches!(machine.abandon(), Some(Request::Leave(_))));
}

#[test]
fn a_try_takes_no_longer_than_its_timeout() {
    let mut order = order(0);
    order.plan.timeout = Duration::from_millis(300);
    let mut machine = AcquireMachine::new(order, at(0), true, None, Jitter::seeded(1));
    acquire_sent(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(0)), at(300));
    assert_eq!(error_kind(&mut machine, at(300)), ErrorKind::StoreUnavailable);
}

#[test]
fn a_final_failure_ends_it_at_once() {
    let mut machine = machine(0);
    let (number, _) = acquire_sent(&mut machine, at(0));
    let wrong = Failure::new(FailureKind::Final(ErrorKind::WrongType), "no");
    machine.reply(at(1), number, Err(wrong));
    assert_eq!(error_kind(&mut machine, at(1)), ErrorKind::WrongType);
    assert!(machine.abandon().is_none());
}

/// What takes its grant back may come late, and would end what a later sending is granted.
#[test]
fn a_spent_acquire_is_not_sent_again() {
    for wait in [0, 10_000] {
        let mut machine = machine(wait);
        let (number, _) = acquire_sent(&mut machine, at(0));
        machine.reply(at(1), number, Err(Failure::new(FailureKind::Spent, "too few had it")));
        let number = leave_sent(&mut machine, at(1));
        machine.reply(at(2), number, Ok(Reply::Leave));
        assert_eq!(error_kind(&mut machine, at(2)), ErrorKind::StoreUnavailable);
        assert!(machine.abandon().is_none(), "nothing is left to be done");
    }
}

#[test]
fn a_refusal_that_may_have_come_half_way_is_cleaned_up_after() {
    for kind in [ErrorKind::Denied, ErrorKind::Corrupt] {
        let mut machine = machine(0);
        let (number, _) = acquire_sent(&mut machine, at(0));
        machine.reply(at(1), number, Err(Failure::new(FailureKind::Final(kind), "no")));
        let number = leave_sent(&mut machine, at(1));
        machine.reply(at(2), number, Ok(Reply::Leave));
        assert_eq!(error_kind(&mut machine, at(2)), kind);
    }
}

#[test]
fn who_can_do_without_the_store_waits_a_second_for_it() {
    let mut order = order(60_000);
    order.plan.can_do_without = true;
    let mut machine = AcquireMachine::new(order, at(0), true, None, Jitter::seeded(1));
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(999), number, lost());
    let again = waits_until(&mut machine, at(999));
    let (number, _) = acquire_sent(&mut machine, again);
    // An answer: the second begins anew.
    machine.reply(again, number, waiting(10_000));
    let mut now = waits_until(&mut machine, again);
    let (mut number, _) = acquire_sent(&mut machine, now);
    let failing_since = now;
    loop {
        machine.reply(now, number, lost());
        if now >= failing_since + RESEND_AFTER {
            break;
        }
        now = waits_until(&mut machine, now);
        (number, _) = acquire_sent(&mut machine, now);
    }
    assert_eq!(error_kind(&mut machine, now), ErrorKind::StoreUnavailable);
}

#[test]
fn fail_fast_gives_up_when_the_holder_stays_longer() {
    let mut order = order(1_000);
    order.plan.fail_fast = true;
    let mut machine = AcquireMachine::new(order, at(0), false, None, Jitter::seeded(1));
    let (number, acquire) = acquire_sent(&mut machine, at(0));
    assert_eq!(acquire.patience, Some(Duration::from_secs(1)));
    machine.reply(at(1), number, busy(20_000));
    let Step::Done(Err(error)) = machine.step(at(1)) else { panic!("it does not wait") };
    assert_eq!(error.kind(), ErrorKind::LockTimeout);
    assert!(error.to_string().ends_with("a wait of 1 s does not suffice"), "{error}");
}

#[test]
fn fail_fast_waits_when_the_holder_ends_in_time() {
    let mut order = order(1_000);
    order.plan.fail_fast = true;
    let mut machine = AcquireMachine::new(order, at(0), true, None, Jitter::seeded(1));
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(1), number, waiting(400));
    let poll = waits_until(&mut machine, at(1));
    let (_, acquire) = acquire_sent(&mut machine, poll);
    assert_eq!(acquire.patience, Some(at(1_000).since(poll)), "judged anew at each poll");
}

#[test]
fn a_foreign_value_is_adopted_only_after_it_stood_still_for_the_whole_grace() {
    let mut order = order(60_000);
    order.plan.adopt_after = Some(Duration::from_secs(2));
    let mut machine = AcquireMachine::new(order, at(0), true, None, Jitter::seeded(1));
    let foreign = |digest: &str| {
        let unexpiring = Some(Digest(digest.into()));
        Ok(Reply::Acquire(AcquireReply::Waiting(Obstacle { remaining: None, unexpiring, rank: 0 })))
    };
    let mut now = at(0);
    let mut adopted_at = None;
    while adopted_at.is_none() && now < at(20_000) {
        let (number, acquire) = acquire_sent(&mut machine, now);
        adopted_at = acquire.adopt.map(|_| now);
        // The value changes once, a second after it was seen first.
        machine.reply(now, number, foreign(if now < at(1_000) { "a" } else { "b" }));
        now = waits_until(&mut machine, now);
    }
    let adopted_at = adopted_at.unwrap();
    assert!(adopted_at >= at(3_000), "{adopted_at:?}");
    assert!(adopted_at <= at(4_500), "{adopted_at:?}");
}

fn cached() -> Result<Reply, Failure> {
    Ok(Reply::Acquire(AcquireReply::Cached(b"v".to_vec())))
}

#[test]
fn who_waits_and_finds_the_value_is_done_and_has_left_the_line() {
    let mut machine = machine(10_000);
    let (number, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(1), number, waiting(30_000));
    machine.hint();
    let (number, _) = acquire_sent(&mut machine, at(50));
    machine.reply(at(51), number, cached());
    assert!(
        matches!(machine.step(at(51)), Step::Done(Ok(Acquired::Cached { value, asked })) if value == b"v" && asked == at(50))
    );
    assert!(machine.abandon().is_none(), "the store has taken it out of the line");
}

/// The first copy may still register, or be granted the lock when the value is over.
#[test]
fn a_value_is_answered_at_once_and_what_an_earlier_copy_may_bring_is_cleaned_up() {
    let mut machine = machine(10_000);
    let (first, _) = acquire_sent(&mut machine, at(0));
    machine.reply(at(1_000), first, lost());
    let now = waits_until(&mut machine, at(1_000));
    let (number, _) = acquire_sent(&mut machine, now);
    machine.reply(now, number, cached());
    assert!(matches!(machine.step(now), Step::Done(Ok(Acquired::Cached { .. }))));
    assert!(matches!(machine.abandon(), Some(Request::Leave(_))));
}

/// A wait knows that there was no value a moment ago, and a store that did not answer may be too far away.
#[test]
fn only_the_first_request_of_a_try_looks_for_a_value() {
    let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
    let looks = |machine: &mut AcquireMachine, now| match machine.step(now) {
        Step::Send(Call { request: Request::Acquire(acquire), .. }) => acquire.looks,
        other => panic!("{other:?}"),
    };
    for (kind, wait_ms, first) in
        [(LockKind::Cached, 0, true), (LockKind::Cached, 10_000, false), (LockKind::Exclusive, 0, false)]
    {
        let mut order = order(wait_ms);
        order.plan.name = prefixes.name_of_kind(kind, "a").unwrap();
        let mut machine = AcquireMachine::new(order, at(0), true, None, Jitter::seeded(1));
        assert_eq!(looks(&mut machine, at(0)), first, "{kind:?}");
        assert!(!looks(&mut machine, at(1_000)), "{kind:?}: again");
    }
}
