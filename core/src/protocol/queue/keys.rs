//! Limits: of a queue, and of the tasks that have a key in common.

use std::time::Duration;

use crate::base::name::TaskKey;
use crate::protocol::Place;

/// So many per time: over any time `per` at most `count + burst`. Kept by the generic cell rate algorithm (ITU-T I.371).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In how long, in whole milliseconds.
    pub per: Duration,
    /// How many of them may come at once.
    pub burst: u32,
}

/// What keeps a queue from giving out tasks that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gate {
    /// Nothing.
    #[default]
    Open,
    /// It is paused.
    Paused,
    /// As many run as may at once.
    MaxRunning,
    /// Its rate, for so long.
    Rate(Duration),
    /// A throttle, for so long.
    Throttled(Duration),
}

impl Gate {
    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::MaxRunning => "max_running",
            Self::Rate(_) => "rate",
            Self::Throttled(_) => "throttled",
        }
    }

    /// In how long it opens by itself; `None` if that is not known.
    pub const fn opens(self) -> Option<Duration> {
        match self {
            Self::Rate(left) | Self::Throttled(left) => Some(left),
            Self::Open | Self::Paused | Self::MaxRunning => None,
        }
    }
}

/// Limits that a key has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLimits {
    /// How many of its tasks are in line and running at most; `None`: as the queue has it.
    pub concurrency: Option<u32>,
    /// How many are delivered per time; `None`: as the queue has it.
    pub rate: Option<Rate>,
    /// How many of its tasks stand in line at once: its share, beside those of others.
    pub weight: u32,
}

/// Give a key limits of its own, or take them away.
#[derive(Clone, Debug)]
pub struct LimitKey {
    /// Which.
    pub key: TaskKey,
    /// `None` takes them away.
    pub limits: Option<OwnLimits>,
}

/// Look at keys.
#[derive(Clone, Debug)]
pub enum ListKeys {
    /// This one, whatever is known of it.
    One(TaskKey),
    /// Those that hold tasks, then those that have limits of their own.
    Page {
        /// `None` first, then what the last page gave.
        from: Option<Place>,
        /// At most so many.
        max: u32,
    },
}

/// The answer to [`ListKeys`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListKeysReply {
    /// In the order of their bytes, those that hold tasks first.
    pub keys: Vec<KeyRecord>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Place>,
}

/// A key as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Which.
    pub key: TaskKey,
    /// How many of its tasks run.
    pub running: u64,
    /// How many stand in line.
    pub in_line: u64,
    /// How many are held.
    pub held: u64,
    /// In how long its rate, or a throttle, lets more of it go; `None` if neither is in the way.
    pub opens: Option<Duration>,
    /// What it has of its own.
    pub limits: Option<OwnLimits>,
}
