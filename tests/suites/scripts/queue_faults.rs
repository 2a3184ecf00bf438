//! Every script of the queue with memory full, without rights, and on keys of another type.

use stanchion::internals::{task_id, task_key};
use stanchion::protocol::{
    Configure, DeadOnes, Due, FailureKind, FlowStep, ListKeys, NodeEvent, Pause, PutFlow, QueueVerb, Sweep,
    TaskState, Verdict,
};
use stanchion::{ACL_RULE, ErrorKind};
use stanchion_tests::{RedisServer, verbs};

use crate::case::{Bench, describe, store};
use crate::flow_case::{
    add_nodes, get_flow, list_flows, lost_nodes, message, node, node_of, post, put_flow, put_part,
    read_nodes, read_outbox, step, step_of,
};
use crate::memory_full;
use crate::queue_case::{
    LEASE, Tweak, abandon, ack, ack_with, bury, cancel, claim, claim_or_wait, due_schedules, enqueue, events,
    extend_claim, fire, fire_of, get, kick, limit_key, list, list_keys, ms, nack, pause_schedule, peek,
    plain, pop, progress, put_schedules, remove, remove_schedule, request, reschedule, result, schedule_of,
    settle, settle_and_claim,
};
use crate::state::{Content, State, nothing};

const COUNTS: &str = "counter 50, sequence 20, dead_size 1, expired_size 1";
const LIVE: &str = "{then+9000}";

