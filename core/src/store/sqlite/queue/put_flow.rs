//! Add a flow, or nodes to one.

use std::time::Duration;

use crate::base::name::TaskId;
use crate::protocol::{FLOW_DRAFT, FlowPlan, PutFlow, PutFlowReply, QueueReply, Version};
use crate::store::sqlite::queue::flow::{Flow, FlowState};
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

/// So long nobody else begins a flow of the same id.
const BUSY: Duration = Duration::from_secs(60);

/// Like put_flow.lua.
pub(super) fn put_flow(work: &mut Work<'_>, request: &PutFlow) -> rusqlite::Result<QueueReply> {
    let found = work.flow(&request.id)?;
    let reply = match request.adds_to {
        Some(version) => add(work, request, found, version)?,
        None => begin(work, request, found)?,
    };
    Ok(QueueReply::PutFlow(reply))
}

fn begin(work: &mut Work<'_>, request: &PutFlow, found: Option<Flow>) -> rusqlite::Result<PutFlowReply> {
    let token = request.token.cast_signed();
    let flow = match found {
        None if request.first > 0 => return Ok(PutFlowReply::Absent),
        None if work.record.is_full() => return Ok(PutFlowReply::Full),
        None => draft(work, &request.id, token)?,
        Some(flow) => {
            let is_draft = flow.state == FlowState::Draft;
            let is_busy = work.now_ms - flow.created < millis(BUSY);
            match flow.token == token {
                true if !is_draft => return Ok(PutFlowReply::Put),
                true if i64::from(request.first) > flow.nodes => return Ok(PutFlowReply::Absent),
                true => flow,
                false if !is_draft => return Ok(PutFlowReply::Exists),
                false if is_busy => return Ok(PutFlowReply::Stale),
                false if request.first > 0 => return Ok(PutFlowReply::Absent),
                false => {
                    work.drop_flow(flow.serial, flow.state)?;
                    draft(work, &request.id, token)?
                }
            }
        }
    };
    put(work, request, flow)
}

fn add(
    work: &mut Work<'_>,
    request: &PutFlow,
    found: Option<Flow>,
    version: Version,
) -> rusqlite::Result<PutFlowReply> {
    let Some(flow) = found.filter(|flow| flow.state == FlowState::Live) else {
        return Ok(PutFlowReply::Absent);
    };
    if flow.token == request.token.cast_signed() {
        return Ok(PutFlowReply::Put);
    }
    if flow.version != version {
        return Ok(PutFlowReply::Stale);
    }
    put(work, request, flow)
}

/// A flow without nodes, whose parts are coming.
fn draft(work: &mut Work<'_>, id: &TaskId, token: i64) -> rusqlite::Result<Flow> {
    // One of this id may have ended so long ago that nobody sees it any more.
    let unseen = "SELECT serial FROM flow WHERE queue = ?1 AND id = ?2";
    let unseen: Vec<i64> = work.step.few(unseen, &[&work.record.id, &id.as_str()], |row| row.get(0))?;
    for serial in unseen {
        work.drop_flow(serial, FlowState::Ended)?;
    }
    let created = work.now_ms;
    work.look_at_flows(created + millis(FLOW_DRAFT) + 1);
    let serial = work
        .step
        .connection
        .prepare_cached(
            "INSERT INTO flow (queue, id, state, token, version, created, ended, nodes, results, summary, states)
             VALUES (?1, ?2, 0, ?3, 0, ?4, 0, 0, 0, '', x'')",
        )?
        .insert((work.record.id, id.as_str(), token, created))?;
    Ok(Flow {
        serial,
        id: id.clone(),
        state: FlowState::Draft,
        token,
        version: Version::NONE,
        created,
        ended: 0,
        nodes: 0,
        results: 0,
        summary: "".into(),
    })
}

/// Keeps the nodes, and begins or goes on if the plan is there.
fn put(work: &mut Work<'_>, request: &PutFlow, mut flow: Flow) -> rusqlite::Result<PutFlowReply> {
    work.keep_nodes(&mut flow, request.first, &request.nodes)?;
    if let Some(plan) = &request.plan {
        keep_plan(work, request, &flow, plan)?;
        if flow.state == FlowState::Draft {
            work.record.flows.live += 1;
        }
        work.post_begin(&request.id)?;
    }
    Ok(PutFlowReply::Put)
}

fn keep_plan(work: &mut Work<'_>, request: &PutFlow, flow: &Flow, plan: &FlowPlan) -> rusqlite::Result<()> {
    let version = work.next_version();
    work.step.change(
        "UPDATE flow SET state = 1, token = ?2, version = ?3, summary = ?4, states = ?5 WHERE serial = ?1",
        &[&flow.serial, &request.token.cast_signed(), &version, &&*plan.summary, &&*plan.states],
    )?;
    work.step.change(
        "INSERT INTO flow_plan (flow, graph, names) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET graph = excluded.graph, names = excluded.names",
        &[&flow.serial, &&*plan.graph, &&*plan.names],
    )?;
    Ok(())
}
