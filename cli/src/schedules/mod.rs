//! `stanchion schedules`: tasks at set times.

mod shown;

use std::time::SystemTime;

use serde_json::json;
use stanchion::blocking::Queue;
use stanchion::{Overlap, Schedule, ScheduleInfo};

use crate::arguments::{Globals, OverlapWord, ScheduleOrder, SchedulesVerb};
use crate::enqueue::payload;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::queues::told;
use crate::report::Report;
use crate::store;
use crate::text::plain;

/// Schedules that one request asks for.
const PAGE: usize = 100;
/// How many of the next slots are shown with a schedule.
const NEXT: usize = 3;

/// Carries out one of the verbs.
pub fn perform(verb: &SchedulesVerb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let json = globals.json;
    let queue = |name: &str| Ok::<Queue, Failure>(store::open(globals, report)?.queue(name));
    match verb {
        SchedulesVerb::Ls { queue: name } => show(&shown::table_of(&all(&queue(name)?)?, json)),
        SchedulesVerb::Show { queue: name, id } => match queue(name)?.get_schedule(id)? {
            Some(schedule) => show(&shown::described(&schedule, &coming(&schedule), json)),
            None => Err(none(name, id)),
        },
        SchedulesVerb::Add(order) => add(order, globals, report),
        SchedulesVerb::Rm { queue: name, id } => {
            done(queue(name)?.remove_schedule(id)?, name, id, "removed", json)
        }
        SchedulesVerb::Pause { queue: name, id } => {
            done(queue(name)?.pause_schedule(id)?, name, id, "paused", json)
        }
        SchedulesVerb::Resume { queue: name, id } => {
            done(queue(name)?.resume_schedule(id)?, name, id, "resumed", json)
        }
        SchedulesVerb::Run { queue: name, id } => match queue(name)?.run_schedule(id)? {
            Some(task) => told(json, &json!({ "queue": name, "id": id, "task": task }), &plain(&task)),
            None => Err(none(name, id)),
        },
        SchedulesVerb::Preview { count, tz, after, when } => {
            let after = after.unwrap_or_else(SystemTime::now);
            let slots = Schedule::new("preview", when).tz(tz).preview(after, *count)?;
            show(&shown::slots(&slots, json))
        }
    }
}

fn show(text: &str) -> Result<u8, Failure> {
    print(text.as_bytes())?;
    Ok(exit::DONE)
}

fn all(queue: &Queue) -> Result<Vec<ScheduleInfo>, Failure> {
    let (mut schedules, mut from) = (Vec::new(), None);
    loop {
        let page = queue.list_schedules(from.as_deref(), PAGE)?;
        schedules.extend(page.schedules);
        from = page.next;
        if from.is_none() {
            return Ok(schedules);
        }
    }
}

/// The slots after the next one, as far as this version understands the schedule.
fn coming(schedule: &ScheduleInfo) -> Vec<SystemTime> {
    let Some(next) = schedule.next else { return Vec::new() };
    let mut same = Schedule::new(&schedule.id, &schedule.when).tz(&schedule.tz).jitter(schedule.jitter);
    if let Some(ends) = schedule.ends {
        same = same.ends(ends);
    }
    let mut slots = vec![next];
    slots.extend(same.preview(next, NEXT - 1).unwrap_or_default());
    slots
}

fn add(order: &ScheduleOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let mut schedule = Schedule::new(&order.id, &order.when)
        .tz(&order.tz)
        .missed(order.missed)
        .paused(order.paused)
        .priority(order.priority)
        .max_attempts(order.max_attempts)
        .overlap(match order.overlap {
            OverlapWord::Queue => Overlap::Queue,
            OverlapWord::Skip => Overlap::Skip,
        });
    if let Some(jitter) = order.jitter {
        schedule = schedule.jitter(jitter);
    }
    if let Some(starts) = order.starts {
        schedule = schedule.starts(starts);
    }
    if let Some(ends) = order.ends {
        schedule = schedule.ends(ends);
    }
    if let Some(expires) = order.expires {
        schedule = schedule.expires(expires);
    }
    if let Some(key) = &order.key {
        schedule = schedule.key(key);
    }
    for (name, value) in &order.headers {
        schedule = schedule.header(name, value);
    }
    // Before stdin is read, which may be long.
    schedule.check()?;
    let schedule = schedule.payload(payload(order.payload.as_deref())?);
    let outcome = store::open(globals, report)?.queue(&order.queue).schedule(schedule)?.name();
    let fields = json!({ "queue": order.queue, "id": order.id, "outcome": outcome });
    told(globals.json, &fields, &format!("{outcome} {}", plain(&order.id)))
}

fn done(found: bool, queue: &str, id: &str, what: &str, json: bool) -> Result<u8, Failure> {
    if !found {
        return Err(none(queue, id));
    }
    told(json, &json!({ "queue": queue, "id": id, what: true }), &format!("{} {what}", plain(id)))
}

fn none(queue: &str, id: &str) -> Failure {
    let what = format!("schedule {:?} of {:?}: there is none", plain(id), plain(queue));
    Failure::new("NoTask", exit::NO_TASK, what, "look with `stanchion schedules ls`")
}
