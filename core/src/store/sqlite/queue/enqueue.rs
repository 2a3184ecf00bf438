//! Put tasks in.

use crate::base::name::TaskKey;
use crate::protocol::{
    Enqueue, EnqueueOutcome, Happened, NewTask, NodeOf, OnDuplicate, Outcome, QueueReply, Receipt, Version,
};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::call::{Heard, Stored};
use crate::store::sqlite::queue::history::History;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::task::{Follows, Live, NO_VERDICT, Task};
use crate::store::sqlite::queue::work::{Work, millis_up};

/// What an accepted enqueue did, with the version and the due that the task has after it.
type Accepted = (Outcome, Version, i64);

/// Like enqueue.lua.
pub(super) fn enqueue(work: &mut Work<'_>, request: &Enqueue) -> rusqlite::Result<QueueReply> {
    match work.hear(request.call)? {
        Heard::Repeated(stored) => return Ok(QueueReply::Enqueue(stored.outcomes)),
        Heard::Superseded | Heard::Abandoned => return Ok(QueueReply::Superseded),
        Heard::New => {}
    }
    let batch = i64::try_from(request.tasks.len()).unwrap_or(i64::MAX);
    if work.record.max_len.is_some_and(|most| work.record.live().saturating_add(batch) > most) {
        work.make_room()?;
    }
    let outcomes: Vec<_> =
        request.tasks.iter().map(|new| enqueue_one(work, new)).collect::<Result<_, _>>()?;
    let stored = Stored { outcomes, ..Stored::default() };
    work.remember(request.call, Some(&stored), request.timeout)?;
    Ok(QueueReply::Enqueue(stored.outcomes))
}

/// One task, as if alone.
pub(super) fn enqueue_one(work: &mut Work<'_>, new: &NewTask) -> rusqlite::Result<EnqueueOutcome> {
    let id = new.id.as_str();
    if matches!(new.on_duplicate, OnDuplicate::Throttle { .. }) && work.is_throttled(id)? {
        return Ok(EnqueueOutcome::Accepted { outcome: Outcome::Throttled, version: Version::NONE, due: 0 });
    }
    let (outcome, version, due) = match work.find(id)? {
        // What a flow has begun goes on.
        None if work.record.is_full() && new.node.is_none() => return Ok(EnqueueOutcome::Full),
        None => add(work, new)?,
        Some(Live { main, successor: Some(successor) }) => onto_successor(work, new, main, successor)?,
        Some(Live { main, .. })
            if main.state == RowState::Claimed && new.on_duplicate == OnDuplicate::Skip =>
        {
            return Ok(EnqueueOutcome::Accepted {
                outcome: Outcome::Skipped,
                version: main.version,
                due: number(main.due),
            });
        }
        Some(Live { main, .. }) if main.state == RowState::Claimed => after_run(work, new, &main)?,
        Some(Live { main, .. }) => onto_pending(work, new, main)?,
    };
    if let OnDuplicate::Throttle { window } = new.on_duplicate {
        work.open_window(id, work.after(window))?;
    }
    work.record.enqueued += 1;
    if matches!(outcome, Outcome::Added | Outcome::Replaced | Outcome::Successor) {
        work.happen_to(Happened::Added, id, version, 0, "")?;
    }
    Ok(EnqueueOutcome::Accepted { outcome, version, due: number(due) })
}

/// The id does not live.
fn add(work: &mut Work<'_>, new: &NewTask) -> rusqlite::Result<Accepted> {
    let mut task = Task { follows: Follows::Run, ..fresh(work, new, work.now_ms) };
    work.place(&mut task)?;
    work.insert(&task, &new.body)?;
    Ok((Outcome::Added, task.version, task.due))
}

/// The id is running, and nothing comes after it yet.
fn after_run(work: &mut Work<'_>, new: &NewTask, main: &Task) -> rusqlite::Result<Accepted> {
    let mut successor = fresh(work, new, work.now_ms);
    compare(work, &mut successor, main, &new.body)?;
    work.insert(&successor, &new.body)?;
    Ok((Outcome::Successor, successor.version, successor.due))
}

