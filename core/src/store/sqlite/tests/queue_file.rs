//! Queues in a file: several processes, reboots, older files, and writes that fail.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queue::*;
use super::{CLIENT, SECOND, Scratch, Stranger, config, memory, open_file, prefixes, soon};
use crate::base::clock::Clock;
use crate::base::fork::testing::alone;
use crate::base::wake::Hub;
use crate::protocol::FailureKind;
use crate::protocol::*;
use crate::store::Store;
use crate::store::sqlite::connection::side_file;
use crate::store::sqlite::{SqliteStore, SqliteTarget};

/// Tells the test binary, when it runs itself, to be one of several processes.
const WORKER: &str = "STANCHION_TEST_QUEUE_WORKER";
/// Tasks of the test with several processes.
const TASKS: u64 = 300;

fn request(verb: QueueVerb) -> Request {
    Request::Queue(QueueRequest { queue: prefixes().queue_name("q").unwrap(), verb })
}

fn ask(store: &SqliteStore, verb: QueueVerb) -> QueueReply {
    match store.ask(request(verb)) {
        Reply::Queue(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn call(number: u64) -> CallId {
    CallId { client: CLIENT, slot: 0, number }
}

fn add(store: &SqliteStore, number: u64, names: &[&str]) {
    let tasks: Vec<_> = names.iter().map(|name| task(name)).collect();
    ask(
        store,
        QueueVerb::Enqueue(Enqueue { call: call(number), timeout: Duration::ZERO, tasks: tasks.into() }),
    );
}

fn claim(store: &SqliteStore, call: CallId, waiter: Option<Waiter>) -> ClaimReply {
    match ask(
        store,
        QueueVerb::Claim(Claim { call, max: 1, lease: LEASE, waiter, consumer: CONSUMER.into() }),
    ) {
        QueueReply::Claim(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn claimed(reply: ClaimReply) -> ClaimedTask {
    match reply {
        ClaimReply::Claimed(tasks) => tasks[0].clone(),
        other => panic!("{other:?}"),
    }
}

fn ack(store: &SqliteStore, task: &ClaimedTask) -> Settled {
    let item = Settlement { id: task.id.clone(), receipt: task.receipt, verdict: Verdict::Ack };
    match ask(store, QueueVerb::Settle(Settle { items: Arc::new([item]) })) {
        QueueReply::Settle(settled) => settled[0],
        other => panic!("{other:?}"),
    }
}

fn stats(store: &SqliteStore) -> QueueStats {
    match ask(store, QueueVerb::Stats) {
        QueueReply::Stats(stats) => *stats,
        other => panic!("{other:?}"),
    }
}

#[test]
fn processes_share_a_queue_and_do_each_task_once() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let names: Vec<_> = (0..TASKS).map(|number| number.to_string()).collect();
    add(&store, 1, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let (_, module) = module_path!().split_once("::").unwrap();
            command
                .args(["--exact", &format!("{module}::worker"), "--nocapture"])
                .env(WORKER, scratch.file());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut done: Vec<u64> = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        done.extend(text.lines().filter_map(|line| line.strip_prefix("did ")?.parse::<u64>().ok()));
    }
    done.sort_unstable();
    assert_eq!(done, (0..TASKS).collect::<Vec<_>>());
    assert_eq!((stats(&store).acked, stats(&store).ready, stats(&store).claimed), (TASKS, 0, 0));
}

/// Not a test of its own: what each process of the test above does.
#[test]
fn worker() {
    let Some(file) = std::env::var_os(WORKER) else { return };
    let store = open_file(file.as_ref());
    let client = ClientId(std::process::id().into());
    println!();
    for number in 1.. {
        match claim(&store, CallId { client, slot: 0, number }, None) {
            ClaimReply::Claimed(tasks) => {
                assert_eq!(ack(&store, &tasks[0]), DONE);
                println!("did {}", tasks[0].id.as_str());
            }
            _ => break,
        }
    }
}

#[test]
fn a_file_is_opened_while_another_process_writes() {
    let scratch = Scratch::new();
    drop(open_file(&scratch.file()));
    let writer = Stranger::open(&scratch.file());
    writer.sql("BEGIN IMMEDIATE");
    let target = SqliteTarget::File { path: scratch.file(), mode: 0o600, secure_delete: true };
    let store = SqliteStore::open(target, config(Clock::System)).unwrap();
    // Without a wait for the writer.
    store.check(Clock::System.now()).unwrap();
    assert_eq!(stats(&store).ready, 0);
    writer.sql("COMMIT");
}

/// So many bytes of a body.
const LARGE: usize = 1 << 20;

fn add_large(store: &SqliteStore, number: u64, body: Vec<u8>) {
    let tasks = [NewTask { body: body.into(), ..task(&number.to_string()) }];
    let verb = Enqueue { call: call(number), timeout: Duration::ZERO, tasks: tasks.into() };
    ask(store, QueueVerb::Enqueue(verb));
}

fn size(path: &std::path::Path) -> usize {
    std::fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap())
}

#[test]
fn a_file_shrinks_when_tasks_go_one_by_one() {
    let (scratch, tasks) = (Scratch::new(), 48);
    let (store, log) = (open_file(&scratch.file()), side_file(&scratch.file(), "-wal"));
    (1..=tasks).for_each(|number| add_large(&store, number, vec![7; LARGE]));
    for number in 1..=tasks {
        ack(&store, &claimed(claim(&store, call(tasks + number), None)));
    }
    // Its last transactions are in the log still; what reads the file cuts it.
    drop(store);
    assert!(size(&scratch.file()) < 16 * LARGE, "{} and {}", size(&scratch.file()), size(&log));
}

#[test]
fn a_purge_leaves_a_small_file_and_no_log() {
    let scratch = Scratch::new();
    let (store, log) = (open_file(&scratch.file()), side_file(&scratch.file(), "-wal"));
    (1..=48).for_each(|number| add_large(&store, number, vec![7; LARGE]));
    assert!(size(&scratch.file()) > 40 * LARGE);
    assert_eq!(ask(&store, QueueVerb::Purge), QueueReply::Purge(48));
    assert!(size(&scratch.file()) < 12 * LARGE, "{}", size(&scratch.file()));
    assert_eq!(size(&log), 0);
}

#[test]
fn what_goes_is_overwritten_if_that_is_asked_for() {
    let secret = b"4929-1234-5678-9012".as_slice();
    for secure_delete in [false, true] {
        let scratch = Scratch::new();
        let target = SqliteTarget::File { path: scratch.file(), mode: 0o600, secure_delete };
        let store = SqliteStore::open(target, config(Clock::System)).unwrap();
        add_large(&store, 1, secret.repeat(9_000));
        add_large(&store, 2, secret.repeat(9));
        for number in 3..5 {
            ack(&store, &claimed(claim(&store, call(number), None)));
        }
        ask(&store, QueueVerb::Purge);
        let bytes = [std::fs::read(scratch.file()), std::fs::read(side_file(&scratch.file(), "-wal"))];
        let is_there = bytes.into_iter().flatten().any(|bytes| bytes.windows(19).any(|part| part == secret));
        assert_eq!(is_there, !secure_delete);
    }
}

#[test]
fn a_reboot_ends_leases_waits_and_calls_and_keeps_tasks() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    add(&store, 1, &["a", "b"]);
    let first = claimed(claim(&store, call(2), None));
    claimed(claim(&store, call(3), None));
    let waits = Some(Waiter { client: CLIENT, seq: 5 });
    assert!(matches!(claim(&store, call(4), waits), ClaimReply::Empty { .. }));
    store.sql("UPDATE queue_boot SET boot = 'an earlier one'; UPDATE task SET ends = ends + 1000000000000");
    let before = stats(&store);
    assert_eq!((before.ready, before.claimed, before.next_due), (2, 0, Some(Duration::ZERO)));
    let QueueReply::Peek(tasks) = ask(&store, QueueVerb::Peek(Peek { max: 9 })) else { panic!() };
    assert_eq!(tasks.len(), 2);
    assert!(tasks.iter().all(|task| task.state == TaskState::Ready && task.remaining.is_zero()));
    let again = claimed(claim(&store, call(1), None));
    assert_eq!((again.id.as_str(), again.attempt), ("a", 2));
    assert!(again.receipt > first.receipt);
    assert_eq!(ack(&store, &first), Settled::Stale);
    assert_eq!(store.count("SELECT count(*) FROM idle"), 0);
    assert_eq!(store.count("SELECT count(*) FROM call"), 1);
}

/// A library that knows no queues may be the first to use the file after a reboot.
#[test]
fn a_reboot_that_only_the_locks_noticed_ends_leases_too() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    add(&store, 1, &["a"]);
    claimed(claim(&store, call(2), None));
    store.sql("UPDATE queue_boot SET boot = 'an earlier one'");
    store.try_acquire("l", 1).unwrap();
    assert_eq!(claimed(claim(&store, call(3), None)).attempt, 2);
}

#[test]
fn a_file_of_version_1_is_upgraded_and_keeps_its_locks() {
    let scratch = Scratch::new();
    let first = {
        let store = open_file(&scratch.file());
        store.try_acquire("l", 1).unwrap()
    };
    let stranger = Stranger::open(&scratch.file());
    stranger.sql(
        "DROP TABLE queue; DROP TABLE task; DROP TABLE dead; DROP TABLE throttle; DROP TABLE idle;
         DROP TABLE call; DROP TABLE result; DROP TABLE asker; DROP TABLE queue_boot; DROP TABLE limiter; DROP TABLE limiter_take; DROP TRIGGER forget_permits; DROP TRIGGER end_permits;
         DROP TRIGGER forget_cached; DROP TRIGGER end_cached; DROP TABLE cached;
         DROP TABLE permit; ALTER TABLE waiter DROP COLUMN weight;
         ALTER TABLE waiter DROP COLUMN came; ALTER TABLE waiter DROP COLUMN owner; ALTER TABLE lock DROP COLUMN permits;
         PRAGMA user_version = 1",
    );
    let store = open_file(&scratch.file());
    assert_eq!(store.count("SELECT user_version FROM pragma_user_version"), 14);
    assert_eq!(store.count("SELECT least_version FROM store"), 1, "a library of version 1 may use it");
    assert_eq!(store.try_acquire("l", 2), None);
    store.release("l", 1);
    assert!(store.try_acquire("l", 2).unwrap() > first);
    add(&store, 1, &["a"]);
    assert_eq!(ack(&store, &claimed(claim(&store, call(2), None))), DONE);
}

#[test]
fn a_write_that_fails_in_the_middle_leaves_nothing() {
    let (store, _) = memory();
    store.sql("PRAGMA recursive_triggers = ON");
    add(&store, 1, &["a", "b"]);
    let taken = claimed(claim(&store, call(2), None));
    let dump = || {
        store.count("SELECT sum(serial * 7 + state) FROM task") * 1_000_000
            + store.count("SELECT counter % 1000 + ready + 10 * claimed + enqueued + acked FROM queue")
            + store.count("SELECT sum(number) FROM call")
    };
    let before = dump();
    store.sql(
        "CREATE TEMP TRIGGER no_poison BEFORE INSERT ON main.task WHEN NEW.id = 'poison'
           BEGIN SELECT raise(ABORT, 'no'); END;
         CREATE TEMP TRIGGER no_call BEFORE UPDATE ON main.call WHEN NEW.number = 13
           BEGIN SELECT raise(ABORT, 'no'); END;
         CREATE TEMP TRIGGER no_last BEFORE UPDATE ON main.queue WHEN NEW.acked > 0
           BEGIN SELECT raise(ABORT, 'no'); END;",
    );
    let items =
        Arc::new([Settlement { id: taken.id.clone(), receipt: taken.receipt, verdict: Verdict::Ack }]);
    let settle = Settle { items };
    let new_claim =
        |number| Claim { call: call(number), max: 9, lease: LEASE, waiter: None, consumer: CONSUMER.into() };
    let tasks = vec![task("c"), task("poison")];
    for verb in [
        QueueVerb::Enqueue(Enqueue { call: call(3), timeout: Duration::ZERO, tasks: tasks.into() }),
        QueueVerb::Claim(new_claim(13)),
        QueueVerb::Settle(settle.clone()),
        QueueVerb::SettleAndClaim(settle, new_claim(4)),
        QueueVerb::Pop(Pop { max: 1 }),
    ] {
        let name = verb.name();
        assert!(store.perform(&request(verb), soon()).is_err(), "{name}");
        assert_eq!(dump(), before, "{name}");
    }
    store.sql("DROP TRIGGER no_poison; DROP TRIGGER no_call; DROP TRIGGER no_last");
    assert_eq!(ack(&store, &taken), DONE);
    assert_ne!(dump(), before);
}

#[test]
fn a_full_disk_refuses_and_changes_nothing() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    add(&store, 1, &["a"]);
    store.sql("PRAGMA max_page_count = 1");
    let big = NewTask { body: vec![1; 1 << 20].into(), ..task("b") };
    let verb =
        QueueVerb::Enqueue(Enqueue { call: call(2), timeout: Duration::ZERO, tasks: vec![big].into() });
    let failure = store.perform(&request(verb), soon()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert_eq!(stats(&store).ready, 1);
}

#[test]
fn tasks_wait_for_the_disk_and_locks_do_not() {
    // A test that forks would have the connection opened anew, with the settings of a new one.
    if !alone("store::sqlite::tests::queue_file::tasks_wait_for_the_disk_and_locks_do_not") {
        return;
    }
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let synchronous = || store.count("SELECT synchronous FROM pragma_synchronous");
    let (normal, full) = (1, 2);
    assert_eq!(synchronous(), normal);
    add(&store, 1, &["a"]);
    assert_eq!(synchronous(), full);
    store.try_acquire("l", 1).unwrap();
    assert_eq!(synchronous(), normal);
    let taken = claimed(claim(&store, call(2), None));
    assert_eq!(synchronous(), full);
    let extend = ExtendClaim { id: taken.id, receipt: taken.receipt, lease: SECOND, progress: None };
    ask(&store, QueueVerb::ExtendClaim(extend.clone()));
    assert_eq!(synchronous(), normal, "a lease ends with the boot");
    add(&store, 3, &["b"]);
    claimed(claim(&store, call(4), None));
    assert_eq!(synchronous(), full);
    assert!(matches!(claim(&store, call(5), None), ClaimReply::Empty { .. }));
    assert_eq!(synchronous(), normal, "nothing was taken");
    store.sql("UPDATE task SET ends = 1");
    claimed(claim(&store, call(6), None));
    assert_eq!(synchronous(), full, "a lease had ended");
}

/// Between the look whether there is anything and the claim, another process puts a task in.
#[test]
fn a_claim_that_takes_what_came_meanwhile_waits_for_the_disk_too() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    add(&store, 1, &["a"]);
    let claim = request(QueueVerb::Claim(Claim {
        call: call(2),
        max: 1,
        lease: LEASE,
        waiter: None,
        consumer: CONSUMER.into(),
    }));
    let attempt = |lasts| {
        store.inside(|connection| store.transaction(connection, lasts, std::iter::once((&claim, SECOND))))
    };
    let hasty = attempt(false);
    assert!(hasty.is_err());
    assert_eq!((stats(&store).ready, stats(&store).claimed), (1, 0));
    let lasting = attempt(true);
    assert!(lasting.is_ok());
    assert_eq!(stats(&store).claimed, 1);
}

#[test]
fn looking_does_not_wait_for_a_writer() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    add(&store, 1, &["a"]);
    let writer = Stranger::open(&scratch.file());
    writer.sql("BEGIN IMMEDIATE");
    assert_eq!(stats(&store).ready, 1);
    let failed = store.perform(&request(QueueVerb::Purge), soon() - SECOND * 20);
    assert_eq!(failed.unwrap_err().kind, FailureKind::Refused);
    writer.sql("ROLLBACK");
}

