//! The arguments of the verbs that concern queues.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use stanchion::{Backoff, OnDuplicate, Rate, TaskState};

use crate::parse::{
    Limit, RateLimit, backoff, count, due, header, limit, most, on_duplicate, rate, rate_limit, small_most,
    switch,
};
use crate::seconds::{run_timeout, seconds, ttl, wait};

/// What to put into a queue.
#[derive(Args)]
pub struct EnqueueOrder {
    /// The payload of every task: any text; - reads it from stdin [default: none]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub payload: Option<OsString>,
    /// Make a task of every line of stdin that is not empty: the line is both id and payload
    ///
    /// They are sent as they come, up to 1,000 at once. A line that can be no task, or has over 16 MiB, ends it when
    /// those before it are sent; so does a signal.
    #[arg(long, conflicts_with_all = ["payload", "ids"])]
    pub lines: bool,
    /// With --lines: make ids, so that equal lines are different tasks; the line is the payload
    #[arg(long, requires = "lines")]
    pub auto: bool,
    /// Deliver it so long from now
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub delay: Option<Duration>,
    /// Deliver it at this time: 2026-12-24T18:00:00+01:00, or @SECONDS since 1970
    #[arg(long, value_name = "TIME", value_parser = due, conflicts_with = "delay")]
    pub due: Option<SystemTime>,
    /// 0 to 255; higher ones are delivered first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: u8,
    /// After so many deliveries without success the task is dead: 20 take about two days
    #[arg(long, value_name = "N", default_value_t = stanchion::DEFAULT_MAX_ATTEMPTS)]
    pub max_attempts: u32,
    /// Do not deliver it later than so long from now: then it is dead [default: never]
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub expires: Option<Duration>,
    /// What kind of work it is, by which workers choose their handler
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// A run that takes longer has failed [default: as long as its claim is renewed]
    #[arg(long, value_name = "SECS", value_parser = run_timeout, allow_negative_numbers = true)]
    pub run_timeout: Option<Duration>,
    /// The pauses after failed attempts in seconds, such as 1,30,600, or JSON in milliseconds, such as
    /// {"base":1000,"factor":2,"max":60000} [default: n^4 seconds after the n-th]
    #[arg(long, value_name = "PAUSES", value_parser = backoff)]
    pub backoff: Option<Backoff>,
    /// How long what comes of it is kept [default: 1 h]
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub keep_result: Option<Duration>,
    /// Whose task it is, such as tenant:7: tasks with a key in common share the limits of that key, and keys share the queue
    /// alike, so that one with many tasks does not hold up another
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// If the id is in the queue already: keep, skip, replace, debounce:SECS or throttle:SECS
    ///
    /// keep: the task that is there stays as it is. replace: the new one takes its place. debounce: as replace,
    /// and the due time moves on, at most SECS after the first. throttle: accept an id once in SECS. An id that
    /// is being worked on gets a successor, which comes after it; with skip it gets none, and pending ones are kept.
    #[arg(long, value_name = "POLICY", default_value = "keep", value_parser = on_duplicate)]
    pub on_duplicate: OnDuplicate,
    /// A text that travels with the payload; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// The queue's name
    pub queue: String,
    /// The tasks' ids: 1 to 512 bytes, no control characters
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

/// How to work on queues.
#[derive(Args, Clone)]
pub struct WorkOrder {
    /// How many commands run at once, for each QUEUE: 1 to 1,000
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = count)]
    pub jobs: usize,
    /// End when no task is ready or claimed any more, by this worker or another; tasks due later stay
    #[arg(long)]
    pub until_empty: bool,
    /// How long the store keeps a claim if this machine dies; it is renewed while CMD runs [default: 30]
    #[arg(long, value_name = "SECS", value_parser = ttl, allow_negative_numbers = true)]
    pub lease: Option<Duration>,
    /// How long CMD may run; then it is stopped, and the attempt has failed [default: 3600]
    #[arg(long, value_name = "SECS", value_parser = ttl, allow_negative_numbers = true)]
    pub max_run: Option<Duration>,
    /// How long CMD may run for a task that does not say so itself: it is stopped then, or up to --kill-after earlier, and
    /// the attempt has failed [default: only --max-run counts]
    #[arg(long, value_name = "SECS", value_parser = run_timeout, allow_negative_numbers = true)]
    pub run_timeout: Option<Duration>,
    /// On SIGTERM or Ctrl-C, how long running CMDs go on before they are stopped and put back; a second signal ends it
    /// [default: 25]
    #[arg(long, value_name = "SECS", value_parser = wait, allow_negative_numbers = true)]
    pub grace: Option<Duration>,
    /// When CMD is stopped, how long it may take to end by itself after SIGTERM; a third signal kills at once
    #[arg(long, value_name = "SECS", default_value = "2", value_parser = wait, allow_negative_numbers = true)]
    pub kill_after: Duration,
    /// Write what this process has counted to FILE as Prometheus text, every 5 s and at the end
    #[arg(long, value_name = "FILE")]
    pub metrics_file: Option<PathBuf>,
    /// The queues' names
    #[arg(required = true, value_name = "QUEUE")]
    pub queues: Vec<String>,
    /// The command and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Look at queues, and look after them
