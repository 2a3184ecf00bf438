//! Swap the token of a lease that was handed over. A handle works once: the old token is gone then.

use crate::protocol::{Reply, Resume, ResumeReply};
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::step::{LockRow, Performed, Step, absence, between};

/// Like resume.lua.
pub(super) fn resume(step: &Step<'_>, request: &Resume) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let (old, new) = (request.old.as_str(), request.new.as_str());
    let is_over = is_taken_back(step, row.as_ref(), request)?;
    let holds = |token| row.as_ref().filter(|row| !is_over && step.value(row) == Some(token));
    if let Some(row) = holds(old) {
        step.change(
            "UPDATE lock SET token = ?2, owner = ?3 WHERE id = ?1",
            &[&row.id, &new, &&*request.owner],
        )?;
        step.touch(row)?;
    }
    if request.undo
        && let Some(row) = holds(old).or_else(|| holds(new))
    {
        step.end_token(row, old)?;
    }
    let reply = match holds(old).or_else(|| holds(new)) {
        Some(row) => {
            ResumeReply::Resumed { fence: row.fence, ttl: between(step.now, row.expires), permits: None }
        }
        None => ResumeReply::Gone(absence(row.as_ref())),
    };
    Ok(Reply::Resume(reply).into())
}

/// Whether this swap was taken back before it came.
pub(super) fn is_taken_back(
    step: &Step<'_>,
    row: Option<&LockRow>,
    request: &Resume,
) -> rusqlite::Result<bool> {
    match row {
        Some(row) if !request.undo => step.has_ended(row, request.new.as_str()),
        _ => Ok(false),
    }
}
