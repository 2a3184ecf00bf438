//! What comes into the outbox, and what is told of it.

use super::*;

/// What an outbox says after something was done with a node's task that is claimed.
fn after(act: impl FnOnce(&Queue, Receipt)) -> String {
    let queue = queue();
    queue.enqueue(node_task("a"));
    let receipt = queue.take("a");
    act(&queue, receipt);
    queue.outbox()
}

#[test]
fn each_end_of_a_node_is_told() {
    let done = "Done f 7";
    assert_eq!(after(|queue, receipt| _ = queue.settle("a", receipt, Verdict::Ack)), done);
    assert_eq!(after(|queue, receipt| _ = queue.settle("a", receipt, with_result(b"r"))), done);
    let late = |queue: &Queue, receipt| {
        queue.pass(LEASE);
        assert_eq!(queue.settle("a", receipt, Verdict::Ack), LATE);
    };
    assert_eq!(after(late), done);
    assert_eq!(after(|queue, receipt| _ = queue.settle("a", receipt, bury())), "Dead f 7");
    assert_eq!(after(|queue, _| _ = remove(queue, "a", None)), "Cancelled f 7");
    let queue = queue();
    queue.enqueue(node_task("a"));
    assert_eq!(names(&pop(&queue, 1)), "a");
    assert_eq!(queue.outbox(), done);
}

#[test]
fn a_last_failure_or_lease_is_a_death_and_a_late_ack_undoes_it() {
    let queue = queue();
    queue.enqueue_all(vec![
        NewTask { max_attempts: 1, ..node_task("nacked") },
        NewTask { max_attempts: 1, node: Some(mark("f", 8)), ..task("late") },
        NewTask { expires: Some(SECOND), due: Due::In(SECOND), node: Some(mark("f", 9)), ..task("expired") },
    ]);
    let claimed = queue.claim(2);
    assert_eq!(queue.settle("nacked", claimed[0].receipt, nack()), DEAD);
    queue.pass(LEASE);
    queue.promote();
    queue.ask_claim(queue.claim_of(1));
    assert_eq!(queue.outbox(), "Dead f 7, Dead f 8, Dead f 9");
    assert_eq!(queue.settle("late", claimed[1].receipt, with_result(b"r")), LATE);
    assert_eq!(queue.outbox(), "Dead f 7, Dead f 8, Dead f 9, Done f 8");
}

