//! The verbs of read-write locks and semaphores: requests to arguments, and what only they answer.

use std::time::Duration;

use redis::{Cmd, Value};

use super::{held_as, millis, text};
use crate::protocol::{
    Acquire, BreakLease, Downgrade, Extend, Fence, Holder, HolderReply, Leave, Permits, Release, Request,
    Resume, Upgrade, Waiters,
};
use crate::store::redis::script::Verb;

/// The script of a request's verb, if it is about permits.
pub(super) fn verb(request: &Request) -> Option<Verb> {
    let (name, verb) = match request {
        Request::Acquire(Acquire { name, .. }) => (name, Verb::PermitsAcquire),
        Request::Extend(Extend { name, .. }) => (name, Verb::PermitsExtend),
        Request::Release(Release { name, .. }) => (name, Verb::PermitsRelease),
        Request::Leave(Leave { name, .. }) => (name, Verb::PermitsLeave),
        Request::Resume(Resume { name, .. }) => (name, Verb::PermitsResume),
        Request::Downgrade(Downgrade { name, .. }) => (name, Verb::PermitsDowngrade),
        Request::Upgrade(Upgrade { name, .. }) => (name, Verb::PermitsUpgrade),
        Request::Holder(Holder { name }) => (name, Verb::PermitsHolder),
        Request::Waiters(Waiters { name }) => (name, Verb::PermitsWaiters),
        Request::BreakLease(BreakLease { name }) => (name, Verb::PermitsBreakLease),
        Request::AcquireAll(_)
        | Request::StoreValue(_)
        | Request::Invalidate(_)
        | Request::Take(_)
        | Request::GiveBack(_)
        | Request::Queue(_) => {
            return None;
        }
    };
    name.kind().has_permits().then_some(verb)
}

pub(super) fn encode_acquire(command: &mut Cmd, acquire: &Acquire) {
    command
        .arg(acquire.token.as_str())
        .arg(millis(acquire.ttl))
        .arg(acquire.min_fence.get())
        .arg(&*acquire.owner);
    let Permits { weight, limit } = acquire.permits.unwrap_or(Permits { weight: 1, limit: 1 });
    command.arg(weight).arg(limit);
    let waiter = acquire.waiter.map(|waiter| format!("{:x} {}", waiter.client.0, waiter.seq));
    command.arg(waiter.unwrap_or_default());
    command.arg(acquire.patience.map_or_else(String::new, |patience| millis(patience).to_string()));
}

pub(super) fn encode_release(command: &mut Cmd, release: &Release) {
    command.arg(release.token.as_str()).arg(u8::from(release.acquire_resent));
    command.arg(release.own_fence.map_or_else(String::new, |fence| fence.to_string()));
}

pub(super) fn encode_downgrade(command: &mut Cmd, downgrade: &Downgrade) {
    command.arg(downgrade.token.as_str()).arg(downgrade.weight);
    command.arg(downgrade.fence.map_or_else(String::new, |fence| fence.to_string()));
}

/// What a resumed lease has.
pub(super) fn of(items: &[Value]) -> Option<Permits> {
    let number = |index: usize| match items.get(index) {
        Some(Value::Int(number)) => u32::try_from(*number).ok(),
        _ => None,
    };
    Some(Permits { weight: number(3)?, limit: number(4)? })
}

/// The holders in the answer to `holder`.
pub(super) fn holders(items: &[Value]) -> Option<Vec<HolderReply>> {
    let [_, Value::Int(waiters), holders @ ..] = items else { return None };
    let waiters = u64::try_from(*waiters).ok()?;
    let holder = |item: &Value| {
        let Value::Array(fields) = item else { return None };
        let number = |index: usize| match fields.get(index) {
            Some(Value::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        Some(HolderReply {
            held_as: held_as(number(0)?.cast_signed())?,
            fence: Fence::new(number(1)?),
            remaining: Some(Duration::from_millis(number(2)?)),
            since_ms: number(3)?.checked_mul(1000)?,
            owner: text(fields.get(4)?)?,
            waiters,
            weight: u32::try_from(number(5)?).ok()?,
        })
    };
    holders.iter().map(holder).collect()
}
