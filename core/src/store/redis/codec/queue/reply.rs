//! Replies about queues.

use std::slice::Iter;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{
    AttemptFailed, Cancelled, ClaimReply, ClaimedTask, ConsumerReply, EnqueueOutcome, EventRecord,
    EventsReply, ExtendClaimReply, Happened, ListReply, NodeOf, Outcome, Place, QueueReply, QueueStats,
    QueueVerb, Receipt, Removed, RescheduleReply, ResultReply, Settled, Swept, TaskRecord, TaskState,
    Version,
};
use crate::store::redis::code::{Code, STATES, field};
use crate::store::redis::packed::{Packed, unpack};

/// The reply, if it makes sense.
pub(crate) fn decode(verb: &QueueVerb, value: &Value) -> Option<QueueReply> {
    let Value::Array(items) = value else { return None };
    let mut items = Items(items.iter());
    let code = items.code()?;
    let reply = match (verb, code) {
        (QueueVerb::Enqueue(_) | QueueVerb::Claim(_) | QueueVerb::SettleAndClaim(..), Code::Superseded) => {
            QueueReply::Superseded
        }
        (QueueVerb::Enqueue(enqueue), Code::Outcomes) => {
            let outcomes = enqueue.tasks.iter().map(|_| items.enqueued());
            QueueReply::Enqueue(outcomes.collect::<Option<_>>()?)
        }
        (QueueVerb::Claim(_), code) => QueueReply::Claim(items.claim(code)?),
        (QueueVerb::Settle(settle), Code::Outcomes) => QueueReply::Settle(items.settled(settle.items.len())?),
        (QueueVerb::SettleAndClaim(settle, _), Code::Outcomes) => {
            let count = items.size().filter(|count| *count == settle.items.len())?;
            let settled = items.settled(count)?;
            let code = items.code()?;
            QueueReply::SettleAndClaim(settled, items.claim(code)?)
        }
        (QueueVerb::ExtendClaim(_), code) => QueueReply::ExtendClaim(match code {
            Code::Extended => ExtendClaimReply::Extended(items.time()?),
            Code::Expired => ExtendClaimReply::Expired,
            Code::CancelledRun => ExtendClaimReply::Cancelled,
            Code::Stale => ExtendClaimReply::Stale,
            Code::Gone => ExtendClaimReply::Gone,
            _ => return None,
        }),
        (QueueVerb::Abandon(_), Code::Left) => QueueReply::Abandon,
        (QueueVerb::Pop(_), Code::Paused) => QueueReply::Pop(None),
        (QueueVerb::Pop(_), Code::Tasks) => QueueReply::Pop(Some(items.records()?)),
        (QueueVerb::Peek(_), Code::Tasks) => QueueReply::Peek(items.records()?),
        (QueueVerb::Get(_), Code::Absent) => QueueReply::Get(None),
        (QueueVerb::Get(_), Code::Tasks) => QueueReply::Get(Some(Box::new(items.record()?))),
        (QueueVerb::Result(_), code) => QueueReply::Result(match code {
            Code::ResultKept => {
                ResultReply::Done { version: items.version()?, result: Arc::from(items.bytes()?) }
            }
            Code::Waiting => ResultReply::Pending,
            Code::Buried => ResultReply::Dead { reason: String::from_utf8_lossy(items.bytes()?).into() },
            Code::Gone => ResultReply::Gone,
            _ => return None,
        }),
        (QueueVerb::List(_), Code::Tasks) => {
            let next = items.place()?;
            QueueReply::List(ListReply { tasks: items.records()?, next })
        }
        (QueueVerb::Remove(_), code) => QueueReply::Remove(match code {
            Code::Removed => Removed::Removed,
            Code::Absent => Removed::Absent,
            Code::OtherVersion => Removed::OtherVersion(items.version()?),
            _ => return None,
        }),
        (QueueVerb::Cancel(_), code) => QueueReply::Cancel(match code {
            Code::Removed => Cancelled::Removed,
            Code::Running => Cancelled::Running,
            Code::Absent => Cancelled::Absent,
            _ => return None,
        }),
        (QueueVerb::Reschedule(_), code) => QueueReply::Reschedule(match code {
            Code::Moved => RescheduleReply::Moved(items.number()?),
            Code::Absent => RescheduleReply::Absent,
            Code::Running => RescheduleReply::Claimed,
            Code::Buried => RescheduleReply::Dead,
            _ => return None,
        }),
        (QueueVerb::Kick(_), Code::Swept) => QueueReply::Kick(items.swept()?),
        (QueueVerb::RemoveDead(_), Code::Swept) => QueueReply::RemoveDead(items.swept()?),
        (QueueVerb::Stats, Code::Counts) => QueueReply::Stats(Box::new(items.stats()?)),
        (QueueVerb::Consumers, Code::Consumers) => QueueReply::Consumers(items.consumers()?),
        (QueueVerb::Pause(_), Code::Set) => QueueReply::Pause,
        (QueueVerb::Purge, Code::Counted) => QueueReply::Purge(items.number()?),
        (QueueVerb::Configure(_), Code::Set) => QueueReply::Configure,
        (QueueVerb::Events(_), Code::EventsFound) => {
            let last = items.number()?;
            QueueReply::Events(EventsReply::Found { events: items.events()?, last })
        }
        (QueueVerb::Events(_), Code::EventsOff) => QueueReply::Events(EventsReply::Off),
        (QueueVerb::LimitKey(_), Code::Set) => QueueReply::LimitKey(true),
        (QueueVerb::LimitKey(_), Code::Full) => QueueReply::LimitKey(false),
        (QueueVerb::ListKeys(_), Code::KeysFound) => QueueReply::ListKeys(items.keys()?),
        (QueueVerb::PutSchedules(put), code) => {
            QueueReply::PutSchedules(items.put(code, put.schedules.len())?)
        }
        (QueueVerb::ListSchedules(_), Code::Schedules) => QueueReply::ListSchedules(items.schedules()?),
        (QueueVerb::Fire(fire), Code::Outcomes) => {
            let fired = fire.schedules.iter().map(|_| items.fired());
            QueueReply::Fire(fired.collect::<Option<_>>()?)
        }
        (QueueVerb::PauseSchedule(_), Code::Set) => QueueReply::PauseSchedule(true),
        (QueueVerb::PauseSchedule(_), Code::Absent) => QueueReply::PauseSchedule(false),
        (QueueVerb::RemoveSchedule(_), Code::Removed) => QueueReply::RemoveSchedule(true),
        (QueueVerb::RemoveSchedule(_), Code::Absent) => QueueReply::RemoveSchedule(false),
        (
            QueueVerb::PutFlow(_)
            | QueueVerb::ReadOutbox(_)
            | QueueVerb::StepFlows(_)
            | QueueVerb::PostMessages(_)
            | QueueVerb::GetFlow(_)
            | QueueVerb::ListFlows(_)
            | QueueVerb::ReadNodes(_)
            | QueueVerb::LostNodes(_),
            code,
        ) => items.of_flows(verb, code)?,
        _ => return None,
    };
    // Something is left over: it is not what it seems to be.
    items.0.next().is_none().then_some(reply)
}

