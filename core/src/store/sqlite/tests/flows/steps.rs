//! Putting flows in, and working messages off.

use super::*;

fn part(name: &str, first: u32, nodes: &[&str], is_last: bool) -> PutFlow {
    let whole = flow_of(name, nodes);
    PutFlow { first, plan: whole.plan.clone().filter(|_| is_last), ..whole }
}

fn with_token(token: u64) -> PutFlow {
    PutFlow { token, ..flow_of("f", &["x"]) }
}

#[test]
fn a_flow_comes_in_parts_and_begins_with_the_last() {
    let queue = queue();
    for _ in 0..2 {
        assert_eq!(queue.put_flow(part("f", 0, &["a", "b"], false)), PutFlowReply::Put);
    }
    assert_eq!((queue.flow("f"), queue.outbox()), (None, String::new()));
    assert_eq!(queue.put_flow(part("f", 2, &["c"], true)), PutFlowReply::Put);
    assert_eq!(queue.outbox(), "Begin f 0");
    let flow = queue.flow("f").unwrap();
    assert_eq!(queue.put_flow(part("f", 2, &["c"], true)), PutFlowReply::Put, "repeated");
    assert_eq!((queue.outbox().as_str(), queue.flow("f").unwrap().version), ("Begin f 0", flow.version));
    assert_eq!(
        queue.read_nodes("f", vec![0, 1, 2, 3]),
        [Some(node("a")), Some(node("b")), Some(node("c")), None]
    );
}

#[test]
fn an_id_has_one_flow() {
    let queue = queue();
    queue.begin("f", &["a"]);
    assert_eq!(queue.put_flow(with_token(2)), PutFlowReply::Exists);
    queue.step_all("f", |step| step.ended = true);
    assert_eq!(queue.put_flow(with_token(2)), PutFlowReply::Exists);
    assert_eq!(queue.put_flow(with_token(1)), PutFlowReply::Put, "a repetition");
    assert_eq!(queue.read_nodes("f", vec![0]), [Some(node("a"))]);
    assert_eq!(queue.outbox(), "");
}

#[test]
fn parts_that_do_not_come_give_way_to_another_flow() {
    let queue = queue();
    queue.put_flow(part("f", 0, &["a", "b"], false));
    queue.pass(60 * SECOND - Duration::from_millis(1));
    assert_eq!(queue.put_flow(with_token(2)), PutFlowReply::Stale);
    queue.pass(Duration::from_millis(1));
    assert_eq!(queue.put_flow(with_token(2)), PutFlowReply::Put);
    assert_eq!(queue.read_nodes("f", vec![0, 1]), [Some(node("x")), None]);
    assert_eq!(queue.store.count("SELECT count(*) FROM flow_node"), 1);
}

#[test]
fn the_rest_of_a_flow_does_not_begin_one() {
    let queue = queue();
    assert_eq!(queue.put_flow(part("f", 1, &["b"], true)), PutFlowReply::Absent);
    queue.put_flow(part("f", 0, &["a"], false));
    queue.pass(60 * SECOND);
    let others = PutFlow { token: 2, ..part("f", 1, &["x"], true) };
    assert_eq!(
        queue.put_flow(others),
        PutFlowReply::Absent,
        "the draft of another call is none of its parts"
    );
    assert_eq!(queue.put_flow(part("f", 1, &["b"], true)), PutFlowReply::Put);
}

#[test]
fn a_full_queue_takes_no_flow_but_the_rest_of_one() {
    let queue = queue();
    assert_eq!(queue.put_flow(part("f", 0, &["a"], false)), PutFlowReply::Put);
    queue.configure(Configure { max_len: Some(Some(1)), ..Configure::default() });
    queue.add(&["t"]);
    assert_eq!(queue.put_flow(flow_of("g", &["a"])), PutFlowReply::Full);
    assert_eq!(queue.store.count("SELECT count(*) FROM flow"), 1);
    assert_eq!(queue.put_flow(part("f", 1, &["b"], true)), PutFlowReply::Put);
}

