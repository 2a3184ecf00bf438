//! Settlements that go along.

use super::*;

#[test]
fn settlements_go_with_the_first_call_and_not_again() {
    let mut machine = settling(10_000);
    let (first, settle, _) = settle_and_claim_sent(&mut machine, at(0));
    assert_eq!(settle.items[0].receipt, Receipt::new(5));
    let (second, again, _) = settle_and_claim_sent(&mut machine, at(1_000));
    assert_ne!(first, second);
    assert_eq!(again.items, settle.items, "the same call, sent again");
    machine.reply(at(1_001), second, settled_and_empty());
    let now = waits_until(&mut machine, at(1_001));
    let (third, _) = claim_sent(&mut machine, now);
    machine.reply(now, third, claimed());
    let claimed = done(&mut machine, now);
    assert_eq!((claimed.settled, claimed.tasks.len()), (vec![DONE], 1));
}

#[test]
fn settlements_without_an_answer_are_indeterminate() {
    let mut machine = settling(0);
    for second in 0..5 {
        sent(&mut machine, at(second * 1_000));
    }
    assert_eq!(error_kind(&mut machine, at(5_000)), ErrorKind::Indeterminate);

    let mut lost_then_down = settling(0);
    let (first, ..) = settle_and_claim_sent(&mut lost_then_down, at(0));
    lost_then_down.reply(at(1_000), first, failure(FailureKind::Lost));
    let now = waits_until(&mut lost_then_down, at(1_000));
    let (second, ..) = settle_and_claim_sent(&mut lost_then_down, now);
    lost_then_down.reply(now, second, failure(FailureKind::NotSent));
    assert_eq!(error_kind(&mut lost_then_down, now), ErrorKind::Indeterminate);
}

#[test]
fn settlements_that_were_never_sent_are_not_indeterminate() {
    let mut machine = settling(0);
    let (first, ..) = settle_and_claim_sent(&mut machine, at(0));
    machine.reply(at(1_000), first, failure(FailureKind::NotSent));
    assert_eq!(error_kind(&mut machine, at(1_000)), ErrorKind::StoreUnavailable);
}

#[test]
fn settlements_that_were_heard_of_are_told_although_the_wait_failed() {
    let mut machine = settling(5_000);
    let (first, ..) = settle_and_claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, settled_and_empty());
    let now = waits_until(&mut machine, at(1));
    let (second, _) = claim_sent(&mut machine, now);
    machine.reply(now, second, failure(FailureKind::Final(ErrorKind::WrongType)));
    let (cleanup, _) = sent(&mut machine, now);
    machine.reply(now, cleanup, Ok(Reply::Queue(QueueReply::Abandon)));
    assert_eq!(done(&mut machine, now).settled, vec![DONE]);
}
