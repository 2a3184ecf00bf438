//! Schedules.

use napi::bindgen_prelude::{ClassInstance, Either, Uint8Array};
use napi_derive::napi;
use stanchion::{Missed, Overlap, ScheduleOutcome};

use crate::bridge::Bridge;
use crate::convert::{Flag, Millis, Text, Wall, Whole, millis, wall};
use crate::error::{invalid, refused};
use crate::queue::Queue;
use crate::task::{checked_payload, checked_priority, pairs};

/// Schedules of a page, if nothing is said.
const PAGE: usize = 100;

/// A schedule to put in. Of the words of what was missed and a count one at most is given, which the package sees to.
#[napi]
pub struct Schedule(stanchion::Schedule);

#[napi]
impl Schedule {
    #[napi(constructor)]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub fn new(
        id: Text,
        when: Text,
        tz: Option<Text>,
        missed: Option<Text>,
        missed_most: Option<Whole>,
        overlap: Option<Text>,
        jitter: Option<Millis>,
        starts: Option<Wall>,
        ends: Option<Wall>,
        paused: Option<Flag>,
        payload: Option<Uint8Array>,
        headers: Option<Vec<Text>>,
        priority: Option<Whole>,
        max_attempts: Option<Whole>,
        expires: Option<Millis>,
        key: Option<Text>,
    ) -> napi::Result<Self> {
        let mut schedule = timed(stanchion::Schedule::new(id.0, when.0), tz, jitter, starts, ends);
        if let Some(missed) = wanted(missed, missed_most)? {
            schedule = schedule.missed(missed);
        }
        if let Some(overlap) = overlap {
            schedule = schedule.overlap(overlapping(&overlap.0)?);
        }
        if let Some(paused) = paused {
            schedule = schedule.paused(paused.0);
        }
        if let Some(payload) = payload {
            schedule = schedule.payload(checked_payload(&payload)?);
        }
        for (name, value) in pairs(headers) {
            schedule = schedule.header(name, value);
        }
        if let Some(priority) = priority {
            schedule = schedule.priority(checked_priority(priority)?);
        }
        if let Some(max_attempts) = max_attempts {
            schedule = schedule.max_attempts(max_attempts.narrow(u32::MAX));
        }
        if let Some(expires) = expires {
            schedule = schedule.expires(expires.0);
        }
        if let Some(key) = key {
            schedule = schedule.key(key.0);
        }
        Ok(Self(schedule))
    }

    /// When the slots after a time are due, in milliseconds since 1970; so many at most.
    #[napi]
    pub fn preview(&self, after: Wall, count: Whole) -> napi::Result<Vec<f64>> {
        let times = self.0.preview(after.0, count.narrow(usize::MAX)).map_err(|error| refused(&error))?;
        Ok(times.into_iter().map(wall).collect())
    }
}

/// With what says when its slots are, besides the text.
fn timed(
    mut schedule: stanchion::Schedule,
    tz: Option<Text>,
    jitter: Option<Millis>,
    starts: Option<Wall>,
    ends: Option<Wall>,
) -> stanchion::Schedule {
    if let Some(tz) = tz {
        schedule = schedule.tz(tz.0);
    }
    if let Some(jitter) = jitter {
        schedule = schedule.jitter(jitter.0);
    }
    if let Some(starts) = starts {
        schedule = schedule.starts(starts.0);
    }
    if let Some(ends) = ends {
        schedule = schedule.ends(ends.0);
    }
    schedule
}

fn wanted(word: Option<Text>, most: Option<Whole>) -> napi::Result<Option<Missed>> {
    match (word.as_ref().map(|word| &*word.0), most) {
        (_, Some(most)) => Ok(Some(Missed::All(most.narrow(u32::MAX)))),
        (Some("last"), _) => Ok(Some(Missed::Last)),
        (Some("skip"), _) => Ok(Some(Missed::Skip)),
        (Some(_), _) => Err(invalid("missed is 'last', 'skip' or a whole number")),
        (None, None) => Ok(None),
    }
}

fn overlapping(word: &str) -> napi::Result<Overlap> {
    match word {
        "queue" => Ok(Overlap::Queue),
        "skip" => Ok(Overlap::Skip),
        _ => Err(invalid("overlap is 'queue' or 'skip'")),
    }
}

