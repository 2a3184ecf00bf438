//! The call slots of a client: they make a call idempotent, since a repetition has the same slot and number.

use std::sync::Mutex;

use crate::base::wake::locked;
use crate::protocol::{CallId, ClientId};

/// CallSlots that are not in use, each with the number of its last call, and how many there are in all.
#[derive(Debug)]
pub struct CallSlots {
    client: ClientId,
    state: Mutex<SlotsState>,
}

#[derive(Debug, Default)]
struct SlotsState {
    free: Vec<CallId>,
    made: u32,
}

impl CallSlots {
    /// The slots of a client that has made no call yet.
    pub fn new(client: ClientId) -> Self {
        Self { client, state: Mutex::default() }
    }

    /// A slot with the number of its last call. The caller counts on from there, and gives it back with
    /// the last number it used, unless a call of it may still be carried out after its caller has gone.
    pub fn take(&self) -> CallId {
        let mut state = locked(&self.state);
        state.free.pop().unwrap_or_else(|| {
            state.made += 1;
            CallId { client: self.client, slot: state.made, number: 0 }
        })
    }

    /// Takes a slot for one call.
    pub fn take_next(&self) -> CallId {
        let mut call = self.take();
        call.number += 1;
        call
    }

    /// Gives a slot back with the last number it used.
    pub fn give_back(&self, last: CallId) {
        locked(&self.state).free.push(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_user_at_a_time_and_counts_on() {
        let slots = CallSlots::new(ClientId(7));
        let (first, second) = (slots.take_next(), slots.take_next());
        assert_ne!(first.slot, second.slot);
        slots.give_back(first);
        let third = slots.take_next();
        assert_eq!((third.slot, third.number), (first.slot, 2));
    }
}
