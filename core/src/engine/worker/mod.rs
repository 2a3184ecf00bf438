//! A worker's policy: what to claim and when, what becomes of handlers, and how it stops. Whether handlers are tasks of
//! a runtime, threads, or threads of a host is the driver's business.

mod claims;
mod job;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::time::Duration;

use self::claims::{Claiming, Claims};
use crate::base::clock::Moment;
use crate::base::name::TaskId;
use crate::engine::Jitter;
use crate::engine::settle::part_of;
use crate::protocol::Receipt;

pub use job::{Event, Finished, HandlerEnd, Job};

/// How long one waiting claim lasts; then the worker looks around.
const IDLE_WAIT: Duration = Duration::from_secs(30);
/// How often a worker that ends when the queue is empty looks whether it is.
const EMPTY_LOOK: Duration = Duration::from_millis(200);
/// How long a worker claims nothing after it gave back an id that it still runs: it would get it again, before others.
const YIELD: Duration = Duration::from_millis(100);
/// How often the handlers are looked after.
const LOOK: Duration = Duration::from_millis(100);

/// How a worker works.
#[derive(Clone, Copy, Debug)]
pub struct WorkerTerms {
    /// So many handlers at once.
    pub concurrency: usize,
    /// So many claims on their way at once, if there is work enough: the store works on one while the worker works on what
    /// the other has brought. At least one.
    pub claims: usize,
    /// How long a delivery of an id that this worker still runs is kept, in case that run ends; then it goes back, and
    /// others have their chance of it. Well below the lease.
    pub parked: Duration,
    /// End when no task is ready or claimed any more.
    pub until_empty: bool,
    /// How long handlers may go on after a stop, before they are asked to end.
    pub grace: Duration,
    /// How long a handler may take to end after it was asked to. Then it is stuck, and a worker that stops returns without it.
    pub patience: Duration,
}

/// What a driver is to do.
#[derive(Debug)]
pub enum Order<J: Job> {
    /// Claim tasks, and settle these in the same step.
    Claim {
        /// At most so many.
        max: usize,
        /// How long to wait for the first; if not at all, nobody else settles meanwhile.
        wait: Duration,
        /// Verdicts that travel along.
        settle: Vec<J::Verdict>,
    },
    /// Settle these by themselves.
    Settle(Vec<J::Verdict>),
    /// Ask whether the queue is empty: see [`WorkerMachine::looked`].
    Look,
    /// Give up the claim that is on its way. It carries nothing.
    Abandon,
    /// Tell the handler of this task to end.
    Signal(J),
    /// Nothing before this moment, unless something happens.
    Wait(Moment),
    /// The worker has ended.
    Done,
}

/// A handler at work.
#[derive(Debug)]
struct Run<J> {
    job: J,
    /// When it was asked to end, by the loss of its claim or by the worker's stop.
    told: Option<Moment>,
    lost: bool,
    stuck: bool,
}

/// The end of a worker.
#[derive(Clone, Copy, Debug)]
struct Stop {
    began: Moment,
    grace_until: Moment,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct WorkerMachine<J: Job> {
    terms: WorkerTerms,
    jitter: Jitter,
    /// Claimed, not begun.
    ready: VecDeque<J>,
    running: BTreeMap<Receipt, Run<J>>,
    /// What is running, by id: no id is ever run twice at a time.
    ids: BTreeSet<TaskId>,
    /// Deliveries of such ids, each until it goes back.
    parked: Vec<(Moment, J)>,
    /// Until when others are to claim first.
    yields_until: Option<Moment>,
    verdicts: Vec<J::Verdict>,
    claims: Claims,
    /// Requests on their way that only settle.
    settling: usize,
    /// The last claim found nothing: the next one waits.
    idle: bool,
    looks: bool,
    /// Something was done since `Empty` was reported.
    worked: bool,
    stop: Option<Stop>,
    signals: Vec<J>,
    /// Handlers that the worker has ended without.
    left_behind: usize,
    next_look: Moment,
    /// Until when the store is left alone after a failure.
    pause: Option<Moment>,
    failures: u32,
    /// Since when the store has failed.
    failing_since: Option<Moment>,
    events: Vec<Event<J>>,
}

impl<J: Job> WorkerMachine<J> {
    /// A worker that begins now.
    pub fn new(terms: WorkerTerms, jitter: Jitter) -> Self {
        Self {
            terms,
            jitter,
            ready: VecDeque::new(),
            running: BTreeMap::new(),
            ids: BTreeSet::new(),
            parked: Vec::new(),
            yields_until: None,
            verdicts: Vec::new(),
            claims: Claims::new(terms.claims, terms.concurrency),
            settling: 0,
            idle: false,
            looks: false,
            worked: false,
            stop: None,
            signals: Vec::new(),
            left_behind: 0,
            next_look: Moment::from_nanos(0),
            pause: None,
            failures: 0,
            failing_since: None,
            events: Vec::new(),
        }
    }

