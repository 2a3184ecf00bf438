//! Waiting: places, pauses, hints, pauses of queues.

use super::*;

#[test]
fn it_registers_only_when_hints_can_be_heard_or_never_will_be() {
    let mut machine = ClaimMachine::new(order(1_000), at(0), false, Jitter::seeded(1));
    let (first, claim) = claim_sent(&mut machine, at(0));
    assert!(claim.waiter.is_none());
    machine.reply(at(1), first, empty(None, 0));
    assert!(matches!(machine.step(at(1)), Step::Listen));
    machine.listening();
    let (_, claim) = claim_sent(&mut machine, at(2));
    assert_eq!((claim.waiter, claim.call.number), (Some(WAITER), 43));
}

#[test]
fn it_asks_again_when_a_task_is_due_one_waiter_after_the_other() {
    for (rank, expected) in [(0, at(201)), (4, at(213))] {
        let mut machine = machine(10_000);
        let (first, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(1), first, empty(Some(200), rank));
        assert_eq!(waits_until(&mut machine, at(1)), expected);
    }
}

/// By its question it comes to the end of the line; but the others do not know of the time that it is told.
#[test]
fn whoever_was_chosen_by_a_hint_looks_first() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, empty(None, 0));
    machine.hint();
    let (second, _) = claim_sent(&mut machine, at(2));
    machine.reply(at(3), second, empty(Some(200), 4));
    assert_eq!(waits_until(&mut machine, at(3)), at(203));
    let (third, _) = claim_sent(&mut machine, at(203));
    machine.reply(at(204), third, empty(Some(200), 4));
    assert_eq!(waits_until(&mut machine, at(204)), at(416));
}

#[test]
fn a_due_time_counts_from_the_question_if_the_answer_took_long() {
    for (took, expected) in [(10, at(210)), (11, at(200))] {
        let mut machine = machine(10_000);
        let (first, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(took), first, empty(Some(200), 0));
        assert_eq!(waits_until(&mut machine, at(took)), expected);
    }
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(400), first, empty(Some(200), 0));
    claim_sent(&mut machine, at(400));
}

/// Who moves a standing clock may do it while the answer is on its way, for the last time.
#[test]
fn on_a_clock_that_stands_a_due_time_counts_from_the_question() {
    let order = ClaimParams { clock_stands: true, ..order(10_000) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, empty(Some(1), 0));
    claim_sent(&mut machine, at(1));
}

#[test]
fn a_queue_that_says_at_once_and_has_nothing_is_not_asked_in_a_tight_loop() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, empty(Some(0), 0));
    assert_eq!(waits_until(&mut machine, at(1)), at(1) + POLL_FLOOR);
}

#[test]
fn the_further_back_in_line_the_longer_the_pause() {
    let pauses: Vec<Duration> = [0, 1, 100]
        .into_iter()
        .map(|rank| {
            let mut machine = machine(60_000);
            let (first, _) = claim_sent(&mut machine, at(0));
            machine.reply(at(0), first, empty(None, rank));
            waits_until(&mut machine, at(0)).since(at(0))
        })
        .collect();
    assert!(pauses[0] > POLL_FIRST * 3 / 4 && pauses[0] <= POLL_FIRST, "{pauses:?}");
    assert!(pauses[1] > POLL_FIRST * 3 / 2 && pauses[1] <= POLL_FIRST * 2, "{pauses:?}");
    assert!(pauses[2] > POLL_MOST * 3 / 4 && pauses[2] <= POLL_MOST, "{pauses:?}");
}

