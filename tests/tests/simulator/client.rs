//! A simulated client: what a driver and a keeper do, with every reply on its own way.

use stanchion::engine::acquire::AcquireMachine;
use stanchion::engine::call::CallMachine;
use stanchion::engine::lease::LeaseState;
use stanchion::engine::leased::LockLease;
use stanchion::internals::{Moment, Token};
use stanchion::verbs::{Fence, Request};
use stanchion::wake::Place;

/// Which of a client's calls a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Op(u64),
    Renewal(u64),
    Errand(u64),
}

/// One process with a client in it.
pub struct SimClient {
    /// Which life: messages to an earlier one are lost.
    pub life: u32,
    /// Nothing in it runs before this.
    pub frozen_until: Moment,
    /// Drops a reply that comes after the driver has given up on it, as the real drivers do; otherwise the
    /// engine gets it, however late.
    pub drops_late_replies: bool,
    pub op: Option<Op>,
    pub lease: Option<SimLease>,
    pub errands: Vec<Errand>,
    pub turns: u32,
    next_id: u64,
}

/// A call of the user in progress.
pub struct Op {
    pub id: u64,
    pub kind: OpKind,
    /// Sendings whose reply is awaited, and until when.
    pub awaited: Vec<(u32, Moment)>,
}

pub enum OpKind {
    Acquire { machine: AcquireMachine, place: Place, token: Token, renews: bool, ttl_ms: u64 },
    Release { machine: CallMachine, token: Token, fence: Fence, deadline: Moment, first_sent: Moment },
    Break { machine: CallMachine },
}

/// A lease in use.
pub struct SimLease {
    pub id: u64,
    pub state: LeaseState,
    pub lock: LockLease,
    /// When its owner wants to be done with it.
    pub ends: Moment,
    /// The renewal on its way: its number, when it was sent, when it is given up.
    pub renewal: Option<(u32, Moment, Moment)>,
    pub renewals: u32,
}

/// A clean-up in the background.
pub struct Errand {
    pub id: u64,
    pub request: Request,
    pub sent: u32,
    pub awaited_until: Option<Moment>,
    pub until: Moment,
}

impl SimClient {
    pub fn new(drops_late_replies: bool, turns: u32) -> Self {
        Self {
            life: 0,
            frozen_until: Moment::from_nanos(0),
            drops_late_replies,
            op: None,
            lease: None,
            errands: Vec::new(),
            turns,
            next_id: 0,
        }
    }

    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Forgets everything, as a killed process does.
    pub fn die(&mut self) -> Option<SimLease> {
        self.life += 1;
        self.op = None;
        self.errands.clear();
        self.lease.take()
    }

    pub fn is_idle(&self) -> bool {
        self.op.is_none() && self.lease.is_none()
    }
}