/// Something comes after the run already: the enqueue acts on it.
fn onto_successor(work: &mut Work<'_>, new: &NewTask, main: Task, old: Task) -> rusqlite::Result<Accepted> {
    if !replaces(new) {
        return keep(work, new, &old);
    }
    let mut successor = revised(work, new, &old);
    compare(work, &mut successor, &main, &new.body)?;
    set_body(work, &successor, &new.body)?;
    work.update(&successor, RowState::Parked)?;
    if main.state == RowState::Claimed {
        return Ok((Outcome::Replaced, successor.version, successor.due));
    }
    // It does not wait for a retry: if that waits already, it takes its place at once.
    successor.hold_back(main.backoff, work.now_ms);
    let place = work.stays(&main, &mut successor);
    let accepted = (Outcome::Replaced, successor.version, successor.due);
    work.supplant(Live { main, successor: Some(successor) }, place)?;
    Ok(accepted)
}

/// The id is pending.
fn onto_pending(work: &mut Work<'_>, new: &NewTask, mut old: Task) -> rusqlite::Result<Accepted> {
    if !replaces(new) {
        return keep(work, new, &old);
    }
    if old.receipt != Receipt::NONE {
        // Its lease has ended, and no settlement counts any more.
        old.spend(NO_VERDICT);
    }
    let mut task = revised(work, new, &old);
    task.follows = Follows::Run;
    if matches!(new.on_duplicate, OnDuplicate::Debounce { .. }) && has_body(work, &old, &new.body)? {
        task.go_on(&old);
    } else {
        set_body(work, &old, &new.body)?;
    }
    task.hold_back(old.backoff, work.now_ms);
    // Placed from the state that it has in the table.
    task.state = old.state;
    let place = work.stays(&old, &mut task);
    if place.is_none() {
        // By its old key and priority.
        work.leave_key(&old)?;
        task.left = true;
    }
    let accepted = (Outcome::Replaced, task.version, task.due);
    work.put(task, place)?;
    Ok(accepted)
}

/// The task that is there stays as it is, but that it becomes the node that is asked for.
fn keep(work: &mut Work<'_>, new: &NewTask, task: &Task) -> rusqlite::Result<Accepted> {
    let version = work.next_version();
    match &new.node {
        None => {
            work.step.change("UPDATE task SET version = ?2 WHERE serial = ?1", &[&task.serial, &version])?
        }
        Some(node) => work.step.change(
            "UPDATE task SET version = ?2, node = ?3 WHERE serial = ?1",
            &[&task.serial, &version, &node.text()],
        )?,
    };
    Ok((Outcome::Kept, version, task.due))
}

/// Notes whether a debounced successor has the body of main, which stays as it is until then.
fn compare(work: &Work<'_>, successor: &mut Task, main: &Task, body: &[u8]) -> rusqlite::Result<()> {
    if successor.follows == Follows::Debounced && has_body(work, main, body)? {
        successor.follows = Follows::Again;
    }
    Ok(())
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
        state: RowState::Parked,
        turn: 0,
        ends: 0,
        version: work.next_version(),
        due,
        priority: new.priority,
        attempts: 0,
        max_attempts: new.max_attempts,
        first,
        expires: new.expires.map_or(0, |expires| work.after(expires)),
        receipt: Receipt::NONE,
        settled: Receipt::NONE,
        verdict: NO_VERDICT,
        follows: match new.on_duplicate {
            OnDuplicate::Replace => Follows::Retry,
            OnDuplicate::Debounce { .. } => Follows::Debounced,
            OnDuplicate::Keep | OnDuplicate::Skip | OnDuplicate::Throttle { .. } => Follows::Run,
        },
        reason: "".into(),
        backoff: 0,
        consumer: "".into(),
        size: i64::try_from(new.body.len()).unwrap_or(i64::MAX),
        history: History::default(),
        cancelled: false,
        key: new.key.as_ref().map_or("", TaskKey::as_str).into(),
        node: new.node.as_ref().map(NodeOf::text).unwrap_or_default().into(),
        left: false,
    }
}

/// The new task in the row of an old one of the same id, which may have been a node.
fn revised(work: &mut Work<'_>, new: &NewTask, old: &Task) -> Task {
    let first = match new.on_duplicate {
        OnDuplicate::Debounce { .. } => old.first,
        _ => work.now_ms,
    };
    let (serial, settled, verdict) = (old.serial, old.settled, old.verdict);
    let mut task = Task { serial, settled, verdict, ..fresh(work, new, first) };
    if new.node.is_none() {
        task.node.clone_from(&old.node);
    }
    task
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
