//! Shared by the verbs that pass the lock on: which waiter is next, and the offer to it.

use crate::store::sqlite::step::{LockRow, Step, micros};
use crate::store::{GRANT_WINDOW, LINE_SCAN, WAITER_LIVE};
use crate::verbs::{ClientId, Waiter};

/// One waiter in the line.
pub(super) struct Entry {
    arrival: i64,
    pub(super) token: Box<str>,
    waiter: Waiter,
}

/// What a look at the line found.
#[derive(Default)]
pub(super) struct Next {
    /// The oldest live waiter whose offer has not run out unanswered, or the caller.
    pub(super) entry: Option<Entry>,
    /// Places of the dead ones passed on the way.
    dead: Vec<i64>,
}

/// Looks at the first entries of the line; a later poll goes on from there.
pub(super) fn next_waiter(step: &Step<'_>, lock: i64, me: Option<&str>) -> rusqlite::Result<Next> {
    let dead_before = step.now.saturating_sub(micros(WAITER_LIVE));
    let scan = i64::try_from(LINE_SCAN).unwrap_or(i64::MAX);
    let mut next = Next::default();
    let mut statement = step.connection.prepare_cached(
        "SELECT arrival, token, polled, offered, client, seq FROM waiter
         WHERE lock = ?1 ORDER BY arrival LIMIT ?2",
    )?;
    let mut rows = statement.query((lock, scan))?;
    while let Some(row) = rows.next()? {
        let (arrival, token, polled, offered): (i64, Box<str>, i64, bool) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let mine = me == Some(&*token);
        if !mine && polled <= dead_before {
            next.dead.push(arrival);
        } else if mine || !offered {
            let client = ClientId(row.get::<_, i64>(4)?.cast_unsigned());
            let waiter = Waiter { client, seq: row.get::<_, i64>(5)?.cast_unsigned() };
            next.entry = Some(Entry { arrival, token, waiter });
            break;
        }
    }
    Ok(next)
}

/// Removes the dead waiters that were found.
pub(super) fn drop_dead(step: &Step<'_>, lock: i64, next: &Next) -> rusqlite::Result<()> {
    for arrival in &next.dead {
        step.change("DELETE FROM waiter WHERE lock = ?1 AND arrival = ?2", &[&lock, arrival])?;
    }
    Ok(())
}

/// Sets the lock to the waiter's token for the grant window; answers whom to hint after the commit.
pub(super) fn offer(step: &Step<'_>, row: &LockRow, entry: &Entry, fence: i64) -> rusqlite::Result<Waiter> {
    let expires = step.now.saturating_add(micros(GRANT_WINDOW));
    step.change(
        "UPDATE lock SET token = ?2, expires = ?3, fence = ?4 WHERE id = ?1",
        &[&row.id, &entry.token, &expires, &fence],
    )?;
    step.change(
        "UPDATE waiter SET offered = 1 WHERE lock = ?1 AND arrival = ?2",
        &[&row.id, &entry.arrival],
    )?;
    Ok(entry.waiter)
}

/// Takes the lock from its present value and offers it to the next waiter. A turn for lockers of other
/// kinds (`foreign_share`) would help nobody: there are none here.
pub(super) fn hand_off(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<Vec<Waiter>> {
    let next = if row.crowded { next_waiter(step, row.id, None)? } else { Next::default() };
    drop_dead(step, row.id, &next)?;
    match &next.entry {
        Some(entry) => offer(step, row, entry, step.next_fence(row, 0)).map(|waiter| vec![waiter]),
        None => step.clear(row).map(|()| Vec::new()),
    }
}
