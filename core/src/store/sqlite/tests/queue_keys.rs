//! Tasks that are held by their keys, beside a library that knows no keys.

use super::queue::{LEASE, Queue, queue, task};
use crate::base::name::TaskKey;
use crate::protocol::*;

/// Two of one key, of which one runs and has a successor, and the other is held.
fn held() -> Queue {
    let queue = queue();
    queue.configure(Configure { key_concurrency: Some(Some(1)), ..Configure::default() });
    let of_key = |name| NewTask { key: TaskKey::parse("k").ok(), ..task(name) };
    queue.enqueue_all(vec![of_key("runs"), of_key("held")]);
    queue.take("runs");
    queue.enqueue(of_key("runs"));
    queue
}

/// It would say that the file is damaged.
#[test]
fn a_held_task_is_in_no_state_that_0_1_0_does_not_know() {
    let queue = held();
    assert_eq!(queue.store.count("SELECT count(*) FROM task WHERE state NOT BETWEEN 0 AND 3"), 0);
    assert_eq!(queue.get("held").unwrap().state, TaskState::Held);
    assert_eq!((queue.stats().held, queue.stats().successors), (1, 1));
}

/// For it that was a successor: it counts one fewer, and nobody counts one fewer that is held.
#[test]
fn a_successor_is_found_when_0_1_0_has_dropped_what_was_held() {
    let queue = held();
    queue.store.sql("DELETE FROM task WHERE id = 'held'; UPDATE queue SET parked = parked - 1");
    queue.pass(LEASE);
    let popped = queue.ask_unchecked(QueueVerb::Pop(Pop { max: 1 }));
    assert!(matches!(&popped, QueueReply::Pop(Some(tasks)) if tasks[0].attempts == 2), "{popped:?}");
    assert_eq!(queue.store.count("SELECT count(*) FROM task WHERE id = 'runs' AND parked = 0"), 1);
}

/// It settles what stands in line, and does not know that the next one may come.
#[test]
fn what_is_held_comes_when_0_1_0_has_settled_what_was_before_it() {
    let queue = held();
    queue.store.sql("DELETE FROM task WHERE id = 'runs'; UPDATE queue SET claimed = 0, parked = 1");
    assert_eq!(queue.claim(1), []);
    queue.take("held");
    // As many as it has dropped are held no more.
    queue.store.sql("DELETE FROM task; UPDATE queue SET claimed = 0, parked = 1, held = 1");
    for _ in 0..2 {
        queue.ask_unchecked(QueueVerb::Claim(queue.claim_of(1)));
    }
    let reply = queue.ask_unchecked(QueueVerb::Claim(queue.claim_of(1)));
    assert_eq!(reply, QueueReply::Claim(ClaimReply::Empty { next_due: None, rank: 0, slot: None }));
}
