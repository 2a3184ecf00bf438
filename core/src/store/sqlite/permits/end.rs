//! What changes or ends a lease of permits.

use crate::protocol::{
    BreakLease, Downgrade, DowngradeReply, Extend, ExtendReply, Fence, Leave, Permits, Release, ReleaseReply,
    Reply, Resume, ResumeReply, Upgrade, UpgradeReply,
};
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::permits::hand_on::{hand_on, offer_what_is_free};
use crate::store::sqlite::permits::{held, used};
use crate::store::sqlite::resume::is_taken_back;
use crate::store::sqlite::step::{LockRow, Performed, Step, absence, between, micros};

/// Like permits_extend.lua.
pub(super) fn extend(step: &Step<'_>, request: &Extend) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let token = request.token.as_str();
    let Some((row, held)) = holding(step, row.as_ref(), token)? else {
        return Ok(Reply::Extend(ExtendReply::Gone(absence(row.as_ref()))).into());
    };
    let asked = step.now.saturating_add(micros(request.ttl));
    let expires = if request.exact { asked } else { asked.max(held.expires) };
    step.change(
        "UPDATE permit SET expires = ?3 WHERE lock = ?1 AND token = ?2",
        &[&row.id, &token, &expires],
    )?;
    step.touch(row)?;
    Ok(Reply::Extend(ExtendReply::Extended(between(step.now, expires))).into())
}

/// Like permits_release.lua.
pub(super) fn release(step: &Step<'_>, request: &Release) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let token = request.token.as_str();
    let Some((row, held)) = holding(step, row.as_ref(), token)? else {
        let gone = absence(row.as_ref());
        if request.acquire_resent {
            let row = row.map_or_else(|| step.create(&row_key(&request.name)), Ok)?;
            step.leave_line(row.id, token)?;
            step.end_token(&row, token)?;
        }
        return Ok(Reply::Release(ReleaseReply::Gone(gone)).into());
    };
    // The lease has ended before, and permits were offered to its token anew, for a late copy of its acquire.
    let gone = request.own_fence.is_some_and(|own| own != held.fence);
    let reply = if gone { ReleaseReply::Gone(absence(Some(row))) } else { ReleaseReply::Released };
    if gone {
        // That copy stands in line until it confirms, which nobody does.
        step.leave_line(row.id, token)?;
    }
    let wake = give_back(step, row, token)?;
    if request.acquire_resent {
        step.end_token(row, token)?;
    }
    Ok(Performed { reply: Reply::Release(reply), wake })
}

/// Like permits_leave.lua.
pub(super) fn leave(step: &Step<'_>, request: &Leave) -> rusqlite::Result<Performed> {
    let key = row_key(&request.name);
    let row = match step.lock(&key)? {
        Some(row) => row,
        None => step.create(&key)?,
    };
    let token = request.token.as_str();
    if row.crowded {
        step.leave_line(row.id, token)?;
    }
    // Its entry may have held up lighter ones behind it.
    let wake = give_back(step, &row, token)?;
    step.end_token(&row, token)?;
    Ok(Performed { reply: Reply::Leave, wake })
}

/// Like permits_resume.lua.
pub(super) fn resume(step: &Step<'_>, request: &Resume) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let (old, new) = (request.old.as_str(), request.new.as_str());
    let is_over = is_taken_back(step, row.as_ref(), request)?;
    let left = row.as_ref().filter(|_| !is_over);
    if let Some((row, _)) = holding(step, left, old)? {
        step.change(
            "UPDATE permit SET token = ?3, owner = ?4 WHERE lock = ?1 AND token = ?2",
            &[&row.id, &old, &new, &&*request.owner],
        )?;
        step.touch(row)?;
    }
    let held_now = holding(step, left, new)?;
    if let Some((row, _)) = held_now.as_ref().filter(|_| request.undo) {
        step.end_token(row, old)?;
    }
    let reply = match held_now {
        Some((row, held)) => ResumeReply::Resumed {
            fence: held.fence,
            ttl: between(step.now, held.expires),
            permits: Some(Permits { weight: permits(held.weight), limit: permits(row.permits) }),
        },
        None => ResumeReply::Gone(absence(row.as_ref())),
    };
    Ok(Reply::Resume(reply).into())
}

