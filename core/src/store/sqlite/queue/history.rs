//! The last failures of a task: JSON in one column, since only people read them.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::protocol::{AttemptFailed, HISTORY_MAX};
use crate::store::sqlite::numbers::{number, stored};

/// `[[milliseconds of wall time, reason], ...]`, the latest last; empty if there were none.
#[derive(Clone, Debug, Default)]
pub(super) struct History(Box<str>);

impl History {
    /// Notes a failed attempt; the oldest goes if there are more than are kept.
    pub(super) fn add(&mut self, at: i64, reason: &str) {
        let mut failures = self.failures();
        failures.push(AttemptFailed { at: number(at), reason: reason.into() });
        let first = failures.len().saturating_sub(HISTORY_MAX);
        let pairs: Vec<_> = failures[first..].iter().map(|one| (stored(one.at), &*one.reason)).collect();
        self.0 = serde_json::to_string(&pairs).unwrap_or_default().into();
    }

    /// None if it is nothing that this library wrote.
    pub(super) fn failures(&self) -> Vec<AttemptFailed> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let pairs: Vec<(i64, Box<str>)> = serde_json::from_str(&self.0).unwrap_or_default();
        pairs.into_iter().map(|(at, reason)| AttemptFailed { at: number(at), reason }).collect()
    }
}

impl ToSql for History {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for History {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(value.as_str()?.into()))
    }
}
