//! Look at nodes of a flow, or at what came of them.

use crate::protocol::{MAX_REPLY_BYTES, NODES_BATCH, QueueReply, ReadNodes, ReadNodesReply};
use crate::store::sqlite::queue::flow::Flow;
use crate::store::sqlite::queue::node::{node, node_result};
use crate::store::sqlite::queue::view::Reading;

/// Like read_nodes.lua.
pub(super) fn read_nodes(reading: &Reading<'_>, request: &ReadNodes) -> rusqlite::Result<QueueReply> {
    let (connection, queue) = (reading.connection, reading.record.id);
    let flow = Flow::begun(connection, queue, &request.flow, reading.now_ms)?.map(|flow| flow.serial);
    let reply = if request.results {
        let read = |number| flow.map_or(Ok(None), |flow| node_result(connection, queue, flow, number));
        ReadNodesReply::Results(as_many_as_fit(&request.nodes, read, |result| result.len())?)
    } else {
        let read = |number| flow.map_or(Ok(None), |flow| node(connection, queue, flow, number));
        ReadNodesReply::Nodes(as_many_as_fit(&request.nodes, read, |node| node.body.len())?)
    };
    Ok(QueueReply::ReadNodes(reply))
}

fn as_many_as_fit<T>(
    numbers: &[u32],
    read: impl Fn(u32) -> rusqlite::Result<Option<T>>,
    size: impl Fn(&T) -> usize,
) -> rusqlite::Result<Vec<Option<T>>> {
    let (mut answers, mut bytes) = (Vec::new(), 0);
    for number in numbers.iter().take(NODES_BATCH) {
        let answer = read(*number)?;
        bytes += answer.as_ref().map_or(0, &size);
        if bytes > MAX_REPLY_BYTES && !answers.is_empty() {
            break;
        }
        answers.push(answer);
    }
    Ok(answers)
}
