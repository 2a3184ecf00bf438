//! A simulated client: what a driver and a keeper do, with every reply on its own way.

use stanchion::engine::Machine;
use stanchion::engine::acquire::AcquireMachine;
use stanchion::engine::call::CallMachine;
use stanchion::engine::lease::LeaseState;
use stanchion::engine::leased::{LockLease, Share};
use stanchion::engine::release::Company;
use stanchion::engine::several::SeveralMachine;
use stanchion::internals::{Moment, Token};
use stanchion::name::LockName;
use stanchion::protocol::{Failure, Fence, Permits, Reply, Request};
use stanchion::wake::Place;

/// What a client does at the moment.
#[derive(Default)]
pub struct SimClient {
    pub op: Option<Op>,
    /// Of several locks that are held together each has one.
    pub leases: Vec<SimLease>,
}

/// A call of the user in progress.
pub struct Op {
    pub id: u64,
    pub kind: OpKind,
    /// Sendings whose reply is awaited, and until when.
    pub awaited: Vec<(u32, Moment)>,
    /// Those that were asked for, and when the first was; and those that left.
    pub asked: Sendings,
    pub left: Sendings,
}

#[derive(Default)]
pub struct Sendings {
    pub count: u32,
    pub first: Option<Moment>,
}

impl Sendings {
    pub fn add(&mut self, now: Moment) {
        self.count += 1;
        self.first.get_or_insert(now);
    }
}

pub enum OpKind {
    Acquire {
        machine: AcquireMachine,
        place: Place,
        name: LockName,
        token: Token,
        permits: Option<Permits>,
        renews: bool,
        ttl_ms: u64,
    },
    Several {
        machine: SeveralMachine,
        place: Place,
        renews: bool,
        ttl_ms: u64,
    },
    Release {
        machine: CallMachine,
        name: LockName,
        token: Token,
        fence: Fence,
        company: Company,
        deadline: Moment,
    },
    Break {
        machine: CallMachine,
    },
    /// An owner gives back all permits but one, or wants all that there are.
    Change {
        machine: CallMachine,
        lease: u64,
        share: Share,
        upgrades: bool,
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
    /// Its owner is done with it; it is released when its turn comes.
    pub is_over: bool,
}

impl OpKind {
    pub fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        match self {
            Self::Acquire { machine, .. } => machine.reply(now, number, result),
            Self::Several { machine, .. } => machine.reply(now, number, result),
            Self::Release { machine, .. } | Self::Break { machine } | Self::Change { machine, .. } => {
                machine.reply(now, number, result);
            }
        }
    }

    pub fn abandon(&mut self) -> Option<Request> {
        match self {
            Self::Acquire { machine, .. } => machine.abandon(),
            Self::Several { machine, .. } => machine.abandon(),
            Self::Release { machine, .. } | Self::Break { machine } | Self::Change { machine, .. } => {
                machine.abandon()
            }
        }
    }

    /// Where its hints arrive, if it waits for any.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Acquire { place, .. } | Self::Several { place, .. } => Some(place),
            Self::Release { .. } | Self::Break { .. } | Self::Change { .. } => None,
        }
    }
}

impl SimClient {
    pub fn is_idle(&self) -> bool {
        self.op.is_none() && self.leases.is_empty()
    }
}
