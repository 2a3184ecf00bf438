//! Which task is which node.

use super::*;

#[test]
fn a_claimed_task_says_which_node_it_is() {
    let queue = queue();
    let of = NodeOf { home: Some("other {1}".into()), ..mark("a b", 3) };
    queue.enqueue_all(vec![NewTask { node: Some(of.clone()), ..task("a") }, task("b")]);
    let claimed = queue.claim(2);
    assert_eq!((&claimed[0].node, &claimed[1].node), (&Some(of), &None));
}

#[test]
fn a_node_comes_into_a_full_queue() {
    let queue = queue();
    queue.configure(Configure { max_len: Some(Some(1)), ..Configure::default() });
    queue.add(&["a"]);
    assert_eq!(queue.enqueue(task("b")), EnqueueOutcome::Full);
    assert_eq!(outcome(queue.enqueue(node_task("b"))), Outcome::Added);
}

#[test]
fn a_task_that_is_kept_becomes_the_node() {
    let queue = queue();
    queue.add(&["a"]);
    assert_eq!(outcome(queue.enqueue(node_task("a"))), Outcome::Kept);
    assert_eq!(outcome(queue.enqueue(task("a"))), Outcome::Kept, "which takes nothing away");
    queue.ack("a");
    assert_eq!(queue.outbox(), "Done f 7");
}

#[test]
fn a_successor_that_is_kept_becomes_the_node_and_the_run_does_not() {
    let queue = queue();
    queue.add(&["a"]);
    let receipt = queue.take("a");
    queue.enqueue(task("a"));
    assert_eq!(outcome(queue.enqueue(node_task("a"))), Outcome::Kept);
    queue.settle("a", receipt, Verdict::Ack);
    assert_eq!(queue.outbox(), "");
    queue.ack("a");
    assert_eq!(queue.outbox(), "Done f 7");
}

#[test]
fn what_replaces_a_node_is_the_node_unless_it_is_another() {
    for on_duplicate in [OnDuplicate::Replace, OnDuplicate::Debounce { max_wait: SECOND }] {
        let queue = queue();
        queue.enqueue(node_task("a"));
        let again = NewTask { on_duplicate, body: b"new"[..].into(), ..task("a") };
        assert_eq!(outcome(queue.enqueue(again.clone())), Outcome::Replaced);
        queue.ack("a");
        assert_eq!(queue.outbox(), "Done f 7");
        queue.drain();
        queue.enqueue(node_task("a"));
        queue.enqueue(NewTask { node: Some(mark("g", 1)), ..again });
        queue.ack("a");
        assert_eq!(queue.outbox(), "Done g 1");
    }
}

#[test]
fn a_successor_in_the_place_of_a_retry_is_the_node() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    let receipt = queue.take("a");
    queue.enqueue(NewTask { on_duplicate: OnDuplicate::Replace, ..task("a") });
    assert_eq!(queue.settle("a", receipt, nack()), DONE);
    assert_eq!(queue.outbox(), "");
    queue.ack("a");
    assert_eq!(queue.outbox(), "Done f 7");
}

#[test]
fn a_successor_that_comes_after_the_run_is_not_the_node() {
    for on_duplicate in [OnDuplicate::Keep, OnDuplicate::Replace] {
        let queue = queue();
        queue.enqueue(node_task("a"));
        let receipt = queue.take("a");
        queue.enqueue(NewTask { on_duplicate, ..task("a") });
        queue.settle("a", receipt, Verdict::Ack);
        queue.drain();
        queue.ack("a");
        assert_eq!(queue.outbox(), "");
    }
}

#[test]
fn a_dead_node_that_comes_back_is_the_node() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    let receipt = queue.take("a");
    queue.settle("a", receipt, bury());
    queue.drain();
    let kicked = queue.ask(QueueVerb::Kick(Sweep::new(DeadOnes::Oldest, 9)));
    assert!(matches!(kicked, QueueReply::Kick(Swept { count: 1, .. })));
    assert_eq!(queue.outbox(), "");
    queue.ack("a");
    assert_eq!(queue.outbox(), "Done f 7");
}