/// A schedule as it is in a queue. Times are milliseconds, points in time from 1970 on.
#[napi(object, object_from_js = false)]
pub struct ScheduleInfo {
    pub id: String,
    pub when: String,
    pub tz: String,
    pub missed: Option<Either<&'static str, u32>>,
    pub overlap: &'static str,
    pub jitter: f64,
    pub starts: Option<f64>,
    pub ends: Option<f64>,
    pub paused: bool,
    pub next: Option<f64>,
    pub late: f64,
    pub owner: Option<String>,
    pub fired: f64,
    pub skipped: f64,
    pub missed_slots: f64,
    pub last_task: Option<String>,
    pub priority: u32,
    pub max_attempts: u32,
    pub expires: Option<f64>,
    pub size: f64,
    pub key: Option<String>,
}

impl From<stanchion::ScheduleInfo> for ScheduleInfo {
    fn from(info: stanchion::ScheduleInfo) -> Self {
        Self {
            id: info.id,
            when: info.when,
            tz: info.tz,
            missed: info.missed.and_then(shown),
            overlap: if info.overlap == Overlap::Skip { "skip" } else { "queue" },
            jitter: millis(info.jitter),
            starts: info.starts.map(wall),
            ends: info.ends.map(wall),
            paused: info.paused,
            next: info.next.map(wall),
            late: millis(info.late),
            owner: info.owner,
            fired: info.fired as f64,
            skipped: info.skipped as f64,
            missed_slots: info.missed_slots as f64,
            last_task: info.last_task,
            priority: u32::from(info.priority),
            max_attempts: info.max_attempts,
            expires: info.expires.map(millis),
            size: info.size as f64,
            key: info.key,
        }
    }
}

fn shown(missed: Missed) -> Option<Either<&'static str, u32>> {
    match missed {
        Missed::Last => Some(Either::A("last")),
        Missed::Skip => Some(Either::A("skip")),
        Missed::All(most) => Some(Either::B(most)),
        _ => None,
    }
}

/// Some schedules, and where the next ones begin.
#[napi(object, object_from_js = false)]
pub struct SchedulePage {
    pub schedules: Vec<ScheduleInfo>,
    pub next: Option<String>,
}

impl From<stanchion::SchedulePage> for SchedulePage {
    fn from(page: stanchion::SchedulePage) -> Self {
        Self { schedules: page.schedules.into_iter().map(ScheduleInfo::from).collect(), next: page.next }
    }
}

/// What became of an owner's list of schedules.
#[napi(object, object_from_js = false)]
pub struct Synced {
    pub added: f64,
    pub changed: f64,
    pub kept: f64,
    pub removed: f64,
    pub newer: Option<f64>,
}

impl From<stanchion::Synced> for Synced {
    fn from(synced: stanchion::Synced) -> Self {
        Self {
            added: synced.added as f64,
            changed: synced.changed as f64,
            kept: synced.kept as f64,
            removed: synced.removed as f64,
            newer: synced.newer.map(|newer| newer as f64),
        }
    }
}

#[napi]
impl Queue {
    #[napi]
    pub fn schedule(&self, bridge: Bridge, call: u32, schedule: &Schedule) -> napi::Result<()> {
        let (queue, schedule) = (self.0.clone(), schedule.0.clone());
        bridge.start(call, async move { queue.schedule(schedule).await.map(ScheduleOutcome::name) })
    }

    #[napi]
    pub fn sync_schedules(
        &self,
        bridge: Bridge,
        call: u32,
        owner: Text,
        generation: Whole,
        schedules: Vec<ClassInstance<'_, Schedule>>,
    ) -> napi::Result<()> {
        let queue = self.0.clone();
        let schedules: Vec<_> = schedules.iter().map(|schedule| schedule.0.clone()).collect();
        bridge.start(call, async move {
            queue.sync_schedules(&owner.0, generation.0, schedules).await.map(Synced::from)
        })
    }

    #[napi]
    pub fn get_schedule(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { Ok(queue.get_schedule(&id.0).await?.map(ScheduleInfo::from)) })
    }

    #[napi]
    pub fn list_schedules(
        &self,
        bridge: Bridge,
        call: u32,
        page: Option<Text>,
        max: Option<Whole>,
    ) -> napi::Result<()> {
        let (queue, max) = (self.0.clone(), max.map_or(PAGE, |max| max.narrow(usize::MAX)));
        bridge.start(call, async move {
            let from = page.as_ref().map(|page| &*page.0);
            queue.list_schedules(from, max).await.map(SchedulePage::from)
        })
    }

    #[napi]
    pub fn pause_schedule(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.pause_schedule(&id.0).await })
    }

    #[napi]
    pub fn resume_schedule(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.resume_schedule(&id.0).await })
    }

    #[napi]
    pub fn run_schedule(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.run_schedule(&id.0).await })
    }

    #[napi]
    pub fn remove_schedule(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.remove_schedule(&id.0).await })
    }
}
