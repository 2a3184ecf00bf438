//! How long flows and messages are kept.

use super::*;

const MILLI: Duration = Duration::from_millis(1);

/// Rows of all tables of flows.
fn rows(queue: &Queue) -> i64 {
    ["flow", "flow_plan", "flow_node", "flow_result", "outbox", "outbox_source"]
        .map(|table| queue.store.count(&format!("SELECT count(*) FROM {table}")))
        .iter()
        .sum()
}

/// A queue with a flow, one whose parts are coming, one that has ended, a node's result, a message, and a known source.
fn with_all() -> Queue {
    let queue = queue();
    queue.begin("ended", &["a"]);
    let result = Some(b"r"[..].into());
    let done = Message { number: 1, event: NodeEvent::Done, of: mark("ended", 0), retries: 0, result };
    queue.post(Some("source"), vec![done]);
    queue.step_all("ended", |step| step.ended = true);
    queue.begin("f", &["a", "b"]);
    queue.put_flow(PutFlow { plan: None, ..flow_of("draft", &["a"]) });
    assert_eq!(rows(&queue), 3 + 2 + 4 + 1 + 1 + 1);
    queue
}

#[test]
fn a_purge_drops_all_flows_and_messages() {
    let queue = with_all();
    assert_eq!(queue.ask_flows(QueueVerb::Purge), QueueReply::Purge(0));
    assert_eq!((queue.list_flows(None, 9).0, queue.outbox()), (String::new(), String::new()));
    assert_eq!((rows(&queue), queue.store.count("SELECT count(*) FROM queue")), (0, 1));
    queue.pass(DAY);
    assert_eq!(queue.read(9).walk, None);
    assert!(matches!(queue.ask_claim(queue.claim_of(1)), ClaimReply::Empty { .. }));
    queue.begin("f", &["c"]);
    assert_eq!(queue.read_nodes("f", vec![0, 1]), [Some(node("c")), None]);
}

#[test]
fn a_large_purge_of_flows_is_finished_by_later_calls() {
    let queue = queue();
    let large = |number: u32| NewNode { body: vec![1; 1 << 20].into(), ..node(&number.to_string()) };
    let nodes: Vec<_> = (0..20).map(large).collect();
    queue.put_flow(PutFlow { nodes: nodes.into(), ..flow_of("f", &[]) });
    let many = Message { number: 1, event: NodeEvent::Lost, of: mark("f", 0), retries: 0, result: None };
    queue.post(None, vec![many; 1_500]);
    queue.ask_flows(QueueVerb::Purge);
    assert_eq!(queue.store.count("SELECT count(*) FROM flow_node"), 4, "8 MiB at once, twice");
    for _ in 0..40 {
        queue.promote();
    }
    assert_eq!((rows(&queue), queue.store.count("SELECT count(*) FROM queue")), (0, 1));
}

#[test]
fn a_flow_ends_a_week_after_its_end() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.begin("live", &["a"]);
    queue.step_all("f", |step| step.ended = true);
    queue.pass(FLOW_AGE);
    queue.promote();
    assert_eq!(queue.list_flows(None, 9).0, "live f");
    queue.pass(MILLI);
    assert_eq!(
        (queue.flow("f"), queue.list_flows(None, 9).0.as_str()),
        (None, "live"),
        "before it is dropped"
    );
    queue.promote();
    assert_eq!(
        (queue.store.count("SELECT count(*) FROM flow"), queue.store.count("SELECT flows_look FROM queue")),
        (1, 0)
    );
}

#[test]
fn a_flow_that_is_over_its_age_is_in_nobodys_way() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.step_all("f", |step| step.ended = true);
    let version = queue.flow("f").unwrap().version;
    queue.pass(FLOW_AGE + MILLI);
    assert!(!queue.step(queue.whole(vec![FlowStep { version, ..FlowStep { id: id("f"), ..step() } }])));
    queue.begin("f", &["b"]);
    assert_eq!(queue.read_nodes("f", vec![0]), [Some(node("b"))]);
    queue.begin("g", &["b"]);
    queue.step_all("g", |step| step.ended = true);
    queue.pass(FLOW_AGE + MILLI);
    assert_eq!(queue.put_flow(PutFlow { token: 2, ..flow_of("g", &["c"]) }), PutFlowReply::Put);
    assert_eq!(queue.list_flows(None, 9).0, "g f");
}

fn step() -> FlowStep {
    FlowStep {
        id: id("f"),
        version: Version::NONE,
        states: [].into(),
        summary: "".into(),
        ended: false,
        puts: Vec::new(),
        cancels: Vec::new(),
        goes_on: false,
    }
}

#[test]
fn the_oldest_of_too_many_flows_that_have_ended_are_dropped_ten_at_a_time() {
    let queue = queue();
    queue.begin("live", &["a"]);
    queue.drain();
    queue.store.sql(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1015)
         INSERT INTO flow SELECT NULL, queue, 'e' || n, 2, 1, 1, created, created + n, 90, 0, '', x'' FROM flow, n;
         UPDATE queue SET flows_ended = 1015",
    );
    let ended = || queue.store.count("SELECT flows_ended FROM queue");
    let is_kept = |id: &str| queue.store.count(&format!("SELECT count(*) FROM flow WHERE id = '{id}'"));
    queue.promote();
    assert_eq!((ended(), is_kept("e10"), is_kept("e11")), (1_005, 0, 1));
    queue.store.sql("UPDATE flow SET nodes = 600");
    queue.promote();
    assert_eq!(ended(), 1_003, "those have many nodes");
    queue.promote();
    queue.promote();
    queue.promote();
    assert_eq!(ended(), 1_000);
}

