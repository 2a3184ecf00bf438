//! The calls about flows.

use std::sync::Arc;

use crate::base::error::{Error, ErrorKind};
use crate::base::name::{QueueName, TaskId};
use crate::engine::flow::{Graph, NodeName, NodeState, Plan, Rounds, read_names};
use crate::protocol::{
    CallId, FlowRecord, ListFlows, MAX_REQUEST_BYTES, Message, NODES_BATCH, NodeEvent, NodeOf, Place,
    PostMessages, PutFlow, PutFlowReply, QueueReply, QueueRequest, QueueVerb, ReadNodes, ReadNodesReply,
    Request,
};
use crate::queue::flow::{Flow, Node};
use crate::queue::flow_info::{FlowInfo, FlowInput, FlowPage};
use crate::queue::flow_plan::{Nodes, parts};
use crate::queue::queue_calls::{Ask, QueueCalls};
use crate::queue::queue_options::checked_count;
use crate::session::Live;

/// Flows on a page at most.
const PAGE_MOST: usize = 100;

impl QueueCalls {
    /// The requests that put a flow in, one after the other.
    pub(crate) fn flow_parts(&self, flow: &Flow) -> Result<Vec<PutFlow>, Error> {
        let checked = || {
            let (id, mut nodes) = (TaskId::of_flow(&flow.id)?, Nodes::none());
            let new = nodes.add(&id, &flow.nodes, &self.name)?;
            self.check_queues(&nodes.names)?;
            Ok(parts(&id, token()?, 0, new, nodes.stored(), None))
        };
        checked().map_err(|error: Error| error.rather_during("enqueue_flow", &self.name))
    }

    /// The request that adds nodes to a flow as it was found and that has not ended; `None` if all are there.
    pub(crate) fn added(&self, found: &FlowRecord, nodes: &[Node]) -> Result<Option<PutFlow>, Error> {
        let checked = || {
            let mut all = nodes_of(found)?;
            let nodes: Vec<Node> = nodes.iter().filter(|node| !all.has(node, &self.name)).cloned().collect();
            if nodes.is_empty() {
                return Ok(None);
            }
            let first = all.names.len();
            let new = all.add(&found.id, &nodes, &self.name)?;
            self.check_queues(&all.names[first..])?;
            let bytes: usize = new.iter().map(|node| node.body.len()).sum();
            if new.len() > NODES_BATCH || bytes > MAX_REQUEST_BYTES {
                return Err(Error::invalid(format!(
                    "at most {NODES_BATCH} nodes with {MAX_REQUEST_BYTES} bytes of payloads are added at once"
                )));
            }
            Ok(parts(&found.id, token()?, first, new, all.stored(), Some(found.version)).pop())
        };
        checked().map_err(|error: Error| error.rather_during("add_to_flow", &self.name))
    }

    fn check_queues(&self, names: &[NodeName]) -> Result<(), Error> {
        let mut queues = names.iter().filter_map(|name| name.1.as_deref());
        queues.try_for_each(|queue| self.session.queue_name(queue).map(drop))
    }

    pub(crate) fn put_flow(&self, put: PutFlow) -> Result<Ask<PutFlowReply>, Error> {
        self.ask(QueueVerb::PutFlow(put), |reply| match reply {
            QueueReply::PutFlow(reply) => Some(reply),
            _ => None,
        })
    }

    pub(crate) fn flow_full(&self, id: &str) -> Error {
        let message = format!("the queue is at its limit; flow {id:?} was not accepted");
        Error::new(ErrorKind::QueueFull, message).during("enqueue_flow", &self.name)
    }

    pub(crate) fn flow_is_coming(&self, id: &str) -> Error {
        let message =
            format!("another call is putting flow {id:?} in; if that one has died, try again after a minute");
        Error::new(ErrorKind::StoreUnavailable, message).during("enqueue_flow", &self.name)
    }

    pub(crate) fn flow_in_pieces(&self, id: &str) -> Error {
        let message =
            format!("the first parts of flow {id:?} are gone before the last one came; enqueue it again");
        Error::new(ErrorKind::StoreUnavailable, message).during("enqueue_flow", &self.name)
    }

    pub(crate) fn find_flow(
        &self,
        operation: &'static str,
        id: &str,
    ) -> Result<Ask<Option<FlowRecord>>, Error> {
        let id = TaskId::of_flow(id).map_err(|error| error.during(operation, &self.name))?;
        self.ask(QueueVerb::GetFlow(id), |reply| match reply {
            QueueReply::GetFlow(flow) => Some(flow.map(|flow| *flow)),
            _ => None,
        })
    }

    pub(crate) fn flow_info(&self, record: &FlowRecord) -> Result<FlowInfo, Error> {
        FlowInfo::read(record).ok_or_else(|| unknown(record.id.as_str()).during("get_flow", &self.name))
    }

    pub(crate) fn list_flows(&self, from: Option<&str>, max: usize) -> Result<Ask<FlowPage>, Error> {
        let list = page(from, max).map_err(|error| error.during("list_flows", &self.name))?;
        self.ask(QueueVerb::ListFlows(list), |reply| match reply {
            QueueReply::ListFlows(reply) => Some(reply.into()),
            _ => None,
        })
    }

    /// A message about a whole flow.
    pub(crate) fn post_to_flow(&self, flow: TaskId, event: NodeEvent) -> Result<Ask<()>, Error> {
        let of = NodeOf { flow, node: 0, home: None };
        let message = Message { number: 0, event, of, retries: 0, result: None };
        let post = PostMessages { source: None, messages: Arc::new([message]) };
        let ask = self
            .ask(QueueVerb::PostMessages(post), |reply| (reply == QueueReply::PostMessages).then_some(()))?;
        // A repetition could concern what was put in or tried again meanwhile.
        Ok(ask.once())
    }

