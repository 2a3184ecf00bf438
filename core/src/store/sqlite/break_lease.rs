//! Take the lock from whoever has it, cooldowns included, and offer it to the next waiter.

use crate::base::token::COOLDOWN_MARKER;
use crate::protocol::{BreakLease, Reply};
use crate::store::sqlite::hand_off::hand_off;
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::step::{Performed, Step};

/// Like break_lease.lua.
pub(super) fn break_lease(step: &Step<'_>, request: &BreakLease) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let held = row.as_ref().and_then(|row| step.value(row).map(|value| (row, value)));
    let Some((row, value)) = held else {
        return Ok(Reply::BreakLease(false).into());
    };
    let wake = hand_off(step, row)?;
    // A cooldown is no lease: the last one ended before it.
    if value != COOLDOWN_MARKER {
        step.change("UPDATE lock SET broken = ?2 WHERE id = ?1", &[&row.id, &row.fence])?;
        step.touch(row)?;
    }
    Ok(Performed { reply: Reply::BreakLease(true), wake })
}
