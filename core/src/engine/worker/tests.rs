//! The worker's machine, event by event.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

const GRACE: Duration = Duration::from_secs(25);
const PATIENCE: Duration = Duration::from_secs(2);

/// What a task leaves that is done.
const LARGE: usize = 100 << 10;

/// A delivery; what is said of it is a line.
#[derive(Clone, Debug)]
struct Task {
    id: TaskId,
    receipt: Receipt,
    lost: Rc<Cell<bool>>,
    settled: Rc<Cell<bool>>,
}

impl Job for Task {
    type Verdict = String;

    fn id(&self) -> &TaskId {
        &self.id
    }

    fn receipt(&self) -> Receipt {
        self.receipt
    }

    fn size(verdict: &String) -> usize {
        if verdict.starts_with("ack") { LARGE } else { 0 }
    }

    fn is_lost(&self) -> bool {
        self.lost.get()
    }

    fn conclude(&self, ending: &HandlerEnd) -> Finished<String> {
        let line = |verdict: &str| format!("{verdict} {}", self.receipt);
        match ending {
            _ if self.settled.get() => Finished::Settled(line("itself")),
            HandlerEnd::Returned => Finished::Verdict(line("ack")),
            HandlerEnd::Failed(_) => Finished::Verdict(line("nack")),
            HandlerEnd::Interrupted => Finished::Verdict(line("put back")),
            HandlerEnd::LeftBehind => Finished::Verdict(line("left")),
            HandlerEnd::Lost => Finished::Lost,
        }
    }
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(0) + Duration::from_millis(millis)
}

fn task(id: &str, receipt: u64) -> Task {
    let receipt = Receipt::new(receipt);
    Task { id: TaskId::parse(id).unwrap(), receipt, lost: Rc::default(), settled: Rc::default() }
}

fn terms(concurrency: usize, claims: usize, until_empty: bool) -> WorkerTerms {
    let parked = Duration::from_secs(1);
    WorkerTerms { concurrency, claims, parked, until_empty, grace: GRACE, patience: PATIENCE }
}

fn machine(concurrency: usize, until_empty: bool) -> WorkerMachine<Task> {
    WorkerMachine::new(terms(concurrency, 1, until_empty), Jitter::seeded(1))
}

/// Has two claims on their way at once.
fn sharing(concurrency: usize, until_empty: bool) -> WorkerMachine<Task> {
    WorkerMachine::new(terms(concurrency, 2, until_empty), Jitter::seeded(1))
}

fn tasks(receipts: std::ops::RangeInclusive<u64>) -> Vec<Task> {
    receipts.map(|receipt| task(&format!("t{receipt}"), receipt)).collect()
}

/// An order in a line.
fn order(machine: &mut WorkerMachine<Task>, millis: u64) -> String {
    match machine.order(at(millis)) {
        Order::Claim { max, wait, settle } => format!("claim {max}, {} s, {settle:?}", wait.as_secs()),
        Order::Settle(verdicts) => format!("settle {verdicts:?}"),
        Order::Look => "look".into(),
        Order::Abandon => "abandon".into(),
        Order::Signal(task) => format!("signal {}", task.receipt),
        Order::Wait(_) => "wait".into(),
        Order::Done => "done".into(),
    }
}

/// What it tells, in lines.
fn told(machine: &mut WorkerMachine<Task>) -> Vec<String> {
    let line = |event: Event<Task>| match event {
        Event::Started(task) => format!("started {}", task.receipt),
        Event::Lost(task) => format!("lost {}", task.receipt),
        Event::Stuck(task, free) => format!("stuck {}, {free} free", task.receipt),
        Event::Settled(verdict) => verdict,
        Event::Empty => "empty".into(),
        Event::StoreBack(after) => format!("back after {after:?}"),
    };
    machine.events().into_iter().map(line).collect()
}

/// A machine whose hands work on these.
fn at_work(concurrency: usize, tasks: &[&Task]) -> WorkerMachine<Task> {
    let mut machine = machine(concurrency, false);
    assert!(order(&mut machine, 0).starts_with("claim"));
    machine.claimed(at(0), tasks.iter().map(|task| (*task).clone()).collect());
    while machine.begin(at(0)).is_some() {}
    machine.events();
    machine
}

/// What is too large for one request comes with the next.
#[test]
fn no_more_verdicts_travel_together_than_a_request_may_have_bytes() {
    let jobs = tasks(1..=50);
    let mut machine = at_work(50, &jobs.iter().collect::<Vec<_>>());
    for job in &jobs {
        machine.ended(job.receipt, HandlerEnd::Returned);
    }
    let sent = |machine: &mut WorkerMachine<Task>| match machine.order(at(1)) {
        Order::Claim { settle, .. } | Order::Settle(settle) => settle.len(),
        _ => 0,
    };
    assert_eq!(sent(&mut machine), (4 << 20) / LARGE);
    machine.claimed(at(2), Vec::new());
    assert_eq!(sent(&mut machine), 50 - (4 << 20) / LARGE);
}

