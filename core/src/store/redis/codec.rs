//! Requests to EVALSHA commands, and replies back.

use std::time::Duration;

use redis::{Cmd, Value};

use crate::base::error::ErrorKind;
use crate::base::name::{LockKind, LockName};
use crate::base::token::Token;
use crate::protocol::{
    Absence, Acquire, AcquireAll, AcquireAllReply, AcquireReply, BreakLease, Digest, Downgrade,
    DowngradeReply, Extend, ExtendReply, Failure, FailureKind, Fence, GiveBack, Granted, HeldAs, Holder,
    HolderReply, Invalidate, Leave, Obstacle, Release, ReleaseReply, Reply, Request, Resume, ResumeReply,
    StoreValue, StoreValueReply, Take, TakeReply, Upgrade, UpgradeReply, WaiterReply, Waiters,
};
use crate::store::redis::code::{Code, HELD_AS};
use crate::store::redis::keys::{Keys, LockKey, ended_take_key, limiter_key};
use crate::store::redis::script::{Scripts, Verb};

mod cached;
mod limiter;
mod permits;
mod queue;

/// Room that a command has from the start: growing in steps costs more than everything else in encoding.
/// One that needs more grows.
const MOST_ARGUMENTS: usize = 16;
const MOST_KEYS: usize = 6;
/// What a command has besides its script and the lock's name.
const ROOM_BESIDES: usize = 512;

/// The verb whose script performs a request.
fn verb(request: &Request) -> Verb {
    if let Some(verb) = permits::verb(request) {
        return verb;
    }
    match request {
        Request::Acquire(acquire) if acquire.name.kind() == LockKind::Cached => Verb::CachedAcquire,
        Request::Acquire(_) => Verb::Acquire,
        Request::AcquireAll(_) => Verb::AcquireAll,
        Request::Extend(_) => Verb::Extend,
        Request::Release(_) => Verb::Release,
        Request::Leave(_) => Verb::Leave,
        Request::Resume(_) => Verb::Resume,
        Request::Holder(_) => Verb::Holder,
        Request::Waiters(_) => Verb::Waiters,
        Request::Downgrade(_) => Verb::PermitsDowngrade,
        Request::Upgrade(_) => Verb::PermitsUpgrade,
        Request::BreakLease(_) => Verb::BreakLease,
        Request::StoreValue(_) => Verb::StoreValue,
        Request::Invalidate(_) => Verb::Invalidate,
        Request::Take(take) => limiter::take_verb(take.rule.kind),
        Request::GiveBack(give_back) => limiter::give_back_verb(give_back.rule.kind),
        Request::Queue(request) => queue::verb(&request.verb),
    }
}

/// The command that performs a request whose script the server knows.
pub(crate) fn encode(request: &Request, scripts: &Scripts) -> Cmd {
    let verb = verb(request);
    evaluation("EVALSHA", &scripts[verb].sha, verb, request)
}

/// The command that performs a request and teaches the server its script, in one step: a server that
/// forgets scripts again and again cannot come between.
pub(crate) fn encode_with_text(request: &Request, scripts: &Scripts) -> Cmd {
    let verb = verb(request);
    evaluation("EVAL", &scripts[verb].text, verb, request)
}

fn evaluation(command_name: &str, script: &str, verb: Verb, request: &Request) -> Cmd {
    let room = script.len() + MOST_KEYS * request.name().len() + ROOM_BESIDES;
    let mut command = Cmd::with_capacity(MOST_ARGUMENTS, room);
    command.arg(command_name).arg(script);
    encode_keys(&mut command, verb.keys(), request);
    encode_arguments(&mut command, request);
    command
}

