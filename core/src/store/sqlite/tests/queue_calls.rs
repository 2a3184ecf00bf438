//! Calls that are repeated, come late, or were given up.

use std::time::Duration;

use super::queue::*;
use super::{CLIENT, SECOND};
use crate::protocol::*;

fn call(slot: u32, number: u64) -> CallId {
    CallId { client: CLIENT, slot, number }
}

fn claim(number: u64) -> Claim {
    Claim { call: call(1, number), max: 2, lease: LEASE, waiter: None, consumer: CONSUMER.into() }
}

fn put(queue: &Queue, number: u64, names: &[&str]) -> QueueReply {
    let tasks: Vec<_> = names.iter().map(|name| task(name)).collect();
    queue.ask(QueueVerb::Enqueue(Enqueue {
        call: call(1, number),
        timeout: Duration::ZERO,
        tasks: tasks.into(),
    }))
}

fn abandon(queue: &Queue, call: Option<CallId>, waiter: Option<Waiter>) {
    assert_eq!(
        queue.ask(QueueVerb::Abandon(Abandon { call, waiter, consumer: CONSUMER.into() })),
        QueueReply::Abandon
    );
}

fn nothing() -> ClaimReply {
    ClaimReply::Empty { next_due: None, rank: 0, slot: None }
}

#[test]
fn a_repeated_enqueue_does_nothing_and_hears_the_same() {
    let queue = queue();
    queue.configure(Configure { max_len: Some(Some(2)), ..Configure::default() });
    let reply = put(&queue, 1, &["a", "b", "a", "c"]);
    assert_eq!(queue.claim(9).len(), 2);
    queue.pass(SECOND);
    assert_eq!(put(&queue, 1, &["a", "b", "a", "c"]), reply);
    assert_eq!(queue.shape("a"), "claimed running 1 a", "no successor was made");
    assert_eq!(queue.stats().enqueued, 3);
}

#[test]
fn every_outcome_is_kept_for_a_repetition() {
    let queue = queue();
    let policies = [
        OnDuplicate::Throttle { window: SECOND },
        OnDuplicate::Throttle { window: SECOND },
        OnDuplicate::Keep,
        OnDuplicate::Replace,
    ];
    let tasks: Vec<_> = policies.map(|on_duplicate| NewTask { on_duplicate, ..task("a") }).into();
    queue.add(&["x"]);
    queue.take("x");
    let tasks: Vec<_> = tasks.into_iter().chain([task("x")]).collect();
    let verb = QueueVerb::Enqueue(Enqueue { call: call(1, 1), timeout: Duration::ZERO, tasks: tasks.into() });
    let QueueReply::Enqueue(outcomes) = queue.ask(verb.clone()) else { panic!() };
    let words: Vec<_> = outcomes.iter().copied().map(outcome).collect();
    use Outcome::{Added, Kept, Replaced, Successor, Throttled};
    assert_eq!(words, [Added, Throttled, Kept, Replaced, Successor]);
    assert_eq!(queue.ask(verb), QueueReply::Enqueue(outcomes));
}

#[test]
fn a_call_before_the_slots_last_one_is_not_carried_out() {
    let queue = queue();
    put(&queue, 2, &["a"]);
    assert_eq!(put(&queue, 1, &["b"]), QueueReply::Superseded);
    assert_eq!(queue.ask(QueueVerb::Claim(claim(1))), QueueReply::Superseded);
    let settle = Settle { items: vec![].into() };
    assert_eq!(queue.ask(QueueVerb::SettleAndClaim(settle, claim(1))), QueueReply::Superseded);
    assert_eq!(queue.shape("b"), "");
    let other = Enqueue { call: call(2, 1), timeout: Duration::ZERO, tasks: vec![task("b")].into() };
    assert!(matches!(queue.ask(QueueVerb::Enqueue(other)), QueueReply::Enqueue(_)), "slots are apart");
    let client = ClientId(77);
    let other = Enqueue {
        call: CallId { client, ..call(1, 1) },
        timeout: Duration::ZERO,
        tasks: vec![task("c")].into(),
    };
    assert!(matches!(queue.ask(QueueVerb::Enqueue(other)), QueueReply::Enqueue(_)), "so are clients");
}