#[derive(Subcommand)]
pub enum QueuesVerb {
    /// List the queues
    Ls,
    /// Show how many tasks a queue has, what happened so far, and its settings
    ///
    /// Of a queue that is not there: zeros, and without --json a note on stderr.
    Stats {
        /// The queue's name
        queue: String,
    },
    /// Show who works on a queue: the processes that wait for a task, or have some
    ///
    /// Of the first 1,000 calls that wait, and of the first 1,000 claims.
    Consumers {
        /// The queue's name
        queue: String,
    },
    /// Show the tasks that come next, without taking them
    Peek {
        /// How many at most
        #[arg(short = 'n', long = "count", value_name = "N", default_value = "10", value_parser = count)]
        count: usize,
        /// The queue's name
        queue: String,
    },
    /// List the tasks of one state
    List {
        /// Which state
        #[arg(long)]
        state: State,
        /// How many at most [default: all]
        #[arg(short = 'n', long = "count", value_name = "N")]
        count: Option<usize>,
        /// Only those whose id begins so
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        prefix: String,
        /// Without payloads and headers, which may be long
        #[arg(long)]
        no_payloads: bool,
        /// The queue's name
        queue: String,
    },
    /// Show one task: the live one, or the newest dead one with this id
    Get {
        /// The queue's name
        queue: String,
        /// The task's id
        id: String,
    },
    /// Move dead tasks back to ready, with all their attempts
    #[command(group = which())]
    Kick(DeadOrder),
    /// Drop dead tasks
    #[command(group = which())]
    RemoveDead(DeadOrder),
    /// Drop a task, also while it is worked on: its command is stopped then
    Remove {
        /// Only if this is still the task's version
        #[arg(long, value_name = "N")]
        version: Option<u64>,
        /// The queue's name
        queue: String,
        /// The task's id
        id: String,
    },
    /// End a task: one that waits is dropped; one that is worked on is stopped at its next renewal, and not tried again
    Cancel {
        /// The queue's name
        queue: String,
        /// The task's id
        id: String,
    },
    /// Print the result of a task, which its worker gave with its ack
    ///
    /// Exits with 1 if it is not done yet, and with 9 if it is dead, was done without a result, or is not known.
    Result {
        /// Wait so long for its end [default: not at all]
        #[arg(long, value_name = "SECS", value_parser = wait, allow_negative_numbers = true)]
        wait: Option<Duration>,
        /// Of this version, as enqueue tells it, or a later one
        #[arg(long, value_name = "N")]
        version: Option<u64>,
        /// The queue's name
        queue: String,
        /// The task's id
        id: String,
    },
    /// Print what happened to the tasks of a queue, as far as it keeps that: one line for each event
    ///
    /// Its number, its time by the store's clock, what happened, the task's id, which attempt it was, and why it failed.
    /// `stanchion queues configure --events` says how many are kept: without it, none.
    Events(EventsOrder),
    /// List the keys of a queue: those that hold tasks, then those that have limits of their own
    Keys {
        /// The queue's name
        queue: String,
    },
    /// Show a key, or give it limits of its own, instead of those that the queue gives each key
    ///
    /// Limits that are given replace all that it had of its own; what is not given is as the queue has it.
    Key(KeyOrder),
    /// Stop giving out tasks; claimed ones go on
    ///
    /// Workers say within 5 s that they wait for that.
    Pause {
        /// The queue's name
        queue: String,
    },
    /// Go on giving out tasks
    Resume {
        /// The queue's name
        queue: String,
    },
    /// Drop every task, live and dead; settings stay
    Purge {
        /// Really drop them
        #[arg(long)]
        yes: bool,
        /// The queue's name
        queue: String,
    },
    /// Change settings of a queue, and show them
    #[command(group = ArgGroup::new("what").required(true).multiple(true)
        .args(["max_len", "dead_max", "dead_age", "dead_bytes", "intake", "events", "max_running", "rate",
            "key_concurrency", "key_rate"]))]
    Configure(ConfigureOrder),
}

/// Nobody means all dead tasks by accident.
fn which() -> ArgGroup {
    ArgGroup::new("which").required(true).multiple(true).args([
        "ids",
        "count",
        "receipts",
        "reason",
        "prefix",
        "older_than",
    ])
}

