//! Numbers as they are stored: SQLite's are signed.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::protocol::{Fence, Receipt, Version};

/// A number as it is stored.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A stored number.
pub(super) fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

macro_rules! column {
    ($name:ident) => {
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(stored(self.get()).into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(|stored| Self::new(number(stored)))
            }
        }
    };
}

column!(Fence);
column!(Receipt);
column!(Version);
