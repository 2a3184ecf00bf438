//! What an acquire of several locks is asked for, and what it results in.

use crate::base::token::Token;
use crate::engine::acquire::{AcquireParams, ForeignHolder, Grant, LockPlan};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SeveralParams {
    /// At least one, in the order of their names; all with the same token, ttl and wait.
    pub locks: Vec<AcquireParams>,
    /// Of each the foreign value that was in the way of an earlier call.
    pub foreign_holders: Vec<Option<ForeignHolder>>,
    /// Whether the store can take them all in one step.
    pub in_one_step: bool,
}

impl SeveralParams {
    /// That of the first, for what is the same for all.
    pub(super) fn plan(&self) -> &LockPlan {
        &self.locks[0].plan
    }
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Several {
    /// All are ours.
    Granted {
        /// The token of all of them.
        token: Token,
        /// One for each, in their order.
        grants: Vec<Grant>,
    },
    /// A try found one of them busy; none is ours.
    Busy,
}