    /// What to do now. To be called again until it returns `Wait` or `Done`.
    pub fn order(&mut self, now: Moment) -> Order<J> {
        self.look_after(now);
        if let Some(job) = self.signals.pop() {
            return Order::Signal(job);
        }
        if self.gives_up() {
            self.given_up();
            return Order::Abandon;
        }
        if mem::take(&mut self.looks) {
            return Order::Look;
        }
        if let Some(claim) = self.claim() {
            return claim;
        }
        if let Some(verdicts) = self.settle(now) {
            return Order::Settle(verdicts);
        }
        if self.is_done() { Order::Done } else { Order::Wait(self.due()) }
    }

    /// As many tasks as there are hands free. While there is work, verdicts travel along.
    fn claim(&mut self) -> Option<Order<J>> {
        let rests = self.stop.is_some() || self.pause.is_some() || self.yields_until.is_some();
        let waits = self.idle && self.verdicts.is_empty();
        let max = self.claims.next(self.free(), waits);
        if rests || max == 0 {
            return None;
        }
        let settle = self.some_verdicts();
        let wait = match waits {
            true if self.terms.until_empty => EMPTY_LOOK,
            true => IDLE_WAIT,
            false => Duration::ZERO,
        };
        self.claims.send(Claiming { max, waits, beside_work: waits && self.is_at_work() });
        Some(Order::Claim { max, wait, settle })
    }

    /// Verdicts to settle by themselves: they cannot travel with a claim.
    fn settle(&mut self, now: Moment) -> Option<Vec<J::Verdict>> {
        // What comes back at once is followed by a claim that they can travel with.
        if self.claims.come_back() || !self.has_verdicts(now) {
            return None;
        }
        self.settling += 1;
        Some(self.some_verdicts())
    }

    /// For a hand whose director waits in a claim: the verdicts to settle in its stead.
    pub fn settle_beside_claim(&mut self, now: Moment) -> Option<Vec<J::Verdict>> {
        if self.claims.waiting().is_some() { self.settle(now) } else { None }
    }

    /// Whether there are verdicts that may be sent now.
    pub fn has_verdicts(&self, now: Moment) -> bool {
        !self.verdicts.is_empty() && self.pause.is_none_or(|pause| now >= pause)
    }

    fn some_verdicts(&mut self) -> Vec<J::Verdict> {
        let count = part_of(self.verdicts.iter().map(J::size));
        self.verdicts.drain(..count).collect()
    }

    /// Tasks that have a hand, or wait for one.
    pub fn busy(&self) -> usize {
        self.running.len() + self.ready.len()
    }

    fn free(&self) -> usize {
        self.terms.concurrency.saturating_sub(self.busy())
    }

    fn is_at_work(&self) -> bool {
        !self.running.is_empty()
            || !self.ready.is_empty()
            || !self.parked.is_empty()
            || !self.verdicts.is_empty()
            || self.settling > 0
    }

    fn is_done(&self) -> bool {
        self.stop.is_some() && !self.is_at_work() && self.claims.is_empty()
    }

    /// When [`WorkerMachine::order`] has to be asked again, if nothing happens before.
    pub fn due(&self) -> Moment {
        let look = if self.running.is_empty() { Moment::FAR } else { self.next_look };
        let parked = self.parked.iter().map(|(until, _)| *until);
        parked.chain(self.pause).chain(self.yields_until).chain([look]).min().unwrap_or(look)
    }

    /// A claim has brought these.
    pub fn claimed(&mut self, now: Moment, jobs: Vec<J>) {
        self.claims.answered(jobs.len());
        self.answered(now);
        self.idle = jobs.is_empty();
        self.ready.extend(jobs);
        if self.stop.is_some() {
            self.return_unbegun();
        }
        let is_all = self.idle && self.claims.is_empty() && !self.is_at_work();
        self.looks = is_all && self.terms.until_empty && self.stop.is_none();
        self.rest();
    }

    /// The claim has failed. `again` are verdicts to send again; `may_pass`: whether the failure may pass. Returns whether it
    /// is to be reported: once for as long as the store fails, unless it ends the worker.
    pub fn claim_failed(&mut self, now: Moment, again: Vec<J::Verdict>, may_pass: bool) -> bool {
        self.claims.ended();
        self.failed(now, again, may_pass)
    }

