//! The same done with many tasks: those of one state whose id and reason begin so, or that have this key.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use stanchion::{Cancelled, DeadTasks, Error, ListOptions, Queue, Removed, Rescheduled, TaskInfo, TaskState};
use tokio::task::JoinSet;

use crate::web::describe::state_named;
use crate::web::failing::Failing;
use crate::web::html::shown;

/// Tasks that one step looks at, at most.
const STEP: usize = 100;
/// Requests that are under way at the same time.
const AT_ONCE: usize = 16;
/// Tasks that a count looks at, at most.
const COUNTED: usize = 10_000;
/// Times of tasks are stored in whole ones.
const MILLI: Duration = Duration::from_millis(1);
/// Minutes in which a task may be due, at most.
const YEAR: u64 = 365 * 24 * 60;

/// What can be done with many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Kick,
    RemoveDead,
    Remove,
    RunNow,
    Reschedule,
    Cancel,
}

impl Verb {
    const ALL: [Self; 6] =
        [Self::Kick, Self::RemoveDead, Self::RunNow, Self::Reschedule, Self::Remove, Self::Cancel];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Kick => "kick",
            Self::RemoveDead => "remove-dead",
            Self::Remove => "remove",
            Self::RunNow => "run-now",
            Self::Reschedule => "reschedule",
            Self::Cancel => "cancel",
        }
    }

    /// On a button.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kick => "Kick",
            Self::RemoveDead | Self::Remove => "Remove",
            Self::RunNow => "Run now",
            Self::Reschedule => "Reschedule",
            Self::Cancel => "Cancel",
        }
    }

    /// What follows for each of them.
    pub const fn means(self) -> &'static str {
        match self {
            Self::Kick => "They will be ready again, with all their attempts.",
            Self::RemoveDead | Self::Remove => "They will be gone for good.",
            Self::RunNow => "They will be due at once.",
            Self::Reschedule => "They will be due then.",
            Self::Cancel => "Their runs are told to end, and they are not tried again.",
        }
    }

    /// Behind how many there were.
    pub const fn did(self) -> &'static str {
        match self {
            Self::Kick => "ready again",
            Self::RemoveDead | Self::Remove => "removed",
            Self::RunNow | Self::Reschedule => "due at another time",
            Self::Cancel => "told to end",
        }
    }

    /// Those that make sense for tasks in this state.
    pub fn of(state: TaskState) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |verb| match verb {
            Self::Kick | Self::RemoveDead => state == TaskState::Dead,
            Self::Cancel => state == TaskState::Claimed,
            Self::RunNow => state == TaskState::Scheduled,
            Self::Remove | Self::Reschedule => !matches!(state, TaskState::Dead | TaskState::Claimed),
        })
    }
}

/// Which tasks are meant, and what is to be done with them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Which {
    pub state: String,
    pub verb: String,
    pub prefix: String,
    pub reason: String,
    pub key: String,
    /// In how many they are to be due.
    pub minutes: Option<u64>,
}

impl Which {
    /// State and verb, if they make sense together.
    pub fn order(&self) -> Result<(TaskState, Verb), Failing> {
        let state = state_named(&self.state)?;
        let verb = Verb::of(state).find(|verb| verb.name() == self.verb);
        let verb = verb.ok_or_else(|| {
            Failing::Wrong(format!("Tasks that are {} cannot all be treated so.", shown(&self.state)))
        })?;
        Ok((state, verb))
    }
}

/// The next of those that are meant.
pub async fn matching(
    queue: &Queue,
    state: TaskState,
    which: &Which,
    from: Option<String>,
    most: usize,
) -> Result<(Vec<TaskInfo>, Option<String>), Error> {
    let mut options = ListOptions::new(state).payloads(false).max(most).prefix(which.prefix.as_str());
    if let Some(from) = from {
        options = options.page(from);
    }
    let page = queue.list(options).await?;
    let is_meant = |task: &TaskInfo| {
        task.reason.starts_with(&which.reason)
            && (which.key.is_empty() || task.key.as_deref() == Some(which.key.as_str()))
    };
    Ok((page.tasks.into_iter().filter(is_meant).collect(), page.next))
}

/// How many that are, and whether there may be more: it looks at 10,000 at most.
pub async fn count(queue: &Queue, state: TaskState, which: &Which) -> Result<(u64, bool), Error> {
    let (mut count, mut from) = (0, None);
    for _ in 0..COUNTED / STEP {
        let (found, next) = matching(queue, state, which, from, STEP).await?;
        count += found.len() as u64;
        from = next;
        if from.is_none() {
            break;
        }
    }
    Ok((count, from.is_some()))
}

