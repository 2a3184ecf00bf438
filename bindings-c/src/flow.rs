//! Flows to put in: tasks of which some wait for others.

use std::ffi::c_char;
use std::mem::size_of;
use std::ptr;

use stanchion::{Flow, Node};

use crate::arguments::{option, stanchion_text, text};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::queue::{queue, texts};
use crate::records::{self, Record, needed, put};
use crate::task::stanchion_task;

/// What a node waits for of all others, but for those that wait for all themselves.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_after_all {
    /// Nothing.
    STANCHION_AFTER_ALL_NONE = 0,
    /// It runs when all have succeeded.
    STANCHION_AFTER_ALL_THEN = 1,
    /// It runs as soon as one has ended without success, once.
    STANCHION_AFTER_ALL_FAILED = 2,
    /// It runs when all have ended, whatever came of them, also if the flow is cancelled.
    STANCHION_AFTER_ALL_FINALLY = 3,
}

/// A task of a flow, and what it waits for: all of it, where there is more than one. Its name is the id of its task, which no
/// two nodes of a flow have; in its queue the task has the id `FLOW/NAME`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_node {
    /// sizeof, set by stanchion_node_init. The same for all nodes of an array.
    pub struct_size: usize,
    /// Its task. `delay_ms` counts from when it is put into its queue; `on_duplicate` is not for nodes.
    pub task: *const stanchion_task,
    /// The queue of the task, which has the same store and prefix. NULL: the flow's.
    pub queue: stanchion_text,
    /// Names of nodes after whose success it runs. If one ends otherwise, this one is skipped.
    pub after: *const stanchion_text,
    /// How many.
    pub after_count: usize,
    /// Names of nodes after whose end it runs, whatever came of them.
    pub after_end: *const stanchion_text,
    /// How many.
    pub after_end_count: usize,
    /// Names of nodes of which one must have ended without success: it is dead, was cancelled or removed, or was skipped because
    /// of another. If none of them comes to that, this one is not needed.
    pub after_failure: *const stanchion_text,
    /// How many.
    pub after_failure_count: usize,
    /// What it waits for of all others: a stanchion_after_all.
    pub after_all: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_node {
    const NAME: &'static str = "stanchion_node";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        task: ptr::null(),
        queue: stanchion_text::NONE,
        after: ptr::null(),
        after_count: 0,
        after_end: ptr::null(),
        after_end_count: 0,
        after_failure: ptr::null(),
        after_failure_count: 0,
        after_all: stanchion_after_all::STANCHION_AFTER_ALL_NONE as i32,
    };
}

/// Makes a node without a task, in the flow's queue, that waits for nothing. `struct_size` is sizeof *node. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_node_init(node: *mut stanchion_node, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(node, struct_size) });
}

impl stanchion_node {
    /// But for what it waits for of all others.
    ///
    /// # Safety
    /// The task, the texts and the arrays are as the header says.
    unsafe fn core(&self) -> Result<Node, Failure> {
        needed(self.task, "the task of a node")?;
        // SAFETY: as the caller promises.
        let (task, queue, after, after_end, after_failure) = unsafe {
            (
                records::read(self.task)?.core()?,
                option("queue", self.queue.data, self.queue.len)?,
                texts("after", self.after, self.after_count)?,
                texts("after_end", self.after_end, self.after_end_count)?,
                texts("after_failure", self.after_failure, self.after_failure_count)?,
            )
        };
        let mut node = after.into_iter().fold(Node::new(task), Node::after);
        node = after_end.into_iter().fold(node, Node::after_end);
        node = after_failure.into_iter().fold(node, Node::after_failure);
        Ok(match queue {
            Some(queue) => node.queue(queue),
            None => node,
        })
    }

    /// # Safety
    /// As for [`Self::core`].
    unsafe fn joined(&self, flow: Flow) -> Result<Flow, Failure> {
        use stanchion_after_all::{
            STANCHION_AFTER_ALL_FAILED, STANCHION_AFTER_ALL_FINALLY, STANCHION_AFTER_ALL_NONE,
            STANCHION_AFTER_ALL_THEN,
        };
        // SAFETY: as the caller promises.
        let node = unsafe { self.core() }?;
        let after_all = self.after_all;
        if after_all == STANCHION_AFTER_ALL_NONE as i32 {
            Ok(flow.node(node))
        } else if after_all == STANCHION_AFTER_ALL_THEN as i32 {
            Ok(flow.then(node))
        } else if after_all == STANCHION_AFTER_ALL_FAILED as i32 {
            Ok(flow.failed(node))
        } else if after_all == STANCHION_AFTER_ALL_FINALLY as i32 {
            Ok(flow.finally(node))
        } else {
            Err(Failure::invalid(format!("after_all {after_all} is no stanchion_after_all")))
        }
    }