#[test]
fn verdicts_travel_with_the_next_claim_and_alone_if_there_is_none() {
    let (a, b) = (task("a", 1), task("b", 2));
    let mut machine = at_work(2, &[&a, &b]);
    assert_eq!(order(&mut machine, 1), "wait", "no hand is free");
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(order(&mut machine, 2), "claim 1, 0 s, [\"ack 1\"]");
    machine.ended(Receipt::new(2), HandlerEnd::Failed("no".into()));
    assert_eq!(order(&mut machine, 3), "wait", "for the claim");
    machine.claimed(at(0), Vec::new());
    assert_eq!(order(&mut machine, 4), "claim 2, 0 s, [\"nack 2\"]");
    machine.claimed(at(0), Vec::new());
    assert_eq!(told(&mut machine), ["empty"]);
    assert_eq!(order(&mut machine, 5), "claim 2, 30 s, []", "now it waits");
}

#[test]
fn what_ends_while_a_claim_waits_is_settled_alone() {
    let a = task("a", 1);
    let mut machine = at_work(2, &[&a]);
    assert!(order(&mut machine, 1).starts_with("claim 1, 0 s"));
    machine.claimed(at(0), Vec::new());
    assert_eq!(order(&mut machine, 2), "claim 1, 30 s, []");
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(machine.settle_beside_claim(at(3)), Some(vec!["ack 1".into()]));
    assert_eq!(told(&mut machine), Vec::<String>::new());
    machine.settled(at(4), None);
    assert_eq!(told(&mut machine), ["empty"]);
}

#[test]
fn a_hung_handler_costs_one_hand_and_is_told_of_in_time() {
    let (a, b) = (task("a", 1), task("b", 2));
    let mut machine = at_work(2, &[&a, &b]);
    machine.ended(Receipt::new(2), HandlerEnd::Returned);
    a.lost.set(true);
    assert_eq!(order(&mut machine, 200), "claim 1, 0 s, [\"ack 2\"]", "the other hand goes on");
    assert_eq!(told(&mut machine), ["lost 1"]);
    machine.claimed(at(0), vec![task("c", 3)]);
    assert!(machine.begin(at(300)).is_some());
    machine.order(at(2_250));
    assert_eq!(told(&mut machine), ["started 3", "stuck 1, 1 free"]);
    machine.ended(Receipt::new(3), HandlerEnd::Returned);
    assert_eq!(machine.ended(Receipt::new(1), HandlerEnd::Returned), Some(HandlerEnd::Lost));
    assert_eq!(told(&mut machine), Vec::<String>::new(), "told before");
    assert_eq!(order(&mut machine, 2_300), "claim 2, 0 s, [\"ack 3\"]", "the hand is back");
}

#[test]
fn an_id_is_never_run_twice_at_a_time() {
    let a = task("a", 1);
    let mut machine = at_work(3, &[&a]);
    a.lost.set(true);
    assert!(order(&mut machine, 200).starts_with("claim 2"));
    machine.claimed(at(0), vec![task("a", 2), task("b", 3)]);
    assert_eq!(machine.begin(at(300)).unwrap().receipt, Receipt::new(3));
    assert!(machine.begin(at(300)).is_none());
    assert!(order(&mut machine, 400).starts_with("claim 1, 0 s"));
    machine.claimed(at(0), Vec::new());
    assert!(order(&mut machine, 410).starts_with("claim 1, 30 s"));
    // It goes back, and others have their chance.
    assert_eq!(order(&mut machine, 1_350), "abandon", "or this worker itself would get it");
    assert_eq!(order(&mut machine, 1_350), "settle [\"put back 2\"]");
    machine.settled(at(1_351), None);
    assert_eq!(order(&mut machine, 1_400), "wait");
    assert!(order(&mut machine, 1_450).starts_with("claim 1, 0 s"));
    machine.claimed(at(0), vec![task("a", 4)]);
    assert!(machine.begin(at(1_450)).is_none());
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(machine.begin(at(1_500)).unwrap().receipt, Receipt::new(4), "its run has ended");
}

