//! What the tasks write to: a table that refuses a fence smaller than one that it has seen. It has nothing to do with the
//! store of the queue, and stands for any SQL database.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::Outcome;

pub const ITEM: &str = "chair";

/// A price, and the fence that it was written with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub euros: i64,
    pub fence: i64,
}

pub struct Prices(Connection);

impl Prices {
    pub fn create(file: &Path) -> Outcome<Self> {
        let prices = Self::open(file)?;
        prices.0.execute_batch(
            "CREATE TABLE price (item TEXT PRIMARY KEY, euros INTEGER NOT NULL, fence BIGINT NOT NULL DEFAULT 0)",
        )?;
        prices.0.execute("INSERT INTO price (item, euros) VALUES (?, 100)", [ITEM])?;
        Ok(prices)
    }

    pub fn open(file: &Path) -> Outcome<Self> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        Ok(Self(connection))
    }

    /// How many rows it changed: none if a later run has written before.
    pub fn write(&self, price: Price) -> Outcome<usize> {
        let Price { euros, fence } = price;
        let statement = "UPDATE price SET euros = ?, fence = ? WHERE item = ? AND fence <= ?";
        Ok(self.0.execute(statement, (euros, fence, ITEM, fence))?)
    }

    pub fn read(&self) -> Outcome<Price> {
        let statement = "SELECT euros, fence FROM price WHERE item = ?";
        let price = |row: &rusqlite::Row<'_>| Ok(Price { euros: row.get(0)?, fence: row.get(1)? });
        Ok(self.0.query_row(statement, [ITEM], price)?)
    }
}
