//! What the replies of several servers mean together. No I/O: a vote returns whom to ask next, and is passed the replies.

use std::time::Duration;

use crate::base::error::ErrorKind;
use crate::protocol::{
    Absence, Acquire, AcquireReply, Extend, ExtendReply, Failure, FailureKind, Fence, HeldAs, HolderReply,
    Leave, Obstacle, Release, ReleaseReply, Reply, Request, Resume, ResumeReply,
};

/// How soon a waiter asks again, at least and at most: there are no hints, and asking costs every server a call.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(60));
/// The same after several have tried at once and none had a majority. Chance decides who is first then.
const SPLIT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(30));
/// The life that raising a fence asks for: it never shortens the one there is.
const NO_LONGER: Duration = Duration::from_millis(1);

/// A request, and the numbers of the servers that get it.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) request: Request,
    pub(super) to: Vec<usize>,
}

/// What to do after the answers to a round.
#[derive(Debug)]
pub(super) enum Next {
    Ask(Round),
    Done(Decision),
}

/// The answer of all together.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) reply: Result<Reply, Failure>,
    /// Requests to send later to servers that did not answer. Only for tokens that no acquire uses any more: a late request
    /// would end a lease of such a token.
    pub(super) debts: Vec<(usize, Request)>,
}

/// The answers to one round, by the numbers of the servers.
pub(super) type Answers = Vec<(usize, Result<Reply, Failure>)>;

/// One request to all servers, until its answer is clear.
#[derive(Debug)]
pub(super) struct Vote {
    request: Request,
    count: usize,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Counting,
    /// The lock is a majority's; its fence is being written to those with a smaller one.
    Raising(Majority),
    /// Too few have granted it; it is given back to them.
    GivingBack(Result<AcquireReply, Failure>, Vec<usize>),
    /// A majority has prolonged the lease so far; servers that have forgotten it are taking it again.
    TakingAgain(Vec<Duration>),
}

/// Those who granted the lock.
#[derive(Debug)]
struct Majority {
    fence: Fence,
    all: Vec<usize>,
    /// What is left of the lease on those that have the fence.
    lives: Vec<Duration>,
}

/// More than half.
pub(super) fn quorum(count: usize) -> usize {
    count / 2 + 1
}

impl Vote {
    pub(super) fn new(request: Request, count: usize) -> (Self, Round) {
        let round = Round { request: request.clone(), to: (0..count).collect() };
        (Self { request, count, phase: Phase::Counting }, round)
    }

    pub(super) fn next(&mut self, answers: Answers) -> Next {
        match std::mem::replace(&mut self.phase, Phase::Counting) {
            Phase::Counting => self.count(answers),
            Phase::Raising(majority) => self.raised(majority, answers),
            Phase::GivingBack(reply, silent) => Next::Done(self.given_back(reply, silent, &answers)),
            Phase::TakingAgain(mut lives) => {
                lives.extend(answers.iter().filter_map(|(_, answer)| extended(answer)));
                Next::Done(self.prolonged(lives).into())
            }
        }
    }

    fn count(&mut self, answers: Answers) -> Next {
        match &self.request {
            Request::Acquire(acquire) => {
                let acquire = acquire.clone();
                self.acquire(&acquire, answers)
            }
            Request::Resume(resume) => {
                let resume = resume.clone();
                self.resume(&resume, answers)
            }
            Request::Extend(extend) => {
                let extend = extend.clone();
                self.extend(&extend, answers)
            }
            Request::Release(release) => Next::Done(self.release(answers, release)),
            Request::Leave(_) => {
                let debts = silent(&answers).map(|server| (server, self.request.clone())).collect();
                Next::Done(Decision { reply: Ok(Reply::Leave), debts })
            }
            Request::Holder(_) => Next::Done(self.holder(answers).into()),
            Request::BreakLease(_) => Next::Done(self.break_lease(&answers).into()),
            // No server keeps a line.
            Request::Waiters(_) => Next::Done(Ok(Reply::Waiters(Vec::new())).into()),
            Request::Downgrade(_)
            | Request::Upgrade(_)
            | Request::AcquireAll(_)
            | Request::StoreValue(_)
            | Request::Invalidate(_)
            | Request::Take(_)
            | Request::GiveBack(_)
            | Request::Queue(_) => Next::Done(Err(unsupported()).into()),
        }
    }

