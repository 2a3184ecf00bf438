//! The director's part of a worker: claims tasks for the hands, and settles what they finish.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::thread;

use super::desk::Desk;
use crate::blocking::Claim;
use crate::channel::HOST_TURN;
use crate::claim_calls::{Batch, Verdict};
use crate::engine::Dice;
use crate::error::{Error, ErrorKind};
use crate::host_turn::with_host_turn;
use crate::worker::{WorkerEvent, WorkerReport};

/// Sees to it that there are this many hands.
pub(super) type Staff<'a> = &'a mut dyn FnMut(usize) -> Result<(), Error>;

/// Works until the worker is stopped.
pub(super) fn direct(
    desk: &Desk,
    staff: Staff<'_>,
    host_turn: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<WorkerReport, Error> {
    let mut failures = 0;
    loop {
        let stopping = desk.stop.load(Ordering::Acquire);
        if stopping {
            desk.return_unbegun();
        }
        let (verdicts, free, at_work) = desk.look(stopping, HOST_TURN);
        // After the look, which may wait: nothing is claimed once somebody has stopped the worker.
        if host_turn().is_break() {
            desk.stop.store(true, Ordering::Release);
        }
        let stopping = desk.stop.load(Ordering::Acquire);
        if stopping && !at_work && verdicts.is_empty() {
            return Ok(desk.with(|state| state.report));
        }
        let free = if stopping { 0 } else { free };
        let carried = !verdicts.is_empty();
        let mut batch = desk.queue.one_batch(verdicts)?;
        let interrupted = desk.is_over();
        let claims = match (free, carried) {
            (0, false) => continue,
            (0, true) => briefly(interrupted, || desk.queue.settle_batch(&mut batch)).map(|()| None),
            _ => desk.queue.settle_batch_and_claim(&mut batch, desk.settings.claim(free), None).map(Some),
        };
        let failed = claims.is_err();
        let again = desk.record(batch, claims.as_ref().err());
        desk.with(|state| state.verdicts.extend(again));
        match claims {
            Ok(Some(claims)) if claims.is_empty() => idle(desk, free, staff, host_turn)?,
            Ok(claims) => hand_out(desk, claims.unwrap_or_default(), staff)?,
            // Nobody waits for another try: the tasks come back when their leases end.
            Err(error) if interrupted => return Err(error),
            Err(error) => desk.trouble(&error, failures)?,
        }
        failures = if failed { failures + 1 } else { 0 };
    }
}

/// Whoever interrupted a worker does not wait for a store that may be asleep.
pub(super) fn briefly<T>(interrupted: bool, call: impl FnOnce() -> T) -> T {
    if interrupted { with_host_turn(|| ControlFlow::Break(()), call) } else { call() }
}

/// Waits for tasks. Meanwhile the hands settle for themselves.
fn idle(
    desk: &Desk,
    free: usize,
    staff: Staff<'_>,
    host_turn: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<(), Error> {
    desk.rest();
    let (settles, nothing_left) = desk.with(|state| (!state.verdicts.is_empty(), state.busy() == 0));
    if settles {
        return Ok(());
    }
    if desk.settings.until_empty
        && nothing_left
        && desk.queue.stats().is_ok_and(|stats| stats.ready == 0 && stats.claimed == 0)
    {
        desk.stop.store(true, Ordering::Release);
        return Ok(());
    }
    // With one look: what a hand has finished since would wait as long as the claim does.
    let (settles, beside_work) = desk.with(|state| {
        state.idle = state.verdicts.is_empty();
        (!state.idle, desk.settings.until_empty && state.at_work())
    });
    if settles {
        return Ok(());
    }
    // One that ends when the queue is empty sees soon that its own work was the last.
    let mut looks_again = false;
    let mut turn = || {
        host_turn()?;
        looks_again = beside_work && !desk.with(|state| state.at_work());
        let ends = looks_again || desk.stop.load(Ordering::Acquire);
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = desk.settings.claim(free).wait(desk.settings.idle_wait());
    let claims = desk.queue.claim_while(options, &mut turn);
    desk.with(|state| state.idle = false);
    match claims {
        Ok(claims) => hand_out(desk, claims, staff),
        Err(error) if error.kind() == ErrorKind::Cancelled && looks_again => Ok(()),
        Err(error) if error.kind() == ErrorKind::Cancelled => {
            desk.stop.store(true, Ordering::Release);
            Ok(())
        }
        // A pause between two tries is in the claim itself.
        Err(error) => desk.trouble(&error, 0),
    }
}

fn hand_out(desk: &Desk, claims: Vec<Claim>, staff: Staff<'_>) -> Result<(), Error> {
    desk.put(claims);
    staff(desk.with(|state| state.busy()).min(desk.settings.concurrency))
}

impl Desk {
    /// Settles one verdict while the director waits for tasks.
    pub(super) fn settle_alone(&self, verdict: Verdict) {
        self.settle_all(vec![verdict]);
        self.settled();
    }

    fn settle_all(&self, mut verdicts: Vec<Verdict>) {
        let mut failures = 0;
        while !verdicts.is_empty() {
            let Ok(mut batch) = self.queue.one_batch(std::mem::take(&mut verdicts)) else { return };
            let error = self.queue.settle_batch(&mut batch).err();
            verdicts = self.record(batch, error.as_ref());
            if let Some(error) = error
                && self.trouble(&error, failures).is_err()
            {
                self.stop.store(true, Ordering::Release);
            }
            failures += 1;
        }
    }

    /// Counts what became of verdicts; gives back those that may still be settled after this error.
    fn record(&self, batch: Batch, error: Option<&Error>) -> Vec<Verdict> {
        let may_pass = error.is_some_and(Error::is_retryable_settle);
        let (mut report, mut again) = (WorkerReport::default(), Vec::new());
        for (verdict, result) in batch.results() {
            match result {
                Err(_) if may_pass && !verdict.is_over() => again.push(verdict),
                result => self.settings.count(&mut report, &verdict, &result),
            }
        }
        self.with(|state| state.report += report);
        if report.dead > 0 || report.lost > 0 {
            self.rouse();
        }
        again
    }

    fn trouble(&self, error: &Error, failures: u32) -> Result<(), Error> {
        self.settings.tell(&WorkerEvent::StoreFailed { error });
        self.rouse();
        if !error.is_retryable_settle() {
            return Err(error.again());
        }
        thread::sleep(Dice::random().backoff(failures));
        Ok(())
    }
}