    /// Works the outbox off, one request after the other.
    pub(crate) fn stepping(&self) -> Result<Stepping, Error> {
        let live = Arc::clone(self.session.live()?);
        Ok(Stepping { rounds: Rounds::new(self.checked()?), slot: live.slots.take(), live })
    }
}

/// One question to the queue that a task's flow is in.
fn ask_home<T>(
    live: &Arc<Live>,
    home: &QueueName,
    verb: QueueVerb,
    read: impl FnOnce(QueueReply) -> Option<T> + Send + 'static,
) -> Ask<T> {
    let machine = live.call(Request::Queue(QueueRequest { queue: home.clone(), verb }));
    Ask::new(Arc::clone(live), machine, read)
}

/// The flow of a task.
pub(crate) fn flow_at_home(live: &Arc<Live>, home: &QueueName, of: &NodeOf) -> Ask<Option<FlowRecord>> {
    ask_home(live, home, QueueVerb::GetFlow(of.flow.clone()), |reply| match reply {
        QueueReply::GetFlow(flow) => Some(flow.map(|flow| *flow)),
        _ => None,
    })
}

/// Requests that work an outbox off.
pub(crate) struct Stepping {
    live: Arc<Live>,
    slot: CallId,
    pub(crate) rounds: Rounds,
}

impl Stepping {
    /// The next one, to whatever queue it is.
    pub(crate) fn next(&mut self) -> Option<Ask<QueueReply>> {
        let (queue, verb) = self.rounds.request(&mut self.slot)?;
        let machine = self.live.call(Request::Queue(QueueRequest { queue, verb }));
        Some(Ask::new(Arc::clone(&self.live), machine, Some))
    }
}

impl Drop for Stepping {
    fn drop(&mut self) {
        // If a call was not answered: the slot's next number makes a late copy of it void.
        self.live.slots.give_back(self.slot);
    }
}

/// Of each node that was asked for, if it gave one.
type Results = Vec<Option<Arc<[u8]>>>;

/// What comes before a node of a flow.
pub(crate) struct Inputs {
    flow: TaskId,
    /// Their numbers, as far as their results have not been read.
    left: Vec<u32>,
    found: Vec<FlowInput>,
    states: Vec<(String, NodeState)>,
}

impl Inputs {
    /// Those that the node was told to come after, in that order; if it comes after all, those.
    pub(crate) fn new(record: &FlowRecord, node: u32) -> Option<Self> {
        let all = nodes_of(record).ok()?;
        let own = all.graph.nodes.get(node as usize)?;
        let mut left: Vec<u32> = own.after.iter().map(|(other, _)| *other).collect();
        if own.after_all.is_some() {
            let others = (0..).zip(&all.graph.nodes).filter(|(_, other)| other.after_all.is_none());
            left.extend(
                others
                    .map(|(number, _)| number)
                    .filter(|number| !own.after.iter().any(|row| row.0 == *number)),
            );
        }
        let states =
            all.names.into_iter().zip(all.plan.nodes()).map(|(name, state)| (name.0, *state)).collect();
        Some(Self { flow: record.id.clone(), left, found: Vec::new(), states })
    }

    /// Asks for the results of the next ones; `None` if there are none.
    pub(crate) fn next(&self, live: &Arc<Live>, home: &QueueName) -> Option<Ask<Results>> {
        let some = self.left.get(..self.left.len().min(NODES_BATCH)).filter(|some| !some.is_empty())?;
        let read = ReadNodes { flow: self.flow.clone(), nodes: some.into(), results: true };
        Some(ask_home(live, home, QueueVerb::ReadNodes(read), |reply| match reply {
            QueueReply::ReadNodes(ReadNodesReply::Results(results)) if !results.is_empty() => Some(results),
            _ => None,
        }))
    }

    /// The answer.
    pub(crate) fn read(&mut self, results: Results) {
        let count = results.len().min(self.left.len());
        for (number, result) in self.left.drain(..count).zip(results) {
            let Some((node, state)) = self.states.get(number as usize).cloned() else { continue };
            self.found.push(FlowInput { node, state, result });
        }
    }

    pub(crate) fn found(self) -> Vec<FlowInput> {
        self.found
    }
}

fn nodes_of(record: &FlowRecord) -> Result<Nodes, Error> {
    let read = || {
        let kept = record.plan.as_ref()?;
        let (names, graph) = (read_names(&kept.names)?, Graph::read(&kept.graph)?);
        let mut plan = Plan::read(&kept.states)?;
        plan.grow(names.len());
        Some(Nodes { names, graph, plan })
    };
    read().ok_or_else(|| unknown(record.id.as_str()))
}

fn unknown(id: &str) -> Error {
    let message = format!("flow {id:?} was written by a newer version: this one does not understand it");
    Error::new(ErrorKind::Unsupported, message)
}

/// 64 random bits.
fn token() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Internal, "the system's random source failed").with_source(error)
    })?;
    Ok(u64::from_le_bytes(bytes))
}

fn page(from: Option<&str>, max: usize) -> Result<ListFlows, Error> {
    let max = checked_count("max", max)?.min(PAGE_MOST as u32);
    let place = |text: &str| {
        Place::parse(text)
            .filter(|place| matches!(place.part, Place::FLOWS | Place::FLOWS_ENDED))
            .ok_or_else(|| Error::invalid(format!("page {text:?} is not what a listing of flows gave")))
    };
    Ok(ListFlows { from: from.map(place).transpose()?, max })
}

/// The queue that a task's flow is in.
pub(crate) fn home_of(queue: &QueueName, of: &NodeOf) -> QueueName {
    of.home.as_ref().map_or_else(|| queue.clone(), |home| queue.sibling(home))
}
