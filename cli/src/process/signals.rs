//! Signals that concern the command.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::exit;
use crate::failure::Failure;

/// What `run` passes on to the command.
pub const PASSED_ON: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];
/// What ends `run` while no command runs, and `work`.
pub const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// What concerns `work`: its commands are in process groups of their own, which Ctrl-Z does not stop.
pub const OF_WORK: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGTSTP];

/// The signals caught since [`Signals::catch`], in order.
pub struct Signals {
    caught: Receiver<Caught>,
}

/// One signal.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    /// Which.
    pub signal: Signal,
    from_kernel: bool,
}

impl Signals {
    /// Catches these from now on, and the end of children. What this process was told to ignore (by nohup, or by a shell that
    /// started it in the background) stays ignored, for the command too.
    pub fn catch(which: &[Signal]) -> Result<Self, Failure> {
        let ignored = ignored();
        let wanted = which.iter().copied().filter(|signal| ignored & bit(*signal) == 0);
        let wanted = wanted.chain([Signal::SIGCHLD]).map(|signal| signal as i32);
        let failed = |error| Failure::system("catching signals failed", &error);
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted).map_err(failed)?;
        let (sender, caught) = channel();
        let pass_on = move || {
            for origin in &mut signals {
                if Caught::of(&origin).is_some_and(|caught| sender.send(caught).is_err()) {
                    return;
                }
            }
        };
        thread::Builder::new().name("signals".into()).spawn(pass_on).map_err(failed)?;
        Ok(Self { caught })
    }

    /// The exit code, if a signal came that ends a process without a command.
    pub fn ending(&self) -> Option<u8> {
        let signal = self.caught.try_iter().find(|caught| ENDING.contains(&caught.signal))?.signal;
        Some(u8::try_from(exit::SIGNAL_BASE + signal as i32).unwrap_or(u8::MAX))
    }

    /// Waits for the next one.
    pub fn next(&self, time: Duration) -> Option<Caught> {
        match self.caught.recv_timeout(time) {
            Ok(caught) => Some(caught),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(time);
                None
            }
        }
    }
}

impl Caught {
    fn of(origin: &Origin) -> Option<Self> {
        let signal = Signal::try_from(origin.signal).ok()?;
        Some(Self { signal, from_kernel: origin.cause == Cause::Kernel })
    }

    /// Whether the command has not got it already: Ctrl-C and Ctrl-\ go to the whole process group.
    /// (A hang-up may go to the session's leader alone, and does no harm twice.)
    pub fn is_for_command(self) -> bool {
        let from_keyboard = self.from_kernel && matches!(self.signal, Signal::SIGINT | Signal::SIGQUIT);
        self.signal != Signal::SIGCHLD && !from_keyboard
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

/// The mask of ignored signals; none where the system does not tell.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
