//! Every process that this one has started or adopted, reaped in one place: whoever waits for any process
//! takes the end of everybody's.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use stanchion::fork_for_exec;

use crate::exit;

/// The commands that run, and how those that have ended did.
#[derive(Default)]
pub struct Nursery {
    commands: Mutex<HashMap<Pid, Option<End>>>,
    changed: Condvar,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exit(u8),
    /// By a signal.
    Signal(Signal),
}

impl End {
    /// The exit code that a shell would give.
    pub fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => u8::try_from(exit::SIGNAL_BASE + signal as i32).unwrap_or(u8::MAX),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {}", *signal as i32),
        }
    }
}

impl Nursery {
    /// Starts a command. Nobody reaps meanwhile: its end must not be seen before it is known here, and if it
    /// cannot be executed, the end of its fork belongs to the standard library.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Pid> {
        let mut commands = self.commands();
        let started = fork_for_exec(|| command.spawn())?;
        let pid = Pid::from_raw(started.id().cast_signed());
        commands.insert(pid, None);
        Ok(pid)
    }

    /// Takes note of every process that has ended.
    pub fn reap(&self) {
        let mut commands = self.commands();
        let mut reaped = false;
        loop {
            let (pid, end) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, End::Exit(u8::try_from(code).unwrap_or(u8::MAX))),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, End::Signal(signal)),
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => {
                    // Nobody is left. A command whose end we missed has failed as far as anybody knows.
                    for end in commands.values_mut() {
                        reaped |= end.is_none();
                        end.get_or_insert(End::Exit(exit::SYSTEM));
                    }
                    break;
                }
            };
            reaped = true;
            if let Some(command) = commands.get_mut(&pid) {
                *command = Some(end);
            }
        }
        drop(commands);
        if reaped {
            self.changed.notify_all();
        }
    }

    /// How a command has ended, if it has.
    pub fn end(&self, pid: Pid) -> Option<End> {
        self.commands().get(&pid).copied().flatten()
    }

    /// Sends a signal to a command that has not been reaped: afterwards its pid may be another's.
    pub fn signal(&self, pid: Pid, signal: Signal) {
        let commands = self.commands();
        if let Some(None) = commands.get(&pid) {
            let _ = kill(pid, signal);
        }
    }

    /// Stops the process groups that the commands lead, then this process; when it is continued, them as well. No
    /// command is started meanwhile.
    pub fn suspend(&self) {
        let commands = self.commands();
        // Once it is reaped, a command's pid may be another's.
        let running = || commands.iter().filter(|(_, end)| end.is_none()).map(|(pid, _)| *pid);
        let signal_all = |signal| {
            for pid in running() {
                let _ = killpg(pid, signal);
            }
        };
        signal_all(Signal::SIGSTOP);
        // Returns when this process goes on.
        let _ = raise(Signal::SIGSTOP);
        signal_all(Signal::SIGCONT);
    }

    /// Waits until something was reaped. Returns at once, one time, if this command has ended: `seen` is the
    /// caller's memory of that. It may wait on for what the command has started.
    pub fn wait(&self, pid: Pid, time: Duration, seen: &mut bool) {
        let commands = self.commands();
        let has_ended = commands.get(&pid).is_none_or(Option::is_some);
        if *seen || !has_ended {
            drop(self.changed.wait_timeout(commands, time));
        }
        *seen |= has_ended;
    }

    /// Wakes all who wait.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Forgets a command.
    pub fn forget(&self, pid: Pid) {
        self.commands().remove(&pid);
    }

    fn commands(&self) -> MutexGuard<'_, HashMap<Pid, Option<End>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
