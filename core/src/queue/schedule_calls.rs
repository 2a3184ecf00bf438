//! The calls about a queue's schedules.

use std::sync::Arc;

use crate::base::error::{Error, ErrorKind};
use crate::base::name::{TaskId, checked_owner};
use crate::engine::schedule::{FiredSchedule, slot_id};
use crate::protocol::{
    Fire, FireSchedule, Fired, ListSchedules, ListSchedulesReply, MAX_REQUEST_BYTES, OWNED_MAX, Overlap,
    PauseSchedule, Place, PutSchedules, PutSchedulesReply, QueueReply, QueueVerb, ScheduleOutcome,
    ScheduleOwner, ScheduleRecord, WallMillis,
};
use crate::queue::queue_calls::{Ask, QueueCalls};
use crate::queue::queue_options::checked_count;
use crate::queue::schedule::{Schedule, ScheduleInfo, SchedulePage, Synced};
use crate::session::trace;

/// Schedules on a page at most.
const PAGE_MOST: usize = 100;
/// Generations above this are not exact in every language.
const GENERATION_MOST: u64 = 1 << 52;

impl QueueCalls {
    pub(crate) fn schedule(&self, schedule: &Schedule) -> Result<Ask<ScheduleOutcome>, Error> {
        let checked = schedule.checked().and_then(|checked| schedule.check_comes().map(|()| checked));
        let checked = checked.map_err(|error| error.during("schedule", &self.name))?;
        let put = PutSchedules { owner: None, schedules: Arc::new([checked]) };
        let ask = self.ask(QueueVerb::PutSchedules(put), |reply| match reply {
            QueueReply::PutSchedules(PutSchedulesReply::Put(outcomes, _)) => outcomes.first().copied(),
            _ => None,
        })?;
        // A late repetition would undo what was put after it.
        Ok(ask.once())
    }

    pub(crate) fn sync_schedules(
        &self,
        owner: &str,
        generation: u64,
        schedules: &[Schedule],
    ) -> Result<Ask<Synced>, Error> {
        let put = owned(owner, generation, schedules)
            .map_err(|error| error.during("sync_schedules", &self.name))?;
        self.ask(QueueVerb::PutSchedules(put), |reply| match reply {
            QueueReply::PutSchedules(reply) => Some(reply.into()),
            _ => None,
        })
    }

    pub(crate) fn get_schedule(&self, id: &str) -> Result<Ask<Option<ScheduleInfo>>, Error> {
        let list = ListSchedules::One(self.schedule_id("get_schedule", id)?);
        self.ask(QueueVerb::ListSchedules(list), |reply| match reply {
            QueueReply::ListSchedules(ListSchedulesReply { now, mut schedules, .. }) => {
                Some(schedules.pop().map(|record| ScheduleInfo::new(record, now)))
            }
            _ => None,
        })
    }

    pub(crate) fn list_schedules(&self, from: Option<&str>, max: usize) -> Result<Ask<SchedulePage>, Error> {
        let page = page(from, max).map_err(|error| error.during("list_schedules", &self.name))?;
        self.ask(QueueVerb::ListSchedules(page), |reply| match reply {
            QueueReply::ListSchedules(reply) => Some(reply.into()),
            _ => None,
        })
    }

    pub(crate) fn pause_schedule(&self, id: &str, paused: bool) -> Result<Ask<bool>, Error> {
        let operation = if paused { "pause_schedule" } else { "resume_schedule" };
        let id = self.schedule_id(operation, id)?;
        self.ask(QueueVerb::PauseSchedule(PauseSchedule { id, paused }), |reply| match reply {
            QueueReply::PauseSchedule(found) => Some(found),
            _ => None,
        })
    }

    pub(crate) fn remove_schedule(&self, id: &str) -> Result<Ask<bool>, Error> {
        let id = self.schedule_id("remove_schedule", id)?;
        let ask = self.ask(QueueVerb::RemoveSchedule(id), |reply| match reply {
            QueueReply::RemoveSchedule(found) => Some(found),
            _ => None,
        })?;
        // A repetition could remove the id's next life.
        Ok(ask.once())
    }

