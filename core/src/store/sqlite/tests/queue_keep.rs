//! What is kept and for how long: settings, dead records, purges, queues that nobody uses.

use std::time::Duration;

use super::queue::*;
use super::{CLIENT, SECOND, prefixes, soon};
use crate::protocol::*;
use crate::store::Store;

#[test]
fn settings_are_kept_one_by_one() {
    let queue = queue();
    assert_eq!(queue.stats().settings, QueueSettings::default());
    queue.configure(Configure { max_len: Some(Some(5)), dead_max: Some(7), ..Configure::default() });
    queue.configure(Configure { dead_age: Some(DAY), dead_bytes: Some(9), ..Configure::default() });
    queue.configure(Configure { intake: Some(false), ..Configure::default() });
    let settings = QueueSettings {
        max_len: Some(5),
        dead_max: 7,
        dead_age: DAY,
        dead_bytes: 9,
        intake: false,
        events: 0,
        ..QueueSettings::default()
    };
    assert_eq!(queue.stats().settings, settings);
    queue.configure(Configure { max_len: Some(None), ..Configure::default() });
    assert_eq!(queue.stats().settings, QueueSettings { max_len: None, ..settings });
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

/// Not only another death does.
#[test]
fn every_verb_enforces_the_age() {
    let queue = queue();
    queue.configure(Configure { dead_age: Some(SECOND), ..Configure::default() });
    kill(&queue, "a");
    queue.pass(SECOND / 2);
    queue.ask(QueueVerb::Pop(Pop { max: 1 }));
    assert_eq!(queue.stats().dead, 1);
    queue.pass(SECOND);
    queue.ask(QueueVerb::Pop(Pop { max: 1 }));
    assert_eq!(queue.stats().dead, 0);
}

#[test]
fn one_transaction_moves_a_limited_number_of_bytes() {
    let queue = queue();
    let large = |number| NewTask {
        expires: Some(SECOND),
        body: vec![1; 1 << 20].into(),
        ..task(&format!("{number}"))
    };
    for first in [0, 10] {
        queue.enqueue_all((first..first + 10).map(large).collect());
    }
    queue.pass(SECOND);
    for dead in [8, 16, 20] {
        queue.claim(1);
        assert_eq!(queue.stats().dead, dead);
    }
}

/// A row is written anew with its body when its task comes into line.
#[test]
fn what_is_due_comes_into_line_by_a_limited_number_of_bytes() {
    let queue = queue();
    let large = |number| NewTask {
        due: Due::In(SECOND),
        body: vec![1; 1 << 20].into(),
        ..task(&format!("{number}"))
    };
    queue.enqueue_all((0..20).map(large).collect());
    queue.pass(SECOND);
    let in_line = || queue.store.count("SELECT count(*) FROM task WHERE state > 0");
    for promoted in [8, 16, 20] {
        assert_eq!(queue.claim(1).len(), 1);
        assert_eq!(in_line(), promoted);
    }
}

#[test]
fn what_expires_hides_nothing_behind_many_large_tasks_that_are_due() {
    let queue = queue();
    let large = |number| NewTask { due: Due::In(SECOND), body: vec![1; 1 << 20].into(), ..task(number) };
    let expires = Some(SECOND);
    queue.enqueue_all(vec![NewTask { expires, ..large("first") }, NewTask { expires, ..large("second") }]);
    let rest: Vec<_> = (0..20).map(|number| format!("{number}")).collect();
    queue.enqueue_all(rest.iter().map(|name| large(name)).collect());
    queue.pass(SECOND);
    assert_eq!(ids(&queue.claim(1)), "0");
}

#[test]
fn one_call_drops_a_limited_number_of_dead_records() {
    let queue = queue();
    queue.enqueue_all(
        (0..450).map(|number| NewTask { expires: Some(SECOND), ..task(&format!("{number}")) }).collect(),
    );
    queue.pass(SECOND);
    while queue.stats().dead < 450 {
        queue.claim(1);
    }
    queue.configure(Configure { dead_max: Some(10), ..Configure::default() });
    assert_eq!(queue.stats().dead, 250);
    // Whichever verb is next goes on.
    queue.ask(QueueVerb::Pop(Pop { max: 1 }));
    assert_eq!(queue.stats().dead, 50);
    kill(&queue, "b");
    assert_eq!(queue.stats().dead, 11, "10 that expired, and one that failed");
}

#[test]
fn purge_drops_tasks_and_keeps_settings_counters_and_waiters() {
    let queue = full_queue();
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Throttle { window: DAY }, ..task("throttled") });
    queue.enqueue(task("claimed"));
    queue.configure(Configure { max_len: Some(Some(9)), ..Configure::default() });
    queue.store.sql("INSERT INTO idle SELECT id, 9, 7, 1000000000, 0, '' FROM queue");
    let before = queue.stats();
    assert_eq!(queue.ask(QueueVerb::Purge), QueueReply::Purge(9));
    let after =
        QueueStats { scheduled: 0, ready: 0, claimed: 0, dead: 0, successors: 0, next_due: None, ..before };
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
fn a_large_purge_is_finished_by_later_calls() {
    let queue = queue();
    for part in 0..3 {
        queue.enqueue_all((0..700).map(|number| task(&format!("{part} {number}"))).collect());
    }
    let call = CallId { client: CLIENT, slot: 7, number: 1 };
    let ask = QueueVerb::Claim(Claim { call, ..queue.claim_of(1) });
    queue.ask(ask.clone());
    assert_eq!(queue.ask(QueueVerb::Purge), QueueReply::Purge(2_100));
    assert_eq!((queue.stats().ready, queue.get("0 1")), (0, None));
    assert_eq!(queue.store.count("SELECT count(*) FROM task"), 1_000);
    assert_eq!(queue.store.list_queues(0, soon()).unwrap().1.len(), 1);
    queue.add(&["0 1"]);
    let again = queue.ask(ask);
    assert!(matches!(again, QueueReply::Claim(ClaimReply::Empty { .. })), "calls are known as before");
    assert_eq!(queue.ask(QueueVerb::Purge), QueueReply::Purge(1), "one after the other");
    for _ in 0..12 {
        queue.promote();
    }
    assert_eq!(queue.store.count("SELECT count(*) FROM task"), 0);
    assert_eq!(queue.store.count("SELECT count(*) FROM queue"), 1);
}

