//! What a claim takes, in which order, and who is woken by what.

use std::time::Duration;

use super::SECOND;
use super::queue::*;
use crate::protocol::*;

/// Claims with a waiter; what it is told.
fn wait(queue: &Queue, seq: u64) -> ClaimReply {
    let claim = Claim { waiter: waiter(seq), ..queue.claim_of(1) };
    queue.ask_claim(claim)
}

fn empty(next_due: Option<Duration>, rank: u32) -> ClaimReply {
    ClaimReply::Empty { next_due, rank, slot: None }
}

/// The waiters that were chosen, and forgets it.
fn woken(queue: &Queue) -> String {
    let chosen = queue.store.inside(|connection| {
        let sql = "SELECT coalesce(group_concat(seq, ' ' ORDER BY seq), '') FROM idle WHERE chosen = 1";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    });
    queue.store.sql("DELETE FROM idle WHERE chosen = 1");
    chosen
}

fn in_millis(name: &str, millis: u64) -> NewTask {
    NewTask { due: Due::In(Duration::from_millis(millis)), ..task(name) }
}

fn with_priority(name: &str, priority: u8) -> NewTask {
    NewTask { priority, ..task(name) }
}

#[test]
fn higher_priorities_come_first_then_the_order_of_becoming_ready() {
    let queue = queue();
    let priorities = [("a", 0), ("b", 255), ("c", 1), ("d", 255), ("e", 0), ("f", 128)];
    queue.enqueue_all(priorities.map(|(name, priority)| with_priority(name, priority)).into());
    assert_eq!(ids(&queue.claim(9)), "b d f c a e");
}

#[test]
fn scheduled_tasks_become_ready_in_the_order_of_their_dues() {
    let queue = queue();
    queue.enqueue_all(vec![in_millis("a", 3), in_millis("c", 1), in_millis("d", 9), in_millis("b", 2)]);
    assert_eq!(queue.claim(9), []);
    queue.pass(Duration::from_millis(3));
    queue.add(&["z"]);
    assert_eq!(ids(&queue.claim(9)), "z c b a", "what was put in line before stays before");
    assert_eq!(queue.shape("d"), "scheduled 0 d");
}

