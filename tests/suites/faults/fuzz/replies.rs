//! Replies: to every verb, on both faces, in a process of its own whose memory is watched.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use stanchion_tests::faces::Face;
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::wait::{SOON, eventually, ran_since};
use stanchion_tests::{shared, unique, verbs};

use super::{Budget, ROUNDS};

/// How much the process may grow in all of a test. What is announced is far more.
const GROWTH_KIB: u64 = 96 * 1024;
/// How long a call may take whose every reply is nonsense: it is sent again after a second, and so is its farewell; each
/// may take its timeout.
const LONGEST: Duration = Duration::from_secs(5);
/// Until when a call hangs, however busy the machine is.
const ANSWER: Duration = Duration::from_secs(30);

/// A verb, the calls that come before it, and one that sends it.
type Row = (&'static str, &'static [&'static str], &'static str);

const LEASE: &[&str] = &[r#"{"op":"lock.acquire","lock":"NAME"}"#];
const READER: &[&str] = &[r#"{"op":"lock.acquire","lock":{"read":"NAME"}}"#];
const WRITER: &[&str] = &[r#"{"op":"lock.acquire","lock":{"write":"NAME"}}"#];
const TASK: &[&str] = &[r#"{"op":"queue.enqueue","queue":"NAME","id":"a"}"#];
const CLAIM: &[&str] =
    &[r#"{"op":"queue.enqueue","queue":"NAME","id":"a"}"#, r#"{"op":"queue.claim","queue":"NAME"}"#];

const SCHEDULE: &[&str] = &[r#"{"op":"queue.schedule","queue":"NAME","id":"a","when":"@daily"}"#];

const FLOW: &[&str] = &[r#"{"op":"queue.enqueue_flow","queue":"NAME","id":"f","nodes":[{"id":"a"}]}"#];
/// The claim of a node that comes after one with a result.
const NODE: &[&str] = &[
    r#"{"op":"queue.enqueue_flow","queue":"NAME","id":"f","nodes":[{"id":"a"},{"id":"b","after":["a"]}]}"#,
    r#"{"op":"queue.claim","queue":"NAME"}"#,
    r#"{"op":"claim.ack","result":{"$hex":"78"}}"#,
    r#"{"op":"queue.claim","queue":"NAME"}"#,
];

const CACHED: &str = r#"{"op":"client.cached","name":"NAME","ttl_ms":60000,"wait_ms":50,"value":1}"#;
/// Of a lease that nobody had: what is answered is nonsense anyhow.
const RESUME: &str = concat!(
    r#"{"op":"client.resume_lease","handle":"{\"stanchion\":1,\"key\":\"Lock:NAME\",\"ttl_ms\":30000,"#,
    r#"\"token\":\"9999999999999999000000000000000000000000000000000000007\"}"}"#
);
const RESUME_READER: &str = concat!(
    r#"{"op":"client.resume_lease","handle":"{\"stanchion\":2,\"kind\":\"rw_lock\",\"key\":\"Lock:NAME\","#,
    r#"\"ttl_ms\":30000,\"token\":\"9999999999999999000000000000000000000000000000000000007\"}"}"#
);

const ROWS: &[Row] = &[
    ("acquire", &[], r#"{"op":"lock.acquire","lock":"NAME","wait_ms":50}"#),
    ("acquire_all", &[], r#"{"op":"lock.acquire","lock":{"several":["NAME","NAME-b"]},"wait_ms":50}"#),
    ("extend", LEASE, r#"{"op":"lease.extend","ttl_ms":60000}"#),
    ("release", LEASE, r#"{"op":"lease.release"}"#),
    ("leave", LEASE, r#"{"op":"lock.acquire","lock":"NAME","wait_ms":300}"#),
    ("resume", &[], RESUME),
    ("holder", LEASE, r#"{"op":"lock.holder","lock":"NAME"}"#),
    ("waiters", LEASE, r#"{"op":"lock.waiters","lock":"NAME"}"#),
    ("break_lease", LEASE, r#"{"op":"lock.break_lease","lock":"NAME"}"#),
    ("permits_acquire", &[], r#"{"op":"lock.acquire","lock":{"read":"NAME"},"wait_ms":50}"#),
    ("permits_extend", READER, r#"{"op":"lease.extend","ttl_ms":60000}"#),
    ("permits_release", READER, r#"{"op":"lease.release"}"#),
    ("permits_leave", WRITER, r#"{"op":"lock.acquire","lock":{"read":"NAME"},"wait_ms":300}"#),
    ("permits_resume", &[], RESUME_READER),
    ("permits_downgrade", WRITER, r#"{"op":"lease.downgrade"}"#),
    ("permits_upgrade", READER, r#"{"op":"lease.upgrade"}"#),
    ("permits_holder", READER, r#"{"op":"lock.holder","lock":{"read":"NAME"}}"#),
    ("permits_waiters", READER, r#"{"op":"lock.waiters","lock":{"read":"NAME"}}"#),
    ("permits_break_lease", READER, r#"{"op":"lock.break_lease","lock":{"read":"NAME"}}"#),
    ("cached_acquire", &[], CACHED),
    ("store_value", &[], CACHED),
    ("invalidate", &[], r#"{"op":"client.invalidate","name":"NAME"}"#),
    (
        "gcra_take",
        &[],
        r#"{"op":"limiter.take","limiter":"NAME","kind":"gcra","n":1,"per_ms":60000,"count":1,"wait_ms":50}"#,
    ),
    (
        "gcra_give_back",
        &[r#"{"op":"limiter.try_take","limiter":"NAME","kind":"gcra","n":1,"per_ms":60000,"count":1}"#],
        r#"{"op":"limiter.take","limiter":"NAME","kind":"gcra","n":1,"per_ms":60000,"count":1,"wait_ms":90000,"cancel":true}"#,
    ),
    (
        "fixed_take",
        &[],
        r#"{"op":"limiter.take","limiter":"NAME","kind":"fixed-window","n":1,"per_ms":60000,"count":1,"wait_ms":50}"#,
    ),
    (
        "fixed_give_back",
        &[
            r#"{"op":"limiter.try_take","limiter":"NAME","kind":"fixed-window","n":1,"per_ms":60000,"count":1}"#,
        ],
        r#"{"op":"limiter.take","limiter":"NAME","kind":"fixed-window","n":1,"per_ms":60000,"count":1,"wait_ms":90000,"cancel":true}"#,
    ),
    (
        "sliding_take",
        &[],
        r#"{"op":"limiter.take","limiter":"NAME","kind":"sliding-window","n":1,"per_ms":60000,"count":1,"wait_ms":50}"#,
    ),
    (
        "sliding_give_back",
        &[
            r#"{"op":"limiter.try_take","limiter":"NAME","kind":"sliding-window","n":1,"per_ms":60000,"count":1}"#,
        ],
        r#"{"op":"limiter.take","limiter":"NAME","kind":"sliding-window","n":1,"per_ms":60000,"count":1,"wait_ms":90000,"cancel":true}"#,
    ),
    ("enqueue", &[], r#"{"op":"queue.enqueue","queue":"NAME","id":"a"}"#),
    ("claim", TASK, r#"{"op":"queue.claim","queue":"NAME","wait_ms":50}"#),
    ("settle", CLAIM, r#"{"op":"claim.ack"}"#),
    (
        "settle_and_claim",
        CLAIM,
        r#"{"op":"queue.settle_and_claim","queue":"NAME","verdicts":[{"verdict":"ack"}]}"#,
    ),
    ("extend_claim", CLAIM, r#"{"op":"claim.extend","lease_ms":60000}"#),
    ("abandon", &[], r#"{"op":"queue.claim","queue":"NAME","wait_ms":300}"#),
    ("pop", TASK, r#"{"op":"queue.pop","queue":"NAME"}"#),
    ("peek", TASK, r#"{"op":"queue.peek","queue":"NAME"}"#),
    ("get", TASK, r#"{"op":"queue.get","queue":"NAME","id":"a"}"#),
    ("list", TASK, r#"{"op":"queue.list","queue":"NAME","state":"ready"}"#),
    ("result", TASK, r#"{"op":"queue.result","queue":"NAME","id":"a"}"#),
    (
        "events",
        &[r#"{"op":"queue.configure","queue":"NAME","events":9}"#],
        r#"{"op":"queue.events","queue":"NAME"}"#,
    ),
    ("limit_key", TASK, r#"{"op":"queue.limit_key","queue":"NAME","key":"k","concurrency":2}"#),
    ("list_keys", TASK, r#"{"op":"queue.list_keys","queue":"NAME","max":9}"#),
    ("cancel", TASK, r#"{"op":"queue.cancel","queue":"NAME","id":"a"}"#),
    ("remove", TASK, r#"{"op":"queue.remove","queue":"NAME","id":"a"}"#),
    ("reschedule", TASK, r#"{"op":"queue.reschedule","queue":"NAME","id":"a","due_ms":1000}"#),
    ("stats", TASK, r#"{"op":"queue.stats","queue":"NAME"}"#),
    ("consumers", TASK, r#"{"op":"queue.consumers","queue":"NAME"}"#),
    ("pause", TASK, r#"{"op":"queue.pause","queue":"NAME"}"#),
    ("kick", TASK, r#"{"op":"queue.kick","queue":"NAME","count":1}"#),
    ("remove_dead", TASK, r#"{"op":"queue.remove_dead","queue":"NAME","count":1}"#),
    ("purge", TASK, r#"{"op":"queue.purge","queue":"NAME"}"#),
    ("configure", &[], r#"{"op":"queue.configure","queue":"NAME","max_len":7}"#),
    ("put_schedules", &[], r#"{"op":"queue.schedule","queue":"NAME","id":"a","when":"@daily"}"#),
    ("list_schedules", SCHEDULE, r#"{"op":"queue.list_schedules","queue":"NAME"}"#),
    ("fire", SCHEDULE, r#"{"op":"queue.run_schedule","queue":"NAME","id":"a"}"#),
    ("pause_schedule", SCHEDULE, r#"{"op":"queue.pause_schedule","queue":"NAME","id":"a"}"#),
    ("remove_schedule", SCHEDULE, r#"{"op":"queue.remove_schedule","queue":"NAME","id":"a"}"#),
    ("put_flow", &[], FLOW[0]),
    ("read_outbox", &[], FLOW[0]),
    ("step_flows", &[], FLOW[0]),
    ("get_flow", FLOW, r#"{"op":"queue.get_flow","queue":"NAME","id":"f"}"#),
    ("list_flows", FLOW, r#"{"op":"queue.list_flows","queue":"NAME"}"#),
    ("post_messages", FLOW, r#"{"op":"queue.cancel_flow","queue":"NAME","id":"f"}"#),
    ("read_nodes", NODE, r#"{"op":"claim.inputs"}"#),
    ("SCAN", LEASE, r#"{"op":"client.locks"}"#),
];

on_both_faces! {
    fn replies_that_nobody_wrote(face) {
        let player = Player::start(face);
        // The scripts, the threads: what is there at any rate.
        player.ask("first", &json!({ "op": "client.open", "url": shared().url() }));
        let before = player.peak_kib();
        let counts: Vec<(&str, usize)> = thread::scope(|scope| {
            let playing: Vec<_> = ROWS.iter().enumerate().map(|(number, row)| {
                let player = &player;
                scope.spawn(move || (row.0, play(player, row, number as u64)))
            }).collect();
            playing.into_iter().map(|one| one.join().unwrap()).collect()
        });
        println!("answers to nonsense: {counts:?}");
        assert!(player.peak_kib() - before < GROWTH_KIB, "it grew by {} KiB", player.peak_kib() - before);
        assert_eq!(player.end(), "", "it said something, such as of a panic");
    }
}

#[test]
fn every_verb_has_a_row() {
    // Nobody looks for lost nodes in a flow's first minute.
    let rows = ROWS.iter().map(|row| row.0).filter(|verb| *verb != "SCAN").chain(["lost_nodes"]);
    verbs::assert_listed(verbs::all(), rows);
}

/// Gives nonsense to one verb, again and again; how often.
fn play(player: &Player, (verb, setup, call): &Row, salt: u64) -> usize {
    let mut budget = Budget::new(100 + salt);
    let proxy = Proxy::start(shared());
    let (mut rounds, mut by_setups) = (0, 0);
    while budget.goes_on(ROUNDS) {
        let name = unique("fuzz");
        let told = |text: &str| serde_json::from_str::<Value>(&text.replace("NAME", &name)).unwrap();
        // The proxy keeps what it has of connections until it is told to cut them.
        proxy.behave();
        player.ask(verb, &json!({ "op": "client.close" }));
        proxy.cut();
        let open = json!({ "op": "client.open", "url": format!("{}?timeout=0.2", proxy.url()) });
        let requests: Vec<_> = std::iter::once(open).chain(setup.iter().map(|text| told(text))).collect();
        // A busy machine may take longer than the timeout.
        let is_set = || requests.iter().all(|request| player.ask(verb, request).get("ok").is_some());
        let before = proxy.count(verb);
        eventually(SOON, is_set);
        by_setups += proxy.count(verb) - before;
        let nonsense = reply(&mut budget.rng);
        proxy.fault(verb, usize::MAX, Fault::Rewrite(nonsense.clone()));
        let begun = Instant::now();
        let answer = player.ask(verb, &told(call));
        assert!(ran_since(begun) < LONGEST, "{verb} took {:?}", begun.elapsed());
        // Typed, or what looked like an answer; "cannot" if the claim of the setup was lost before.
        let kind = answer["error"]["kind"].as_str();
        assert!(
            answer.get("error").is_none() || kind.is_some_and(|kind| !kind.contains(' ')),
            "{verb}: {answer} to {}",
            String::from_utf8_lossy(&nonsense)
        );
        rounds += 1;
    }
    proxy.behave();
    // What is given up is given back behind the caller's back, before the client is closed.
    player.ask(verb, &json!({ "op": "client.close" }));
    assert!(proxy.count(verb) > by_setups, "{call} does not send {verb}");
    rounds
}

/// One reply, or a piece of one, or several.
fn reply(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + rng.usize(..2) {
        frame(rng, &mut bytes, 4);
    }
    match rng.u8(..8) {
        0 => bytes.truncate(rng.usize(..=bytes.len())),
        1 => (0..rng.usize(..4)).for_each(|_| {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }),
        _ => {}
    }
    bytes
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "64",
    "65",
    "66",
    "67",
    "-1",
    "10",
    "50",
    "999",
    "30000",
    "1784000000000",
    "1784000000000000",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
];
const TEXTS: &[&[u8]] = &[
    b"",
    b"a",
    b"OK",
    b"9999999999999999000000000000000000000000000000000000007",
    b"\x93\x01\x02\x03",
    b"\xdd\xff\xff\xff\xff",
    b"\x9f\x9f\x9f",
    b"1.5",
    b"nan",
    b"-1",
    b"18446744073709551616",
    b"\xff\xfe",
    b"1 h label",
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
];
const ERRORS: &[&str] =
    &["ERR x", "NOSCRIPT x", "READONLY x", "LOADING x", "OOM x", "WRONGTYPE x", "BUSY x", "MOVED 1 h:1", ""];

fn frame(rng: &mut Rng, into: &mut Vec<u8>, depth: u32) {
    let number = |rng: &mut Rng| NUMBERS[rng.usize(..NUMBERS.len())];
    match rng.u8(..if depth == 0 { 8 } else { 14 }) {
        0..=3 => into.extend_from_slice(format!(":{}\r\n", number(rng)).as_bytes()),
        4 | 5 => {
            let text = TEXTS[rng.usize(..TEXTS.len())];
            into.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            into.extend_from_slice(text);
            into.extend_from_slice(b"\r\n");
        }
        6 => into.extend_from_slice(
            [&b"$-1\r\n"[..], b"_\r\n", b"#t\r\n", b",inf\r\n", b"(99\r\n"][rng.usize(..5)],
        ),
        7 => into.extend_from_slice(format!("-{}\r\n", ERRORS[rng.usize(..ERRORS.len())]).as_bytes()),
        8 => {
            let kind = ['$', '*', '~', '%', '>', '|', '!', '='][rng.usize(..8)];
            into.extend_from_slice(format!("{kind}{}\r\n", number(rng)).as_bytes());
        }
        _ => {
            let length = rng.usize(..9);
            into.extend_from_slice(format!("*{length}\r\n").as_bytes());
            (0..length).for_each(|_| frame(rng, into, depth - 1));
        }
    }
}

/// The player of the scenarios, in a process of its own.
struct Player {
    child: Mutex<Child>,
    stdin: Mutex<ChildStdin>,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
    last: Mutex<u64>,
    pid: u32,
}

impl Player {
    fn start(face: Face) -> Self {
        let word = if face == Face::Async { "async" } else { "blocking" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_player"));
        let command = command.arg(word).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let (stdout, answered) = (child.stdout.take().unwrap(), Arc::clone(&waiting));
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let answer: Value = serde_json::from_str(&line).unwrap();
                let call = answer["call"].as_u64().unwrap();
                if let Some(asked) = locked(&answered).remove(&call) {
                    let _ = asked.send(answer);
                }
            }
        });
        let (stdin, pid) = (child.stdin.take().unwrap(), child.id());
        Self { child: child.into(), stdin: stdin.into(), waiting, last: Mutex::default(), pid }
    }

    fn ask(&self, actor: &str, request: &Value) -> Value {
        let mut request = request.clone();
        let call = {
            let mut last = locked(&self.last);
            *last += 1;
            *last
        };
        request["call"] = call.into();
        request["actor"] = actor.into();
        let (send, answer) = channel();
        locked(&self.waiting).insert(call, send);
        writeln!(locked(&self.stdin), "{request}").unwrap();
        let begun = Instant::now();
        let answer = answer.recv_timeout(ANSWER);
        answer.unwrap_or_else(|_| panic!("no answer to {request} within {:?}", begun.elapsed()))
    }

    /// The most memory it has had resident so far.
    fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Ends it; what it has said besides its answers.
    fn end(self) -> String {
        drop(self.stdin);
        let mut child = self.child.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        said
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