#[test]
fn a_stop_gives_grace_then_signals_then_leaves() {
    let (a, b, c) = (task("a", 1), task("b", 2), task("c", 3));
    let mut machine = at_work(3, &[&a, &b, &c]);
    machine.stop(at(1_000));
    assert_eq!(order(&mut machine, 1_000), "wait");
    machine.ended(Receipt::new(1), HandlerEnd::Failed("no".into()));
    assert_eq!(order(&mut machine, 2_000), "settle [\"nack 1\"]", "a failure of its own counts");
    machine.settled(at(2_000), None);
    assert_eq!(order(&mut machine, 25_900), "wait");
    let mut signals = [order(&mut machine, 26_050), order(&mut machine, 26_050)];
    signals.sort();
    assert_eq!(signals, ["signal 2", "signal 3"]);
    assert_eq!(
        machine.ended(Receipt::new(2), HandlerEnd::Failed("told to".into())),
        Some(HandlerEnd::Interrupted)
    );
    assert_eq!(order(&mut machine, 26_060), "settle [\"put back 2\"]");
    machine.settled(at(26_060), None);
    assert_eq!(order(&mut machine, 28_200), "settle [\"left 3\"]");
    machine.settled(at(28_200), None);
    assert_eq!((order(&mut machine, 28_200), machine.left_behind()), ("done".into(), 1));
    assert_eq!(machine.ended(Receipt::new(3), HandlerEnd::Returned), None, "too late");
}

#[test]
fn one_that_is_hurried_has_no_grace() {
    let a = task("a", 1);
    let mut machine = at_work(1, &[&a]);
    machine.stop(at(1_000));
    assert_eq!(order(&mut machine, 1_000), "wait");
    machine.hurry(at(1_010));
    assert_eq!(order(&mut machine, 1_010), "signal 1");
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(order(&mut machine, 1_020), "settle [\"ack 1\"]", "it was just done");
}

#[test]
fn a_stopped_worker_begins_nothing_and_waits_for_no_task() {
    let mut machine = machine(2, false);
    assert!(order(&mut machine, 0).starts_with("claim 2, 0 s"));
    machine.stop(at(1));
    assert_eq!(order(&mut machine, 1), "wait", "the claim may bring tasks");
    machine.claimed(at(0), vec![task("a", 1)]);
    assert!(machine.begin(at(2)).is_none());
    assert_eq!(order(&mut machine, 2), "settle [\"put back 1\"]");
    machine.settled(at(3), None);
    assert_eq!(order(&mut machine, 3), "done");
    let mut machine = at_work(1, &[]);
    assert!(order(&mut machine, 0).starts_with("claim 1, 30 s"));
    machine.stop(at(1));
    assert_eq!((order(&mut machine, 1), order(&mut machine, 1)), ("abandon".into(), "done".into()));
}

#[test]
fn a_failure_that_may_pass_is_a_pause_and_any_other_is_the_end() {
    let a = task("a", 1);
    let mut machine = at_work(1, &[&a]);
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert!(order(&mut machine, 1).starts_with("claim"));
    machine.claim_failed(at(2), vec!["ack 1".into()], true);
    assert_eq!(order(&mut machine, 2), "wait");
    assert_eq!(order(&mut machine, 600), "claim 1, 0 s, [\"ack 1\"]");
    assert!(!machine.claim_failed(at(700), Vec::new(), false), "its end tells it");
    assert_eq!(order(&mut machine, 700), "done");
}

/// However often it is asked meanwhile. The first claim after a failure does not wait: it would say late that the store is back.
#[test]
fn a_failure_of_the_store_is_told_once_and_so_is_its_end() {
    let mut machine = at_work(1, &[]);
    assert!(order(&mut machine, 0).starts_with("claim 1, 30 s"));
    assert!(machine.claim_failed(at(1_000), Vec::new(), true));
    assert!(order(&mut machine, 3_000).starts_with("claim 1, 0 s"));
    assert!(!machine.claim_failed(at(4_000), Vec::new(), true));
    assert!(told(&mut machine).is_empty());
    assert!(order(&mut machine, 25_000).starts_with("claim 1, 0 s"));
    machine.claimed(at(25_000), Vec::new());
    assert_eq!(told(&mut machine), ["back after 24s"]);
    assert!(order(&mut machine, 25_000).starts_with("claim 1, 30 s"));
    assert!(machine.claim_failed(at(26_000), Vec::new(), true));
}

