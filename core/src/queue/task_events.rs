//! Events, as programs see them.

use std::time::SystemTime;

use crate::engine::events::Happenings;
use crate::protocol::{EventRecord, Happened, Version};
use crate::queue::task::wall_time;

/// Something that happened to a task: see [`Queue::events`](crate::Queue::events).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskEvent {
    /// One more than that of the event before.
    pub number: u64,
    /// When, by the clock of the store.
    pub at: SystemTime,
    /// What.
    pub what: Happened,
    /// Which task.
    pub id: String,
    /// Of its enqueue, as in [`Enqueued`](crate::Enqueued).
    pub version: Version,
    /// Which attempt it was; 0 before the first.
    pub attempt: u32,
    /// Why, if it failed or is dead; else `None`.
    pub reason: Option<String>,
}

impl From<EventRecord> for TaskEvent {
    fn from(event: EventRecord) -> Self {
        Self {
            number: event.number,
            at: wall_time(event.at),
            what: event.what,
            id: event.id.as_str().to_owned(),
            version: event.version,
            attempt: event.attempt,
            reason: matches!(event.what, Happened::Failed | Happened::Dead).then(|| event.reason.into()),
        }
    }
}

/// Some of the events of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventPage {
    /// In order; 500 at most. None if nothing happened during the wait.
    pub events: Vec<TaskEvent>,
    /// Whether some are not kept any more that came between these and the one after which was asked.
    pub missed: bool,
    /// Ask for what comes after this.
    pub cursor: u64,
}

impl From<Happenings> for EventPage {
    fn from(found: Happenings) -> Self {
        let Happenings { events, missed, cursor } = found;
        Self { events: events.into_iter().map(TaskEvent::from).collect(), missed, cursor }
    }
}
