//! A quorum: independent servers, each with its own copy of the lock. A lease is what a majority has granted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::base::clock::{Clock, Moment};
use crate::base::error::{Error, ErrorKind};
use crate::base::name::{LockKind, LockName, QueueName};
use crate::base::token::Token;
use crate::base::wake::locked;
use crate::protocol::{AcquireReply, ENDED_TTL, Extend, Failure, FailureKind, Fence, Reply, Request};
use crate::store::redis::RedisStore;
use crate::store::redis::life::{Life, Lives};
use crate::store::url::{Address, QuorumPlace, RedisAddress, RedisPlace};
use crate::store::{Begun, Hear, Hints, Opened, Pending, Store, StoreConfig};
use crate::store::{Finding, Health};

mod crowd;
mod forecast;
mod member;
mod vote;

use crowd::Crowd;
use forecast::Forecast;
use member::{Member, is_set_up_wrongly};
use vote::{Answers, Decision, Next, Round, Vote, quorum, unsupported};

/// How long opening a client waits for a server that does not answer.
const CHECK_WITHIN: Duration = Duration::from_secs(1);

/// From so many renewed leases on, those that are over are looked for.
const RENEWALS_SWEPT: usize = 64;

/// Locks on a majority of independent servers.
pub struct QuorumStore {
    members: Vec<Arc<Member>>,
    clock: Clock,
    /// How long an answer of one server is waited for.
    node_timeout: Duration,
    /// How long a server that restarted stays out, and so how long a lease may last; zero if it takes part at once.
    rejoin_after: Duration,
    forecast: Forecast,
    crowd: Crowd,
    /// Leases that were prolonged, or may be by what is on its way: until when.
    renewals: Mutex<HashMap<Token, Moment>>,
}

/// Opens a quorum.
pub(crate) fn open(address: &Address, config: &StoreConfig) -> Opened {
    let Address::Redis(address) = address else { return None };
    let RedisPlace::Quorum(place) = &address.place else { return None };
    Some(QuorumStore::new(address, place, config).map(|store| Arc::new(store) as Arc<dyn Store>))
}

impl QuorumStore {
    /// A store that connects on first use.
    pub(crate) fn new(
        address: &RedisAddress,
        place: &QuorumPlace,
        config: &StoreConfig,
    ) -> Result<Self, Error> {
        let names = place.servers.iter().map(ToString::to_string).collect();
        let lives = Lives::new(names, place.rejoin_after, config.clock.clone());
        let mut stores: Vec<(Arc<dyn Store>, Life)> = Vec::new();
        for (number, server) in place.servers.iter().enumerate() {
            let life = lives.life(number);
            let member = RedisStore::member(address, server, life.clone(), config)?;
            stores.push((Arc::new(member), life));
        }
        Ok(Self::of(stores, place, config.clock.clone()))
    }

    /// A quorum of these.
    fn of(stores: Vec<(Arc<dyn Store>, Life)>, place: &QuorumPlace, clock: Clock) -> Self {
        let member = |(store, life)| Member::new(store, life, clock.clone());
        Self {
            members: stores.into_iter().map(member).collect(),
            node_timeout: place.node_timeout,
            rejoin_after: place.rejoin_after,
            clock: clock.clone(),
            forecast: Forecast::default(),
            crowd: Crowd::default(),
            renewals: Mutex::default(),
        }
    }

    /// The vote on a request, if it is one that can be voted on. Nothing is sent before.
    fn vote(&self, request: &Request, until: Moment) -> Result<(Vote, Round, Fence), Failure> {
        if request.kind() != LockKind::Exclusive.name() || matches!(request, Request::AcquireAll(_)) {
            return Err(unsupported());
        }
        let mut proposed = Fence::NONE;
        let mut request = request.clone();
        match &mut request {
            Request::Acquire(acquire) => {
                self.check_ttl(acquire.ttl)?;
                proposed = self.forecast.propose(&self.clock).max(acquire.min_fence);
                acquire.min_fence = proposed;
            }
            Request::Extend(Extend { token, ttl, .. }) => {
                self.check_ttl(*ttl)?;
                self.renews(token, until);
            }
            // A renewal may take the lock again where it was forgotten: not any more.
            Request::Release(release) => release.acquire_resent |= self.may_be_renewed(&release.token),
            _ => {}
        }
        let (vote, mut round) = Vote::new(request, self.members.len());
        if let Request::Acquire(acquire) = &mut round.request {
            // No server keeps a line: places in it would differ from server to server.
            acquire.waiter = None;
        }
        Ok((vote, round, proposed))
    }