#[test]
fn the_nodes_of_a_large_flow_that_is_dropped_go_some_at_a_time() {
    let queue = queue();
    let nodes: Vec<_> = (0..1_500).map(|number| node(&number.to_string())).collect();
    queue.put_flow(PutFlow { nodes: nodes.into(), ..flow_of("f", &[]) });
    queue.step_all("f", |step| step.ended = true);
    queue.pass(FLOW_AGE + MILLI);
    queue.promote();
    assert_eq!(queue.flow("f"), None);
    assert_eq!(queue.store.count("SELECT count(*) FROM flow_node"), 400);
    for left in [300, 200, 100, 0] {
        queue.promote();
        assert_eq!(queue.store.count("SELECT count(*) FROM flow_node"), left);
    }
    assert_eq!(rows(&queue), 0);
}

#[test]
fn a_draft_is_dropped_after_an_hour() {
    let queue = queue();
    queue.put_flow(PutFlow { plan: None, ..flow_of("f", &["a"]) });
    queue.pass(FLOW_DRAFT);
    queue.promote();
    assert_eq!(rows(&queue), 2);
    queue.pass(MILLI);
    queue.promote();
    assert_eq!(rows(&queue), 0);
}

#[test]
fn sources_are_forgotten_with_the_last_flow() {
    let queue = with_all();
    queue.step_all("f", |step| step.ended = true);
    queue.pass(FLOW_AGE);
    queue.promote();
    assert_eq!(queue.store.count("SELECT count(*) FROM outbox_source"), 1);
    queue.pass(MILLI);
    queue.promote();
    assert_eq!(rows(&queue), 0);
}

/// Whatever is forgotten is when another queue is used for the first time.
fn forget(queue: &Queue, other: &str) {
    let pop =
        QueueRequest { queue: prefixes().queue_name(other).unwrap(), verb: QueueVerb::Pop(Pop { max: 1 }) };
    queue.store.perform(&Request::Queue(pop), soon()).unwrap();
}

#[test]
fn a_queue_with_flows_or_messages_is_not_forgotten() {
    let queue = queue();
    let known = || queue.store.count("SELECT count(*) FROM queue WHERE key = 'Queue:q'");
    queue.begin("f", &["a"]);
    queue.drain();
    queue.pass(200 * DAY);
    forget(&queue, "1");
    assert_eq!((known(), rows(&queue)), (1, 3));
    queue.step_all("f", |step| (step.ended, step.goes_on) = (true, true));
    queue.pass(200 * DAY);
    forget(&queue, "2");
    assert_eq!(known(), 1, "a message is there");
    queue.drain();
    queue.put_flow(PutFlow { plan: None, ..flow_of("draft", &["a"]) });
    queue.pass(8 * DAY);
    forget(&queue, "3");
    assert_eq!((known(), rows(&queue)), (0, 0));
}

#[test]
fn a_queue_with_messages_alone_is_listed() {
    let queue = queue();
    let of = mark("f", 1);
    queue.post(None, vec![Message { number: 1, event: NodeEvent::Lost, of, retries: 0, result: None }]);
    assert_eq!(queue.store.list_queues(0, soon()).unwrap().1.len(), 1);
}

/// It clears away what it takes for unused, and knows neither the columns nor the tables.
#[test]
fn an_earlier_library_cannot_forget_a_queue_that_has_flows() {
    let queue = with_all();
    let delete = "DELETE FROM queue WHERE key = 'Queue:q'";
    queue.store.sql(delete);
    assert_eq!(queue.list_flows(None, 9).0, "f ended");
    queue.step_all("f", |step| step.ended = true);
    queue.store.sql(delete);
    assert_eq!(rows(&queue), 0);
}

/// As 0.1.0 does it.
#[test]
fn a_purge_by_an_earlier_library_drops_flows() {
    let queue = with_all();
    queue.store.sql(
        "UPDATE queue SET key = char(1) || id, counter = 0 WHERE key = 'Queue:q';
         INSERT INTO queue (key, used, purged) SELECT 'Queue:q', used, id FROM queue",
    );
    assert_eq!((queue.list_flows(None, 9).0, queue.outbox()), (String::new(), String::new()));
    queue.promote();
    assert_eq!((rows(&queue), queue.store.count("SELECT count(*) FROM queue")), (0, 1));
}

/// It acks without a message: whoever looks after the flow finds that the task is gone.
#[test]
fn a_node_that_an_earlier_library_has_settled_is_lost() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.step_all("f", |step| step.puts = vec![0]);
    assert_eq!(queue.lost(&[("f/a", mark("f", 0))]), Vec::<u32>::new());
    queue.store.sql("DELETE FROM task; UPDATE queue SET ready = 0");
    assert_eq!(queue.lost(&[("f/a", mark("f", 0))]), [0]);
}

#[test]
fn rows_are_put_in_the_place_of_others_also_if_there_are_flows() {
    let queue = with_all();
    let image = queue.store.image().unwrap();
    queue.step_all("f", |step| step.puts = vec![0]);
    queue.store.restore(&image).unwrap();
    assert_eq!(queue.store.image().unwrap(), image);
}
