//! Give the lock back and offer it to the next waiter.

use std::time::Duration;

use crate::store::sqlite::hand_off::hand_off;
use crate::store::sqlite::step::{Outcome, Step, absence, micros};
use crate::token::COOLDOWN_MARKER;
use crate::verbs::{Release, ReleaseReply, Reply};

/// Like release.lua.
pub(super) fn release(step: &Step<'_>, request: &Release) -> rusqlite::Result<Outcome> {
    let row = step.lock(request.name.key())?;
    let token = request.token.as_str();
    let Some(row) = row.as_ref().filter(|row| step.value(row) == Some(token)) else {
        return Ok(Reply::Release(ReleaseReply::Gone(absence(row.as_ref()))).into());
    };
    let mut wake = None;
    match request.cooldown.filter(|cooldown| *cooldown > Duration::ZERO) {
        Some(cooldown) => step.set(row, COOLDOWN_MARKER, step.now.saturating_add(micros(cooldown)))?,
        None => wake = hand_off(step, row)?,
    }
    if request.acquire_resent {
        step.end_token(row, token)?;
    }
    Ok(Outcome { reply: Reply::Release(ReleaseReply::Released), wake })
}