    fn needed(&self) -> usize {
        quorum(self.count)
    }

    /// Whether so many are enough to keep the others from being a majority.
    fn blocks(&self, count: usize) -> bool {
        count > self.count - self.needed()
    }

    fn acquire(&mut self, acquire: &Acquire, answers: Answers) -> Next {
        let mut grants = Vec::new();
        let mut refusals = Vec::new();
        for (server, answer) in &answers {
            match answer {
                Ok(Reply::Acquire(AcquireReply::Granted { fence, ttl })) => {
                    grants.push((*server, *fence, *ttl));
                }
                Ok(Reply::Acquire(AcquireReply::Waiting(obstacle) | AcquireReply::Busy(obstacle))) => {
                    refusals.push(obstacle.clone());
                }
                Ok(_) => refusals.push(Obstacle { remaining: None, unexpiring: None, rank: 0 }),
                Err(_) => {}
            }
        }
        if grants.len() >= self.needed() {
            return self.raise(grants);
        }
        let granted: Vec<_> = grants.iter().map(|(server, ..)| *server).collect();
        let silent: Vec<_> = silent(&answers).collect();
        let reply = match self.blocks(refusals.len()) {
            true => Ok(self.refused(acquire, &refusals, granted.len())),
            false => Err(self.shortage(&answers)),
        };
        if granted.is_empty() {
            return Next::Done(self.given_back(reply, silent, &[]));
        }
        self.phase = Phase::GivingBack(reply, silent);
        Next::Ask(Round { request: give_back(acquire), to: granted })
    }

    /// A lock that a majority has granted: all of them are to have the same fence, the highest of theirs. Each later
    /// majority meets one of them, and goes above it.
    fn raise(&mut self, grants: Vec<(usize, Fence, Duration)>) -> Next {
        let fence = grants.iter().map(|(_, fence, _)| *fence).max().unwrap_or(Fence::NONE);
        let (have, lack): (Vec<_>, Vec<_>) = grants.into_iter().partition(|(_, theirs, _)| *theirs == fence);
        let lives: Vec<_> = have.iter().map(|(.., ttl)| *ttl).collect();
        if lives.len() >= self.needed() {
            return Next::Done(Ok(self.held(fence, lives)).into());
        }
        let to: Vec<_> = lack.into_iter().map(|(server, ..)| server).collect();
        let all = have.into_iter().map(|(server, ..)| server).chain(to.iter().copied()).collect();
        self.phase = Phase::Raising(Majority { fence, all, lives });
        Next::Ask(Round { request: self.with_fence(fence), to })
    }

    /// The request that writes a fence where the lock is the token's.
    fn with_fence(&self, fence: Fence) -> Request {
        match &self.request {
            Request::Resume(Resume { name, new, owner, .. }) => Request::Acquire(Acquire {
                name: name.clone(),
                permits: None,
                token: new.clone(),
                ttl: NO_LONGER,
                min_fence: fence,
                waiter: None,
                patience: None,
                owner: owner.clone(),
                adopt: None,
                early: 0.0,
                looks: false,
            }),
            Request::Acquire(acquire) => {
                Request::Acquire(Acquire { min_fence: fence, waiter: None, adopt: None, ..acquire.clone() })
            }
            other => other.clone(),
        }
    }

    fn raised(&mut self, majority: Majority, answers: Answers) -> Next {
        let Majority { fence, all, mut lives } = majority;
        for (_, answer) in &answers {
            // A larger one means that the lock was not the token's any more, and is again: perhaps after another's.
            if let Ok(Reply::Acquire(AcquireReply::Granted { fence: theirs, ttl })) = answer
                && *theirs == fence
            {
                lives.push(*ttl);
            }
        }
        if lives.len() >= self.needed() {
            return Next::Done(Ok(self.held(fence, lives)).into());
        }
        match &self.request {
            Request::Acquire(acquire) => {
                let soon = Obstacle { remaining: Some(draw(SPLIT)), unexpiring: None, rank: 0 };
                let reply = match acquire.waiter {
                    Some(_) => AcquireReply::Waiting(soon),
                    None => AcquireReply::Busy(soon),
                };
                let request = give_back(acquire);
                self.phase = Phase::GivingBack(Ok(reply), silent(&answers).collect());
                Next::Ask(Round { request, to: all })
            }
            _ => Next::Done(Err(self.shortage(&answers)).into()),
        }
    }

