//! Give the lock back and offer it to the next waiter.

use std::time::Duration;

use crate::base::token::COOLDOWN_MARKER;
use crate::protocol::{Release, ReleaseReply, Reply};
use crate::store::sqlite::hand_off::hand_off;
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::step::{Performed, Step, absence, micros};

/// Like release.lua.
pub(super) fn release(step: &Step<'_>, request: &Release) -> rusqlite::Result<Performed> {
    let key = row_key(&request.name);
    let row = step.lock(&key)?;
    let token = request.token.as_str();
    let Some(row) = row.as_ref().filter(|row| step.value(row) == Some(token)) else {
        let gone = absence(row.as_ref());
        if request.acquire_resent {
            let row = row.map_or_else(|| step.create(&key), Ok)?;
            step.leave_line(row.id, token)?;
            step.end_token(&row, token)?;
        }
        return Ok(Reply::Release(ReleaseReply::Gone(gone)).into());
    };
    // The lease has ended before, and the lock was offered to its token anew, for a late copy of its acquire.
    let gone = request.own_fence.is_some_and(|own| own != row.fence);
    let gone = gone.then(|| absence(Some(row)));
    if gone.is_some() {
        // That copy stands in line until it confirms, which nobody does.
        step.leave_line(row.id, token)?;
    }
    let mut wake = Vec::new();
    match request.cooldown.filter(|cooldown| gone.is_none() && *cooldown > Duration::ZERO) {
        Some(cooldown) => step.set(row, COOLDOWN_MARKER, step.now.saturating_add(micros(cooldown)))?,
        None => wake = hand_off(step, row)?,
    }
    if request.acquire_resent {
        step.end_token(row, token)?;
    }
    let reply = gone.map_or(ReleaseReply::Released, ReleaseReply::Gone);
    Ok(Performed { reply: Reply::Release(reply), wake })
}
