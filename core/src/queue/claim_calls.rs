//! Claim and settle: checked arguments, made into machines. Shared by both faces of queues and workers.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind};
use crate::base::name::QueueName;
use crate::base::wake::{Place, locked};
use crate::engine::Jitter;
use crate::engine::call::{Answer, CallMachine};
use crate::engine::claim::{ClaimMachine, ClaimParams, Claimed};
use crate::engine::schedule::FiredSchedule;
use crate::engine::settle::{Earlier, part_of};
use crate::protocol::{self, QueueReply, QueueRequest, QueueVerb, Reply, Request, Settle, Settled};
use crate::queue::delivery::{Delivery, Retry};
use crate::queue::queue_calls::QueueCalls;
use crate::queue::queue_options::{ClaimOptions, ClaimPlan};
use crate::queue::schedule_calls::report;
use crate::session::Live;

/// A running claim.
pub(crate) struct Claiming {
    pub(crate) live: Arc<Live>,
    pub(crate) machine: ClaimMachine,
    pub(crate) place: Place,
    plan: ClaimPlan,
}

impl Claiming {
    /// A claim over these queues, asked in this order; at least one.
    pub(crate) fn new(
        queues: &[QueueCalls],
        options: &ClaimOptions,
        settle: Option<Settle>,
    ) -> Result<Self, Error> {
        let first = queues.first().ok_or_else(|| Error::invalid("no queue given").during("claim", ""))?;
        let names: Result<Vec<QueueName>, Error> = queues.iter().map(QueueCalls::checked).collect();
        let plan = options.plan().map_err(|error| error.during("claim", &first.name))?;
        let live = Arc::clone(first.session.live()?);
        let place = live.hub.enter();
        let order = ClaimParams {
            queues: names?,
            max: plan.max,
            lease: plan.lease,
            wait: plan.wait,
            timeout: live.settings.timeout,
            patient: plan.patient,
            settle,
            waiter: place.waiter(),
            consumer: live.owner(),
            clock_stands: live.clock.stands(),
            slot: live.slots.take(),
        };
        let machine = ClaimMachine::new(order, live.clock.now(), live.channel.is_open(), Jitter::random());
        Ok(Self { live, machine, place, plan })
    }

    /// What the machine has come to.
    pub(crate) fn finish(
        &mut self,
        result: Result<Claimed, Error>,
    ) -> Result<(Vec<Delivery>, Claimed), Error> {
        if let Some(slot) = self.machine.free_slot() {
            self.live.slots.give_back(slot);
        }
        let mut claimed = result?;
        for (queue, fired) in &claimed.fired {
            report(&self.live, queue.as_str(), std::slice::from_ref(fired));
        }
        let tasks = std::mem::take(&mut claimed.tasks).into_iter();
        let deliveries = tasks.map(|one| Delivery::start(&self.live, &self.plan, one)).collect();
        Ok((deliveries, claimed))
    }
}

/// How a claim ended, to be settled together with others: see `settle` and `settle_and_claim` of a queue.
/// Until then its lease goes on.
#[derive(Debug)]
#[must_use = "a verdict does nothing until it is settled"]
pub struct Verdict {
    delivery: Arc<Delivery>,
    verdict: protocol::Verdict,
}

impl Verdict {
    pub(crate) fn ack(delivery: &Arc<Delivery>) -> Self {
        Self { delivery: Arc::clone(delivery), verdict: protocol::Verdict::Ack }
    }

    pub(crate) fn ack_with(delivery: &Arc<Delivery>, result: &[u8]) -> Result<Self, Error> {
        Ok(Self { delivery: Arc::clone(delivery), verdict: delivery.ack_with(result)? })
    }

    pub(crate) fn nack(delivery: &Arc<Delivery>, retry: Retry, reason: &str) -> Result<Self, Error> {
        Ok(Self { delivery: Arc::clone(delivery), verdict: delivery.nack(retry, reason)? })
    }

    pub(crate) fn bury(delivery: &Arc<Delivery>, reason: &str) -> Self {
        Self { delivery: Arc::clone(delivery), verdict: Delivery::bury(reason) }
    }

    /// At once, in its place.
    pub(crate) fn put_back(delivery: &Arc<Delivery>) -> Self {
        Self { delivery: Arc::clone(delivery), verdict: protocol::Verdict::PUT_BACK }
    }

    pub(crate) fn put_back_after(delivery: &Arc<Delivery>, delay: Duration) -> Result<Self, Error> {
        Ok(Self { delivery: Arc::clone(delivery), verdict: delivery.put_back(delay)? })
    }

    pub(crate) fn throttle(delivery: &Arc<Delivery>, time: Duration) -> Result<Self, Error> {
        Ok(Self { delivery: Arc::clone(delivery), verdict: delivery.throttle(time)? })
    }

    /// A verdict that was settled already.
    pub(crate) fn accepted(delivery: &Arc<Delivery>, verdict: protocol::Verdict) -> Self {
        Self { delivery: Arc::clone(delivery), verdict }
    }

    /// The settlement as a call of its own; `None` if the claim remembers that it was accepted.
    pub(crate) fn settle(&self) -> Result<Option<(CallMachine, Earlier)>, Error> {
        let settlement = self.delivery.settlement(&self.verdict)?;
        Ok(settlement.map(|(settlement, earlier)| (self.delivery.settle(settlement), earlier)))
    }