/// What is left of a reply.
pub(super) struct Items<'a>(Iter<'a, Value>);

impl<'a> Items<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    pub(super) fn int(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.int()?.try_into().ok()
    }

    pub(super) fn version(&mut self) -> Option<Version> {
        self.number().map(Version::new)
    }

    pub(super) fn size(&mut self) -> Option<usize> {
        self.int()?.try_into().ok()
    }

    fn rank(&mut self) -> Option<u32> {
        self.int()?.try_into().ok()
    }

    pub(super) fn code(&mut self) -> Option<Code> {
        Code::from_number(self.int()?)
    }

    fn time(&mut self) -> Option<Duration> {
        self.number().map(Duration::from_millis)
    }

    /// `None` within if it is -1.
    pub(super) fn maybe(&mut self) -> Option<Option<u64>> {
        match self.int()? {
            -1 => Some(None),
            number => Some(Some(number.try_into().ok()?)),
        }
    }

    fn maybe_time(&mut self) -> Option<Option<Duration>> {
        self.maybe().map(|number| number.map(Duration::from_millis))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.0.next()? {
            Value::BulkString(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// `None` within if there are none.
    pub(super) fn maybe_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match self.0.next()? {
            Value::BulkString(bytes) => Some(Some(bytes)),
            Value::Nil => Some(None),
            _ => None,
        }
    }

    fn enqueued(&mut self) -> Option<EnqueueOutcome> {
        let (code, version, due) = (self.code()?, self.version()?, self.number()?);
        let outcome = match code {
            Code::Added => Outcome::Added,
            Code::Kept => Outcome::Kept,
            Code::Replaced => Outcome::Replaced,
            Code::Successor => Outcome::Successor,
            Code::Throttled => Outcome::Throttled,
            Code::Skipped => Outcome::Skipped,
            Code::Full => return Some(EnqueueOutcome::Full),
            _ => return None,
        };
        Some(EnqueueOutcome::Accepted { outcome, version, due })
    }

    fn settled(&mut self, count: usize) -> Option<Vec<Settled>> {
        let one = |code| {
            Some(match code {
                Code::Done => Settled::Done { late: false, dead: false },
                Code::DoneLate => Settled::Done { late: true, dead: false },
                Code::DoneDead => Settled::Done { late: false, dead: true },
                Code::DoneLateDead => Settled::Done { late: true, dead: true },
                Code::Stale => Settled::Stale,
                Code::Gone => Settled::Gone,
                _ => return None,
            })
        };
        (0..count).map(|_| self.code().and_then(one)).collect()
    }

    fn claim(&mut self, code: Code) -> Option<ClaimReply> {
        Some(match code {
            Code::Given => {
                let mut tasks = vec![self.claimed()?];
                while !self.0.as_slice().is_empty() {
                    tasks.push(self.claimed()?);
                }
                ClaimReply::Claimed(tasks)
            }
            Code::Empty => ClaimReply::Empty {
                next_due: self.maybe()?.map(Duration::from_micros),
                rank: self.rank()?,
                slot: self.maybe()?,
            },
            Code::Paused => ClaimReply::Paused { rank: self.rank()? },
            Code::SchedulesDue => match self.code()? {
                Code::SchedulesDue => return None,
                code => ClaimReply::SchedulesDue(Box::new(self.claim(code)?)),
            },
            Code::FlowsDue => match self.code()? {
                Code::SchedulesDue | Code::FlowsDue => return None,
                code => ClaimReply::FlowsDue(Box::new(self.claim(code)?)),
            },
            _ => return None,
        })
    }

    fn claimed(&mut self) -> Option<ClaimedTask> {
        let id = TaskId::stored(self.bytes()?);
        let task = Fields::read(self.bytes()?)?;
        Some(ClaimedTask {
            id,
            body: Arc::from(self.bytes()?),
            receipt: Receipt::new(task.number(field::RECEIPT)?),
            attempt: task.small(field::ATTEMPTS)?,
            max_attempts: task.small(field::MAX_ATTEMPTS)?,
            version: Version::new(task.number(field::VERSION)?),
            due: task.number(field::DUE)?,
            priority: task.number(field::PRIORITY)?.try_into().ok()?,
            remaining: self.time()?,
            key: task.key(),
            node: task.node(),
        })
    }

    fn records(&mut self) -> Option<Vec<TaskRecord>> {
        let mut records = Vec::new();
        while !self.0.as_slice().is_empty() {
            records.push(self.record()?);
        }
        Some(records)
    }

    /// As tell.lua tells it.
    fn record(&mut self) -> Option<TaskRecord> {
        let (id, number) = (TaskId::stored(self.bytes()?), self.int()?);
        let state = STATES.iter().find(|row| row.1 == number).map(|row| row.2)?;
        let task = Fields::read(self.bytes()?)?;
        Some(TaskRecord {
            id,
            state,
            body: Arc::from(self.bytes()?),
            size: task.number(field::SIZE)?,
            version: Version::new(task.number(field::VERSION)?),
            due: task.number(field::DUE)?,
            priority: task.number(field::PRIORITY)?.try_into().ok()?,
            attempts: task.small(field::ATTEMPTS)?,
            max_attempts: task.small(field::MAX_ATTEMPTS)?,
            expires: task.number(field::EXPIRES)?,
            receipt: Receipt::new(task.number(field::RECEIPT)?),
            remaining: self.time()?,
            reason: task.text(field::REASON)?,
            consumer: task.text(field::CONSUMER).unwrap_or_default(),
            died: if state == TaskState::Dead { task.number(field::DIED_AT)? } else { 0 },
            successor_due: self.maybe()?,
            failures: task.history()?,
            progress: task.bytes(field::PROGRESS).into(),
            cancelled: task.number(field::CANCELLED).is_some(),
            key: task.key(),
        })
    }

    /// As happen.lua packs them.
    fn events(&mut self) -> Option<Vec<EventRecord>> {
        let mut events = Vec::new();
        while !self.is_empty() {
            // What a later library has told of is left out.
            events.extend(event(self.bytes()?)?);
        }
        Some(events)
    }

    fn consumers(&mut self) -> Option<Vec<ConsumerReply>> {
        let mut consumers = Vec::new();
        while !self.0.as_slice().is_empty() {
            let consumer = String::from_utf8_lossy(self.bytes()?).into_owned();
            consumers.push(ConsumerReply { consumer, waiters: self.number()?, claims: self.number()? });
        }
        consumers.sort_unstable_by(|one: &ConsumerReply, other| one.consumer.cmp(&other.consumer));
        Some(consumers)
    }

    fn swept(&mut self) -> Option<Swept> {
        Some(Swept { count: self.number()?, until: self.number()?, next: self.place()? })
    }

    /// `None` within if its part is 0.
    pub(super) fn place(&mut self) -> Option<Option<Place>> {
        let (part, score, member) = (u8::try_from(self.int()?).ok()?, self.bytes()?, self.bytes()?);
        let score = str::from_utf8(score).ok()?;
        Some((part > 0).then(|| Place { part, score: score.into(), member: member.into() }))
    }

    fn stats(&mut self) -> Option<QueueStats> {
        let mut stats = QueueStats {
            scheduled: self.number()?,
            ready: self.number()?,
            claimed: self.number()?,
            dead: self.number()?,
            successors: self.number()?,
            paused: self.int()? == 1,
            waiters: self.number()?,
            next_due: self.maybe()?.map(Duration::from_micros),
            enqueued: self.number()?,
            acked: self.number()?,
            retried: self.number()?,
            died: self.number()?,
            ..QueueStats::default()
        };
        let settings = &mut stats.settings;
        settings.max_len = self.maybe()?;
        settings.dead_max = self.maybe()?.unwrap_or(settings.dead_max);
        settings.dead_age = self.maybe_time()?.unwrap_or(settings.dead_age);
        settings.dead_bytes = self.maybe()?.unwrap_or(settings.dead_bytes);
        settings.intake = self.maybe()?.map_or(settings.intake, |intake| intake == 1);
        (stats.schedules, stats.schedules_late) = (self.number()?, self.time()?);
        stats.settings.events = self.number()?;
        self.limits(&mut stats)?;
        stats.flows = self.number()?;
        Some(stats)
    }
}

/// `None` within if it is of a kind that is not known.
fn event(bytes: &[u8]) -> Option<Option<EventRecord>> {
    let Packed::Array(fields) = unpack(bytes)?.pop()? else { return None };
    let [
        Packed::Number(number),
        Packed::Number(at),
        Packed::Number(what),
        Packed::Text(id),
        Packed::Number(version),
        Packed::Number(attempt),
        Packed::Text(reason),
    ] = &*fields
    else {
        return None;
    };
    let Some(what) = Happened::stored(*what) else { return Some(None) };
    Some(Some(EventRecord {
        number: *number,
        at: *at,
        what,
        id: TaskId::stored(id),
        version: Version::new(*version),
        attempt: (*attempt).try_into().ok()?,
        reason: String::from_utf8_lossy(reason).into(),
    }))
}

/// A packed task.
pub(super) struct Fields<'a>(Vec<Packed<'a>>);

