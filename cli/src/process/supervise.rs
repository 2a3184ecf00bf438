//! Watching over the command until it ends, and ending it when the lease does.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stanchion::LossReason;
use stanchion::blocking::{Claim, Lease};

use super::child::Child;
use super::nursery::End;

/// How often the lease is looked at. The command's end and signals are noticed at once.
const LOOK: Duration = Duration::from_millis(100);
/// How often the survivors of SIGKILL are looked for: one may just have been started by another.
const KILL_AGAIN: Duration = Duration::from_millis(20);
/// An unreachable store ends the command within this part of the ttl at most: renewals begin when a third
/// of it has passed, and need time to get through.
const EARLIEST: u32 = 4;

/// What a command runs under.
pub trait Tenure {
    /// Whether it is ours now.
    fn is_valid(&self) -> bool;
    /// How long it is surely ours.
    fn remaining(&self) -> Duration;
    /// Why it was lost, if it was.
    fn loss(&self) -> Option<LossReason>;
}

impl Tenure for Lease {
    fn is_valid(&self) -> bool {
        self.is_valid()
    }

    fn remaining(&self) -> Duration {
        self.remaining()
    }

    fn loss(&self) -> Option<LossReason> {
        self.loss()
    }
}

impl Tenure for Claim {
    fn is_valid(&self) -> bool {
        self.is_valid()
    }

    fn remaining(&self) -> Duration {
        self.remaining()
    }

    fn loss(&self) -> Option<LossReason> {
        self.loss()
    }
}

/// The times that decide when the command is stopped.
pub struct Terms {
    /// Between SIGTERM and SIGKILL.
    pub kill_after: Duration,
    /// The lease's full length.
    pub ttl: Duration,
    /// When the command has run for too long.
    pub stop_at: Option<Instant>,
}

/// What the command is to be told while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// This signal, to the command alone.
    PassOn(Signal),
    /// To end at once, with everything it has started.
    Kill,
}

/// How it ended.
pub struct Ending {
    /// How the command ended.
    pub end: End,
    /// Why it was stopped, if it was.
    pub stopped: Option<Trouble>,
}

/// The way to the end of a command that is being stopped.
struct Stopping {
    trouble: Trouble,
    kill_at: Instant,
    killed: bool,
}

/// Waits for the command's end. `next` waits for an order, or for the end of a process, at most for the time
/// given; `tell` is told when the command is being stopped.
pub fn supervise(
    child: &Child<'_>,
    tenure: &impl Tenure,
    terms: &Terms,
    next: &mut dyn FnMut(Duration) -> Option<Order>,
    tell: &mut dyn FnMut(&Trouble),
) -> Ending {
    let mut watch = Watch { terms, in_danger: false };
    let mut stopping: Option<Stopping> = None;
    loop {
        if let Some(end) = child.reap()
            && (stopping.is_none() || child.is_all_over())
        {
            return Ending { end, stopped: stopping.map(|stopping| stopping.trouble) };
        }
        match &mut stopping {
            None => {
                if let Some(trouble) = watch.look(tenure) {
                    tell(&trouble);
                    stopping = Some(Stopping::begin(child, trouble, terms));
                }
            }
            Some(stopping) => stopping.press(child, tenure),
        }
        let nap = stopping.as_ref().map_or(watch.nap(tenure), |stopping| stopping.nap(tenure));
        match next(nap) {
            Some(Order::PassOn(signal)) => child.signal(signal),
            Some(Order::Kill) if stopping.as_ref().is_none_or(|stopping| !stopping.killed) => {
                let trouble = stopping.map_or(Trouble::Killed, |stopping| stopping.trouble);
                stopping = Some(Stopping { trouble, kill_at: Instant::now(), killed: false });
            }
            Some(Order::Kill) | None => {}
        }
    }
}

impl Stopping {
    fn begin(child: &Child<'_>, trouble: Trouble, terms: &Terms) -> Self {
        child.signal_all(Signal::SIGTERM);
        // A process that is stopped would not see it.
        child.signal_all(Signal::SIGCONT);
        Self { trouble, kill_at: Instant::now() + terms.kill_after, killed: false }
    }

    /// Stopped while the lease is valid; the command must not outlive it.
    fn is_early(&self) -> bool {
        !matches!(self.trouble, Trouble::Lost(_))
    }

    /// Kills what is left when its time is over.
    fn press(&mut self, child: &Child<'_>, lease: &impl Tenure) {
        if self.killed || Instant::now() >= self.kill_at || (self.is_early() && !lease.is_valid()) {
            self.killed = true;
            child.signal_all(Signal::SIGKILL);
        }
    }

    fn nap(&self, lease: &impl Tenure) -> Duration {
        if self.killed {
            return KILL_AGAIN;
        }
        let left = self.kill_at.saturating_duration_since(Instant::now());
        let left = if self.is_early() { left.min(lease.remaining()) } else { left };
        left.min(LOOK)
    }
}

/// Why the command has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The lease is gone.
    Lost(Option<LossReason>),
    /// The lease is still ours, but not for long.
    Ending,
    /// It has run for too long.
    Overtime,
    /// Somebody asked for it.
    Killed,
}

impl Trouble {
    /// In words.
    pub fn why(self) -> String {
        match self {
            Self::Lost(Some(reason)) => reason.error().message().to_owned(),
            Self::Lost(None) => "the lease expired".into(),
            Self::Ending => "the store has not renewed the lease in time, and it ends soon".into(),
            Self::Overtime => "it has run for too long".into(),
            Self::Killed => "stanchion was asked to end at once".into(),
        }
    }
}

/// Looks for trouble.
struct Watch<'a> {
    terms: &'a Terms,
    /// Whether the last look found the lease's end near.
    in_danger: bool,
}

impl Watch<'_> {
    fn look(&mut self, lease: &impl Tenure) -> Option<Trouble> {
        if !lease.is_valid() {
            return Some(Trouble::Lost(lease.loss()));
        }
        if self.terms.stop_at.is_some_and(|stop_at| Instant::now() >= stop_at) {
            return Some(Trouble::Overtime);
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

    fn nap(&self, lease: &impl Tenure) -> Duration {
        let left = lease.remaining();
        let left = if self.in_danger { left / 2 } else { left.saturating_sub(self.margin()) };
        let left = self
            .terms
            .stop_at
            .map_or(left, |stop_at| left.min(stop_at.saturating_duration_since(Instant::now())));
        // Not in a busy loop, whatever the clock says.
        left.min(LOOK).max(Duration::from_millis(1))
    }
}