#[test]
fn a_purge_drops_a_limited_number_of_bytes_at_once() {
    let queue = queue();
    let large = |number| NewTask { body: vec![1; 1 << 20].into(), ..task(&format!("{number}")) };
    queue.enqueue_all((0..20).map(large).collect());
    assert_eq!(queue.ask(QueueVerb::Purge), QueueReply::Purge(20));
    for left in [4, 0] {
        assert_eq!(queue.store.count("SELECT count(*) FROM task"), left);
        queue.promote();
    }
    assert_eq!(queue.store.count("SELECT count(*) FROM queue"), 1);
}

#[test]
fn what_a_purge_left_in_a_queue_that_nobody_uses_is_dropped() {
    let queue = queue();
    for part in 0..2 {
        queue.enqueue_all((0..700).map(|number| task(&format!("{part} {number}"))).collect());
    }
    queue.ask(QueueVerb::Purge);
    assert_eq!(queue.store.count("SELECT count(*) FROM queue"), 2);
    queue.pass(DAY * 8);
    let other = prefixes().queue_name("other").unwrap();
    let pop = QueueRequest { queue: other, verb: QueueVerb::Pop(Pop { max: 1 }) };
    queue.store.perform(&Request::Queue(pop), soon()).unwrap();
    assert_eq!(queue.store.count("SELECT count(*) FROM task"), 0);
    assert_eq!(queue.store.count("SELECT count(*) FROM queue"), 1);
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
fn queues_unused_for_a_week_are_forgotten_unless_they_hold_something() {
    let queue = queue();
    let ask = |name: &str, verb| {
        let queue_name = prefixes().queue_name(name).unwrap();
        queue.store.perform(&Request::Queue(QueueRequest { queue: queue_name, verb }), soon()).unwrap();
    };
    let put = |name: &str| {
        let call = CallId { client: CLIENT, slot: 7, number: 1 };
        ask(
            name,
            QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: vec![task("x")].into() }),
        );
    };
    let known = || -> String {
        let sql = "SELECT coalesce(group_concat(substr(key, 7), ' ' ORDER BY key), '') FROM queue";
        queue.store.inside(|connection| connection.query_row(sql, [], |row| row.get(0)).unwrap())
    };
    let emptied = ["emptied", "dead", "used"];
    for name in emptied.into_iter().chain(["live"]) {
        put(name);
    }
    for name in emptied {
        ask(name, QueueVerb::Pop(Pop { max: 1 }));
    }
    queue.store.sql(
        "INSERT INTO dead SELECT NULL, id, 5, 'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', x'00', 0, '', '', '', '' FROM queue
           WHERE key = 'Queue:dead';
         UPDATE queue SET dead = 1, dead_size = 1 WHERE key = 'Queue:dead'",
    );
    ask("paused", QueueVerb::Pause(Pause { paused: true }));
    ask("configured", QueueVerb::Configure(Configure { dead_max: Some(1), ..Configure::default() }));
    let schedule = NewSchedule {
        key: None,
        id: id("s"),
        timing: "T".into(),
        missed: Missed::Last,
        overlap: Overlap::Queue,
        paused: true,
        body: [].into(),
        priority: 0,
        max_attempts: 1,
        expires: None,
    };
    let schedules = vec![schedule].into();
    ask("timed", QueueVerb::PutSchedules(PutSchedules { owner: None, schedules }));
    queue.pass(6 * DAY);
    ask("used", QueueVerb::Remove(Remove { id: id("z"), version: None }));
    queue.pass(25 * DAY / 24);
    queue.promote();
    assert_eq!(known(), "configured dead live paused q timed used");
    queue.pass(90 * DAY);
    put("another");
    assert_eq!(known(), "another configured live paused timed");
    assert_eq!(queue.store.count("SELECT count(*) FROM dead"), 0);
    assert_eq!(queue.store.count("SELECT count(*) FROM call WHERE queue NOT IN (SELECT id FROM queue)"), 0);
}
