//! Add schedules, or change them.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::OptionalExtension;

use crate::base::name::TaskKey;
use crate::protocol::{
    NewSchedule, Overlap, PutSchedules, PutSchedulesReply, QueueReply, ScheduleOutcome, ScheduleOwner,
    ScheduleRecord,
};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::schedule::{find, stored_due};
use crate::store::sqlite::queue::work::{Work, millis_up};

/// Like put_schedules.lua.
pub(super) fn put_schedules(work: &mut Work<'_>, request: &PutSchedules) -> rusqlite::Result<QueueReply> {
    if let Some(owner) = &request.owner
        && let Some(newer) = raise_generation(work, owner)?
    {
        return Ok(QueueReply::PutSchedules(PutSchedulesReply::Older(newer)));
    }
    let owner = request.owner.as_ref().map(|owner| &*owner.name);
    let outcomes = request.schedules.iter().map(|new| put(work, owner, new)).collect::<Result<_, _>>()?;
    let removed = match owner {
        Some(owner) => remove_others(work, owner, &request.schedules)?,
        None => 0,
    };
    Ok(QueueReply::PutSchedules(PutSchedulesReply::Put(outcomes, removed)))
}

/// Notes the generation of the owner's list; a newer one if there is one.
fn raise_generation(work: &Work<'_>, owner: &ScheduleOwner) -> rusqlite::Result<Option<u64>> {
    let known: Option<i64> = work
        .step
        .connection
        .prepare_cached("SELECT generation FROM schedule_owner WHERE queue = ?1 AND owner = ?2")?
        .query_row((work.key, &*owner.name), |row| row.get(0))
        .optional()?;
    if let Some(known) = known.map(number).filter(|known| *known > owner.generation) {
        return Ok(Some(known));
    }
    work.step.change(
        "INSERT INTO schedule_owner (queue, owner, generation) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET generation = excluded.generation",
        &[&work.key, &&*owner.name, &stored(owner.generation)],
    )?;
    Ok(None)
}

fn put(work: &mut Work<'_>, owner: Option<&str>, new: &NewSchedule) -> rusqlite::Result<ScheduleOutcome> {
    let before = find(work.step.connection, work.key, new.id.as_str())?;
    let outcome = match &before {
        None => ScheduleOutcome::Added,
        Some(before) if is_same(work, before, owner, new)? => return Ok(ScheduleOutcome::Kept),
        Some(_) => ScheduleOutcome::Changed,
    };
    write(work, owner, new, before.as_ref())?;
    Ok(outcome)
}

fn is_same(
    work: &Work<'_>,
    before: &ScheduleRecord,
    owner: Option<&str>,
    new: &NewSchedule,
) -> rusqlite::Result<bool> {
    let is_same = *before.timing == *new.timing
        && before.missed == Some(new.missed)
        && before.overlap == new.overlap
        && before.priority == new.priority
        && before.max_attempts == new.max_attempts
        && before.expires == number(expires(new))
        && before.key == new.key
        && owner.is_none_or(|owner| before.owner == owner);
    Ok(is_same
        && work
            .step
            .connection
            .prepare_cached("SELECT 1 FROM schedule WHERE queue = ?1 AND id = ?2 AND body = ?3")?
            .exists((work.key, new.id.as_str(), &*new.body))?)
}

/// Its slots go on as they are, unless they are others.
fn write(
    work: &mut Work<'_>,
    owner: Option<&str>,
    new: &NewSchedule,
    before: Option<&ScheduleRecord>,
) -> rusqlite::Result<()> {
    let goes_on = before.filter(|before| *before.timing == *new.timing);
    let paused = before.map_or(new.paused, |before| before.paused);
    let (cursor, fresh, due) = match goes_on {
        Some(before) => (stored(before.cursor), before.fresh, stored_due(before.due)),
        None => (work.now_ms, true, if paused { stored_due(None) } else { work.now_ms }),
    };
    work.earlier |= goes_on.is_none() && !paused;
    let owner = owner.or(before.map(|before| &*before.owner)).unwrap_or_default();
    let version = work.next_version();
    work.step.change(
        "INSERT INTO schedule (queue, id, version, timing, missed, overlap, paused, cursor, fresh, due, owner,
           fired, skipped, missed_slots, last_task, priority, max_attempts, expires, body, key)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, 0, 0, '', ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (queue, id) DO UPDATE SET version = excluded.version, timing = excluded.timing,
           missed = excluded.missed, overlap = excluded.overlap, cursor = excluded.cursor,
           fresh = excluded.fresh, due = excluded.due, owner = excluded.owner, priority = excluded.priority,
           max_attempts = excluded.max_attempts, expires = excluded.expires, body = excluded.body,
           key = excluded.key",
        &[
            &work.key,
            &new.id.as_str(),
            &version,
            &&*new.timing,
            &new.missed.text(),
            &(new.overlap == Overlap::Skip),
            &paused,
            &cursor,
            &fresh,
            &due,
            &owner,
            &new.priority,
            &new.max_attempts,
            &expires(new),
            &&*new.body,
            &new.key.as_ref().map_or("", TaskKey::as_str),
        ],
    )?;
    Ok(())
}

fn expires(new: &NewSchedule) -> i64 {
    new.expires.map_or(0, |expires: Duration| millis_up(expires).max(1))
}

/// Drops what the owner had and has no more; how many.
fn remove_others(work: &Work<'_>, owner: &str, kept: &[NewSchedule]) -> rusqlite::Result<u64> {
    let kept: HashSet<&str> = kept.iter().map(|new| new.id.as_str()).collect();
    let mut owned: Vec<String> = work.step.few(
        "SELECT id FROM schedule WHERE queue = ?1 AND owner = ?2",
        &[&work.key, &owner],
        |row| row.get(0),
    )?;
    owned.retain(|id| !kept.contains(&**id));
    for id in &owned {
        work.step.change("DELETE FROM schedule WHERE queue = ?1 AND id = ?2", &[&work.key, id])?;
    }
    Ok(owned.len() as u64)
}
