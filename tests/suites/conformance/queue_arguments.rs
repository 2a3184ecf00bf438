//! Bad arguments are refused, the same way everywhere, before any I/O.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stanchion::{
    Backoff, ClaimOptions, Client, DeadTasks, Error, ErrorKind, Flow, ListOptions, OnDuplicate, QueueConfig,
    Retry, Schedule, Task, TaskState,
};
use stanchion_tests::faces::{AnyClient, AnyQueue, Face};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::{RedisServer, on_every_store, verbs};

use crate::queue_support::{census, plain, put, take};
use crate::{ms, secs};

fn bad_tasks() -> Vec<Task> {
    let new = || Task::new("a");
    let beyond = UNIX_EPOCH + ms(253_402_300_799_999) + ms(1);
    vec![
        Task::new(""),
        Task::new("\0"),
        Task::new("a\nb"),
        Task::new("\u{85}"),
        Task::new("x".repeat(513)),
        Task::new("x".repeat(64 * 1024)),
        new().max_attempts(0),
        new().max_attempts(1_000_001),
        new().max_attempts(u32::MAX),
        new().delay(Duration::MAX),
        new().due(beyond),
        new().expires(ms(0)),
        new().expires(Duration::from_micros(999)),
        new().expires(secs(366 * 24 * 3_600)),
        new().on_duplicate(OnDuplicate::Throttle { window: ms(0) }),
        new().on_duplicate(OnDuplicate::Throttle { window: Duration::MAX }),
        new().on_duplicate(OnDuplicate::Debounce { max_wait: ms(0) }),
        new().on_duplicate(OnDuplicate::Debounce { max_wait: Duration::MAX }),
        new().payload(vec![0; stanchion::MAX_PAYLOAD + 1]),
        new().header("h", "x".repeat(stanchion::MAX_PAYLOAD)),
        new().header("stanchion-kind", "x"),
        new().kind(""),
        new().kind("a\nb"),
        new().timeout(ms(0)),
        new().timeout(Duration::MAX),
        new().keep_result(secs(31 * 24 * 3_600)),
        new().backoff(Backoff::list([])),
        new().backoff(Backoff::exponential(secs(1)).factor(0.5)),
    ]
}

fn bad_claims() -> Vec<ClaimOptions> {
    let new = ClaimOptions::new;
    vec![
        new().max(0),
        new().max(1_001),
        new().max(usize::MAX),
        new().lease(ms(0)),
        new().lease(ms(49)),
        new().lease(Duration::MAX),
        new().wait(Duration::MAX),
        new().lease(secs(30)).renew(true).max_run(secs(29)),
        new().max_run(Duration::MAX),
        new().timeout(ms(0)),
        new().timeout(Duration::MAX),
    ]
}

#[track_caller]
fn assert_invalid<T>(result: Result<T, Error>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{what} was accepted"));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
    assert!(!error.is_retryable(), "{what}");
    assert!(error.to_string().len() < 700, "{what}: what is long is not repeated in full");
}

/// These are about a claim, or follow another request, and so about a queue with a good name.
const OF_OTHERS: [&str; 8] = [
    "settle",
    "extend_claim",
    "abandon",
    "read_outbox",
    "step_flows",
    "post_messages",
    "read_nodes",
    "lost_nodes",
];

