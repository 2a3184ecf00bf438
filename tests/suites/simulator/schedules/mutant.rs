//! Deliberate bugs: the ledger must notice each.

use std::collections::BTreeMap;
use std::sync::Arc;

use stanchion::protocol::{
    ClaimReply, Fire, FireSchedule, Get, ListSchedules, ListSchedulesReply, PutSchedules, QueueReply,
    QueueVerb, ScheduleOwner, ScheduleRecord, TaskState,
};

use super::ledger::Before;
use super::{Played, World};

/// A deliberate bug. Each is put in where the bug would be in the real code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The store fires whatever version a schedule has by now.
    FiresWithoutComparing,
    /// One slot of several is forgotten.
    LosesASlot,
    /// Whoever fires goes by a clock of his own, which is ahead.
    GoesByHisOwnClock,
    /// A list counts, however old it is.
    OldListCounts,
    /// A claim says nothing of schedules.
    NobodyFires,
    /// Whoever waits is not told when the next schedule is due.
    NobodyWakes,
    /// A slot is not skipped though the task before lives.
    Overlaps,
    /// What was resumed fires the slots of its pause.
    FiresThePause,
}

impl Mutant {
    pub const ALL: [Self; 8] = [
        Self::FiresWithoutComparing,
        Self::LosesASlot,
        Self::GoesByHisOwnClock,
        Self::OldListCounts,
        Self::NobodyFires,
        Self::NobodyWakes,
        Self::Overlaps,
        Self::FiresThePause,
    ];
}

impl World<'_> {
    /// The request as the store gets it.
    pub(super) fn mutated(&self, client: usize, verb: &QueueVerb) -> Played<QueueVerb> {
        Ok(match (self.mutant, verb) {
            (Some(Mutant::FiresWithoutComparing), QueueVerb::Fire(fire)) => {
                self.refire(fire, |known, one| FireSchedule { version: known.version, ..one }, client)?
            }
            (Some(Mutant::Overlaps), QueueVerb::Fire(fire)) => self.refire(
                fire,
                |_, one| FireSchedule { overlap: stanchion::protocol::Overlap::Queue, ..one },
                client,
            )?,
            (Some(Mutant::LosesASlot), QueueVerb::Fire(fire)) => {
                let fewer = |_: &ScheduleRecord, mut one: FireSchedule| {
                    if one.tasks.len() > 1 {
                        one.tasks.remove(0);
                    }
                    one
                };
                self.refire(fire, fewer, client)?
            }
            (Some(Mutant::OldListCounts), QueueVerb::PutSchedules(put)) => {
                let newest = |owner: &ScheduleOwner| ScheduleOwner { generation: 1_000, ..owner.clone() };
                QueueVerb::PutSchedules(PutSchedules { owner: put.owner.as_ref().map(newest), ..put.clone() })
            }
            _ => verb.clone(),
        })
    }

    fn refire(
        &self,
        fire: &Fire,
        change: impl Fn(&ScheduleRecord, FireSchedule) -> FireSchedule,
        client: usize,
    ) -> Played<QueueVerb> {
        let mut schedules = Vec::new();
        for one in &*fire.schedules {
            let known = self.schedule(client, one)?;
            schedules.push(known.map_or_else(|| one.clone(), |known| change(&known, one.clone())));
        }
        Ok(QueueVerb::Fire(Fire { schedules: Arc::from(schedules) }))
    }

    /// The answer as the client gets it.
    pub(super) fn mutated_reply(&self, reply: QueueReply) -> QueueReply {
        match (self.mutant, reply) {
            (Some(Mutant::GoesByHisOwnClock), QueueReply::ListSchedules(reply)) => {
                QueueReply::ListSchedules(ListSchedulesReply { now: reply.now + 600_000, ..reply })
            }
            (Some(Mutant::FiresThePause), QueueReply::ListSchedules(mut reply)) => {
                reply.schedules.iter_mut().for_each(|schedule| schedule.fresh = false);
                QueueReply::ListSchedules(reply)
            }
            (Some(Mutant::NobodyFires), QueueReply::Claim(ClaimReply::SchedulesDue(reply))) => {
                QueueReply::Claim(*reply)
            }
            (Some(Mutant::NobodyFires), QueueReply::Claim(ClaimReply::Empty { next_due, rank, .. })) => {
                QueueReply::Claim(ClaimReply::Empty { next_due, rank, slot: None })
            }
            (Some(Mutant::NobodyWakes), QueueReply::Claim(ClaimReply::Empty { rank, .. })) => {
                QueueReply::Claim(ClaimReply::Empty { next_due: None, rank, slot: None })
            }
            (_, reply) => reply,
        }
    }

    fn schedule(&self, client: usize, one: &FireSchedule) -> Played<Option<ScheduleRecord>> {
        match self.ask(client, QueueVerb::ListSchedules(ListSchedules::One(one.id.clone())))? {
            QueueReply::ListSchedules(mut reply) => Ok(reply.schedules.pop()),
            other => Err(format!("{other:?}")),
        }
    }

    /// What the ledger has to know before a request is carried out.
    pub(super) fn before(&self, client: usize, verb: &QueueVerb) -> Played<Before> {
        let mut before = BTreeMap::new();
        let QueueVerb::Fire(fire) = verb else { return Ok(before) };
        for one in &*fire.schedules {
            let Some(known) = self.schedule(client, one)?.filter(|known| !known.last_task.is_empty()) else {
                continue;
            };
            let id = stanchion::internals::task_id(&known.last_task).map_err(|error| error.to_string())?;
            let lives = match self.ask(client, QueueVerb::Get(Get { id }))? {
                QueueReply::Get(task) => task.is_some_and(|task| task.state != TaskState::Dead),
                other => return Err(format!("{other:?}")),
            };
            before.insert(one.id.as_str().to_owned(), lives);
        }
        Ok(before)
    }
}
