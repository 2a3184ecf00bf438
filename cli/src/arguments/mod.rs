//! The arguments, as the help shows them.

mod flows;
mod limit;
mod queue;
mod schedules;
mod web;

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use flows::FlowsVerb;
pub use limit::{LimitKindWord, LimitOrder};
pub use queue::{ConfigureOrder, DeadOrder, EnqueueOrder, EventsOrder, KeyOrder, QueuesVerb, WorkOrder};
pub use schedules::{OverlapWord, ScheduleOrder, SchedulesVerb};
pub use web::WebOrder;

use crate::exit;
use crate::seconds::{cooldown, seconds, ttl, wait};

/// Run commands under a distributed lock, and work on queues of tasks
///
/// Locks and queues live in a store that all participants share: a Redis or Valkey server for many machines, or an
/// SQLite file for one. A lock is held under a lease, which is renewed while it is needed, and every lease
/// has a fence: a number that grows with each grant, by which a resource can refuse a holder that came too
/// late. A task is claimed under a lease as well: if its worker dies, it is delivered again.
#[derive(Parser)]
#[command(name = "stanchion", version, after_long_help = exit::help())]
pub struct Arguments {
    /// What every verb takes.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What every verb takes.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Where locks and queues are: redis://HOST, rediss://HOST, redis+unix:///SOCKET or sqlite:PATH
    ///
    /// Also redis-sentinel://HOST,HOST/MASTER, redis-cluster://HOST,HOST and redis-quorum://HOST,HOST,HOST, with TLS
    /// rediss-sentinel:// and so on.
    ///
    /// Without a URL the embedded store $XDG_STATE_HOME/stanchion/stanchion.db of this user and machine is
    /// used (default ~/.local/state). A URL with a password belongs in the variable: arguments are visible
    /// to other users of the machine.
    #[arg(long, global = true, env = stanchion::URL_VARIABLE, hide_env_values = true, value_name = "URL")]
    pub url: Option<String>,
    /// Refuse to work without a URL, so that a misspelt variable does not mean the embedded store
    #[arg(long, global = true, env = "STANCHION_REQUIRE_URL", value_parser = FalseyValueParser::new())]
    pub require_url: bool,
    /// What is put before a lock's name to make its key [default: Lock:]
    #[arg(long, global = true, value_name = "TEXT")]
    pub lock_prefix: Option<String>,
    /// What is put before a queue's name to make its key [default: Queue:]
    #[arg(long, global = true, value_name = "TEXT")]
    pub queue_prefix: Option<String>,
    /// How long the store may take to answer [default: 5]
    #[arg(long, global = true, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
    /// Print results and errors as JSON, one document per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no notes on stderr, and nothing when the lock is busy or the limit used up; other errors are still printed
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// What to do.
#[derive(Subcommand)]
pub enum Verb {
    /// Run a command while holding a lock, like flock(1), across machines
    ///
    /// Acquires the lock NAME, runs CMD, and releases the lock when CMD has ended, however it ended. The lease
    /// is renewed as long as CMD runs, for 365 days at most. CMD finds the lease's fence in STANCHION_FENCE and
    /// the lock's name in STANCHION_LOCK.
    ///
    /// Several NAMEs are acquired together, all or none, in an order in which two commands never wait for each
    /// other. STANCHION_LOCK has their names then, sorted, one per line, and STANCHION_FENCE their fences.
    ///
    /// Unlike in flock(1), a lock that is taken with --read by some has to be taken with --write by the others:
    /// without either, NAME is another lock. So it is with --permits: each kind of lock has names of its own.
    ///
    /// CMD stays in the process group of `stanchion run`, so Ctrl-C and Ctrl-Z work as usual; SIGINT, SIGTERM,
    /// SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 sent to `stanchion run` alone are passed on to CMD.
    ///
    /// If the lease is lost, CMD and every process it has started get SIGTERM at once, and SIGKILL after
    /// --kill-after. If the store cannot be reached, SIGTERM comes that long before the lease ends (but not
    /// before its last quarter), and SIGKILL when it ends, so that CMD does not outlive its lease. If
    /// `stanchion run` itself is killed, the kernel kills CMD, but not what CMD has started: let a script `exec`
    /// its last command. While only `stanchion run` is stopped (kill -STOP) nobody renews the lease or watches
    /// CMD; on waking up it stops CMD if the lease has ended. Pass the fence along with writes where that
    /// matters.
    #[command(after_long_help = exit::help())]
    Run(RunOrder),
    /// Run a command when a limit allows it: so many in so long, across machines
    ///
    /// Takes --count of what the limiter NAME allows, waiting in line for its turn, and becomes CMD: there is nothing
    /// to hold while that runs. All who use NAME should give the same limit; it is counted by the store's clock.
    ///
    /// A signal that ends `stanchion limit` while it waits gives its turn back, unless somebody is in line behind it.
    /// Without CMD nothing is run: the exit code says whether it was allowed, and with --json a line on stdout, with the
    /// seconds after which a try would succeed.
    #[command(after_long_help = exit::help())]
    Limit(LimitOrder),
    /// List the limiters that something was taken of
    ///
    /// A line for each: after how long nothing that was taken counts any more, if nobody takes more. Of a rate that is for how
    /// long it is used up ahead, those who wait in line included. What a limiter allows is not stored: who takes says it.
    Limiters,
    /// Look at locks, or break one
    #[command(subcommand)]
    Locks(LocksVerb),
    /// Put tasks into a queue
    ///
    /// A task has an id, by which doubles are recognised: an id that is in the queue already is not put in
    /// twice, see --on-duplicate. Without ID a new one is made. Prints what became of each task.
    #[command(after_long_help = exit::help())]
    Enqueue(EnqueueOrder),
    /// Run a command for each task of a queue, like xargs(1), across machines
    ///
    /// Claims tasks of QUEUE and runs CMD for each: the payload is CMD's stdin, and {} in any of its words
    /// becomes the task's id (no shell is involved; an id may begin with a dash). CMD finds STANCHION_TASK_ID,
    /// STANCHION_QUEUE, STANCHION_KIND (empty if it has none), STANCHION_ATTEMPT (counts deliveries from one), STANCHION_MAX_ATTEMPTS, STANCHION_HEADERS (a
    /// JSON object; not set if it is longer than 100,000 bytes) and STANCHION_RECEIPT (the number of this delivery,
    /// larger than that of every earlier one of the task: pass it along with writes, as a fence). Its stdout and
    /// stderr are those of `stanchion work`.
    ///
    /// If CMD exits with 0, the task is done. Otherwise it is tried again after a pause of 1, 16, 81, 256 ...
    /// seconds at most (the fourth power of the attempt's number), half of that at least, and never over 7 hours;
    /// it is dead after its last attempt. The reason that is kept with it is CMD's exit code or signal, and the
    /// last line of its stderr. If CMD cannot be started, all tasks are put back and `stanchion work` ends.
    ///
    /// SIGTERM, SIGINT, SIGHUP and SIGQUIT: take no more tasks. Running commands have --grace to end by
    /// themselves; then they are stopped, and their tasks are put back, uncounted. A second signal ends the
    /// grace, a third one kills the commands. If `stanchion work` itself is killed, the kernel kills CMD, and its tasks come back when their leases end. If a claim is lost, its CMD and every
    /// process that it has started get SIGTERM at once, and SIGKILL after --kill-after. Every CMD has a
    /// process group of its own. SIGTSTP (Ctrl-Z) stops these, too, and SIGCONT continues them; nobody renews claims
    /// meanwhile, and a CMD whose claim has ended by then is told to end.
    #[command(after_long_help = exit::help())]
    Work(WorkOrder),
    /// Look at queues, and look after them
    #[command(subcommand)]
    Queues(QueuesVerb),
    /// Make tasks at set times: cron for a queue
    #[command(subcommand)]
    Schedules(SchedulesVerb),
    /// Look at flows, tasks of which some wait for others, and cancel or retry them
    #[command(subcommand)]
    Flows(FlowsVerb),
    /// Print what the store knows as Prometheus text: for node_exporter's textfile collector, or cron
    ///
    /// Of each QUEUE (default: all) how many tasks it has in each state, how late the next one is, and what
    /// happened so far; how many locks of each kind are held, and how many wait for them. With --json an object:
    /// each sample with its value.
    #[command(after_long_help = exit::help())]
    Metrics {
        /// The queues' names
        #[arg(value_name = "QUEUE")]
        queues: Vec<String>,
    },
    /// Serve the dashboard: what is stuck, and why, in a browser
    ///
    /// The first page says what is wrong now: tasks that are late and why, locks that are held while others wait, keys that are
    /// throttled, deaths, schedules that nobody fires, and promises that do not hold on this store. Then queues, locks of every
    /// kind with their lines, workers, and the server. Each page shows the command that does the same. Actions are logged as
    /// JSON on stderr, with who took them.
    ///
    /// It listens on the loopback address only, unless it is told who may come in.
    #[command(after_long_help = exit::help())]
    Web(WebOrder),
    /// Examine the store: what it is like, and which promises hold on it
    ///
    /// Looks at the server's version, role, replication, persistence, memory policy and clock, or at the file, its
    /// content and the disk; then takes and releases a lock named stanchion-doctor, some times. Says for each
    /// promise that depends on it whether it holds here, and what to do. Ends with 5 if one does not hold.
    #[command(after_long_help = exit::help())]
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page; read it with: stanchion man | man -l -
    Man,
}

/// How to run a command under a lock.
#[derive(Args)]
pub struct RunOrder {
    /// Do not wait: fail at once if the lock is busy
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub no_wait: bool,
    /// How long to wait for the lock; fractions are allowed [default: 10]
    #[arg(short, long, value_name = "SECS", value_parser = wait, allow_negative_numbers = true)]
    pub wait: Option<Duration>,
    /// How long the store keeps the lock if this machine dies; it is renewed while CMD runs [default: 30]
    #[arg(long, value_name = "SECS", value_parser = ttl, allow_negative_numbers = true)]
    pub ttl: Option<Duration>,
    /// Share the lock with others that only read: nobody holds it with --write meanwhile
    #[arg(long, visible_alias = "shared", conflicts_with_all = ["write", "permits"])]
    pub read: bool,
    /// Hold the lock alone: nobody holds it with --read or --write meanwhile
    #[arg(long, visible_alias = "exclusive", conflicts_with = "permits")]
    pub write: bool,
    /// Share the lock with others, N permits in all; everybody has to give the same N
    #[arg(long, value_name = "N")]
    pub permits: Option<u32>,
    /// How many of the permits CMD needs [default: 1]
    #[arg(long, value_name = "N", requires = "permits")]
    pub weight: Option<u32>,
    /// Keep the lock closed for this long after CMD has ended, whatever its exit code; not with a shared lock
    #[arg(long, value_name = "SECS", value_parser = cooldown, allow_negative_numbers = true,
        conflicts_with_all = ["read", "write", "permits"])]
    pub cooldown: Option<Duration>,
    /// Exit code when the lock is busy
    #[arg(short = 'E', long, value_name = "N", default_value_t = exit::BUSY)]
    pub conflict_exit_code: u8,
    /// When the lease is lost, how long CMD may take to end by itself after SIGTERM
    #[arg(long, value_name = "SECS", default_value = "2", value_parser = wait, allow_negative_numbers = true)]
    pub kill_after: Duration,
    /// Shown to others by `stanchion locks` [default: the URL's label, if any]
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// The lock's name, or several to hold together
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// The command and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Look at locks, or break one
#[derive(Subcommand)]
pub enum LocksVerb {
    /// List the locks of every kind that are held now, with a line for each holder
    #[command(visible_alias = "list")]
    Ls,
    /// Show who holds a lock
    Show {
        /// The lock's name
        name: String,
        /// What kind of lock it is
        #[arg(long, value_enum, default_value_t = Kind::Lock)]
        kind: Kind,
    },
    /// Take a lock from whoever holds it, at once and without asking
    ///
    /// The holder learns of it when it next renews its lease (within a third of its ttl) and may work on
    /// until then; its fence is smaller than the next holder's.
    Break {
        /// The lock's name
        name: String,
        /// What kind of lock it is; all its holders lose it
        #[arg(long, value_enum, default_value_t = Kind::Lock)]
        kind: Kind,
    },
}

/// The kinds of locks. Each has names of its own.
#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// One holder
    Lock,
    /// Many readers, or one writer
    RwLock,
    /// As many holders as it has permits
    Semaphore,
    /// One who computes a cached value
    Cached,
}

/// A shell that completions are made for.
#[derive(Clone, Copy, ValueEnum)]
pub enum Shell {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// Fish
    Fish,
}
