//! What a lease is on: a lock, or a task.

use std::time::Duration;

use crate::engine::release::{is_forgotten, known_loss};
use crate::name::{LockName, QueueName, TaskId};
use crate::token::Token;
use crate::verbs::{
    Absence, Extend, ExtendClaim, ExtendClaimReply, ExtendReply, Fence, Leave, QueueReply, QueueRequest,
    QueueVerb, Receipt, Reply, Request,
};

use super::lease::LossReason;

/// What a lease is on, with what proves that it is ours.
#[derive(Clone, Debug)]
pub enum Leased {
    /// A lock.
    Lock(LockLease),
    /// A delivery of a task.
    Task(TaskLease),
}

/// A granted lock.
#[derive(Clone, Debug)]
pub struct LockLease {
    /// Which lock.
    pub name: LockName,
    /// The secret.
    pub token: Token,
    /// The number.
    pub fence: Fence,
    /// Whether another copy of the acquire may be on its way.
    pub acquire_resent: bool,
    /// As in [`Leave`].
    pub foreign_share: bool,
}

/// A claimed task.
#[derive(Clone, Debug)]
pub struct TaskLease {
    /// Of which queue.
    pub queue: QueueName,
    /// Which task.
    pub id: TaskId,
    /// The delivery.
    pub receipt: Receipt,
}

/// What an answer to an extension says.
#[derive(Debug)]
pub(super) enum Extension {
    Extended(Duration),
    Ended(LossReason),
}

impl Leased {
    /// The name of the lock or of the task's queue.
    pub fn name(&self) -> &str {
        match self {
            Self::Lock(lock) => lock.name.as_str(),
            Self::Task(task) => task.queue.as_str(),
        }
    }

    /// The request that prolongs it.
    pub(super) fn extend(&self, ttl: Duration) -> Request {
        match self {
            Self::Lock(lock) => {
                Request::Extend(Extend { name: lock.name.clone(), token: lock.token.clone(), ttl })
            }
            Self::Task(task) => Request::Queue(QueueRequest {
                queue: task.queue.clone(),
                verb: QueueVerb::ExtendClaim(ExtendClaim {
                    id: task.id.clone(),
                    receipt: task.receipt,
                    lease: ttl,
                }),
            }),
        }
    }

    /// The request that gives it back without asking for the truth. A task comes back by itself when its
    /// lease ends, and that counts as an attempt.
    pub fn farewell(&self) -> Option<Request> {
        match self {
            Self::Lock(lock) => Some(Request::Leave(Leave {
                name: lock.name.clone(),
                token: lock.token.clone(),
                foreign_share: lock.foreign_share,
            })),
            Self::Task(_) => None,
        }
    }

    /// Reads the answer to [`Leased::extend`].
    pub(super) fn extension(&self, reply: &Reply) -> Extension {
        match (self, reply) {
            (Self::Lock(_), Reply::Extend(ExtendReply::Extended(left))) => Extension::Extended(*left),
            (Self::Lock(lock), Reply::Extend(ExtendReply::Gone(absence))) => {
                Extension::Ended(reason(absence, lock.fence))
            }
            (Self::Task(_), Reply::Queue(QueueReply::ExtendClaim(reply))) => match reply {
                ExtendClaimReply::Extended(left) => Extension::Extended(*left),
                ExtendClaimReply::Expired => Extension::Ended(LossReason::Expired),
                ExtendClaimReply::Stale => Extension::Ended(LossReason::Taken),
                ExtendClaimReply::Gone => Extension::Ended(LossReason::Removed),
            },
            _ => Extension::Ended(LossReason::Refused),
        }
    }
}

/// Why a lock is no longer ours.
fn reason(absence: &Absence, fence: Fence) -> LossReason {
    match known_loss(absence, fence) {
        Some(_) if is_forgotten(absence, fence) => LossReason::Forgotten,
        Some(_) => LossReason::Broken,
        None if absence.fence > fence => LossReason::Taken,
        None => LossReason::Overwritten,
    }
}
