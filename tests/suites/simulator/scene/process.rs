//! A process with a client in it, as far as it is the same for all fleets; and its errands.

use std::collections::BTreeSet;
use std::time::Duration;

use stanchion::internals::Moment;
use stanchion::protocol::{Failure, Reply, Request};

use super::Scene;

/// Which of a client's calls a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Op(u64),
    Renewal(u64),
    Errand(u64),
}

/// One process.
pub struct Process {
    /// Which life: messages to an earlier one are lost.
    pub life: u32,
    /// Nothing in it runs before this.
    pub frozen_until: Moment,
    /// Drops a reply that comes after the driver has given up on it, as the real drivers do; otherwise the
    /// engine gets it, however late.
    pub drops_late_replies: bool,
    /// How often its user still wants something.
    pub turns: u32,
    /// Timers that have been set.
    pub wakes: BTreeSet<Moment>,
    /// When its machine slept last: from, to.
    pub asleep: Option<(Moment, Moment)>,
    errands: Vec<Errand>,
    next_id: u64,
}

/// A clean-up in the background.
struct Errand {
    id: u64,
    request: Request,
    sent: u32,
    awaited_until: Option<Moment>,
    until: Moment,
}

impl Process {
    pub fn new(drops_late_replies: bool, turns: u32) -> Self {
        Self {
            life: 0,
            frozen_until: Moment::from_nanos(0),
            drops_late_replies,
            turns,
            wakes: BTreeSet::new(),
            asleep: None,
            errands: Vec::new(),
            next_id: 0,
        }
    }

    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Its machine sleeps from now on; once is enough.
    pub fn suspend(&mut self, now: Moment, time: Duration) {
        if self.asleep.is_none() {
            self.asleep = Some((now, now + time));
            self.frozen_until = self.frozen_until.max(now + time);
        }
    }

    /// When a timer runs out in fact that was set then, for this moment: it does not run while the machine sleeps. Those
    /// who nap look at the clock every now and then.
    pub fn slept_through(&mut self, set: Moment, at: Moment, longest_nap: Duration) -> Option<Moment> {
        let (from, to) = self.asleep.filter(|(from, _)| set <= *from && at > *from)?;
        let later = (at + to.since(from)).min(to + longest_nap);
        self.wakes.remove(&at);
        Some(later)
    }

    /// Until when it may not know what has happened: its sleepers have not looked at the clock yet.
    pub fn dozes_until(&self, longest_nap: Duration) -> Moment {
        self.asleep.map_or(self.frozen_until, |(_, to)| self.frozen_until.max(to + longest_nap))
    }

    /// Forgets everything, as a killed process does.
    pub fn die(&mut self) {
        self.life += 1;
        self.wakes.clear();
        self.errands.clear();
    }
}

impl Scene {
    /// As the keeper does: sends what cleans up until it is answered.
    pub fn run_errand(&mut self, client: usize, request: Request) {
        let process = &mut self.processes[client];
        let id = process.next_id();
        let until = self.now + Duration::from_secs(60);
        process.errands.push(Errand { id, request, sent: 0, awaited_until: None, until });
        self.care_for_errands(client);
    }

    pub fn care_for_errands(&mut self, client: usize) {
        let now = self.now;
        let errands = &mut self.processes[client].errands;
        errands.retain(|errand| now < errand.until);
        let mut sendings = Vec::new();
        for errand in errands {
            if errand.awaited_until.is_none_or(|until| until <= now) {
                errand.sent += 1;
                errand.awaited_until = Some(now + Duration::from_secs(1));
                sendings.push((Route::Errand(errand.id), errand.sent, errand.request.clone()));
            }
        }
        for (route, number, request) in sendings {
            self.send(client, route, number, request);
            self.wake_at(client, now + Duration::from_secs(1));
        }
    }

    pub fn errand_answered(&mut self, client: usize, id: u64, result: &Result<Reply, Failure>) {
        if result.is_ok() {
            self.processes[client].errands.retain(|errand| errand.id != id);
        }
    }
}