/// Does it with all, and tells now and then how many that were; so many in all, and why it ended before it was done.
pub async fn perform(queue: &Queue, which: &Which, tell: impl Fn(u64)) -> (u64, Option<Error>) {
    let Ok((state, verb)) = which.order() else { return (0, None) };
    let due = due_in(which.minutes.unwrap_or(0));
    let (mut done, mut from) = (0, None);
    loop {
        let (tasks, next) = match matching(queue, state, which, from.take(), STEP).await {
            Ok(page) => page,
            Err(error) => return (done, Some(error)),
        };
        let (some, error) = step(queue, verb, due, tasks).await;
        done += some;
        from = next;
        if error.is_some() || from.is_none() {
            return (done, error);
        }
        tell(done);
    }
}

async fn step(queue: &Queue, verb: Verb, due: SystemTime, tasks: Vec<TaskInfo>) -> (u64, Option<Error>) {
    let swept = match verb {
        _ if tasks.is_empty() => Ok(0),
        Verb::Kick => queue.kick(records(&tasks)).await,
        Verb::RemoveDead => queue.remove_dead(records(&tasks)).await,
        _ => return each(queue, verb, due, tasks).await,
    };
    swept.map_or_else(|error| (0, Some(error)), |some| (some, None))
}

/// These records: of an id there may be several.
fn records(tasks: &[TaskInfo]) -> DeadTasks {
    DeadTasks::receipts(tasks.iter().map(|task| task.receipt))
}

/// One request after the other for each, some at the same time: with how many it was done, and what went wrong first. What is
/// under way then is done to its end.
async fn each(queue: &Queue, verb: Verb, due: SystemTime, tasks: Vec<TaskInfo>) -> (u64, Option<Error>) {
    let (mut running, mut tasks, mut done, mut wrong) = (JoinSet::new(), tasks.into_iter(), 0, None);
    loop {
        while running.len() < AT_ONCE && wrong.is_none() {
            let Some(task) = tasks.next() else { break };
            let queue = queue.clone();
            running.spawn(async move { one(&queue, verb, due, &task).await });
        }
        match running.join_next().await {
            None => return (done, wrong),
            Some(Ok(Ok(was_done))) => done += u64::from(was_done),
            Some(Ok(Err(error))) => wrong = wrong.or(Some(error)),
            Some(Err(_)) => {}
        }
    }
}

/// So many minutes from now, a year at most. A due is rounded up to a millisecond, so what is due at once was due one ago:
/// otherwise it would not be, for a moment.
pub fn due_in(minutes: u64) -> SystemTime {
    SystemTime::now() - MILLI + Duration::from_secs(minutes.min(YEAR) * 60)
}

fn is_about(one: SystemTime, other: SystemTime) -> bool {
    one.duration_since(other).unwrap_or_else(|error| error.duration()) < MILLI
}

/// Whether it was done: a task that has gone on since it was listed is left alone.
async fn one(queue: &Queue, verb: Verb, due: SystemTime, seen: &TaskInfo) -> Result<bool, Error> {
    let id = &seen.id;
    if matches!(verb, Verb::Remove | Verb::Cancel) {
        let now = queue.get(id).await?;
        if now.is_none_or(|now| now.state != seen.state || now.receipt != seen.receipt) {
            return Ok(false);
        }
    }
    Ok(match verb {
        Verb::Cancel => matches!(queue.cancel(id).await?, Cancelled::Running | Cancelled::Removed),
        // One that was moved comes again, if it was moved behind the others.
        Verb::Reschedule if is_about(seen.due, due) => false,
        Verb::RunNow | Verb::Reschedule => {
            matches!(queue.reschedule(id, due).await?, Rescheduled::Moved(_))
        }
        _ => queue.remove(id, None).await? == Removed::Removed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_verbs() {
        let of = |state| Verb::of(state).map(Verb::name).collect::<Vec<_>>();
        assert_eq!(of(TaskState::Dead), ["kick", "remove-dead"]);
        assert_eq!(of(TaskState::Claimed), ["cancel"]);
        assert_eq!(of(TaskState::Ready), ["reschedule", "remove"]);
        assert_eq!(of(TaskState::Scheduled), ["run-now", "reschedule", "remove"]);
        let which = Which { state: "claimed".into(), verb: "kick".into(), ..Which::default() };
        assert!(which.order().is_err());
    }
}
