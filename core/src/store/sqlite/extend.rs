//! Prolong a lease; never shortens it, unless it is to end exactly then. Or take the lock again, where it was forgotten.

use crate::protocol::{Extend, ExtendReply, Fence, Granted, Reply};
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::numbers::stored;
use crate::store::sqlite::step::{LockRow, Performed, Step, absence, between, micros};

/// Like extend.lua.
pub(super) fn extend(step: &Step<'_>, request: &Extend) -> rusqlite::Result<Performed> {
    let key = row_key(&request.name);
    let row = step.lock(&key)?;
    if let Some(granted) = request.granted.as_ref().filter(|_| request.again)
        && row.as_ref().is_none_or(|row| step.value(row).is_none())
    {
        let row = row.map_or_else(|| step.create(&key), Ok)?;
        return take_again(step, &row, request, granted);
    }
    let token = request.token.as_str();
    let Some(row) = row.as_ref().filter(|row| step.value(row) == Some(token)) else {
        return Ok(gone(row.as_ref()));
    };
    let asked = step.now.saturating_add(micros(request.ttl));
    let expires = if request.exact { asked } else { asked.max(row.expires) };
    if row.expires != expires {
        step.set(row, token, expires)?;
    }
    step.touch(row)?;
    let left = between(step.now, expires);
    Ok(Reply::Extend(ExtendReply::Extended(left)).into())
}

/// The lease keeps its fence; the next grant goes above the larger ones that tries have left.
fn take_again(
    step: &Step<'_>,
    row: &LockRow,
    request: &Extend,
    granted: &Granted,
) -> rusqlite::Result<Performed> {
    let fence = granted.fence;
    if row.broken == fence || step.has_ended(row, request.token.as_str())? {
        return Ok(gone(Some(row)));
    }
    let expires = step.now.saturating_add(micros(request.ttl));
    let born = if row.fence > Fence::NONE { row.born.min(fence) } else { fence };
    step.change(
        "UPDATE lock SET token = ?2, expires = ?3, fence = ?4, floor = max(floor, fence), born = ?5, since = ?6,
           owner = ?7 WHERE id = ?1",
        &[
            &row.id,
            &request.token.as_str(),
            &expires,
            &fence,
            &born,
            &(stored(fence.get()) / 1_000),
            &&*granted.owner,
        ],
    )?;
    step.touch(row)?;
    Ok(Reply::Extend(ExtendReply::Extended(request.ttl)).into())
}

fn gone(row: Option<&LockRow>) -> Performed {
    Reply::Extend(ExtendReply::Gone(absence(row))).into()
}