/// Every verb in every form.
fn verbs() -> Vec<(&'static str, QueueVerb)> {
    vec![
        ("enqueue", enqueue([plain("new")])),
        ("enqueue later", enqueue([plain("new").delayed(5_000)])),
        ("enqueue a live id", enqueue([plain("ready").replace()])),
        ("enqueue a running id", enqueue([plain("runs").replace()])),
        ("enqueue with throttle", enqueue([plain("new").throttle(5_000)])),
        ("claim", claim(9)),
        ("claim or wait", claim_or_wait(9, 5)),
        ("ack", settle(&[("runs", 40, ack())])),
        ("nack", settle(&[("runs", 40, nack(500))])),
        ("bury", settle(&[("runs", 40, bury())])),
        ("put back", settle(&[("runs", 40, Verdict::PUT_BACK)])),
        ("ack of the dead", settle(&[("dead", 10, ack())])),
        ("settle_and_claim", settle_and_claim(&[("runs", 40, bury())], 9)),
        ("ack with a result", settle(&[("runs", 40, ack_with("r", 5_000))])),
        ("extend_claim", extend_claim("runs", 40, 60_000)),
        ("extend_claim with progress", progress("runs", 40, 60_000, "half")),
        ("abandon", abandon(Some(6), Some(5))),
        ("pop", pop(9)),
        ("peek", peek(9)),
        ("get", get("runs")),
        ("get the dead", get("dead")),
        ("get of the intake", get("entry")),
        ("list ready", list(TaskState::Ready, None, 9)),
        ("list scheduled", list(TaskState::Scheduled, None, 9)),
        ("list claimed", list(TaskState::Claimed, None, 9)),
        ("list dead", list(TaskState::Dead, None, 9)),
        ("result", result("runs", 0, Some(5))),
        ("result that is kept", result("done", 0, None)),
        ("result of the dead", result("dead", 0, None)),
        ("events", events(Some(0), None)),
        ("events to come", events(None, Some(5))),
        ("cancel", cancel("runs")),
        ("cancel one that waits", cancel("ready")),
        ("remove", remove("runs", None)),
        ("remove an entry", remove("entry", None)),
        ("reschedule", reschedule("ready", Due::In(ms(5_000)))),
        ("reschedule an entry", reschedule("entry", Due::In(ms(5_000)))),
        ("reschedule the dead", reschedule("dead", Due::In(ms(5_000)))),
        ("kick", kick(&["dead"])),
        ("kick the oldest", QueueVerb::Kick(Sweep::new(DeadOnes::Oldest, 9))),
        ("remove_dead", QueueVerb::RemoveDead(Sweep::new(DeadOnes::Oldest, 9))),
        ("stats", QueueVerb::Stats),
        ("consumers", QueueVerb::Consumers),
        ("pause", QueueVerb::Pause(Pause { paused: true })),
        ("go on", QueueVerb::Pause(Pause { paused: false })),
        ("configure", QueueVerb::Configure(Configure { max_len: Some(Some(9)), ..Configure::default() })),
        ("keep events", QueueVerb::Configure(Configure { events: Some(9), ..Configure::default() })),
        ("limits", QueueVerb::Configure(Configure { max_running: Some(Some(9)), ..Configure::default() })),
        ("limit_key", limit_key("k", Some(9))),
        ("take limits away", limit_key("own", None)),
        ("list_keys", list_keys(9)),
        ("get a key", QueueVerb::ListKeys(ListKeys::One(task_key("k").unwrap()))),
        ("list held", list(TaskState::Held, None, 9)),
        ("throttle", settle(&[("runs", 40, Verdict::Throttle { time: ms(5_000) })])),
        ("throttle a key", settle(&[("of k", 42, Verdict::Throttle { time: ms(5_000) })])),
        ("ack of a key", settle(&[("of k", 42, ack())])),
        ("enqueue with a key", enqueue([plain("new").key("k")])),
        ("purge", QueueVerb::Purge),
        ("put_schedules", put_schedules(None, [schedule_of("new")])),
        ("put_schedules of an owner", put_schedules(Some(("app", 9)), [schedule_of("new")])),
        ("list_schedules", due_schedules(0)),
        ("fire", fire([fire_of("cron", 30, &[("cron@5", 5)])])),
        ("pause_schedule", pause_schedule("cron", true)),
        ("remove_schedule", remove_schedule("cron")),
        ("put_flow", flow_of("new", put_flow(7, [node("a")]))),
        ("put_flow in parts", flow_of("new", put_part(7, 0, false, [node("a")]))),
        ("put_flow of a draft that was given up", flow_of("draft", put_flow(8, [node("a")]))),
        ("put_flow more nodes", add_nodes(8, 2, 30)),
        ("read_outbox", read_outbox(9)),
        ("step_flows", step(60, 61, [FlowStep { puts: vec![0], cancels: vec![1], ..step_of(30) }])),
        ("step_flows to the end", step(60, 61, [FlowStep { ended: true, goes_on: true, ..step_of(30) }])),
        ("post_messages", post(None, [message(1, NodeEvent::Cancel, None)])),
        ("post_messages of a queue", post(Some("mails"), [message(80, NodeEvent::Done, Some("r"))])),
        ("get_flow", get_flow("f")),
        ("list_flows", list_flows(Some("16/5/f"), 9)),
        ("read_nodes", read_nodes(&[0, 1], false)),
        ("read_nodes of results", read_nodes(&[0, 1], true)),
        ("lost_nodes", lost_nodes(&[("x", node_of("f", 0, None))])),
        ("ack of a node", settle(&[("node", 43, ack_with("r", 5_000))])),
        ("bury a node", settle(&[("node", 43, bury())])),
        ("cancel a node", cancel("f/b")),
        ("remove a node", remove("f/b", None)),
    ]
}

/// The same of a flow of another id.
fn flow_of(id: &str, verb: QueueVerb) -> QueueVerb {
    let QueueVerb::PutFlow(put) = verb else { unreachable!() };
    QueueVerb::PutFlow(PutFlow { id: task_id(id).unwrap(), ..put })
}