impl<'a> Fields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        match unpack(bytes)?.pop()? {
            Packed::Array(fields) => Some(Self(fields)),
            _ => None,
        }
    }

    pub(super) fn number(&self, place: usize) -> Option<u64> {
        match self.0.get(place - 1)? {
            Packed::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Nothing if it is not there.
    fn bytes(&self, place: usize) -> &'a [u8] {
        match self.0.get(place - 1) {
            Some(Packed::Text(bytes)) => bytes,
            _ => &[],
        }
    }

    /// The key of a task, if it has one.
    fn key(&self) -> Option<TaskKey> {
        Some(self.bytes(field::KEY)).filter(|key| !key.is_empty()).map(TaskKey::stored)
    }

    /// Which node of which flow a task is, if it is one.
    fn node(&self) -> Option<NodeOf> {
        NodeOf::parse(&String::from_utf8_lossy(self.bytes(field::NODE)))
    }

    /// When and why the last attempts failed; `None` if it is nothing of the kind.
    fn history(&self) -> Option<Vec<AttemptFailed>> {
        let Some(Packed::Array(history)) = self.0.get(field::HISTORY - 1) else { return Some(Vec::new()) };
        let one = |pair: &[Packed<'_>]| match pair {
            [Packed::Number(at), Packed::Text(reason)] => {
                Some(AttemptFailed { at: *at, reason: String::from_utf8_lossy(reason).into() })
            }
            _ => None,
        };
        history.chunks(2).map(one).collect()
    }

    fn small(&self, place: usize) -> Option<u32> {
        self.number(place)?.try_into().ok()
    }

    pub(super) fn text(&self, place: usize) -> Option<String> {
        match self.0.get(place - 1)? {
            Packed::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
