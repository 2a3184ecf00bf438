//! Several locks, reply by reply.

use std::time::Duration;

use super::*;
use crate::base::error::ErrorKind;
use crate::base::name::Prefixes;
use crate::protocol::{Absence, AcquireReply, ClientId, ExtendReply, Fence, Obstacle, ReleaseReply, Waiter};

const TTL: Duration = Duration::from_secs(3);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(0) + Duration::from_millis(millis)
}

fn order(wait_ms: u64) -> SeveralParams {
    let (prefixes, wait) = (Prefixes::parse("Lock:", "Queue:").unwrap(), Duration::from_millis(wait_ms));
    let plan = |name| LockPlan::new(name, TTL, wait, Duration::from_secs(5), "".into());
    let lock = |name| AcquireParams {
        plan: plan(prefixes.lock_name(name).unwrap()),
        token: Token::from_bits(7),
        min_fence: Fence::NONE,
        waiter: Waiter { client: ClientId(1), seq: 9 },
    };
    let locks = vec![lock("a"), lock("b"), lock("c")];
    SeveralParams { foreign_holders: vec![None; locks.len()], locks, in_one_step: false }
}

/// A machine at time zero that takes one after the other; its channel of hints is open.
fn machine(wait_ms: u64) -> SeveralMachine {
    SeveralMachine::new(order(wait_ms), at(0), true, Jitter::seeded(1))
}

fn granted(fence: u64) -> Result<Reply, Failure> {
    Ok(Reply::Acquire(AcquireReply::Granted { fence: Fence::new(fence), ttl: TTL }))
}

fn waiting() -> Result<Reply, Failure> {
    Ok(Reply::Acquire(AcquireReply::Waiting(Obstacle { remaining: None, unexpiring: None, rank: 0 })))
}

fn extended() -> Result<Reply, Failure> {
    Ok(Reply::Extend(ExtendReply::Extended(TTL)))
}

fn gone() -> Result<Reply, Failure> {
    Ok(Reply::Extend(ExtendReply::Gone(Absence {
        fence: Fence::new(500),
        born: Fence::new(1),
        ..Absence::default()
    })))
}

fn released() -> Result<Reply, Failure> {
    Ok(Reply::Release(ReleaseReply::Released))
}

fn lost() -> Result<Reply, Failure> {
    Err(Failure::new(FailureKind::Lost, "no answer"))
}

/// What the machine sends now, as "verb name", and the number of the sending.
fn sent(machine: &mut SeveralMachine, now: Moment) -> (u32, String) {
    match machine.step(now) {
        Step::Send(call) => (call.number, format!("{} {}", call.request.verb(), call.request.name())),
        other => panic!("expected a request, got {other:?}"),
    }
}

/// The machine sends this now, and gets this answer.
fn exchange(machine: &mut SeveralMachine, now: Moment, what: &str, reply: Result<Reply, Failure>) {
    let (number, said) = sent(machine, now);
    assert_eq!(said, what);
    machine.reply(now, number, reply);
}

fn waits_until(machine: &mut SeveralMachine, now: Moment) -> Moment {
    match machine.step(now) {
        Step::Wait { until, .. } => until,
        other => panic!("expected a wait, got {other:?}"),
    }
}

fn deadlines(machine: &mut SeveralMachine, now: Moment) -> Vec<(u64, Moment)> {
    match machine.step(now) {
        Step::Done(Ok(Several::Granted { grants, .. })) => {
            grants.iter().map(|grant| (grant.fence.get(), grant.deadline)).collect()
        }
        other => panic!("expected grants, got {other:?}"),
    }
}

fn error_kind(machine: &mut SeveralMachine, now: Moment) -> ErrorKind {
    match machine.step(now) {
        Step::Done(Err(error)) => error.kind(),
        other => panic!("expected an error, got {other:?}"),
    }
}

fn cleanups(machine: &mut SeveralMachine) -> Vec<String> {
    std::iter::from_fn(|| machine.abandon())
        .map(|request| format!("{} {}", request.verb(), request.name()))
        .collect()
}

/// Waits for b from 3 ms on, with a taken at 1 ms.
fn waiting_for_b(wait_ms: u64) -> SeveralMachine {
    let mut machine = machine(wait_ms);
    exchange(&mut machine, at(1), "acquire a", granted(10));
    exchange(&mut machine, at(3), "acquire b", waiting());
    machine
}

