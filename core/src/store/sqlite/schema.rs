//! Whose file it is, of which version, and making its tables.

use rusqlite::Connection;

use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};
use crate::store::sqlite::failure::{Trouble, sqlite};

/// Marks a SQLite file as this library's: "Stnc" in ASCII.
const APPLICATION_ID: i32 = 0x5374_6e63;
/// The version of schema.sql.
pub(super) const VERSION: i32 = 14;
/// Kinds of columns that later versions add.
const NUMBER: &str = "INTEGER NOT NULL DEFAULT 0";
const TEXT: &str = "TEXT NOT NULL DEFAULT ''";
const BYTES: &str = "BLOB NOT NULL DEFAULT x''";
/// Columns that tables of earlier versions do not have, in their order.
const LATER: &[(&str, &str, &str)] = &[
    ("lock", "permits floor", NUMBER),
    ("waiter", "weight came", NUMBER),
    ("waiter", "owner", TEXT),
    ("queue", "expired expired_size results results_size asked_until events last_event held limited", NUMBER),
    ("queue", "flows flows_ended flows_dropped flows_look walk_at walked", NUMBER),
    ("queue", "messages last_message last_step", NUMBER),
    ("task", "backoff", NUMBER),
    ("task", "consumer history", TEXT),
    ("task", "cancelled", NUMBER),
    ("task", "progress", BYTES),
    ("task", "key node", TEXT),
    ("dead", "expired", NUMBER),
    ("dead", "consumer history key node", TEXT),
    ("idle", "consumer", TEXT),
    ("schedule", "key", TEXT),
];
const TABLES: &str = include_str!("schema.sql");

/// Makes the tables, or finds that this library may use the ones that are there.
pub(super) fn prepare(connection: &Connection, place: &str) -> Result<(), Trouble> {
    let refuse = |kind, message: String| Trouble::Failed(Failure::new(FailureKind::Final(kind), message));
    let known = inspect(connection).map_err(|error| sqlite(&error, place))?;
    match known {
        Known::Fresh | Known::Ours { version: ..VERSION, .. } => {
            create(connection).map_err(|error| sqlite(&error, place))
        }
        Known::Ours { least_version: ..=VERSION, .. } => Ok(()),
        Known::Ours { least_library, .. } => Err(refuse(
            ErrorKind::Unsupported,
            format!(
                "{place} was written by a newer library; stanchion {least_library} or newer is needed, this is {}",
                env!("CARGO_PKG_VERSION")
            ),
        )),
        Known::Foreign => Err(refuse(
            ErrorKind::WrongType,
            format!("{place} is the database of another program; give the path of a new file"),
        )),
    }
}

/// Whose a database is.
pub(super) enum Known {
    /// Nothing is in it.
    Fresh,
    Ours {
        version: i32,
        least_version: i32,
        least_library: String,
    },
    /// Another program's.
    Foreign,
}

/// Whose it is; looked at before anything is changed in it.
pub(super) fn inspect(connection: &Connection) -> rusqlite::Result<Known> {
    // One statement, so one moment: another process may be making the tables.
    let (application, version, tables): (i32, i32, i64) = connection.query_row(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
         FROM pragma_application_id, pragma_user_version",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(Known::Fresh);
    }
    if application != APPLICATION_ID {
        return Ok(Known::Foreign);
    }
    connection.query_row("SELECT least_version, least_library FROM store", [], |row| {
        Ok(Known::Ours { version, least_version: row.get(0)?, least_library: row.get(1)? })
    })
}

/// All or nothing, and once: another process may come first.
fn create(connection: &Connection) -> rusqlite::Result<()> {
    super::transaction::transact(connection, || {
        if matches!(inspect(connection)?, Known::Ours { version: VERSION.., .. }) {
            return Ok(());
        }
        connection.execute_batch(TABLES)?;
        for (table, columns, kind) in LATER {
            for column in columns.split(' ') {
                add_column(connection, table, column, kind)?;
            }
        }
        connection.execute_batch(
            "DROP INDEX IF EXISTS dead_by_time;
             DROP INDEX IF EXISTS permit_by_end;
             DROP INDEX IF EXISTS call_by_expiry;
             CREATE INDEX IF NOT EXISTS dead_by_kind ON dead (queue, expired, died, receipt);
             CREATE INDEX IF NOT EXISTS dead_by_receipt ON dead (queue, receipt);
             CREATE INDEX IF NOT EXISTS task_held ON task (queue, key, turn, id)
               WHERE state = 3 AND parked = 0;
             -- A library of an earlier version does not know that the queue is used. What a purge left has another key.
             CREATE TRIGGER IF NOT EXISTS keep_flows BEFORE DELETE ON queue
               WHEN (old.flows > 0 OR old.messages > 0) AND old.key >= ' '
             BEGIN SELECT raise(IGNORE); END;
             CREATE INDEX IF NOT EXISTS task_of_key_ready ON task (queue, key, turn) WHERE state = 1 AND key <> '';
             CREATE INDEX IF NOT EXISTS task_of_key_claimed ON task (queue, key) WHERE state = 2 AND key <> '';",
        )?;
        connection.execute(
            "INSERT INTO store (id, boot, least_version, least_library) VALUES (1, '', 1, '0.1.0')
             ON CONFLICT DO NOTHING",
            [],
        )?;
        connection.execute("INSERT INTO queue_boot (id, boot) VALUES (1, '') ON CONFLICT DO NOTHING", [])?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)
    })
}

/// Adds a column that a table of an earlier version does not have.
fn add_column(connection: &Connection, table: &str, column: &str, kind: &str) -> rusqlite::Result<()> {
    let known =
        connection.prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2")?.exists([table, column])?;
    if known {
        return Ok(());
    }
    connection.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"))
}
