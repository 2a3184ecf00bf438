//! What is dropped some at a time: queues that nobody uses, what a purge left, and flows.

use rusqlite::ToSql;

use crate::protocol::{DEAD_AGE, MAX_BATCH, MAX_MOVED_BYTES, QUEUE_REFRESH, QUEUE_TTL};
use crate::store::sqlite::step::{CLEAN_UP, Step, millis};

/// Drops the rows of queues that nobody used for a week and that hold nothing. Dead tasks count as nothing
/// once they are over their age, and flows that have ended, or whose parts never all came, after the week.
pub(super) fn clean_queues(step: &Step<'_>) -> rusqlite::Result<()> {
    let now = step.wall / 1_000;
    let stale: Vec<i64> = step.few(
        "SELECT id FROM queue WHERE used <= ?1 AND scheduled + ready + claimed + held = 0 AND paused = 0 AND limited < 2
           AND coalesce(max_len, dead_max, dead_age, dead_bytes, intake) IS NULL AND events = 0
           AND flows = 0 AND messages = 0 AND (dead + expired + results = 0 OR used <= ?2)
           AND NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.queue = queue.key)
         ORDER BY used LIMIT ?3",
        &[&(now - millis(QUEUE_TTL)), &(now - millis(DEAD_AGE + QUEUE_REFRESH)), &CLEAN_UP],
        |row| row.get(0),
    )?;
    for id in stale {
        if drop_rows(step, id, MAX_BATCH)? {
            step.change("DELETE FROM idle WHERE queue = ?1", &[&id])?;
            step.change("DELETE FROM call WHERE queue = ?1", &[&id])?;
            step.change("DELETE FROM queue WHERE id = ?1", &[&id])?;
        } else {
            retire(step, id)?;
        }
    }
    Ok(())
}

/// Makes a queue's row one that has no name's key and holds nothing that counts, until clean_queues or the
/// queue that was purged has dropped its tasks.
pub(super) fn retire(step: &Step<'_>, id: i64) -> rusqlite::Result<()> {
    step.change(
        "UPDATE queue SET key = char(1) || id, counter = 0, paused = 0, max_len = NULL, dead_max = NULL,
           dead_age = NULL, dead_bytes = NULL, intake = NULL, scheduled = 0, ready = 0, claimed = 0,
           parked = 0, held = 0, limited = 0, dead = 0, dead_size = 0, expired = 0, expired_size = 0, results = 0, results_size = 0,
           events = 0, flows = 0, flows_ended = 0, flows_dropped = 0, flows_look = 0, messages = 0
         WHERE id = ?1",
        &[&id],
    )?;
    Ok(())
}

/// What has bodies: the table, the column that names a row of a queue, and the bytes of one.
const LARGE: [(&str, &str, &str); 7] = [
    ("task", "serial", "length(body)"),
    ("dead", "serial", "length(body)"),
    ("result", "id", "length(body)"),
    ("flow_node", "serial", "length(body)"),
    ("flow_result", "serial", "length(body)"),
    ("outbox", "serial", "coalesce(length(body), 0)"),
    ("flow", "serial", FLOW_SIZE),
];
const FLOW_SIZE: &str = "length(states) + coalesce((
  SELECT length(graph) + length(names) FROM flow_plan WHERE flow_plan.flow = flow.serial), 0)";
/// What has none.
const SMALL: [(&str, &str); 3] = [("throttle", "id"), ("key_time", "key"), ("outbox_source", "source")];

/// What may still be dropped.
pub(super) struct Left {
    pub(super) rows: i64,
    pub(super) bytes: i64,
}

/// Drops tasks, dead tasks, windows, flows and messages of a queue, at most so many, and so many bytes; whether it has
/// none any more.
pub(super) fn drop_rows(step: &Step<'_>, queue: i64, limit: usize) -> rusqlite::Result<bool> {
    let mut left = Left { rows: i64::try_from(limit).unwrap_or(i64::MAX), bytes: MAX_MOVED_BYTES };
    for (table, row, size) in LARGE {
        drop_some(step, (table, row, size), "queue = ?1", &[&queue], &mut left)?;
    }
    for (table, row) in SMALL {
        let sql = format!(
            "DELETE FROM {table} WHERE queue = ?1 AND {row} IN (SELECT {row} FROM {table} WHERE queue = ?1 LIMIT ?2)"
        );
        left.rows -= i64::try_from(step.change(&sql, &[&queue, &left.rows])?).unwrap_or(i64::MAX);
    }
    let tables = LARGE.iter().map(|(table, ..)| table).chain(SMALL.iter().map(|(table, _)| table));
    let empty = tables.map(|table| format!("NOT EXISTS (SELECT 1 FROM {table} WHERE queue = ?1)"));
    let sql = format!("SELECT {}", empty.collect::<Vec<_>>().join(" AND "));
    step.connection.prepare_cached(&sql)?.query_row([queue], |row| row.get(0))
}

/// Drops nodes of a flow and what came of them, as many as may go.
pub(super) fn drop_nodes(step: &Step<'_>, queue: i64, flow: i64, left: &mut Left) -> rusqlite::Result<()> {
    for table in ["flow_node", "flow_result"] {
        let large = (table, "serial", "length(body)");
        drop_some(step, large, "queue = ?1 AND flow = ?2", &[&queue, &flow], left)?;
    }
    Ok(())
}

/// Drops rows for which this holds, as many as may go, but the first whatever its size, if anything may.
fn drop_some(
    step: &Step<'_>,
    (table, row, size): (&str, &str, &str),
    holds: &str,
    values: &[&dyn ToSql],
    left: &mut Left,
) -> rusqlite::Result<()> {
    // Only serial numbers are unique beyond the queue.
    let of_queue = if row == "serial" { "" } else { "queue = ?1 AND " };
    let (rows, bytes) = (values.len() + 1, values.len() + 2);
    let sql = format!(
        "DELETE FROM {table} WHERE {of_queue}{row} IN (SELECT {row} FROM (
           SELECT {row}, sum(size) OVER (ORDER BY {row}) - size AS before FROM (
             SELECT {row}, {size} AS size FROM {table} WHERE {holds} LIMIT ?{rows})) WHERE before < ?{bytes})
         RETURNING {size}"
    );
    let values: Vec<&dyn ToSql> = values.iter().copied().chain([&left.rows as _, &left.bytes as _]).collect();
    let gone: Vec<i64> = step.few(&sql, &values, |row| row.get(0))?;
    left.rows -= i64::try_from(gone.len()).unwrap_or(i64::MAX);
    left.bytes -= gone.iter().sum::<i64>();
    Ok(())
}