/// All other verbs of a queue, in every form.
fn calls(queue: &AnyQueue) -> Vec<(&'static str, Result<(), Error>)> {
    let calls = vec![
        ("enqueue", queue.enqueue(plain("a")).map(drop)),
        ("enqueue", queue.enqueue_many([plain("a")]).map(drop)),
        ("claim", queue.claim(ClaimOptions::new()).map(drop)),
        ("settle_and_claim", queue.settle_and_claim(Vec::new(), ClaimOptions::new()).map(drop)),
        ("pop", queue.pop(1).map(drop)),
        ("peek", queue.peek(1).map(drop)),
        ("get", queue.get("a").map(drop)),
        ("list", queue.list(ListOptions::new(TaskState::Ready)).map(drop)),
        ("result", queue.result("a", None, ms(0)).map(drop)),
        ("remove", queue.remove("a", None).map(drop)),
        ("cancel", queue.cancel("a").map(drop)),
        ("reschedule", queue.reschedule("a", SystemTime::now()).map(drop)),
        ("kick", queue.kick(DeadTasks::oldest(1)).map(drop)),
        ("remove_dead", queue.remove_dead(DeadTasks::oldest(1)).map(drop)),
        ("stats", queue.stats().map(drop)),
        ("consumers", queue.consumers().map(drop)),
        ("pause", queue.pause()),
        ("pause", queue.resume()),
        ("purge", queue.purge().map(drop)),
        ("configure", queue.configure(QueueConfig::new())),
        ("events", queue.events(None, ms(0)).map(drop)),
        ("limit_key", queue.limit_key("k", None)),
        ("list_keys", queue.get_key("k").map(drop)),
        ("list_keys", queue.list_keys(None, 1).map(drop)),
        ("put_schedules", queue.schedule(Schedule::new("a", "@daily")).map(drop)),
        ("put_schedules", queue.sync_schedules("app", 1, [Schedule::new("a", "@daily")]).map(drop)),
        ("list_schedules", queue.get_schedule("a").map(drop)),
        ("list_schedules", queue.list_schedules(None, 1).map(drop)),
        ("fire", queue.run_schedule("a").map(drop)),
        ("pause_schedule", queue.pause_schedule("a").map(drop)),
        ("pause_schedule", queue.resume_schedule("a").map(drop)),
        ("remove_schedule", queue.remove_schedule("a").map(drop)),
        ("put_flow", queue.enqueue_flow(Flow::new("a")).map(drop)),
        ("get_flow", queue.get_flow("a").map(drop)),
        ("get_flow", queue.add_to_flow("a", Vec::new()).map(drop)),
        ("get_flow", queue.cancel_flow("a").map(drop)),
        ("get_flow", queue.retry_flow("a").map(drop)),
        ("list_flows", queue.list_flows(None, 1).map(drop)),
    ];
    verbs::assert_listed(verbs::of_queues(), calls.iter().map(|(verb, _)| *verb).chain(OF_OTHERS));
    calls
}

fn everything_bad_is_invalid(client: &AnyClient) {
    for name in ["", "\0", "a\nb", "{", "}", "{}", "a}{b", "{a}{b}", "a{", &"x".repeat(513)] {
        for (verb, result) in calls(&client.queue(name)) {
            assert_invalid(result, &format!("{verb}, the name {name:.10?}"));
        }
        let of_several = client.queues(&["good", name]).claim(ClaimOptions::new());
        assert_invalid(of_several, &format!("the name {name:.10?}"));
    }
    assert_invalid(client.queues(&[]).claim(ClaimOptions::new()), "no queue");
    let queue = client.queue("q");
    for (number, task) in bad_tasks().into_iter().enumerate() {
        assert_invalid(queue.enqueue(task), &format!("task {number}"));
    }
    for (number, task) in bad_tasks().into_iter().enumerate() {
        assert_invalid(queue.enqueue_many([plain("good"), task]), &format!("task {number} of a batch"));
    }
    for options in bad_claims() {
        assert_invalid(queue.claim(options.clone()), &format!("{options:?}"));
        assert_invalid(client.queues(&["q", "r"]).claim(options.clone()), &format!("{options:?}"));
        assert_invalid(queue.settle_and_claim(Vec::new(), options.clone()), &format!("{options:?}"));
    }
    for bad in [0, 1_001, usize::MAX] {
        assert_invalid(queue.pop(bad), "pop's count");
        assert_invalid(queue.peek(bad), "peek's count");
        assert_invalid(queue.list(ListOptions::new(TaskState::Dead).max(bad)), "list's count");
    }
    assert_invalid(queue.kick(DeadTasks::oldest(0)), "kick's count");
    assert_invalid(queue.remove_dead(DeadTasks::oldest(0)), "remove_dead's count");
    assert_invalid(queue.list(ListOptions::new(TaskState::Dead).page("8/x/00")), "list's page");
    for id in ["", "\n", &"x".repeat(513)] {
        assert_invalid(queue.get(id), "get's id");
        assert_invalid(queue.remove(id, None), "remove's id");
        assert_invalid(queue.reschedule(id, SystemTime::now()), "reschedule's id");
        assert_invalid(queue.kick(DeadTasks::ids([id])), "kick's id");
        assert_invalid(queue.remove_dead(DeadTasks::ids([id])), "remove_dead's id");
        assert_invalid(queue.get_schedule(id), "get_schedule's id");
        assert_invalid(queue.run_schedule(id), "run_schedule's id");
        assert_invalid(queue.pause_schedule(id), "pause_schedule's id");
        assert_invalid(queue.remove_schedule(id), "remove_schedule's id");
    }
    assert_invalid(queue.reschedule("a", UNIX_EPOCH + secs(300_000_000_000)), "a due beyond 9999");
    for bad in [
        QueueConfig::new().max_len(Some(0)),
        QueueConfig::new().max_len(Some(u64::MAX)),
        QueueConfig::new().dead_max(u64::MAX),
        QueueConfig::new().dead_bytes(u64::MAX),
        QueueConfig::new().dead_age(Duration::MAX),
    ] {
        assert_invalid(queue.configure(bad.clone()), &format!("{bad:?}"));
    }
}