fn cancel(queue: &Queue, name: &str) -> Cancelled {
    match queue.ask(QueueVerb::Cancel(Cancel { id: id(name) })) {
        QueueReply::Cancel(cancelled) => cancelled,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cancelled_node_is_told_when_it_is_gone() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    cancel(&queue, "a");
    assert_eq!(queue.outbox(), "Cancelled f 7");
    queue.drain();
    for end in [Some(nack()), None] {
        queue.enqueue(node_task("a"));
        let receipt = queue.take("a");
        assert_eq!(cancel(&queue, "a"), Cancelled::Running);
        assert_eq!(queue.outbox(), "");
        match end {
            Some(verdict) => _ = queue.settle("a", receipt, verdict),
            None => queue.pass(LEASE),
        }
        queue.promote();
        assert_eq!(queue.outbox(), "Cancelled f 7");
        queue.drain();
    }
}

#[test]
fn a_successor_that_is_another_node_is_told_if_it_goes_with_the_run() {
    let queue = queue();
    for end in ["removed", "cancelled"] {
        queue.enqueue(node_task("a"));
        let receipt = queue.take("a");
        queue.enqueue(NewTask { node: Some(mark("g", 1)), ..task("a") });
        if end == "removed" {
            remove(&queue, "a", None);
            assert_eq!(queue.outbox(), "Cancelled f 7, Cancelled g 1");
        } else {
            cancel(&queue, "a");
            assert_eq!(queue.outbox(), "Cancelled g 1");
            queue.settle("a", receipt, nack());
        }
        queue.drain();
    }
}

#[test]
fn what_is_no_end_is_not_told() {
    let throttle = Verdict::Throttle { time: SECOND };
    for verdict in [nack(), Verdict::PUT_BACK, throttle] {
        assert_eq!(after(|queue, receipt| _ = queue.settle("a", receipt, verdict)), "");
    }
    let asked_again = |queue: &Queue, receipt| {
        queue.pass(LEASE);
        queue.promote();
        queue.enqueue(task("a"));
        assert_eq!(queue.settle("a", receipt, Verdict::Ack), LATE);
        assert_eq!(queue.shape("a"), "ready 0 a");
    };
    assert_eq!(after(asked_again), "");
    let replaced = |queue: &Queue, receipt| {
        queue.settle("a", receipt, nack());
        queue.enqueue(NewTask { on_duplicate: OnDuplicate::Replace, ..task("a") });
    };
    assert_eq!(after(replaced), "");
    let forgotten = |queue: &Queue, receipt| {
        queue.settle("a", receipt, bury());
        queue.drain();
        queue.ask(QueueVerb::RemoveDead(Sweep::new(DeadOnes::Oldest, 9)));
    };
    assert_eq!(after(forgotten), "");
    let trimmed = |queue: &Queue, receipt| {
        queue.settle("a", receipt, bury());
        queue.drain();
        queue.configure(Configure { dead_max: Some(0), ..Configure::default() });
        assert_eq!(queue.stats().dead, 0);
    };
    assert_eq!(after(trimmed), "");
    assert_eq!(after(|queue, _| _ = queue.ask(QueueVerb::Purge)), "");
}

fn numbers(queue: &Queue) -> Vec<u64> {
    queue.read(99).messages.iter().map(|message| message.number).collect()
}

#[test]
fn numbers_have_no_gaps_and_grow_also_over_a_purge_and_a_clock_that_goes_back() {
    let queue = queue();
    queue.enqueue_all(vec![node_task("a"), node_task("b")]);
    pop(&queue, 1);
    queue.pass(SECOND);
    pop(&queue, 1);
    let first = queue.now() - 1_000;
    let told = numbers(&queue);
    assert_eq!((told[0] / 1_000, told[1]), (first, told[0] + 1));
    queue.store.sql("UPDATE outbox SET number = number + 9000000000000000; UPDATE queue SET last_message = last_message + 9000000000000000");
    let last = numbers(&queue)[1];
    queue.ask_flows(QueueVerb::Purge);
    queue.enqueue(node_task("a"));
    pop(&queue, 1);
    assert_eq!(numbers(&queue), [last + 1]);
}

#[test]
fn a_message_wakes_one_who_waits() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    let receipt = queue.take("a");
    queue.ask(QueueVerb::Claim(Claim { waiter: waiter(5), ..queue.claim_of(1) }));
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
    queue.settle("a", receipt, Verdict::Ack);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
}

#[test]
fn who_hears_of_a_message_wakes_nobody_else() {
    let queue = queue();
    queue.enqueue(node_task("a"));
    let receipt = queue.take("a");
    queue.ask(QueueVerb::Claim(Claim { waiter: waiter(5), ..queue.claim_of(1) }));
    let items = Arc::new([Settlement { id: id("a"), receipt, verdict: Verdict::Ack }]);
    queue.ask(QueueVerb::SettleAndClaim(Settle { items }, queue.claim_of(1)));
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
}

#[test]
fn one_who_waits_is_woken_for_messages_when_a_pause_ends() {
    let queue = queue();
    queue.pause(true);
    queue.ask(QueueVerb::Claim(Claim { waiter: waiter(5), ..queue.claim_of(1) }));
    queue.begin("f", &["a"]);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
    queue.pause(false);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
}

fn message(number: u64, flow: &str, result: Option<&[u8]>) -> Message {
    let of = NodeOf { home: Some("here".into()), ..mark(flow, 3) };
    Message { number, event: NodeEvent::Lost, of, retries: 2, result: result.map(Into::into) }
}

