//! Take permits, confirm an offer, or wait for them.

use std::time::Duration;

use crate::protocol::{Acquire, AcquireReply, Fence, Permits, Reply};
use crate::store::sqlite::acquire::wait;
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::line::{Caller, Look, look_along};
use crate::store::sqlite::permits::hand_on::{forget_ended, offer_all};
use crate::store::sqlite::permits::{Held, Sum, held, sum, used};
use crate::store::sqlite::step::{LockRow, Performed, Step, between, micros};

/// Like permits_acquire.lua.
pub(super) fn acquire(step: &Step<'_>, request: &Acquire, permits: Permits) -> rusqlite::Result<Performed> {
    let key = row_key(&request.name);
    let row = match step.lock(&key)? {
        Some(row) => row,
        None => step.create(&key)?,
    };
    let token = request.token.as_str();
    if step.has_ended(&row, token)? {
        return Ok(Reply::Acquire(AcquireReply::Ended).into());
    }
    let Sum { used, mine, stale } = sum(step, &row, token)?;
    if mine && let Some(held) = held(step, &row, token)? {
        return confirm(step, &row, request, &held);
    }
    if stale {
        forget_ended(step, &row)?;
    }
    let (weight, limit) = (i64::from(permits.weight), i64::from(permits.limit));
    if row.permits != limit && (used > 0 || row.crowded) {
        let other = u32::try_from(row.permits).unwrap_or(u32::MAX);
        return Ok(Reply::Acquire(AcquireReply::OtherLimit(other)).into());
    }
    if row.permits != limit {
        step.change("UPDATE lock SET permits = ?2 WHERE id = ?1", &[&row.id, &limit])?;
    }
    let caller = Caller { token, weight };
    let look = match row.crowded {
        true => look_along(step, row.id, limit - used, Some(&caller))?,
        false => Look::at_nobody(weight <= limit - used),
    };
    if look.mine {
        if row.crowded {
            step.leave_line(row.id, token)?;
        }
        let fence = step.next_fence(&row, request.min_fence);
        return grant(
            step,
            &row,
            request,
            weight,
            fence,
            step.now.saturating_add(micros(request.ttl)),
            &look,
        );
    }
    let wake = offer_all(step, &row, &look, step.next_fence(&row, Fence::NONE))?;
    let first_end: Option<i64> = step
        .connection
        .prepare_cached("SELECT min(expires) FROM permit WHERE lock = ?1")?
        .query_row([row.id], |row| row.get(0))?;
    let remaining = first_end.map_or(Duration::ZERO, |end| between(step.now, end));
    let reply = wait(step, &row, request, weight, remaining, !look.chosen.is_empty())?;
    Ok(Performed { reply: Reply::Acquire(reply), wake })
}

/// The token has permits already: by an offer, or by an earlier copy of this request. The first confirmation sets the
/// ttl exactly, later ones never shorten it.
fn confirm(step: &Step<'_>, row: &LockRow, request: &Acquire, held: &Held) -> rusqlite::Result<Performed> {
    let offered = row.crowded && step.leave_line(row.id, request.token.as_str())?;
    let expires = step.now.saturating_add(micros(request.ttl));
    let expires = if offered { expires } else { expires.max(held.expires) };
    // More may fit than were offered some at once.
    let look = match offered {
        true => look_along(step, row.id, row.permits - used(step, row)?, None)?,
        false => Look::default(),
    };
    let fence = held.fence.max(request.min_fence);
    grant(step, row, request, held.weight, fence, expires, &look)
}

/// Writes the lease, and offers what is left to those who are next.
fn grant(
    step: &Step<'_>,
    row: &LockRow,
    request: &Acquire,
    weight: i64,
    granted: Fence,
    expires: i64,
    look: &Look,
) -> rusqlite::Result<Performed> {
    step.change(
        "INSERT OR REPLACE INTO permit (lock, token, weight, fence, expires, since, owner)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        &[
            &row.id,
            &request.token.as_str(),
            &weight,
            &granted,
            &expires,
            &(step.wall / 1_000),
            &&*request.owner,
        ],
    )?;
    let born = if row.fence > Fence::NONE { row.born } else { granted.min(step.wall_fence()) };
    let newest = granted.max(row.fence);
    step.change("UPDATE lock SET fence = ?2, born = ?3 WHERE id = ?1", &[&row.id, &newest, &born])?;
    step.touch(row)?;
    let wake = offer_all(step, row, look, newest.next())?;
    let reply = AcquireReply::Granted { fence: granted, ttl: between(step.now, expires) };
    Ok(Performed { reply: Reply::Acquire(reply), wake })
}
