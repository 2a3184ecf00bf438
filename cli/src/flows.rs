//! `stanchion flows`: tasks of which some wait for others.

use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use stanchion::blocking::Queue;
use stanchion::{FlowInfo, FlowState, NodeInfo, NodeState};

use crate::arguments::{FlowsVerb, Globals};
use crate::enqueue::millis;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::queues::told;
use crate::report::Report;
use crate::store;
use crate::text::{plain, shortened, table};

/// Flows that one request asks for.
const PAGE: usize = 100;
/// How much of a text a table shows.
const CELL: usize = 40;
const FLOWS: [&str; 6] = ["ID", "STATE", "NODES", "ENDED", "FAILED", "CREATED"];
const NODES: [&str; 4] = ["NODE", "STATE", "QUEUE", "AFTER"];

/// Carries out one of the verbs.
pub fn perform(verb: &FlowsVerb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let json = globals.json;
    let queue = |name: &str| Ok::<Queue, Failure>(store::open(globals, report)?.queue(name));
    match verb {
        FlowsVerb::Ls { queue: name } => list(&queue(name)?, json),
        FlowsVerb::Show { queue: name, id } => match queue(name)?.get_flow(id)? {
            Some(flow) => {
                print(described(&flow, json).as_bytes())?;
                Ok(exit::DONE)
            }
            None => Err(none(name, id, "there is none")),
        },
        FlowsVerb::Cancel { queue: name, id } => match queue(name)?.cancel_flow(id)? {
            true => told(
                json,
                &json!({ "queue": name, "id": id, "cancelled": true }),
                &format!("{} cancelled", plain(id)),
            ),
            false => Err(none(name, id, "there is none that runs")),
        },
        FlowsVerb::Retry { queue: name, id } => match queue(name)?.retry_flow(id)? {
            true => told(
                json,
                &json!({ "queue": name, "id": id, "retried": true }),
                &format!("{} retried", plain(id)),
            ),
            false => Err(none(name, id, "there is none")),
        },
    }
}

/// Prints the flows. JSON is printed page by page: there may be many.
fn list(queue: &Queue, json: bool) -> Result<u8, Failure> {
    let (mut rows, mut from) = (Vec::new(), None);
    loop {
        let page = queue.list_flows(from.as_deref(), PAGE)?;
        if json {
            let lines: String = page.flows.iter().map(|flow| format!("{}\n", as_json(flow))).collect();
            print(lines.as_bytes())?;
        } else {
            rows.extend(page.flows.iter().map(row));
        }
        from = page.next;
        if from.is_none() {
            let text = if json { String::new() } else { table(FLOWS, rows.into_iter()) };
            print(text.as_bytes())?;
            return Ok(exit::DONE);
        }
    }
}

fn row(flow: &FlowInfo) -> [String; 6] {
    let ended = NodeState::ALL.into_iter().filter(|state| state.has_ended()).map(|state| flow.count(state));
    let failed = [NodeState::Dead, NodeState::Cancelled, NodeState::Skipped].map(|state| flow.count(state));
    [
        shortened(&plain(&flow.id), CELL),
        flow.state.name().into(),
        flow.size().to_string(),
        ended.sum::<u32>().to_string(),
        failed.iter().sum::<u32>().to_string(),
        utc(flow.created),
    ]
}

fn described(flow: &FlowInfo, json: bool) -> String {
    if json {
        return format!("{}\n", as_json(flow));
    }
    let counts: Vec<String> =
        flow.counts.iter().map(|(state, count)| format!("{count} {}", state.name())).collect();
    let mut text = format!(
        "ID:       {}\nSTATE:    {}\nNODES:    {}\nCREATED:  {}\n",
        plain(&flow.id),
        flow.state.name(),
        if counts.is_empty() { "none".into() } else { counts.join(", ") },
        utc(flow.created),
    );
    if let Some(ended) = flow.ended.filter(|_| flow.state != FlowState::Running) {
        text.push_str(&format!("ENDED:    {}\n", utc(ended)));
    }
    if !flow.nodes.is_empty() {
        let row = |node: &NodeInfo| {
            let queue = node.queue.as_deref().map_or("-".into(), plain);
            [
                shortened(&plain(&node.name), CELL),
                node.state.name().into(),
                queue,
                shortened(&after(node), CELL),
            ]
        };
        text.push('\n');
        text.push_str(&table(NODES, flow.nodes.iter().map(row)));
    }
    text
}

/// What a node waits for.
fn after(node: &NodeInfo) -> String {
    let named = |names: &[String], how: &str| -> Vec<String> {
        names.iter().map(|name| format!("{}{how}", plain(name))).collect()
    };
    let mut all = named(&node.after, "");
    all.extend(named(&node.after_end, " (end)"));
    all.extend(named(&node.after_failure, " (failure)"));
    all.extend(node.after_all.map(|kind| format!("all ({kind})")));
    if all.is_empty() { "-".into() } else { all.join(", ") }
}

fn as_json(flow: &FlowInfo) -> Value {
    let counts: Map<String, Value> =
        flow.counts.iter().map(|(state, count)| (state.name().to_owned(), json!(count))).collect();
    let node = |node: &NodeInfo| {
        json!({
            "name": node.name, "state": node.state.name(), "queue": node.queue, "after": node.after,
            "after_end": node.after_end, "after_failure": node.after_failure, "after_all": node.after_all,
        })
    };
    let mut fields = json!({
        "id": flow.id, "state": flow.state.name(), "created_ms": millis(flow.created),
        "ended_ms": flow.ended.map(millis), "counts": counts,
    });
    if !flow.nodes.is_empty() {
        fields["nodes"] = flow.nodes.iter().map(node).collect();
    }
    fields
}

fn utc(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or("-".into(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

fn none(queue: &str, id: &str, why: &str) -> Failure {
    let what = format!("flow {:?} of {:?}: {why}", plain(id), plain(queue));
    Failure::new("NoTask", exit::NO_TASK, what, "look with `stanchion flows ls`")
}
