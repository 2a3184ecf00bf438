//! `stanchion locks`: who holds what.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use stanchion::blocking::{Client, Lock};
use stanchion::{Fence, HeldAs, Holder, LockKind, Waiter};

use crate::arguments::{Globals, Kind, LocksVerb};
use crate::enqueue::millis;
use crate::exit;
use crate::failure::Failure;
use crate::output::{print, print_done};
use crate::report::Report;
use crate::store;
use crate::text::{left, plain, table};

const HEADINGS: [&str; 9] =
    ["NAME", "KIND", "HELD AS", "LABEL", "HOST", "PID", "FENCE", "REMAINING", "WAITERS"];
const LINE_HEADINGS: [&str; 6] = ["WAITER", "KIND", "LABEL", "HOST", "PID", "WAITING"];

/// Carries out one of the verbs.
pub fn perform(verb: &LocksVerb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    match verb {
        LocksVerb::Ls => print(list(&client, globals.json)?.as_bytes())?,
        LocksVerb::Show { name, kind } => {
            print(show(&client, name, of(*kind), globals.json)?.as_bytes())?;
        }
        LocksVerb::Break { name, kind } => {
            let text = break_lease(&client, name, of(*kind), globals.json)?;
            print_done(text.as_bytes(), "it was done")?;
        }
    }
    Ok(exit::DONE)
}

fn of(kind: Kind) -> LockKind {
    match kind {
        Kind::Lock => LockKind::Exclusive,
        Kind::RwLock => LockKind::ReadWrite,
        Kind::Semaphore => LockKind::Semaphore,
        Kind::Cached => LockKind::Cached,
    }
}

/// A handle to look at it or to break it, not to acquire it.
pub fn handle(client: &Client, kind: LockKind, name: &str) -> Lock {
    match kind {
        LockKind::ReadWrite => client.rw_lock(name).read().clone(),
        LockKind::Semaphore => client.semaphore(name, 1),
        LockKind::Cached => client.computation(name),
        _ => client.lock(name),
    }
}

fn list(client: &Client, json: bool) -> Result<String, Failure> {
    let mut held = Vec::new();
    for kind in LockKind::ALL {
        for name in names(client, kind)? {
            // One that was released since is left out.
            let holders = handle(client, kind, &name).holders()?;
            held.extend(holders.into_iter().map(|holder| (name.clone(), kind, holder)));
        }
    }
    if json {
        let lock = |(name, kind, holder): &(String, LockKind, Holder)| as_json(name, *kind, Some(holder));
        return Ok(format!("{}\n", Value::from(held.iter().map(lock).collect::<Vec<_>>())));
    }
    let rows = held.iter().map(|(name, kind, holder)| row(name, *kind, holder));
    Ok(table(HEADINGS, rows))
}

/// All names of a kind, sorted; pages may repeat some.
pub fn names(client: &Client, kind: LockKind) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    let mut page = None;
    loop {
        let listed = client.locks_of(kind, page)?;
        names.extend(listed.names);
        page = listed.next;
        if page.is_none() {
            return Ok(names);
        }
    }
}

fn show(client: &Client, name: &str, kind: LockKind, json: bool) -> Result<String, Failure> {
    let lock = handle(client, kind, name);
    let (holders, waiters) = (lock.holders()?, lock.waiters()?);
    if json {
        let line: Vec<_> = waiters.iter().map(|waiter| waiter_as_json(kind, waiter)).collect();
        let mut shown = match kind {
            LockKind::Exclusive => as_json(name, kind, holders.first()),
            _ => json!({
                "name": name,
                "kind": kind.name(),
                "held": !holders.is_empty(),
                "holders": holders.iter().map(|one| as_json(name, kind, Some(one))).collect::<Vec<_>>(),
            }),
        };
        shown["line"] = line.into();
        return Ok(format!("{shown}\n"));
    }
    let line = match waiters.is_empty() {
        true => String::new(),
        false => format!(
            "\n{}",
            table(LINE_HEADINGS, (1..).zip(&waiters).map(|(place, one)| in_line(kind, place, one)))
        ),
    };
    if holders.is_empty() {
        return Ok(format!("{} is free\n{line}", plain(name)));
    }
    let shown = holders.iter().map(|holder| {
        let lines = HEADINGS.iter().zip(row(name, kind, holder));
        lines.map(|(heading, value)| format!("{:<11}{value}\n", format!("{heading}:"))).collect::<String>()
    });
    Ok(shown.collect::<Vec<_>>().join("\n") + &line)
}

