//! The claim machine, reply by reply.

use super::*;
use crate::base::name::{Prefixes, QueueName, TaskId};
use crate::protocol::{ClientId, Receipt, Version, Waiter};

mod cleaning;
mod failing;
mod firing;
mod settling;
mod waiting;

const LEASE: Duration = Duration::from_secs(30);
const WAITER: Waiter = Waiter { client: ClientId(1), seq: 9 };

fn at(millis: u64) -> Moment {
    Moment::from_nanos(0) + Duration::from_millis(millis)
}

fn queue(name: &str) -> QueueName {
    Prefixes::parse("Lock:", "Queue:").unwrap().queue_name(name).unwrap()
}

fn order(wait_ms: u64) -> ClaimParams {
    ClaimParams {
        queues: vec![queue("a")],
        max: 10,
        lease: LEASE,
        wait: Duration::from_millis(wait_ms),
        patient: true,
        timeout: Duration::from_secs(5),
        settle: None,
        waiter: WAITER,
        consumer: "7 host label".into(),
        clock_stands: false,
        slot: CallId { client: ClientId(1), slot: 3, number: 41 },
    }
}

/// A machine at time zero whose channel of hints is open.
fn machine(wait_ms: u64) -> ClaimMachine {
    ClaimMachine::new(order(wait_ms), at(0), true, Jitter::seeded(1))
}

/// One that settles a claim with its first call.
fn settling(wait_ms: u64) -> ClaimMachine {
    let order = ClaimParams { settle: Some(settlements(&[(5, Verdict::Ack)])), ..order(wait_ms) };
    ClaimMachine::new(order, at(0), true, Jitter::seeded(1))
}

fn settlements(items: &[(u64, Verdict)]) -> Settle {
    let item = |(receipt, verdict): &(u64, Verdict)| Settlement {
        id: TaskId::parse("t").unwrap(),
        receipt: Receipt::new(*receipt),
        verdict: verdict.clone(),
    };
    Settle { items: items.iter().map(item).collect() }
}

fn task(receipt: u64, remaining: Duration) -> ClaimedTask {
    ClaimedTask {
        key: None,
        node: None,
        id: TaskId::parse("t").unwrap(),
        body: (*b"body").into(),
        receipt: Receipt::new(receipt),
        attempt: 1,
        max_attempts: 8,
        version: Version::new(1),
        due: 0,
        priority: 0,
        remaining,
    }
}

fn claimed_for(remaining: Duration) -> Result<Reply, Failure> {
    Ok(Reply::Queue(QueueReply::Claim(ClaimReply::Claimed(vec![task(100, remaining)]))))
}

fn claimed() -> Result<Reply, Failure> {
    claimed_for(LEASE)
}

fn empty(next_due_ms: Option<u64>, rank: u32) -> Result<Reply, Failure> {
    let next_due = next_due_ms.map(Duration::from_millis);
    Ok(Reply::Queue(QueueReply::Claim(ClaimReply::Empty { next_due, rank, slot: None })))
}

fn paused() -> Result<Reply, Failure> {
    Ok(Reply::Queue(QueueReply::Claim(ClaimReply::Paused { rank: 0 })))
}

const DONE: Settled = Settled::Done { late: false, dead: false };

fn settled_and_empty() -> Result<Reply, Failure> {
    let reply = ClaimReply::Empty { next_due: None, rank: 0, slot: None };
    Ok(Reply::Queue(QueueReply::SettleAndClaim(vec![DONE], reply)))
}

fn failure(kind: FailureKind) -> Result<Reply, Failure> {
    Err(Failure::new(kind, "no"))
}

fn sent(machine: &mut ClaimMachine, now: Moment) -> (u32, QueueRequest) {
    match machine.step(now) {
        Step::Send(Call { number, request: Request::Queue(request), .. }) => (number, request),
        other => panic!("expected a request, got {other:?}"),
    }
}

