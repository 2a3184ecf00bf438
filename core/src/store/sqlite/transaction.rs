//! A write transaction.

use rusqlite::Connection;

/// Runs `body` as one write transaction. Whatever fails, nothing of it stays.
pub(super) fn transact<T>(
    connection: &Connection,
    body: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let result = body().and_then(|value| {
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(value)
    });
    if result.is_err() {
        roll_back(connection);
    }
    result
}

/// Ends a transaction that was left open, by an error or a panic.
pub(super) fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
}
