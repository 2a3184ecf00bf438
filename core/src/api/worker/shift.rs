//! A running async worker: does what the machine orders.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::{Instrument, Span};

use super::crew::{Crew, Ended};
use super::{WorkerReport, WorkerSettings, panic_message, tally};
use crate::api::asynchronous::{Claim, Queue};
use crate::base::clock::{Clock, Moment};
use crate::base::error::Error;
use crate::engine::worker::{Finished, HandlerEnd, Job, Order, WorkerMachine};
use crate::protocol::{Receipt, Settle};
use crate::queue::claim_calls::{Batch, Verdict};
use crate::queue::delivery::Delivery;
use crate::session::trace;

/// So many claims on their way at once.
const CLAIMS: usize = 2;

/// What a call gave, with the batch of verdicts that travelled with it.
type Answer<T> = (Batch, Result<T, Error>);

/// A call on its way, with the verdicts that it carries.
struct Calling<T> {
    carried: Option<Settle>,
    future: Pin<Box<dyn Future<Output = Answer<T>> + Send>>,
}

/// See the module's documentation.
pub(super) struct Shift<H> {
    queue: Queue,
    handler: Arc<H>,
    settings: WorkerSettings,
    /// Handlers are dropped when they are to end.
    drops: bool,
    machine: WorkerMachine<Arc<Delivery>>,
    hands: Crew<Unheard>,
    tasks: HashMap<u64, (Receipt, Span)>,
    settling: Vec<Calling<()>>,
    claiming: Vec<Calling<Vec<Claim>>>,
    report: WorkerReport,
    error: Option<Error>,
}

impl<H, Fut, E> Shift<H>
where
    H: Fn(Claim) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    pub(super) fn new(queue: Queue, handler: Arc<H>, settings: WorkerSettings, drops: bool) -> Self {
        Self {
            queue,
            handler,
            machine: settings.machine(CLAIMS),
            settings,
            drops,
            hands: Crew::new(),
            tasks: HashMap::new(),
            settling: Vec::new(),
            claiming: Vec::new(),
            report: WorkerReport::default(),
            error: None,
        }
    }

    pub(super) async fn run(
        mut self,
        shutdown: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<WorkerReport, Error> {
        tokio::pin!(shutdown, hurry);
        let (mut stopped, mut hurried) = (false, false);
        loop {
            // Whoever stops a worker and then lets a handler end does not see another task begin.
            if !stopped && is_ready(shutdown.as_mut()).await {
                stopped = true;
                self.machine.stop(now());
            }
            self.begin();
            let Some(until) = self.carry_out().await? else {
                return self.error.take().map_or(Ok(self.report), Err);
            };
            tokio::select! {
                () = &mut shutdown, if !stopped => {
                    stopped = true;
                    self.machine.stop(now());
                }
                () = &mut hurry, if !hurried => {
                    hurried = true;
                    self.machine.hurry(now());
                }
                ended = self.hands.ended() => {
                    ended.into_iter().for_each(|(number, ended)| self.ended(number, ended));
                }
                (batch, claims) = answered(&mut self.claiming) => self.claimed(batch, claims),
                (batch, result) = answered(&mut self.settling) => self.settled(batch, result),
                () = sleep_until(until) => {}
            }
        }
    }

    /// Until there is nothing to do before the moment that is answered; `None` at the end.
    async fn carry_out(&mut self) -> Result<Option<Moment>, Error> {
        loop {
            let order = self.machine.order(now());
            self.tell();
            match order {
                Order::Claim { max, wait, settle } => self.claim(max, wait, settle)?,
                Order::Settle(verdicts) => self.settle(verdicts)?,
                Order::Look => {
                    let stats = self.queue.stats().await;
                    let is_empty = stats.is_ok_and(|stats| stats.ready == 0 && stats.claimed == 0);
                    self.machine.looked(now(), is_empty);
                }
                // It carries no verdicts; dropping it loses no task.
                Order::Abandon => self.claiming.clear(),
                Order::Signal(delivery) => delivery.kept.withdraw(),
                Order::Wait(until) => return Ok(Some(until)),
                Order::Done => return Ok(None),
            }
        }
    }

    fn tell(&mut self) {
        for event in self.machine.events() {
            self.report += tally(&event);
            self.settings.happened(&event);
        }
    }

    fn claim(&mut self, max: usize, wait: Duration, verdicts: Vec<Verdict>) -> Result<(), Error> {
        let mut batch = self.queue.one_batch(verdicts)?;
        let (queue, options) = (self.queue.clone(), self.settings.claim(max, wait));
        let carried = batch.request();
        let future = Box::pin(async move {
            let claims = queue.settle_batch_and_claim(&mut batch, options, None).await;
            (batch, claims)
        });
        self.claiming.push(Calling { carried, future });
        Ok(())
    }

    fn settle(&mut self, verdicts: Vec<Verdict>) -> Result<(), Error> {
        let mut batch = self.queue.one_batch(verdicts)?;
        let (queue, carried) = (self.queue.clone(), batch.request());
        let future = Box::pin(async move {
            let result = queue.settle_batch(&mut batch).await;
            (batch, result)
        });
        self.settling.push(Calling { carried, future });
        Ok(())
    }

    fn claimed(&mut self, batch: Batch, claims: Result<Vec<Claim>, Error>) {
        let (again, may_pass) = self.settings.record(&mut self.report, batch, claims.as_ref().err());
        match claims {
            Ok(claims) => {
                self.machine
                    .claimed(now(), claims.iter().map(|claim| Arc::clone(claim.delivery())).collect());
            }
            Err(error) => {
                let is_news = self.machine.claim_failed(now(), again, may_pass);
                self.failed(error, may_pass, is_news);
            }
        }
    }

    fn settled(&mut self, batch: Batch, result: Result<(), Error>) {
        let error = result.err();
        let recorded = self.settings.record(&mut self.report, batch, error.as_ref());
        let may_pass = recorded.1;
        let is_news = self.machine.settled(now(), error.is_some().then_some(recorded));
        if let Some(error) = error {
            self.failed(error, may_pass, is_news);
        }
    }

    fn failed(&mut self, error: Error, may_pass: bool, is_news: bool) {
        if is_news {
            self.settings.store_failed(&error);
        }
        if !may_pass {
            self.error.get_or_insert(error);
        }
    }

    /// Has the handler work on what lies ready.
    fn begin(&mut self) {
        while let Some(delivery) = self.machine.begin(now()) {
            // Before the handler reports anything itself.
            self.tell();
            let claim = Claim::of(Arc::clone(&delivery));
            let span = trace::work(claim.queue(), claim.id(), claim.attempt());
            let (receipt, drops) = (claim.receipt(), self.drops);
            let (handler, work) = (Arc::clone(&self.handler), claim.clone());
            let unheard = Unheard { delivery: Some(delivery), ending: HandlerEnd::Interrupted };
            let hand = async move {
                let mut unheard = unheard;
                unheard.ending = tokio::select! {
                    biased;
                    result = async move { handler(work).await } => match result {
                        Ok(()) => HandlerEnd::Returned,
                        Err(error) => HandlerEnd::Failed(error.to_string()),
                    },
                    () = lost(&claim), if drops => HandlerEnd::Interrupted,
                };
                unheard
            };
            let hand = self.hands.spawn(hand.instrument(span.clone()));
            self.tasks.insert(hand, (receipt, span));
        }
        self.tell();
    }

    fn ended(&mut self, number: u64, ended: Ended<Unheard>) {
        let ending = match ended {
            Ended::Returned(unheard) => unheard.heard(),
            Ended::Panicked(panic) => HandlerEnd::Failed(panic_message(&*panic)),
            // Not the task's fault.
            Ended::Dropped => {
                self.machine.stop(now());
                HandlerEnd::Interrupted
            }
        };
        let Some((receipt, span)) = self.tasks.remove(&number) else { return };
        if let Some(ending) = self.machine.ended(receipt, ending) {
            trace::worked(&span, &ending);
        }
        self.tell();
    }
}