/// How many keys, and the keys.
fn encode_keys(command: &mut Cmd, keys: Keys, request: &Request) {
    match (keys, request) {
        (_, Request::Queue(request)) => queue::encode_keys(command, request),
        (_, Request::Take(Take { name, rule, token: None, .. })) => {
            command.arg(1).arg(limiter_key(name, rule.kind));
        }
        (
            _,
            Request::Take(Take { name, rule, token: Some(token), .. })
            | Request::GiveBack(GiveBack { name, rule, token, .. }),
        ) => {
            command.arg(2).arg(limiter_key(name, rule.kind)).arg(ended_take_key(name, token));
        }
        (Keys::ManyLocks(keys), Request::AcquireAll(acquire)) => {
            command.arg(keys.len() * acquire.locks.len());
            let token = Some(&acquire.token);
            acquire.locks.iter().for_each(|(name, _)| push_keys(command, keys, name, token));
        }
        (Keys::OneLock(keys), request) => {
            let Some((name, token)) = named(request) else { return };
            // Each key and argument costs the server time.
            let is_given = |key: &&LockKey| **key != LockKey::Ended || token.is_some();
            let count = keys.iter().take_while(is_given).count();
            command.arg(count);
            push_keys(command, &keys[..count], name, token);
        }
        _ => {}
    }
}

fn push_keys(command: &mut Cmd, keys: &[LockKey], name: &LockName, token: Option<&Token>) {
    for key in keys {
        command.arg(&*key.of(name, token));
    }
}

/// The lock that a request is about, and the token of which the script has to know, or to note, that it has ended.
fn named(request: &Request) -> Option<(&LockName, Option<&Token>)> {
    Some(match request {
        Request::Acquire(Acquire { name, token, .. })
        | Request::Leave(Leave { name, token, .. })
        | Request::StoreValue(StoreValue { name, token, .. }) => (name, Some(token)),
        Request::Extend(Extend { name, token, again, granted, .. }) => {
            (name, Some(token).filter(|_| *again && granted.is_some()))
        }
        Request::Release(Release { name, token, acquire_resent, .. }) => {
            (name, Some(token).filter(|_| *acquire_resent))
        }
        // Whether the swap was taken back.
        Request::Resume(Resume { name, old, new, undo, .. }) => (name, Some(if *undo { old } else { new })),
        Request::Downgrade(Downgrade { name, .. })
        | Request::Upgrade(Upgrade { name, .. })
        | Request::Invalidate(Invalidate { name })
        | Request::Holder(Holder { name })
        | Request::Waiters(Waiters { name })
        | Request::BreakLease(BreakLease { name }) => (name, None),
        Request::AcquireAll(_) | Request::Take(_) | Request::GiveBack(_) | Request::Queue(_) => return None,
    })
}

fn encode_arguments(command: &mut Cmd, request: &Request) {
    match request {
        Request::Queue(request) => queue::encode_arguments(command, request),
        Request::Acquire(acquire) if acquire.name.kind() == LockKind::Cached => {
            cached::encode_acquire(command, acquire);
        }
        Request::Acquire(acquire) if acquire.name.kind().has_permits() => {
            permits::encode_acquire(command, acquire);
        }
        Request::Acquire(acquire) => encode_acquire(command, acquire),
        Request::AcquireAll(acquire) => encode_acquire_all(command, acquire),
        Request::Extend(extend) => encode_extend(command, extend),
        Request::Release(release) if release.name.kind().has_permits() => {
            permits::encode_release(command, release);
        }
        Request::Release(release) => encode_release(command, release),
        Request::Leave(leave) => {
            command.arg(leave.token.as_str());
            if !leave.name.kind().has_permits() {
                command.arg(u8::from(leave.foreign_share));
            }
        }
        Request::Resume(Resume { old, new, owner, undo, .. }) => {
            command.arg(old.as_str()).arg(new.as_str()).arg(&**owner).arg(u8::from(*undo));
        }
        Request::Downgrade(downgrade) => permits::encode_downgrade(command, downgrade),
        Request::Upgrade(upgrade) => {
            command.arg(upgrade.token.as_str()).arg(upgrade.limit);
        }
        Request::StoreValue(store) => cached::encode_store_value(command, store),
        Request::Take(take) => limiter::encode_take(command, take),
        Request::GiveBack(give_back) => limiter::encode_give_back(command, give_back),
        Request::Invalidate(_) | Request::Holder(_) | Request::Waiters(_) | Request::BreakLease(_) => {}
    }
}

