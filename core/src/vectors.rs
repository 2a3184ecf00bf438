//! Checks this library against tests/vectors, with which every package is compared.

use std::time::Duration;

use serde_json::Value;

use crate::ErrorKind;
use crate::api::worker::WorkerSettings;
use crate::base::envelope::{self, Headers};
use crate::base::name::{LockKind, LockName, Prefixes, QueueName};
use crate::base::token::{COOLDOWN_MARKER, Token};
use crate::engine::Jitter;
use crate::engine::task_backoff::{Backoff, backoff};
use crate::lease::lease_handle::LeaseHandle;
use crate::queue::queue_options::ClaimOptions;
use crate::queue::task_settings::DEFAULT_KEEP_RESULT;
use crate::session::options::{self, LockOptions, Settings};
use crate::store::redis::keys::{LockKey, each_queue_key};

macro_rules! vectors {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../../tests/vectors/", $name, ".json"))).unwrap()
    };
}

fn rows(vectors: &Value, name: &str) -> Vec<Value> {
    vectors[name].as_array().unwrap().clone()
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap()
}

fn prefixes(row: &Value) -> Prefixes {
    let prefix = |name: &str, default| row[name].as_str().unwrap_or(default).to_owned();
    let lock = prefix("lock_prefix", options::DEFAULT_LOCK_PREFIX);
    Prefixes::parse(&lock, &prefix("queue_prefix", options::DEFAULT_QUEUE_PREFIX)).unwrap()
}

fn lock(row: &Value) -> Result<LockName, crate::Error> {
    prefixes(row).lock_name(text(row, "lock"))
}

fn queue(row: &Value) -> Result<QueueName, crate::Error> {
    prefixes(row).queue_name(text(row, "queue"))
}

#[test]
fn keys_of_names() {
    let vectors = vectors!("keys");
    for row in rows(&vectors, "names") {
        let expected = texts(&row["keys"]);
        if row.get("lock").is_some() {
            let name = lock(&row).unwrap();
            let keys = [LockKey::Lock, LockKey::Meta, LockKey::Line, LockKey::Waiters];
            assert_eq!(keys.map(|key| key.of(&name, None)), *expected);
            let ended = LockKey::Ended.of(&name, Some(&Token::from_bits(1)));
            assert!(ended.starts_with(text(&row, "ended")));
        } else {
            let mut keys = Vec::new();
            each_queue_key(&queue(&row).unwrap(), |key| keys.push(key.to_owned()));
            assert_eq!(keys, expected);
        }
    }
    for row in rows(&vectors, "refused") {
        let refused = if row.get("lock").is_some() { lock(&row).err() } else { queue(&row).err() };
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::InvalidArgument), "{row}");
    }
}

#[test]
fn bodies() {
    let vectors = vectors!("encodings");
    for row in rows(&vectors, "bodies") {
        let headers: Headers = serde_json::from_value(row["headers"].clone()).unwrap();
        let (payload, body) = (bytes(&row["payload"]), bytes(&row["body"]));
        assert_eq!(*envelope::encode(&payload, &headers).unwrap(), *body, "{row}");
        let (start, read) = envelope::decode(&body);
        assert_eq!((&body[start..], read), (&*payload, headers), "{row}");
    }
    for row in rows(&vectors, "strange bodies") {
        let body = bytes(&row["body"]);
        let (start, headers) = envelope::decode(&body);
        assert_eq!((&body[start..], headers), (&*bytes(&row["payload"]), Headers::new()), "{row}");
    }
}

#[test]
fn tokens_and_handles() {
    let vectors = vectors!("encodings");
    for row in rows(&vectors, "tokens") {
        assert_eq!(Token::from_bits(text(&row, "bits").parse().unwrap()).as_str(), text(&row, "token"));
    }
    let no_tokens = texts(&vectors["no tokens"]);
    assert!(no_tokens.contains(&COOLDOWN_MARKER));
    assert!(no_tokens.iter().all(|text| Token::parse(text).is_none()));
    let usual = Prefixes::parse(options::DEFAULT_LOCK_PREFIX, options::DEFAULT_QUEUE_PREFIX).unwrap();
    for row in rows(&vectors, "handles") {
        let name = usual.lock_of_key(LockKind::Exclusive, text(&row, "key")).unwrap();
        let token = Token::parse(text(&row, "token")).unwrap();
        let ttl = Duration::from_millis(row["ttl_ms"].as_u64().unwrap());
        let max_hold = row["max_hold_ms"].as_u64().map(Duration::from_millis);
        let handle = LeaseHandle::new(&name, token, ttl, max_hold);
        assert_eq!(handle.to_text(), text(&row, "text"));
        assert!(text(&row, "text").parse::<LeaseHandle>().unwrap() == handle, "{row}");
    }
    for told in texts(&vectors["no handles"]) {
        let refused = told.parse::<LeaseHandle>().and_then(|handle| handle.name(&usual)).err();
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::InvalidArgument), "{told}");
    }
}

