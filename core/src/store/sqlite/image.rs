//! All rows of a database in memory, as a value: for tests that come back to a state and go on another way.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::store::sqlite::transaction::transact;

/// The rows of each table that has any, in the order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Image(pub Vec<(String, Vec<Vec<Value>>)>);

/// What is in the database.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Image> {
    let mut image = Image(Vec::new());
    for name in tables(connection)? {
        let mut all = connection.prepare_cached(&format!("SELECT * FROM {name}"))?;
        let width = all.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..width).map(|column| row.get(column)).collect();
        let rows = all.query_map([], row)?.collect::<rusqlite::Result<Vec<Vec<Value>>>>()?;
        if !rows.is_empty() {
            image.0.push((name, rows));
        }
    }
    Ok(image)
}

/// Puts these rows in the place of all that are there.
pub(super) fn write(connection: &Connection, image: &Image) -> rusqlite::Result<()> {
    transact(connection, || replace(connection, image))
}

fn replace(connection: &Connection, image: &Image) -> rusqlite::Result<()> {
    // First all of this: triggers delete, too, and keep the rows of queues that have flows.
    connection.execute("UPDATE queue SET flows = 0, messages = 0", [])?;
    for name in tables(connection)? {
        connection.prepare_cached(&format!("DELETE FROM {name}"))?.execute([])?;
    }
    for (name, rows) in &image.0 {
        for row in rows {
            let places = vec!["?"; row.len()].join(", ");
            let insert = format!("INSERT INTO {name} VALUES ({places})");
            connection.prepare_cached(&insert)?.execute(params_from_iter(row))?;
        }
    }
    Ok(())
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut tables = connection.prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    tables.query_map([], |row| row.get(0))?.collect()
}
