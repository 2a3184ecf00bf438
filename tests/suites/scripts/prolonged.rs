//! Whatever prolongs a lease, or a place in line, prolongs all that belongs to it: a record that ends before its lease
//! takes the fence, the owner and the weight with it.

use std::time::Duration;

use stanchion::internals::{name_of_kind, token};
use stanchion::name::LockKind;
use stanchion::protocol::{Acquire, Extend, Permits, Pop, QueueVerb, Request, Resume};

use crate::case::{Bench, acquire, wait};
use crate::queue_case::{Tweak, claim_or_wait, enqueue_as, plain, request};
use crate::queue_state::real_key;

const KINDS: [LockKind; 4] =
    [LockKind::Exclusive, LockKind::Cached, LockKind::ReadWrite, LockKind::Semaphore];
/// What each key has left before the call.
const LEFT: i64 = 9_000;
/// What the call asks for. A test may stand still for as long as the difference to what it finds.
const ASKED: Duration = Duration::from_secs(50);
const FOUND: i64 = 40_000;

/// Plays `story`, cuts the life of every key short, and answers which of them live no longer after `call`.
fn left_behind(story: Vec<Request>, call: Request) -> Vec<String> {
    let mut bench = Bench::new();
    for request in story {
        bench.call(request).unwrap();
    }
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut bench.raw).unwrap();
    for key in &keys {
        redis::cmd("PEXPIRE").arg(key).arg(LEFT).exec(&mut bench.raw).unwrap();
    }
    bench.call(call).unwrap();
    let mut left = |key: &String| redis::cmd("PTTL").arg(key).query::<i64>(&mut bench.raw).unwrap();
    keys.into_iter().filter(|key| left(key) < FOUND).collect()
}

fn of_kind(kind: LockKind, request: Acquire) -> Acquire {
    let permits =
        matches!(kind, LockKind::ReadWrite | LockKind::Semaphore).then_some(Permits { weight: 1, limit: 1 });
    Acquire { name: name_of_kind(kind, "a").unwrap(), permits, ..request }
}

#[test]
fn an_extension_prolongs_all_that_the_lease_needs() {
    for kind in KINDS {
        let held = Request::Acquire(of_kind(kind, acquire(1)));
        let name = name_of_kind(kind, "a").unwrap();
        let extend = Request::Extend(Extend::new(name, token(1), ASKED));
        assert_eq!(left_behind(vec![held], extend), Vec::<String>::new(), "{kind:?}");
    }
}

/// A copy of the acquire, which finds the lease and makes it last.
#[test]
fn so_does_an_acquire_that_is_repeated() {
    for kind in KINDS {
        let held = || of_kind(kind, acquire(1));
        let again = Request::Acquire(Acquire { ttl: ASKED, ..held() });
        let mut left = left_behind(vec![Request::Acquire(held())], again);
        // The record's life is long, and renewed once a minute.
        left.retain(|key| !key.contains("meta"));
        assert_eq!(left, Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn a_resumed_lease_has_a_record() {
    let held = Request::Acquire(acquire(1));
    let name = name_of_kind(LockKind::Exclusive, "a").unwrap();
    let resume = Resume { name, old: token(1), new: token(2), undo: false, owner: "me".into() };
    let left = left_behind(vec![held], Request::Resume(resume));
    assert_eq!(left, ["Lock:a"], "the lease itself is not prolonged");
}

#[test]
fn a_poll_prolongs_the_line_and_its_entries() {
    for kind in KINDS {
        let held = Request::Acquire(Acquire { ttl: ASKED, ..of_kind(kind, acquire(1)) });
        let waits = || Request::Acquire(of_kind(kind, wait(2, 5)));
        let mut left = left_behind(vec![held, waits()], waits());
        left.retain(|key| key.contains("line") || key.contains("waiters"));
        assert_eq!(left, Vec::<String>::new(), "{kind:?}");
    }
}

/// Cuts the life of a queue's key short, makes the call, and answers how long the key lives then.
fn lives_after(bench: &mut Bench, kind: &str, call: QueueVerb) -> i64 {
    let key = real_key(&format!("q:{kind}"), 0);
    redis::cmd("PEXPIRE").arg(&key).arg(LEFT).exec(&mut bench.raw).unwrap();
    bench.call(request(call)).unwrap();
    redis::cmd("PTTL").arg(&key).query(&mut bench.raw).unwrap()
}

fn poll(number: u64) -> QueueVerb {
    let mut verb = claim_or_wait(1, 5);
    let QueueVerb::Claim(claim) = &mut verb else { panic!("no claim") };
    claim.call.number = number;
    verb
}

#[test]
fn whatever_a_queue_keeps_lives_as_long_as_its_last() {
    let mut bench = Bench::new();
    bench.call(request(poll(1))).unwrap();
    let key = real_key("q:idle", 0);
    redis::cmd("PEXPIRE").arg(&key).arg(2_000).exec(&mut bench.raw).unwrap();
    bench.call(request(poll(2))).unwrap();
    let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut bench.raw).unwrap();
    assert!(left > 2_000, "who waits, {left}");

    bench.call(request(enqueue_as(3, [plain("a").throttle(9_000)]))).unwrap();
    let left = lives_after(&mut bench, "window", enqueue_as(4, [plain("b").throttle(60_000)]));
    assert!(left > FOUND, "windows, {left}");

    bench.call(request(QueueVerb::Pop(Pop { max: 9 }))).unwrap();
    for kind in ["dead", "grave"] {
        // Entries of the intake that no task may be made of: they die where no task lives.
        let score = 4_000_000_000_000_u64;
        redis::cmd("ZADD").arg(real_key("q:intake", 0)).arg(score).arg(kind).exec(&mut bench.raw).unwrap();
        if kind == "dead" {
            bench.call(request(QueueVerb::Pop(Pop { max: 1 }))).unwrap();
            redis::cmd("ZADD")
                .arg(real_key("q:intake", 0))
                .arg(score)
                .arg("too")
                .exec(&mut bench.raw)
                .unwrap();
        }
        let left = lives_after(&mut bench, kind, QueueVerb::Pop(Pop { max: 1 }));
        assert!(left > FOUND, "{kind}, {left}");
    }
}
