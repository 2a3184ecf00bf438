//! `stanchion limiters`: what limits are used.

use serde_json::json;
use stanchion::blocking::Client;
use stanchion::{LimitKind, LimiterInfo};

use crate::arguments::Globals;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::queues::counts::millis;
use crate::report::Report;
use crate::store;
use crate::text::{left, plain, table};

const HEADINGS: [&str; 3] = ["NAME", "KIND", "IDLE IN"];

/// Prints those of every kind.
pub fn list(globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    let limiters = LimitKind::ALL.map(|kind| of_kind(&client, kind));
    let limiters: Vec<LimiterInfo> = limiters.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    let text = if globals.json {
        let line = |one: &LimiterInfo| {
            let line =
                json!({ "name": one.name, "kind": one.kind.name(), "idle_in_ms": millis(one.idle_in) });
            format!("{line}\n")
        };
        limiters.iter().map(line).collect()
    } else {
        table(
            HEADINGS,
            limiters.iter().map(|one| [plain(&one.name), one.kind.name().into(), left(one.idle_in)]),
        )
    };
    print(text.as_bytes())?;
    Ok(exit::DONE)
}

/// All of a kind, by name; pages may repeat some.
fn of_kind(client: &Client, kind: LimitKind) -> Result<Vec<LimiterInfo>, Failure> {
    let (mut all, mut page) = (Vec::new(), None);
    loop {
        let found = client.limiters(kind, page)?;
        all.extend(found.limiters);
        page = found.next;
        if page.is_none() {
            break;
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|one, other| one.name == other.name);
    Ok(all)
}