    /// Whether the claim on its way is to be given up: it waits for tasks that this worker does not want any more, or
    /// not before others, or for the last one although its own work was that.
    pub fn gives_up(&self) -> bool {
        let Some(claiming) = self.claims.waiting() else { return false };
        let was_last = self.terms.until_empty && claiming.beside_work && !self.is_at_work();
        self.stop.is_some() || self.yields_until.is_some() || was_last
    }

    /// The claim on its way was given up.
    pub fn given_up(&mut self) {
        self.claims.give_up();
        self.idle = false;
    }

    /// An answer to [`Order::Look`].
    pub fn looked(&mut self, now: Moment, is_empty: bool) {
        if is_empty && !self.is_at_work() {
            self.stop(now);
        }
    }

    /// What was settled by itself is done; or it has failed, as in [`WorkerMachine::claim_failed`].
    pub fn settled(&mut self, now: Moment, failure: Option<(Vec<J::Verdict>, bool)>) -> bool {
        self.settling = self.settling.saturating_sub(1);
        if let Some((again, may_pass)) = failure {
            return self.failed(now, again, may_pass);
        }
        self.answered(now);
        self.rest();
        false
    }

    fn failed(&mut self, now: Moment, again: Vec<J::Verdict>, may_pass: bool) -> bool {
        self.verdicts.extend(again);
        if !may_pass {
            // `run` returns it.
            self.stop(now);
            return false;
        }
        self.pause = Some(now + self.jitter.backoff(self.failures));
        self.failures += 1;
        // The next claim does not wait: it is the one that finds the store well again.
        self.idle = false;
        let is_news = self.failing_since.is_none();
        self.failing_since.get_or_insert(now);
        is_news
    }

    fn answered(&mut self, now: Moment) {
        self.failures = 0;
        if let Some(since) = self.failing_since.take() {
            self.events.push(Event::StoreBack(now.since(since)));
        }
    }

    /// Until when the store is left alone, if there is something to settle then.
    pub fn pause(&self) -> Option<Moment> {
        self.pause.filter(|_| !self.verdicts.is_empty())
    }

    /// Tells, once, that there is nothing to do any more.
    fn rest(&mut self) {
        let is_all = !self.claims.come_back() && !self.is_at_work();
        if self.idle && self.worked && is_all {
            self.worked = false;
            self.events.push(Event::Empty);
        }
    }

    /// Whether a task lies ready to be begun.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next task to run a handler for.
    pub fn begin(&mut self, now: Moment) -> Option<J> {
        loop {
            let job = self.ready.pop_front()?;
            if job.is_lost() {
                // It may have lain here for long.
                self.events.push(Event::Lost(job));
            } else if self.ids.contains(job.id()) {
                self.parked.push((now + self.terms.parked, job));
            } else {
                self.worked = true;
                self.ids.insert(job.id().clone());
                let run = Run { job: job.clone(), told: None, lost: false, stuck: false };
                self.running.insert(job.receipt(), run);
                self.events.push(Event::Started(job.clone()));
                return Some(job);
            }
        }
    }

    /// A handler has ended. Answers how, all things considered; nothing if the worker had left it behind.
    pub fn ended(&mut self, receipt: Receipt, ending: HandlerEnd) -> Option<HandlerEnd> {
        let run = self.running.remove(&receipt)?;
        self.ids.remove(run.job.id());
        let same = |(_, parked): &mut (Moment, J)| parked.id() == run.job.id();
        self.ready.extend(self.parked.extract_if(.., same).map(|(_, job)| job));
        let ending = match ending {
            _ if run.lost || run.job.is_lost() => HandlerEnd::Lost,
            // Told to end, it did. That is not the task's fault.
            HandlerEnd::Failed(_) if run.told.is_some() => HandlerEnd::Interrupted,
            ending => ending,
        };
        self.conclude(&run, &ending);
        Some(ending)
    }

    fn conclude(&mut self, run: &Run<J>, ending: &HandlerEnd) {
        let finished = run.job.conclude(ending);
        // It may be lost, and to be settled all the same: a cancelled one is.
        let is_lost = *ending == HandlerEnd::Lost || matches!(finished, Finished::Lost);
        if is_lost && !run.lost && !matches!(finished, Finished::Settled(_)) {
            self.events.push(Event::Lost(run.job.clone()));
        }
        match finished {
            Finished::Verdict(verdict) => self.verdicts.push(verdict),
            Finished::Settled(verdict) => self.events.push(Event::Settled(verdict)),
            Finished::Lost => {}
        }
        self.rest();
    }