#[test]
fn nodes_are_added_to_a_flow_as_it_was_read() {
    let queue = queue();
    let adds = |token, version| PutFlow { first: 1, adds_to: Some(version), ..with_token(token) };
    assert_eq!(queue.put_flow(adds(2, Version::new(7))), PutFlowReply::Absent);
    queue.put_flow(part("f", 0, &["a"], false));
    assert_eq!(queue.put_flow(adds(2, Version::NONE)), PutFlowReply::Absent, "its parts are coming");
    queue.put_flow(part("f", 0, &["a"], true));
    let version = queue.flow("f").unwrap().version;
    assert_eq!(queue.put_flow(adds(2, Version::new(7))), PutFlowReply::Stale);
    assert_eq!(queue.put_flow(adds(2, version)), PutFlowReply::Put);
    assert_eq!(queue.outbox(), "Begin f 0, Begin f 0");
    assert!(queue.flow("f").unwrap().version > version);
    assert_eq!(queue.put_flow(adds(2, version)), PutFlowReply::Put, "a repetition");
    assert_eq!(queue.outbox(), "Begin f 0, Begin f 0");
    assert_eq!(queue.read_nodes("f", vec![0, 1]), [Some(node("a")), Some(node("x"))]);
    queue.step_all("f", |step| step.ended = true);
    let version = queue.flow("f").unwrap().version;
    assert_eq!(queue.put_flow(adds(3, version)), PutFlowReply::Absent, "it has ended");
}

#[test]
fn a_step_is_done_only_if_the_outbox_is_as_it_was_read() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.begin("g", &["a"]);
    let whole = queue.whole(vec![queue.step_of("f")]);
    let (first, through) = (whole.first, whole.through);
    let version = queue.flow("f").unwrap().version;
    for (first, through) in
        [(first + 1, through), (first - 1, through), (first, through + 1), (first, first - 2)]
    {
        assert!(!queue.step(StepFlows { first, through, ..whole.clone() }), "{first} {through}");
    }
    assert_eq!(queue.flow("f").unwrap().version, version);
    assert!(queue.step(StepFlows { through: first - 1, ..whole.clone() }), "none is worked off");
    assert_eq!(queue.outbox(), "Begin f 0, Begin g 0");
    assert!(!queue.step(whole), "it is another version now");
    let flows = Arc::from([queue.step_of("f")]);
    assert!(queue.step(StepFlows { first, through: first, flows: Arc::clone(&flows) }));
    assert_eq!(queue.outbox(), "Begin g 0");
    queue.drain();
    let flows = || Arc::from([queue.step_of("f")]);
    assert!(!queue.step(StepFlows { first: 1, through: 0, flows: flows() }), "it is empty");
    assert!(queue.step(StepFlows { first: 0, through: 0, flows: flows() }));
}

#[test]
fn a_step_is_done_only_if_the_flows_are_as_they_were_read() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.put_flow(part("draft", 0, &["a"], false));
    let stale = FlowStep { version: Version::new(3), ..queue.step_of("f") };
    let draft = FlowStep { id: id("draft"), version: Version::NONE, ..queue.step_of("f") };
    let absent = FlowStep { id: id("absent"), ..queue.step_of("f") };
    for other in [stale, draft, absent] {
        assert!(!queue.step(queue.whole(vec![FlowStep { puts: vec![0], ..queue.step_of("f") }, other])));
        assert_eq!((queue.outbox().as_str(), queue.stats().ready), ("Begin f 0", 0));
    }
}

#[test]
fn a_step_puts_nodes_into_the_queue() {
    let queue = queue();
    let key = crate::base::name::TaskKey::parse("k").ok();
    let other = NewNode {
        due: Due::In(SECOND),
        priority: 9,
        max_attempts: 7,
        expires: Some(DAY),
        key,
        body: b"body"[..].into(),
        ..node("b")
    };
    let nodes = vec![node("a"), other.clone(), NewNode { due: Due::At(queue.now() + 9_000), ..node("c") }];
    queue.put_flow(PutFlow { nodes: nodes.into(), ..flow_of("f", &[]) });
    assert_eq!(queue.read_nodes("f", vec![1]), [Some(other)]);
    queue.pass(SECOND);
    queue.configure(Configure { max_len: Some(Some(1)), ..Configure::default() });
    queue.step_all("f", |step| step.puts = vec![0, 1, 2]);
    let (now, stats) = (queue.now(), queue.stats());
    assert_eq!((stats.ready, stats.scheduled, stats.enqueued), (1, 2, 3));
    let task = queue.get("f/b").unwrap();
    assert_eq!((task.due, task.priority, task.max_attempts), (now + 1_000, 9, 7));
    assert_eq!((task.expires, task.key.as_ref().unwrap().as_str()), (now + 86_400_000, "k"));
    assert_eq!((&*task.body, queue.get("f/c").unwrap().due), (&b"body"[..], now + 8_000));
    let claimed = queue.claim(1);
    assert_eq!((claimed[0].id.as_str(), &claimed[0].node), ("f/a", &Some(mark("f", 0))));
}

#[test]
fn a_node_that_is_put_in_wakes_one_who_waits() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.drain();
    queue.ask(QueueVerb::Claim(Claim { waiter: waiter(5), ..queue.claim_of(1) }));
    queue.step_all("f", |_| {});
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 0);
    queue.step_all("f", |step| step.puts = vec![0]);
    assert_eq!(queue.store.count("SELECT chosen FROM idle"), 1);
}

