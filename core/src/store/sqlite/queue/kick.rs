//! Move dead tasks back to ready.

use crate::protocol::{Happened, QueueReply, Receipt, Sweep, Version};
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::sweep::Dead;
use crate::store::sqlite::queue::task::{Follows, Task};
use crate::store::sqlite::queue::work::Work;

/// Like kick.lua.
pub(super) fn kick(work: &mut Work<'_>, request: &Sweep) -> rusqlite::Result<QueueReply> {
    Ok(QueueReply::Kick(work.sweep(request, revive)?))
}

/// Brings a dead task back, unless its id lives.
fn revive(work: &mut Work<'_>, dead: &Dead) -> rusqlite::Result<bool> {
    if work.live(&dead.id)?.is_some() {
        return Ok(false);
    }
    let (mut task, body) = read(work, dead.serial)?;
    task.version = work.next_version();
    (task.due, task.first) = (work.now_ms, work.now_ms);
    if task.is_expired(work.now_ms) {
        // It would die again at once.
        task.expires = 0;
    }
    work.forget_dead(dead.serial, dead.size, dead.expired)?;
    work.place(&mut task)?;
    work.insert(&task, &body)?;
    work.happen(Happened::Added, &task, "")?;
    Ok(true)
}

/// A dead task as it comes back, and its body: its last delivery stays settled as it was.
fn read(work: &Work<'_>, serial: i64) -> rusqlite::Result<(Task, Box<[u8]>)> {
    work.step
        .connection
        .prepare_cached(
            "SELECT id, priority, max_attempts, expires, receipt, verdict, reason, body, length(body), history, key, node FROM dead
             WHERE serial = ?1",
        )?
        .query_row([serial], |row| {
            let task = Task {
                serial: 0,
                id: row.get(0)?,
                state: RowState::Scheduled,
                turn: 0,
                ends: 0,
                version: Version::NONE,
                due: 0,
                priority: row.get(1)?,
                attempts: 0,
                max_attempts: row.get(2)?,
                first: 0,
                expires: row.get(3)?,
                receipt: Receipt::NONE,
                settled: row.get(4)?,
                verdict: row.get(5)?,
                follows: Follows::Run,
                reason: row.get(6)?,
                backoff: 0,
                consumer: "".into(),
                size: row.get(8)?,
                history: row.get(9)?,
                cancelled: false,
                key: row.get(10)?,
                node: row.get(11)?,
                left: false,
            };
            Ok((task, row.get_ref(7)?.as_blob()?.into()))
        })
}
