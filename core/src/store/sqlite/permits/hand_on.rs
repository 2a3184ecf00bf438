//! The offers to those who are next in line for permits.

use crate::protocol::{Fence, GRANT_WINDOW, Waiter};
use crate::store::sqlite::line::{Look, look_along, mark_offered, tidy};
use crate::store::sqlite::permits::used;
use crate::store::sqlite::step::{LockRow, Step, micros};

/// Gives those who are next their permits for the grant window; answers whom to hint after the commit.
/// `first` is the fence of the first of them.
pub(super) fn offer_all(
    step: &Step<'_>,
    row: &LockRow,
    look: &Look,
    first: Fence,
) -> rusqlite::Result<Vec<Waiter>> {
    let roused = tidy(step, row.id, look)?;
    let expires = step.now.saturating_add(micros(GRANT_WINDOW));
    let (mut fence, mut newest) = (first, None);
    for chosen in &look.chosen {
        step.change(
            "INSERT OR REPLACE INTO permit (lock, token, weight, fence, expires, since, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, '')",
            &[&row.id, &chosen.token, &chosen.weight, &fence, &expires],
        )?;
        mark_offered(step, row.id, chosen)?;
        newest = Some(fence);
        fence = fence.next();
    }
    if let Some(newest) = newest {
        step.change(
            "UPDATE lock SET fence = ?2, born = CASE WHEN fence > 0 THEN born ELSE ?2 END WHERE id = ?1",
            &[&row.id, &newest],
        )?;
    }
    Ok(look.chosen.iter().map(|chosen| chosen.waiter).chain(roused).collect())
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
    let look = look_along(step, row.id, row.permits - used(step, row)?, None)?;
    offer_all(step, row, &look, step.next_fence(row, Fence::NONE))
}

/// Forgets leases that have ended.
pub(super) fn forget_ended(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<()> {
    step.change("DELETE FROM permit WHERE lock = ?1 AND expires <= ?2", &[&row.id, &step.now])?;
    Ok(())
}