    /// The lock is ours, for as long as a majority has it.
    fn held(&self, fence: Fence, lives: Vec<Duration>) -> Reply {
        let ttl = majority_has(lives, self.needed());
        match self.request {
            Request::Resume(_) => Reply::Resume(ResumeReply::Resumed { fence, ttl, permits: None }),
            _ => Reply::Acquire(AcquireReply::Granted { fence, ttl }),
        }
    }

    /// The answer to who cannot have the lock now.
    fn refused(&self, acquire: &Acquire, refusals: &[Obstacle], granted: usize) -> AcquireReply {
        // Those that are silent may never be free.
        let mut lives: Vec<_> = refusals.iter().map(|it| it.remaining.unwrap_or(Duration::MAX)).collect();
        lives.extend(vec![Duration::ZERO; granted]);
        lives.resize(self.count, Duration::MAX);
        lives.sort_unstable();
        let free_in = lives[self.needed() - 1];
        let remaining = (free_in != Duration::MAX).then_some(free_in);
        let unexpiring = refusals.iter().map(|it| &it.unexpiring).find(|digest| {
            digest.is_some() && self.blocks(refusals.iter().filter(|it| it.unexpiring == **digest).count())
        });
        let obstacle = Obstacle { remaining, unexpiring: unexpiring.cloned().flatten(), rank: 0 };
        let hopeless = acquire.patience.is_some_and(|patience| free_in > patience);
        if acquire.waiter.is_none() || hopeless {
            return AcquireReply::Busy(obstacle);
        }
        let pause = draw(if granted > 0 { SPLIT } else { POLL });
        AcquireReply::Waiting(Obstacle { remaining: Some(free_in.min(pause)), ..obstacle })
    }

    /// After the lock was given back where it was granted, or was granted nowhere.
    fn given_back(
        &self,
        reply: Result<AcquireReply, Failure>,
        mut unsure: Vec<usize>,
        answers: &[(usize, Result<Reply, Failure>)],
    ) -> Decision {
        let Request::Acquire(acquire) = &self.request else { return Err(unsupported()).into() };
        let lost = answers.iter().find_map(|(_, answer)| answer.as_ref().err().filter(|it| it.may_be_done()));
        if acquire.waiter.is_some() || reply.is_err() {
            // A release that comes late would end what a later try of this token is granted: so it has no later try.
            let reply = match lost {
                Some(failure) => Err(Failure::new(FailureKind::Spent, failure.message.clone())),
                None => reply.map(Reply::Acquire),
            };
            return reply.into();
        }
        unsure.extend(answers.iter().filter(|(_, answer)| answer.is_err()).map(|(server, _)| *server));
        let cleanup =
            leave(Leave { name: acquire.name.clone(), token: acquire.token.clone(), foreign_share: false });
        let debts = unsure.into_iter().map(|server| (server, cleanup.clone())).collect();
        Decision { reply: reply.map(Reply::Acquire), debts }
    }

    fn resume(&mut self, resume: &Resume, answers: Answers) -> Next {
        let mut resumed = Vec::new();
        let mut absences = Vec::new();
        for (server, answer) in &answers {
            match answer {
                Ok(Reply::Resume(ResumeReply::Resumed { fence, ttl, .. })) => {
                    resumed.push((*server, *fence, *ttl));
                }
                Ok(Reply::Resume(ResumeReply::Gone(absence))) => absences.push(absence.clone()),
                _ => {}
            }
        }
        if resumed.len() >= self.needed() {
            return self.raise(resumed);
        }
        if !self.blocks(absences.len()) {
            return Next::Done(Err(self.shortage(&answers)).into());
        }
        let cleanup =
            leave(Leave { name: resume.name.clone(), token: resume.new.clone(), foreign_share: false });
        let rest = resumed.iter().map(|(server, ..)| *server).chain(silent(&answers));
        let debts = rest.map(|server| (server, cleanup.clone())).collect();
        let absence = self.majority_says(absences);
        Next::Done(Decision { reply: Ok(Reply::Resume(ResumeReply::Gone(absence))), debts })
    }

