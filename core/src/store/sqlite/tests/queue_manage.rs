//! Looking at queues, and the verbs of those who look after them.

use std::time::Duration;

use super::queue::*;
use super::{CLIENT, SECOND, prefixes, soon};
use crate::store::Store;
use crate::verbs::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn later(name: &str, seconds: u32) -> NewTask {
    NewTask { due: Due::In(SECOND * seconds), ..task(name) }
}

fn names(tasks: &[TaskRecord]) -> String {
    tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>().join(" ")
}

fn peek(queue: &Queue, max: u32) -> Vec<TaskRecord> {
    match queue.ask(QueueVerb::Peek(Peek { max })) {
        QueueReply::Peek(tasks) => tasks,
        other => panic!("{other:?}"),
    }
}

fn page(queue: &Queue, state: TaskState, cursor: u64, max: u32) -> (String, Option<u64>) {
    match queue.ask(QueueVerb::List(List { state, cursor, max })) {
        QueueReply::List(ListReply { tasks, next }) => {
            assert!(tasks.iter().all(|task| task.state == state));
            (names(&tasks), next)
        }
        other => panic!("{other:?}"),
    }
}

fn list(queue: &Queue, state: TaskState) -> String {
    page(queue, state, 0, 100).0
}

fn pop(queue: &Queue, max: u32) -> Vec<TaskRecord> {
    match queue.ask(QueueVerb::Pop(Pop { max })) {
        QueueReply::Pop(Some(tasks)) => tasks,
        other => panic!("{other:?}"),
    }
}

