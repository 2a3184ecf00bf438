//! Who waits for tasks, and who has some.

use crate::protocol::{ConsumerReply, LIST_LOOK, QueueReply};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::view::Reading;

/// Like consumers.lua.
pub(super) fn consumers(reading: &Reading<'_>) -> rusqlite::Result<QueueReply> {
    let mut statement = reading.connection.prepare_cached(
        "SELECT consumer, sum(waits), sum(1 - waits) FROM (
           SELECT * FROM (SELECT consumer, 1 AS waits FROM idle
             WHERE queue = ?1 AND chosen = 0 AND until > ?2 ORDER BY until LIMIT ?3)
           UNION ALL
           SELECT * FROM (SELECT consumer, 0 AS waits FROM task
             WHERE queue = ?1 AND state = 2 AND ends > ?2 ORDER BY ends LIMIT ?3)
         ) GROUP BY consumer ORDER BY consumer",
    )?;
    let most = i64::try_from(LIST_LOOK).unwrap_or(i64::MAX);
    let rows = statement.query_map((reading.record.id, reading.now, most), |row| {
        Ok(ConsumerReply { consumer: row.get(0)?, waiters: number(row.get(1)?), claims: number(row.get(2)?) })
    })?;
    Ok(QueueReply::Consumers(rows.collect::<rusqlite::Result<_>>()?))
}
