//! The director's part of a worker: does what the machine orders.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::dispatcher::Dispatcher;
use crate::api::blocking::Claim;
use crate::api::worker::WorkerReport;
use crate::base::clock::Clock;
use crate::base::error::{Error, ErrorKind};
use crate::driver::interrupt::with_interrupt_check;
use crate::engine::worker::Order;
use crate::queue::claim_calls::{Batch, Verdict};
use crate::session::channel::INTERRUPT_CHECK;

/// Sees to it that there are this many hands.
pub(super) type Staff<'a> = &'a mut dyn FnMut(usize) -> Result<(), Error>;

/// Works until the worker is stopped.
pub(super) fn direct(
    desk: &Dispatcher,
    staff: Staff<'_>,
    interrupt: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<WorkerReport, Error> {
    loop {
        // Before the order: nothing is claimed once somebody has stopped the worker.
        if interrupt().is_break() {
            desk.stop.stop();
        }
        match desk.order(INTERRUPT_CHECK) {
            Order::Claim { max, wait, settle } if wait.is_zero() => desk.claim(max, settle, staff)?,
            Order::Claim { max, wait, .. } => desk.wait_for_tasks(max, wait, staff, interrupt),
            Order::Settle(verdicts) => desk.settle(verdicts)?,
            Order::Look => {
                let stats = desk.queue.stats();
                let is_empty = stats.is_ok_and(|stats| stats.ready == 0 && stats.claimed == 0);
                desk.with(|state, now| state.machine.looked(now, is_empty));
            }
            Order::Signal(delivery) => delivery.kept.withdraw(),
            // No claim is on its way here.
            Order::Abandon | Order::Wait(_) => {}
            Order::Done => {
                let (error, report) = desk.with(|state, _| (state.error.take(), state.report));
                return error.map_or(Ok(report), Err);
            }
        }
    }
}

/// Whoever interrupted a worker does not wait for a store that may be asleep.
fn briefly<T>(interrupted: bool, call: impl FnOnce() -> T) -> T {
    if interrupted { with_interrupt_check(|| ControlFlow::Break(()), call) } else { call() }
}

impl Dispatcher {
    /// Claims what there is, and settles in the same step.
    fn claim(&self, max: usize, verdicts: Vec<Verdict>, staff: Staff<'_>) -> Result<(), Error> {
        let mut batch = self.queue.one_batch(verdicts)?;
        let options = self.settings.claim(max, Duration::ZERO);
        let claims = self.queue.settle_batch_and_claim(&mut batch, options, None);
        let (again, may_pass) = self.record(batch, claims.as_ref().err());
        match claims {
            Ok(claims) => self.hand_out(&claims, staff),
            Err(error) => {
                let is_news = self.with(|state, now| state.machine.claim_failed(now, again, may_pass));
                self.failed(error, may_pass, is_news);
            }
        }
        Ok(())
    }

    /// Waits for tasks. Meanwhile the hands settle for themselves.
    fn wait_for_tasks(
        &self,
        max: usize,
        wait: Duration,
        staff: Staff<'_>,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) {
        let mut turn = || {
            if interrupt().is_break() {
                self.stop.stop();
            }
            let ends = self.with(|state, now| {
                state.machine.look_after(now);
                state.machine.gives_up() || state.machine.has_verdicts(now)
            });
            if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match self.queue.claim_while(self.settings.claim(max, wait), &mut turn) {
            Ok(claims) => self.hand_out(&claims, staff),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                self.with(|state, _| state.machine.given_up());
            }
            Err(error) => {
                let may_pass = error.is_retryable_settle();
                let is_news = self.with(|state, now| state.machine.claim_failed(now, Vec::new(), may_pass));
                self.failed(error, may_pass, is_news);
            }
        }
    }

    fn hand_out(&self, claims: &[Claim], staff: Staff<'_>) {
        let deliveries = claims.iter().map(|claim| Arc::clone(claim.delivery())).collect();
        let hands = self.with(|state, now| {
            state.machine.claimed(now, deliveries);
            state.machine.busy().min(self.settings.concurrency)
        });
        if let Err(error) = staff(hands) {
            self.with(|state, now| state.machine.stop(now));
            self.failed(error, false, false);
        }
    }

    /// Settles for the director, while it waits for tasks.
    pub(super) fn settle_alone(&self, verdicts: Vec<Verdict>) {
        let mut next = Some(verdicts);
        while let Some(verdicts) = next {
            // An error that ends the worker is the director's to tell.
            let _ = self.settle(verdicts);
            if let Some(until) = self.with(|state, _| state.machine.pause()) {
                thread::sleep(until.since(Clock::System.now()));
            }
            next = self.with(|state, now| state.machine.settle_beside_claim(now));
        }
    }

    /// # Errors
    /// Only if the worker was interrupted: nobody waits for another try then, and the tasks come back when their leases
    /// end.
    fn settle(&self, verdicts: Vec<Verdict>) -> Result<(), Error> {
        let interrupted = self.is_over();
        let mut batch = self.queue.one_batch(verdicts)?;
        let error = briefly(interrupted, || self.queue.settle_batch(&mut batch)).err();
        let (again, may_pass) = self.record(batch, error.as_ref());
        let failure = error.is_some().then_some((again, may_pass));
        let is_news = self.with(|state, now| state.machine.settled(now, failure));
        match error {
            Some(error) if interrupted => Err(error),
            Some(error) => {
                self.failed(error, may_pass, is_news);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Counts what became of verdicts; answers those that may still be settled, and whether the error may pass.
    fn record(&self, batch: Batch, error: Option<&Error>) -> (Vec<Verdict>, bool) {
        let mut report = WorkerReport::default();
        let recorded = self.settings.record(&mut report, batch, error);
        self.with(|state, _| state.report += report);
        if error.is_some() || report.dead > 0 || report.lost > 0 {
            self.rouse();
        }
        recorded
    }

    fn failed(&self, error: Error, may_pass: bool, is_news: bool) {
        if is_news {
            self.settings.store_failed(&error);
        }
        self.rouse();
        if !may_pass {
            self.with(|state, _| state.error.get_or_insert(error).kind());
        }
    }
}