fn remove(queue: &Queue, name: &str, version: Option<Version>) -> RemoveReply {
    match queue.ask(QueueVerb::Remove(Remove { id: id(name), version })) {
        QueueReply::Remove(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn reschedule(queue: &Queue, name: &str, seconds: u32) -> RescheduleReply {
    match queue.ask(QueueVerb::Reschedule(Reschedule { id: id(name), due: Due::In(SECOND * seconds) })) {
        QueueReply::Reschedule(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn kick(queue: &Queue, which: Kick) -> u64 {
    match queue.ask(QueueVerb::Kick(which)) {
        QueueReply::Kick(count) => count,
        other => panic!("{other:?}"),
    }
}

/// Lets a task die; under this receipt.
fn kill(queue: &Queue, name: &str) -> Receipt {
    queue.enqueue(NewTask { priority: 255, ..task(name) });
    let receipt = queue.take(name);
    assert_eq!(queue.settle(name, receipt, bury()), DEAD);
    receipt
}

/// A queue with tasks in all places: two in line, two due and not promoted, one with a lease that ended,
/// one claimed, one scheduled, one dead.
fn full_queue() -> Queue {
    let queue = queue();
    kill(&queue, "dead");
    queue.add(&["ended"]);
    queue.take("ended");
    queue.enqueue_all(vec![later("due 2", 29), later("due 1", 28), later("scheduled", 90)]);
    queue.pass(LEASE - SECOND * 2);
    queue.add(&["claimed"]);
    queue.store.sql("UPDATE task SET due = due + 1 WHERE id = 'due 1'");
    queue.take("claimed");
    queue.pass(SECOND * 2);
    queue.add(&["ready 1", "ready 2"]);
    queue
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
        let (mut cursor, mut all) = (0, Vec::new());
        loop {
            let (names, next) = page(&queue, TaskState::Ready, cursor, max);
            all.push(names);
            match next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        assert_eq!(all.join(" ").trim(), "ready 1 ready 2 due 1 due 2 ended", "{max}");
    }
    kill(&queue, "dead 2");
    queue.pass(SECOND);
    kill(&queue, "dead 3");
    assert_eq!(page(&queue, TaskState::Dead, 0, 2), ("dead 3 dead 2".into(), Some(2)));
    assert_eq!(page(&queue, TaskState::Dead, 2, 2), ("dead".into(), None));
}

#[test]
fn answers_have_a_limited_size() {
    let queue = queue();
    let big = |name: &str| NewTask { body: vec![0; 5 << 20].into(), ..task(name) };
    queue.enqueue_all(vec![big("a"), big("b")]);
    assert_eq!(names(&peek(&queue, 9)), "a");
    assert_eq!(page(&queue, TaskState::Ready, 0, 9), ("a".into(), Some(1)));
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
        id: id("a"),
        state: TaskState::Claimed,
        body: b"a"[..].into(),
        version,
        due: now - 1_000,
        priority: 7,
        attempts: 1,
        max_attempts: 3,
        expires: now - 1_000 + 24 * 3_600_000,
        receipt,
        remaining: LEASE - SECOND,
        reason: String::new(),
        died: 0,
        successor_due: Some(now + 59_000),
    };
    assert_eq!(*queue.get("a").unwrap(), claimed);
    queue.settle("a", receipt, bury());
    remove(&queue, "a", None);
    let dead = TaskRecord {
        state: TaskState::Dead,
        remaining: Duration::ZERO,
        reason: "bad".into(),
        died: now,
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
fn popped_tasks_are_gone_and_their_successors_come() {
    let queue = queue();
    queue.enqueue_all(vec![later("due", 1), NewTask { expires: Some(SECOND), ..task("short") }]);
    queue.add(&["a", "b"]);
    queue.pass(SECOND);
    let popped = pop(&queue, 2);
    assert_eq!(names(&popped), "a b");
    assert_eq!((popped[0].attempts, &*popped[0].body), (1, &b"a"[..]));
    assert_eq!(queue.get("short").unwrap().state, TaskState::Dead);
    assert_eq!((queue.stats().acked, queue.stats().ready), (2, 1));
    let receipt = queue.take("due");
    queue.enqueue(task("due"));
    queue.settle("due", receipt, nack());
    assert_eq!(names(&pop(&queue, 1)), "due");
    assert_eq!(queue.shape("due"), "ready 0 due");
    assert_eq!(queue.settle("due", receipt, nack()), Settled::Stale);
}

#[test]
fn a_pop_that_leaves_tasks_wakes_the_next() {
    let queue = queue();
    queue.add(&["a", "b"]);
    queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0 FROM queue");
    pop(&queue, 1);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
    queue.store.sql("UPDATE idle SET chosen = 0");
    pop(&queue, 1);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
}

#[test]
fn remove_takes_the_run_the_successor_and_the_window() {
    let queue = queue();
    assert_eq!(remove(&queue, "a", None), RemoveReply::Absent);
    let throttle = NewTask { on_duplicate: OnDuplicate::Throttle { window: DAY }, ..task("a") };
    let first = version(queue.enqueue(throttle.clone()));
    assert_eq!(remove(&queue, "a", Some(first + 1)), RemoveReply::OtherVersion(first));
    let receipt = queue.take("a");
    let second = version(queue.enqueue(task("a")));
    assert_eq!(remove(&queue, "a", Some(first)), RemoveReply::OtherVersion(second));
    assert_eq!(outcome(queue.enqueue(throttle.clone())), Outcome::Throttled);
    assert_eq!(remove(&queue, "a", Some(second)), RemoveReply::Removed);
    assert_eq!(queue.shape("a"), "");
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Gone);
    assert_eq!(outcome(queue.enqueue(throttle)), Outcome::Added);
}

#[test]
fn remove_leaves_dead_records() {
    let queue = queue();
    kill(&queue, "a");
    assert_eq!(remove(&queue, "a", None), RemoveReply::Absent);
    assert_eq!(queue.stats().dead, 1);
}

#[test]
fn reschedule_moves_what_waits_and_nothing_else() {
    let queue = queue();
    assert_eq!(reschedule(&queue, "a", 5), RescheduleReply::Absent);
    let receipt = kill(&queue, "a");
    assert_eq!(reschedule(&queue, "a", 5), RescheduleReply::Dead);
    queue.add(&["a"]);
    assert_eq!(reschedule(&queue, "a", 5), RescheduleReply::Moved(queue.now() + 5_000));
    assert_eq!(queue.shape("a"), "scheduled 0 a");
    assert_eq!(reschedule(&queue, "a", 0), RescheduleReply::Moved(queue.now()));
    assert!(queue.take("a") > receipt);
    assert_eq!(reschedule(&queue, "a", 5), RescheduleReply::Claimed);
    queue.pass(LEASE);
    assert_eq!(reschedule(&queue, "a", 5), RescheduleReply::Moved(queue.now() + 5_000));
    assert_eq!(queue.shape("a"), "scheduled running 1 a");
    queue.promote();
    assert_eq!(reschedule(&queue, "a", 0), RescheduleReply::Moved(queue.now()));
    assert_eq!(queue.shape("a"), "ready running 1 a");
}

#[test]
fn reschedule_of_a_last_attempt_whose_lease_ended_comes_too_late() {
    let queue = queue();
    queue.enqueue(NewTask { max_attempts: 1, ..task("a") });
    queue.take("a");
    queue.pass(LEASE);
    assert_eq!(reschedule(&queue, "a", 5), RescheduleReply::Dead);
    assert_eq!(queue.get("a").unwrap().reason, "the lease ended");
}

#[test]
fn a_kicked_task_begins_anew() {
    let queue = queue();
    queue.enqueue(NewTask { priority: 9, max_attempts: 1, ..task("a") });
    let receipt = queue.take("a");
    queue.settle("a", receipt, nack());
    queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0 FROM queue");
    queue.pass(SECOND);
    assert_eq!(kick(&queue, Kick::Ids([id("a"), id("a"), id("z")].into())), 1);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
    let record = queue.get("a").unwrap();
    assert_eq!((record.state, record.attempts, record.receipt), (TaskState::Ready, 0, 0));
    assert_eq!((record.priority, record.max_attempts, &*record.reason), (9, 1, "no"));
    assert_eq!(record.due, queue.now());
    assert!(record.version > receipt);
    assert_eq!(queue.settle("a", receipt, nack()), DONE);
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
    assert_eq!(queue.stats().dead, 0);
    assert_eq!(queue.claim(1)[0].attempt, 1);
}

#[test]
fn kick_takes_the_newest_of_an_id_and_the_oldest_of_all() {
    let queue = queue();
    let old = kill(&queue, "a");
    kill(&queue, "a");
    assert_eq!(kick(&queue, Kick::Ids([id("a")].into())), 1);
    assert_eq!(list(&queue, TaskState::Dead), "a");
    assert_eq!(kick(&queue, Kick::Ids([id("a")].into())), 0, "it lives");
    assert_eq!(kick(&queue, Kick::Count(9)), 0, "it lives");
    remove(&queue, "a", None);
    assert_eq!(queue.get("a").unwrap().receipt, old);
    for name in ["b", "c", "b"] {
        queue.pass(SECOND);
        kill(&queue, name);
    }
    queue.add(&["c"]);
    assert_eq!(kick(&queue, Kick::Count(1)), 1);
    assert_eq!(queue.shape("a"), "ready 0 a");
    assert_eq!(kick(&queue, Kick::Count(9)), 1);
    assert_eq!(list(&queue, TaskState::Dead), "b c");
    assert_eq!(ids(&queue.claim(9)), "c a b");
}

#[test]
fn kick_moves_a_limited_number() {
    let queue = queue();
    for half in 0..2 {
        let tasks =
            (0..600).map(|number| NewTask { expires: Some(SECOND), ..task(&format!("{half} {number}")) });
        queue.enqueue_all(tasks.collect());
    }
    queue.pass(SECOND);
    queue.promote();
    queue.claim(1);
    queue.claim(1);
    assert_eq!(queue.stats().dead, 1_200);
    assert_eq!(kick(&queue, Kick::Count(5_000)), 1_000);
}

#[test]
fn stats_count() {
    let queue = queue();
    assert_eq!(queue.stats(), StatsReply::default());
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
fn settings_are_kept_one_by_one() {
    let queue = queue();
    assert_eq!(queue.stats().settings, Settings::default());
    queue.configure(Configure { max_len: Some(Some(5)), dead_max: Some(7), ..Configure::default() });
    queue.configure(Configure { dead_age: Some(DAY), dead_bytes: Some(9), ..Configure::default() });
    queue.configure(Configure { intake: Some(false), ..Configure::default() });
    let settings = Settings { max_len: Some(5), dead_max: 7, dead_age: DAY, dead_bytes: 9, intake: false };
    assert_eq!(queue.stats().settings, settings);
    queue.configure(Configure { max_len: Some(None), ..Configure::default() });
    assert_eq!(queue.stats().settings, Settings { max_len: None, ..settings });
}

#[test]
fn dead_records_have_caps_of_number_age_and_size() {
    let queue = queue();
    for name in ["a", "b", "c"] {
        kill(&queue, name);
        queue.pass(SECOND);
    }
    queue.configure(Configure { dead_max: Some(3), ..Configure::default() });
    kill(&queue, "d");
    assert_eq!(list(&queue, TaskState::Dead), "d c b");
    queue.configure(Configure { dead_bytes: Some(2), ..Configure::default() });
    kill(&queue, "e");
    assert_eq!(list(&queue, TaskState::Dead), "e d");
    queue.configure(Configure { dead_age: Some(SECOND), ..Configure::default() });
    queue.pass(SECOND);
    kill(&queue, "f");
    assert_eq!(list(&queue, TaskState::Dead), "f");
    queue.configure(Configure { dead_max: Some(0), ..Configure::default() });
    assert_eq!(list(&queue, TaskState::Dead), "");
    kill(&queue, "g");
    assert_eq!(queue.stats().dead, 0);
    assert_eq!(queue.stats().died, 7);
}

#[test]
fn one_call_drops_a_limited_number_of_dead_records() {
    let queue = queue();
    queue.enqueue_all(
        (0..250).map(|number| NewTask { expires: Some(SECOND), ..task(&format!("{number}")) }).collect(),
    );
    queue.pass(SECOND);
    queue.claim(1);
    assert_eq!(queue.stats().dead, 250);
    queue.configure(Configure { dead_max: Some(10), ..Configure::default() });
    assert_eq!(queue.stats().dead, 150);
    kill(&queue, "a");
    assert_eq!(queue.stats().dead, 51);
    kill(&queue, "b");
    assert_eq!(queue.stats().dead, 10);
}

#[test]
fn purge_drops_tasks_and_keeps_settings_counters_and_waiters() {
    let queue = full_queue();
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Throttle { window: DAY }, ..task("throttled") });
    queue.enqueue(task("claimed"));
    queue.configure(Configure { max_len: Some(Some(9)), ..Configure::default() });
    queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0 FROM queue");
    let before = queue.stats();
    assert_eq!(queue.ask(QueueVerb::Purge), QueueReply::Purge(9));
    let after =
        StatsReply { scheduled: 0, ready: 0, claimed: 0, dead: 0, successors: 0, next_due: None, ..before };
    assert_eq!(queue.stats(), after);
    assert_eq!(
        (list(&queue, TaskState::Ready), list(&queue, TaskState::Dead)),
        (String::new(), String::new())
    );
    assert_eq!(queue.get("claimed"), None);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Throttle { window: DAY }, ..task("throttled") });
    queue.take("throttled");
}

#[test]
fn a_claim_of_a_purged_task_is_gone() {
    let queue = queue();
    queue.add(&["a"]);
    let receipt = queue.take("a");
    queue.ask(QueueVerb::Purge);
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Gone);
    queue.add(&["a"]);
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Stale);
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
            QueueVerb::Claim(Claim { call, max: 1, lease: LEASE, waiter: None })
        } else {
            QueueVerb::Enqueue(Enqueue { call, tasks: vec![task("a")].into() })
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

#[test]
fn queues_unused_for_a_week_are_forgotten_unless_they_hold_something() {
    let queue = queue();
    let ask = |name: &str, verb| {
        let queue_name = prefixes().queue_name(name).unwrap();
        queue.store.perform(&Request::Queue(QueueRequest { queue: queue_name, verb }), soon()).unwrap();
    };
    let put = |name: &str| {
        let call = CallId { client: CLIENT, slot: 7, number: 1 };
        ask(name, QueueVerb::Enqueue(Enqueue { call, tasks: vec![task("x")].into() }));
    };
    let known = || -> String {
        let sql = "SELECT coalesce(group_concat(substr(key, 7), ' ' ORDER BY key), '') FROM queue";
        queue.store.inside(|connection| connection.query_row(sql, [], |row| row.get(0)).unwrap())
    };
    let emptied = ["drained", "dead", "used"];
    for name in emptied.into_iter().chain(["live"]) {
        put(name);
    }
    for name in emptied {
        ask(name, QueueVerb::Pop(Pop { max: 1 }));
    }
    queue.store.sql(
        "INSERT INTO dead SELECT NULL, id, 5, 'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', x'00' FROM queue
           WHERE key = 'Queue:dead';
         UPDATE queue SET dead = 1, dead_size = 1 WHERE key = 'Queue:dead'",
    );
    ask("paused", QueueVerb::Pause(Pause { paused: true }));
    ask("configured", QueueVerb::Configure(Configure { dead_max: Some(1), ..Configure::default() }));
    queue.pass(6 * DAY);
    ask("used", QueueVerb::Remove(Remove { id: id("z"), version: None }));
    queue.pass(25 * DAY / 24);
    queue.promote();
    assert_eq!(known(), "configured dead live paused q used");
    queue.pass(90 * DAY);
    put("another");
    assert_eq!(known(), "another configured live paused");
    assert_eq!(queue.store.count("SELECT count(*) FROM dead"), 0);
    assert_eq!(queue.store.count("SELECT count(*) FROM call WHERE queue NOT IN (SELECT id FROM queue)"), 0);
}