    /// # Safety
    /// As for [`Self::core`].
    unsafe fn added(&self) -> Result<Node, Failure> {
        let after_all = self.after_all;
        if after_all != stanchion_after_all::STANCHION_AFTER_ALL_NONE as i32 {
            let message = format!("after_all is {after_all}: nodes that wait for all come with the flow");
            return Err(Failure::invalid(message));
        }
        // SAFETY: as the caller promises.
        unsafe { self.core() }
    }
}

/// Puts a flow in, whole: 10000 nodes at most, with 64 MiB of payloads in all. Its id is one that the queue has once: with the
/// longest name of its nodes and a slash 512 bytes at most, without control characters, and no slash in it. STANCHION_OK: it is new, and `was_put`
/// gets 1. STANCHION_DUPLICATE: the queue has one with this id, which stays as it is, and `was_put` gets 0; it may be NULL.
///
/// Whoever claims from the queue puts each task into its queue as soon as what it waits for has come about, also if that queue
/// is at its limit. Every flow ends: a task that can never run any more is skipped, and so on down. It is kept for 7 days after
/// its end, and of a queue the last 1000 that have ended are.
///
/// Errors: QUEUE_FULL if the queue has a limit and is at it; INVALID_ARGUMENT for a bad id, task or node, for nodes that wait for
/// each other, or for too many: nothing is sent then; otherwise as stanchion_queue_enqueue. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_enqueue_flow(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    nodes: *const stanchion_node,
    node_count: usize,
    was_put: *mut i32,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let flow = Flow::new(text("id", id, id_len)?);
            let nodes = records::all("nodes", nodes, node_count)?;
            let is_new = queue.enqueue_flow(nodes.iter().try_fold(flow, |flow, node| node.joined(flow))?)?;
            put(was_put, is_new.into());
            Ok(if is_new { 0 } else { stanchion_status::STANCHION_DUPLICATE as i32 })
        }
    })
}

/// Adds nodes to a flow that runs: 1000 at most, with 4 MiB of payloads, and none of them with `after_all`, for those come with
/// the flow. STANCHION_OK: it does. STANCHION_ABSENT: there is no such flow, or it has ended. As long as the caller's task is a
/// node of it, it runs. The new ones may come after nodes that are there, and those that wait for all wait for these, too.
///
/// Errors: as stanchion_queue_enqueue_flow. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_add_to_flow(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    nodes: *const stanchion_node,
    node_count: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let id = text("id", id, id_len)?;
            let nodes = records::all("nodes", nodes, node_count)?;
            let nodes = nodes.iter().map(|node| node.added()).collect::<Result<Vec<_>, _>>()?;
            Ok(or_absent(queue.add_to_flow(id, nodes)?))
        }
    })
}

/// The status of a call on a flow that there may be or not.
fn or_absent(is_there: bool) -> i32 {
    if is_there { 0 } else { stanchion_status::STANCHION_ABSENT as i32 }
}

/// Cancels a flow. STANCHION_OK: it is. STANCHION_ABSENT: there is none that runs. Tasks that wait go, those that run are told,
/// as by stanchion_queue_cancel, and of the nodes that are not in their queues only those still run that wait for nothing but the
/// end of others (STANCHION_AFTER_ALL_FINALLY). Sent once.
///
/// Errors: as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_cancel_flow(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        let (queue, id) = unsafe { (queue(client, queue_name, queue_len)?, text("id", id, id_len)?) };
        Ok(or_absent(queue.cancel_flow(id)?))
    })
}

/// Tries again what did not succeed in a flow: nodes that are dead, cancelled or skipped, with attempts starting again. Those
/// that succeeded do not run again. STANCHION_OK: it does. STANCHION_ABSENT: there is no such flow. Sent once.
///
/// Errors: as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_retry_flow(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        let (queue, id) = unsafe { (queue(client, queue_name, queue_len)?, text("id", id, id_len)?) };
        Ok(or_absent(queue.retry_flow(id)?))
    })
}