#[test]
fn one_that_empties_looks_and_looks_again_when_its_own_work_was_the_last() {
    let mut machine = machine(2, true);
    order(&mut machine, 0);
    machine.claimed(at(0), vec![task("a", 1)]);
    machine.begin(at(0));
    order(&mut machine, 1);
    machine.claimed(at(0), Vec::new());
    assert!(order(&mut machine, 2).starts_with("claim 1, 0 s"), "it waits for 0.2 s");
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(order(&mut machine, 3), "settle [\"ack 1\"]");
    machine.settled(at(4), None);
    assert_eq!(order(&mut machine, 4), "abandon");
    assert!(order(&mut machine, 4).starts_with("claim 2, 0 s"));
    machine.claimed(at(0), Vec::new());
    assert_eq!(order(&mut machine, 5), "look");
    machine.looked(at(6), false);
    assert!(order(&mut machine, 6).starts_with("claim 2"));
    machine.claimed(at(0), Vec::new());
    assert_eq!(order(&mut machine, 7), "look");
    machine.looked(at(8), true);
    assert_eq!(order(&mut machine, 8), "done");
}

#[test]
fn a_claim_that_was_lost_while_it_lay_ready_is_not_begun() {
    let mut machine = machine(1, false);
    order(&mut machine, 0);
    let a = task("a", 1);
    machine.claimed(at(0), vec![a.clone()]);
    a.lost.set(true);
    assert!(machine.begin(at(1)).is_none());
    assert_eq!(told(&mut machine), ["lost 1"]);
}

#[test]
fn what_a_handler_settles_itself_is_left_alone() {
    let a = task("a", 1);
    let mut machine = at_work(1, &[&a]);
    a.settled.set(true);
    machine.ended(Receipt::new(1), HandlerEnd::Failed("all the same".into()));
    assert_eq!(told(&mut machine), ["itself 1"]);
    assert_eq!(order(&mut machine, 1), "claim 1, 0 s, []");
}

#[test]
fn while_there_is_plenty_a_claim_is_sent_beside_the_one_on_its_way_never_for_more_than_the_free_hands() {
    let mut machine = sharing(6, false);
    assert_eq!(order(&mut machine, 0), "claim 2, 0 s, []");
    assert_eq!(order(&mut machine, 0), "wait", "nobody knows yet whether there is so much");
    machine.claimed(at(1), tasks(1..=2));
    assert_eq!(order(&mut machine, 1), "claim 2, 0 s, []");
    assert_eq!(order(&mut machine, 1), "claim 2, 0 s, []");
    assert_eq!(order(&mut machine, 1), "wait", "for the two");
    while machine.begin(at(1)).is_some() {}
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(order(&mut machine, 2), "wait", "its verdict is for the next one");
    machine.claimed(at(3), tasks(3..=4));
    assert_eq!(
        order(&mut machine, 3),
        "wait",
        "one at work, two ready, two on their way: not enough hands for a share"
    );
    machine.ended(Receipt::new(2), HandlerEnd::Returned);
    assert_eq!(order(&mut machine, 3), "claim 2, 0 s, [\"ack 1\", \"ack 2\"]");
    assert_eq!(order(&mut machine, 3), "wait", "there is no hand for more");
}

#[test]
fn a_claim_that_brings_less_than_it_asked_for_is_the_only_one_again() {
    let mut machine = sharing(8, false);
    order(&mut machine, 0);
    machine.claimed(at(1), tasks(1..=1));
    assert_eq!(order(&mut machine, 1), "claim 2, 0 s, []");
    assert_eq!(order(&mut machine, 1), "wait");
    machine.claimed(at(2), tasks(2..=3));
    assert_eq!(order(&mut machine, 2), "claim 2, 0 s, []", "there is plenty");
    assert_eq!(order(&mut machine, 2), "claim 2, 0 s, []");
    machine.claimed(at(3), Vec::new());
    assert_eq!(order(&mut machine, 3), "wait", "a claim that waits is alone");
    machine.claimed(at(4), Vec::new());
    assert_eq!(order(&mut machine, 4), "claim 2, 30 s, []");
    assert_eq!(order(&mut machine, 4), "wait");
}

#[test]
fn a_queue_is_empty_only_when_the_last_claim_says_so() {
    let mut machine = sharing(3, true);
    order(&mut machine, 0);
    machine.claimed(at(1), tasks(1..=1));
    assert!(machine.begin(at(1)).is_some());
    machine.ended(Receipt::new(1), HandlerEnd::Returned);
    assert_eq!(order(&mut machine, 1), "claim 1, 0 s, [\"ack 1\"]");
    assert_eq!(order(&mut machine, 1), "claim 1, 0 s, []");
    machine.events();
    machine.claimed(at(2), Vec::new());
    assert_eq!(order(&mut machine, 2), "wait", "the other one may bring something");
    assert_eq!(told(&mut machine), Vec::<String>::new());
    machine.claimed(at(3), Vec::new());
    assert_eq!(order(&mut machine, 3), "look");
    assert_eq!(told(&mut machine), ["empty"]);
}
