//! What a task of a flow is given of those that it comes after.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;

use stanchion::FlowInput;

use crate::arguments::stanchion_text;
use crate::boundary;
use crate::claim::{Claim, stanchion_claim};
use crate::error::stanchion_error;
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::nodes::state_number;
use crate::records::{self, Record, needed, put};

/// What a task that comes after others is given of one of them. Its text and its bytes live as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_input {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// The node's name.
    pub node: stanchion_text,
    /// The result of its ack (stanchion_claim_ack_with). NULL if it gave none; an empty one is not NULL.
    pub result: *const c_void,
    /// How many bytes.
    pub result_len: usize,
    /// What has become of it: a stanchion_node_state.
    pub state: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_input {
    const NAME: &'static str = "stanchion_input";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        node: stanchion_text::NONE,
        result: ptr::null(),
        result_len: 0,
        state: 0,
    };
}

impl stanchion_input {
    fn of(input: &FlowInput) -> Self {
        let result = input.result.as_deref();
        Self {
            node: stanchion_text::of(&input.node),
            result: result.map_or(ptr::null(), |result| result.as_ptr().cast()),
            result_len: result.map_or(0, <[u8]>::len),
            state: state_number(input.state),
            ..Self::DEFAULT
        }
    }
}

/// A list of inputs. 0 is none.
pub type stanchion_inputs = i64;

struct Inputs(Vec<FlowInput>);

impl Kind for Inputs {
    const NAME: &'static str = "list of inputs";
}

/// What has become of the nodes that this task comes after, with the results that they gave, in the order in which it names them;
/// if it comes after all, of all. Of a flow 64 MiB of results are kept. `out` gets the list, also if there is nothing in it, as
/// for a task that is of no flow.
///
/// Errors: as stanchion_queue_claim. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_inputs(
    claim: stanchion_claim,
    out: *mut stanchion_inputs,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the inputs")?;
        let found = handle::get::<Claim>(claim)?.claim.inputs()?;
        let list = handle::insert(Inputs(found))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, list) };
        Ok(0)
    })
}

/// How many inputs are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_inputs_len(inputs: stanchion_inputs) -> usize {
    boundary::value(0, || handle::get::<Inputs>(inputs).map_or(0, |list| list.0.len()))
}

/// One of the inputs. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_inputs_at(
    inputs: stanchion_inputs,
    index: usize,
    out: *mut stanchion_input,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let list = handle::get::<Inputs>(inputs)?;
        let input = list.0.get(index).ok_or_else(|| beyond(index, list.0.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_input::of(input)) }?;
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_inputs_free(inputs: stanchion_inputs) {
    boundary::value((), || drop(handle::take::<Inputs>(inputs)));
}