#[test]
fn a_repeated_claim_gives_what_is_still_held() {
    let queue = queue();
    queue.add(&["a", "b", "c"]);
    let ClaimReply::Claimed(first) = queue.ask_claim(claim(1)) else { panic!() };
    queue.pass(SECOND);
    let ClaimReply::Claimed(again) = queue.ask_claim(claim(1)) else { panic!() };
    assert_eq!(again[0].remaining, LEASE - SECOND);
    let without_time = |tasks: &[ClaimedTask]| -> Vec<_> {
        tasks.iter().map(|task| ClaimedTask { remaining: LEASE, ..task.clone() }).collect()
    };
    assert_eq!(without_time(&again), without_time(&first));
    assert_eq!(queue.shape("c"), "ready 0 c");
    queue.settle("a", first[0].receipt, Verdict::Ack);
    let ClaimReply::Claimed(again) = queue.ask_claim(claim(1)) else { panic!() };
    assert_eq!(ids(&again), "b");
    queue.pass(LEASE);
    assert!(matches!(queue.ask_claim(claim(1)), ClaimReply::Empty { .. }));
    assert_eq!(queue.shape("b"), "claimed running 1 b", "a repetition promotes nothing");
}

#[test]
fn a_repeated_claim_does_not_give_what_another_has() {
    let queue = queue();
    queue.add(&["a"]);
    let ClaimReply::Claimed(first) = queue.ask_claim(claim(1)) else { panic!() };
    queue.settle("a", first[0].receipt, nack());
    queue.take("a");
    assert!(matches!(queue.ask_claim(claim(1)), ClaimReply::Empty { .. }));
}

#[test]
fn a_repeated_empty_claim_takes_nothing_and_waits() {
    let queue = queue();
    assert_eq!(queue.ask_claim(claim(1)), nothing());
    queue.add(&["a"]);
    let again = Claim { waiter: waiter(1), ..claim(1) };
    assert_eq!(
        queue.ask_claim(again),
        ClaimReply::Empty { next_due: Some(Duration::ZERO), rank: 0, slot: None }
    );
    assert_eq!(queue.shape("a"), "ready 0 a");
    assert_eq!(queue.store.count("SELECT count(*) FROM idle"), 1);
}

#[test]
fn a_repeated_settle_and_claim_does_both_once() {
    let queue = queue();
    queue.add(&["a", "b"]);
    let receipt = queue.take("a");
    let items = vec![
        Settlement { id: id("a"), receipt, verdict: nack() },
        Settlement { id: id("a"), receipt, verdict: Verdict::Ack },
        Settlement { id: id("z"), receipt, verdict: bury() },
    ];
    let verb = QueueVerb::SettleAndClaim(Settle { items: items.into() }, Claim { max: 1, ..claim(1) });
    let reply = queue.ask(verb.clone());
    let QueueReply::SettleAndClaim(settled, ClaimReply::Claimed(claimed)) = &reply else { panic!() };
    assert_eq!(*settled, [DONE, Settled::Stale, Settled::Gone]);
    assert_eq!(ids(claimed), "b");
    assert_eq!(queue.ask(verb), reply);
    assert_eq!((queue.shape("a"), queue.stats().retried), ("ready 1 a".into(), 1));
}

#[test]
fn calls_are_forgotten_after_a_while() {
    let queue = queue();
    put(&queue, 5, &["a"]);
    queue.pass(Duration::from_secs(600));
    assert_eq!(put(&queue, 4, &["b"]), put(&queue, 4, &["b"]));
    assert_eq!(queue.shape("b"), "ready 0 b");
}

/// Each new one looks at a few others: nobody looks at all of them, and yet they do not grow in number.
#[test]
fn old_calls_go_as_new_clients_come() {
    const CLIENTS: u64 = 300;
    let queue = queue();
    let claims = |first: u64| {
        for number in first..first + CLIENTS {
            // As good as random.
            let client = ClientId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            queue.ask(QueueVerb::Claim(Claim { call: CallId { client, slot: 0, number: 1 }, ..claim(1) }));
        }
        queue.store.count("SELECT count(*) FROM call")
    };
    assert_eq!(claims(1), i64::try_from(CLIENTS).unwrap());
    assert_eq!(claims(CLIENTS + 1), i64::try_from(2 * CLIENTS).unwrap(), "none of them is old yet");
    queue.pass(Duration::from_secs(600));
    let left = claims(2 * CLIENTS + 1) - i64::try_from(CLIENTS).unwrap();
    assert!(left < 30, "{left} of {} old ones are left", 2 * CLIENTS);
}

