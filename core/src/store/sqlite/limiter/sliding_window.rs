//! So many in any window, wherever it begins: the times of as many takes are kept as a window can have.

use rusqlite::OptionalExtension;

use super::{State, Turn};
use crate::protocol::{Rule, SLIDING_TRIM};
use crate::store::sqlite::numbers::stored;
use crate::store::sqlite::step::Step;

/// The first take of all.
pub(super) fn first(now: i64, rule: &Rule) -> Turn {
    Turn { begins: now, at: now, ends: now.saturating_add(stored(rule.per)) }
}

/// When so many begin.
pub(super) fn turn(step: &Step<'_>, rule: &Rule, count: u32, state: &State) -> rusqlite::Result<Turn> {
    let mut begins = state.at.max(step.wall);
    // With this one the window has one more than it may from the one that is so many before the last.
    let place = state.total + i64::from(count) - i64::from(rule.most);
    if place > 0 {
        let first: Option<i64> = step
            .connection
            .prepare_cached(
                "SELECT at FROM limiter_take WHERE limiter = ?1 AND total >= ?2 ORDER BY total LIMIT 1",
            )?
            .query_row((state.id, place), |row| row.get(0))
            .optional()?;
        begins = begins.max(first.map_or(begins, |first| first.saturating_add(stored(rule.per))));
    }
    Ok(Turn { begins, at: begins, ends: begins.saturating_add(stored(rule.per)) })
}

/// Notes when some were taken, and forgets what no window has any more, a bounded number. `over`: what comes up to here is in
/// none, also if this take is given back.
pub(super) fn note(step: &Step<'_>, limiter: i64, total: i64, at: i64, over: i64) -> rusqlite::Result<()> {
    step.change(
        "INSERT INTO limiter_take (limiter, total, at) VALUES (?1, ?2, ?3)",
        &[&limiter, &total, &at],
    )?;
    forget(step, limiter, over).map(drop)
}

/// Forgets the first takes up to this one, a bounded number; how many.
pub(super) fn forget(step: &Step<'_>, limiter: i64, last: i64) -> rusqlite::Result<usize> {
    step.change(
        "DELETE FROM limiter_take WHERE limiter = ?1 AND total IN
           (SELECT total FROM limiter_take WHERE limiter = ?1 AND total <= ?2 ORDER BY total LIMIT ?3)",
        &[&limiter, &last, &SLIDING_TRIM],
    )
}

/// What the row has to say without its last take, which is forgotten.
pub(super) fn without_last(step: &Step<'_>, state: &State) -> rusqlite::Result<(i64, i64)> {
    step.change("DELETE FROM limiter_take WHERE limiter = ?1 AND total = ?2", &[&state.id, &state.total])?;
    let before = step
        .connection
        .prepare_cached("SELECT at, total FROM limiter_take WHERE limiter = ?1 ORDER BY total DESC LIMIT 1")?
        .query_row([state.id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(before.unwrap_or((0, 0)))
}
