//! Working off how nodes of flows ended. It is a part of a claim, as firing is: whoever claims is who works on the queue.

use super::*;
use crate::engine::flow::Rounds;

/// What is worked off, between a reply that says that there is something and what the claim makes of that reply.
#[derive(Debug)]
pub(super) struct Stepping {
    queue: usize,
    rounds: Rounds,
    /// The number of the request on its way, and when it was sent.
    sending: Option<(u32, Moment)>,
    /// The reply that is held back meanwhile, and when its request was sent.
    held: ClaimReply,
    sent: Moment,
}

impl Stepping {
    pub(super) fn replied(&mut self, result: Result<Reply, Failure>) {
        self.sending = None;
        match result {
            Ok(Reply::Queue(reply)) => self.rounds.replied(reply),
            Err(failure) if failure.kind == FailureKind::Final(ErrorKind::WrongType) => self.rounds.refused(),
            _ => self.rounds.give_up(),
        }
    }
}

impl ClaimMachine {
    pub(super) fn begin_stepping(&mut self, sent: Moment, queue: usize, held: ClaimReply) {
        let name = self.order.queues[queue].clone();
        // Tasks are not kept waiting for long.
        let rounds = if held.tasks().is_some() { Rounds::brief(name) } else { Rounds::new(name) };
        self.stepping = Some(Stepping { queue, rounds, sending: None, held, sent });
    }

    /// What to do now, if an outbox is being worked off.
    pub(super) fn step_flows(&mut self, now: Moment) -> Option<Step<Claimed>> {
        let stepping = self.stepping.as_mut()?;
        if let Some((_, sent)) = stepping.sending {
            let until = self.patience(sent);
            if now < until {
                return Some(Step::Wait { until, hints: false });
            }
            // Whoever claims next goes on with it.
            self.end_stepping(now);
            return Some(self.step(now));
        }
        let Some((queue, verb)) = stepping.rounds.request(&mut self.order.slot) else {
            self.end_stepping(now);
            return Some(self.step(now));
        };
        self.sendings += 1;
        stepping.sending = Some((self.sendings, now));
        let request = Request::Queue(QueueRequest { queue, verb });
        Some(Step::Send(Call { number: self.sendings, request, until: self.patience(now) }))
    }

    /// The stepping that awaits the reply to this request.
    pub(super) fn stepping_of(&mut self, number: u32) -> Option<&mut Stepping> {
        self.stepping
            .as_mut()
            .filter(|stepping| stepping.sending.is_some_and(|(sending, _)| sending == number))
    }

    fn end_stepping(&mut self, now: Moment) {
        let Some(Stepping { queue, rounds, sending, held, sent }) = self.stepping.take() else { return };
        self.spoiled |= sending.is_some() && rounds.enqueues();
        if rounds.has_moved() && held.tasks().is_none() {
            // There may be something to claim now.
            self.at = queue;
            self.next_at = now;
        } else {
            self.answered(now, sent, queue, held);
        }
    }

    /// Tasks that came with the news are given back, if nobody waits for them any more.
    pub(super) fn give_up_stepping(&mut self) {
        let Some(Stepping { queue, rounds, sending, held, sent }) = self.stepping.take() else { return };
        self.spoiled |= sending.is_some() && rounds.enqueues();
        self.late = self.claimed_ones(sent, queue, held.into_tasks());
    }
}