fn encode_extend(command: &mut Cmd, extend: &Extend) {
    let again = extend.granted.as_ref().filter(|_| extend.again && !extend.name.kind().has_permits());
    command.arg(extend.token.as_str()).arg(millis(extend.ttl));
    if extend.exact || again.is_some() {
        command.arg(u8::from(extend.exact));
    }
    if let Some(Granted { fence, owner }) = again {
        command.arg(fence.get()).arg(&**owner);
    }
}

fn encode_acquire(command: &mut Cmd, acquire: &Acquire) {
    command
        .arg(acquire.token.as_str())
        .arg(millis(acquire.ttl))
        .arg(acquire.min_fence.get())
        .arg(&*acquire.owner);
    let has_more = acquire.patience.is_some() || acquire.adopt.is_some();
    if acquire.waiter.is_some() || has_more {
        let waiter = acquire.waiter.map(|waiter| format!("{:x} {}", waiter.client.0, waiter.seq));
        command.arg(waiter.unwrap_or_default());
    }
    if has_more {
        command.arg(acquire.patience.map_or_else(String::new, |patience| millis(patience).to_string()));
        command.arg(acquire.adopt.as_ref().map_or("", |digest| &*digest.0));
    }
}

fn encode_acquire_all(command: &mut Cmd, acquire: &AcquireAll) {
    command.arg(acquire.token.as_str()).arg(millis(acquire.ttl)).arg(&*acquire.owner);
    for (_, min_fence) in &acquire.locks {
        command.arg(min_fence.get());
    }
}

