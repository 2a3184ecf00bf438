//! `stanchion limit`: a command when its turn has come.

use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use stanchion::blocking::Client;
use stanchion::{DEFAULT_WAIT, ErrorKind, Limit, Taken};

use crate::arguments::{Globals, LimitKindWord, LimitOrder};
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::process::{ENDING, Signals, not_started};
use crate::report::Report;
use crate::store;
use crate::text::{left, plain};

/// So many in so long, as it is written: 10/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    n: u32,
    per: Duration,
}

impl Rate {
    /// Reads `N/s`, `N/m`, `N/h`, `N/d`, or `N/SECS`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "not a rate such as 10/s, 600/m, 5000/h, 100000/d or 50/0.5 (seconds)".to_owned();
        let (n, per) = text.split_once('/').ok_or_else(wrong)?;
        let per = match per {
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3_600),
            "d" => Duration::from_secs(24 * 3_600),
            seconds => crate::seconds::seconds(seconds).map_err(|_| wrong())?,
        };
        Ok(Self { n: n.parse().map_err(|_| wrong())?, per })
    }
}

/// Takes, and becomes the command; the exit code if it does not.
pub fn limit(order: &LimitOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    // From here on a signal is ours to handle: a turn that is waited for is given back.
    let signals = Signals::catch(&ENDING)?;
    let wait = if order.no_wait { Duration::ZERO } else { order.wait.unwrap_or(DEFAULT_WAIT) };
    let (began, mut interrupted) = (Instant::now(), None);
    let limiter = client.limiter(&order.name, limit_of(order))?;
    let taken = limiter.take_while(order.count, wait, &mut || {
        interrupted = signals.ending();
        if interrupted.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match (taken, interrupted.or_else(|| signals.ending())) {
        (Err(error), Some(code)) if error.kind() == ErrorKind::Cancelled => Ok(code),
        (_, Some(code)) => Ok(code),
        (Err(error), None) => Err(error.into()),
        (Ok(taken), None) if order.command.is_empty() && globals.json => {
            let retry_after = taken.retry_after().map(|time| time.as_secs_f64());
            print(
                format!("{}\n", json!({ "allowed": taken.is_allowed(), "retry_after": retry_after }))
                    .as_bytes(),
            )?;
            Ok(if taken.is_allowed() { exit::DONE } else { order.conflict_exit_code })
        }
        (Ok(Taken::RetryAfter(time)), None) => Err(refused(order, time, began)),
        (Ok(Taken::Allowed), None) => become_command(&client, order),
    }
}

fn limit_of(order: &LimitOrder) -> Limit {
    let Rate { n, per } = order.rate;
    let limit = match order.kind {
        LimitKindWord::Gcra => Limit::rate(n, per),
        LimitKindWord::FixedWindow => Limit::fixed_window(n, per),
        LimitKindWord::SlidingWindow => Limit::sliding_window(n, per),
    };
    order.burst.map_or(limit, |burst| limit.burst(burst))
}

fn refused(order: &LimitOrder, time: Duration, began: Instant) -> Failure {
    let name = plain(&order.name);
    let what = format!(
        "limit {name:?}: used up for {} more; did not wait",
        left(time.saturating_sub(began.elapsed()))
    );
    let hint = if order.no_wait { "leave --no-wait out" } else { "wait longer with --wait" };
    Failure::new("Limited", order.conflict_exit_code, what, hint)
}

/// There is nothing to hold while it runs, so this process becomes the command: same pid, terminal and signals.
fn become_command(client: &Client, order: &LimitOrder) -> Result<u8, Failure> {
    let [program, arguments @ ..] = &order.command[..] else { return Ok(exit::DONE) };
    // What is done in the background would end with this program.
    client.linger(Duration::from_secs(1));
    let error = Command::new(program).args(arguments).exec();
    Err(not_started(program, &error, "it was counted all the same"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn rates_are_numbers_in_a_time() {
        let rate = |n, secs| Ok(Rate { n, per: Duration::from_secs_f64(secs) });
        assert_eq!(Rate::parse("10/s"), rate(10, 1.0));
        assert_eq!(Rate::parse("600/m"), rate(600, 60.0));
        assert_eq!(Rate::parse("1/h"), rate(1, 3_600.0));
        assert_eq!(Rate::parse("7/d"), rate(7, 86_400.0));
        assert_eq!(Rate::parse("50/0.5"), rate(50, 0.5));
        for text in ["", "10", "/s", "10/", "10/w", "-1/s", "1.5/s", "10/-1", "10 / s", "99999999999/s"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }
}
