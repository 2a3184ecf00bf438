//! What must hold, checked on each request and answer at the store, without looking at how slots are computed:
//! - S1: no slot gets a second task; S2: none is lost, they lie one period apart;
//! - S3: a list of an older generation changes nothing, and one that is paused, or gone, fires nothing;
//! - S4: no slot is fired before it is due by the store's clock;
//! - S6: no slot gets a task while the one before lives, if that is not wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stanchion::protocol::{
    Fire, FireSchedule, Fired, Missed, NewSchedule, Overlap, PutSchedules, PutSchedulesReply, QueueReply,
    QueueVerb, ScheduleOutcome, WallMillis,
};

use super::{Played, Tally};

/// One schedule, as it has to be.
#[derive(Clone, Debug)]
struct Known {
    period: u64,
    missed: Missed,
    overlap: Overlap,
    paused: bool,
    /// The last slot that was seen to, or when it was made.
    cursor: WallMillis,
    /// Slots up to now are not meant, and nobody has seen to it yet.
    fresh: bool,
    owned: bool,
}

#[derive(Debug, Default)]
pub struct Ledger {
    schedules: BTreeMap<String, Known>,
    generation: u64,
    slots: BTreeSet<String>,
    pub tally: Tally,
}

/// What there was before a step: of each schedule that is fired, whether the task of its last slot lives.
pub type Before = BTreeMap<String, bool>;

