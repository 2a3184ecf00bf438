//! Take tasks under a lease, or wait for some.

use std::time::Duration;

use crate::base::name::TaskId;
use crate::protocol::{Claim, ClaimReply, ClaimedTask, NodeOf, QueueReply, Receipt, WallMillis};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::call::{Heard, Stored};
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::schedule::{self, key_of};
use crate::store::sqlite::queue::take::WithBody;
use crate::store::sqlite::queue::task::{AFTER_TASK, Task, select_task};
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::{between, micros};

/// Like claim.lua.
pub(super) fn claim(work: &mut Work<'_>, request: &Claim) -> rusqlite::Result<QueueReply> {
    match work.hear(request.call)? {
        Heard::Repeated(stored) => {
            let again = give_again(work, request, &stored)?;
            return Ok(QueueReply::Claim(with_others(work, again)?));
        }
        Heard::Abandoned => return Ok(QueueReply::Claim(nothing(work, None)?)),
        Heard::Superseded => return Ok(QueueReply::Superseded),
        Heard::New => {}
    }
    let reply = claim_new(work, request)?;
    let stored = Stored::of_claim(&reply);
    work.remember(request.call, Some(&stored), stored.lease(request))?;
    Ok(QueueReply::Claim(with_others(work, reply)?))
}

/// The reply, and whether schedules or flows are due.
pub(super) fn with_others(work: &mut Work<'_>, reply: ClaimReply) -> rusqlite::Result<ClaimReply> {
    let reply = match work.are_flows_due(reply.tasks().is_some()) {
        true => ClaimReply::FlowsDue(Box::new(reply)),
        false => reply,
    };
    let first = schedule::first_due(work.step.connection, work.key)?;
    let are_due = first.is_some_and(|due| due <= work.now_ms);
    Ok(if are_due { ClaimReply::SchedulesDue(Box::new(reply)) } else { reply })
}

/// Claims what there is; if there is nothing, the caller is registered as a waiter.
pub(super) fn claim_new(work: &mut Work<'_>, request: &Claim) -> rusqlite::Result<ClaimReply> {
    if work.record.paused {
        return nothing(work, Some(request));
    }
    let more = work.promote()?;
    let ends = work.step.now.saturating_add(micros(request.lease));
    let taken = work.take(request.max, |work, mut live| {
        let from = live.main.state;
        (live.main.state, live.main.ends) = (RowState::Claimed, ends);
        live.main.consumer = (*request.consumer).into();
        work.update(&live.main, from)
    })?;
    work.ready = more || work.is_left()?;
    if taken.is_empty() {
        if request.waiter.is_some() {
            // The caller itself waits for what comes: the reply has the time.
            (work.ready, work.earlier) = (false, false);
        }
        return nothing(work, Some(request));
    }
    stop_waiting(work, request)?;
    let remaining = between(work.step.now, ends);
    Ok(ClaimReply::Claimed(taken.into_iter().map(|task| claimed(task, remaining)).collect()))
}

/// What a call claimed is given again, as far as the caller still has it.
pub(super) fn give_again(
    work: &mut Work<'_>,
    request: &Claim,
    stored: &Stored,
) -> rusqlite::Result<ClaimReply> {
    let mut tasks = Vec::new();
    for (id, receipt) in &stored.claims {
        if let Some((task, body)) = held(work, id, *receipt)? {
            let remaining = between(work.step.now, task.ends);
            tasks.push(claimed((task, body), remaining));
        }
    }
    if tasks.is_empty() {
        return nothing(work, Some(request));
    }
    stop_waiting(work, request)?;
    Ok(ClaimReply::Claimed(tasks))
}

/// Who has something is not idle.
fn stop_waiting(work: &mut Work<'_>, request: &Claim) -> rusqlite::Result<()> {
    if let Some(waiter) = request.waiter {
        work.leave_idle(waiter)?;
    }
    Ok(())
}

/// The task, if it is claimed under this receipt.
fn held(work: &Work<'_>, id: &str, receipt: Receipt) -> rusqlite::Result<Option<WithBody>> {
    let found = work.step.few(
        select_task!(
            ", body FROM task WHERE queue = ?1 AND id = ?2 AND parked = 0 AND receipt = ?3 AND state = 2
               AND ends > ?4"
        ),
        &[&work.record.id, &id, &receipt, &work.step.now],
        |row| Ok((Task::read(row)?, row.get_ref(AFTER_TASK)?.as_blob()?.into())),
    )?;
    Ok(found.into_iter().next())
}

/// There is nothing to claim: the caller is registered if it waits.
fn nothing(work: &mut Work<'_>, request: Option<&Claim>) -> rusqlite::Result<ClaimReply> {
    let waits = request.and_then(|request| Some((request.waiter?, &request.consumer)));
    let rank = waits.map_or(Ok(0), |(waiter, consumer)| work.register(waiter, consumer))?;
    if work.record.paused {
        return Ok(ClaimReply::Paused { rank });
    }
    work.heal_keys()?;
    let (next_due, slot) = next_due(work)?;
    Ok(ClaimReply::Empty { next_due, rank, slot })
}

/// How long until there may be something to claim.
fn next_due(work: &Work<'_>) -> rusqlite::Result<(Option<Duration>, Option<WallMillis>)> {
    let others = work.next_due()?;
    if others == Some(Duration::ZERO) {
        return Ok((others, None));
    }
    // Those that are due are told of in another way: see `with_others`.
    let slot = schedule::first_due(work.step.connection, work.key)?.filter(|due| *due > work.now_ms);
    let fires = slot.map(|due| between(work.step.wall, due.saturating_mul(1_000)));
    let is_slot = fires.is_some_and(|fires| others.is_none_or(|others| fires < others));
    Ok((others.into_iter().chain(fires).min(), slot.filter(|_| is_slot).map(number)))
}

fn claimed((task, body): WithBody, remaining: Duration) -> ClaimedTask {
    ClaimedTask {
        id: TaskId::stored(task.id.as_bytes()),
        body: body.into(),
        receipt: task.receipt,
        attempt: task.attempts,
        max_attempts: task.max_attempts,
        version: task.version,
        due: number(task.due),
        priority: task.priority,
        remaining,
        key: key_of(&task.key),
        node: NodeOf::parse(&task.node),
    }
}