    fn extend(&mut self, extend: &Extend, answers: Answers) -> Next {
        let mut lives = Vec::new();
        let mut absences = Vec::new();
        let mut rest = Vec::new();
        let mut forgotten_by = Vec::new();
        for (server, answer) in &answers {
            match answer {
                Ok(Reply::Extend(ExtendReply::Extended(left))) => {
                    lives.push(*left);
                    rest.push(*server);
                }
                Ok(Reply::Extend(ExtendReply::Gone(absence))) => {
                    absences.push(absence.clone());
                    forgotten_by.push(*server);
                }
                _ => rest.push(*server),
            }
        }
        // One server that knows that the lease was broken is enough: others may have taken it again meanwhile.
        let broken = |absence: &&Absence| {
            extend.granted.as_ref().is_some_and(|granted| granted.fence == absence.broken)
        };
        let broken = absences.iter().find(broken).cloned();
        if broken.is_none() && lives.len() >= self.needed() {
            if forgotten_by.is_empty() || extend.granted.is_none() {
                return Next::Done(self.prolonged(lives).into());
            }
            self.phase = Phase::TakingAgain(lives);
            let request = Request::Extend(Extend { again: true, ..extend.clone() });
            return Next::Ask(Round { request, to: forgotten_by });
        }
        if broken.is_none() && !self.blocks(absences.len()) {
            return Next::Done(Err(self.shortage(&answers)).into());
        }
        // What is left of it is in others' way.
        let cleanup =
            leave(Leave { name: extend.name.clone(), token: extend.token.clone(), foreign_share: false });
        let debts = rest.into_iter().map(|server| (server, cleanup.clone())).collect();
        let absence = broken.unwrap_or_else(|| self.majority_says(absences));
        Next::Done(Decision { reply: Ok(Reply::Extend(ExtendReply::Gone(absence))), debts })
    }

    /// The lease goes on for as long as a majority has it.
    fn prolonged(&self, lives: Vec<Duration>) -> Result<Reply, Failure> {
        Ok(Reply::Extend(ExtendReply::Extended(majority_has(lives, self.needed()))))
    }

    fn release(&self, answers: Answers, release: &Release) -> Decision {
        let mut released = 0;
        let mut absences = Vec::new();
        for (_, answer) in &answers {
            match answer {
                Ok(Reply::Release(ReleaseReply::Released)) => released += 1,
                Ok(Reply::Release(ReleaseReply::Gone(absence))) => absences.push(absence.clone()),
                _ => {}
            }
        }
        let reply = if released >= self.needed() {
            Ok(Reply::Release(ReleaseReply::Released))
        } else if released + absences.len() < self.needed() {
            // It is sent again: as long as a majority is silent, the lock cannot be another's.
            return Err(self.shortage(&answers)).into();
        } else if released > 0 && !self.blocks(absences.len()) {
            let message =
                "it was released, but too few servers answer to know whether a majority still held it";
            Err(Failure::new(FailureKind::Final(ErrorKind::Indeterminate), message))
        } else {
            Ok(Reply::Release(ReleaseReply::Gone(self.majority_says(absences))))
        };
        let cleanup = leave(Leave {
            name: release.name.clone(),
            token: release.token.clone(),
            foreign_share: release.foreign_share,
        });
        Decision { reply, debts: silent(&answers).map(|server| (server, cleanup.clone())).collect() }
    }

    /// The holder that a majority returns, or may return if the silent ones agree.
    fn holder(&self, answers: Answers) -> Result<Reply, Failure> {
        let mut groups: Vec<Vec<HolderReply>> = Vec::new();
        let mut answered = 0;
        for (_, answer) in &answers {
            let Ok(Reply::Holder(holders)) = answer else { continue };
            answered += 1;
            for holder in holders {
                let same = |group: &&mut Vec<HolderReply>| is_same(&group[0], holder);
                match groups.iter_mut().find(same) {
                    Some(group) => group.push(holder.clone()),
                    None => groups.push(vec![holder.clone()]),
                }
            }
        }
        if answered < self.needed() {
            return Err(self.shortage(&answers));
        }
        let silent = self.count - answered;
        let group = groups.into_iter().max_by_key(Vec::len).filter(|it| it.len() + silent >= self.needed());
        let told = group.map(|mut group| {
            group.sort_by_key(|holder| std::cmp::Reverse(holder.remaining.unwrap_or(Duration::MAX)));
            group.swap_remove(self.needed().min(group.len()) - 1)
        });
        Ok(Reply::Holder(told.into_iter().collect()))
    }

