//! Why `run` did not get its lock, for people: who has it, or what else keeps it closed.

use std::env;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use stanchion::blocking::Client;
use stanchion::{ErrorKind, HeldAs, Holder, LockKind};

use crate::arguments::RunOrder;
use crate::failure::Failure;
use crate::locks::{described, handle};
use crate::text::{left, plain};

/// The failure of an acquire that waited for so long; as it is, if nobody is found in the way any more.
pub fn explained(failure: Failure, client: &Client, order: &RunOrder, waited: Option<Duration>) -> Failure {
    let kind = kind(order);
    let found = order.names.iter().find_map(|name| {
        let holders = handle(client, kind, name).holders().ok()?;
        Some((name, holders.first()?.clone(), holders.len() - 1))
    });
    let Some((name, holder, others)) = found else { return failure };
    let waited = waited.map_or("did not wait".into(), |waited| format!("waited {}", left(waited)));
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let state = state(name, &holder);
    let what = format!("run {:?}: the lock is {state}{others}; {waited}", plain(name));
    let hint = if is_outer(name, &holder) {
        "it cannot come free before this command ends: use another name, or leave the inner run out".into()
    } else {
        let kind =
            if kind == LockKind::Exclusive { String::new() } else { format!(" --kind {}", kind.name()) };
        format!(
            "wait longer with --wait, or see who holds it with `stanchion locks show{kind} {:?}`",
            plain(name)
        )
    };
    Failure { kind: ErrorKind::LockTimeout.name(), what, hint, ..failure }
}

fn kind(order: &RunOrder) -> LockKind {
    match order.permits {
        Some(_) => LockKind::Semaphore,
        None if order.read || order.write => LockKind::ReadWrite,
        None => LockKind::Exclusive,
    }
}

fn state(name: &str, holder: &Holder) -> String {
    match holder.held_as {
        HeldAs::Lease if is_outer(name, holder) => {
            format!("held by the very `stanchion run` (pid {}) that this one was started by", holder.pid)
        }
        HeldAs::Lease => {
            let since = holder.since.and_then(|since| SystemTime::now().duration_since(since).ok());
            described(holder) + &since.map_or(String::new(), |since| format!(", for {}", left(since)))
        }
        HeldAs::Cooldown => {
            let until = holder.remaining.and_then(|left| Timestamp::try_from(SystemTime::now() + left).ok());
            let until = until.map_or(String::new(), |until| format!(" until {until:.0}"));
            format!("cooling down{until}, for {} more", holder.remaining.map_or("-".into(), left))
        }
        _ => described(holder),
    }
}

/// Whether this process runs below the `stanchion run` that holds the lock: they would wait for each other.
fn is_outer(name: &str, holder: &Holder) -> bool {
    let lines = |variable| env::var(variable).unwrap_or_default();
    let (names, fences) = (lines("STANCHION_LOCK"), lines("STANCHION_FENCE"));
    let mut held = names.lines().zip(fences.lines());
    held.any(|(held, fence)| held == name && fence == holder.fence.to_string())
}