fn claim_sent(machine: &mut ClaimMachine, now: Moment) -> (u32, Claim) {
    match sent(machine, now) {
        (number, QueueRequest { verb: QueueVerb::Claim(claim), .. }) => (number, claim),
        other => panic!("expected a claim, got {other:?}"),
    }
}

fn settle_and_claim_sent(machine: &mut ClaimMachine, now: Moment) -> (u32, Settle, Claim) {
    match sent(machine, now) {
        (number, QueueRequest { verb: QueueVerb::SettleAndClaim(settle, claim), .. }) => {
            (number, settle, claim)
        }
        other => panic!("expected settlements and a claim, got {other:?}"),
    }
}

fn waits_until(machine: &mut ClaimMachine, now: Moment) -> Moment {
    match machine.step(now) {
        Step::Wait { until, .. } => until,
        other => panic!("expected a wait, got {other:?}"),
    }
}

fn done(machine: &mut ClaimMachine, now: Moment) -> Claimed {
    match machine.step(now) {
        Step::Done(Ok(claimed)) => claimed,
        other => panic!("expected the outcome, got {other:?}"),
    }
}

fn error_kind(machine: &mut ClaimMachine, now: Moment) -> ErrorKind {
    match machine.step(now) {
        Step::Done(Err(error)) => error.kind(),
        other => panic!("expected an error, got {other:?}"),
    }
}

/// What a clean-up asks for: of which queue, and what.
fn abandoned(request: Request) -> (String, Abandon) {
    match request {
        Request::Queue(QueueRequest { queue, verb: QueueVerb::Abandon(abandon) }) => {
            (queue.as_str().to_owned(), abandon)
        }
        other => panic!("expected an abandon, got {other:?}"),
    }
}

/// The receipts that a clean-up puts back.
fn receipts_put_back(request: Request) -> Vec<u64> {
    match request {
        Request::Queue(QueueRequest { verb: QueueVerb::Settle(settle), .. }) => put_back_in(&settle),
        other => panic!("expected a settle, got {other:?}"),
    }
}

fn put_back_in(settle: &Settle) -> Vec<u64> {
    assert!(settle.items.iter().all(|item| item.verdict == Verdict::PUT_BACK), "{settle:?}");
    settle.items.iter().map(|item| item.receipt.get()).collect()
}

fn number(machine: &ClaimMachine) -> Option<u64> {
    machine.free_slot().map(|slot| slot.number)
}

#[test]
fn tasks_come_at_once_and_their_deadline_counts_from_the_sending() {
    let mut machine = machine(0);
    let (number_sent, claim) = claim_sent(&mut machine, at(0));
    assert_eq!((claim.call.number, claim.max, claim.lease, claim.waiter), (42, 10, LEASE, None));
    machine.reply(at(900), number_sent, claimed());
    let claimed = done(&mut machine, at(900));
    assert_eq!(claimed.tasks[0].deadline, deadline(at(0), LEASE));
    assert_eq!((claimed.tasks[0].task.receipt, claimed.tasks[0].queue.as_str()), (Receipt::new(100), "a"));
    assert!(machine.abandon().is_none(), "the tasks are their worker's now");
    assert_eq!(number(&machine), Some(42), "the slot counts on from here");
}

#[test]
fn an_empty_try_leaves_no_trace() {
    let mut machine = machine(0);
    let (number_sent, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), number_sent, empty(Some(500), 0));
    let claimed = done(&mut machine, at(1));
    assert!(claimed.tasks.is_empty() && !claimed.paused);
    assert!(machine.abandon().is_none());
    assert_eq!(number(&machine), Some(42));
}

#[test]
fn a_paused_queue_is_told_from_an_empty_one() {
    let mut machine = machine(0);
    let (number_sent, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), number_sent, paused());
    assert!(done(&mut machine, at(1)).paused);
}

