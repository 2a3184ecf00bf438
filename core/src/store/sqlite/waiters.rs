//! Who waits for a lock of any kind. Reads only: one statement, no transaction.

use rusqlite::Connection;

use crate::protocol::{Reply, WAITERS_MAX, WaiterReply, Waiters};
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::step::{View, between, dead_before, micros};

/// Like waiters.lua and permits_waiters.lua. Those of an earlier boot, which no writer has cleared yet, are gone.
pub(super) fn waiters(
    connection: &Connection,
    request: &Waiters,
    view: &View<'_>,
) -> rusqlite::Result<Reply> {
    let mut statement = connection.prepare_cached(
        "SELECT waiter.owner, waiter.came, waiter.weight FROM lock JOIN waiter ON waiter.lock = lock.id
         WHERE key = ?1 AND polled > ?2 AND (SELECT boot FROM store) = ?3
         ORDER BY arrival LIMIT ?4",
    )?;
    let most = i64::try_from(WAITERS_MAX).unwrap_or(i64::MAX);
    let waiters =
        statement.query_map((row_key(&request.name), dead_before(view.now), view.boot, most), |row| {
            // An older library did not say when it came.
            let came = Some(row.get::<_, i64>(1)?).filter(|came| *came > 0);
            let waiting = came.map(|came| between(came, view.now));
            Ok(WaiterReply {
                owner: row.get(0)?,
                since_ms: waiting.map_or(0, |waiting| number((view.wall - micros(waiting)) / 1_000)),
                waiting,
                weight: u32::try_from(row.get::<_, i64>(2)?.max(1)).unwrap_or(u32::MAX),
            })
        })?;
    waiters.collect::<rusqlite::Result<Vec<_>>>().map(Reply::Waiters)
}
