//! Flows, the latest first: those that have not ended, then the others.

use crate::protocol::{ListFlows, ListFlowsReply, Place, QueueReply};
use crate::store::sqlite::queue::flow::{FLOW, Flow, kept_since};
use crate::store::sqlite::queue::view::Reading;

/// Flows in one answer at most.
const MOST: u32 = 100;

/// Like list_flows.lua.
pub(super) fn list_flows(reading: &Reading<'_>, request: &ListFlows) -> rusqlite::Result<QueueReply> {
    let max = usize::try_from(request.max.min(MOST)).unwrap_or(usize::MAX);
    let mut flows: Vec<(u8, Flow)> = Vec::new();
    for part in [Place::FLOWS, Place::FLOWS_ENDED] {
        let from = match &request.from {
            Some(from) if from.part > part => continue,
            Some(from) if from.part == part => Some(from),
            _ => None,
        };
        // One more shows whether there is a next page.
        let most = i64::try_from(max + 1 - flows.len()).unwrap_or(i64::MAX);
        flows.extend(page(reading, part, from, most)?.into_iter().map(|flow| (part, flow)));
    }
    let has_more = flows.len() > max;
    flows.truncate(max);
    let next = flows.last().filter(|_| has_more).map(|(part, flow)| place(*part, flow));
    let flows = flows.into_iter().map(|(_, flow)| flow.record(None)).collect();
    Ok(QueueReply::ListFlows(ListFlowsReply { flows, next }))
}

fn page(reading: &Reading<'_>, part: u8, from: Option<&Place>, most: i64) -> rusqlite::Result<Vec<Flow>> {
    let (time, state, least) = match part {
        Place::FLOWS => ("created", 1, i64::MIN),
        _ => ("ended", 2, kept_since(reading.now_ms)),
    };
    let score: i64 = from.and_then(|from| from.score.parse().ok()).unwrap_or(i64::MAX);
    let id = from.map_or_else(String::new, |from| String::from_utf8_lossy(&from.member).into_owned());
    let sql = format!(
        "{FLOW} WHERE queue = ?1 AND state = {state} AND {time} >= ?2 AND ({time}, id) < (?3, ?4)
         ORDER BY {time} DESC, id DESC LIMIT ?5"
    );
    let values = (reading.record.id, least, score, id, most);
    reading.connection.prepare_cached(&sql)?.query_map(values, Flow::read)?.collect()
}

fn place(part: u8, flow: &Flow) -> Place {
    let score = if part == Place::FLOWS { flow.created } else { flow.ended };
    Place { part, score: score.to_string().into(), member: flow.id.as_str().as_bytes().into() }
}