/// A worker that is dropped drops its handlers with it; the rest is settled in the background.
impl<H> Drop for Shift<H> {
    fn drop(&mut self) {
        self.queue.settle_later(self.machine.abandon());
        let claiming = mem::take(&mut self.claiming).into_iter().filter_map(|call| call.carried);
        let settling = mem::take(&mut self.settling).into_iter().filter_map(|call| call.carried);
        // If it was carried out already, a repetition does nothing.
        claiming.chain(settling).for_each(|settle| self.queue.repeat_later(settle));
    }
}

/// How a handler ended. If the worker is dropped before it hears of that, or before the handler has ended, this settles
/// the task.
struct Unheard {
    delivery: Option<Arc<Delivery>>,
    ending: HandlerEnd,
}

impl Unheard {
    fn heard(mut self) -> HandlerEnd {
        self.delivery = None;
        mem::replace(&mut self.ending, HandlerEnd::Interrupted)
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some(delivery) = self.delivery.take()
            && !std::thread::panicking()
            && let Finished::Verdict(verdict) = delivery.conclude(&self.ending)
        {
            delivery.settle_unheard(verdict.verdict().clone());
        }
    }
}

fn now() -> Moment {
    Clock::System.now()
}

/// Completes only when the claim is really lost, not when its handler has settled it.
async fn lost(claim: &Claim) {
    claim.lost().await;
    if claim.loss().is_none() {
        pending::<()>().await;
    }
}

/// Waits until one of them is answered.
async fn answered<T>(calls: &mut Vec<Calling<T>>) -> Answer<T> {
    poll_fn(|context| {
        for number in 0..calls.len() {
            if let Poll::Ready(answer) = calls[number].future.as_mut().poll(context) {
                calls.remove(number);
                return Poll::Ready(answer);
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether a future is ready now.
async fn is_ready(mut future: Pin<&mut impl Future<Output = ()>>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

async fn sleep_until(moment: Moment) {
    match moment {
        Moment::FAR => pending().await,
        moment => tokio::time::sleep(moment.since(now())).await,
    }
}