fn break_lease(client: &Client, name: &str, kind: LockKind, json: bool) -> Result<String, Failure> {
    let lock = handle(client, kind, name);
    // Whoever held it just before; another may have come in between.
    let holder = lock.holder()?;
    let broken = lock.break_lease()?;
    Ok(match holder {
        holder if json => {
            let holder = holder.map_or(Value::Null, |holder| as_json(name, kind, Some(&holder)));
            format!("{}\n", json!({ "name": name, "broken": broken, "holder": holder }))
        }
        _ if !broken => format!("{} was free: nothing to break\n", plain(name)),
        Some(holder) => format!("{} broken; it was {}\n", plain(name), described(&holder)),
        None => format!("{} broken\n", plain(name)),
    })
}

/// Of a read-write lock: on which side.
fn side(kind: LockKind, weight: u32) -> &'static str {
    match kind {
        LockKind::ReadWrite if weight == 1 => "reader",
        LockKind::ReadWrite => "writer",
        kind => kind.name(),
    }
}

fn side_with_permits(kind: LockKind, weight: u32) -> String {
    match kind {
        LockKind::Semaphore if weight > 1 => format!("semaphore ({weight} permits)"),
        kind => side(kind, weight).to_owned(),
    }
}

/// How it is held, and by whom.
pub fn described(holder: &Holder) -> String {
    let Holder { label, host, pid, fence, .. } = holder;
    match holder.held_as {
        HeldAs::Lease => {
            let by = if label.is_empty() { String::new() } else { format!("{:?}, ", plain(label)) };
            format!("held by {by}pid {pid} on {}, fence {fence}", plain(host))
        }
        HeldAs::Offer => format!("offered to a waiter, fence {fence}"),
        HeldAs::Cooldown => "cooling down".into(),
        _ => "held by another program".into(),
    }
}

fn as_json(name: &str, kind: LockKind, holder: Option<&Holder>) -> Value {
    let Some(holder) = holder else { return json!({ "name": name, "kind": kind.name(), "held": false }) };
    json!({
        "name": name,
        "kind": side(kind, holder.weight),
        "permits": (kind == LockKind::Semaphore).then_some(holder.weight),
        "held": true,
        "held_as": holder.held_as.name(),
        "label": known(&holder.label),
        "host": known(&holder.host),
        "pid": (holder.pid != 0).then_some(holder.pid),
        "fence": (holder.fence != Fence::NONE).then_some(holder.fence.get()),
        "since_ms": holder.since.map(millis),
        "remaining_ms": holder.remaining.map(whole_millis),
        "waiters": holder.waiters,
    })
}

fn waiter_as_json(kind: LockKind, waiter: &Waiter) -> Value {
    json!({
        "kind": side(kind, waiter.weight),
        "permits": (kind == LockKind::Semaphore).then_some(waiter.weight),
        "label": known(&waiter.label),
        "host": known(&waiter.host),
        "pid": (waiter.pid != 0).then_some(waiter.pid),
        "since_ms": waiter.since.map(millis),
        "waiting_ms": waiter.waiting.map(whole_millis),
    })
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn row(name: &str, kind: LockKind, holder: &Holder) -> [String; 9] {
    [
        plain(name),
        side_with_permits(kind, holder.weight),
        holder.held_as.name().to_owned(),
        text(&holder.label),
        text(&holder.host),
        number(holder.pid.into()),
        number(holder.fence.get()),
        holder.remaining.map_or("never ends".into(), left),
        holder.waiters.to_string(),
    ]
}

fn in_line(kind: LockKind, place: usize, waiter: &Waiter) -> [String; 6] {
    [
        place.to_string(),
        side_with_permits(kind, waiter.weight),
        text(&waiter.label),
        text(&waiter.host),
        number(waiter.pid.into()),
        waiter.waiting.map_or("-".into(), left),
    ]
}

fn text(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { plain(text) }
}

fn number(number: u64) -> String {
    if number == 0 { "-".to_owned() } else { number.to_string() }
}
