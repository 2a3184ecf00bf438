//! Look at schedules.

use rusqlite::{Connection, ToSql};

use crate::protocol::{
    ListSchedules, ListSchedulesReply, NEVER, Place, QueueReply, SLOTS_MAX, ScheduleRecord,
};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::schedule::{SCHEDULE, find, read, stored_due};

/// Like list_schedules.lua. `now`: wall time in milliseconds.
pub(super) fn list_schedules(
    connection: &Connection,
    key: &str,
    now: i64,
    request: &ListSchedules,
) -> rusqlite::Result<QueueReply> {
    let (schedules, next) = match request {
        ListSchedules::Due { max, until } => {
            let most = i64::from(*max).min(SLOTS_MAX.try_into().unwrap_or(i64::MAX));
            let until = now.max((*until).min(NEVER).try_into().unwrap_or(now));
            (rows(connection, "AND due <= ?2 ORDER BY due, id LIMIT ?3", &[&key, &until, &most])?, None)
        }
        ListSchedules::One(id) => (find(connection, key, id.as_str())?.into_iter().collect(), None),
        ListSchedules::Page { from, max } => page(connection, key, from.as_ref(), *max as usize)?,
    };
    Ok(QueueReply::ListSchedules(ListSchedulesReply { now: number(now), schedules, next }))
}

/// One more than are asked for are read: whether there is a next page.
fn page(
    connection: &Connection,
    key: &str,
    from: Option<&Place>,
    max: usize,
) -> rusqlite::Result<(Vec<ScheduleRecord>, Option<Place>)> {
    let due: i64 = from.and_then(|place| place.score.parse().ok()).unwrap_or(-1);
    let id = from.map_or_else(String::new, |place| String::from_utf8_lossy(&place.member).into_owned());
    let limit = i64::try_from(max + 1).unwrap_or(i64::MAX);
    let after = "AND (due, id) > (?2, ?3) ORDER BY due, id LIMIT ?4";
    let mut schedules = rows(connection, after, &[&key, &due, &id, &limit])?;
    let has_more = schedules.len() > max;
    schedules.truncate(max);
    let next = schedules.last().filter(|_| has_more).map(place);
    Ok((schedules, next))
}

fn place(schedule: &ScheduleRecord) -> Place {
    let score = stored_due(schedule.due).to_string();
    Place { part: Place::SCHEDULES, score: score.into(), member: schedule.id.as_str().as_bytes().into() }
}

fn rows(connection: &Connection, rest: &str, values: &[&dyn ToSql]) -> rusqlite::Result<Vec<ScheduleRecord>> {
    connection.prepare_cached(&format!("{SCHEDULE} {rest}"))?.query_map(values, read)?.collect()
}