    pub(crate) fn verdict(&self) -> &protocol::Verdict {
        &self.verdict
    }

    /// Whether the lease has ended, as far as is known.
    pub(crate) fn is_over(&self) -> bool {
        let kept = &self.delivery.kept;
        kept.live.clock.now() >= locked(&kept.cell.state).deadline()
    }

    pub(crate) fn delivery(&self) -> &Arc<Delivery> {
        &self.delivery
    }

    /// Takes in the answer to [`Verdict::settle`].
    pub(crate) fn answered(&self, earlier: Earlier, answer: Result<Answer, Error>) -> Result<(), Error> {
        self.delivery.answered(&self.verdict, earlier, answer)
    }
}

/// The state of one verdict of a batch.
enum Answered {
    /// It is sent; with what earlier calls had sent.
    Asked(Earlier),
    Known(Result<Settled, Error>),
}

/// Verdicts that are settled in one request.
pub(crate) struct Batch {
    verdicts: Vec<Verdict>,
    /// The result of each.
    results: Vec<Answered>,
    request: Settle,
    /// What the claim that they travelled with has fired.
    pub(crate) fired: Vec<FiredSchedule>,
}

impl Batch {
    /// At most 1,000 verdicts of one queue.
    pub(crate) fn new(queue: &QueueCalls, verdicts: Vec<Verdict>) -> Result<Self, Error> {
        let name = queue.checked()?;
        if verdicts.iter().any(|verdict| verdict.delivery.queue != name) {
            return Err(
                Error::invalid("a verdict is on a claim of another queue").during("settle", &queue.name)
            );
        }
        let mut items = Vec::with_capacity(verdicts.len());
        let mut results = Vec::with_capacity(verdicts.len());
        for verdict in &verdicts {
            results.push(match verdict.delivery.settlement(&verdict.verdict) {
                Ok(Some((settlement, earlier))) => {
                    items.push(settlement);
                    Answered::Asked(earlier)
                }
                Ok(None) => Answered::Known(Ok(Settled::Done { late: false, dead: false })),
                Err(error) => Answered::Known(Err(error)),
            });
        }
        Ok(Self { verdicts, results, request: Settle { items: items.into() }, fired: Vec::new() })
    }

    /// The request; `None` if nothing is left to send.
    pub(crate) fn request(&self) -> Option<Settle> {
        (!self.request.items.is_empty()).then(|| self.request.clone())
    }

    /// As a call of its own.
    pub(crate) fn machine(&self, queue: &QueueCalls) -> Result<Option<CallMachine>, Error> {
        let Some(request) = self.request() else { return Ok(None) };
        let verb = QueueVerb::Settle(request);
        let queue_name = queue.checked()?;
        Ok(Some(queue.session.live()?.call(Request::Queue(QueueRequest { queue: queue_name, verb }))))
    }

    /// Applies the reply to [`Batch::machine`].
    pub(crate) fn answered(&mut self, answer: Result<Answer, Error>) -> Result<(), Error> {
        let answer = answer.inspect_err(|error| self.failed(error))?;
        match &answer.reply {
            Reply::Queue(QueueReply::Settle(settled)) if settled.len() == self.request.items.len() => {
                self.settled(settled, answer.copies > 1);
                Ok(())
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// Applies the results of the settlements; `resent` if an earlier copy may have been carried out.
    pub(crate) fn settled(&mut self, settled: &[Settled], resent: bool) {
        let mut settled = settled.iter();
        for (verdict, result) in self.verdicts.iter().zip(&mut self.results) {
            if let Answered::Asked(earlier) = *result
                && let Some(settled) = settled.next()
            {
                let judged = verdict.delivery.settled(&verdict.verdict, *settled, earlier, resent);
                *result = Answered::Known(judged.map(|()| *settled));
            }
        }
    }

    /// Records that no reply came.
    pub(crate) fn failed(&self, error: &Error) {
        for (verdict, result) in self.verdicts.iter().zip(&self.results) {
            if let Answered::Asked(earlier) = *result {
                verdict.delivery.failed(earlier, error);
            }
        }
    }

    /// One result per verdict.
    pub(crate) fn results(self) -> impl Iterator<Item = (Verdict, Result<Settled, Error>)> {
        let unknown =
            || Error::new(ErrorKind::Indeterminate, "the reply does not show whether it was carried out");
        let results = self.results.into_iter().map(move |result| match result {
            Answered::Known(result) => result,
            Answered::Asked(_) => Err(unknown()),
        });
        self.verdicts.into_iter().zip(results)
    }
}

/// Splits verdicts into as many as one request takes.
pub(crate) fn batches(queue: &QueueCalls, mut verdicts: Vec<Verdict>) -> Result<Vec<Batch>, Error> {
    let mut batches = Vec::new();
    while !verdicts.is_empty() {
        let rest = verdicts.split_off(part_of(verdicts.iter().map(|verdict| verdict.verdict.size())));
        batches.push(Batch::new(queue, verdicts)?);
        verdicts = rest;
    }
    Ok(batches)
}
