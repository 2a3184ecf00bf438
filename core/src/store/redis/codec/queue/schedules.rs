//! Requests and replies about schedules.

use std::time::Duration;

use redis::Cmd;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{
    Fire, FireSchedule, Fired, ListSchedules, ListSchedulesReply, Missed, NEVER, NewSchedule, Overlap, Place,
    PutSchedules, PutSchedulesReply, QueueVerb, SLOTS_MAX, ScheduleOutcome, ScheduleRecord,
};
use crate::store::redis::code::{Code, schedule_field as field};
use crate::store::redis::codec::queue::millis;
use crate::store::redis::codec::queue::reply::{Fields, Items};

/// Whether the verb is about schedules.
pub(super) fn are_meant(verb: &QueueVerb) -> bool {
    matches!(
        verb,
        QueueVerb::PutSchedules(_)
            | QueueVerb::ListSchedules(_)
            | QueueVerb::Fire(_)
            | QueueVerb::PauseSchedule(_)
            | QueueVerb::RemoveSchedule(_)
    )
}

pub(super) fn encode_put(command: &mut Cmd, put: &PutSchedules) {
    let owner = put.owner.as_ref();
    command.arg(owner.map_or("", |owner| &*owner.name)).arg(owner.map_or(0, |owner| owner.generation));
    for schedule in &*put.schedules {
        let NewSchedule { id, timing, missed, overlap, paused, body, .. } = schedule;
        command.arg(id.as_str()).arg(&**timing).arg(missed.text());
        command.arg(u8::from(*overlap == Overlap::Skip)).arg(u8::from(*paused));
        command.arg(options(schedule)).arg(&**body);
    }
}

/// What a slot's task gets, as enqueue_task.lua reads it behind the due.
fn options(schedule: &NewSchedule) -> String {
    let expires = schedule.expires.map_or(0, |expires: Duration| millis(expires).max(1));
    let mut options = format!("{} {} {expires} k0", schedule.priority, schedule.max_attempts);
    if let Some(key) = &schedule.key {
        options.extend([" ", key.as_str()]);
    }
    options
}

pub(super) fn encode_list(command: &mut Cmd, list: &ListSchedules) {
    match list {
        ListSchedules::Due { max, until } => {
            command.arg("d").arg((*max).min(SLOTS_MAX as u32)).arg("").arg((*until).min(NEVER)).arg("")
        }
        ListSchedules::One(id) => command.arg("o").arg(1).arg(id.as_str()).arg("").arg(""),
        ListSchedules::Page { from, max } => {
            command.arg("p").arg(*max).arg("");
            match from {
                Some(Place { score, member, .. }) => command.arg(&**score).arg(&**member),
                None => command.arg("").arg(""),
            }
        }
    };
}

pub(super) fn encode_fire(command: &mut Cmd, fire: &Fire) {
    for one in &*fire.schedules {
        let FireSchedule { id, version, cursor, due, missed, overlap, tasks } = one;
        command.arg(id.as_str()).arg(version.get()).arg((*cursor).min(NEVER));
        command.arg(due.unwrap_or(NEVER).min(NEVER)).arg(*missed);
        command.arg(u8::from(*overlap == Overlap::Skip)).arg(tasks.len());
        for (task, due) in tasks {
            command.arg(task.as_str()).arg((*due).min(NEVER));
        }
    }
}

impl Items<'_> {
    pub(super) fn put(&mut self, code: Code, count: usize) -> Option<PutSchedulesReply> {
        let outcome = |code| {
            Some(match code {
                Code::Added => ScheduleOutcome::Added,
                Code::Replaced => ScheduleOutcome::Changed,
                Code::Kept => ScheduleOutcome::Kept,
                _ => return None,
            })
        };
        Some(match code {
            Code::Put => {
                let removed = self.number()?;
                let outcomes = (0..count).map(|_| self.code().and_then(outcome));
                PutSchedulesReply::Put(outcomes.collect::<Option<_>>()?, removed)
            }
            Code::Older => PutSchedulesReply::Older(self.number()?),
            _ => return None,
        })
    }

    pub(super) fn schedules(&mut self) -> Option<ListSchedulesReply> {
        let (now, has_more) = (self.number()?, self.int()? == 1);
        let mut schedules = Vec::new();
        while !self.is_empty() {
            schedules.push(self.schedule()?);
        }
        let next = schedules.last().filter(|_| has_more).map(place);
        Some(ListSchedulesReply { now, schedules, next })
    }

    fn schedule(&mut self) -> Option<ScheduleRecord> {
        let id = TaskId::stored(self.bytes()?);
        let schedule = Fields::read(self.bytes()?)?;
        let options = schedule.text(field::TASK_OPTIONS)?;
        let mut options = options.splitn(5, ' ');
        Some(ScheduleRecord {
            id,
            version: crate::protocol::Version::new(schedule.number(field::SERIAL)?),
            timing: schedule.text(field::TIMING)?,
            missed: Missed::parse(&schedule.text(field::MISSED)?),
            overlap: if schedule.number(field::OVERLAP)? == 1 { Overlap::Skip } else { Overlap::Queue },
            paused: schedule.number(field::IS_PAUSED)? == 1,
            cursor: schedule.number(field::CURSOR)?,
            fresh: schedule.number(field::FRESH)? == 1,
            due: Some(schedule.number(field::NEXT)?).filter(|due| *due < NEVER),
            owner: schedule.text(field::OWNER)?,
            fired: schedule.number(field::TASKS_MADE)?,
            skipped: schedule.number(field::SLOTS_SKIPPED)?,
            missed_slots: schedule.number(field::SLOTS_MISSED)?,
            last_task: schedule.text(field::LAST_TASK)?,
            priority: options.next()?.parse().ok()?,
            max_attempts: options.next()?.parse().ok()?,
            expires: options.next()?.parse().ok()?,
            size: schedule.number(field::BODY_SIZE)?,
            // After the policy.
            key: options.nth(1).map(|key| TaskKey::stored(key.as_bytes())),
        })
    }

    pub(super) fn fired(&mut self) -> Option<Fired> {
        let (code, tasks, skipped) = (self.code()?, self.number()?, self.number()?);
        Some(match code {
            Code::Fired => Fired::Fired { tasks, skipped },
            Code::Stale => Fired::Stale,
            Code::Absent => Fired::Absent,
            _ => return None,
        })
    }
}

fn place(schedule: &ScheduleRecord) -> Place {
    let score = schedule.due.unwrap_or(NEVER).to_string();
    Place { part: Place::SCHEDULES, score: score.into(), member: schedule.id.as_str().as_bytes().into() }
}