/// Like permits_downgrade.lua.
pub(super) fn downgrade(step: &Step<'_>, request: &Downgrade) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let token = request.token.as_str();
    let Some((row, held)) = holding(step, row.as_ref(), token)? else {
        return Ok(Reply::Downgrade(DowngradeReply::Gone(absence(row.as_ref()))).into());
    };
    let keep = i64::from(request.weight);
    let is_late = request.fence.is_some_and(|own| own != held.fence);
    if held.weight <= keep || is_late {
        return Ok(Reply::Downgrade(DowngradeReply::Downgraded).into());
    }
    step.change("UPDATE permit SET weight = ?3 WHERE lock = ?1 AND token = ?2", &[&row.id, &token, &keep])?;
    let wake = hand_on(step, row)?;
    Ok(Performed { reply: Reply::Downgrade(DowngradeReply::Downgraded), wake })
}

/// Like permits_upgrade.lua.
pub(super) fn upgrade(step: &Step<'_>, request: &Upgrade) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let token = request.token.as_str();
    let Some((row, held)) = holding(step, row.as_ref(), token)? else {
        return Ok(Reply::Upgrade(UpgradeReply::Gone(absence(row.as_ref()))).into());
    };
    let all = i64::from(request.limit);
    if held.weight == all {
        return Ok(Reply::Upgrade(UpgradeReply::Upgraded(held.fence)).into());
    }
    if used(step, row)? > held.weight {
        return Ok(Reply::Upgrade(UpgradeReply::Busy).into());
    }
    let newest = step.next_fence(row, Fence::NONE);
    step.change(
        "UPDATE permit SET weight = ?3, fence = ?4 WHERE lock = ?1 AND token = ?2",
        &[&row.id, &token, &all, &newest],
    )?;
    step.change("UPDATE lock SET fence = ?2 WHERE id = ?1", &[&row.id, &newest])?;
    Ok(Reply::Upgrade(UpgradeReply::Upgraded(newest)).into())
}

/// Like permits_break_lease.lua.
pub(super) fn break_lease(step: &Step<'_>, request: &BreakLease) -> rusqlite::Result<Performed> {
    let Some(row) = step.lock(&row_key(&request.name))? else {
        return Ok(Reply::BreakLease(false).into());
    };
    if used(step, &row)? == 0 {
        return Ok(Reply::BreakLease(false).into());
    }
    step.change("DELETE FROM permit WHERE lock = ?1", &[&row.id])?;
    step.change("UPDATE lock SET broken = fence WHERE id = ?1", &[&row.id])?;
    let wake = hand_on(step, &row)?;
    step.touch(&row)?;
    Ok(Performed { reply: Reply::BreakLease(true), wake })
}

/// The lock's row and what this token has of it, if it has anything.
fn holding<'row>(
    step: &Step<'_>,
    row: Option<&'row LockRow>,
    token: &str,
) -> rusqlite::Result<Option<(&'row LockRow, super::Held)>> {
    let Some(row) = row else { return Ok(None) };
    Ok(held(step, row, token)?.map(|held| (row, held)))
}

fn give_back(step: &Step<'_>, row: &LockRow, token: &str) -> rusqlite::Result<Vec<crate::protocol::Waiter>> {
    // Together with what has ended.
    step.change(
        "DELETE FROM permit WHERE lock = ?1 AND (token = ?2 OR expires <= ?3)",
        &[&row.id, &token, &step.now],
    )?;
    step.touch(row)?;
    offer_what_is_free(step, row)
}

fn permits(stored: i64) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX)
}