/// Which dead tasks. Without ids, receipts or a count: all that the others tell.
#[derive(Args)]
pub struct DeadOrder {
    /// So many of the oldest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["ids", "receipts"])]
    pub count: Option<u64>,
    /// The record with this receipt; may be given more than once
    #[arg(long = "receipt", value_name = "N", conflicts_with = "ids")]
    pub receipts: Vec<u64>,
    // Not empty, as a variable of a shell may be that was never set: that would mean all.
    /// Only those whose reason begins so
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub reason: Option<String>,
    /// Only those whose id begins so
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub prefix: Option<String>,
    /// Only those that died so long ago, or longer
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub older_than: Option<Duration>,
    /// The queue's name
    pub queue: String,
    /// The tasks' ids: the newest dead record of each
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

/// Which events to print.
#[derive(Args)]
pub struct EventsOrder {
    /// Only those after the one with this number [default: all that are kept]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub after: u64,
    /// Then go on, and print what happens, until a signal comes
    #[arg(short, long)]
    pub follow: bool,
    /// The queue's name
    pub queue: String,
}

/// Which settings to change.
#[derive(Args)]
pub struct ConfigureOrder {
    /// Refuse new ids when so many tasks are live, or none for no limit
    #[arg(long, value_name = "N|none", value_parser = limit)]
    pub max_len: Option<Limit>,
    /// Keep so many dead tasks at most
    #[arg(long, value_name = "N")]
    pub dead_max: Option<u64>,
    /// Keep dead tasks for so long
    #[arg(long, value_name = "SECS", value_parser = wait, allow_negative_numbers = true)]
    pub dead_age: Option<Duration>,
    /// Keep so many bytes of dead tasks' payloads at most
    #[arg(long, value_name = "N")]
    pub dead_bytes: Option<u64>,
    /// Whether plain ZADDs to the queue's key are taken in: on or off (Redis only)
    #[arg(long, value_name = "on|off", value_parser = switch)]
    pub intake: Option<bool>,
    /// Keep so many events, 0 to 100,000, for `stanchion queues events`; the oldest go first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=100_000))]
    pub events: Option<u64>,
    /// Run so many tasks at once at most, whoever runs them, or none for no limit
    #[arg(long, value_name = "N|none", value_parser = most)]
    pub max_running: Option<Limit>,
    /// Deliver so many tasks per time, such as 20/s, 100/10m or 5/1h, or none for no limit
    ///
    /// Every delivery counts, also a retry and one that is put back.
    #[arg(long, value_name = "N/TIME|none", value_parser = rate_limit)]
    pub rate: Option<RateLimit>,
    /// With --rate: so many may come at once after a pause [default: 1]
    #[arg(long, value_name = "N", requires = "rate")]
    pub burst: Option<u32>,
    /// So many tasks of each key are in line and running at most, or none for no limit; see `stanchion queues key`
    #[arg(long, value_name = "N|none", value_parser = small_most)]
    pub key_concurrency: Option<Limit>,
    /// Deliver so many tasks of each key per time, or none for no limit
    #[arg(long, value_name = "N/TIME|none", value_parser = rate_limit)]
    pub key_rate: Option<RateLimit>,
    /// With --key-rate: so many may come at once after a pause [default: 1]
    #[arg(long, value_name = "N", requires = "key_rate")]
    pub key_burst: Option<u32>,
    /// The queue's name
    pub queue: String,
}

/// Which limits a key is to have of its own.
#[derive(Args)]
pub struct KeyOrder {
    /// So many of its tasks are in line and running at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: Option<u32>,
    /// Deliver so many of its tasks per time, such as 20/s, 100/10m or 5/1h
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    pub rate: Option<Rate>,
    /// With --rate: so many may come at once after a pause [default: 1]
    #[arg(long, value_name = "N", requires = "rate")]
    pub burst: Option<u32>,
    /// Its share beside other keys, 1 to 100: one of weight 3 gets three tasks done while one of weight 1 gets one [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub weight: Option<u32>,
    /// Take the limits away that it has of its own
    #[arg(long, conflicts_with_all = ["concurrency", "rate", "weight"])]
    pub clear: bool,
    /// The queue's name
    pub queue: String,
    /// The key: 1 to 512 bytes, no control characters
    pub key: String,
}

/// Where tasks are.
#[derive(Clone, Copy, ValueEnum)]
pub enum State {
    /// Due later
    Scheduled,
    /// Due now
    Ready,
    /// Given to a worker
    Claimed,
    /// Due now, and held by a limit of its key
    Held,
    /// Given up, and kept for a while
    Dead,
}

impl From<State> for TaskState {
    fn from(state: State) -> Self {
        match state {
            State::Scheduled => Self::Scheduled,
            State::Ready => Self::Ready,
            State::Claimed => Self::Claimed,
            State::Held => Self::Held,
            State::Dead => Self::Dead,
        }
    }
}
