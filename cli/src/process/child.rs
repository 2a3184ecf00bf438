//! The command as a process: started so that it cannot outlive this one.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::descendants::{Kin, descendants};
use super::nursery::{End, Nursery};
use crate::exit;
use crate::failure::Failure;

/// The command and what it has started.
pub struct Child<'a> {
    nursery: &'a Nursery,
    pid: Pid,
    kin: Kin,
}

impl<'a> Child<'a> {
    /// Starts a command. The calling thread has to live until it has ended: the kernel kills the command when
    /// the thread that started it ends. `advice` is for the case that it cannot be started.
    pub fn spawn(
        nursery: &'a Nursery,
        mut command: Command,
        kin: Kin,
        advice: &str,
    ) -> Result<Self, Failure> {
        linux::adopt_orphans();
        linux::tie_to_this_process(&mut command);
        let started = nursery.spawn(&mut command);
        let pid = started.map_err(|error| not_started(command.get_program(), &error, advice))?;
        Ok(Self { nursery, pid, kin })
    }

    /// Its pid.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Takes note of every process of ours that has ended; how the command did, if it has.
    pub fn reap(&self) -> Option<End> {
        self.nursery.reap();
        self.nursery.end(self.pid)
    }

    /// Sends a signal to the command alone.
    pub fn signal(&self, signal: Signal) {
        self.nursery.signal(self.pid, signal);
    }

    /// Sends a signal to the command and to everything it has started. A shell that is told to end
    /// leaves its children alone; they would work on without the lease.
    pub fn signal_all(&self, signal: Signal) {
        self.signal(signal);
        for pid in descendants(self.pid, &self.kin).into_iter().filter(|pid| *pid != self.pid) {
            let _ = kill(pid, signal);
        }
    }

    /// Whether the command and everything it has started have ended.
    pub fn is_all_over(&self) -> bool {
        self.nursery.end(self.pid).is_some() && descendants(self.pid, &self.kin).is_empty()
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        self.nursery.forget(self.pid);
    }
}

/// Why a command does not run.
pub fn not_started(program: &OsStr, error: &io::Error, advice: &str) -> Failure {
    let what = format!("command {}: {error}", program.display());
    let (kind, exit, check) = match error.kind() {
        io::ErrorKind::NotFound => ("CommandNotFound", exit::NOT_FOUND, "check its name and PATH"),
        _ => ("CommandNotExecutable", exit::NOT_EXECUTABLE, "check that it may be executed"),
    };
    Failure::new(kind, exit, what, format!("{check}; {advice}"))
}

/// What only Linux can do. Elsewhere a command survives a killed `stanchion`, and its orphans survive a
/// lost lease.
mod linux {
    use std::process::Command;

    /// Has processes of the command that lose their parent become children of this process, so that they
    /// are found when the lease is lost.
    pub fn adopt_orphans() {
        #[cfg(target_os = "linux")]
        // Before Linux 3.4 it does not exist.
        let _ = nix::sys::prctl::set_child_subreaper(true);
    }

    /// Has the kernel kill the command when this process is gone, since nobody renews the lease then.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "there is no such switch"))]
    #[allow(
        unsafe_code,
        reason = "asking the kernel for a signal at the parent's death is possible only \
                                   between fork and exec; nothing else here is unsafe"
    )]
    pub fn tie_to_this_process(command: &mut Command) {
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::process::CommandExt;

            use nix::errno::Errno;
            use nix::sys::prctl::set_pdeathsig;
            use nix::sys::signal::Signal;
            use nix::unistd::{Pid, getppid};

            let parent = Pid::this();
            let tie = move || {
                set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have died just before.
                if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
            };
            // SAFETY: between fork and exec only async-signal-safe functions may run. The closure makes two
            // system calls and allocates nothing: an `io::Error` from an errno is a plain number.
            unsafe { command.pre_exec(tie) };
        }
    }
}
