//! When a claim tells of flows.

use super::*;

/// Whether the next claim does.
fn tells(queue: &Queue) -> bool {
    matches!(queue.ask_claim(queue.claim_of(1)), ClaimReply::FlowsDue(_))
}

/// A queue whose flow is not looked after for a while.
fn with_flow() -> Queue {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.drain();
    queue
}

#[test]
fn a_claim_that_finds_nothing_tells_of_the_outbox() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    let receipt = queue.take("a");
    assert!(!tells(&queue));
    queue.settle("a", receipt, Verdict::Ack);
    assert!(tells(&queue));
    queue.pause(true);
    assert!(!tells(&queue));
    queue.pause(false);
    queue.drain();
    assert!(!tells(&queue));
}

#[test]
fn a_claim_that_finds_tasks_tells_of_the_outbox_a_while_after_a_step_or_when_it_is_long() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    queue.enqueue(node_task("b"));
    let receipts = [queue.take("a"), queue.take("b")];
    let many: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    queue.add(&many.iter().map(String::as_str).collect::<Vec<_>>());
    queue.settle("a", receipts[0], Verdict::Ack);
    assert!(tells(&queue), "nobody has stepped of late");
    queue.drain();
    queue.settle("b", receipts[1], Verdict::Ack);
    assert!(!tells(&queue));
    queue.pass(OUTBOX_PAUSE - Duration::from_millis(1));
    assert!(!tells(&queue));
    queue.pass(Duration::from_millis(1));
    assert!(tells(&queue));
    queue.drain();
    let other = Message { number: 1, event: NodeEvent::Lost, of: mark("f", 1), retries: 0, result: None };
    queue.post(None, vec![other.clone(); OUTBOX_MANY - 1]);
    assert!(!tells(&queue));
    queue.post(None, vec![other]);
    assert!(tells(&queue));
}

/// What comes in after a step, while some is left, has not waited since the first message.
#[test]
fn a_step_begins_the_while_anew() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.begin("g", &["a"]);
    queue.read(1);
    queue.add(&["x", "y", "z"]);
    queue.pass(OUTBOX_PAUSE);
    assert!(tells(&queue));
    let first = queue.read(1).messages[0].number;
    assert!(queue.step(StepFlows { first, through: first, flows: [].into() }));
    assert!(!tells(&queue));
}

#[test]
fn a_claim_tells_of_a_flow_that_is_to_be_looked_after() {
    let queue = with_flow();
    assert_eq!(queue.read(9).walk, None);
    assert!(!tells(&queue));
    queue.add(&["x", "y"]);
    queue.pass(WALK_AGAIN);
    assert!(tells(&queue), "though it has a task");
    queue.pause(true);
    assert!(!tells(&queue));
    queue.pause(false);
    assert_eq!(queue.read(9).walk, Some(id("f")));
    assert!(!tells(&queue));
}

#[test]
fn flows_are_told_of_within_schedules() {
    let queue = queue();
    queue.begin("f", &["a"]);
    let schedule = NewSchedule {
        key: None,
        id: id("s"),
        timing: "T".into(),
        missed: Missed::Last,
        overlap: Overlap::Queue,
        paused: false,
        body: [].into(),
        priority: 0,
        max_attempts: 1,
        expires: None,
    };
    queue.ask(QueueVerb::PutSchedules(PutSchedules { owner: None, schedules: vec![schedule].into() }));
    let claim = queue.claim_of(1);
    for _ in 0..2 {
        // Repeated, it is told again.
        let reply = queue.ask_claim(claim.clone());
        let ClaimReply::SchedulesDue(within) = reply else { panic!("{reply:?}") };
        assert!(matches!(*within, ClaimReply::FlowsDue(_)), "{within:?}");
    }
}

#[test]
fn flows_take_turns_in_being_looked_after() {
    let queue = queue();
    for name in ["a", "b", "c"] {
        queue.begin(name, &["n"]);
    }
    queue.put_flow(PutFlow { plan: None, ..flow_of("draft", &["a"]) });
    queue.drain();
    queue.pass(DAY);
    let mut walks = String::new();
    for _ in 0..4 {
        walks += queue.read(9).walk.unwrap().as_str();
        assert_eq!(queue.read(9).walk, None);
        queue.pass(WALK_AGAIN / 3 - Duration::from_millis(1));
        assert_eq!(queue.read(9).walk, None);
        queue.pass(Duration::from_millis(1));
    }
    assert_eq!(walks.len(), 4);
    assert!("abcabc".contains(&walks), "{walks}");
}

#[test]
fn many_flows_are_looked_after_once_a_second() {
    let queue = queue();
    for number in 0..70 {
        queue.begin(&number.to_string(), &[]);
    }
    queue.pass(DAY);
    assert!(queue.read(9).walk.is_some());
    queue.pass(WALK_EVERY - Duration::from_millis(1));
    assert_eq!(queue.read(9).walk, None);
    queue.pass(Duration::from_millis(1));
    assert!(queue.read(9).walk.is_some());
}

/// Neither a claim nor a settlement has anything to do with the tables of flows.
#[test]
fn a_queue_without_flows_does_not_pay() {
    let queue = queue();
    queue.add(&["a", "b"]);
    queue.store.sql(
        "ALTER TABLE outbox RENAME TO gone_outbox; ALTER TABLE flow RENAME TO gone_flow;
         ALTER TABLE flow_node RENAME TO gone_node; ALTER TABLE flow_result RENAME TO gone_result;
         ALTER TABLE outbox_source RENAME TO gone_source; ALTER TABLE flow_plan RENAME TO gone_plan",
    );
    let receipt = queue.take("a");
    assert_eq!(queue.settle("a", receipt, Verdict::Ack), DONE);
    queue.pass(DAY);
    assert_eq!(names(&pop(&queue, 1)), "b");
    assert_eq!(queue.claim(1), []);
}