/// Lets the machine poll for b and extend a until then.
fn wait_on(machine: &mut SeveralMachine, from: u64, until: u64) -> (u32, u32) {
    let (mut polls, mut extensions) = (0, 0);
    let mut now = at(from);
    while now < at(until) {
        match machine.step(now) {
            Step::Send(call) if call.request.verb() == "acquire" => {
                polls += 1;
                machine.reply(now, call.number, waiting());
            }
            Step::Send(call) => {
                assert_eq!(call.request.verb(), "extend");
                extensions += 1;
                machine.reply(now, call.number, extended());
            }
            Step::Wait { until, .. } => now = until,
            other => panic!("expected a wait, got {other:?}"),
        }
    }
    (polls, extensions)
}

#[test]
fn those_that_are_taken_in_a_moment_are_handed_out_as_they_are() {
    let mut machine = machine(1_000);
    exchange(&mut machine, at(1), "acquire a", granted(10));
    exchange(&mut machine, at(2), "acquire b", granted(20));
    exchange(&mut machine, at(3), "acquire c", granted(30));
    let expected = [(10, deadline(at(1), TTL)), (20, deadline(at(2), TTL)), (30, deadline(at(3), TTL))];
    assert_eq!(deadlines(&mut machine, at(3)), expected);
    assert!(machine.abandon().is_none());
}

#[test]
fn what_is_taken_is_prolonged_while_the_next_is_waited_for_and_before_all_are_handed_out() {
    let mut machine = waiting_for_b(60_000);
    let (polls, extensions) = wait_on(&mut machine, 3, 10_000);
    assert!(polls >= 13 && (9..=11).contains(&extensions), "{polls} polls, {extensions} extensions");
    machine.hint();
    exchange(&mut machine, at(10_700), "acquire b", granted(20));
    exchange(&mut machine, at(11_200), "acquire c", granted(30));
    exchange(&mut machine, at(11_200), "extend a", extended());
    exchange(&mut machine, at(11_210), "extend b", extended());
    let expected =
        [(10, deadline(at(11_200), TTL)), (20, deadline(at(11_210), TTL)), (30, deadline(at(11_200), TTL))];
    assert_eq!(deadlines(&mut machine, at(11_211)), expected);
    assert!(machine.abandon().is_none());
}

#[test]
fn if_one_is_lost_all_are_given_back_and_it_begins_anew_with_another_token() {
    let mut machine = waiting_for_b(60_000);
    let now = waits_until(&mut machine, at(3));
    exchange(&mut machine, now, "acquire b", waiting());
    let now = waits_until(&mut machine, now);
    exchange(&mut machine, now, "extend a", gone());
    exchange(&mut machine, now, "release a", released());
    exchange(&mut machine, now, "leave b", Ok(Reply::Leave));
    let Step::Send(Call { number, request: Request::Acquire(acquire), .. }) = machine.step(now) else {
        panic!("it does not begin anew");
    };
    assert_ne!(acquire.token, Token::from_bits(7));
    assert_eq!((acquire.name.as_str(), acquire.min_fence), ("a", Fence::new(11)));
    machine.reply(now, number, granted(600));
    exchange(&mut machine, now, "acquire b", granted(20));
    exchange(&mut machine, now, "acquire c", granted(30));
    assert_eq!(deadlines(&mut machine, now)[0], (600, deadline(now, TTL)));
}

#[test]
fn one_that_was_lost_is_noticed_before_it_is_handed_out() {
    let mut machine = waiting_for_b(400);
    machine.hint();
    exchange(&mut machine, at(390), "acquire b", granted(20));
    exchange(&mut machine, at(395), "acquire c", granted(30));
    exchange(&mut machine, at(401), "extend a", gone());
    for request in ["release c", "release b", "release a"] {
        exchange(&mut machine, at(402), request, released());
    }
    assert_eq!(error_kind(&mut machine, at(402)), ErrorKind::LockTimeout);
    assert!(machine.abandon().is_none());
}

#[test]
fn answers_that_take_longer_than_the_leases_last_hand_out_nothing() {
    let mut machine = machine(60_000);
    exchange(&mut machine, at(1), "acquire a", granted(10));
    let (number, _) = sent(&mut machine, at(2));
    machine.reply(at(3_500), number, granted(20));
    let (_, said) = sent(&mut machine, at(3_500));
    assert_eq!(said, "release a", "it is over, and b is too late to be sure of");
}

#[test]
fn a_try_that_finds_one_busy_gives_the_others_back() {
    let mut machine = machine(0);
    exchange(&mut machine, at(1), "acquire a", granted(10));
    let busy = AcquireReply::Busy(Obstacle { remaining: None, unexpiring: None, rank: 0 });
    exchange(&mut machine, at(2), "acquire b", Ok(Reply::Acquire(busy)));
    exchange(&mut machine, at(3), "release a", released());
    assert!(matches!(machine.step(at(3)), Step::Done(Ok(Several::Busy))));
    assert!(machine.abandon().is_none());
}

