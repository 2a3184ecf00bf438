//! Shared by the verbs that pass an exclusive lock on: the offer to the waiter that is next.

use crate::protocol::{Fence, GRANT_WINDOW, Waiter};
use crate::store::sqlite::line::{Next, look_along, mark_offered, tidy};
use crate::store::sqlite::step::{LockRow, Step, micros};

/// Sets the lock to the waiter's token for the grant window; answers whom to hint after the commit.
pub(super) fn offer(step: &Step<'_>, row: &LockRow, next: &Next, fence: Fence) -> rusqlite::Result<Waiter> {
    let expires = step.now.saturating_add(micros(GRANT_WINDOW));
    step.change(
        "UPDATE lock SET token = ?2, expires = ?3, fence = ?4 WHERE id = ?1",
        &[&row.id, &next.token, &expires, &fence],
    )?;
    mark_offered(step, row.id, next)?;
    Ok(next.waiter)
}

/// Takes the lock from its present value and offers it to the next waiter. A turn for lockers of other
/// kinds (`foreign_share`) would help nobody: there are none here.
pub(super) fn hand_off(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<Vec<Waiter>> {
    step.touch(row)?;
    if !row.crowded {
        return step.clear(row).map(|()| Vec::new());
    }
    let look = look_along(step, row.id, 1, None)?;
    let mut wake = tidy(step, row.id, &look)?;
    match look.chosen.first() {
        Some(next) => wake.insert(0, offer(step, row, next, step.next_fence(row, Fence::NONE))?),
        None => step.clear(row)?,
    }
    Ok(wake)
}
