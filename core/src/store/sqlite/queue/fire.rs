//! Give the slots of schedules their tasks.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::TaskId;
use crate::protocol::{
    Due, EnqueueOutcome, Fire, FireSchedule, Fired, NewTask, OnDuplicate, Overlap, QueueReply,
    ScheduleRecord, WallMillis,
};
use crate::store::sqlite::numbers::stored;
use crate::store::sqlite::queue::enqueue::enqueue_one;
use crate::store::sqlite::queue::schedule::{find, stored_due};
use crate::store::sqlite::queue::work::Work;

/// Like fire.lua.
pub(super) fn fire(work: &mut Work<'_>, request: &Fire) -> rusqlite::Result<QueueReply> {
    let fired = request.schedules.iter().map(|one| fire_one(work, one)).collect::<Result<_, _>>()?;
    Ok(QueueReply::Fire(fired))
}

fn fire_one(work: &mut Work<'_>, request: &FireSchedule) -> rusqlite::Result<Fired> {
    let id = request.id.as_str();
    let Some(schedule) = find(work.step.connection, work.key, id)? else { return Ok(Fired::Absent) };
    if schedule.version != request.version {
        return Ok(Fired::Stale);
    }
    let (mut tasks, mut skipped, mut last) = (0, 0, schedule.last_task.clone());
    for (task, due) in &request.tasks {
        if runs(work, request.overlap, &last)? || !add(work, &schedule, task, *due)? {
            skipped += 1;
        } else {
            tasks += 1;
            task.as_str().clone_into(&mut last);
        }
    }
    let version = work.next_version();
    work.step.change(
        "UPDATE schedule SET version = ?3, cursor = ?4, fresh = 0, due = ?5, fired = fired + ?6,
           skipped = skipped + ?7, missed_slots = missed_slots + ?8, last_task = ?9
         WHERE queue = ?1 AND id = ?2",
        &[
            &work.key,
            &id,
            &version,
            &stored(request.cursor),
            &stored_due(request.due),
            &stored(tasks),
            &stored(skipped),
            &stored(request.missed),
            &last,
        ],
    )?;
    Ok(Fired::Fired { tasks, skipped })
}

/// Whether the task of the slot before is in the way.
fn runs(work: &mut Work<'_>, overlap: Overlap, last: &str) -> rusqlite::Result<bool> {
    Ok(overlap == Overlap::Skip && !last.is_empty() && work.find(last)?.is_some())
}

/// Whether there was room for it.
fn add(
    work: &mut Work<'_>,
    schedule: &ScheduleRecord,
    id: &TaskId,
    due: WallMillis,
) -> rusqlite::Result<bool> {
    let body: Arc<[u8]> = work
        .step
        .connection
        .prepare_cached("SELECT body FROM schedule WHERE queue = ?1 AND id = ?2")?
        .query_row((work.key, schedule.id.as_str()), |row| Ok(row.get_ref(0)?.as_blob()?.into()))?;
    let task = NewTask {
        id: id.clone(),
        body,
        due: Due::At(due),
        priority: schedule.priority,
        max_attempts: schedule.max_attempts,
        expires: (schedule.expires > 0).then(|| Duration::from_millis(schedule.expires)),
        on_duplicate: OnDuplicate::Keep,
        key: schedule.key.clone(),
        node: None,
    };
    Ok(enqueue_one(work, &task)? != EnqueueOutcome::Full)
}
