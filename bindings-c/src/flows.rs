//! Flows as they are found in a queue.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::{FlowInfo, FlowState, NodeState};

use crate::arguments::{NONE, option, stanchion_text, text, wall};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::nodes::{Found, stanchion_node_info};
use crate::queue::queue;
use crate::records::{self, Record, needed, put};

/// How a flow is.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_flow_state {
    /// In a way that this header does not know.
    STANCHION_FLOW_OTHERWISE = 0,
    /// Nodes wait, or are in their queues.
    STANCHION_FLOW_RUNNING = 1,
    /// All nodes have ended, and all that were to run have succeeded.
    STANCHION_FLOW_DONE = 2,
    /// All nodes have ended, and one that was to run did not succeed.
    STANCHION_FLOW_FAILED = 3,
    /// It was cancelled, and all nodes have ended.
    STANCHION_FLOW_CANCELLED = 4,
}

fn state_of(flow: &FlowInfo) -> i32 {
    let state = match flow.state {
        FlowState::Running => stanchion_flow_state::STANCHION_FLOW_RUNNING,
        FlowState::Done => stanchion_flow_state::STANCHION_FLOW_DONE,
        FlowState::Failed => stanchion_flow_state::STANCHION_FLOW_FAILED,
        FlowState::Cancelled => stanchion_flow_state::STANCHION_FLOW_CANCELLED,
        #[allow(unreachable_patterns, reason = "for states to come")]
        _ => stanchion_flow_state::STANCHION_FLOW_OTHERWISE,
    };
    state as i32
}

/// A flow as it is in a queue. Its text lives as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_flow_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Its id.
    pub id: stanchion_text,
    /// When it was put in, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was noted that its last node had ended, in milliseconds since 1970; -1 while it runs.
    pub ended_ms: i64,
    /// How many of its nodes wait for others.
    pub waiting: i64,
    /// How many are in their queues.
    pub put: i64,
    /// How many are in their queues, and were told to end.
    pub ending: i64,
    /// How many are done.
    pub done: i64,
    /// How many are dead.
    pub dead: i64,
    /// How many were cancelled.
    pub cancelled: i64,
    /// How many were skipped.
    pub skipped: i64,
    /// How many were not needed.
    pub unneeded: i64,
    /// How many of its nodes are known, for stanchion_flows_node_at: all, each behind those that it waits for; of a page none.
    pub node_count: usize,
    /// How it is: a stanchion_flow_state.
    pub state: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_flow_info {
    const NAME: &'static str = "stanchion_flow_info";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        id: stanchion_text::NONE,
        created_ms: NONE,
        ended_ms: NONE,
        waiting: 0,
        put: 0,
        ending: 0,
        done: 0,
        dead: 0,
        cancelled: 0,
        skipped: 0,
        unneeded: 0,
        node_count: 0,
        state: 0,
    };
}

impl stanchion_flow_info {
    fn of(Known { flow, nodes }: &Known) -> Self {
        let count = |state| flow.count(state).into();
        Self {
            id: stanchion_text::of(&flow.id),
            created_ms: wall(flow.created),
            ended_ms: flow.ended.map_or(NONE, wall),
            waiting: count(NodeState::Waiting),
            put: count(NodeState::Put),
            ending: count(NodeState::Ending),
            done: count(NodeState::Done),
            dead: count(NodeState::Dead),
            cancelled: count(NodeState::Cancelled),
            skipped: count(NodeState::Skipped),
            unneeded: count(NodeState::Unneeded),
            node_count: nodes.len(),
            state: state_of(flow),
            ..Self::DEFAULT
        }
    }
}

/// A list of flows. 0 is none.
pub type stanchion_flows = i64;

/// A flow, and its nodes with what programs see of them in another form.
struct Known {
    flow: FlowInfo,
    nodes: Vec<Found>,
}

struct Flows {
    flows: Vec<Known>,
    /// The next page, if this is one and not the last.
    next: Option<String>,
}

impl Kind for Flows {
    const NAME: &'static str = "list of flows";
}

impl Flows {
    fn new(flows: Vec<FlowInfo>, next: Option<String>) -> Self {
        let with_views = |mut flow: FlowInfo| {
            let nodes = std::mem::take(&mut flow.nodes).into_iter().map(Found::new).collect();
            Known { flow, nodes }
        };
        Self { flows: flows.into_iter().map(with_views).collect(), next }
    }
}

/// A flow with all its nodes, as a list of one. STANCHION_ABSENT: it is not known; `out` is not written.
///
/// Errors: as stanchion_queue_claim. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_get_flow(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    out: *mut stanchion_flows,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the flow")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            let found = queue(client, queue_name, queue_len)?.get_flow(text("id", id, id_len)?)?;
            let Some(found) = found else { return Ok(stanchion_status::STANCHION_ABSENT as i32) };
            put(out, handle::insert(Flows::new(vec![found], None))?);
        }
        Ok(0)
    })
}

/// The flows of the queue without their nodes: those that run, the latest first, then those that have ended; a page of at most
/// `max` (1 to 1000, and never more than 100). `page` is NULL first, then what stanchion_flows_next gave for the last one. `out`
/// gets the page, also if there is no flow in it.
///
/// Errors: as stanchion_queue_claim. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_list_flows(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    page: *const c_char,
    page_len: usize,
    max: usize,
    out: *mut stanchion_flows,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the flows")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let found = queue.list_flows(option("page", page, page_len)?, max)?;
            put(out, handle::insert(Flows::new(found.flows, found.next))?);
        }
        Ok(0)
    })
}

/// How many flows are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_flows_len(flows: stanchion_flows) -> usize {
    boundary::value(0, || handle::get::<Flows>(flows).map_or(0, |list| list.flows.len()))
}

/// One of the flows. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_flows_at(
    flows: stanchion_flows,
    index: usize,
    out: *mut stanchion_flow_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let list = handle::get::<Flows>(flows)?;
        let known = list.flows.get(index).ok_or_else(|| beyond(index, list.flows.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_flow_info::of(known)) }?;
        Ok(0)
    })
}

/// One of the nodes of one of the flows, each behind those that it waits for: `node` counts from 0. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_flows_node_at(
    flows: stanchion_flows,
    index: usize,
    node: usize,
    out: *mut stanchion_node_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let list = handle::get::<Flows>(flows)?;
        let nodes = &list.flows.get(index).ok_or_else(|| beyond(index, list.flows.len()))?.nodes;
        let found = nodes.get(node).ok_or_else(|| beyond(node, nodes.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &found.info()) }?;
        Ok(0)
    })
}

/// The page after this one, for stanchion_queue_list_flows; it lives as long as the handle of the list. STANCHION_ABSENT: this
/// was the last, or is no page; `out` is not written. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_flows_next(
    flows: stanchion_flows,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the next page")?;
        let list = handle::get::<Flows>(flows)?;
        let Some(next) = &list.next else { return Ok(stanchion_status::STANCHION_ABSENT as i32) };
        // SAFETY: the caller passes a place for a text.
        unsafe { put(out, stanchion_text::of(next)) };
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_flows_free(flows: stanchion_flows) {
    boundary::value((), || drop(handle::take::<Flows>(flows)));
}
