//! The arguments of `stanchion limit`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::exit;
use crate::limit::Rate;
use crate::seconds::wait;

/// How a limiter counts. Each kind has names of its own.
#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum LimitKindWord {
    /// Evenly spaced, with bursts: a leaky bucket, a token bucket
    Gcra,
    /// So many in each window of the store's clock, such as each full minute
    FixedWindow,
    /// So many in any window, wherever it begins
    SlidingWindow,
}

/// How to run a command when its turn has come.
#[derive(Args)]
pub struct LimitOrder {
    /// So many in so long: 10/s, 600/m, 5000/h, 100000/d, or in so many seconds: 50/0.5
    #[arg(long, value_name = "N/TIME", value_parser = Rate::parse, required = true)]
    pub rate: Rate,
    /// How many may come at once after a calm time; of --kind gcra [default: 1]
    #[arg(long, value_name = "N")]
    pub burst: Option<u32>,
    /// How it counts; "so many at the same time" is `run --permits`
    #[arg(long, value_enum, default_value_t = LimitKindWord::Gcra)]
    pub kind: LimitKindWord,
    /// How many to take
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub count: u32,
    /// Do not wait: fail at once if the limit is used up
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub no_wait: bool,
    /// How long to wait in line, 3600 at most; if the turn would come later, fail at once [default: 10]
    #[arg(short, long, value_name = "SECS", value_parser = wait, allow_negative_numbers = true)]
    pub wait: Option<Duration>,
    /// Exit code when the limit is used up
    #[arg(short = 'E', long, value_name = "N", default_value_t = exit::BUSY)]
    pub conflict_exit_code: u8,
    /// The limiter's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The command and its arguments, after --; without one the exit code is the answer
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
