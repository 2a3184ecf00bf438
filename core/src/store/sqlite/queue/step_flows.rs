//! Work messages off: all of it, or, if any of them or of the flows is not as it was read, nothing.

use std::collections::HashMap;

use crate::protocol::{
    FLOW_AGE, FlowStep, NewNode, NewTask, NodeEvent, NodeOf, OnDuplicate, QueueReply, StepFlows,
};
use crate::store::sqlite::numbers::stored;
use crate::store::sqlite::queue::cancel::cancel_one;
use crate::store::sqlite::queue::enqueue::enqueue_one;
use crate::store::sqlite::queue::flow::{Flow, FlowState};
use crate::store::sqlite::queue::node::{node, node_name};
use crate::store::sqlite::queue::outbox::mark_of;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

/// Like step_flows.lua.
pub(super) fn step_flows(work: &mut Work<'_>, request: &StepFlows) -> rusqlite::Result<QueueReply> {
    let Some(through) = worked_off(work, request) else { return Ok(QueueReply::StepFlows(false)) };
    if !are_as_read(work, &request.flows)? {
        return Ok(QueueReply::StepFlows(false));
    }
    if let Some(through) = through {
        keep_results(work, through)?;
        work.drop_messages(through)?;
    }
    work.record.outbox.last_step = work.now_ms;
    for step in request.flows.iter() {
        step_one(work, step)?;
    }
    Ok(QueueReply::StepFlows(true))
}

/// Up to which message all go, if any; `None` if the outbox is not as it was read.
fn worked_off(work: &Work<'_>, request: &StepFlows) -> Option<Option<i64>> {
    if request.first == 0 {
        return Some(None);
    }
    let outbox = work.record.outbox;
    if outbox.first() != Some(stored(request.first)) {
        return None;
    }
    match stored(request.through) {
        _ if request.through.checked_add(1) == Some(request.first) => Some(None),
        through if request.through >= request.first && through <= outbox.last => Some(Some(through)),
        _ => None,
    }
}

fn are_as_read(work: &Work<'_>, steps: &[FlowStep]) -> rusqlite::Result<bool> {
    for step in steps {
        if work.begun_flow(&step.id)?.is_none_or(|flow| flow.version != step.version) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What came of nodes of this queue's flows stays with them.
fn keep_results(work: &mut Work<'_>, through: i64) -> rusqlite::Result<()> {
    let results: Vec<(i64, String, i64)> = work.step.few(
        "SELECT serial, mark, length(body) FROM outbox
         WHERE queue = ?1 AND number <= ?2 AND event = ?3 AND body IS NOT NULL ORDER BY number",
        &[&work.record.id, &through, &NodeEvent::Done.number()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut flows: HashMap<String, Option<Flow>> = HashMap::new();
    for (serial, mark, size) in results {
        let of = mark_of(&mark);
        if of.home.is_some() {
            continue;
        }
        let id = of.flow.as_str();
        if !flows.contains_key(id) {
            flows.insert(id.to_owned(), work.begun_flow(&of.flow)?);
        }
        if let Some(Some(flow)) = flows.get_mut(id) {
            work.keep_node_result(flow, of.node, serial, size)?;
        }
    }
    for flow in flows.values().flatten() {
        let set = "UPDATE flow SET results = ?2 WHERE serial = ?1";
        work.step.change(set, &[&flow.serial, &flow.results])?;
    }
    Ok(())
}

fn step_one(work: &mut Work<'_>, step: &FlowStep) -> rusqlite::Result<()> {
    let Some(flow) = work.begun_flow(&step.id)? else { return Ok(()) };
    let (state, ended) = match (flow.state, step.ended) {
        (FlowState::Live, true) => {
            work.record.flows.live -= 1;
            work.record.flows.ended += 1;
            work.look_at_flows(work.now_ms + millis(FLOW_AGE) + 1);
            (FlowState::Ended, work.now_ms)
        }
        (FlowState::Ended, false) => {
            work.record.flows.live += 1;
            work.record.flows.ended -= 1;
            (FlowState::Live, 0)
        }
        (state, _) => (state, flow.ended),
    };
    let version = work.next_version();
    work.step.change(
        "UPDATE flow SET state = ?2, ended = ?3, version = ?4, summary = ?5, states = ?6 WHERE serial = ?1",
        &[&flow.serial, &(state as i64), &ended, &version, &&*step.summary, &&*step.states],
    )?;
    for number in &step.puts {
        put(work, &flow, *number)?;
    }
    for number in &step.cancels {
        if let Some(name) = node_name(work.step.connection, work.record.id, flow.serial, *number)? {
            cancel_one(work, NewNode::task_id(&flow.id, &name).as_str())?;
        }
    }
    if step.goes_on { work.post_begin(&flow.id) } else { Ok(()) }
}

/// Puts a node's task into this queue.
fn put(work: &mut Work<'_>, flow: &Flow, number: u32) -> rusqlite::Result<()> {
    let Some(node) = node(work.step.connection, work.record.id, flow.serial, number)? else { return Ok(()) };
    let task = NewTask {
        id: NewNode::task_id(&flow.id, &node.name),
        body: node.body,
        due: node.due,
        priority: node.priority,
        max_attempts: node.max_attempts,
        expires: node.expires,
        on_duplicate: OnDuplicate::Keep,
        key: node.key,
        node: Some(NodeOf { flow: flow.id.clone(), node: number, home: None }),
    };
    enqueue_one(work, &task)?;
    Ok(())
}
