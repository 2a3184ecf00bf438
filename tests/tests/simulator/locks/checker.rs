//! The invariants of a lock, checked as the history unfolds.

use std::collections::{HashMap, HashSet};

use stanchion::internals::{Moment, Token};
use stanchion::verbs::{AcquireReply, Fence, Permits, Reply, Request};

/// What happened so far on one lock.
#[derive(Default)]
pub struct Checker {
    /// Leases in the order they began at their owners.
    leases: Vec<Lease>,
    by_token: HashMap<String, usize>,
    /// Tokens whose leave or release was carried out at the store.
    ended: HashSet<String>,
    /// Tokens whose owners were told that the lease is gone.
    refused: HashSet<String>,
    /// The highest fence the protected resource has seen, of anybody and of those that had the lock for themselves.
    resource: Fence,
    resource_alone: Fence,
    /// When each token was first granted the lock at the store.
    granted_at: HashMap<String, Moment>,
    /// Moments at which somebody broke the lease at the store.
    breaks: Vec<Moment>,
}

struct Lease {
    fence: Fence,
    /// Of an exclusive lock: one of one.
    permits: Permits,
    /// When the store granted it: earlier than it began.
    granted: Moment,
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

    /// Whether the two cannot be held at the same time.
    fn bars(&self, other: &Self) -> bool {
        self.permits.weight + other.permits.weight > self.permits.limit
    }
}

type Checked = Result<(), String>;

impl Checker {
    /// A lease began at its owner.
    pub fn began(
        &mut self,
        now: Moment,
        token: &Token,
        fence: Fence,
        permits: Permits,
        deadline: Moment,
    ) -> Checked {
        if now >= deadline {
            return Err(format!("L5: a lease was returned with its deadline passed (fence {fence})"));
        }
        // The answer to an acquire may come when its lease has been broken already: nobody can tell its owner.
        let granted = self.granted_at.get(token.as_str()).copied().unwrap_or(now);
        let lease = Lease { fence, permits, granted, began: now, deadline, stopped: None };
        if !self.is_broken(&lease) {
            self.check_against_others(now, &lease)?;
        }
        self.by_token.insert(token.as_str().to_owned(), self.leases.len());
        self.leases.push(lease);
        Ok(())
    }

    fn check_against_others(&self, now: Moment, lease: &Lease) -> Checked {
        let mut taken = lease.permits.weight;
        for other in self.leases.iter().filter(|other| !self.is_broken(other)) {
            let bars = lease.bars(other);
            if other.fence == lease.fence || bars && other.fence > lease.fence {
                return Err(format!("L3: fence {} follows fence {}", lease.fence, other.fence));
            }
            if now < other.until() {
                taken += other.permits.weight;
                if taken > lease.permits.limit {
                    return Err(format!(
                        "L2: fence {} began while fence {} was still valid",
                        lease.fence, other.fence
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether somebody broke the lock's lease after this one was granted. Its owner may believe in it until
    /// its deadline; the fence protects.
    fn is_broken(&self, lease: &Lease) -> bool {
        self.breaks.iter().any(|at| *at >= lease.granted)
    }

    /// A lease's deadline moved.
    pub fn prolonged(&mut self, now: Moment, token: &Token, deadline: Moment) -> Checked {
        let Some(&index) = self.by_token.get(token.as_str()) else { return Ok(()) };
        let lease = &self.leases[index];
        let valid = |other: &&Lease| !self.is_broken(other) && now < other.until();
        let later = self.leases[index + 1..].iter().filter(valid);
        let taken: u32 = later.map(|other| other.permits.weight).sum();
        if lease.permits.weight + taken > lease.permits.limit && !self.is_broken(lease) {
            return Err(format!("L2: fence {} was prolonged while others were valid", lease.fence));
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

    /// An owner was told that its lease is gone.
    pub fn refused(&mut self, token: &Token) {
        self.refused.insert(token.as_str().to_owned());
    }

    /// An owner that believes in its lease writes to the protected resource.
    pub fn writes(&mut self, token: &Token, fence: Fence) -> Checked {
        if self.refused.contains(token.as_str()) {
            return Err(format!("L6: the owner of fence {fence} wrote after it was told of its loss"));
        }
        let alone =
            self.by_token.get(token.as_str()).is_none_or(|index| self.leases[*index].permits.excludes_all());
        let seen = if alone { self.resource } else { self.resource_alone };
        if fence < seen && self.breaks.is_empty() {
            return Err(format!("L1: a valid holder's fence {fence} came after {seen}"));
        }
        self.resource = self.resource.max(fence);
        if alone {
            self.resource_alone = self.resource_alone.max(fence);
        }
        Ok(())
    }

    /// A release was said to have succeeded: then nobody else's lease may have begun before it was sent.
    pub fn released(&self, token: &Token, first_sent: Moment) -> Checked {
        let Some(&index) = self.by_token.get(token.as_str()) else { return Ok(()) };
        let lease = &self.leases[index];
        let mut barred = self.leases[index + 1..].iter().filter(|other| lease.bars(other));
        match barred.find(|other| other.began < first_sent) {
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
            (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { .. })) => {
                self.granted_at.entry(acquire.token.as_str().to_owned()).or_insert(now);
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
