//! A schedule's row, and when the first one is due.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{Missed, NEVER, Overlap, ScheduleRecord, WallMillis};
use crate::store::sqlite::numbers::{number, stored};

/// Begins a query for schedules.
pub(super) const SCHEDULE: &str = "SELECT id, version, timing, missed, overlap, paused, cursor, fresh, due, owner, \
                                   fired, skipped, missed_slots, last_task, priority, max_attempts, expires, \
                                   length(body), key FROM schedule WHERE queue = ?1";

/// Reads the columns of [`SCHEDULE`].
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<ScheduleRecord> {
    Ok(ScheduleRecord {
        id: TaskId::stored(row.get_ref(0)?.as_str()?.as_bytes()),
        version: row.get(1)?,
        timing: row.get(2)?,
        missed: Missed::parse(row.get_ref(3)?.as_str()?),
        overlap: if row.get(4)? { Overlap::Skip } else { Overlap::Queue },
        paused: row.get(5)?,
        cursor: number(row.get(6)?),
        fresh: row.get(7)?,
        due: Some(number(row.get(8)?)).filter(|due| *due < NEVER),
        owner: row.get(9)?,
        fired: number(row.get(10)?),
        skipped: number(row.get(11)?),
        missed_slots: number(row.get(12)?),
        last_task: row.get(13)?,
        priority: row.get(14)?,
        max_attempts: row.get(15)?,
        expires: number(row.get(16)?),
        size: number(row.get(17)?),
        key: key_of(row.get_ref(18)?.as_str()?),
    })
}

/// A stored key; empty: none.
pub(super) fn key_of(text: &str) -> Option<TaskKey> {
    (!text.is_empty()).then(|| TaskKey::stored(text.as_bytes()))
}

/// The schedule with this id.
pub(super) fn find(connection: &Connection, key: &str, id: &str) -> rusqlite::Result<Option<ScheduleRecord>> {
    let sql = format!("{SCHEDULE} AND id = ?2");
    connection.prepare_cached(&sql)?.query_row((key, id), read).optional()
}

/// When the first schedule of the queue is due.
pub(super) fn first_due(connection: &Connection, key: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT due FROM schedule WHERE queue = ?1 ORDER BY due LIMIT 1")?
        .query_row([key], |row| row.get(0))
        .optional()
        .map(|due| due.filter(|due| *due < stored(NEVER)))
}

/// How many schedules the queue has.
pub(super) fn count(connection: &Connection, key: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM schedule WHERE queue = ?1")?
        .query_row([key], |row| row.get(0).map(number))
}

/// A due time as it is stored.
pub(super) fn stored_due(due: Option<WallMillis>) -> i64 {
    stored(due.unwrap_or(NEVER).min(NEVER))
}
