//! `stanchion locks`: who holds what.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stanchion::blocking::Client;
use stanchion::{HeldAs, Holder};

use crate::arguments::{Globals, LocksVerb};
use crate::enqueue::millis;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::report::Report;
use crate::store;
use crate::text::{left, plain, table};

const HEADINGS: [&str; 8] = ["NAME", "HELD AS", "LABEL", "HOST", "PID", "FENCE", "REMAINING", "WAITERS"];

/// Carries out one of the verbs.
pub fn perform(verb: &LocksVerb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    let text = match verb {
        LocksVerb::Ls => list(&client, globals.json)?,
        LocksVerb::Show { name } => show(&client, name, globals.json)?,
        LocksVerb::Break { name } => break_lease(&client, name, globals.json)?,
    };
    print(text.as_bytes())?;
    Ok(exit::DONE)
}

fn list(client: &Client, json: bool) -> Result<String, Failure> {
    let mut held = Vec::new();
    for name in names(client)? {
        // One that was released since is left out.
        if let Some(holder) = client.lock(&name).holder()? {
            held.push((name, holder));
        }
    }
    if json {
        let locks: Vec<Value> = held.iter().map(|(name, holder)| as_json(name, Some(holder))).collect();
        return Ok(format!("{}\n", Value::from(locks)));
    }
    let rows = held.iter().map(|(name, holder)| row(name, holder));
    Ok(table(HEADINGS, rows))
}

/// All names, sorted; pages may repeat some.
fn names(client: &Client) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    let mut page = None;
    loop {
        let listed = client.locks(page)?;
        names.extend(listed.names);
        page = listed.next;
        if page.is_none() {
            return Ok(names);
        }
    }
}

fn show(client: &Client, name: &str, json: bool) -> Result<String, Failure> {
    let holder = client.lock(name).holder()?;
    Ok(match holder {
        holder if json => format!("{}\n", as_json(name, holder.as_ref())),
        None => format!("{} is free\n", plain(name)),
        Some(holder) => {
            let lines = HEADINGS.iter().zip(row(name, &holder));
            lines.map(|(heading, value)| format!("{:<11}{value}\n", format!("{heading}:"))).collect()
        }
    })
}

fn break_lease(client: &Client, name: &str, json: bool) -> Result<String, Failure> {
    let lock = client.lock(name);
    // Whoever held it just before; another may have come in between.
    let holder = lock.holder()?;
    let broken = lock.break_lease()?;
    Ok(match holder {
        holder if json => {
            let holder = holder.map_or(Value::Null, |holder| as_json(name, Some(&holder)));
            format!("{}\n", json!({ "name": name, "broken": broken, "holder": holder }))
        }
        _ if !broken => format!("{} was free: nothing to break\n", plain(name)),
        Some(holder) => format!("{} broken; it was {}\n", plain(name), described(&holder)),
        None => format!("{} broken\n", plain(name)),
    })
}

fn described(holder: &Holder) -> String {
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

fn as_json(name: &str, holder: Option<&Holder>) -> Value {
    let Some(holder) = holder else { return json!({ "name": name, "held": false }) };
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "name": name,
        "held": true,
        "held_as": holder.held_as.name(),
        "label": known(&holder.label),
        "host": known(&holder.host),
        "pid": (holder.pid != 0).then_some(holder.pid),
        "fence": (holder.fence != 0).then_some(holder.fence),
        "since_ms": holder.since.map(millis),
        "remaining_ms": holder.remaining.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        "waiters": holder.waiters,
    })
}

fn row(name: &str, holder: &Holder) -> [String; 8] {
    let text = |text: &str| if text.is_empty() { "-".to_owned() } else { plain(text) };
    let number = |number: u64| if number == 0 { "-".to_owned() } else { number.to_string() };
    [
        plain(name),
        holder.held_as.name().to_owned(),
        text(&holder.label),
        text(&holder.host),
        number(holder.pid.into()),
        number(holder.fence),
        holder.remaining.map_or("never ends".into(), left),
        holder.waiters.to_string(),
    ]
}
