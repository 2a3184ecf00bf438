//! A quorum: independent servers, each with its own copy of the lock. A lease is what a majority has granted.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::error::{Error, ErrorKind};
use crate::examine::{Finding, Health};
use crate::name::{LockKind, LockName, QueueName};
use crate::store::redis::RedisStore;
use crate::store::url::{QuorumPlace, RedisAddress, RedisPlace};
use crate::store::{Begun, Failure, FailureKind, Hear, Hints, Pending, Store, StoreConfig};
use crate::verbs::{AcquireReply, Extend, Fence, Reply, Request};
use crate::wake::locked;

mod forecast;
mod member;
mod vote;

use forecast::Forecast;
use member::Member;
use vote::{Answers, Next, Round, Verdict, Vote, quorum, unsupported};

/// How long opening a client waits for a server that does not answer.
const CHECK_WITHIN: Duration = Duration::from_secs(1);

/// Locks on a majority of independent servers.
pub struct QuorumStore {
    members: Vec<Arc<Member>>,
    clock: Clock,
    /// How long an answer of one server is waited for.
    node_timeout: Duration,
    /// How long a server that restarted stays out, and so how long a lease may last; zero if it takes part at once.
    rejoin_after: Duration,
    forecast: Forecast,
}

impl QuorumStore {
    /// A store that connects on first use.
    pub(crate) fn new(
        address: &RedisAddress,
        place: &QuorumPlace,
        config: &StoreConfig,
    ) -> Result<Self, Error> {
        let mut stores: Vec<(Arc<dyn Store>, String)> = Vec::new();
        for server in &place.servers {
            let place = RedisPlace::Member {
                server: server.clone(),
                tls: place.tls,
                rejoin_after: place.rejoin_after,
            };
            let member = RedisStore::new(&RedisAddress { place, ..address.clone() }, config)?;
            stores.push((Arc::new(member), server.to_string()));
        }
        Ok(Self::of(stores, place, config.clock.clone()))
    }

    /// A quorum of these.
    fn of(stores: Vec<(Arc<dyn Store>, String)>, place: &QuorumPlace, clock: Clock) -> Self {
        let member = |(store, place)| Member::new(store, place, clock.clone());
        Self {
            members: stores.into_iter().map(member).collect(),
            node_timeout: place.node_timeout,
            rejoin_after: place.rejoin_after,
            clock: clock.clone(),
            forecast: Forecast::default(),
        }
    }

    /// The vote on a request, if it is one that can be voted on. Nothing is sent before.
    fn vote(&self, request: &Request) -> Result<(Vote, Round, Fence), Failure> {
        if request.kind() != LockKind::Exclusive.name() || matches!(request, Request::AcquireAll(_)) {
            return Err(unsupported());
        }
        let mut proposed = 0;
        let mut request = request.clone();
        match &mut request {
            Request::Acquire(acquire) => {
                self.check_ttl(acquire.ttl)?;
                proposed = self.forecast.propose(&self.clock).max(acquire.min_fence);
                acquire.min_fence = proposed;
            }
            Request::Extend(Extend { ttl, .. }) => self.check_ttl(*ttl)?,
            _ => {}
        }
        let (vote, mut round) = Vote::new(request, self.members.len());
        if let Request::Acquire(acquire) = &mut round.request {
            // No server keeps a line: places in it would differ from server to server.
            acquire.waiter = None;
        }
        Ok((vote, round, proposed))
    }

    fn check_ttl(&self, ttl: Duration) -> Result<(), Failure> {
        if self.rejoin_after.is_zero() || ttl <= self.rejoin_after {
            return Ok(());
        }
        let message = format!(
            "a lease on a quorum may last {:?} at most, since a server that restarted stays out for so long; raise \
             rejoin_after in the URL",
            self.rejoin_after
        );
        Err(Failure::new(FailureKind::Final(ErrorKind::InvalidArgument), message))
    }