#[test]
fn a_wait_that_ends_gives_all_back() {
    let mut machine = waiting_for_b(200);
    exchange(&mut machine, at(200), "leave b", Ok(Reply::Leave));
    exchange(&mut machine, at(200), "release a", released());
    assert_eq!(error_kind(&mut machine, at(200)), ErrorKind::LockTimeout);
    assert!(machine.abandon().is_none());
}

#[test]
fn abandoned_at_any_time_it_gives_back_what_it_may_have() {
    assert_eq!(cleanups(&mut machine(1_000)), [""; 0]);
    assert_eq!(cleanups(&mut waiting_for_b(1_000)), ["release a", "leave b"]);

    let mut taken = machine(1_000);
    exchange(&mut taken, at(1), "acquire a", granted(10));
    exchange(&mut taken, at(2), "acquire b", granted(20));
    sent(&mut taken, at(3));
    assert_eq!(cleanups(&mut taken), ["release b", "release a", "leave c"]);

    let mut refreshing = waiting_for_b(60_000);
    refreshing.hint();
    exchange(&mut refreshing, at(900), "acquire b", granted(20));
    exchange(&mut refreshing, at(900), "acquire c", granted(30));
    sent(&mut refreshing, at(900));
    assert_eq!(cleanups(&mut refreshing), ["release c", "release b", "release a"]);
}

#[test]
fn what_a_silent_store_is_not_told_is_left_to_others() {
    let mut machine = waiting_for_b(200);
    exchange(&mut machine, at(200), "leave b", lost());
    exchange(&mut machine, at(200), "release a", lost());
    assert_eq!(error_kind(&mut machine, at(200)), ErrorKind::LockTimeout);
    assert_eq!(cleanups(&mut machine), ["release a", "leave b"]);
}

#[test]
fn in_one_step_if_all_are_free() {
    let order = SeveralParams { in_one_step: true, ..order(1_000) };
    let mut all = SeveralMachine::new(order.clone(), at(0), true, Jitter::seeded(1));
    let reply = AcquireAllReply::Granted([10, 20, 30].map(Fence::new).into());
    exchange(&mut all, at(1), "acquire_all a", Ok(Reply::AcquireAll(reply.clone())));
    assert_eq!(deadlines(&mut all, at(2)), [10, 20, 30].map(|fence| (fence, deadline(at(1), TTL))));

    let mut busy = SeveralMachine::new(order.clone(), at(0), true, Jitter::seeded(1));
    exchange(&mut busy, at(1), "acquire_all a", Ok(Reply::AcquireAll(AcquireAllReply::Busy)));
    exchange(&mut busy, at(1), "acquire a", granted(10));

    let mut dropped = SeveralMachine::new(order.clone(), at(0), true, Jitter::seeded(1));
    sent(&mut dropped, at(1));
    assert_eq!(cleanups(&mut dropped), ["leave a", "leave b", "leave c"]);

    let mut unheard = SeveralMachine::new(order, at(0), true, Jitter::seeded(1));
    exchange(&mut unheard, at(1), "acquire_all a", Ok(Reply::AcquireAll(reply)));
    assert_eq!(cleanups(&mut unheard), ["leave a", "leave b", "leave c"], "nobody took them");
}

#[test]
fn a_copy_that_may_have_taken_them_is_ended_before_they_are_taken_in_turn() {
    let order = SeveralParams { in_one_step: true, ..order(5_000) };
    let mut machine = SeveralMachine::new(order, at(0), true, Jitter::seeded(1));
    exchange(&mut machine, at(1), "acquire_all a", lost());
    let now = waits_until(&mut machine, at(1));
    exchange(&mut machine, now, "acquire_all a", Ok(Reply::AcquireAll(AcquireAllReply::Busy)));
    for request in ["leave c", "leave b", "leave a"] {
        exchange(&mut machine, now, request, Ok(Reply::Leave));
    }
    exchange(&mut machine, now, "acquire a", granted(10));
}

#[test]
fn with_a_ttl_too_short_for_the_store_it_ends_in_time() {
    let mut machine = machine(2_000);
    let mut now = at(0);
    let outcome = loop {
        assert!(now < at(20_000), "it goes on");
        match machine.step(now) {
            Step::Send(call) => {
                now = now + TTL;
                let reply = match call.request.verb() {
                    "acquire" => granted(10),
                    "extend" => gone(),
                    "leave" => Ok(Reply::Leave),
                    _ => released(),
                };
                machine.reply(now, call.number, reply);
            }
            Step::Wait { until, .. } => now = until,
            Step::Done(outcome) => break outcome,
            Step::Listen => panic!("nothing to listen to"),
        }
    };
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::LockTimeout);
}
