//! URLs and options.

use std::time::Duration;

use fastrand::Rng;
use stanchion::store::url::StoreUrl;
use stanchion::{ClaimOptions, Client, ErrorKind, LockOptions, OnDuplicate, QueueConfig, Task, blocking};

use super::Budget;

/// How many URLs and options a short run has.
const MANY: usize = 20_000;
/// In every URL that has a password.
const SECRET: &str = "c4n4ry-pa55w0rd";

const PIECES: &[&str] = &[
    "redis",
    "rediss",
    "valkey",
    "redis+unix",
    "unix",
    "sqlite",
    "memory",
    "redis-cluster",
    "http",
    ":",
    "://",
    "//",
    "/",
    "///",
    "@",
    "?",
    "&",
    "=",
    "#",
    "%",
    "%00",
    "%ff",
    "%zz",
    "[::1]",
    "[",
    "]",
    "localhost",
    "127.0.0.1",
    "ä",
    "☃",
    "\0",
    "\n",
    " ",
    "..",
    "6379",
    "99999",
    "-1",
    "0",
    "db",
    "user",
    "pass",
    "mode",
    "660",
    "9",
    "timeout",
    "1e400",
    "nan",
    "foreign_share",
    "clock_margin",
    "true",
    "2",
    "lock_prefix",
    "queue_prefix",
    "label",
    "tls_ca",
    "tls_cert",
    "nope",
    "{",
    "}",
];

const SCHEMES: &[&str] =
    &["redis://", "rediss://", "redis+unix:///", "sqlite:", "memory:", "unix:", "redis-sentinel://"];

fn url(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.u8(..4) > 0 {
        text += SCHEMES[rng.usize(..SCHEMES.len())];
    }
    if rng.bool() {
        text += "user:";
        text += SECRET;
        // What makes a parser think that the password ends here.
        text += ["", "?", "#", "/", "%", "?pa55w0rd=", "\\", "?a=b"][rng.usize(..8)];
        text += "@localhost";
    }
    for _ in 0..rng.usize(..12) {
        text += PIECES[rng.usize(..PIECES.len())];
    }
    text
}

#[test]
fn urls_that_nobody_wrote() {
    let mut budget = Budget::new(1);
    let (mut parsed, mut refused) = (0, 0);
    while budget.goes_on(MANY) {
        let text = url(&mut budget.rng);
        match StoreUrl::parse(&text) {
            Ok(_) => parsed += 1,
            Err(error) => {
                refused += 1;
                let typed = [ErrorKind::InvalidArgument, ErrorKind::Unsupported];
                assert!(typed.contains(&error.kind()), "{text:?}: {error:?}");
                let told = format!("{error} {error:?}");
                assert!(!told.contains("c4n4ry") && !told.contains("pa55w0rd"), "{text:?}: {told}");
                assert!(told.len() < 1_000, "{text:?}: {told}");
            }
        }
    }
    println!("{parsed} URLs were read, {refused} refused");
    assert!(parsed > MANY / 20 && refused > MANY / 20, "the generator makes both: {parsed}, {refused}");
}

fn time(rng: &mut Rng) -> Duration {
    match rng.u8(..24) {
        0 => Duration::ZERO,
        1 => Duration::MAX,
        2 => Duration::from_millis(rng.u64(..100)),
        3 => Duration::from_secs(rng.u64(..)),
        4 => Duration::from_nanos(rng.u64(..)),
        5 => Duration::from_secs(365 * 24 * 3600) + Duration::from_nanos(rng.u64(..2)),
        _ => Duration::from_millis(50 + rng.u64(..100_000)),
    }
}

fn number(rng: &mut Rng) -> u64 {
    if rng.u8(..6) > 0 { rng.u64(1..1_000) } else { rng.u64(..) }
}

fn text(rng: &mut Rng) -> String {
    if rng.u8(..4) > 0 {
        return format!("name {}", rng.u8(..20));
    }
    let length = [0, 1, 5, 256, 257, 512, 513, 70_000][rng.usize(..8)];
    let letters = ['a', '{', '}', '\0', '\n', '☃', ':', 'x'];
    let plain = rng.bool();
    (0..length).map(|_| if plain { 'x' } else { letters[rng.usize(..letters.len())] }).collect()
}

/// One call with options that nobody wrote; never one that waits.
fn call(rng: &mut Rng, client: &blocking::Client) -> Result<(), stanchion::Error> {
    let queue = client.queue("q");
    match rng.u8(..5) {
        0 => {
            let options =
                LockOptions::new().ttl(time(rng)).renew(rng.bool()).max_hold(time(rng)).wait(time(rng));
            let options = options.adopt_unexpiring(time(rng)).fail_fast(rng.bool()).label(text(rng));
            client.lock(&text(rng)).try_acquire(options).map(drop)
        }
        1 => {
            let options = ClaimOptions::new().max(number(rng) as usize).lease(time(rng)).renew(rng.bool());
            queue.claim(options.max_run(time(rng)).wait(Duration::ZERO)).map(drop)
        }
        2 => {
            let policies =
                [OnDuplicate::Debounce { max_wait: time(rng) }, OnDuplicate::Throttle { window: time(rng) }];
            let task = Task::new(text(rng)).delay(time(rng)).expires(time(rng)).priority(rng.u8(..));
            let task = task.max_attempts(number(rng) as u32).on_duplicate(policies[rng.usize(..2)]);
            queue.enqueue(task.header(text(rng), text(rng))).map(drop)
        }
        3 => {
            let settings = QueueConfig::new().max_len(Some(number(rng))).dead_max(number(rng));
            client.queue(&text(rng)).configure(settings.dead_age(time(rng)).dead_bytes(number(rng)))
        }
        _ => {
            let builder =
                Client::builder("memory:").lock_prefix(text(rng)).queue_prefix(text(rng)).label(text(rng));
            builder.timeout(time(rng)).open_blocking().map(drop)
        }
    }
}

#[test]
fn options_that_nobody_wrote() {
    let mut budget = Budget::new(2);
    let client = blocking::Client::open("memory:").unwrap();
    let (mut accepted, mut refused) = (0, 0);
    while budget.goes_on(MANY / 4) {
        match call(&mut budget.rng, &client) {
            Ok(()) => accepted += 1,
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                assert!(error.to_string().len() < 1_000, "{error}");
            }
        }
    }
    println!("{accepted} calls were accepted, {refused} refused");
    assert!(accepted > 100 && refused > 100, "the generator makes both: {accepted}, {refused}");
}
