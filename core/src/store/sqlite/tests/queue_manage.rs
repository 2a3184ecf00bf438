//! The verbs of those who look after a queue.

use super::SECOND;
use super::queue::*;
use crate::protocol::*;

fn reschedule(queue: &Queue, name: &str, seconds: u32) -> RescheduleReply {
    match queue.ask(QueueVerb::Reschedule(Reschedule { id: id(name), due: Due::In(SECOND * seconds) })) {
        QueueReply::Reschedule(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn kick(queue: &Queue, among: DeadOnes, max: u32) -> u64 {
    match queue.ask(QueueVerb::Kick(Sweep::new(among, max))) {
        QueueReply::Kick(swept) => swept.count,
        other => panic!("{other:?}"),
    }
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
    queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0, '' FROM queue");
    pop(&queue, 1);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
    queue.store.sql("UPDATE idle SET chosen = 0");
    pop(&queue, 1);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
}

fn keep_events(queue: &Queue, events: u64) {
    let configure = Configure { events: Some(events), ..Configure::default() };
    queue.ask(QueueVerb::Configure(configure));
}

/// The last event's number; whoever asks waits for the next one.
fn watch_events(queue: &Queue) -> u64 {
    let waiter = Some(Waiter { client: ClientId(9), seq: 7 });
    match queue.ask(QueueVerb::Events(Events { after: None, waiter })) {
        QueueReply::Events(EventsReply::Found { last, .. }) => last,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_for_an_event_is_told_also_after_a_purge_and_when_none_will_come() {
    let queue = queue();
    let told = || queue.store.count("SELECT count(*) FROM asker WHERE chosen = 1");
    keep_events(&queue, 9);
    watch_events(&queue);
    queue.ask(QueueVerb::Purge);
    assert_eq!(told(), 0);
    queue.add(&["a"]);
    assert_eq!(told(), 1);
    watch_events(&queue);
    assert_eq!(told(), 0);
    keep_events(&queue, 0);
    assert_eq!(told(), 1);
}

/// More happened than versions were given out, and the clock was set back meanwhile.
#[test]
fn numbers_of_events_go_on_from_the_last_one_also_after_a_pause() {
    let queue = queue();
    keep_events(&queue, 9);
    queue.store.sql("UPDATE queue SET last_event = 9000000000000000");
    keep_events(&queue, 0);
    keep_events(&queue, 9);
    assert!(watch_events(&queue) >= 9_000_000_000_000_000);
}

#[test]
fn remove_takes_the_run_the_successor_and_the_window() {
    let queue = queue();
    assert_eq!(remove(&queue, "a", None), Removed::Absent);
    let throttle = NewTask { on_duplicate: OnDuplicate::Throttle { window: DAY }, ..task("a") };
    let first = version(queue.enqueue(throttle.clone()));
    assert_eq!(remove(&queue, "a", Some(Version::new(first.get() + 1))), Removed::OtherVersion(first));
    let receipt = queue.take("a");
    let second = version(queue.enqueue(task("a")));
    assert_eq!(remove(&queue, "a", Some(first)), Removed::OtherVersion(second));
    assert_eq!(outcome(queue.enqueue(throttle.clone())), Outcome::Throttled);
    assert_eq!(remove(&queue, "a", Some(second)), Removed::Removed);
    assert_eq!(queue.shape("a"), "");
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), Settled::Gone);
    assert_eq!(outcome(queue.enqueue(throttle)), Outcome::Added);
}

#[test]
fn remove_leaves_dead_records() {
    let queue = queue();
    kill(&queue, "a");
    assert_eq!(remove(&queue, "a", None), Removed::Absent);
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
    queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0, '' FROM queue");
    queue.pass(SECOND);
    assert_eq!(kick(&queue, DeadOnes::Ids([id("a"), id("a"), id("z")].into()), 9), 1);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
    let record = queue.get("a").unwrap();
    assert_eq!((record.state, record.attempts, record.receipt), (TaskState::Ready, 0, Receipt::NONE));
    assert_eq!((record.priority, record.max_attempts, &*record.reason), (9, 1, "no"));
    assert_eq!(record.due, queue.now());
    assert!(record.version.get() > receipt.get());
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
    assert_eq!(kick(&queue, DeadOnes::Ids([id("a")].into()), 9), 1);
    assert_eq!(list(&queue, TaskState::Dead), "a");
    assert_eq!(kick(&queue, DeadOnes::Ids([id("a")].into()), 9), 0, "it lives");
    assert_eq!(kick(&queue, DeadOnes::Oldest, 9), 0, "it lives");
    remove(&queue, "a", None);
    assert_eq!(queue.get("a").unwrap().receipt, old);
    for name in ["b", "c", "b"] {
        queue.pass(SECOND);
        kill(&queue, name);
    }
    queue.add(&["c"]);
    assert_eq!(kick(&queue, DeadOnes::Oldest, 1), 1);
    assert_eq!(queue.shape("a"), "ready 0 a");
    assert_eq!(kick(&queue, DeadOnes::Oldest, 9), 1);
    assert_eq!(list(&queue, TaskState::Dead), "b c");
    assert_eq!(ids(&queue.claim(9)), "a b c");
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
    while queue.stats().dead < 1_200 {
        queue.claim(1);
    }
    assert_eq!(kick(&queue, DeadOnes::Oldest, 5_000), 1_000);
}