/// Something in every key, and something to do for every verb.
fn busy() -> State {
    nothing()
        .ready("ready", 1, "")
        .ready("expired", 2, "expires 5")
        .scheduled("due", "{then-5}", "")
        .scheduled("later", LIVE, "")
        .claimed("ended", "{then-1}", "receipt 41, attempts 20")
        .claimed("runs", LIVE, "receipt 40, attempts 1, has_successor 1")
        .successor("runs", "version 9")
        .dead("10", "dead", "{then-5}", "settled 10, verdict 5")
        .expired("11", "late", "{then-5}", "")
        .window("w", LIVE, 9_000)
        .idle(6, LIVE)
        .intake("entry", "5")
        .call("6: [[runs 40]]")
        .result("done", LIVE, "version 5, result r")
        .schedule("cron", "{then-1}", "owner app")
        .owns("app", "[1 cron]")
        .agenda("{then-1}", 1)
        .watched(100, 7)
        .limits("key_concurrency 1, own_set 1, counts_runs 1")
        .claimed("of k", LIVE, "receipt 42, attempts 1, key k")
        .held_by_key("next of k", "k", 9, "")
        .key("k", "running 1, held 1")
        .own_limits("own", "2 0 0 0 1")
        .flow("f", "{then-5}", "node_count 2, result_bytes 1")
        .node(0, "a", "")
        .node(1, "b", "")
        .node_result(0, "r")
        .draft("draft", "{then-60001}", "node_count 1")
        .ended_flow("old", "5", "")
        .source("mails", "70")
        .done("60", "0 f", "r")
        .done("61", "1 g\nhome", "r")
        .outbox("first_message 60, last_message 61, last_step 5, walk_at 5, live_flows 1")
        .claimed("node", LIVE, "receipt 43, attempts 1, node 0 f")
        .ready("f/b", 3, "node 1 f")
        .counts(COUNTS)
}

/// Nothing is due.
fn calm() -> State {
    nothing()
        .scheduled("ready", LIVE, "")
        .claimed("runs", LIVE, "receipt 40, attempts 1")
        .dead("10", "dead", "{then-5}", "settled 10, verdict 5")
        .idle(6, LIVE)
        .intake("entry", "4000000000")
        .call("6: [[runs 40]]")
        .counts(COUNTS)
}

fn flush(bench: &mut Bench) {
    redis::cmd("FLUSHDB").exec(&mut bench.raw).unwrap();
}

/// One cell of the table; `Err` tells what is wrong.
fn check(bench: &mut Bench, state: &State, key: &str, verb: &QueueVerb) -> Result<(), String> {
    flush(bench);
    let wrong = state.clone().with_key(key, Content::List, Some(500_000));
    bench.set_up(&wrong);
    let before = bench.state();
    let result = bench.call(request(verb.clone()));
    let real = bench.state();
    bench.context.after = bench.time();
    match result {
        Err(failure) if failure.kind == FailureKind::Final(ErrorKind::WrongType) => {
            assert!(failure.message.contains("queue"), "it says where: {}", failure.message);
            match before.differences(&real, &bench.context) {
                differences if differences.is_empty() => Ok(()),
                differences => Err(format!("WrongType after a write:\n{differences}")),
            }
        }
        Err(failure) => Err(format!("{:?}: {}", failure.kind, failure.message)),
        // It did not need the key, so the key is as it was.
        Ok(_) => match real.0.get(key) {
            Some((Content::List, Some(_))) => Ok(()),
            other => Err(format!("succeeded, and the key became {other:?}")),
        },
    }
}

#[test]
fn every_verb_is_called() {
    verbs::assert_listed(verbs::of_queues(), verbs().iter().map(|(_, verb)| verb.name()));
}