    /// The first half of running a schedule now: what it is like, and the store's time.
    pub(crate) fn find_schedule(&self, id: &str) -> Result<Ask<Option<(ScheduleRecord, WallMillis)>>, Error> {
        let list = ListSchedules::One(self.schedule_id("run_schedule", id)?);
        self.ask(QueueVerb::ListSchedules(list), |reply| match reply {
            QueueReply::ListSchedules(ListSchedulesReply { now, mut schedules, .. }) => {
                Some(schedules.pop().map(|record| (record, now)))
            }
            _ => None,
        })
    }

    /// The second half: its slots stay as they are. The task's id, or `None` if it was changed meanwhile.
    pub(crate) fn run_schedule(
        &self,
        record: ScheduleRecord,
        now: WallMillis,
    ) -> Result<Ask<Option<Result<String, Error>>>, Error> {
        let task = slot_id(record.id.as_str(), now);
        let fire = FireSchedule {
            id: record.id,
            version: record.version,
            cursor: record.cursor,
            due: record.due,
            missed: 0,
            overlap: Overlap::Queue,
            tasks: vec![(TaskId::stored(task.as_bytes()), now)],
        };
        let full = self.full(&task);
        self.ask(QueueVerb::Fire(Fire { schedules: Arc::new([fire]) }), move |reply| match reply {
            QueueReply::Fire(fired) => Some(match fired.first()? {
                Fired::Fired { tasks: 0, .. } => Some(Err(full)),
                Fired::Fired { .. } => Some(Ok(task)),
                Fired::Stale | Fired::Absent => None,
            }),
            _ => None,
        })
    }

    fn full(&self, task: &str) -> Error {
        let message = format!("the queue is at its limit; task {task:?} was not accepted");
        Error::new(ErrorKind::QueueFull, message).during("run_schedule", &self.name)
    }

    /// A request of [`Rounds`](crate::engine::schedule::Rounds).
    pub(crate) fn round(&self, verb: QueueVerb) -> Result<Ask<QueueReply>, Error> {
        self.ask(verb, Some)
    }

    fn schedule_id(&self, operation: &'static str, id: &str) -> Result<TaskId, Error> {
        TaskId::parse(id).map_err(|error| error.during(operation, &self.name))
    }
}

/// Counts and reports what was fired.
pub(crate) fn report(live: &crate::session::Live, queue: &str, fired: &[FiredSchedule]) {
    for one in fired {
        live.meters.queue(queue).fired(one);
        trace::fired(queue, one);
    }
}

fn page(from: Option<&str>, max: usize) -> Result<ListSchedules, Error> {
    let max = checked_count("max", max)?.min(PAGE_MOST as u32);
    let place = |text: &str| {
        Place::parse(text)
            .filter(|place| place.part == Place::SCHEDULES)
            .ok_or_else(|| Error::invalid(format!("page {text:?} is not what a listing of schedules gave")))
    };
    Ok(ListSchedules::Page { from: from.map(place).transpose()?, max })
}

fn owned(owner: &str, generation: u64, schedules: &[Schedule]) -> Result<PutSchedules, Error> {
    checked_owner(owner)?;
    if generation > GENERATION_MOST {
        return Err(Error::invalid("generation is over 2^52"));
    }
    if schedules.len() > OWNED_MAX {
        let count = schedules.len();
        return Err(Error::invalid(format!("an owner has at most {OWNED_MAX} schedules, not {count}")));
    }
    let checked: Result<Vec<_>, Error> = schedules.iter().map(Schedule::checked).collect();
    let checked = checked?;
    let mut known = std::collections::HashSet::new();
    if let Some(twice) = checked.iter().find(|new| !known.insert(&new.id)) {
        return Err(Error::invalid(format!("schedule {:?} is in the list twice", twice.id.as_str())));
    }
    let bytes: usize = checked.iter().map(|new| new.body.len() + new.timing.len()).sum();
    if bytes > MAX_REQUEST_BYTES {
        return Err(Error::invalid(format!(
            "the list has {bytes} bytes, more than {MAX_REQUEST_BYTES}: put large payloads elsewhere"
        )));
    }
    let owner = Some(ScheduleOwner { name: owner.into(), generation });
    Ok(PutSchedules { owner, schedules: checked.into() })
}
