//! Firing what is due: look, plan, fire, until nothing is left or it is enough for once.

use std::time::Duration;

use crate::base::name::TaskId;
use crate::engine::schedule::{Plan, Timing, slot_id};
use crate::protocol::{
    Fire, FireSchedule, Fired, ListSchedules, ListSchedulesReply, MAX_REPLY_BYTES, QueueReply, QueueVerb,
    SLOTS_MAX, ScheduleRecord, WallMillis,
};

/// So many rounds at most: whoever fires has also something else to do.
const ROUNDS_MOST: u32 = 16;

/// A schedule that was fired, or left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredSchedule {
    /// Its id.
    pub id: String,
    /// How many tasks it made.
    pub tasks: u64,
    /// How many slots got none: the one before was running, or the queue was full.
    pub skipped: u64,
    /// How many slots were past and were not fired, 1,000 at most each time that somebody looks.
    pub missed: u64,
    /// How late the last of its slots was.
    pub late: Duration,
    /// Whether it was left alone: a newer version has written it.
    pub is_unknown: bool,
}

impl FiredSchedule {
    /// What became of it later on.
    pub(crate) fn add(&mut self, later: Self) {
        self.tasks += later.tasks;
        self.skipped += later.skipped;
        self.missed += later.missed;
        self.late = self.late.max(later.late);
        self.is_unknown |= later.is_unknown;
    }
}

/// See the module's documentation. It asks for one request after the other.
#[derive(Debug)]
pub(crate) struct Rounds {
    left: u32,
    /// What is to be fired next, and the store's time when it was planned.
    planned: Vec<FireSchedule>,
    now: WallMillis,
    /// Whether there is more to look at after that.
    has_more: bool,
    told: Vec<FiredSchedule>,
    is_over: bool,
    has_moved: bool,
    /// Only those are meant that fire no slot: the others are for who works on the queue.
    only_fresh: bool,
    /// What is due by then is meant, too.
    until: WallMillis,
}

impl Rounds {
    /// For who works on the queue.
    pub(crate) fn new() -> Self {
        Self::of(false)
    }

    /// For who has put schedules, so that it is known when their next slots are.
    pub(crate) fn fresh() -> Self {
        Self::of(true)
    }

    /// For who waits until this slot is due: what is to be looked at is looked at before, and fired then.
    pub(crate) fn ahead(slot: WallMillis) -> Self {
        Self { until: slot, ..Self::new() }
    }

    fn of(only_fresh: bool) -> Self {
        Self {
            until: 0,
            only_fresh,
            left: ROUNDS_MOST,
            planned: Vec::new(),
            now: 0,
            has_more: false,
            told: Vec::new(),
            is_over: false,
            has_moved: false,
        }
    }

    /// The next request; `None` at the end.
    pub(crate) fn request(&self) -> Option<QueueVerb> {
        if self.is_over {
            return None;
        }
        Some(match self.planned.as_slice() {
            [] => QueueVerb::ListSchedules(ListSchedules::Due { max: SLOTS_MAX as u32, until: self.until }),
            planned => QueueVerb::Fire(Fire { schedules: planned.into() }),
        })
    }

    /// The answer to it. One of another kind ends it.
    pub(crate) fn replied(&mut self, reply: QueueReply) {
        match reply {
            QueueReply::ListSchedules(reply) => self.looked(&reply),
            QueueReply::Fire(outcomes) => self.fired(&outcomes),
            _ => self.is_over = true,
        }
    }

    /// Ends without an answer: somebody else goes on with it.
    pub(crate) fn give_up(&mut self) {
        self.is_over = true;
    }

    /// Whether the next request fires.
    pub(crate) fn is_planned(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Whether schedules have moved on, by this or by somebody else.
    pub(crate) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// What was done.
    pub(crate) fn told(self) -> Vec<FiredSchedule> {
        self.told
    }

    fn looked(&mut self, reply: &ListSchedulesReply) {
        let (mut slots, mut bytes) = (0, 0);
        self.now = reply.now.max(self.until);
        self.has_more = reply.schedules.len() >= SLOTS_MAX;
        let only_fresh = self.only_fresh;
        for schedule in reply.schedules.iter().filter(|schedule| schedule.fresh || !only_fresh) {
            let Some(plan) = plan(schedule, self.now) else {
                self.leave_alone(schedule.id.as_str());
                continue;
            };
            slots += plan.slots.len().max(1);
            bytes += plan.slots.len() as u64 * schedule.size;
            let is_enough = slots > SLOTS_MAX || bytes > MAX_REPLY_BYTES as u64;
            if is_enough && !self.planned.is_empty() {
                self.has_more = true;
                break;
            }
            self.has_more |= plan.next.is_some_and(|next| next <= self.now);
            self.planned.push(fire(schedule, &plan));
        }
        self.is_over = self.planned.is_empty();
    }

    /// Said once, however often it is met.
    fn leave_alone(&mut self, id: &str) {
        if self.told.iter().any(|told| told.id == id) {
            return;
        }
        let late = Duration::ZERO;
        let id = id.to_owned();
        self.told.push(FiredSchedule { id, tasks: 0, skipped: 0, missed: 0, late, is_unknown: true });
    }

    fn fired(&mut self, outcomes: &[Fired]) {
        for (planned, outcome) in std::mem::take(&mut self.planned).into_iter().zip(outcomes) {
            let Fired::Fired { tasks, skipped } = *outcome else { continue };
            let FireSchedule { id, missed, tasks: slots, .. } = planned;
            if slots.is_empty() && missed == 0 {
                continue;
            }
            let late = slots.last().map_or(0, |(_, due)| self.now.saturating_sub(*due));
            let (id, late) = (id.as_str().to_owned(), Duration::from_millis(late));
            self.told.push(FiredSchedule { id, tasks, skipped, missed, late, is_unknown: false });
        }
        self.has_moved = true;
        self.left -= 1;
        self.is_over = !self.has_more || self.left == 0;
    }
}

/// What is to be done with one that is due; `None` if this version does not understand it.
fn plan(schedule: &ScheduleRecord, now: WallMillis) -> Option<Plan> {
    let (timing, missed) = (Timing::parse(&schedule.timing)?, schedule.missed?);
    Some(timing.plan(schedule.id.as_str(), missed, schedule.cursor, schedule.fresh, now))
}

fn fire(schedule: &ScheduleRecord, plan: &Plan) -> FireSchedule {
    let task = |slot: &WallMillis| {
        (TaskId::stored(slot_id(schedule.id.as_str(), *slot).as_bytes()), slot + plan.delay)
    };
    FireSchedule {
        id: schedule.id.clone(),
        version: schedule.version,
        cursor: plan.cursor,
        due: plan.next,
        missed: plan.missed,
        overlap: schedule.overlap,
        tasks: plan.slots.iter().map(task).collect(),
    }
}
