//! Put tasks in.

use crate::store::sqlite::queue::call::{Heard, Stored};
use crate::store::sqlite::queue::task::{Live, NO_VERDICT, State, Task};
use crate::store::sqlite::queue::work::{Work, millis_up};
use crate::store::sqlite::step::fence as number;
use crate::verbs::{Enqueue, EnqueueOutcome, NewTask, OnDuplicate, Outcome, QueueReply};

/// What an accepted enqueue did, with the version and the due that the task has after it.
type Accepted = (Outcome, i64, i64);

/// Like enqueue.lua.
pub(super) fn enqueue(work: &mut Work<'_>, request: &Enqueue) -> rusqlite::Result<QueueReply> {
    match work.hear(request.call)? {
        Heard::Repeated(stored) => return Ok(QueueReply::Enqueue(stored.outcomes)),
        Heard::Superseded | Heard::Abandoned => return Ok(QueueReply::Superseded),
        Heard::New => {}
    }
    let outcomes: Vec<_> = request.tasks.iter().map(|new| one(work, new)).collect::<Result<_, _>>()?;
    let stored = Stored { outcomes, ..Stored::default() };
    work.remember(request.call, Some(&stored))?;
    Ok(QueueReply::Enqueue(stored.outcomes))
}

fn one(work: &mut Work<'_>, new: &NewTask) -> rusqlite::Result<EnqueueOutcome> {
    let id = new.id.as_str();
    if matches!(new.on_duplicate, OnDuplicate::Throttle { .. }) && work.is_throttled(id)? {
        return Ok(EnqueueOutcome::Accepted { outcome: Outcome::Throttled, version: 0, due: 0 });
    }
    let (outcome, version, due) = match work.live(id)? {
        None if work.record.is_full() => return Ok(EnqueueOutcome::Full),
        None => add(work, new)?,
        Some(Live { main, successor: Some(successor) }) => onto_successor(work, new, main, successor)?,
        Some(Live { main, .. }) if main.receipt != 0 => after_run(work, new, main)?,
        Some(Live { main, .. }) => onto_pending(work, new, main)?,
    };
    if let OnDuplicate::Throttle { window } = new.on_duplicate {
        work.open_window(id, work.after(window))?;
    }
    work.record.enqueued += 1;
    Ok(EnqueueOutcome::Accepted { outcome, version: number(version), due: number(due) })
}

/// The id does not live.
fn add(work: &mut Work<'_>, new: &NewTask) -> rusqlite::Result<Accepted> {
    let mut task = fresh(work, new, work.now_ms);
    work.place(&mut task)?;
    work.insert(&task, &new.body)?;
    Ok((Outcome::Added, task.version, task.due))
}

/// The id is running, and nothing comes after it yet.
fn after_run(work: &mut Work<'_>, new: &NewTask, main: Task) -> rusqlite::Result<Accepted> {
    let mut successor = fresh(work, new, work.now_ms);
    successor.replaces = replaces(new);
    work.insert(&successor, &new.body)?;
    let accepted = (Outcome::Successor, successor.version, successor.due);
    take_place_of_retry(work, main, new)?;
    Ok(accepted)
}

/// Something comes after the run already: the enqueue acts on it.
fn onto_successor(work: &mut Work<'_>, new: &NewTask, main: Task, old: Task) -> rusqlite::Result<Accepted> {
    if !replaces(new) {
        return keep(work, &old);
    }
    let mut successor = revised(work, new, &old);
    successor.replaces = true;
    work.update(&successor, State::Parked)?;
    set_body(work, &successor, &new.body)?;
    let accepted = (Outcome::Replaced, successor.version, successor.due);
    take_place_of_retry(work, main, new)?;
    Ok(accepted)
}

/// The id is pending.
fn onto_pending(work: &mut Work<'_>, new: &NewTask, old: Task) -> rusqlite::Result<Accepted> {
    if !replaces(new) {
        return keep(work, &old);
    }
    let mut task = revised(work, new, &old);
    if matches!(new.on_duplicate, OnDuplicate::Debounce { .. }) && has_body(work, &old, &new.body)? {
        // One is left in any case: it was asked for again.
        task.attempts = old.attempts.min(task.max_attempts.saturating_sub(1));
    } else {
        set_body(work, &old, &new.body)?;
    }
    let accepted = (Outcome::Replaced, task.version, task.due);
    // Placed from the state that it has in the table.
    task.state = old.state;
    work.put(task)?;
    Ok(accepted)
}

/// The task that is there stays as it is.
fn keep(work: &mut Work<'_>, task: &Task) -> rusqlite::Result<Accepted> {
    let version = work.next_number();
    work.step.change("UPDATE task SET version = ?2 WHERE serial = ?1", &[&task.serial, &version])?;
    Ok((Outcome::Kept, version, task.due))
}

/// A successor that replaces does not wait for a retry: if that waits already, it takes its place at once.
fn take_place_of_retry(work: &mut Work<'_>, main: Task, new: &NewTask) -> rusqlite::Result<()> {
    if !replaces(new) || main.is_held(work.step.now) {
        return Ok(());
    }
    let mut live = work.with_successor(main)?;
    if live.main.receipt != 0 {
        live.main.spend(NO_VERDICT);
    }
    work.succeed(live)
}

/// The new task as it is written, not yet in line.
fn fresh(work: &mut Work<'_>, new: &NewTask, first: i64) -> Task {
    let due = work.due(new.due);
    let due = match new.on_duplicate {
        OnDuplicate::Debounce { max_wait } => due.min(first.saturating_add(millis_up(max_wait))),
        _ => due,
    };
    Task {
        serial: 0,
        id: new.id.as_str().into(),
        state: State::Parked,
        turn: 0,
        ends: 0,
        version: work.next_number(),
        due,
        priority: new.priority,
        attempts: 0,
        max_attempts: new.max_attempts,
        first,
        expires: new.expires.map_or(0, |expires| work.after(expires)),
        receipt: 0,
        settled: 0,
        verdict: NO_VERDICT,
        replaces: false,
        reason: "".into(),
    }
}

/// The new task in the row of an old one of the same id.
fn revised(work: &mut Work<'_>, new: &NewTask, old: &Task) -> Task {
    let first = match new.on_duplicate {
        OnDuplicate::Debounce { .. } => old.first,
        _ => work.now_ms,
    };
    let (serial, settled, verdict) = (old.serial, old.settled, old.verdict);
    Task { serial, settled, verdict, ..fresh(work, new, first) }
}

fn replaces(new: &NewTask) -> bool {
    matches!(new.on_duplicate, OnDuplicate::Replace | OnDuplicate::Debounce { .. })
}

fn has_body(work: &Work<'_>, task: &Task, body: &[u8]) -> rusqlite::Result<bool> {
    work.step
        .connection
        .prepare_cached("SELECT 1 FROM task WHERE serial = ?1 AND body = ?2")?
        .exists((task.serial, body))
}

fn set_body(work: &Work<'_>, task: &Task, body: &[u8]) -> rusqlite::Result<()> {
    work.step.change("UPDATE task SET body = ?2 WHERE serial = ?1", &[&task.serial, &body])?;
    Ok(())
}
