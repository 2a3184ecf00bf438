//! The invariants of a lock, checked as the history unfolds.

use std::collections::{HashMap, HashSet};

use stanchion::internals::{Moment, Token};
use stanchion::verbs::{AcquireReply, Fence, Reply, Request};

/// What happened so far on one lock.
#[derive(Default)]
pub struct Checker {
    /// Leases in the order they began at their owners.
    leases: Vec<Lease>,
    by_token: HashMap<String, usize>,
    /// Tokens whose leave or release was carried out at the store.
    ended: HashSet<String>,
    /// The highest fence the protected resource has seen.
    resource: Fence,
    /// Moments at which somebody broke the lease at the store.
    breaks: Vec<Moment>,
}

struct Lease {
    token: String,
    fence: Fence,
    began: Moment,
    deadline: Moment,
    /// When its owner stopped using it: released, lost, crashed.
    stopped: Option<Moment>,
}

impl Lease {
    /// Until when its owner may have believed in it.
    fn until(&self) -> Moment {
        self.stopped.map_or(self.deadline, |stopped| stopped.min(self.deadline))
    }
}

type Checked = Result<(), String>;

impl Checker {
    /// A lease began at its owner.
    pub fn began(&mut self, now: Moment, token: &Token, fence: Fence, deadline: Moment) -> Checked {
        if now >= deadline {
            return Err(format!("L5: a lease was returned with its deadline passed (fence {fence})"));
        }
        for other in &self.leases {
            if other.fence >= fence {
                return Err(format!("L3: fence {fence} follows fence {}", other.fence));
            }
            let broken = self.breaks.iter().any(|at| *at >= other.began && *at <= now);
            if now < other.until() && !broken {
                return Err(format!("L2: fence {fence} began while fence {} was still valid", other.fence));
            }
        }
        self.by_token.insert(token.as_str().to_owned(), self.leases.len());
        self.leases.push(Lease { token: token.as_str().to_owned(), fence, began: now, deadline, stopped: None });
        Ok(())
    }

    /// A lease's deadline moved.
    pub fn prolonged(&mut self, now: Moment, token: &Token, deadline: Moment) -> Checked {
        let Some(&index) = self.by_token.get(token.as_str()) else { return Ok(()) };
        let later = self.leases[index + 1..].iter().any(|other| other.began <= now && now < other.until());
        let broken = self.breaks.iter().any(|at| *at >= self.leases[index].began);
        if later && !broken {
            return Err(format!("L2: fence {} was prolonged after a later grant", self.leases[index].fence));
        }
        self.leases[index].deadline = deadline;
        Ok(())
    }

    /// The owner stopped using its lease.
    pub fn stopped(&mut self, now: Moment, token: &Token) {
        if let Some(&index) = self.by_token.get(token.as_str()) {
            self.leases[index].stopped.get_or_insert(now);
        }
    }

    /// An owner that believes in its lease writes to the protected resource.
    pub fn writes(&mut self, now: Moment, fence: Fence) -> Checked {
        if fence < self.resource && self.breaks.is_empty() {
            return Err(format!("L1: a valid holder's fence {fence} came after {} at {now:?}", self.resource));
        }
        self.resource = self.resource.max(fence);
        Ok(())
    }

    /// A release was said to have succeeded: then nobody else's lease may have begun before it was sent.
    pub fn released(&self, token: &Token, first_sent: Moment) -> Checked {
        let Some(&index) = self.by_token.get(token.as_str()) else { return Ok(()) };
        match self.leases[index + 1..].iter().find(|other| other.began < first_sent) {
            Some(other) if self.breaks.is_empty() => {
                Err(format!("a release succeeded although fence {} had begun", other.fence))
            }
            _ => Ok(()),
        }
    }

    /// The store has carried out a request.
    pub fn performed(&mut self, now: Moment, request: &Request, reply: &Reply) -> Checked {
        match (request, reply) {
            (Request::Leave(leave), _) => {
                self.ended.insert(leave.token.as_str().to_owned());
            }
            (Request::BreakLease(_), Reply::BreakLease(true)) => self.breaks.push(now),
            (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { .. }))
                if self.ended.contains(acquire.token.as_str()) =>
            {
                return Err("a token that had left was granted the lock".into());
            }
            _ => {}
        }
        Ok(())
    }

    /// What the store says about the holder before and after a request of somebody else.
    pub fn untouched(before: Option<Fence>, after: Option<Fence>) -> Checked {
        match (before, after) {
            (Some(before), Some(after)) if before == after => Ok(()),
            (Some(before), _) => Err(format!("L4: another's request ended the grant with fence {before}")),
            (None, _) => Ok(()),
        }
    }

    /// How many leases began.
    pub fn count(&self) -> u64 {
        self.leases.len() as u64
    }
}