#[test]
fn a_key_of_another_type_changes_nothing() {
    let kinds = [
        "intake",
        "queue",
        "state",
        "body",
        "scheduled",
        "ready",
        "claimed",
        "dead",
        "grave",
        "window",
        "idle",
        "expired",
        "agenda",
        "schedules",
        "result",
        "results",
        "events",
        "held",
        "keys",
        "key-waits",
        "key-limits",
        "flows",
        "flow-nodes",
        "flow-times",
    ];
    let keys = kinds.iter().map(|kind| format!("q:{kind}")).chain(["q:call 0".to_owned()]);
    let mut bench = Bench::new();
    let mut wrong = Vec::new();
    for key in keys {
        for (situation, state) in [("busy", busy()), ("calm", calm()), ("empty", nothing())] {
            for (verb, request) in verbs() {
                if let Err(problem) = check(&mut bench, &state, &key, &request) {
                    wrong.push(format!("{key} is a list; {situation}; {verb}: {problem}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn with_memory_full_what_adds_fails_whole_and_everything_else_works() {
    let server = memory_full::server();
    for (verb, call) in verbs() {
        let mut bench = memory_full::bench(&server, &busy());
        let result = bench.call(request(call));
        let adds = [
            "enqueue",
            "kick",
            "pause",
            "configure",
            "limit",
            "put_schedules",
            "fire",
            "put_flow",
            "post_messages",
        ]
        .iter()
        .any(|word| verb.starts_with(word));
        if !adds {
            assert!(result.is_ok(), "{verb}: {result:?}");
            continue;
        }
        let failure = result.expect_err(verb);
        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable), "{verb}");
        let real = bench.state();
        bench.context.after = bench.time();
        assert_eq!(busy().differences(&real, &bench.context), "", "{verb}");
    }
}

/// Where no lease has ended and nothing is to be dropped, the first write is one that changes nothing.
#[test]
fn with_memory_full_ready_tasks_are_given() {
    let server = memory_full::server();
    let verbs = [claim(9), pop(9), settle_and_claim(&[("x", 1, ack())], 9), settle(&[("ready", 1, ack())])];
    for verb in verbs.into_iter().chain([reschedule("ready", Due::In(ms(5_000)))]) {
        let mut bench = memory_full::bench(&server, &nothing().ready("ready", 1, "").counts(COUNTS));
        let result = bench.call(request(verb));
        assert!(result.is_ok(), "{result:?}");
    }
}

/// The documented rule is enough for every path, as far as two situations show them.
#[test]
fn the_documented_rule_is_enough() {
    let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {ACL_RULE}")).start();
    let mut bench = Bench::at(&server.url());
    bench.store = store(&server.url_as("app", "c4n4ry-pa55w0rd"), bench.context.client);
    for state in [busy(), calm(), nothing()] {
        for (verb, call) in verbs() {
            flush(&mut bench);
            bench.set_up(&state);
            let result = bench.call(request(call));
            assert!(result.is_ok(), "{verb}: {result:?}");
        }
    }
}

/// A right that is missing is named; the store then has done all, nothing, or what a lost reply leaves.
#[test]
fn a_missing_right_is_told() {
    let rights = ["persist", "zmscore", "hmget", "zcard", "unlink", "hlen", "hset"];
    for missing in rights {
        let rule = ACL_RULE.replace(&format!(" +{missing} "), " ");
        assert_ne!(rule, ACL_RULE, "{missing} is in the rule");
        let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rule}")).start();
        let mut bench = Bench::at(&server.url());
        bench.store = store(&server.url_as("app", "c4n4ry-pa55w0rd"), bench.context.client);
        let mut denied = 0;
        for (verb, call) in verbs() {
            flush(&mut bench);
            bench.set_up(&busy());
            let Err(failure) = bench.call(request(call)) else { continue };
            assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Denied), "{verb} without {missing}");
            assert!(failure.message.contains(ACL_RULE), "{}", failure.message);
            denied += 1;
        }
        assert!(denied > 0, "{missing} is not needed");
    }
}

/// The hint fails, and nothing else.
#[test]
fn without_channel_rights_a_task_is_put_in() {
    let rule = ACL_RULE.replace("&stanchion:wake:*", "resetchannels");
    let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rule}")).start();
    let mut bench = Bench::at(&server.url());
    bench.store = store(&server.url_as("app", "c4n4ry-pa55w0rd"), bench.context.client);
    let before = || nothing().ready("a", 1, "").ready("b", 2, "").idle(6, LIVE).counts(COUNTS);
    bench.set_up(&before());
    let reply = describe(&bench.call(request(claim(1))).unwrap());
    assert!(reply.starts_with("a b receipt"), "{reply}");
    let real = bench.state();
    bench.context.after = bench.time();
    let after = nothing()
        .claimed("a", &format!("{{now+{LEASE}}}"), "receipt {us}, attempts 1")
        .ready("b", 2, "")
        .counts("counter {us}, sequence 20")
        .call("7: [[a {us}]]");
    assert_eq!(after.differences(&real, &bench.context), "");
}