    /// Until when the servers' answers are awaited.
    fn patience(&self, until: Moment) -> Moment {
        until.min(self.clock.now() + self.node_timeout)
    }

    /// Sends a round to all of its servers at once, and hears them all.
    fn ask(&self, round: &Round, until: Moment) -> Answers {
        let until = self.patience(until);
        let returns = self.returns();
        let mut answers = Vec::with_capacity(self.members.len());
        let mut begun = Vec::with_capacity(self.members.len());
        let mut cold = Vec::new();
        let mut absent = Vec::new();
        for &number in &round.to {
            let member = &self.members[number];
            match member.absence() {
                Some(failure) => absent.push((number, Err(failure))),
                None => match member.store.begin(&round.request, until) {
                    Some(answer) => begun.push((number, answer)),
                    None => cold.push(number),
                },
            }
        }
        let mut heard = |begun: Vec<(usize, Begun<'_>)>| {
            for (number, answer) in begun {
                answers.push((number, answer()));
            }
        };
        if cold.is_empty() {
            heard(begun);
        } else {
            // Connections are made, or are asked whether they still work: that takes its time on each.
            let perform = |store: &Arc<dyn Store>| store.perform(&round.request, until);
            let results = self.at_once(&cold, perform, || heard(begun));
            answers.extend(cold.into_iter().zip(results));
        }
        answers.iter().for_each(|(number, answer)| self.members[*number].note(returns[*number], answer));
        // Not noted: meanwhile it may be back.
        answers.extend(absent);
        answers
    }

    /// Does something with several servers at the same time, and something else meanwhile.
    fn at_once<T: Send>(
        &self,
        numbers: &[usize],
        perform: impl Fn(&Arc<dyn Store>) -> T + Sync,
        meanwhile: impl FnOnce(),
    ) -> Vec<T> {
        let perform = &perform;
        thread::scope(|scope| {
            let start = |number: &usize| {
                let store = &self.members[*number].store;
                (store, thread::Builder::new().spawn_scoped(scope, move || perform(store)))
            };
            let started: Vec<_> = numbers.iter().map(start).collect();
            meanwhile();
            let finish = |(store, thread): (_, std::io::Result<thread::ScopedJoinHandle<'_, T>>)| {
                // Without a thread to spare, one after the other.
                thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| perform(store))
            };
            started.into_iter().map(finish).collect()
        })
    }

    async fn ask_async(&self, round: &Round, until: Moment) -> Answers {
        let until = self.patience(until);
        let returns = self.returns();
        let mut answers = Vec::with_capacity(self.members.len());
        let mut open = Vec::with_capacity(self.members.len());
        for &number in &round.to {
            let member = &self.members[number];
            match member.absence() {
                Some(failure) => answers.push((number, Err(failure))),
                None => open.push((number, member.store.perform_async(&round.request, until))),
            }
        }
        poll_fn(|context| {
            open.retain_mut(|(number, answer)| match answer.as_mut().poll(context) {
                Poll::Ready(result) => {
                    self.members[*number].note(returns[*number], &result);
                    answers.push((*number, result));
                    false
                }
                Poll::Pending => true,
            });
            if open.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        answers
    }

    /// The rounds that are left of a vote.
    fn go_on(&self, vote: &mut Vote, mut next: Next, until: Moment) -> Result<Reply, Failure> {
        loop {
            match next {
                Next::Ask(round) => next = vote.next(self.ask(&round, until)),
                Next::Done(verdict) => return self.conclude(verdict),
            }
        }
    }

    fn conclude(&self, verdict: Verdict) -> Result<Reply, Failure> {
        for (number, request) in verdict.debts {
            self.members[number].owe(request);
        }
        verdict.reply
    }

    fn learn(&self, asked: Moment, proposed: Fence, reply: &Result<Reply, Failure>) {
        if let Ok(Reply::Acquire(AcquireReply::Granted { fence, .. })) = reply {
            self.forecast.learn(&self.clock, asked, proposed, *fence);
        }
    }

    /// How often each server has come back.
    fn returns(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.returns()).collect()
    }

    fn all(&self) -> Vec<usize> {
        (0..self.members.len()).collect()
    }

    fn too_few(&self, answered: usize, last: &Failure) -> Failure {
        let (count, needed) = (self.members.len(), quorum(self.members.len()));
        let message = format!("{answered} of {count} servers answer, and {needed} must: {}", last.message);
        Failure::new(FailureKind::NotSent, message)
    }
}

