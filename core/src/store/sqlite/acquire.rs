//! Take the lock, confirm an offer, or wait for it.

use std::time::Duration;

use crate::base::name::LockKind;
use crate::protocol::{Acquire, AcquireReply, CACHED_RANK, Fence, GRANT_WINDOW, Obstacle, Reply};
use crate::store::sqlite::hand_off::offer;
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::line::{Caller, Look, line_up, look_along, tidy};
use crate::store::sqlite::step::{LockRow, Performed, Step, between, micros};

/// Like acquire.lua. There are no foreign lockers here, so `adopt` is ignored.
pub(super) fn acquire(step: &Step<'_>, request: &Acquire) -> rusqlite::Result<Performed> {
    let token = request.token.as_str();
    let key = row_key(&request.name);
    let row = match step.lock(&key)? {
        Some(row) => row,
        None => step.create(&key)?,
    };
    if step.has_ended(&row, token)? {
        return Ok(Reply::Acquire(AcquireReply::Ended).into());
    }
    let value = step.value(&row);
    if value == Some(token) {
        return confirm(step, &row, request);
    }
    let is_free = value.is_none();
    let look = match row.crowded && (is_free || request.waiter.is_some()) {
        true => look_along(step, row.id, i64::from(is_free), Some(&Caller { token, weight: 1 }))?,
        false => Look::at_nobody(is_free),
    };
    let mut wake = tidy(step, row.id, &look)?;
    if look.mine {
        return Ok(Performed { wake, ..take(step, &row, request)? });
    }
    let mut remaining = row.expires;
    if let Some(next) = look.chosen.first() {
        wake.insert(0, offer(step, &row, next, step.next_fence(&row, request.min_fence))?);
        remaining = step.now.saturating_add(micros(GRANT_WINDOW));
    }
    let reply = wait(step, &row, request, 0, between(step.now, remaining), is_free)?;
    Ok(Performed { reply: Reply::Acquire(reply), wake })
}

/// Puts the token in line, or notes that it polled again, if it is to wait. `soon`: it is to come back soon, since it
/// has made an offer, or its turn may have come.
pub(super) fn wait(
    step: &Step<'_>,
    row: &LockRow,
    request: &Acquire,
    weight: i64,
    remaining: Duration,
    soon: bool,
) -> rusqlite::Result<AcquireReply> {
    let obstacle = |rank| Obstacle { remaining: Some(remaining), unexpiring: None, rank };
    let registrant = request.waiter.filter(|_| request.patience.is_none_or(|patience| remaining <= patience));
    let Some(waiter) = registrant else { return Ok(AcquireReply::Busy(obstacle(0))) };
    let rank = line_up(step, row.id, request, weight, waiter)?;
    let rank = if request.name.kind() == LockKind::Cached { rank.min(CACHED_RANK) } else { rank };
    Ok(AcquireReply::Waiting(obstacle(if soon { 0 } else { rank })))
}

/// The key is free and it is this token's turn.
fn take(step: &Step<'_>, row: &LockRow, request: &Acquire) -> rusqlite::Result<Performed> {
    if row.crowded {
        step.leave_line(row.id, request.token.as_str())?;
    }
    let fence = step.next_fence(row, request.min_fence);
    grant(step, row, request, fence, step.now.saturating_add(micros(request.ttl)))
}

/// The key holds this token already: by an offer, or by an earlier copy of this request. The first
/// confirmation sets the ttl exactly, later ones never shorten it.
fn confirm(step: &Step<'_>, row: &LockRow, request: &Acquire) -> rusqlite::Result<Performed> {
    let offered = row.crowded && step.leave_line(row.id, request.token.as_str())?;
    let expires = step.now.saturating_add(micros(request.ttl));
    let expires = if offered { expires } else { expires.max(row.expires) };
    let known = if row.fence > Fence::NONE { row.fence } else { step.wall_fence() };
    grant(step, row, request, known.max(request.min_fence), expires)
}

/// Writes what a grant leaves in the lock's row.
fn grant(
    step: &Step<'_>,
    row: &LockRow,
    request: &Acquire,
    granted: Fence,
    expires: i64,
) -> rusqlite::Result<Performed> {
    record(step, row, request.token.as_str(), &request.owner, granted, expires)?;
    let reply = AcquireReply::Granted { fence: granted, ttl: between(step.now, expires) };
    Ok(Reply::Acquire(reply).into())
}

/// Gives the lock to a token.
pub(super) fn record(
    step: &Step<'_>,
    row: &LockRow,
    token: &str,
    owner: &str,
    granted: Fence,
    expires: i64,
) -> rusqlite::Result<()> {
    let born = if row.fence > Fence::NONE { row.born } else { granted.min(step.wall_fence()) };
    step.change(
        "UPDATE lock SET token = ?2, expires = ?3, fence = ?4, born = ?5, since = ?6, owner = ?7 WHERE id = ?1",
        &[
            &row.id,
            &token,
            &expires,
            &granted,
            &born,
            &(step.wall / 1_000),
            &owner,
        ],
    )?;
    step.touch(row)
}