#[test]
fn leases_that_ended_come_back_before_what_became_due() {
    let queue = queue();
    queue.add(&["a", "b"]);
    let last = NewTask { max_attempts: 1, ..task("last") };
    queue.enqueue_all(vec![last, in_millis("due", 10)]);
    queue.claim(3);
    queue.pass(LEASE);
    let again = queue.claim(9);
    assert_eq!(ids(&again), "a b due");
    assert_eq!(again.iter().map(|task| task.attempt).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(queue.stats().dead, 1);
}

#[test]
fn one_call_promotes_a_limited_number() {
    let queue = queue();
    let soon: Vec<_> = (0..1_500).map(|number| in_millis(&format!("{number:04}"), 1)).collect();
    queue.enqueue_all(soon[..1_000].to_vec());
    queue.enqueue_all(soon[1_000..].to_vec());
    queue.pass(SECOND);
    assert_eq!(wait(&queue, 1), ClaimReply::Claimed(queue_first(&queue)));
    let record = queue.store.count("SELECT ready FROM queue");
    assert_eq!((record, queue.store.count("SELECT scheduled FROM queue")), (999, 500));
    queue.promote();
    assert_eq!(queue.store.count("SELECT scheduled FROM queue"), 0);
    let taken = queue.claim(u32::MAX);
    assert_eq!(taken.len(), 1_000);
    assert!(taken.is_sorted_by_key(|task| task.id.clone()));
}

/// The first task as it was claimed.
fn queue_first(queue: &Queue) -> Vec<ClaimedTask> {
    let record = queue.get("0000").unwrap();
    vec![ClaimedTask {
        key: None,
        node: None,
        id: record.id,
        body: record.body,
        receipt: record.receipt,
        attempt: record.attempts,
        max_attempts: record.max_attempts,
        version: record.version,
        due: record.due,
        priority: record.priority,
        remaining: record.remaining,
    }]
}

#[test]
fn the_limit_is_one_for_all_that_is_promoted() {
    let queue = queue();
    queue.enqueue_all((0..600).map(|number| task(&format!("ended {number}"))).collect());
    queue.claim(600);
    queue.enqueue_all((0..600).map(|number| in_millis(&format!("due {number}"), 1)).collect());
    queue.pass(LEASE);
    queue.promote();
    let count = |sql| queue.store.count(sql);
    assert_eq!((count("SELECT ready FROM queue"), count("SELECT scheduled FROM queue")), (1_000, 200));
}

#[test]
fn expired_tasks_die_on_the_way_and_do_not_count() {
    let queue = queue();
    let short = |name: &str| NewTask { expires: Some(SECOND), ..task(name) };
    queue.enqueue_all(vec![short("a"), short("b"), task("c"), task("d")]);
    queue.pass(SECOND - Duration::from_millis(1));
    let receipt = queue.take("a");
    queue.settle("a", receipt, nack());
    queue.pass(Duration::from_millis(1));
    assert_eq!(ids(&queue.claim(2)), "c d");
    assert_eq!(queue.claim(1), []);
    // What it failed of is not forgotten.
    for (name, reason) in [("a", "expired; before: no"), ("b", "expired")] {
        let record = queue.get(name).unwrap();
        assert_eq!((record.state, &*record.reason, record.died), (TaskState::Dead, reason, queue.now()));
        assert_ne!(record.receipt, Receipt::NONE);
    }
    assert_eq!(queue.stats().died, 2);
}

#[test]
fn the_successor_of_an_expired_task_comes_into_line_after_those_that_stand_there() {
    let queue = queue();
    queue.enqueue(NewTask { expires: Some(SECOND), ..task("a") });
    let receipt = queue.take("a");
    queue.enqueue(NewTask { body: b"s"[..].into(), priority: 9, ..task("a") });
    queue.settle("a", receipt, Verdict::Nack { delay: SECOND, reason: "no".into() });
    queue.pass(SECOND);
    queue.add(&["b"]);
    assert_eq!(ids(&queue.claim(3)), "b", "the line as it stood");
    assert_eq!(queue.claim(1)[0].body, b"s"[..].into());
    assert_eq!(queue.stats().dead, 1);
}

#[test]
fn one_call_looks_at_a_limited_number_of_expired_tasks() {
    let queue = queue();
    let short = |number| NewTask { expires: Some(SECOND), ..task(&format!("{number}")) };
    queue.enqueue_all((0..350).map(short).collect());
    queue.add(&["good"]);
    queue.pass(SECOND);
    assert_eq!(wait(&queue, 1), empty(Some(Duration::ZERO), 0));
    queue.take("good");
}

#[test]
fn a_reply_carries_a_limited_size_but_always_one_task() {
    let queue = queue();
    let big = |name: &str, size: usize| NewTask { body: vec![1; size].into(), ..task(name) };
    queue.enqueue_all(vec![
        big("a", 5 << 17),
        big("b", 3 << 17),
        big("c", 1),
        big("d", 9 << 17),
        big("e", 1),
    ]);
    assert_eq!(ids(&queue.claim(9)), "a b");
    assert_eq!(ids(&queue.claim(9)), "c");
    assert_eq!(ids(&queue.claim(9)), "d");
    assert_eq!(ids(&queue.claim(9)), "e");
}

#[test]
fn receipts_and_attempts_grow() {
    let queue = queue();
    queue.add(&["a"]);
    let first = &queue.claim(1)[0];
    queue.settle("a", first.receipt, nack());
    let second = &queue.claim(1)[0];
    assert!(second.receipt > first.receipt);
    assert_eq!((first.attempt, second.attempt, second.max_attempts), (1, 2, 3));
}

#[test]
fn an_empty_claim_says_when_to_come_again() {
    let queue = queue();
    assert_eq!(wait(&queue, 1), empty(None, 0));
    queue.add(&["a"]);
    queue.take("a");
    assert_eq!(wait(&queue, 1), empty(Some(LEASE), 0));
    queue.enqueue(in_millis("b", 1_500));
    assert_eq!(wait(&queue, 1), empty(Some(Duration::from_millis(1_500)), 0));
    assert_eq!(queue.ask_claim(queue.claim_of(1)), empty(Some(Duration::from_millis(1_500)), 0));
}

#[test]
fn the_rank_counts_live_waiters_that_came_before() {
    let queue = queue();
    for (seq, rank) in [(1, 0), (2, 1), (3, 2)] {
        assert_eq!(wait(&queue, seq), empty(None, rank));
        queue.pass(SECOND);
    }
    assert_eq!(wait(&queue, 1), empty(None, 2), "who asks again is the last");
    queue.pass(Duration::from_secs(7));
    assert_eq!(wait(&queue, 9), empty(None, 1), "2 and 3 are gone");
}

#[test]
fn what_makes_a_new_chance_wakes_the_first_waiter() {
    let queue = queue();
    let begin = || {
        wait(&queue, 1);
        queue.pass(SECOND);
        wait(&queue, 2);
    };
    let end = || {
        queue.store.sql("DELETE FROM idle");
    };
    begin();
    queue.add(&["a", "b"]);
    assert_eq!(woken(&queue), "1", "one call wakes one");
    end();
    let receipt = queue.take("a");
    queue.take("b");
    begin();
    queue.enqueue(in_millis("c", 5_000));
    assert_eq!(woken(&queue), "1", "an earlier due");
    queue.enqueue(in_millis("d", 9_000));
    assert_eq!(woken(&queue), "", "no earlier due");
    queue.enqueue(in_millis("e", 4_000));
    assert_eq!(woken(&queue), "2");
    end();
    begin();
    queue.settle("a", receipt, Verdict::Ack);
    assert_eq!(woken(&queue), "", "nothing new");
    end();
}

#[test]
fn nacks_put_backs_successors_and_moved_dues_are_chances() {
    for verdict in [nack(), Verdict::PUT_BACK, Verdict::Ack, bury()] {
        let queue = queue();
        queue.add(&["a"]);
        let receipt = queue.take("a");
        if matches!(verdict, Verdict::Ack | Verdict::Bury { .. }) {
            queue.add(&["a"]);
        }
        wait(&queue, 1);
        queue.settle("a", receipt, verdict);
        assert_eq!(woken(&queue), "1");
    }
    let queue = queue();
    queue.enqueue(in_millis("a", 900));
    wait(&queue, 1);
    queue.ask(QueueVerb::Reschedule(Reschedule { id: id("a"), due: Due::In(SECOND) }));
    assert_eq!(woken(&queue), "");
    queue.ask(QueueVerb::Reschedule(Reschedule { id: id("a"), due: Due::In(SECOND / 2) }));
    assert_eq!(woken(&queue), "1");
}

#[test]
fn a_claim_that_leaves_tasks_wakes_the_next() {
    let queue = queue();
    for seq in [1, 2, 3] {
        wait(&queue, seq);
        queue.pass(Duration::from_millis(1));
    }
    queue.add(&["a", "b"]);
    assert_eq!(woken(&queue), "1");
    wait(&queue, 1);
    assert_eq!(woken(&queue), "2");
    wait(&queue, 2);
    assert_eq!(woken(&queue), "", "nothing is left");
    assert_eq!(queue.store.count("SELECT count(*) FROM idle"), 1, "who got something is not idle");
}

#[test]
fn who_gets_something_is_not_idle_and_who_gets_nothing_is_again() {
    let queue = queue();
    wait(&queue, 1);
    queue.add(&["a"]);
    queue.take("a");
    wait(&queue, 1);
    assert_eq!(woken(&queue), "", "chosen before, it is idle again");
    queue.add(&["b"]);
    assert_eq!(woken(&queue), "1");
    queue.store.sql("INSERT INTO idle SELECT id, 9, 2, 1000000000, 0, '' FROM queue");
    assert!(matches!(wait(&queue, 2), ClaimReply::Claimed(_)));
    assert_eq!(queue.store.count("SELECT count(*) FROM idle"), 0);
}

#[test]
fn a_settle_and_claim_wakes_for_what_it_leaves() {
    for (delay, max, expected) in [(SECOND, 1, "7"), (Duration::ZERO, 1, "7"), (Duration::ZERO, 2, "")] {
        let queue = queue();
        queue.add(&["a"]);
        let receipt = queue.take("a");
        queue.add(&["b"]);
        queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0, '' FROM queue");
        let verdict = Verdict::Nack { delay, reason: "no".into() };
        let settle = Settle { items: vec![Settlement { id: id("a"), receipt, verdict }].into() };
        let reply = queue.ask(QueueVerb::SettleAndClaim(settle, queue.claim_of(max)));
        let QueueReply::SettleAndClaim(settled, ClaimReply::Claimed(_)) = reply else { panic!("{reply:?}") };
        assert_eq!(settled, [DONE]);
        assert_eq!(woken(&queue), expected);
    }
}

#[test]
fn a_settle_and_claim_that_gets_nothing_wakes_another_unless_it_waits_itself() {
    for (waits, expected) in [(None, "7"), (waiter(8), "")] {
        let queue = queue();
        queue.add(&["a"]);
        let receipt = queue.take("a");
        queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0, '' FROM queue");
        let verdict = Verdict::Nack { delay: SECOND, reason: "no".into() };
        let settle = Settle { items: vec![Settlement { id: id("a"), receipt, verdict }].into() };
        let claim = Claim { waiter: waits, ..queue.claim_of(1) };
        let reply = queue.ask(QueueVerb::SettleAndClaim(settle, claim));
        let rank = 0;
        assert_eq!(reply, QueueReply::SettleAndClaim(vec![DONE], empty(Some(SECOND), rank)));
        assert_eq!(woken(&queue), expected);
    }
}

#[test]
fn dead_waiters_are_passed_over_and_cleaned_away() {
    let queue = queue();
    wait(&queue, 1);
    queue.pass(Duration::from_secs(7));
    wait(&queue, 2);
    queue.pass(SECOND);
    queue.add(&["a"]);
    assert_eq!(woken(&queue), "2");
    queue.take("a");
    wait(&queue, 3);
    assert_eq!(queue.store.count("SELECT count(*) FROM idle"), 1);
}

#[test]
fn a_paused_queue_gives_and_wakes_nothing() {
    let queue = queue();
    queue.add(&["a", "b"]);
    let receipt = queue.take("a");
    queue.pause(true);
    assert_eq!(wait(&queue, 1), ClaimReply::Paused { rank: 0 });
    queue.pass(Duration::from_millis(1));
    assert_eq!(wait(&queue, 2), ClaimReply::Paused { rank: 1 });
    assert_eq!(queue.ask(QueueVerb::Pop(Pop { max: 1 })), QueueReply::Pop(None));
    queue.add(&["c"]);
    let extend = ExtendClaim { id: id("a"), receipt, lease: LEASE, progress: None };
    let extended = QueueReply::ExtendClaim(ExtendClaimReply::Extended(LEASE));
    assert_eq!(queue.ask(QueueVerb::ExtendClaim(extend)), extended);
    assert_eq!(queue.settle("a", receipt, nack()), DONE);
    assert_eq!(woken(&queue), "");
    queue.pause(true);
    assert_eq!(woken(&queue), "");
    queue.pause(false);
    assert_eq!(woken(&queue), "1");
    queue.pause(false);
    assert_eq!(woken(&queue), "", "it was not paused");
    assert_eq!(ids(&queue.claim(9)), "b c a");
}

#[test]
fn a_paused_queue_promotes_nothing() {
    let queue = queue();
    queue.enqueue(NewTask { max_attempts: 1, ..task("a") });
    queue.take("a");
    queue.pause(true);
    queue.pass(LEASE);
    wait(&queue, 1);
    assert_eq!(queue.shape("a"), "claimed running 1 a");
    queue.pause(false);
    wait(&queue, 1);
    assert_eq!(queue.stats().dead, 1);
}