#[test]
fn a_new_task_wakes_a_consumer_of_another_client_in_this_process() {
    let (store, _) = memory();
    let hub = Hub::new(ClientId(10));
    let place = hub.enter();
    store.database.join(&hub).unwrap();
    claim(&store, call(1), Some(place.waiter()));
    assert!(!place.take_hint());
    add(&store, 2, &["a"]);
    assert!(place.take_hint());
}

#[test]
fn a_consumer_that_another_process_chose_is_hinted_once_and_soon() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    claim(&store, call(1), Some(Waiter { client: CLIENT, seq: 42 }));
    let mut hints = store.listen(soon()).unwrap().unwrap();
    let mut heard = Vec::new();
    hints.read(Duration::from_millis(5), &mut |seq| heard.push(seq)).unwrap();
    assert!(heard.is_empty());
    // As another process would choose it.
    Stranger::open(&scratch.file()).sql("UPDATE idle SET chosen = 1");
    let begun = Instant::now();
    while heard.is_empty() && begun.elapsed() < SECOND * 5 {
        hints.read(SECOND, &mut |seq| heard.push(seq)).unwrap();
    }
    hints.read(Duration::from_millis(5), &mut |seq| heard.push(seq)).unwrap();
    assert_eq!(heard, [42]);
}

#[test]
fn a_value_of_another_type_is_damage() {
    let (store, _) = memory();
    add(&store, 1, &["a"]);
    store.sql("UPDATE task SET state = 9");
    let failure = store.perform(&request(QueueVerb::Get(Get { id: id("a") })), soon()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Final(crate::base::error::ErrorKind::Corrupt));
}