impl Ledger {
    /// The store has carried out a request.
    pub fn performed(
        &mut self,
        now: WallMillis,
        verb: &QueueVerb,
        before: &Before,
        reply: &QueueReply,
    ) -> Played {
        match (verb, reply) {
            (QueueVerb::PutSchedules(put), QueueReply::PutSchedules(reply)) => self.put(now, put, reply),
            (QueueVerb::PauseSchedule(pause), QueueReply::PauseSchedule(found)) => {
                let known = self.schedules.get_mut(pause.id.as_str());
                if known.is_some() != *found {
                    return Err(format!("S3: {:?} was found: {found}", pause.id));
                }
                if let Some(known) = known.filter(|known| known.paused != pause.paused) {
                    (known.paused, known.fresh) = (pause.paused, true);
                }
                Ok(())
            }
            (QueueVerb::RemoveSchedule(id), QueueReply::RemoveSchedule(found)) => {
                if self.schedules.remove(id.as_str()).is_some() != *found {
                    return Err(format!("S3: {id:?} was there: {found}"));
                }
                Ok(())
            }
            (QueueVerb::Fire(Fire { schedules }), QueueReply::Fire(fired)) => {
                schedules.iter().zip(fired).try_for_each(|(one, fired)| self.fired(now, one, before, *fired))
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, now: WallMillis, put: &PutSchedules, reply: &PutSchedulesReply) -> Played {
        let generation = put.owner.as_ref().map(|owner| owner.generation);
        let outcomes = match reply {
            PutSchedulesReply::Older(newer)
                if generation.is_some_and(|it| it < *newer) && *newer == self.generation =>
            {
                self.tally.older += 1;
                return Ok(());
            }
            PutSchedulesReply::Put(outcomes, _) if generation.is_none_or(|it| it >= self.generation) => {
                outcomes
            }
            _ => return Err(format!("S3: a list of generation {generation:?} after {}", self.generation)),
        };
        self.generation = generation.unwrap_or(self.generation);
        if generation.is_some() {
            let is_listed = |id: &str| put.schedules.iter().any(|new| new.id.as_str() == id);
            self.schedules.retain(|id, known| !known.owned || is_listed(id));
        }
        for (new, outcome) in put.schedules.iter().zip(outcomes) {
            self.put_one(now, new, generation.is_some(), *outcome)?;
        }
        Ok(())
    }

    fn put_one(
        &mut self,
        now: WallMillis,
        new: &NewSchedule,
        owned: bool,
        outcome: ScheduleOutcome,
    ) -> Played {
        let id = new.id.as_str().to_owned();
        let period = period_of(&new.timing);
        let before = self.schedules.get(&id).cloned();
        if before.is_some() == (outcome == ScheduleOutcome::Added) {
            return Err(format!("S3: {id} was put, and it is {outcome:?}"));
        }
        let goes_on = before.as_ref().filter(|before| before.period == period);
        let known = Known {
            period,
            missed: new.missed,
            overlap: new.overlap,
            paused: before.as_ref().map_or(new.paused, |before| before.paused),
            cursor: goes_on.map_or(now, |before| before.cursor),
            fresh: goes_on.is_none_or(|before| before.fresh),
            owned: owned || before.as_ref().is_some_and(|before| before.owned),
        };
        self.schedules.insert(id, known);
        Ok(())
    }

    fn fired(&mut self, now: WallMillis, request: &FireSchedule, before: &Before, fired: Fired) -> Played {
        let id = request.id.as_str();
        let Fired::Fired { tasks, skipped } = fired else {
            self.tally.stale += 1;
            return Ok(());
        };
        let Some(known) = self.schedules.get_mut(id).filter(|known| !known.paused) else {
            return Err(format!("S3: {id} is paused or gone, and was fired"));
        };
        let expected = expected(known, request.cursor)?;
        let (given, from) = match known.missed {
            _ if known.fresh => (0, expected.len()),
            Missed::Last => (expected.len().min(1), expected.len().saturating_sub(1)),
            _ => (expected.len(), 0),
        };
        let slots: Vec<WallMillis> = request.tasks.iter().map(|(_, due)| *due).collect();
        if slots != expected[from..] || slots.len() != given {
            return Err(format!("S2: {id} fired {slots:?}, and its slots are {expected:?}"));
        }
        if request.cursor > now {
            return Err(format!("S4: {id} has seen to {} at {now}", request.cursor));
        }
        if tasks + skipped != slots.len() as u64 {
            return Err(format!("S2: {id} has {} slots, of which {tasks} and {skipped}", slots.len()));
        }
        if known.overlap == Overlap::Skip && before.get(id) == Some(&true) && tasks > 0 {
            return Err(format!("S6: {id} fired, and its last task lives"));
        }
        if known.overlap == Overlap::Queue && skipped > 0 {
            return Err(format!("S2: {id} skipped {skipped} slots"));
        }
        (known.cursor, known.fresh) = (request.cursor, false);
        for (task, _) in &request.tasks {
            if !self.slots.insert(task.as_str().to_owned()) {
                return Err(format!("S1: {task:?} was fired twice"));
            }
        }
        self.tally.fired += tasks;
        self.tally.skipped += skipped;
        self.tally.missed += request.missed;
        Ok(())
    }

    /// For how long the first slot has been due.
    pub fn lateness(&self, now: WallMillis) -> Duration {
        let due = |known: &Known| if known.fresh { known.cursor } else { known.cursor + known.period };
        let first = self.schedules.values().filter(|known| !known.paused && !known.fresh).map(due).min();
        Duration::from_millis(first.map_or(0, |due| now.saturating_sub(due)))
    }

    /// At the end nothing is to be seen to.
    pub fn settle_accounts(&self) -> Played {
        match self.schedules.iter().find(|(_, known)| known.fresh && !known.paused) {
            Some((id, _)) => Err(format!("S5: nobody has seen to {id}")),
            None => Ok(()),
        }
    }
}

/// The slots after the last one that was seen to, up to this one.
fn expected(known: &Known, cursor: WallMillis) -> Played<Vec<WallMillis>> {
    let past = cursor.checked_sub(known.cursor).ok_or("S1: a cursor went back")?;
    if past % known.period != 0 {
        return Err(format!("S2: the cursor went on by {past}, and the period is {}", known.period));
    }
    Ok((1..=past / known.period).map(|count| known.cursor + count * known.period).collect())
}

fn period_of(timing: &str) -> u64 {
    let digits = timing.split("every ").nth(1).and_then(|text| text.split("ms").next());
    digits.and_then(|digits| digits.parse().ok()).expect("a period")
}