#[test]
fn messages_of_a_source_come_in_once() {
    let queue = queue();
    let source = Some("other");
    queue.post(source, vec![message(5, "f", None), message(6, "g", None)]);
    queue.post(source, vec![message(6, "g", None), message(7, "h", None)]);
    assert_eq!(queue.outbox(), "Lost f 3, Lost g 3, Lost h 3");
    assert_eq!(queue.read(1).messages[0].retries, 2);
    queue.post(source, vec![message(4, "x", None)]);
    queue.post(source, vec![message(7, "x", None)]);
    queue.post(Some("another"), vec![message(7, "i", None)]);
    queue.post(None, vec![message(1, "k", None), message(1, "k", None)]);
    queue.drain();
    assert_eq!(queue.outbox(), "");
    queue.post(source, vec![message(7, "x", None), message(8, "l", None)]);
    assert_eq!(queue.outbox(), "Lost l 3");
}

#[test]
fn results_are_told_of_nodes_of_other_queues_alone() {
    let queue = queue();
    let far = NodeOf { home: Some("home".into()), ..mark("f", 2) };
    queue.enqueue_all(vec![node_task("a"), NewTask { node: Some(far), ..task("b") }]);
    for name in ["a", "b"] {
        let receipt = queue.take_any(name);
        queue.settle(name, receipt, with_result(name.as_bytes()));
    }
    assert_eq!(queue.outbox(), "Done f 7, Done f 2@home");
    let told = queue.read(9);
    assert_eq!(told.messages[0].result, None);
    assert_eq!(told.messages[1].result.as_deref(), Some(&b"b"[..]));
    assert!(!told.has_more);
}

#[test]
fn an_answer_has_room_for_so_many_messages_and_bytes_but_for_one() {
    let queue = queue();
    queue.post(None, vec![message(1, "f", None); 1_001]);
    let told = |max| {
        let reply = queue.read(max);
        (reply.messages.len(), reply.has_more)
    };
    assert_eq!((told(2), told(u32::MAX)), ((2, true), (1_000, true)));
    queue.drain();
    assert_eq!(told(9), (1, false));
    queue.drain();
    let large = vec![1; MAX_REPLY_BYTES];
    let far = |node| NodeOf { home: Some("home".into()), ..mark("f", node) };
    let tasks = (0..2).map(|node| NewTask { node: Some(far(node)), ..task(&node.to_string()) });
    queue.enqueue_all(tasks.collect());
    for name in ["0", "1"] {
        let receipt = queue.take_any(name);
        queue.settle(name, receipt, with_result(&large));
    }
    assert_eq!(told(9), (1, true));
}

/// The step that works a message off moves its result.
#[test]
fn an_answer_is_about_as_many_results_as_one_transaction_moves() {
    let queue = queue();
    let large = vec![1; 1 << 20];
    let mine = |number| Message {
        event: NodeEvent::Done,
        result: Some(large.clone().into()),
        ..message(number, "f", None)
    };
    queue.post(None, (0..10).map(mine).collect());
    let told = queue.read(99);
    assert_eq!((told.messages.len(), told.has_more), (8, true));
    assert!(told.messages.iter().all(|message| message.result.is_none()));
}

#[test]
fn flows_that_messages_are_about_are_told_once_and_drafts_are_not() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.begin("g", &["a"]);
    queue.put_flow(PutFlow { plan: None, ..flow_of("draft", &["a"]) });
    let own = |flow| Message { of: mark(flow, 3), ..message(1, flow, None) };
    queue.post(None, vec![own("f"), own("draft"), own("unknown")]);
    let flows = queue.read(99).flows;
    let version = queue.flow("f").unwrap().version;
    let now = FlowNow { id: id("f"), version, graph: b"G"[..].into(), states: b"S"[..].into() };
    assert_eq!(flows[0], now);
    assert_eq!(flows.iter().map(|flow| flow.id.as_str()).collect::<Vec<_>>(), ["f", "g"]);
}