#[test]
fn a_round_ends_with_the_earliest_of_what_its_queues_said() {
    let order = ClaimParams { queues: vec![queue("a"), queue("b"), queue("c")], ..order(10_000) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    for next_due in [Some(400), Some(300), None] {
        let (number, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(0), number, empty(next_due, 0));
    }
    assert_eq!(waits_until(&mut machine, at(0)), at(300));
}

/// A patient one goes on to the end of its wait; the other says after the timeout that the store does not answer. An answer
/// begins it anew.
#[test]
fn a_wait_that_is_not_patient_fails_after_the_timeout_without_an_answer() {
    for (patient, fails) in [(true, false), (false, true)] {
        let order = ClaimParams { patient, ..order(30_000) };
        let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
        let mut ask = |from: u64, answer: &dyn Fn() -> Result<Reply, Failure>| match machine.step(at(from)) {
            Step::Send(call) => {
                machine.reply(at(from), call.number, answer());
                None
            }
            Step::Wait { .. } => None,
            Step::Done(outcome) => Some(outcome.map(drop)),
            Step::Listen => panic!("the channel is open"),
        };
        let lost = || Err(Failure::new(FailureKind::Lost, "no answer"));
        assert!((0..4_900).step_by(50).all(|from| ask(from, &lost).is_none()));
        let answered = (4_900..6_000).step_by(50).all(|from| ask(from, &|| empty(None, 0)).is_none());
        assert!(answered);
        assert!((10_000..14_900).step_by(50).all(|from| ask(from, &lost).is_none()));
        let ended = (14_900..20_000).step_by(50).find_map(|from| ask(from, &lost));
        assert_eq!(ended.is_some(), fails);
        let kind = ended.map(|outcome| outcome.unwrap_err().kind());
        assert_eq!(kind, fails.then_some(ErrorKind::StoreUnavailable));
    }
}

#[test]
fn a_hint_ends_the_pause() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, empty(None, 0));
    assert!(matches!(machine.step(at(1)), Step::Wait { hints: true, .. }));
    machine.hint();
    let (second, claim) = claim_sent(&mut machine, at(5));
    assert_eq!((claim.waiter, claim.call.number), (Some(WAITER), 43));
    machine.reply(at(6), second, claimed());
    assert_eq!(done(&mut machine, at(6)).tasks.len(), 1);
}

#[test]
fn a_hint_during_a_poll_causes_one_more_round() {
    let order = ClaimParams { queues: vec![queue("a"), queue("b")], ..order(10_000) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    let (number, _) = claim_sent(&mut machine, at(0));
    machine.hint();
    machine.reply(at(1), number, empty(None, 0));
    for _ in 0..3 {
        let (number, _) = claim_sent(&mut machine, at(1));
        machine.reply(at(1), number, empty(None, 0));
    }
    assert!(waits_until(&mut machine, at(2)) > at(500), "one more round, not many");
}

#[test]
fn a_paused_queue_is_waited_for() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, paused());
    machine.hint();
    let (second, _) = claim_sent(&mut machine, at(2));
    machine.reply(at(3), second, claimed());
    assert_eq!(done(&mut machine, at(3)).tasks.len(), 1);
}

#[test]
fn a_wait_that_ends_still_hears_the_answer_to_its_last_poll() {
    let mut machine = machine(300);
    let (first, _) = claim_sent(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(300)), at(1_000));
    machine.reply(at(900), first, claimed());
    assert_eq!(done(&mut machine, at(900)).tasks.len(), 1);
}

#[test]
fn a_wait_that_ends_gives_up_its_place_in_every_line() {
    let order = ClaimParams { queues: vec![queue("a"), queue("b")], ..order(300) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    for reply in [empty(None, 0), paused()] {
        let (number, _) = claim_sent(&mut machine, at(1));
        machine.reply(at(1), number, reply);
    }
    assert_eq!(waits_until(&mut machine, at(1)), at(300));
    let mut left = Vec::new();
    for _ in 0..2 {
        let (number, request) = sent(&mut machine, at(300));
        left.push(abandoned(Request::Queue(request)));
        machine.reply(at(301), number, Ok(Reply::Queue(QueueReply::Abandon)));
    }
    left.sort_by(|one, other| one.0.cmp(&other.0));
    let names: Vec<&str> = left.iter().map(|(queue, _)| queue.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(left.iter().all(|(_, abandon)| abandon.call.is_none() && abandon.waiter == Some(WAITER)));
    let claimed = done(&mut machine, at(301));
    assert!(claimed.tasks.is_empty() && claimed.paused);
    assert!(machine.abandon().is_none());
    assert_eq!(number(&machine), Some(43), "every call was answered");
}
