//! Move dead tasks back to ready.

use crate::store::MAX_BATCH;
use crate::store::sqlite::queue::task::{Follows, State, Task};
use crate::store::sqlite::queue::work::Work;
use crate::verbs::{Kick, QueueReply};

/// Like kick.lua.
pub(super) fn kick(work: &mut Work<'_>, request: &Kick) -> rusqlite::Result<QueueReply> {
    let mut kicked = 0;
    match request {
        Kick::Ids(ids) => {
            for id in ids.iter().take(MAX_BATCH) {
                let newest = work.step.few(
                    "SELECT serial FROM dead WHERE queue = ?1 AND id = ?2 ORDER BY receipt DESC LIMIT 1",
                    &[&work.record.id, &id.as_str()],
                    |row| row.get(0),
                )?;
                kicked += revive(work, &newest)?;
            }
        }
        Kick::Count(count) => {
            let count = u64::from(*count).min(MAX_BATCH as u64);
            // Again for as long as it helps: of several with one id only the oldest comes back.
            while kicked < count {
                let oldest = work.step.few(
                    "SELECT serial FROM dead WHERE queue = ?1 AND NOT EXISTS
                       (SELECT 1 FROM task WHERE task.queue = dead.queue AND task.id = dead.id)
                     ORDER BY expired, died, receipt LIMIT ?2",
                    &[&work.record.id, &(count - kicked).cast_signed()],
                    |row| row.get(0),
                )?;
                if oldest.is_empty() {
                    break;
                }
                kicked += revive(work, &oldest)?;
            }
        }
    }
    Ok(QueueReply::Kick(kicked))
}

/// Brings dead tasks back, except those whose ids live; how many.
fn revive(work: &mut Work<'_>, serials: &[i64]) -> rusqlite::Result<u64> {
    let mut revived = 0;
    for serial in serials {
        let (mut task, body, expired) = read(work, *serial)?;
        if work.live(&task.id)?.is_some() {
            continue;
        }
        task.version = work.next_number();
        (task.due, task.first) = (work.now_ms, work.now_ms);
        if task.is_expired(work.now_ms) {
            // It would die again at once.
            task.expires = 0;
        }
        work.forget_dead(*serial, i64::try_from(body.len()).unwrap_or(i64::MAX), expired)?;
        work.place(&mut task)?;
        work.insert(&task, &body)?;
        revived += 1;
    }
    Ok(revived)
}

/// A dead task as it comes back, its body, and whether it had expired: its last delivery stays settled as it was.
fn read(work: &Work<'_>, serial: i64) -> rusqlite::Result<(Task, Box<[u8]>, bool)> {
    work.step
        .connection
        .prepare_cached(
            "SELECT id, priority, max_attempts, expires, receipt, verdict, reason, body, expired FROM dead
             WHERE serial = ?1",
        )?
        .query_row([serial], |row| {
            let task = Task {
                serial: 0,
                id: row.get(0)?,
                state: State::Scheduled,
                turn: 0,
                ends: 0,
                version: 0,
                due: 0,
                priority: row.get(1)?,
                attempts: 0,
                max_attempts: row.get(2)?,
                first: 0,
                expires: row.get(3)?,
                receipt: 0,
                settled: row.get(4)?,
                verdict: row.get(5)?,
                follows: Follows::Run,
                reason: row.get(6)?,
                backoff: 0,
            };
            Ok((task, row.get_ref(7)?.as_blob()?.into(), row.get(8)?))
        })
}