#[test]
fn what_an_abandoned_claim_took_goes_back_uncounted() {
    let queue = queue();
    queue.add(&["a", "b"]);
    let ClaimReply::Claimed(taken) = queue.ask_claim(claim(1)) else { panic!() };
    queue.settle("a", taken[0].receipt, nack());
    queue.take("a");
    queue.ask_claim(Claim { waiter: waiter(3), ..queue.claim_of(1) });
    abandon(&queue, Some(call(1, 1)), None);
    assert_eq!((queue.shape("a"), queue.shape("b")), ("claimed running 2 a".into(), "ready 0 b".into()));
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1, "the next one is woken");
    assert_eq!(
        queue.ask_claim(claim(1)),
        ClaimReply::Empty { next_due: Some(Duration::ZERO), rank: 0, slot: None }
    );
    assert_eq!(queue.settle("b", taken[1].receipt, Verdict::PUT_BACK), DONE);
    assert_eq!(queue.settle("b", taken[1].receipt, Verdict::Ack), Settled::Stale);
}

#[test]
fn an_abandoned_claim_whose_lease_ended_is_left_alone() {
    let queue = queue();
    queue.add(&["a"]);
    queue.ask_claim(claim(1));
    queue.pass(LEASE);
    abandon(&queue, Some(call(1, 1)), None);
    assert_eq!(queue.shape("a"), "claimed running 1 a");
}

#[test]
fn a_copy_that_comes_after_its_abandonment_does_nothing() {
    let queue = queue();
    queue.add(&["a"]);
    abandon(&queue, Some(call(1, 2)), None);
    let late = Claim { waiter: waiter(3), ..claim(2) };
    assert!(matches!(queue.ask_claim(late), ClaimReply::Empty { .. }));
    assert_eq!(queue.store.count("SELECT count(*) FROM idle"), 0);
    assert_eq!(put(&queue, 2, &["b"]), QueueReply::Superseded);
    assert_eq!(queue.ask(QueueVerb::Claim(claim(1))), QueueReply::Superseded);
    assert_eq!((queue.shape("a"), queue.shape("b")), ("ready 0 a".into(), String::new()));
    let ClaimReply::Claimed(taken) = queue.ask_claim(claim(3)) else { panic!() };
    abandon(&queue, Some(call(1, 2)), None);
    assert_eq!(queue.shape("a"), "claimed running 1 a", "an older number is nothing");
    assert_eq!(taken.len(), 1);
}

#[test]
fn a_chosen_waiter_that_stops_passes_the_wake_on() {
    // Whether it was chosen, whether there is something to claim, whether the other one is woken.
    for (chosen, ready, woken) in [(true, true, 1), (true, false, 0), (false, true, 0)] {
        let queue = queue();
        if ready {
            queue.add(&["a"]);
        } else {
            queue.promote();
        }
        let idle = |seq: i64, chosen: bool| {
            queue
                .store
                .sql(&format!("INSERT INTO idle SELECT id, 9, {seq}, 1000000000, {chosen}, '' FROM queue"));
        };
        idle(1, chosen);
        idle(2, false);
        abandon(&queue, None, waiter(1));
        assert_eq!(queue.store.count("SELECT count(*) FROM idle WHERE seq = 1"), 0);
        assert_eq!(queue.store.count("SELECT chosen FROM idle WHERE seq = 2"), woken, "{chosen} {ready}");
    }
}

#[test]
fn a_wake_is_passed_on_for_what_is_due_and_not_promoted() {
    let queue = queue();
    queue.enqueue(NewTask { due: Due::In(SECOND), ..task("a") });
    queue.ask_claim(Claim { waiter: waiter(2), ..queue.claim_of(1) });
    abandon(&queue, None, waiter(1));
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
    queue.pass(SECOND);
    abandon(&queue, None, waiter(1));
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
}
