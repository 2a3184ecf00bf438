//! The invariants of a lock (L1 to L6 of `docs/FAULTS.md`), checked as the history unfolds.

use std::collections::{BTreeMap, BTreeSet};

use stanchion::internals::{Moment, Token};
use stanchion::protocol::{AcquireAllReply, AcquireReply, Fence, Permits, Reply, Request};

/// What happened so far on one lock.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// Leases in the order they began at their owners.
    leases: Vec<Lease>,
    by_token: BTreeMap<String, usize>,
    /// Tokens whose leave or release was carried out at the store.
    ended: BTreeSet<String>,
    /// Tokens whose owners were told that the lease is gone.
    refused: BTreeSet<String>,
    /// The highest fence the protected resource has seen, of anybody and of those that had the lock for themselves.
    resource: Fence,
    resource_alone: Fence,
    /// When each token was first granted the lock at the store.
    granted_at: BTreeMap<String, Moment>,
    /// Moments at which somebody broke the lease at the store.
    breaks: Vec<Moment>,
    /// With which fence; and those that were granted another later, to a copy that the network had made.
    fences: BTreeMap<String, Fence>,
    granted_again: BTreeSet<String>,
    /// Moments at which the store forgot who holds the lock, or lost its last writes.
    early_ends: Vec<Moment>,
    /// From when to when the store's writes were lost in a failover.
    lost_writes: Vec<(Moment, Moment)>,
}

#[derive(Clone, Debug)]
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
        let token = token.as_str().to_owned();
        let lease = Lease { fence, permits, granted, began: now, deadline, stopped: None };
        if !self.is_broken(&lease) {
            self.check_against_others(now, &lease)?;
        }
        self.by_token.insert(token, self.leases.len());
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

    /// Whether somebody broke the lock's lease after this one was granted, or the store did not keep it to its end. Its
    /// owner may believe in it until its deadline; the fence protects.
    fn is_broken(&self, lease: &Lease) -> bool {
        self.breaks.iter().chain(&self.early_ends).any(|at| *at >= lease.granted)
    }

    /// Whether the store has lost the grant in a failover.
    fn is_lost(&self, lease: &Lease) -> bool {
        self.lost_writes.iter().any(|(from, to)| *from <= lease.granted && lease.granted <= *to)
    }

    /// The store forgot who holds the lock: a fault that breaks L2.
    #[allow(dead_code, reason = "not in every program that has this checker")]
    pub fn ended_early(&mut self, now: Moment) {
        self.early_ends.push(now);
    }

    /// A replica without the writes since then has taken the store's place.
    #[allow(dead_code, reason = "not in every program that has this checker")]
    pub fn failed_over(&mut self, now: Moment, since: Moment) {
        self.ended_early(now);
        self.lost_writes.push((since, now));
        // It may not have heard of these.
        self.ended.clear();
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

    /// The owner gives back a part of its permits: from when it asks for that, it counts on the rest alone.
    #[allow(dead_code, reason = "not in every program that has this checker")]
    pub fn downgrades(&mut self, token: &Token, weight: u32) {
        if let Some(&index) = self.by_token.get(token.as_str()) {
            self.leases[index].permits.weight = weight;
        }
    }

    /// The owner hears that it has all permits now.
    #[allow(dead_code, reason = "not in every program that has this checker")]
    pub fn upgraded(&mut self, now: Moment, token: &Token, fence: Fence) -> Checked {
        let Some(&index) = self.by_token.get(token.as_str()) else { return Ok(()) };
        let valid = |other: &&Lease| !self.is_broken(other) && now < other.until();
        let others = self.leases.iter().enumerate().filter(|(number, _)| *number != index);
        if let Some(other) = others.map(|(_, lease)| lease).find(valid)
            && !self.is_broken(&self.leases[index])
        {
            return Err(format!("L2: fence {fence} has all permits while fence {} is valid", other.fence));
        }
        // As another lease, which bars those that this one did not.
        let lease = &mut self.leases[index];
        (lease.fence, lease.permits.weight, lease.began) = (fence, lease.permits.limit, now);
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
        let is_kept = self.breaks.is_empty() && self.early_ends.is_empty();
        if fence < seen && is_kept {
            return Err(format!("L1: a valid holder's fence {fence} came after {seen}"));
        }
        self.resource = self.resource.max(fence);
        if alone {
            self.resource_alone = self.resource_alone.max(fence);
        }
        Ok(())
    }

    /// A release was said to have succeeded: then nobody else's lease may have begun before it was sent. If the store did
    /// not keep the lease, it is in doubt when one of several copies was sent in vain, or one of the acquire came later; and
    /// of a lease whose grant was lost in a failover, which may have brought an older one back, no store can tell.
    pub fn released(&self, token: &Token, first_sent: Moment, has_copies: bool) -> Checked {
        let Some(&index) = self.by_token.get(token.as_str()) else { return Ok(()) };
        let lease = &self.leases[index];
        // One that was granted earlier may have been heard of later.
        let later = |other: &&Lease| lease.bars(other) && other.fence > lease.fence && !self.is_lost(other);
        let mut barred = self.leases[index + 1..].iter().filter(later);
        let has_copies = has_copies || self.granted_again.contains(token.as_str());
        let is_doubtful = has_copies && self.is_broken(lease);
        match barred.find(|other| other.began < first_sent) {
            Some(other) if self.breaks.is_empty() && !is_doubtful => {
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
            (Request::AcquireAll(acquire), Reply::AcquireAll(AcquireAllReply::Granted(_))) => {
                self.granted_at.entry(acquire.token.as_str().to_owned()).or_insert(now);
            }
            (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { .. }))
                if self.ended.contains(acquire.token.as_str()) =>
            {
                return Err("a token that had left was granted the lock".into());
            }
            (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { fence, .. })) => {
                let token = acquire.token.as_str().to_owned();
                if *self.fences.entry(token.clone()).or_insert(*fence) != *fence {
                    self.granted_again.insert(token);
                }
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
