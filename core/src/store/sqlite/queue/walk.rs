//! Tasks in their order, from any place on.

use std::ops::ControlFlow;

use rusqlite::{Connection, Row};

use crate::protocol::Place;

/// A part of the order of tasks: the numbers are those of Redis' keys.
pub(super) struct Part {
    number: u8,
    table: &'static str,
    /// Which rows; ?3 is the `bound` of a walk.
    rows: &'static str,
    score: &'static str,
    member: &'static str,
}

impl Part {
    /// The place of a row with its score in this column, and its member in the next.
    pub(super) fn place(&self, row: &Row<'_>, column: usize) -> rusqlite::Result<Place> {
        let (score, member): (i64, i64) = (row.get(column)?, row.get(column + 1)?);
        let member = member.to_string().into_bytes().into();
        Ok(Place { part: self.number, score: score.to_string().into(), member })
    }
}

const fn tasks(number: u8, rows: &'static str, score: &'static str) -> Part {
    Part { number, table: "task", rows, score, member: "serial" }
}

const fn dead(number: u8, rows: &'static str) -> Part {
    Part { number, table: "dead", rows, score: "died", member: "receipt" }
}

pub(super) const LINE: Part = tasks(Place::READY, "state = 1 AND turn > ?3", "turn");
pub(super) const DUE: Part = tasks(Place::SCHEDULED, "state = 0 AND due <= ?3", "due");
pub(super) const LATER: Part = tasks(Place::SCHEDULED, "state = 0 AND due > ?3", "due");
pub(super) const ENDED: Part = tasks(Place::CLAIMED, "state = 2 AND ends <= ?3", "ends");
pub(super) const CLAIMED: Part = tasks(Place::CLAIMED, "state = 2 AND ends > ?3", "ends");
pub(super) const FAILED: Part = dead(Place::FAILED, "expired = 0 AND died > ?3");
pub(super) const EXPIRED: Part = dead(Place::EXPIRED, "expired = 1 AND died > ?3");
/// The bound of a part that has none.
pub(super) const ALL: i64 = i64::MIN;

/// Which way one goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Back,
}

/// A walk along several parts.
pub(super) struct Walk<'a> {
    pub(super) connection: &'a Connection,
    pub(super) queue: i64,
    pub(super) way: Way,
    /// "SELECT" and the columns, without the score and the member of the place, which come after them.
    pub(super) select: &'a str,
    /// How many rows one query finds at most.
    pub(super) limit: i64,
    /// After which place it begins, until it is there.
    pub(super) from: Option<&'a Place>,
}

impl Walk<'_> {
    /// Goes along a part until `see` ends it.
    pub(super) fn along(
        &mut self,
        part: &Part,
        bound: i64,
        see: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
    ) -> rusqlite::Result<ControlFlow<()>> {
        let beginning = if self.way == Way::Forward { i64::MIN } else { i64::MAX };
        let mut score = beginning;
        if let Some(place) = self.from {
            if place.part != part.number {
                return Ok(ControlFlow::Continue(()));
            }
            self.from = None;
            let member = std::str::from_utf8(&place.member).ok().and_then(|text| text.parse().ok());
            score = place.score.parse().unwrap_or(beginning);
            // Two queries, since one for both would look at all of one score.
            let tied: (i64, i64, i64, i64, i64) =
                (self.queue, self.limit, bound, score, member.unwrap_or(beginning));
            let mut statement = self.connection.prepare_cached(&self.sql(part, true))?;
            let mut rows = statement.query(tied)?;
            while let Some(row) = rows.next()? {
                if see(row)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        let mut statement = self.connection.prepare_cached(&self.sql(part, false))?;
        let mut rows = statement.query((self.queue, self.limit, bound, score))?;
        while let Some(row) = rows.next()? {
            if see(row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn sql(&self, Part { table, rows, score, member, .. }: &Part, tied: bool) -> String {
        let (after, order) = if self.way == Way::Forward { (">", "") } else { ("<", "DESC") };
        let place = match tied {
            true => format!("{score} = ?4 AND {member} {after} ?5"),
            false => format!("{score} {after} ?4"),
        };
        format!(
            "{}, {score}, {member} FROM {table} WHERE queue = ?1 AND {rows} AND {place}
             ORDER BY {score} {order}, {member} {order} LIMIT ?2",
            self.select
        )
    }
}
