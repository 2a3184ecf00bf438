//! Prolong a lease; never shortens it.

use crate::store::sqlite::permits::row_key;
use crate::store::sqlite::step::{Outcome, Step, absence, between, micros};
use crate::verbs::{Extend, ExtendReply, Reply};

/// Like extend.lua.
pub(super) fn extend(step: &Step<'_>, request: &Extend) -> rusqlite::Result<Outcome> {
    let row = step.lock(&row_key(&request.name))?;
    let token = request.token.as_str();
    let Some(row) = row.as_ref().filter(|row| step.value(row) == Some(token)) else {
        return Ok(Reply::Extend(ExtendReply::Gone(absence(row.as_ref()))).into());
    };
    let expires = step.now.saturating_add(micros(request.ttl));
    if row.expires < expires {
        step.set(row, token, expires)?;
    }
    step.touch(row)?;
    let left = between(step.now, expires.max(row.expires));
    Ok(Reply::Extend(ExtendReply::Extended(left)).into())
}