on_every_store! {
    fn bad_arguments_change_nothing(bench) {
        let client = bench.client();
        everything_bad_is_invalid(&client);
        assert_eq!(census(&client.queue("q")), [0; 4]);
        assert_eq!(client.queue("q").stats().unwrap().enqueued, 0);
    }

    fn a_bad_delay_of_a_nack_leaves_the_claim_as_it_was(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        assert_invalid(claim.nack(Retry::After(Duration::MAX), "no"), "nack's delay");
        assert_invalid(claim.clone().nacked(Retry::After(secs(366 * 24 * 3_600)), "no"), "nacked's delay");
        assert!(claim.is_valid());
        claim.ack().unwrap();
    }

    fn the_limits_themselves_are_allowed(bench) {
        let queue = bench.client().queue(&"q".repeat(512));
        let year = secs(365 * 24 * 3_600);
        let id = "x".repeat(512);
        let task = Task::new(&id).max_attempts(1_000_000).priority(255).expires(year).header("", "");
        queue.enqueue(task.on_duplicate(OnDuplicate::Debounce { max_wait: year })).unwrap();
        let claims = queue.claim(ClaimOptions::new().max(1_000).lease(year).wait(ms(1))).unwrap();
        assert_eq!((claims[0].id(), claims[0].max_attempts()), (id.as_str(), 1_000_000));
        claims[0].nack(Retry::After(year), &"r".repeat(1_024)).unwrap();
        assert_eq!(queue.task(&id).reason.len(), 1_024);
        assert_eq!(queue.remove(&id, None).unwrap(), stanchion::Removed::Removed);
        let tiny = Task::new("t").expires(year).on_duplicate(OnDuplicate::Throttle { window: ms(1) });
        queue.enqueue(tiny).unwrap();
        assert_eq!(queue.peek(1_000).unwrap().len(), 1);
        let claims = queue.claim(ClaimOptions::new().lease(ms(50))).unwrap();
        claims[0].ack().unwrap();
    }
}

/// Nothing is sent: the server that the client was opened with is gone.
#[test]
fn bad_arguments_are_refused_without_a_server() {
    for face in [Face::Async, Face::Blocking] {
        let server = RedisServer::start();
        let client = AnyClient::open(face, Client::builder(&server.url())).unwrap();
        server.kill9();
        everything_bad_is_invalid(&client);
    }
}

/// A prefix may not put a queue's key where a lock's or a sidecar's is.
#[test]
fn a_queue_cannot_have_a_locks_key() {
    for face in [Face::Async, Face::Blocking] {
        let bench = Bench::new(Kind::Memory, face);
        let client = bench.open(bench.builder().lock_prefix("app:lock:").queue_prefix("app:"));
        assert_invalid(client.queue("lock:a").enqueue(plain("a")), "a lock's key");
        client.queue("a").enqueue(plain("a")).unwrap();
        let client = bench.open(bench.builder().lock_prefix("l:").queue_prefix(""));
        assert_invalid(client.queue("stanchion:queue:{a}").enqueue(plain("a")), "a sidecar's key");
    }
}
