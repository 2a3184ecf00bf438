//! A simulated client: what a driver and a keeper do, with every reply on its own way.

use stanchion::engine::acquire::AcquireMachine;
use stanchion::engine::call::CallMachine;
use stanchion::engine::lease::LeaseState;
use stanchion::engine::leased::LockLease;
use stanchion::engine::release::Company;
use stanchion::internals::{Moment, Token};
use stanchion::verbs::{Fence, Permits};
use stanchion::wake::Place;

/// What a client does at the moment.
#[derive(Default)]
pub struct SimClient {
    pub op: Option<Op>,
    pub lease: Option<SimLease>,
}

/// A call of the user in progress.
pub struct Op {
    pub id: u64,
    pub kind: OpKind,
    /// Sendings whose reply is awaited, and until when.
    pub awaited: Vec<(u32, Moment)>,
}

pub enum OpKind {
    Acquire {
        machine: AcquireMachine,
        place: Place,
        token: Token,
        permits: Option<Permits>,
        renews: bool,
        ttl_ms: u64,
    },
    Release {
        machine: CallMachine,
        token: Token,
        fence: Fence,
        company: Company,
        deadline: Moment,
        first_sent: Moment,
    },
    Break {
        machine: CallMachine,
    },
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

impl SimClient {
    pub fn is_idle(&self) -> bool {
        self.op.is_none() && self.lease.is_none()
    }
}