#[test]
fn a_step_cancels_nodes_and_their_ends_come_after_what_is_worked_off() {
    let queue = queue();
    queue.begin("f", &["runs", "waits", "c"]);
    queue.step_all("f", |step| step.puts = vec![0, 1]);
    let receipt = queue.take("f/runs");
    queue.begin("g", &[]);
    queue.step_all("f", |step| step.cancels = vec![0, 1, 2]);
    assert_eq!(queue.outbox(), "Cancelled f 1");
    assert!(queue.get("f/runs").unwrap().cancelled);
    queue.settle("f/runs", receipt, nack());
    assert_eq!(queue.outbox(), "Cancelled f 1, Cancelled f 0");
}

#[test]
fn a_step_that_goes_on_says_so_after_what_is_worked_off() {
    let queue = queue();
    queue.begin("f", &["a"]);
    let number = queue.read(9).messages[0].number;
    queue.step_all("f", |step| step.goes_on = true);
    assert_eq!(queue.outbox(), "Begin f 0");
    assert!(queue.read(9).messages[0].number > number);
}

#[test]
fn a_step_changes_the_flow_and_ends_it_or_goes_on() {
    let queue = queue();
    queue.begin("f", &["a"]);
    let before = queue.flow("f").unwrap();
    assert_eq!((before.created, before.ended, before.plan.unwrap()), (queue.now(), 0, plan()));
    queue.pass(SECOND);
    queue.step_all("f", |step| step.ended = true);
    let ended = queue.flow("f").unwrap();
    assert!(ended.version > before.version);
    assert_eq!((ended.ended, &*ended.summary), (queue.now(), "sum 2"));
    let then = FlowPlan { states: b"s2"[..].into(), summary: "sum 2".into(), ..plan() };
    assert_eq!(ended.plan.unwrap(), then);
    queue.pass(SECOND);
    queue.step_all("f", |step| step.ended = true);
    assert_eq!(queue.flow("f").unwrap().ended, queue.now() - 1_000, "it had ended before");
    queue.step_all("f", |_| {});
    assert_eq!(queue.flow("f").unwrap().ended, 0);
    assert_eq!(queue.list_flows(None, 9).0, "f");
}

#[test]
fn results_of_nodes_are_kept_when_they_are_worked_off() {
    let queue = queue();
    queue.begin("f", &["a", "b"]);
    queue.step_all("f", |step| step.puts = vec![0, 1]);
    let claimed = queue.claim(2);
    queue.settle("f/a", claimed[0].receipt, with_result(b"A"));
    queue.settle("f/b", claimed[1].receipt, Verdict::Ack);
    assert_eq!(queue.results("f", vec![0]), [None]);
    queue.drain();
    assert_eq!(queue.results("f", vec![1, 0, 5]), [None, Some(b"A"[..].into()), None]);
    let done = |flow: &str, home: Option<&str>, result: &[u8]| NewTask {
        node: Some(NodeOf { home: home.map(Into::into), ..mark(flow, 0) }),
        body: result.into(),
        ..task("t")
    };
    // Of another queue's flow, of none, and again.
    for (new, is_now) in [
        (done("f", Some("home"), b"far"), "A"),
        (done("none", None, b"none"), "A"),
        (done("f", None, b"again"), "again"),
    ] {
        let result = new.body.to_vec();
        queue.enqueue(new);
        let receipt = queue.take_any("t");
        queue.settle("t", receipt, with_result(&result));
        queue.drain();
        assert_eq!(queue.results("f", vec![0])[0].as_deref(), Some(is_now.as_bytes()));
    }
    assert_eq!(queue.store.count("SELECT results FROM flow"), 5);
}

#[test]
fn results_beyond_what_a_flow_may_keep_are_dropped() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.drain();
    let done = |node, result: &[u8]| Message {
        number: 1,
        event: NodeEvent::Done,
        of: mark("f", node),
        retries: 0,
        result: Some(result.into()),
    };
    queue.store.sql(&format!("UPDATE flow SET results = {}", FLOW_RESULTS - 3));
    queue.post(None, vec![done(0, b"1234"), done(1, b"123"), done(2, b"1")]);
    queue.drain();
    let kept: Vec<_> = queue.results("f", vec![0, 1, 2]).iter().map(Option::is_some).collect();
    assert_eq!(kept, [false, true, false]);
    queue.post(None, vec![done(1, b"1"), done(2, b"12"), done(3, b"1")]);
    queue.drain();
    let kept: Vec<_> = queue.results("f", vec![1, 2, 3]).iter().map(Option::is_some).collect();
    assert_eq!(kept, [true, true, false], "what is in the place of another counts without it");
}