#[test]
fn queues_are_asked_in_order_each_with_a_call_of_its_own() {
    let order = ClaimParams { queues: vec![queue("a"), queue("b")], ..order(0) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    let (first, request) = sent(&mut machine, at(0));
    assert_eq!(request.queue.as_str(), "a");
    machine.reply(at(1), first, empty(None, 0));
    let (second, request) = sent(&mut machine, at(1));
    assert_eq!(request.queue.as_str(), "b");
    machine.reply(at(2), second, claimed());
    assert_eq!(done(&mut machine, at(2)).tasks[0].queue.as_str(), "b");
    assert_eq!(number(&machine), Some(43));
}

#[test]
fn a_reply_lost_is_asked_for_again_under_the_same_call() {
    let mut machine = machine(10_000);
    let (first, one) = claim_sent(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(1)), at(1_000), "sent again after a second");
    let (second, two) = claim_sent(&mut machine, at(1_000));
    assert_eq!((one.call, one.waiter), (two.call, two.waiter));
    machine.reply(at(1_001), second, claimed());
    assert_eq!(done(&mut machine, at(1_001)).tasks[0].deadline, deadline(at(1_000), LEASE));
    machine.reply(at(1_002), first, claimed());
    assert!(machine.abandon().is_none(), "both replies give the same tasks");
}

#[test]
fn a_late_reply_counts_from_its_own_sending() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    claim_sent(&mut machine, at(1_000));
    machine.reply(at(1_500), first, claimed());
    assert_eq!(done(&mut machine, at(1_500)).tasks[0].deadline, deadline(at(0), LEASE));
}

#[test]
fn a_reply_that_comes_twice_changes_nothing() {
    let mut machine = machine(10_000);
    let (number_sent, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(5), number_sent, empty(None, 0));
    let until = waits_until(&mut machine, at(5));
    machine.reply(at(6), number_sent, claimed());
    assert_eq!(waits_until(&mut machine, at(6)), until);
}

#[test]
fn tasks_that_come_too_late_are_put_back_and_asked_for_in_one_step() {
    let mut machine = machine(10_000);
    let short = Duration::from_millis(800);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(900), first, claimed_for(short));
    let (second, settle, claim) = settle_and_claim_sent(&mut machine, at(900));
    assert_eq!((put_back_in(&settle), claim.call.number), (vec![100], 43));
    let tasks = ClaimReply::Claimed(vec![task(101, short)]);
    machine.reply(at(901), second, Ok(Reply::Queue(QueueReply::SettleAndClaim(vec![DONE], tasks))));
    let claimed = done(&mut machine, at(901));
    assert_eq!(
        (claimed.tasks[0].task.receipt, claimed.tasks[0].deadline),
        (Receipt::new(101), deadline(at(900), short))
    );
    assert!(claimed.settled.is_empty(), "nobody asked for that settlement");
    assert!(machine.abandon().is_none());
}

#[test]
fn tasks_that_always_come_too_late_do_not_keep_it_beyond_its_time() {
    let order = ClaimParams { queues: vec![queue("a"), queue("b")], ..order(3_000) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    let (first, _) = sent(&mut machine, at(0));
    machine.reply(at(0), first, empty(None, 0));
    let mut now = at(0);
    loop {
        match machine.step(now) {
            Step::Send(Call { request: Request::Queue(request), number, .. })
                if !matches!(request.verb, QueueVerb::Settle(_) | QueueVerb::Abandon(_)) =>
            {
                assert_eq!(request.queue.as_str(), "b");
                let late = ClaimReply::Claimed(vec![task(7, Duration::from_millis(50))]);
                let reply = match request.verb {
                    QueueVerb::SettleAndClaim(..) => QueueReply::SettleAndClaim(vec![DONE], late),
                    _ => QueueReply::Claim(late),
                };
                now = now + Duration::from_millis(700);
                machine.reply(now, number, Ok(Reply::Queue(reply)));
            }
            Step::Send(call) => machine.reply(now, call.number, Ok(Reply::Queue(QueueReply::Abandon))),
            Step::Done(result) => break assert!(result.unwrap().tasks.is_empty()),
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(now >= at(3_000) && now < at(4_000), "{now:?}");
}
