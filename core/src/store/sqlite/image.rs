//! All rows of a database in memory, as a value: for tests that come back to a state and go on another way.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::base::clock::Moment;
use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::connection::transact;

/// The rows of each table that has any, in the order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Image(pub Vec<(String, Vec<Vec<Value>>)>);

impl SqliteStore {
    /// What is in the database.
    pub fn image(&self) -> Result<Image, Failure> {
        self.patiently(Moment::FAR, false, |_, open| read(&open.connection))
    }

    /// Puts these rows in the place of all that are there.
    pub fn restore(&self, image: &Image) -> Result<(), Failure> {
        if !self.database.is_memory() {
            return Err(Failure::new(FailureKind::Final(ErrorKind::Unsupported), "only memory is restored"));
        }
        self.patiently(Moment::FAR, true, |_, open| {
            transact(&open.connection, || write(&open.connection, image))
        })
    }
}

fn read(connection: &Connection) -> rusqlite::Result<Image> {
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

fn write(connection: &Connection, image: &Image) -> rusqlite::Result<()> {
    // First all of this: triggers delete, too.
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
