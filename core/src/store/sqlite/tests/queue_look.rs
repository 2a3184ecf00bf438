//! Looking at queues: peek, get, list, stats.

use std::time::Duration;

use super::queue::*;
use super::{CLIENT, SECOND, prefixes, soon};
use crate::protocol::*;
use crate::store::Store;

fn peek(queue: &Queue, max: u32) -> Vec<TaskRecord> {
    match queue.ask(QueueVerb::Peek(Peek { max })) {
        QueueReply::Peek(tasks) => tasks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_due_is_ready_promoted_or_not() {
    let queue = full_queue();
    let before = queue.store.count("SELECT sum(serial * (state + 1)) FROM task");
    let due = "ready 1 ready 2 due 1 due 2 ended";
    assert_eq!(names(&peek(&queue, 9)), due);
    assert_eq!(names(&peek(&queue, 4)), "ready 1 ready 2 due 1 due 2");
    assert_eq!(list(&queue, TaskState::Ready), due);
    assert_eq!(list(&queue, TaskState::Scheduled), "scheduled");
    assert_eq!(list(&queue, TaskState::Claimed), "claimed");
    assert_eq!(list(&queue, TaskState::Dead), "dead");
    let stats = queue.stats();
    assert_eq!((stats.ready, stats.scheduled, stats.claimed, stats.dead), (5, 1, 1, 1));
    assert_eq!(stats.next_due, Some(Duration::ZERO));
    for (name, state) in [
        ("ready 1", TaskState::Ready),
        ("due 1", TaskState::Ready),
        ("ended", TaskState::Ready),
        ("scheduled", TaskState::Scheduled),
        ("claimed", TaskState::Claimed),
        ("dead", TaskState::Dead),
    ] {
        assert_eq!(queue.get(name).unwrap().state, state);
    }
    assert_eq!(
        queue.store.count("SELECT sum(serial * (state + 1)) FROM task"),
        before,
        "a look changes nothing"
    );
    assert_eq!(ids(&queue.claim(9)), "ready 1 ready 2 ended due 1 due 2");
}

#[test]
fn lists_come_in_pages() {
    let queue = full_queue();
    for max in [1, 2, 3] {
        let (mut from, mut all) = (None, Vec::new());
        loop {
            let (names, next) = page(&queue, TaskState::Ready, from, max);
            all.push(names);
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(all.join(" ").trim(), "ready 1 ready 2 due 1 due 2 ended", "{max}");
    }
    kill(&queue, "dead 2");
    queue.pass(SECOND);
    kill(&queue, "dead 3");
    let (names, next) = page(&queue, TaskState::Dead, None, 2);
    assert_eq!(names, "dead 3 dead 2");
    assert_eq!(page(&queue, TaskState::Dead, next, 2), ("dead".into(), None));
}

#[test]
fn answers_have_a_limited_size() {
    let queue = queue();
    let big = |name: &str| NewTask { body: vec![0; 5 << 20].into(), ..task(name) };
    queue.enqueue_all(vec![big("a"), big("b")]);
    assert_eq!(names(&peek(&queue, 9)), "a");
    let (first, next) = page(&queue, TaskState::Ready, None, 9);
    assert_eq!(first, "a");
    assert_eq!(page(&queue, TaskState::Ready, next, 9), ("b".into(), None));
    assert_eq!(names(&pop(&queue, 9)), "a");
}

#[test]
fn a_record_tells_everything() {
    let queue = queue();
    assert_eq!(queue.get("a"), None);
    let made = NewTask { priority: 7, expires: Some(DAY), ..task("a") };
    let version = version(queue.enqueue(made));
    let receipt = queue.take("a");
    queue.enqueue(later("a", 60));
    queue.pass(SECOND);
    let now = queue.now();
    let claimed = TaskRecord {
        key: None,
        id: id("a"),
        state: TaskState::Claimed,
        body: b"a"[..].into(),
        size: 1,
        version,
        due: now - 1_000,
        priority: 7,
        attempts: 1,
        max_attempts: 3,
        expires: now - 1_000 + 24 * 3_600_000,
        receipt,
        remaining: LEASE - SECOND,
        reason: String::new(),
        consumer: CONSUMER.to_owned(),
        died: 0,
        successor_due: Some(now + 59_000),
        failures: Vec::new(),
        progress: [].into(),
        cancelled: false,
    };
    assert_eq!(*queue.get("a").unwrap(), claimed);
    queue.settle("a", receipt, bury());
    remove(&queue, "a", None);
    let dead = TaskRecord {
        state: TaskState::Dead,
        remaining: Duration::ZERO,
        reason: "bad".into(),
        died: now,
        failures: vec![AttemptFailed { at: now, reason: "bad".into() }],
        successor_due: None,
        ..claimed
    };
    assert_eq!(*queue.get("a").unwrap(), dead);
}

#[test]
fn the_newest_dead_record_of_an_id_is_shown() {
    let queue = queue();
    kill(&queue, "a");
    let newest = kill(&queue, "a");
    assert_eq!(queue.get("a").unwrap().receipt, newest);
    queue.add(&["a"]);
    assert_eq!(queue.get("a").unwrap().state, TaskState::Ready);
}

#[test]
fn stats_count() {
    let queue = queue();
    assert_eq!(queue.stats(), QueueStats::default());
    queue.enqueue(later("a", 9));
    assert_eq!(queue.stats().next_due, Some(9 * SECOND));
    queue.add(&["b"]);
    queue.take("b");
    queue.add(&["b"]);
    let stats = queue.stats();
    assert_eq!((stats.scheduled, stats.claimed, stats.successors, stats.enqueued), (1, 1, 1, 3));
    queue.pass(9 * SECOND);
    assert_eq!((queue.stats().ready, queue.stats().scheduled), (1, 0));
    queue.pause(true);
    assert!(queue.stats().paused);
}

#[test]
fn queues_are_apart_and_listed_page_by_page() {
    let queue = queue();
    queue.add(&["a"]);
    for number in 0..1_100 {
        let name = prefixes().queue_name(&format!("n{number}")).unwrap();
        let call = CallId { client: CLIENT, slot: 0, number: 1 };
        let verb = if number == 7 {
            // Asking a queue does not make it one.
            QueueVerb::Claim(Claim { call, max: 1, lease: LEASE, waiter: None, consumer: CONSUMER.into() })
        } else {
            QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: vec![task("a")].into() })
        };
        queue.store.perform(&Request::Queue(QueueRequest { queue: name, verb }), soon()).unwrap();
    }
    queue.take("a");
    assert_eq!(queue.claim(9), []);
    let (next, first) = queue.store.list_queues(0, soon()).unwrap();
    let (end, rest) = queue.store.list_queues(next, soon()).unwrap();
    assert_eq!((end, first.len() + rest.len()), (0, 1_100));
    assert!(!first.iter().any(|name| name.as_str() == "n7"));
}
