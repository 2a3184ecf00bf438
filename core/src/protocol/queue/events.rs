//! What happens to tasks, for those who watch a queue.

use crate::base::name::TaskId;
use crate::protocol::{Version, Waiter, WallMillis};

/// What happened of late, as far as the queue keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// After the event with this number: 0 from the oldest that is kept; `None` none of those so far.
    pub after: Option<u64>,
    /// Who to hint when something happens, if nothing has.
    pub waiter: Option<Waiter>,
}

/// The answer to [`Events`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsReply {
    /// The first events after that, and the number of the last one of all.
    Found {
        /// In order, `EVENTS_PAGE` at most.
        events: Vec<EventRecord>,
        /// Where to go on if there are none.
        last: u64,
    },
    /// The queue keeps no events.
    Off,
}

/// Something that happened to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// One more than that of the event before.
    pub number: u64,
    /// When.
    pub at: WallMillis,
    /// What.
    pub what: Happened,
    /// Which task.
    pub id: TaskId,
    /// Of its enqueue.
    pub version: Version,
    /// How many attempts have begun.
    pub attempt: u32,
    /// Why, of what failed; else empty.
    pub reason: Box<str>,
}

macro_rules! happened {
    ($($(#[doc = $doc:literal])+ $what:ident = $number:literal $code:literal $name:literal,)+) => {
        /// What happens to tasks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Happened {
            $($(#[doc = $doc])+ $what = $number,)+
        }

        impl Happened {
            /// Each with what the scripts call it.
            pub(crate) const ALL: &[(&'static str, Self)] = &[$(($code, Self::$what),)+];

            /// The stable name, the same in every language.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$what => $name,)+
                }
            }
        }
    };
}

happened! {
    /// It was put in: by an enqueue that added or replaced it or made it a successor, by a schedule, by the intake, or because
    /// it was dead and was kicked.
    Added = 1 "EVENT_ADDED" "added",
    /// A worker was given it.
    Started = 2 "EVENT_STARTED" "started",
    /// Its run has said how far it is.
    Progress = 3 "EVENT_PROGRESS" "progress",
    /// It was acked.
    Done = 4 "EVENT_DONE" "done",
    /// Its run failed, or its lease ended; it will be tried again.
    Failed = 5 "EVENT_FAILED" "failed",
    /// It was given up: it had failed for the last time, was buried, or had expired.
    Dead = 6 "EVENT_DEAD" "dead",
    /// It was cancelled, and is gone.
    Cancelled = 7 "EVENT_CANCELLED" "cancelled",
    /// It was removed.
    Removed = 8 "EVENT_REMOVED" "removed",
    /// Its run ended without having failed; it will be tried again.
    PutBack = 9 "EVENT_PUT_BACK" "put_back",
}

impl Happened {
    /// The one that is stored as this number.
    pub(crate) fn stored(number: u64) -> Option<Self> {
        Self::ALL.iter().map(|(_, what)| *what).find(|what| *what as u64 == number)
    }
}
