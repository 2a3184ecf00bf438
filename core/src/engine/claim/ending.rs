//! How a claim ends, and what is cleaned up after it.

use super::*;

impl ClaimMachine {
    /// Ends without tasks, because of this. If replies to settlements came, they are returned instead of the failure,
    /// which the next call will meet as well.
    pub(super) fn fail(&mut self, failure: Failure) {
        // A store that does not answer would not answer a cleanup either: that is left to others.
        let silent = failure.is_retryable();
        let ending = if self.settled.is_some() {
            Ending::Tasks(Vec::new())
        } else {
            let maybe_done = self.open.as_ref().is_some_and(|open| !open.sent.is_empty());
            Ending::Failed(failure, self.order.settle.is_some() && maybe_done)
        };
        self.clean_up();
        self.phase = if silent || self.leftovers.is_empty() {
            Phase::Done(Some(ending))
        } else {
            Phase::Leaving(None, ending)
        };
    }

    pub(super) fn end_with(&mut self, tasks: Vec<ClaimedOne>) {
        self.clean_up();
        // Tasks are not kept waiting for a cleanup.
        self.phase = if tasks.is_empty() && !self.leftovers.is_empty() {
            Phase::Leaving(None, Ending::Tasks(tasks))
        } else {
            Phase::Done(Some(Ending::Tasks(tasks)))
        };
    }

    /// Turns whatever may be left in the store into requests that take it away.
    pub(super) fn clean_up(&mut self) {
        if let Some(first) = self.late.first() {
            let queue = first.queue.clone();
            let verb = QueueVerb::Settle(put_back(&std::mem::take(&mut self.late)));
            self.leftovers.push(Request::Queue(QueueRequest { queue, verb }));
        }
        let open = self.open.take().filter(|open| !open.sent.is_empty());
        self.spoiled |= open.is_some();
        for queue in 0..self.order.queues.len() {
            let call = open.as_ref().filter(|open| open.queue == queue).map(|open| open.id);
            let registered = std::mem::take(&mut self.registered[queue]);
            if call.is_some() || registered {
                self.leftovers.push(self.abandonment(queue, call, registered));
            }
        }
    }

    fn abandonment(&self, queue: usize, call: Option<CallId>, registered: bool) -> Request {
        let waiter = registered.then_some(self.order.waiter);
        let verb = QueueVerb::Abandon(Abandon { call, waiter, consumer: Arc::clone(&self.order.consumer) });
        Request::Queue(QueueRequest { queue: self.order.queues[queue].clone(), verb })
    }

    pub(super) fn leave(&mut self, now: Moment) -> Step<Claimed> {
        let sending = match &self.phase {
            Phase::Leaving(sending, _) => *sending,
            _ => None,
        };
        match (sending, self.leftovers.last().cloned()) {
            (Some((_, sent)), _) if now < sent + RESEND_AFTER => {
                Step::Wait { until: sent + RESEND_AFTER, hints: false }
            }
            (None, Some(request)) => {
                self.sendings += 1;
                if let Phase::Leaving(sending, _) = &mut self.phase {
                    *sending = Some((self.sendings, now));
                }
                Step::Send(Call { number: self.sendings, request, until: now + RESEND_AFTER })
            }
            _ => {
                self.leave_the_rest();
                self.step(now)
            }
        }
    }

    /// What is not cleaned up yet is left to others: see `abandon`.
    pub(super) fn leave_the_rest(&mut self) {
        if let Phase::Leaving(_, ending) = std::mem::replace(&mut self.phase, Phase::Clean) {
            self.phase = Phase::Done(Some(ending));
        }
    }

    pub(super) fn outcome(&mut self, ending: Ending) -> Result<Claimed, Error> {
        self.phase = Phase::Clean;
        match ending {
            Ending::Tasks(tasks) => {
                let settled = self.settled.take().unwrap_or_default();
                let fired = std::mem::take(&mut self.fired);
                Ok(Claimed { tasks, settled, paused: self.paused, fired })
            }
            Ending::Failed(failure, unheard) => {
                let is_passing = failure.kind == FailureKind::Final(ErrorKind::StoreUnavailable);
                let error = if unheard && (failure.is_retryable() || is_passing) {
                    let message = format!("it may or may not have been carried out: {}", failure.message);
                    Error::new(ErrorKind::Indeterminate, message)
                } else {
                    failure.into()
                };
                Err(error.during("claim", self.order.queues[0].as_str()))
            }
        }
    }
}

/// Gives tasks of one queue back, uncounted.
pub(super) fn put_back(tasks: &[ClaimedOne]) -> Settle {
    let settlement = |one: &ClaimedOne| Settlement {
        id: one.task.id.clone(),
        receipt: one.task.receipt,
        verdict: Verdict::PUT_BACK,
    };
    Settle { items: tasks.iter().map(settlement).collect() }
}