impl Store for QuorumStore {
    fn perform(&self, request: &Request, until: Moment) -> Result<Reply, Failure> {
        let (mut vote, round, proposed) = self.vote(request)?;
        let asked = self.clock.now();
        let reply = self.go_on(&mut vote, Next::Ask(round), until);
        self.learn(asked, proposed, &reply);
        reply
    }

    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a> {
        Box::pin(async move {
            let (mut vote, mut round, proposed) = self.vote(request)?;
            let asked = self.clock.now();
            let reply = loop {
                match vote.next(self.ask_async(&round, until).await) {
                    Next::Ask(another) => round = another,
                    Next::Done(verdict) => break self.conclude(verdict),
                }
            };
            self.learn(asked, proposed, &reply);
            reply
        })
    }

    /// One round trip to each server, to all at the same time.
    fn perform_all(&self, requests: &[Request], until: Moment, hear: Hear<'_, Reply>) {
        let mut votes = Vec::new();
        let mut rounds = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            match self.vote(request) {
                Ok((vote, round, _)) => {
                    votes.push((number, vote, Answers::new()));
                    rounds.push(round.request);
                }
                Err(failure) => hear(number, Err(failure)),
            }
        }
        let returns = self.returns();
        let present: Vec<_> =
            self.all().into_iter().filter(|number| self.members[*number].absence().is_none()).collect();
        let patience = self.patience(until);
        let perform = |store: &Arc<dyn Store>| {
            let mut replies: Vec<_> = rounds.iter().map(|_| None).collect();
            store.perform_all(&rounds, patience, &mut |number, reply| replies[number] = Some(reply));
            replies
        };
        let results = self.at_once(&present, perform, || ());
        for (server, replies) in present.iter().zip(results) {
            for ((_, _, answers), reply) in votes.iter_mut().zip(replies) {
                let reply = reply.unwrap_or_else(|| Err(Failure::new(FailureKind::Lost, "no answer")));
                self.members[*server].note(returns[*server], &reply);
                answers.push((*server, reply));
            }
        }
        for (number, mut vote, mut answers) in votes {
            for server in self.all().into_iter().filter(|server| !present.contains(server)) {
                let absence = self.members[server].absence();
                let failure = absence.unwrap_or_else(|| Failure::new(FailureKind::NotSent, "it was away"));
                answers.push((server, Err(failure)));
            }
            let next = vote.next(answers);
            hear(number, self.go_on(&mut vote, next, until));
        }
    }

    /// Nobody is in line, so there is nothing to hear: waiters ask.
    fn listen(&self, _until: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        Ok(None)
    }

    fn check(&self, until: Moment) -> Result<(), Failure> {
        let patience = until.min(self.clock.now() + CHECK_WITHIN.max(self.node_timeout));
        let returns = self.returns();
        let results = self.at_once(&self.all(), |store| store.check(patience), || ());
        let mut answered = 0;
        let mut missing = None;
        for ((member, result), returns) in self.members.iter().zip(results).zip(returns) {
            member.note(returns, &result);
            match result {
                Ok(()) => answered += 1,
                // A server that is set up wrongly would be missed when another one fails.
                Err(failure @ Failure { kind: FailureKind::Final(_), .. }) => return Err(failure),
                Err(failure) => missing = Some(failure),
            }
        }
        match missing {
            Some(failure) if answered < quorum(self.members.len()) => Err(self.too_few(answered, &failure)),
            _ => Ok(()),
        }
    }

    fn examine(&self, until: Moment) -> Result<Vec<Finding>, Failure> {
        let count = self.members.len();
        let results = self.at_once(&self.all(), |store| store.examine(self.patience(until)), || ());
        let answered = results.iter().filter(|result| result.is_ok()).count();
        let promise = "the lock is safe while fewer than half of the servers fail";
        let found = format!("{answered} of {count} servers answer, {} must", quorum(count));
        let finding = Finding::good("quorum", promise, found);
        let mut findings = vec![match answered {
            _ if answered == count && count.is_multiple_of(2) => finding.but(
                Health::Warning,
                "an even number bears no more failures than one server less; use 3 or 5",
            ),
            _ if answered == count => finding,
            _ if answered < quorum(count) => {
                finding.but(Health::Bad, "too few for any lock; start the others")
            }
            _ => finding.but(Health::Warning, "start the others before one more fails"),
        }];
        findings.push(self.rejoining());
        for (member, result) in self.members.iter().zip(results) {
            let place = &member.place;
            match result {
                Ok(told) => findings.extend(told.into_iter().map(|finding| {
                    let found = format!("{place}: {}", finding.found);
                    // Queues, of which these promises are, are not kept here.
                    let about_tasks = matches!(finding.what, "persistence" | "clock");
                    let advice = finding.advice.filter(|_| !about_tasks);
                    let health = if about_tasks { Health::Good } else { finding.health };
                    Finding { found, advice, health, ..finding }
                })),
                Err(failure) => findings.push(
                    Finding::good("server", promise, format!("{place} does not answer"))
                        .but(Health::Warning, failure.message),
                ),
            }
        }
        Ok(findings)
    }

    fn close_inherited(&self) {
        self.members.iter().for_each(|member| member.store.close_inherited());
    }

    /// All names in one page: each is on several servers, and is told once.
    fn list(&self, kind: LockKind, _cursor: u64, until: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        let names = Mutex::new(BTreeMap::new());
        let all = |store: &Arc<dyn Store>| {
            let mut page = 0;
            loop {
                let (next, found) = store.list(kind, page, until)?;
                locked(&names).extend(found.into_iter().map(|name| (name.as_str().to_owned(), name)));
                match next {
                    0 => return Ok(()),
                    next => page = next,
                }
            }
        };
        let results: Vec<Result<(), Failure>> = self.at_once(&self.all(), all, || ());
        let answered = results.iter().filter(|result| result.is_ok()).count();
        match results.into_iter().find_map(Result::err) {
            Some(failure) if answered < quorum(self.members.len()) => Err(self.too_few(answered, &failure)),
            _ => {
                let names = std::mem::take(&mut *locked(&names));
                Ok((0, names.into_values().collect()))
            }
        }
    }

    fn list_queues(&self, _cursor: u64, _until: Moment) -> Result<(u64, Vec<QueueName>), Failure> {
        Err(unsupported())
    }
}

impl QuorumStore {
    fn rejoining(&self) -> Finding {
        let promise = "a server that comes back empty does not give a lock away again";
        if self.rejoin_after.is_zero() {
            return Finding::good("rejoin", promise, "a server that restarted takes part at once").but(
                Health::Warning,
                "set rejoin_after in the URL, unless each server has its log synced at every write",
            );
        }
        let found = format!("a server that restarted stays out for {:?}", self.rejoin_after);
        Finding::good("rejoin", promise, found)
    }
}

impl Drop for QuorumStore {
    fn drop(&mut self) {
        self.members.iter().for_each(|member| member.close());
    }
}

impl fmt::Debug for QuorumStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.members.iter().map(|member| &*member.place).collect::<Vec<_>>();
        write!(f, "QuorumStore({})", places.join(", "))
    }
}

#[cfg(test)]
mod tests;
