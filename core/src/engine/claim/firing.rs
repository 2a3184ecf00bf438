//! Firing the schedules that are due. It is a part of a claim, since whoever claims is who works on the queue: so no process
//! and no leader is needed for it, and a queue that nobody works on fires nothing.

use super::*;
use crate::engine::schedule::Rounds;
use crate::protocol::WallMillis;

/// What is fired, between a reply that says that something is due and what the claim makes of that reply.
#[derive(Debug)]
pub(super) struct Firing {
    queue: usize,
    rounds: Rounds,
    /// The number of the request on its way, and when it was sent.
    sending: Option<(u32, Moment)>,
    /// The reply that is held back meanwhile, and when its request was sent; none if this is for a slot to come.
    held: Option<ClaimReply>,
    sent: Moment,
}

impl Firing {
    pub(super) fn replied(&mut self, result: Result<Reply, Failure>) {
        self.sending = None;
        match result {
            Ok(Reply::Queue(reply)) => self.rounds.replied(reply),
            _ => self.rounds.give_up(),
        }
    }
}

impl ClaimMachine {
    pub(super) fn begin_firing(&mut self, sent: Moment, queue: usize, held: ClaimReply) {
        self.firing = Some(Firing { queue, rounds: Rounds::new(), sending: None, held: Some(held), sent });
    }

    /// The first in line looks at the slot that it waits for, so that it has only to fire it when it is due.
    pub(super) fn look_ahead(&mut self, sent: Moment, slot: Option<WallMillis>) {
        let waits = matches!(self.phase, Phase::Asking) && !self.wants_channel && self.next_at < self.give_up;
        if let Some(slot) = slot.filter(|_| waits && self.exact && self.order.queues.len() == 1) {
            self.firing =
                Some(Firing { queue: 0, rounds: Rounds::ahead(slot), sending: None, held: None, sent });
        }
    }

    /// What to do now, if schedules are being fired.
    pub(super) fn fire(&mut self, now: Moment) -> Option<Step<Claimed>> {
        let firing = self.firing.as_mut()?;
        if let Some((_, sent)) = firing.sending {
            let until = self.patience(sent);
            if now < until {
                return Some(Step::Wait { until, hints: false });
            }
            // Whoever claims next goes on with it.
            self.end_firing(now);
            return Some(self.step(now));
        }
        let Some(verb) = firing.rounds.request() else {
            self.end_firing(now);
            return Some(self.step(now));
        };
        if firing.held.is_none() && firing.rounds.is_planned() && !firing.rounds.has_moved() {
            if self.hinted || now >= self.give_up {
                self.firing = None;
                return None;
            }
            if now < self.next_at {
                return Some(Step::Wait { until: self.next_at, hints: true });
            }
        }
        self.sendings += 1;
        firing.sending = Some((self.sendings, now));
        let request = Request::Queue(QueueRequest { queue: self.order.queues[firing.queue].clone(), verb });
        Some(Step::Send(Call { number: self.sendings, request, until: self.patience(now) }))
    }

    /// The firing that awaits the reply to this request.
    pub(super) fn firing_of(&mut self, number: u32) -> Option<&mut Firing> {
        self.firing.as_mut().filter(|firing| firing.sending.is_some_and(|(sending, _)| sending == number))
    }

    fn end_firing(&mut self, now: Moment) {
        let Some(Firing { queue, rounds, held, sent, .. }) = self.firing.take() else { return };
        let has_moved = rounds.has_moved();
        rounds.told().into_iter().for_each(|fired| self.tell(queue, fired));
        match held {
            Some(held) if !has_moved || held.tasks().is_some() => {
                self.answered(now, sent, queue, held);
            }
            // There is something to claim now, or will be at another time than the reply says.
            _ if has_moved => {
                self.at = queue;
                self.next_at = now;
            }
            _ => {}
        }
    }

    /// Of each schedule there is one sum: a wait may last for days, and fire a slot in each second of them.
    fn tell(&mut self, queue: usize, fired: FiredSchedule) {
        let queue = &self.order.queues[queue];
        match self.fired.iter_mut().find(|(of, known)| of == queue && known.id == fired.id) {
            Some((_, known)) => known.add(fired),
            None => self.fired.push((queue.clone(), fired)),
        }
    }

    /// Tasks that came with the news are given back, if nobody waits for them any more.
    pub(super) fn give_up_firing(&mut self) {
        let Some(Firing { queue, held: Some(held), sent, .. }) = self.firing.take() else { return };
        self.late = self.claimed_ones(sent, queue, held.into_tasks());
    }
}
