//! Stores that are down, silent, or refuse.

use super::*;
use crate::engine::BACKOFF_MOST;

#[test]
fn a_store_that_is_down_is_unavailable_not_empty() {
    let mut machine = machine(300);
    let mut now = at(0);
    let mut tries = 0;
    loop {
        match machine.step(now) {
            Step::Send(call) => {
                tries += 1;
                // It is no reason to hurry while the store is down.
                machine.hint();
                machine.reply(now, call.number, failure(FailureKind::NotSent));
            }
            Step::Wait { until, .. } => now = until,
            Step::Done(outcome) => {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::StoreUnavailable);
                break;
            }
            Step::Listen => panic!("nothing to listen to"),
        }
    }
    assert!(now >= at(300) && now <= at(300) + BACKOFF_MOST && tries < 20, "{now:?}, {tries} tries");
}

#[test]
fn a_silent_store_is_unavailable() {
    let mut machine = machine(1_500);
    claim_sent(&mut machine, at(0));
    claim_sent(&mut machine, at(1_000));
    assert_eq!(error_kind(&mut machine, at(2_000)), ErrorKind::StoreUnavailable);
    assert_eq!(number(&machine), None, "the call may still be carried out");
}

#[test]
fn a_try_takes_no_longer_than_its_timeout() {
    let order = ClaimParams { timeout: Duration::from_millis(300), ..order(0) };
    let mut machine = ClaimMachine::new(order, at(0), true, Jitter::seeded(1));
    claim_sent(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(0)), at(300));
    assert_eq!(error_kind(&mut machine, at(300)), ErrorKind::StoreUnavailable);
}

#[test]
fn refused_for_now_it_is_tried_again() {
    let mut machine = machine(0);
    let (first, one) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, failure(FailureKind::Refused));
    let now = waits_until(&mut machine, at(1));
    assert!(now > at(1));
    let (second, two) = claim_sent(&mut machine, now);
    assert_eq!(one.call, two.call);
    machine.reply(now, second, claimed());
    assert_eq!(done(&mut machine, now).tasks.len(), 1);
}
