//! The scripts of read-write locks and semaphores on a key of another type, and with memory full: an error comes
//! before any write.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::Connection;
use stanchion::ErrorKind;
use stanchion::internals::{name_of_kind, token};
use stanchion::name::{LockKind, LockName};
use stanchion::protocol::{
    Acquire, BreakLease, ClientId, Downgrade, Extend, FailureKind, Fence, Holder, Leave, Permits, Release,
    Request, Resume, Upgrade, Waiter,
};
use stanchion_tests::wait::{SOON, eventually};

use crate::case::Bench;
use crate::memory_full;
use crate::state::{Content, State, nothing};

const LIMIT: u32 = 3;
const TTL: Duration = Duration::from_secs(60);
/// Of leases that have ended when the test looks.
const SHORT: Duration = Duration::from_millis(60);

fn name() -> LockName {
    name_of_kind(LockKind::Semaphore, "a").unwrap()
}

fn acquire(number: u128, weight: u32, ttl: Duration, waits: bool) -> Request {
    Request::Acquire(Acquire {
        name: name(),
        permits: Some(Permits { weight, limit: LIMIT }),
        token: token(number),
        ttl,
        min_fence: Fence::NONE,
        waiter: waits.then_some(Waiter { client: ClientId(7), seq: 1 }),
        patience: None,
        owner: "1 host label".into(),
        adopt: None,
        early: 0.0,
        looks: false,
    })
}

fn release(number: u128) -> Request {
    Request::Release(Release {
        name: name(),
        token: token(number),
        cooldown: None,
        acquire_resent: false,
        own_fence: None,
        foreign_share: false,
    })
}

/// Every verb, in the name of token 1.
fn requests() -> Vec<(&'static str, Request)> {
    let Request::Release(plain) = release(1) else { unreachable!() };
    let late = Release { acquire_resent: true, own_fence: Some(Fence::new(99)), ..plain };
    vec![
        ("try", acquire(1, 1, TTL, false)),
        ("acquire", acquire(1, LIMIT, TTL, true)),
        ("extend", Request::Extend(Extend::new(name(), token(1), 2 * TTL))),
        ("release", release(1)),
        ("late release", Request::Release(late)),
        ("leave", Request::Leave(Leave { name: name(), token: token(1), foreign_share: false })),
        (
            "resume",
            Request::Resume(Resume {
                name: name(),
                old: token(1),
                new: token(9),
                undo: false,
                owner: "2 h l".into(),
            }),
        ),
        (
            "downgrade",
            Request::Downgrade(Downgrade { name: name(), token: token(1), weight: 1, fence: None }),
        ),
        ("upgrade", Request::Upgrade(Upgrade { name: name(), token: token(1), limit: LIMIT })),
        ("holder", Request::Holder(Holder { name: name() })),
        ("break_lease", Request::BreakLease(BreakLease { name: name() })),
    ]
}

/// What happened before, in requests.
fn situations() -> Vec<(&'static str, Vec<Request>)> {
    let held = || acquire(1, 2, TTL, false);
    vec![
        ("free with a record", vec![acquire(2, 1, TTL, false), release(2)]),
        ("held", vec![held()]),
        ("held, another waits", vec![held(), acquire(2, LIMIT, TTL, true)]),
        ("held, others wait", vec![held(), acquire(2, LIMIT, TTL, true), acquire(3, 1, TTL, true)]),
        ("held beside one that has ended", vec![held(), acquire(2, 1, SHORT, false)]),
        ("offered", vec![acquire(2, LIMIT, TTL, false), acquire(1, 2, TTL, true), release(2)]),
        ("waited for", vec![acquire(2, LIMIT, TTL, false), acquire(1, 2, TTL, true)]),
        (
            "waited for behind one that has ended",
            vec![acquire(2, LIMIT, SHORT, false), acquire(3, 1, TTL, true), acquire(1, 2, TTL, true)],
        ),
    ]
}