#[test]
fn pauses_before_a_retry() {
    let mut jitter = Jitter::seeded(1);
    for row in rows(&vectors!("backoff"), "pauses") {
        let [attempt, least, most] = [0, 1, 2].map(|at| row[at].as_u64().unwrap());
        let mut found: Vec<_> =
            (0..500).map(|_| millis(backoff(attempt.try_into().unwrap(), &mut jitter))).collect();
        found.sort_unstable();
        assert!(found[0] >= least && found[499] <= most, "attempt {attempt}: {} to {}", found[0], found[499]);
        assert!(
            found[0] < least + most / 20 && found[499] > most - most / 20,
            "attempt {attempt}: all of the range"
        );
    }
}

#[test]
fn defaults() {
    let told = vectors!("defaults");
    let settings = Settings::new(None, false, "").unwrap();
    assert_eq!(told["client"]["timeout_ms"], millis(settings.timeout));
    assert_eq!(told["client"]["lock_prefix"], options::DEFAULT_LOCK_PREFIX);
    assert_eq!(told["client"]["queue_prefix"], options::DEFAULT_QUEUE_PREFIX);
    let plan = LockOptions::new().plan(prefixes(&told).lock_name("a").unwrap(), &settings).unwrap();
    let lock = &told["lock"];
    assert_eq!([&lock["ttl_ms"], &lock["wait_ms"]], [millis(plan.ttl), millis(plan.wait)]);
    assert_eq!((&lock["renew"], &lock["max_hold_ms"]), (&true.into(), &plan.max_hold.map(millis).into()));
    assert_eq!(lock["fail_fast"], plan.fail_fast);
    assert_eq!(lock["adopt_unexpiring_ms"], Value::from(plan.adopt_after.map(millis)));
    let (plan, claim) = (ClaimOptions::new().plan().unwrap(), &told["claim"]);
    assert_eq!([&claim["lease_ms"], &claim["wait_ms"]], [millis(plan.lease), millis(plan.wait)]);
    assert_eq!((&claim["max"], &claim["max_run_ms"]), (&plan.max.into(), &plan.max_run.map(millis).into()));
    let (worker, settings) = (&told["worker"], WorkerSettings::default());
    assert_eq!(worker["concurrency"], settings.concurrency);
    assert_eq!(
        [&worker["lease_ms"], &worker["max_run_ms"], &worker["grace_ms"]],
        [millis(settings.lease), millis(settings.max_run), millis(settings.grace)]
    );
    assert_eq!([&claim["timeout_ms"], &worker["timeout_ms"]], [&Value::Null; 2]);
    assert_eq!((plan.timeout, settings.timeout), (None, None));
    assert_eq!(told["task"]["max_attempts"], crate::DEFAULT_MAX_ATTEMPTS);
    assert_eq!(told["task"]["keep_result_ms"], millis(DEFAULT_KEEP_RESULT));
    let exponential: Value =
        serde_json::from_str(&Backoff::exponential(Duration::from_secs(1)).to_string()).unwrap();
    let pauses = &told["backoff"];
    assert_eq!(exponential["max"], pauses["max_ms"]);
    let floats = |of: &Value| [&of["factor"], &of["jitter"]].map(|number| number.as_f64().unwrap());
    assert_eq!(floats(&exponential), floats(pauses));
    let (told, kept) = (&told["settings"], crate::QueueSettings::default());
    assert_eq!(told["max_len"], Value::from(kept.max_len));
    assert_eq!([&told["dead_max"], &told["dead_bytes"]], [kept.dead_max, kept.dead_bytes]);
    assert_eq!((&told["dead_age_ms"], &told["intake"]), (&millis(kept.dead_age).into(), &kept.intake.into()));
}