    /// Notes that a lease is being prolonged. What takes the lock again may arrive as late as any request.
    fn renews(&self, token: &Token, until: Moment) {
        let now = self.clock.now();
        let mut renewals = locked(&self.renewals);
        if renewals.len() >= RENEWALS_SWEPT {
            renewals.retain(|_, until| *until > now);
        }
        renewals.insert(token.clone(), until.min(now + ENDED_TTL) + ENDED_TTL);
    }

    fn may_be_renewed(&self, token: &Token) -> bool {
        let now = self.clock.now();
        locked(&self.renewals).get(token).is_some_and(|until| *until > now)
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

    /// Sends a round to all of its servers at once, and collects all replies.
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
            let perform = |number: usize| self.members[number].store.perform(&round.request, until);
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
        perform: impl Fn(usize) -> T + Sync,
        meanwhile: impl FnOnce(),
    ) -> Vec<T> {
        let perform = &perform;
        thread::scope(|scope| {
            let start =
                |number: usize| (number, thread::Builder::new().spawn_scoped(scope, move || perform(number)));
            let started: Vec<_> = numbers.iter().copied().map(start).collect();
            meanwhile();
            let finish = |(number, thread): (_, std::io::Result<thread::ScopedJoinHandle<'_, T>>)| {
                // Without a thread to spare, one after the other.
                thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| perform(number))
            };
            started.into_iter().map(finish).collect()
        })
    }

    /// Sends many rounds, all that concern a server in one round trip.
    fn ask_all(&self, rounds: &[&Round], until: Moment) -> Vec<Answers> {
        let until = self.patience(until);
        let returns = self.returns();
        let concern =
            |server: usize| rounds.iter().enumerate().filter(move |(_, round)| round.to.contains(&server));
        let mut answers: Vec<_> = rounds.iter().map(|_| Answers::new()).collect();
        let mut present = Vec::new();
        for server in self.all() {
            match self.members[server].absence() {
                None if concern(server).next().is_some() => present.push(server),
                None => {}
                Some(failure) => concern(server)
                    .for_each(|(number, _)| answers[number].push((server, Err(failure.clone())))),
            }
        }
        let perform = |server: usize| {
            let requests: Vec<_> = concern(server).map(|(_, round)| round.request.clone()).collect();
            let mut replies: Vec<_> = requests.iter().map(|_| None).collect();
            let store = &self.members[server].store;
            store.perform_all(&requests, until, &mut |number, reply| replies[number] = Some(reply));
            replies
        };
        let results = self.at_once(&present, perform, || ());
        for (server, replies) in present.into_iter().zip(results) {
            for ((number, _), reply) in concern(server).zip(replies) {
                let reply = reply.unwrap_or_else(|| Err(Failure::new(FailureKind::Lost, "no answer")));
                self.members[server].note(returns[server], &reply);
                answers[number].push((server, reply));
            }
        }
        answers
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

    fn conclude(&self, verdict: Decision) -> Result<Reply, Failure> {
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
        let (mut vote, round, proposed) = self.vote(request, until)?;
        let asked = self.clock.now();
        let reply = self.go_on(&mut vote, Next::Ask(round), until);
        self.learn(asked, proposed, &reply);
        self.crowd.spread(self.clock.now(), request, reply)
    }

    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a> {
        Box::pin(async move {
            let (mut vote, mut round, proposed) = self.vote(request, until)?;
            let asked = self.clock.now();
            let reply = loop {
                match vote.next(self.ask_async(&round, until).await) {
                    Next::Ask(another) => round = another,
                    Next::Done(verdict) => break self.conclude(verdict),
                }
            };
            self.learn(asked, proposed, &reply);
            self.crowd.spread(self.clock.now(), request, reply)
        })
    }

    /// One round trip to each server, to all at the same time; and one more for all votes that need it.
    fn perform_all(&self, requests: &[Request], until: Moment, hear: Hear<'_, Reply>) {
        let mut open = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            match self.vote(request, until) {
                Ok((vote, round, _)) => open.push((number, vote, round)),
                Err(failure) => hear(number, Err(failure)),
            }
        }
        while !open.is_empty() {
            let rounds: Vec<_> = open.iter().map(|(.., round)| round).collect();
            let answers = self.ask_all(&rounds, until);
            let mut again = Vec::new();
            for ((number, mut vote, _), answers) in open.into_iter().zip(answers) {
                match vote.next(answers) {
                    Next::Ask(round) => again.push((number, vote, round)),
                    Next::Done(verdict) => hear(number, self.conclude(verdict)),
                }
            }
            open = again;
        }
    }

    /// There is no line, so there are no hints: waiters poll.
    fn listen(&self, _until: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        Ok(None)
    }

    fn check(&self, until: Moment) -> Result<(), Failure> {
        let patience = until.min(self.clock.now() + CHECK_WITHIN.max(self.node_timeout));
        let returns = self.returns();
        let results = self.at_once(&self.all(), |number| self.members[number].store.check(patience), || ());
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

    fn doctor(&self, until: Moment) -> Result<Vec<Finding>, Failure> {
        let count = self.members.len();
        let results = self.at_once(
            &self.all(),
            |number| self.members[number].store.doctor(self.patience(until)),
            || (),
        );
        let answered = results.iter().filter(|result| result.is_ok()).count();
        let promise = "the lock is safe while fewer than half of the servers fail";
        let found = format!("{answered} of {count} servers answer, {} must", quorum(count));
        let finding = Finding::good("quorum", promise, found);
        let mut findings = vec![match answered {
            _ if answered == count && count.is_multiple_of(2) => finding.but(
                Health::Warning,
                "an even number tolerates no more failures than one server fewer; use 3 or 5",
            ),
            _ if answered == count => finding,
            _ if answered < quorum(count) => {
                finding.but(Health::Bad, "too few for any lock; start the others")
            }
            _ => finding.but(Health::Warning, "start the others before one more fails"),
        }];
        findings.push(self.rejoining());
        for (member, result) in self.members.iter().zip(results) {
            let place = member.place();
            match result {
                Ok(told) => findings.extend(told.into_iter().map(|finding| {
                    let found = format!("{place}: {}", finding.found);
                    // Queues, of which these promises are, are not kept here.
                    let about_tasks = matches!(finding.what, "persistence" | "clock");
                    let advice = finding.advice.filter(|_| !about_tasks);
                    let health = if about_tasks { Health::Good } else { finding.health };
                    Finding { found, advice, health, ..finding }
                })),
                Err(failure) if is_set_up_wrongly(&failure) => findings.push(
                    Finding::good("server", promise, format!("{place} does not vote"))
                        .but(Health::Bad, failure.message),
                ),
                Err(failure) => findings.push(
                    Finding::good("server", promise, format!("{place} does not answer"))
                        .but(Health::Warning, failure.message),
                ),
            }
        }
        Ok(findings)
    }

    fn close(&self) {
        self.members.iter().for_each(|member| {
            member.close();
            member.store.close();
        });
    }

    fn close_inherited(&self) {
        self.members.iter().for_each(|member| member.store.close_inherited());
    }

    /// All names in one page: each is on several servers, and is listed once.
    fn list(&self, kind: LockKind, _cursor: u64, until: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        let names = Mutex::new(BTreeMap::new());
        let all = |number: usize| {
            let mut page = 0;
            loop {
                let (next, found) = self.members[number].store.list(kind, page, until)?;
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
        let promise = "a server that restarts empty does not grant a held lock again";
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
        let places = self.members.iter().map(|member| member.place()).collect::<Vec<_>>();
        write!(f, "QuorumStore({})", places.join(", "))
    }
}

#[cfg(test)]
mod tests;