    fn break_lease(&self, answers: &Answers) -> Result<Reply, Failure> {
        let broken = |(_, answer): &(usize, Result<Reply, Failure>)| match answer {
            Ok(Reply::BreakLease(broken)) => Some(*broken),
            _ => None,
        };
        let told: Vec<_> = answers.iter().filter_map(broken).collect();
        if told.len() < self.needed() {
            return Err(self.shortage(answers));
        }
        Ok(Reply::BreakLease(told.contains(&true)))
    }

    /// What at least a majority knows of a lease that has ended; of fewer answers, the least.
    fn majority_says(&self, mut absences: Vec<Absence>) -> Absence {
        absences.sort_by_key(|absence| std::cmp::Reverse((absence.fence, absence.broken)));
        let place = self.needed().min(absences.len()).saturating_sub(1);
        absences.into_iter().nth(place).unwrap_or_default()
    }

    fn breaks(&self) -> bool {
        matches!(self.request, Request::BreakLease(_))
    }

    /// Too few replies to decide.
    fn shortage(&self, answers: &Answers) -> Failure {
        let failures: Vec<_> = answers.iter().filter_map(|(_, answer)| answer.as_ref().err()).collect();
        let finals: Vec<_> = failures.iter().filter(|it| matches!(it.kind, FailureKind::Final(_))).collect();
        let kind = match finals.first() {
            Some(failure) if self.blocks(finals.len()) => failure.kind,
            _ if failures.iter().any(|failure| failure.may_be_done()) => FailureKind::Lost,
            // A few have carried it out. Said again, it would break the next lease.
            _ if self.breaks() && answers.iter().any(|(_, answer)| answer.is_ok()) => FailureKind::Lost,
            _ => FailureKind::NotSent,
        };
        let cause = finals.first().copied().or(failures.first()).map_or("", |failure| &*failure.message);
        let message = format!(
            "{} of {} servers answer, and {} must: {cause}",
            self.count - failures.len(),
            self.count,
            self.needed()
        );
        Failure::new(kind, message)
    }
}

impl From<Result<Reply, Failure>> for Decision {
    fn from(reply: Result<Reply, Failure>) -> Self {
        Self { reply, debts: Vec::new() }
    }
}

/// Why a lock is not exclusive, or a queue, is refused before anything is sent.
pub(super) fn unsupported() -> Failure {
    let message = "a quorum of servers has exclusive locks only: a semaphore, a cached value or a queue that is \
                   counted by majorities would not be safe; use one server, Sentinel or a cluster";
    Failure::new(FailureKind::Final(ErrorKind::Unsupported), message)
}

fn extended(answer: &Result<Reply, Failure>) -> Option<Duration> {
    match answer {
        Ok(Reply::Extend(ExtendReply::Extended(left))) => Some(*left),
        _ => None,
    }
}

fn silent(answers: &Answers) -> impl Iterator<Item = usize> {
    answers.iter().filter(|(_, answer)| answer.is_err()).map(|(server, _)| *server)
}

fn leave(leave: Leave) -> Request {
    Request::Leave(leave)
}

/// Ends a grant without ending the token: the same call may try again.
fn give_back(acquire: &Acquire) -> Request {
    Request::Release(Release {
        name: acquire.name.clone(),
        token: acquire.token.clone(),
        cooldown: None,
        acquire_resent: false,
        own_fence: None,
        foreign_share: false,
    })
}

fn is_same(one: &HolderReply, other: &HolderReply) -> bool {
    let leased = matches!(one.held_as, HeldAs::Lease | HeldAs::Offer);
    one.held_as == other.held_as && (!leased || one.fence == other.fence)
}

/// How long so many of them last at least.
fn majority_has(mut lives: Vec<Duration>, needed: usize) -> Duration {
    lives.sort_unstable_by_key(|life| std::cmp::Reverse(*life));
    lives.get(needed - 1).copied().unwrap_or_default()
}

fn draw((least, most): (Duration, Duration)) -> Duration {
    least + (most - least).mul_f64(fastrand::f64())
}

// Its servers are stores in memory.
#[cfg(all(test, feature = "sqlite"))]
mod tests;
