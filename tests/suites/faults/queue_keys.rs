//! What other programs put at the queue's keys, and users without rights.

use std::time::Instant;

use stanchion::{
    ACL_RULE, Client, DeadTasks, ErrorKind, Flow, KeyLimits, ListOptions, QueueConfig, Retry, Schedule,
    TaskState,
};
use stanchion_tests::faces::{AnyClient, AnyQueue, Face};
use stanchion_tests::wait::SOON;
use stanchion_tests::{RedisServer, verbs};

use crate::queue_support::{await_one, census, claimer, leased, plain, put, take};
use crate::{assert_within, ms, open};

const KINDS: [&str; 22] = [
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

fn sidecar(kind: &str) -> String {
    format!("stanchion:{kind}:{{Queue:q}}")
}

/// Those that are about a claim, and one that is sent when a claim call ends.
const OF_CLAIMS: [&str; 4] = ["settle", "settle_and_claim", "extend_claim", "abandon"];
/// Those that let flows go on: whoever sends them leaves it to others if they fail.
const OF_FLOWS: [&str; 4] = ["read_outbox", "step_flows", "read_nodes", "lost_nodes"];

/// Each verb that needs no claim, with what it says.
fn errors_of(queue: &AnyQueue) -> Vec<(&'static str, Option<stanchion::Error>)> {
    let throttle = stanchion::OnDuplicate::Throttle { window: ms(60_000) };
    let errors = vec![
        ("enqueue", queue.enqueue(plain("a").on_duplicate(throttle)).err()),
        ("claim", queue.claim(leased(1_000).wait(ms(60))).err()),
        ("pop", queue.pop(1).err()),
        ("peek", queue.peek(1).err()),
        ("get", queue.get("a").err()),
        ("list", queue.list(ListOptions::new(TaskState::Dead)).err()),
        ("result", queue.result("a", None, ms(0)).err()),
        ("remove", queue.remove("a", None).err()),
        ("cancel", queue.cancel("a").err()),
        ("reschedule", queue.reschedule("a", std::time::SystemTime::now()).err()),
        ("kick", queue.kick(DeadTasks::oldest(1)).err()),
        ("remove_dead", queue.remove_dead(DeadTasks::oldest(1)).err()),
        ("stats", queue.stats().err()),
        ("consumers", queue.consumers().err()),
        ("pause", queue.pause().err()),
        ("configure", queue.configure(QueueConfig::new().dead_max(7).events(9)).err()),
        // Unless that was refused.
        ("events", queue.events(Some(0), ms(0)).err().filter(|error| error.kind() != ErrorKind::Unsupported)),
        ("limit_key", queue.limit_key("k", Some(KeyLimits::new().concurrency(1))).err()),
        ("list_keys", queue.list_keys(None, 9).err()),
        ("put_schedules", queue.schedule(Schedule::new("a", "@daily")).err()),
        ("list_schedules", queue.get_schedule("a").err()),
        ("fire", queue.run_schedule("a").err()),
        ("pause_schedule", queue.pause_schedule("a").err()),
        ("remove_schedule", queue.remove_schedule("a").err()),
        ("put_flow", queue.enqueue_flow(Flow::new("f").node(plain("a"))).err()),
        ("get_flow", queue.get_flow("f").err()),
        ("list_flows", queue.list_flows(None, 9).err()),
        ("post_messages", queue.cancel_flow("f").err()),
        ("purge", queue.purge().err()),
    ];
    let listed = errors.iter().map(|(verb, _)| *verb).chain(OF_CLAIMS).chain(OF_FLOWS);
    verbs::assert_listed(verbs::of_queues(), listed);
    errors
}

on_both_faces! {
    /// Another type at any of the keys: a typed error that names it, before anything is written.
    fn wrong_type_at_each_key(face) {
        let server = RedisServer::start();
        let keys = KINDS.iter().map(|kind| sidecar(kind)).chain(["Queue:q".to_owned()]);
        for key in keys {
            server.cli(&["FLUSHALL"]);
            server.cli(&["SET", &key, "somebody else's"]);
            let queue = open(face, &server.url()).queue("q");
            let mut refused = 0;
            // Those that refuse change nothing, so that the next one finds the key as it was.
            for (verb, error) in errors_of(&queue) {
                let Some(error) = error else { continue };
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::WrongType, "{key}, {verb}: {error}");
                assert!(error.to_string().contains("q"), "{key}, {verb}: {error}");
                assert!(!error.is_retryable());
            }
            assert!(refused > 0, "{key}: nobody noticed");
            let enqueue = queue.enqueue(plain("b")).err().map(|error| error.kind());
            if enqueue == Some(ErrorKind::WrongType) && server.cli(&["TYPE", &key]) == "string" {
                assert_eq!(server.cli(&["GET", &key]), "somebody else's", "{key} was overwritten");
            }
        }
    }

    /// Scores that are no times, and ids that no task may have, die with their reason; the rest goes on.
    fn intake_with_bad_scores(face) {
        let server = RedisServer::start();
        let queue = open(face, &server.url()).queue("q");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let millis = now.as_millis().to_string();
        for (score, member) in [
            ("inf", "never"), ("-inf", "always"), ("1e300", "huge"), (&*millis, "milliseconds"),
            ("5", ""),
            ("6", "a\nb"),
            ("-7.5", "negative"),
            ("1.0001", "fraction"),
            ("1e11", "far"),
        ] {
            server.cli(&["ZADD", "Queue:q", score, member]);
        }
        let mut raw = server.raw();
        redis::cmd("ZADD").arg("Queue:q").arg(8).arg("x".repeat(513)).exec(&mut raw).unwrap();
        redis::cmd("ZADD").arg("Queue:q").arg(9).arg(&b"\xff\xfe"[..]).exec(&mut raw).unwrap();
        let mut good: Vec<String> = Vec::new();
        loop {
            let claims = queue.claim(leased(20_000).max(10)).unwrap();
            if claims.is_empty() {
                break;
            }
            for claim in claims {
                assert_eq!((claim.payload(), claim.attempt(), claim.max_attempts()), (b"".as_slice(), 1, 20));
                good.push(claim.id().to_owned());
                claim.ack().unwrap();
            }
        }
        assert_eq!(good[..3], ["always", "negative", "fraction"], "in order of due: {good:?}");
        let dead = queue.all(TaskState::Dead);
        // One that is too long is cut off.
        for id in ["never", "huge", "milliseconds", "", "a\nb", &"x".repeat(512), "\u{fffd}\u{fffd}"] {
            let found = dead.iter().find(|task| task.id == id);
            let found = found.unwrap_or_else(|| panic!("{id:.10?} is not dead: {dead:?}"));
            assert!(!found.reason.is_empty(), "{id:.10?}");
        }
        assert_eq!(queue.task("far").state, TaskState::Scheduled, "the year 5138 is a time");
        put(&queue, &["after"]);
        take(&queue).ack().unwrap();
    }

    /// The documented rule is enough for everything, exactly as it is printed.
    fn acl_rule_is_sufficient(face) {
        let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {ACL_RULE}")).start();
        let url = server.url_as("app", "c4n4ry-pa55w0rd");
        let queue = open(face, &url).queue("q");
        for (verb, error) in errors_of(&queue) {
            assert!(error.is_none(), "{verb}: {error:?}");
        }
        queue.resume().unwrap();
        server.cli(&["ZADD", "Queue:q", "5", "plain"]);
        put(&queue, &["a", "b", "c"]);
        let claims = queue.claim(leased(20_000).max(4)).unwrap();
        assert_eq!(claims.len(), 4);
        claims[0].extend(ms(30_000)).unwrap();
        claims[0].ack().unwrap();
        claims[1].nack(Retry::After(ms(0)), "no").unwrap();
        claims[2].bury("dead").unwrap();
        let (settled, more) = queue.settle_and_claim(vec![claims[3].clone().returned()], leased(20_000).max(5)).unwrap();
        assert!(settled[0].is_ok());
        more.iter().for_each(|claim| claim.ack().unwrap());
        assert_eq!(queue.kick(DeadTasks::oldest(1)).unwrap(), 1);
        take(&queue).ack().unwrap();
        let waiting = claimer(&open(face, &url).queue("q"));
        stanchion_tests::probe::Probe::open(&server.url()).wait_for_idle("q", 1);
        put(&queue, &["d"]);
        let begun = Instant::now();
        waiting.join().ack().unwrap();
        assert_within(ms(200), begun);
    }

    /// A user without the rights that only events need has a queue without them.
    fn events_alone_need_the_rights_of_events(face) {
        let rights = ACL_RULE.replace(" +xadd +xlen +xrange", "");
        assert_ne!(rights, ACL_RULE);
        let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rights}")).start();
        let queue = open(face, &server.url_as("app", "c4n4ry-pa55w0rd")).queue("q");
        queue.configure(QueueConfig::new().dead_max(7)).unwrap();
        put(&queue, &["a"]);
        take(&queue).ack().unwrap();
        let denied = |error: stanchion::Error| assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        denied(queue.configure(QueueConfig::new().events(9)).unwrap_err());
        // Somebody who has them turns events on: nothing is written without the event.
        open(face, &server.url()).queue("q").configure(QueueConfig::new().events(9)).unwrap();
        denied(queue.enqueue(plain("b")).unwrap_err());
        assert!(open(face, &server.url()).queue("q").get("b").unwrap().is_none());
    }

    /// Without rights on channels everything works by polling; what makes a task ready succeeds.
    fn no_channel_rights(face) {
        let rights = ACL_RULE.replace("&stanchion:wake:* ", "resetchannels ");
        let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rights}")).start();
        let url = server.url_as("app", "c4n4ry-pa55w0rd");
        let (producer, consumer) = (open(face, &url).queue("q"), open(face, &url).queue("q"));
        let waiting = claimer(&consumer);
        let probe = stanchion_tests::probe::Probe::open(&server.url());
        probe.wait_for_idle("q", 1);
        put(&producer, &["a"]);
        let begun = Instant::now();
        let claim = waiting.join();
        assert_within(ms(1_000), begun);
        claim.nack(Retry::After(ms(0)), "again").unwrap();
        await_one(&consumer, SOON).ack().unwrap();
        assert_eq!(census(&producer), [0; 4]);
    }

    /// Each right that is missing is reported as such, or not needed by that verb.
    fn missing_command_rights(face) {
        let rights = ACL_RULE.split_whitespace().filter_map(|word| word.strip_prefix('+'));
        let rights: Vec<&str> = rights.filter(|right| !right.starts_with('@')).collect();
        let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {ACL_RULE}")).start();
        let admin = open(Face::Blocking, &server.url()).queue("q");
        for right in rights {
            put(&admin, &["x", "y"]);
            take(&admin).bury("dead").unwrap();
            server.cli(&["ACL", "SETUSER", "app", &format!("-{right}")]);
            let errors = match AnyClient::open(face, Client::builder(&server.url_as("app", "c4n4ry-pa55w0rd"))) {
                Ok(client) => errors_of(&client.queue("q")),
                Err(error) => vec![("open", Some(error))],
            };
            for (verb, error) in errors {
                let Some(error) = error else { continue };
                assert_eq!(error.kind(), ErrorKind::Denied, "without {right}, {verb}: {error}");
                assert!(error.to_string().contains(ACL_RULE), "without {right}, {verb}: {error}");
            }
            server.cli(&["ACL", "SETUSER", "app", &format!("+{right}")]);
            server.cli(&["FLUSHALL"]);
        }
    }
}
