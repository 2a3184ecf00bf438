//! Take the lock, confirm an offer, or wait for it.

use crate::store::GRANT_WINDOW;
use crate::store::sqlite::hand_off::{Next, drop_dead, next_waiter, offer};
use crate::store::sqlite::permits::row_key;
use crate::store::sqlite::step::{LockRow, Outcome, Step, between, fence, micros, stored_fence};
use crate::verbs::{Acquire, AcquireReply, Obstacle, Reply, Waiter};

/// Like acquire.lua. There are no foreign lockers here, so `adopt` is ignored.
pub(super) fn acquire(step: &Step<'_>, request: &Acquire) -> rusqlite::Result<Outcome> {
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
    let mut remaining = row.expires;
    let mut wake = Vec::new();
    if value.is_none() {
        let next = if row.crowded { next_waiter(step, row.id, Some(token))? } else { Next::default() };
        drop_dead(step, row.id, &next)?;
        match &next.entry {
            Some(head) if *head.token != *token => {
                wake.push(offer(step, &row, head, step.next_fence(&row, request.min_fence))?);
                remaining = step.now.saturating_add(micros(GRANT_WINDOW));
            }
            _ => return take(step, &row, request),
        }
    }
    let remaining = between(step.now, remaining);
    let registrant = request.waiter.filter(|_| request.patience.is_none_or(|patience| remaining <= patience));
    let obstacle = Obstacle { remaining: Some(remaining), unexpiring: None };
    let reply = match registrant {
        Some(waiter) => {
            register(step, row.id, request, 0, waiter)?;
            AcquireReply::Waiting(obstacle)
        }
        None => AcquireReply::Busy(obstacle),
    };
    Ok(Outcome { reply: Reply::Acquire(reply), wake })
}

/// The key is free and it is this token's turn.
fn take(step: &Step<'_>, row: &LockRow, request: &Acquire) -> rusqlite::Result<Outcome> {
    if row.crowded {
        step.leave_line(row.id, request.token.as_str())?;
    }
    let fence = step.next_fence(row, request.min_fence);
    grant(step, row, request, fence, step.now.saturating_add(micros(request.ttl)))
}

/// The key holds this token already: by an offer, or by an earlier copy of this request. The first
/// confirmation sets the ttl exactly, later ones never shorten it.
fn confirm(step: &Step<'_>, row: &LockRow, request: &Acquire) -> rusqlite::Result<Outcome> {
    let offered = row.crowded && step.leave_line(row.id, request.token.as_str())?;
    let expires = step.now.saturating_add(micros(request.ttl));
    let expires = if offered { expires } else { expires.max(row.expires) };
    let known = if row.fence > 0 { row.fence } else { step.wall };
    grant(step, row, request, known.max(stored_fence(request.min_fence)), expires)
}

/// Writes what a grant leaves in the lock's row.
fn grant(
    step: &Step<'_>,
    row: &LockRow,
    request: &Acquire,
    granted: i64,
    expires: i64,
) -> rusqlite::Result<Outcome> {
    record(step, row, request.token.as_str(), &request.owner, granted, expires)?;
    let reply = AcquireReply::Granted { fence: fence(granted), ttl: between(step.now, expires) };
    Ok(Reply::Acquire(reply).into())
}

/// Gives the lock to a token.
pub(super) fn record(
    step: &Step<'_>,
    row: &LockRow,
    token: &str,
    owner: &str,
    granted: i64,
    expires: i64,
) -> rusqlite::Result<()> {
    let born = if row.fence > 0 { row.born } else { granted.min(step.wall) };
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

/// Puts the token at the end of the line, or notes that it polled again and may be offered the lock again. The
/// weight of an exclusive lock's waiter is zero.
pub(super) fn register(
    step: &Step<'_>,
    lock: i64,
    request: &Acquire,
    weight: i64,
    waiter: Waiter,
) -> rusqlite::Result<()> {
    step.change(
        "INSERT INTO waiter (lock, arrival, token, polled, offered, client, seq, weight, came, owner)
           SELECT ?1, coalesce(max(arrival), 0) + 1, ?2, ?3, 0, ?4, ?5, ?6, ?3, ?7 FROM waiter WHERE lock = ?1
         ON CONFLICT (lock, token) DO UPDATE
           SET polled = excluded.polled, offered = 0, client = excluded.client, seq = excluded.seq,
             weight = excluded.weight, owner = excluded.owner",
        &[
            &lock,
            &request.token.as_str(),
            &step.now,
            &waiter.client.0.cast_signed(),
            &waiter.seq.cast_signed(),
            &weight,
            &&*request.owner,
        ],
    )?;
    Ok(())
}
