//! Who is offered permits: the waiters at the head of the line for whom there is room.

use crate::store::sqlite::permits::used;
use crate::store::sqlite::step::{LockRow, Step, micros};
use crate::store::{GRANT_WINDOW, LINE_SCAN, OFFERS_MAX, WAITER_LIVE};
use crate::verbs::{ClientId, Waiter};

/// A waiter that is next.
pub(super) struct Chosen {
    arrival: i64,
    token: Box<str>,
    weight: i64,
    waiter: Waiter,
}

/// What a look at the line found.
#[derive(Default)]
pub(super) struct Next {
    /// Those who are next, the caller left out.
    pub(super) chosen: Vec<Chosen>,
    /// Places of the dead ones passed on the way.
    pub(super) dead: Vec<i64>,
    /// Whether it is the caller's turn.
    pub(super) mine: bool,
}

/// The caller, with what it wants.
pub(super) struct Caller<'a> {
    pub(super) token: &'a str,
    pub(super) weight: i64,
}

/// Looks at the first entries of the line: a heavy waiter that does not fit holds up those behind it. The caller is
/// in the line, or else behind all of it.
pub(super) fn next_waiters(
    step: &Step<'_>,
    lock: i64,
    mut room: i64,
    caller: Option<&Caller<'_>>,
) -> rusqlite::Result<Next> {
    let dead_before = step.now.saturating_sub(micros(WAITER_LIVE));
    let mut next = Next::default();
    let mut statement = step.connection.prepare_cached(
        "SELECT arrival, token, polled, offered, client, seq, weight FROM waiter
         WHERE lock = ?1 ORDER BY arrival LIMIT ?2",
    )?;
    let mut rows = statement.query((lock, i64::try_from(LINE_SCAN).unwrap_or(i64::MAX)))?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        let (arrival, token, polled, offered): (i64, Box<str>, i64, bool) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let me = caller.filter(|caller| *caller.token == *token);
        if me.is_none() && polled <= dead_before {
            next.dead.push(arrival);
        } else if me.is_some() || !offered {
            let weight = me.map_or(row.get(6)?, |caller| caller.weight);
            if weight > room || next.chosen.len() == OFFERS_MAX {
                return Ok(next);
            }
            room -= weight;
            if me.is_some() {
                next.mine = true;
                continue;
            }
            let client = ClientId(row.get::<_, i64>(4)?.cast_unsigned());
            let waiter = Waiter { client, seq: row.get::<_, i64>(5)?.cast_unsigned() };
            next.chosen.push(Chosen { arrival, token, weight, waiter });
        }
    }
    if seen < LINE_SCAN {
        next.mine |= caller.is_some_and(|caller| caller.weight <= room);
    }
    Ok(next)
}

/// Gives those who are next their permits for the grant window; answers whom to hint after the commit. The first
/// fence is one more than `fence`.
pub(super) fn offer_all(
    step: &Step<'_>,
    row: &LockRow,
    next: &Next,
    fence: i64,
) -> rusqlite::Result<Vec<Waiter>> {
    for arrival in &next.dead {
        step.change("DELETE FROM waiter WHERE lock = ?1 AND arrival = ?2", &[&row.id, arrival])?;
    }
    let expires = step.now.saturating_add(micros(GRANT_WINDOW));
    let mut fence = fence;
    for chosen in &next.chosen {
        fence += 1;
        step.change(
            "INSERT OR REPLACE INTO permit (lock, token, weight, fence, expires, since, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, '')",
            &[&row.id, &chosen.token, &chosen.weight, &fence, &expires],
        )?;
        step.change(
            "UPDATE waiter SET offered = 1 WHERE lock = ?1 AND arrival = ?2",
            &[&row.id, &chosen.arrival],
        )?;
    }
    if !next.chosen.is_empty() {
        step.change(
            "UPDATE lock SET fence = ?2, born = CASE WHEN fence > 0 THEN born ELSE ?2 END WHERE id = ?1",
            &[&row.id, &fence],
        )?;
    }
    Ok(next.chosen.iter().map(|chosen| chosen.waiter).collect())
}

/// After permits were given back: forgets leases that have ended, and offers what is free.
pub(super) fn hand_on(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<Vec<Waiter>> {
    forget_ended(step, row)?;
    offer_what_is_free(step, row)
}

/// As [`hand_on`], when what has ended is forgotten already.
pub(super) fn offer_what_is_free(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<Vec<Waiter>> {
    if !row.crowded {
        return Ok(Vec::new());
    }
    let next = next_waiters(step, row.id, row.permits - used(step, row)?, None)?;
    offer_all(step, row, &next, step.next_fence(row, 0) - 1)
}

/// Forgets leases that have ended.
pub(super) fn forget_ended(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<()> {
    step.change("DELETE FROM permit WHERE lock = ?1 AND expires <= ?2", &[&row.id, &step.now])?;
    Ok(())
}
