//! Watching over the command until it ends, and ending it when the lease does.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stanchion::LossReason;
use stanchion::blocking::Lease;

use super::child::Child;
use super::signals::Signals;
use crate::exit;
use crate::failure::Failure;
use crate::report::Report;

/// How often the lease is looked at. The command's end and signals are noticed at once.
const LOOK: Duration = Duration::from_millis(100);
/// How often the survivors of SIGKILL are looked for: one may just have been started by another.
const KILL_AGAIN: Duration = Duration::from_millis(20);
/// An unreachable store ends the command within this part of the ttl at most: renewals begin when a third
/// of it has passed, and need time to get through.
const EARLIEST: u32 = 4;

/// The times that decide when the command is stopped.
pub struct Terms {
    /// Between SIGTERM and SIGKILL.
    pub kill_after: Duration,
    /// The lease's full length.
    pub ttl: Duration,
}

/// How it ended.
pub struct Ending {
    /// The command's exit code.
    pub code: u8,
    /// Whether it was stopped because of its lease.
    pub stopped: bool,
}

/// The way to the end of a command that is being stopped.
struct Stopping {
    kill_at: Instant,
    /// Stopped before its lease ended; it must not outlive it.
    early: bool,
    killed: bool,
}

/// Waits for the command's end.
pub fn supervise(
    child: &mut Child,
    lease: &Lease,
    signals: &Signals,
    terms: &Terms,
    report: &Report,
) -> Ending {
    let mut watch = Watch { terms, in_danger: false };
    let mut stopping: Option<Stopping> = None;
    loop {
        child.reap();
        let stopped = stopping.is_some();
        if let Some(code) = child.code()
            && (!stopped || child.is_all_over())
        {
            return Ending { code, stopped };
        }
        match &mut stopping {
            None => {
                if let Some(trouble) = watch.look(lease) {
                    report.failure(&trouble.failure(lease));
                    stopping = Some(stop(child, &trouble, terms));
                }
            }
            Some(stopping) => stopping.press(child, lease),
        }
        let nap = stopping.as_ref().map_or(watch.nap(lease), |stopping| stopping.nap(lease));
        if let Some(caught) = signals.next(nap)
            && caught.is_for_command()
        {
            child.signal(caught.signal);
        }
    }
}

fn stop(child: &Child, trouble: &Trouble, terms: &Terms) -> Stopping {
    child.signal_all(Signal::SIGTERM);
    // A process that is stopped would not see it.
    child.signal_all(Signal::SIGCONT);
    let early = matches!(trouble, Trouble::Ending);
    Stopping { kill_at: Instant::now() + terms.kill_after, early, killed: false }
}

impl Stopping {
    /// Kills what is left when its time is over.
    fn press(&mut self, child: &Child, lease: &Lease) {
        if self.killed || Instant::now() >= self.kill_at || (self.early && !lease.is_valid()) {
            self.killed = true;
            child.signal_all(Signal::SIGKILL);
        }
    }

    fn nap(&self, lease: &Lease) -> Duration {
        if self.killed {
            return KILL_AGAIN;
        }
        let left = self.kill_at.saturating_duration_since(Instant::now());
        let left = if self.early { left.min(lease.remaining()) } else { left };
        left.min(LOOK)
    }
}

/// Why the command has to end.
enum Trouble {
    Lost(Option<LossReason>),
    /// It is still ours, but not for long.
    Ending,
}

impl Trouble {
    fn failure(&self, lease: &Lease) -> Failure {
        let why = match self {
            Self::Lost(Some(reason)) => reason.error().message().to_owned(),
            Self::Lost(None) => "the lease ran out".into(),
            Self::Ending => "the store has not renewed the lease in time, and it ends soon".into(),
        };
        let what = format!("run {:?}: {why}; the command is being stopped", lease.name());
        Failure::new("LeaseLost", exit::LOST, what, "check what it left half done before running it again")
    }
}

/// Looks for trouble.
struct Watch<'a> {
    terms: &'a Terms,
    /// Whether the last look found the lease's end near.
    in_danger: bool,
}

impl Watch<'_> {
    fn look(&mut self, lease: &Lease) -> Option<Trouble> {
        if !lease.is_valid() {
            return Some(Trouble::Lost(lease.loss()));
        }
        let near = lease.remaining() <= self.margin();
        if near && self.in_danger {
            return Some(Trouble::Ending);
        }
        // Only a second look counts: after a pause of this process (Ctrl-Z, a suspended machine) the
        // renewal needs a moment.
        self.in_danger = near;
        None
    }

    /// How much of the lease is kept for stopping the command.
    fn margin(&self) -> Duration {
        self.terms.kill_after.min(self.terms.ttl / EARLIEST)
    }

    fn nap(&self, lease: &Lease) -> Duration {
        let left = lease.remaining();
        let left = if self.in_danger { left / 2 } else { left.saturating_sub(self.margin()) };
        // Not in a busy loop, whatever the clock says.
        left.min(LOOK).max(Duration::from_millis(1))
    }
}