fn encode_release(command: &mut Cmd, release: &Release) {
    let Release { cooldown, acquire_resent, own_fence, foreign_share, .. } = release;
    command.arg(release.token.as_str());
    // The common case has none of them: each argument costs the server time.
    if cooldown.is_some() || *acquire_resent || own_fence.is_some() || *foreign_share {
        command.arg(cooldown.map_or(0, millis)).arg(u8::from(*acquire_resent)).arg(u8::from(*foreign_share));
        command.arg(own_fence.map_or_else(String::new, |fence| fence.to_string()));
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether the value is what is left of an answer that lost its beginning to garbage before it: a code, where a fence may
/// stand alone. Fences are microseconds of the server's clock, and codes fit in a byte. Answers and questions are out of
/// step then, so the connection is of no use any more.
pub(crate) fn is_torn(request: &Request, value: &Value) -> bool {
    matches!((request, value), (Request::Acquire(_), Value::Int(0..=0xff)))
}

/// The reply to `request`; anything unexpected is `Corrupt`.
pub(crate) fn decode(request: &Request, value: &Value) -> Result<Reply, Failure> {
    decode_known(request, value).ok_or_else(|| {
        Failure::new(
            FailureKind::Final(ErrorKind::Corrupt),
            format!("unexpected reply to {}; is the server really Redis or Valkey?", request.verb()),
        )
    })
}

fn decode_known(request: &Request, value: &Value) -> Option<Reply> {
    if let Request::Queue(request) = request {
        return queue::decode(&request.verb, value).map(Reply::Queue);
    }
    let items = match (request, value) {
        (_, Value::Array(items)) => items.as_slice(),
        // The short answers of the common case.
        (Request::Acquire(acquire), Value::Int(fence)) if !is_torn(request, value) => {
            let fence = u64::try_from(*fence).ok().filter(|fence| *fence > 0).map(Fence::new)?;
            return Some(Reply::Acquire(AcquireReply::Granted { fence, ttl: acquire.ttl }));
        }
        (Request::Release(_), Value::Int(code)) if Code::from_number(*code) == Some(Code::Released) => {
            return Some(Reply::Release(ReleaseReply::Released));
        }
        (Request::Take(_), Value::Int(code)) if Code::from_number(*code) == Some(Code::Taken) => {
            return Some(Reply::Take(TakeReply::Taken(Duration::ZERO)));
        }
        _ => return None,
    };
    let number = |index: usize| match items.get(index) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    };
    let count = |index| number(index).and_then(|count| u64::try_from(count).ok());
    let fence = |index| count(index).map(Fence::new);
    let time = |index| count(index).map(Duration::from_millis);
    let micros = |index| count(index).map(Duration::from_micros);
    let absence =
        || Some(Absence { fence: fence(1)?, born: fence(2)?, broken: fence(3)?, foreign: number(4)? == 1 });
    let obstacle = || {
        let rank = u32::try_from(number(3)?).ok()?;
        Some(Obstacle { remaining: lifetime(number(1)?), unexpiring: digest(items.get(2)?), rank })
    };
    Some(match (request, Code::from_number(number(0)?)?) {
        (Request::Acquire(_), Code::Granted) => {
            Reply::Acquire(AcquireReply::Granted { fence: fence(1)?, ttl: time(2)? })
        }
        (Request::Acquire(_), Code::Waiting) => Reply::Acquire(AcquireReply::Waiting(obstacle()?)),
        (Request::Acquire(_), Code::Busy) => Reply::Acquire(AcquireReply::Busy(obstacle()?)),
        (Request::Acquire(_), Code::Cached) => Reply::Acquire(AcquireReply::Cached(cached::value(items)?)),
        (Request::StoreValue(_), Code::Stored) => Reply::StoreValue(StoreValueReply::Stored),
        (Request::StoreValue(_), Code::Gone) => Reply::StoreValue(StoreValueReply::Gone(absence()?)),
        (Request::Invalidate(_), Code::Invalidated) => Reply::Invalidate,
        (Request::Acquire(_), Code::Ended) => Reply::Acquire(AcquireReply::Ended),
        (Request::AcquireAll(_), Code::Granted) => {
            let fences = (1..items.len()).map(fence).collect::<Option<_>>()?;
            Reply::AcquireAll(AcquireAllReply::Granted(fences))
        }
        (Request::AcquireAll(_), Code::Busy) => Reply::AcquireAll(AcquireAllReply::Busy),
        (Request::AcquireAll(_), Code::Ended) => Reply::AcquireAll(AcquireAllReply::Ended),
        (Request::Extend(_), Code::Extended) => Reply::Extend(ExtendReply::Extended(time(1)?)),
        (Request::Extend(_), Code::Gone) => Reply::Extend(ExtendReply::Gone(absence()?)),
        (Request::Release(_), Code::Released) => Reply::Release(ReleaseReply::Released),
        (Request::Release(_), Code::Gone) => Reply::Release(ReleaseReply::Gone(absence()?)),
        (Request::Leave(_), Code::Left) => Reply::Leave,
        (Request::Resume(_), Code::Resumed) => Reply::Resume(ResumeReply::Resumed {
            fence: fence(1)?,
            ttl: time(2)?,
            permits: permits::of(items),
        }),
        (Request::Resume(_), Code::Gone) => Reply::Resume(ResumeReply::Gone(absence()?)),
        (Request::Acquire(_), Code::OtherLimit) => {
            Reply::Acquire(AcquireReply::OtherLimit(u32::try_from(number(1)?).ok()?))
        }
        (Request::Downgrade(_), Code::Downgraded) => Reply::Downgrade(DowngradeReply::Downgraded),
        (Request::Downgrade(_), Code::Gone) => Reply::Downgrade(DowngradeReply::Gone(absence()?)),
        (Request::Upgrade(_), Code::Upgraded) => Reply::Upgrade(UpgradeReply::Upgraded(fence(1)?)),
        (Request::Upgrade(_), Code::Busy) => Reply::Upgrade(UpgradeReply::Busy),
        (Request::Upgrade(_), Code::Gone) => Reply::Upgrade(UpgradeReply::Gone(absence()?)),
        (Request::Holder(_), Code::Free) => Reply::Holder(Vec::new()),
        (Request::Holder(holder), Code::Held) if holder.name.kind().has_permits() => {
            Reply::Holder(permits::holders(items)?)
        }
        (Request::Holder(_), Code::Held) => Reply::Holder(vec![HolderReply {
            held_as: held_as(number(1)?)?,
            fence: fence(2)?,
            remaining: lifetime(number(3)?),
            since_ms: count(4)?.checked_mul(1000)?,
            owner: text(items.get(5)?)?,
            waiters: count(6)?,
            weight: 1,
        }]),
        (Request::Waiters(_), Code::InLine) => {
            Reply::Waiters(items[1..].iter().map(waiter).collect::<Option<_>>()?)
        }
        // Who believed another time would wait for ever.
        (Request::Take(take), Code::Reserved) => {
            Reply::Take(TakeReply::Taken(micros(1).filter(|begins| *begins <= take.wait_most)?))
        }
        (Request::Take(_), Code::Refused) => Reply::Take(TakeReply::Refused(micros(1)?)),
        (Request::GiveBack(_), Code::GivenBack) => Reply::GiveBack(true),
        (Request::GiveBack(_), Code::Gone) => Reply::GiveBack(false),
        (Request::BreakLease(_), Code::Broken) => Reply::BreakLease(true),
        (Request::BreakLease(_), Code::Free) => Reply::BreakLease(false),
        _ => return None,
    })
}

/// One entry of the answer to `waiters`.
fn waiter(item: &Value) -> Option<WaiterReply> {
    let Value::Array(fields) = item else { return None };
    let number = |index: usize| match fields.get(index) {
        Some(Value::Int(number)) => u64::try_from(*number).ok(),
        _ => None,
    };
    Some(WaiterReply {
        since_ms: number(0)? / 1_000,
        waiting: Some(Duration::from_micros(number(1)?)),
        owner: text(fields.get(2)?)?,
        weight: u32::try_from(number(3)?).ok()?,
    })
}

fn held_as(number: i64) -> Option<HeldAs> {
    HELD_AS.iter().find(|row| row.1 == number).map(|row| row.2)
}

/// PTTL's answer: negative if the key never expires.
fn lifetime(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}

fn digest(value: &Value) -> Option<Digest> {
    text(value).map(|text| Digest(text.into()))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;
    use crate::protocol::{LimitKind, Rule};
    use crate::store::redis::script::SCRIPTS;

    fn name() -> LockName {
        Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap()
    }

    #[test]
    fn every_constant_in_the_scripts_is_known() {
        for (verb, script) in SCRIPTS.all() {
            assert!(!script.text.contains('@'), "{verb} has an unknown constant");
            assert!(!script.text.contains("include"), "{verb} has an unknown include");
            assert_eq!(script.sha.len(), 40);
        }
    }

    #[test]
    fn nonsense_is_corrupt_and_never_a_panic() {
        let request = Request::Holder(Holder { name: name() });
        let replies = [
            Value::Nil,
            Value::Okay,
            Value::Int(10),
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(99)]),
            Value::Array(vec![Value::Int(10)]),
            Value::Array(vec![Value::Int(10), Value::Int(9), Value::Nil]),
            Value::Array(vec![Value::Int(1), Value::Int(-5), Value::Int(i64::MIN)]),
            Value::BulkString(vec![0xff; 3]),
        ];
        for reply in replies {
            let failure = decode(&request, &reply).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Corrupt));
        }
    }

    #[test]
    fn nobody_waits_for_longer_than_he_can() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        let rule = Rule { kind: LimitKind::Gcra, most: 1, per: 1_000, burst: 1 };
        let (name, wait_most) = (prefixes.limiter_name("a").unwrap(), Duration::from_micros(7));
        let request = Request::Take(Take { name, rule, count: 1, wait_most, token: None });
        let reserved = |micros| Value::Array(vec![Value::Int(Code::Reserved as i64), Value::Int(micros)]);
        assert_eq!(decode(&request, &reserved(7)).unwrap(), Reply::Take(TakeReply::Taken(wait_most)));
        assert!(decode(&request, &reserved(8)).is_err());
    }

    #[test]
    fn a_reply_of_another_verb_is_corrupt() {
        let request = Request::BreakLease(BreakLease { name: name() });
        assert!(decode(&request, &Value::Array(vec![Value::Int(Code::Released as i64)])).is_err());
        assert_eq!(
            decode(&request, &Value::Array(vec![Value::Int(Code::Broken as i64)])).unwrap(),
            Reply::BreakLease(true)
        );
    }
}
