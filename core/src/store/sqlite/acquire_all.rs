//! Take several locks, all or none.

use crate::protocol::{AcquireAll, AcquireAllReply, Reply};
use crate::store::sqlite::acquire::record;
use crate::store::sqlite::step::{Performed, Step, micros};

/// Like acquire_all.lua.
pub(super) fn acquire_all(step: &Step<'_>, request: &AcquireAll) -> rusqlite::Result<Performed> {
    let reply = |reply| Ok(Reply::AcquireAll(reply).into());
    let token = request.token.as_str();
    let mut rows = Vec::with_capacity(request.locks.len());
    for (name, _) in &request.locks {
        let row = step.lock(name.key())?;
        if let Some(row) = &row {
            if step.has_ended(row, token)? {
                return reply(AcquireAllReply::Ended);
            }
            let value = step.value(row);
            if value != Some(token) && (value.is_some() || row.crowded) {
                return reply(AcquireAllReply::Busy);
            }
        }
        rows.push(row);
    }
    let mut fences = Vec::with_capacity(rows.len());
    for (row, (name, min_fence)) in rows.into_iter().zip(&request.locks) {
        let row = match row {
            Some(row) => row,
            None => step.create(name.key())?,
        };
        let ends = step.now.saturating_add(micros(request.ttl));
        let (granted, ends) = match step.value(&row) {
            // An earlier copy of this request took it.
            Some(_) => (row.fence.max(*min_fence), ends.max(row.expires)),
            None => (step.next_fence(&row, *min_fence), ends),
        };
        record(step, &row, token, &request.owner, granted, ends)?;
        fences.push(granted);
    }
    reply(AcquireAllReply::Granted(fences))
}
