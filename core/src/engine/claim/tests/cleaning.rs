//! What is left behind, and the requests that take it away.

use super::*;

/// A machine that waits in two lines.
fn in_two_lines() -> ClaimMachine {
    let order = ClaimParams { queues: vec![queue("a"), queue("b")], ..order(10_000) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    for _ in 0..2 {
        let (number, _) = claim_sent(&mut machine, at(1));
        machine.reply(at(1), number, empty(None, 0));
    }
    machine
}

fn all_abandoned(machine: &mut ClaimMachine) -> Vec<(String, Option<u64>, Option<Waiter>)> {
    let mut all = Vec::new();
    while let Some(request) = machine.abandon() {
        let (queue, abandon) = abandoned(request);
        all.push((queue, abandon.call.map(|call| call.number), abandon.waiter));
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[test]
fn nothing_sent_nothing_to_clean_up() {
    let mut machine = machine(300);
    assert!(machine.abandon().is_none());
    assert_eq!(number(&machine), Some(41));
}

#[test]
fn cancelled_while_a_try_is_on_its_way() {
    let mut machine = machine(0);
    claim_sent(&mut machine, at(0));
    assert_eq!(all_abandoned(&mut machine), [("a".into(), Some(42), None)]);
    assert_eq!(number(&machine), None, "the call may still be carried out: its number is burnt");
}

#[test]
fn cancelled_in_line() {
    let mut machine = in_two_lines();
    let expected = ["a", "b"].map(|queue| (queue.to_owned(), None, Some(WAITER)));
    assert_eq!(all_abandoned(&mut machine), expected);
    assert_eq!(number(&machine), Some(43));
}

#[test]
fn cancelled_in_line_while_a_poll_is_on_its_way() {
    let mut machine = in_two_lines();
    machine.hint();
    let (first, _) = claim_sent(&mut machine, at(5));
    machine.reply(at(6), first, empty(None, 0));
    claim_sent(&mut machine, at(6));
    let expected = [("a".into(), None, Some(WAITER)), ("b".into(), Some(45), Some(WAITER))];
    assert_eq!(all_abandoned(&mut machine), expected);
    assert_eq!(number(&machine), None);
}

#[test]
fn cancelled_before_it_took_the_tasks() {
    let mut machine = machine(300);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, claimed());
    assert_eq!(receipts_put_back(machine.abandon().unwrap()), [100]);
    assert!(machine.abandon().is_none(), "once is enough");
    assert_eq!(number(&machine), Some(42), "the call was answered");
}

#[test]
fn cancelled_while_it_puts_back_what_came_too_late() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(900), first, claimed_for(Duration::from_millis(500)));
    settle_and_claim_sent(&mut machine, at(900));
    let (_, abandon) = abandoned(machine.abandon().unwrap());
    assert_eq!(abandon.call.map(|call| call.number), Some(43));
    assert_eq!(receipts_put_back(machine.abandon().unwrap()), [100], "the call may never get there");
    assert!(machine.abandon().is_none());
}

#[test]
fn cancelled_while_it_leaves() {
    let mut machine = machine(300);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, empty(None, 0));
    sent(&mut machine, at(300));
    assert_eq!(all_abandoned(&mut machine), [("a".into(), None, Some(WAITER))]);
}

#[test]
fn tasks_of_one_queue_end_the_wait_in_the_others() {
    let mut machine = in_two_lines();
    machine.hint();
    let (first, _) = claim_sent(&mut machine, at(5));
    machine.reply(at(6), first, claimed());
    assert_eq!(done(&mut machine, at(6)).tasks.len(), 1, "tasks are not kept waiting for a cleanup");
    assert_eq!(all_abandoned(&mut machine), [("b".into(), None, Some(WAITER))]);
}

#[test]
fn given_up_unanswered_it_is_abandoned_by_others() {
    let mut machine = machine(1_500);
    claim_sent(&mut machine, at(0));
    claim_sent(&mut machine, at(1_000));
    assert_eq!(error_kind(&mut machine, at(2_000)), ErrorKind::StoreUnavailable);
    assert_eq!(all_abandoned(&mut machine), [("a".into(), Some(42), Some(WAITER))]);
    assert_eq!(number(&machine), None);
}

#[test]
fn a_lost_call_is_not_forgotten_because_its_repetition_could_not_be_sent() {
    let mut machine = machine(0);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1_000), first, failure(FailureKind::Lost));
    let now = waits_until(&mut machine, at(1_000));
    let (second, _) = claim_sent(&mut machine, now);
    machine.reply(now, second, failure(FailureKind::NotSent));
    assert_eq!(error_kind(&mut machine, now), ErrorKind::StoreUnavailable);
    assert_eq!(all_abandoned(&mut machine), [("a".into(), Some(42), None)]);
    assert_eq!(number(&machine), None);
}

#[test]
fn a_call_that_surely_did_nothing_needs_no_clean_up() {
    for kind in [FailureKind::NotSent, FailureKind::Final(ErrorKind::WrongType)] {
        let mut machine = machine(0);
        let (first, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(1_000), first, failure(kind));
        error_kind(&mut machine, at(1_000));
        assert!(machine.abandon().is_none());
        assert_eq!(number(&machine), Some(42));
    }
}

#[test]
fn a_refusal_that_may_have_come_half_way_is_cleaned_up_after() {
    for kind in [ErrorKind::Denied, ErrorKind::Corrupt] {
        let mut machine = machine(0);
        let (first, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(1), first, failure(FailureKind::Final(kind)));
        let (cleanup, request) = sent(&mut machine, at(1));
        let (_, abandon) = abandoned(Request::Queue(request));
        assert_eq!(abandon.call.map(|call| call.number), Some(42));
        machine.reply(at(2), cleanup, Ok(Reply::Queue(QueueReply::Abandon)));
        assert_eq!(error_kind(&mut machine, at(2)), kind);
        assert!(machine.abandon().is_none());
        assert_eq!(number(&machine), None);
    }
}

#[test]
fn a_call_that_the_store_says_was_followed_by_another_is_an_error() {
    let mut machine = machine(0);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, Ok(Reply::Queue(QueueReply::Superseded)));
    sent(&mut machine, at(1));
    machine.reply(at(2), 2, Ok(Reply::Queue(QueueReply::Abandon)));
    assert_eq!(error_kind(&mut machine, at(2)), ErrorKind::Corrupt);
}

#[test]
fn a_farewell_that_fails_is_left_to_others_at_once() {
    for kind in [FailureKind::NotSent, FailureKind::Lost] {
        let mut machine = machine(300);
        let (first, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(1), first, empty(None, 0));
        let (cleanup, _) = sent(&mut machine, at(300));
        machine.reply(at(301), cleanup, failure(kind));
        assert!(done(&mut machine, at(301)).tasks.is_empty());
        assert_eq!(all_abandoned(&mut machine), [("a".into(), None, Some(WAITER))]);
    }
}

#[test]
fn a_farewell_without_an_answer_is_waited_for_a_second() {
    let mut machine = machine(300);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, empty(None, 0));
    sent(&mut machine, at(300));
    assert_eq!(waits_until(&mut machine, at(300)), at(1_300));
    assert!(done(&mut machine, at(1_300)).tasks.is_empty());
    assert!(machine.abandon().is_some());
}
