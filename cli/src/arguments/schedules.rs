//! The arguments of `stanchion schedules`.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand, ValueEnum};
use stanchion::Missed;

use crate::parse::{count, due, header, missed};
use crate::seconds::seconds;

/// Make tasks at set times: cron for a queue
#[derive(Subcommand)]
pub enum SchedulesVerb {
    /// List the schedules of a queue, the one that is due next first
    #[command(visible_alias = "list")]
    Ls {
        /// The queue's name
        queue: String,
    },
    /// Show one schedule, with its next slots
    Show {
        /// The queue's name
        queue: String,
        /// The schedule's id
        id: String,
    },
    /// Add a schedule, or change the one with this id
    ///
    /// Each of its times is a slot, and each slot makes one task with the id ID@TIME, however many workers there are:
    /// whoever works on the queue fires what is due, by the store's clock. A queue that nobody works on fires nothing.
    ///
    /// WHEN is a cron text of 5 fields (minute, hour, day of month, month, day of week) or of 6 with seconds first;
    /// @hourly, @daily, @weekly, @monthly, @yearly; "every 90s", "every 1h 30m"; or
    /// "at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00Z". If it is changed, its slots go on as they are, unless WHEN or
    /// an option beside it is another.
    Add(ScheduleOrder),
    /// Drop a schedule; the tasks that it has made stay
    Rm {
        /// The queue's name
        queue: String,
        /// The schedule's id
        id: String,
    },
    /// Let a schedule fire nothing until it is resumed
    Pause {
        /// The queue's name
        queue: String,
        /// The schedule's id
        id: String,
    },
    /// Let a schedule go on, without the slots of the pause
    Resume {
        /// The queue's name
        queue: String,
        /// The schedule's id
        id: String,
    },
    /// Make a task of a schedule now; its slots stay as they are
    Run {
        /// The queue's name
        queue: String,
        /// The schedule's id
        id: String,
    },
    /// Show when the slots of a text would be; needs no store
    Preview {
        /// How many
        #[arg(short = 'n', long = "count", value_name = "N", default_value = "5", value_parser = count)]
        count: usize,
        /// The time zone of a cron text
        #[arg(long, value_name = "ZONE", default_value = "UTC")]
        tz: String,
        /// After this time: 2026-12-24T18:00:00+01:00, or @SECONDS since 1970 [default: now]
        #[arg(long, value_name = "TIME", value_parser = due)]
        after: Option<SystemTime>,
        /// When: see add
        when: String,
    },
}

/// A schedule to add.
#[derive(Args)]
pub struct ScheduleOrder {
    /// The time zone of a cron text, by its IANA name such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub tz: String,
    /// Of slots that nobody fired in time, fire the last one, skip those over a minute late, or fire all:N, the newest N
    #[arg(long, value_name = "last|skip|all:N", default_value = "last", value_parser = missed)]
    pub missed: Missed,
    /// While the task of the slot before is pending or running: queue another one, or skip the slot
    #[arg(long, value_enum, default_value_t = OverlapWord::Queue)]
    pub overlap: OverlapWord,
    /// Delay all slots by the same time, drawn from the id, shorter than this [default: none]
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub jitter: Option<Duration>,
    /// No slot before this time
    #[arg(long, value_name = "TIME", value_parser = due)]
    pub starts: Option<SystemTime>,
    /// No slot after this time
    #[arg(long, value_name = "TIME", value_parser = due)]
    pub ends: Option<SystemTime>,
    /// A new one begins paused; one that is there stays as it is
    #[arg(long)]
    pub paused: bool,
    /// The payload of every task: any text; - reads it from stdin [default: none]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub payload: Option<OsString>,
    /// 0 to 255; higher ones are delivered first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: u8,
    /// After so many deliveries without success a task is dead: 20 take about two days
    #[arg(long, value_name = "N", default_value_t = stanchion::DEFAULT_MAX_ATTEMPTS)]
    pub max_attempts: u32,
    /// Do not deliver a task later than so long after it was made: then it is dead [default: never]
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub expires: Option<Duration>,
    /// Whose its tasks are: see enqueue
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// A text that travels with the payload; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// The queue's name
    pub queue: String,
    /// The schedule's id: 1 to 480 bytes, no control characters
    pub id: String,
    /// When: a cron text, "every 90s", or "at TIME, TIME"
    pub when: String,
}

/// What becomes of a slot while the task of the one before lives.
#[derive(Clone, Copy, ValueEnum)]
pub enum OverlapWord {
    /// It gets its task all the same
    Queue,
    /// It gets none
    Skip,
}