fn play(bench: &mut Bench, story: Vec<Request>) {
    for request in story {
        bench.call(request).unwrap();
    }
    // All that is short has ended, also the keys that live as long as their last lease.
    let soon = 2 * i64::try_from(SHORT.as_millis()).unwrap();
    eventually(SOON, || {
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut bench.raw).unwrap();
        let left = |key| redis::cmd("PTTL").arg(key).query::<i64>(&mut bench.raw).unwrap();
        let lives = keys.iter().map(left).all(|left| left > soon || left == -1);
        let now = bench.time() / 1_000;
        let ends: Vec<(String, i64)> = redis::cmd("ZRANGE")
            .arg(holders())
            .arg(0)
            .arg(-1)
            .arg("WITHSCORES")
            .query(&mut bench.raw)
            .unwrap();
        let now = i64::try_from(now).unwrap();
        lives && ends.iter().all(|(_, end)| *end < now || *end > now + soon)
    });
}

fn holders() -> String {
    format!("stanchion:semaphore:{{{}}}", name().key())
}

/// What is there, without the time that is left of it.
fn contents(state: State) -> BTreeMap<String, Content> {
    state.0.into_iter().map(|(key, (content, _))| (key, content)).collect()
}

fn set_memory(bench: &mut Bench, bytes: &str) {
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec(&mut bench.raw).unwrap();
}

fn spoil(raw: &mut Connection, key: &str) {
    redis::cmd("DEL").arg(key).exec(raw).unwrap();
    redis::cmd("RPUSH").arg(key).arg("x").exec(raw).unwrap();
}

#[test]
fn a_key_of_another_type_is_told_before_anything_is_written() {
    let mut told = BTreeMap::<&str, usize>::new();
    for sidecar in ["", "-records", "-meta", "-line", "-waiters"] {
        let key = holders().replacen("semaphore", &format!("semaphore{sidecar}"), 1);
        for (situation, story) in situations() {
            for (verb, request) in requests() {
                let what = format!("{key} is a list; {situation}; {verb}");
                let mut bench = Bench::new();
                play(&mut bench, story.clone());
                spoil(&mut bench.raw, &key);
                let before = contents(bench.state());
                let result = bench.call(request);
                let after = contents(bench.state());
                match result {
                    Err(failure) => {
                        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::WrongType), "{what}");
                        assert_eq!(before, after, "{what}");
                        *told.entry(sidecar).or_default() += 1;
                    }
                    // It did not need the key.
                    Ok(_) => assert_eq!(after.get(&key), Some(&Content::List), "{what}"),
                }
            }
        }
    }
    assert!(told.len() == 5 && told.values().all(|count| *count >= 8), "{told:?}");
}

#[test]
fn with_memory_full_what_takes_some_fails_whole_and_what_gives_some_back_works() {
    let server = memory_full::server();
    // Teaches it the scripts, too: that would take memory.
    memory_full::bench(&server, &nothing());
    let mut refused = Vec::new();
    for (situation, story) in situations() {
        for (verb, request) in requests() {
            let what = format!("{situation}; {verb}");
            let mut bench = Bench::at(&server.url());
            set_memory(&mut bench, "0");
            redis::cmd("FLUSHALL").exec(&mut bench.raw).unwrap();
            play(&mut bench, story.clone());
            set_memory(&mut bench, "1");
            let before = contents(bench.state());
            match bench.call(request) {
                Ok(_) => {}
                Err(failure) => {
                    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable), "{what}");
                    assert!(failure.message.contains("memory"), "{what}: {}", failure.message);
                    assert_eq!(before, contents(bench.state()), "{what}");
                    assert!(
                        ["try", "acquire", "resume", "downgrade", "upgrade"].contains(&verb),
                        "{what} takes no memory"
                    );
                    refused.push(what);
                }
            }
        }
    }
    for verb in ["try", "acquire", "resume", "downgrade", "upgrade"] {
        assert!(refused.iter().any(|what| what.ends_with(verb)), "{verb} was never refused: {refused:?}");
    }
}