    /// Take no more tasks. Those not begun go back. Handlers have their grace, then they are asked to end; the worker does not
    /// wait for one that goes on after its patience.
    pub fn stop(&mut self, now: Moment) {
        let grace_until = now + self.terms.grace;
        self.stop.get_or_insert(Stop { began: now, grace_until });
        self.return_unbegun();
    }

    /// As `stop`, and the grace is over.
    pub fn hurry(&mut self, now: Moment) {
        self.stop(now);
        if let Some(stop) = &mut self.stop
            && now < stop.grace_until
        {
            stop.grace_until = now;
            self.next_look = now;
        }
    }

    /// Ends without waiting for anybody: what is being worked on has failed for this reason.
    pub fn interrupt(&mut self, now: Moment, reason: &str) {
        self.hurry(now);
        self.settling = 0;
        self.ids.clear();
        for (_, run) in mem::take(&mut self.running) {
            self.left_behind += 1;
            let ending = if run.lost { HandlerEnd::Lost } else { HandlerEnd::Failed(reason.to_owned()) };
            self.conclude(&run, &ending);
        }
    }

    /// Whether it takes no more tasks.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// So many handlers went on when the worker ended.
    pub fn left_behind(&self) -> usize {
        self.left_behind
    }

    fn return_unbegun(&mut self) {
        let parked = mem::take(&mut self.parked).into_iter().map(|(_, job)| job);
        for job in mem::take(&mut self.ready).into_iter().chain(parked) {
            self.return_one(&job);
        }
    }

    fn return_one(&mut self, job: &J) {
        if let Finished::Verdict(verdict) = job.conclude(&HandlerEnd::Interrupted) {
            self.verdicts.push(verdict);
        }
    }

    /// Looks after pauses, losses, handlers that do not end, and deliveries that are parked.
    pub fn look_after(&mut self, now: Moment) {
        if self.pause.is_some_and(|pause| now >= pause) {
            self.pause = None;
        }
        if self.yields_until.is_some_and(|until| now >= until) {
            self.yields_until = None;
        }
        for (_, job) in self.parked.extract_if(.., |(until, _)| now >= *until).collect::<Vec<_>>() {
            self.yields_until = Some(now + YIELD);
            self.return_one(&job);
        }
        if now >= self.next_look {
            self.next_look = now + LOOK;
            self.look_after_runs(now);
            self.leave(now);
        }
    }

    fn look_after_runs(&mut self, now: Moment) {
        let patience = self.terms.patience;
        let is_over = self.stop.is_some_and(|stop| now >= stop.grace_until);
        let mut stuck = self.running.values().filter(|run| run.stuck).count();
        for run in self.running.values_mut() {
            if !run.lost && run.job.is_lost() {
                run.lost = true;
                run.told.get_or_insert(now);
                self.events.push(Event::Lost(run.job.clone()));
            }
            if is_over && run.told.is_none() {
                run.told = Some(now);
                self.signals.push(run.job.clone());
            }
            if !run.stuck && run.told.is_some_and(|told| now >= told + patience) {
                run.stuck = true;
                stuck += 1;
                let others = self.terms.concurrency.saturating_sub(stuck);
                self.events.push(Event::Stuck(run.job.clone(), others));
            }
        }
    }

    /// Goes without the handlers that do not end.
    fn leave(&mut self, now: Moment) {
        let (Some(stop), patience) = (self.stop, self.terms.patience) else { return };
        let is_left = |run: &Run<J>| run.told.is_some_and(|told| now >= told.max(stop.began) + patience);
        let (left, running): (BTreeMap<_, _>, _) =
            mem::take(&mut self.running).into_iter().partition(|(_, run)| is_left(run));
        self.running = running;
        for run in left.into_values() {
            self.left_behind += 1;
            self.ids.remove(run.job.id());
            let ending = if run.lost { HandlerEnd::Lost } else { HandlerEnd::LeftBehind };
            self.conclude(&run, &ending);
        }
    }

    /// Whether there are events to report.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The events to report, in order.
    pub fn events(&mut self) -> Vec<Event<J>> {
        mem::take(&mut self.events)
    }

    /// Everything that is not in a handler's hands, for a worker that ends at once: tasks that nobody began, and
    /// verdicts that were not sent.
    pub fn abandon(&mut self) -> Vec<J::Verdict> {
        self.return_unbegun();
        mem::take(&mut self.verdicts)
    }
}
