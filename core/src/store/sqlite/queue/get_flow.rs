//! One flow, with its plan.

use crate::base::name::TaskId;
use crate::protocol::{FlowPlan, QueueReply};
use crate::store::sqlite::queue::flow::Flow;
use crate::store::sqlite::queue::view::Reading;

/// Like get_flow.lua.
pub(super) fn get_flow(reading: &Reading<'_>, id: &TaskId) -> rusqlite::Result<QueueReply> {
    let found = Flow::begun(reading.connection, reading.record.id, id, reading.now_ms)?;
    let Some(flow) = found else { return Ok(QueueReply::GetFlow(None)) };
    let plan = plan(reading, &flow)?;
    Ok(QueueReply::GetFlow(Some(Box::new(flow.record(Some(plan))))))
}

fn plan(reading: &Reading<'_>, flow: &Flow) -> rusqlite::Result<FlowPlan> {
    reading
        .connection
        .prepare_cached(
            "SELECT graph, names, states FROM flow JOIN flow_plan ON flow_plan.flow = serial WHERE serial = ?1",
        )?
        .query_row([flow.serial], |row| {
            Ok(FlowPlan {
                graph: row.get_ref(0)?.as_blob()?.into(),
                names: row.get_ref(1)?.as_blob()?.into(),
                states: row.get_ref(2)?.as_blob()?.into(),
                summary: (&*flow.summary).into(),
            })
        })
}
