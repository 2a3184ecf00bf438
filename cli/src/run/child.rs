//! The command as a process: started so that it cannot outlive `stanchion run`, and reaped.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use stanchion::blocking::Lease;

use super::descendants::descendants;
use crate::exit;
use crate::failure::Failure;

/// The command and what it has started.
pub struct Child {
    pid: Pid,
    code: Option<u8>,
    /// Children that this process had before, from a script that became `stanchion run` by exec.
    strangers: Vec<Pid>,
}

impl Child {
    /// Starts the command. To be called on the main thread: the kernel kills the command when the thread
    /// that started it ends.
    pub fn spawn(words: &[OsString], lease: &Lease) -> Result<Self, Failure> {
        let [program, arguments @ ..] = words else {
            return Err(Failure::new(
                "InvalidArgument",
                exit::USAGE,
                "no command was given",
                "put it after --",
            ));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command.env("STANCHION_FENCE", lease.fence().to_string());
        command.env("STANCHION_LOCK", lease.name());
        let strangers = strangers();
        linux::adopt_orphans();
        linux::tie_to_this_process(&mut command);
        let started = command.spawn().map_err(|error| not_started(program, &error))?;
        let pid =
            i32::try_from(started.id()).map_err(|_| not_started(program, &io::Error::other("bad pid")))?;
        Ok(Self { pid: Pid::from_raw(pid), code: None, strangers })
    }

    /// The command's exit code as a shell would give it, once it has ended.
    pub fn code(&self) -> Option<u8> {
        self.code
    }

    /// Takes note of every process of ours that has ended.
    pub fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return,
                Ok(WaitStatus::Exited(pid, code)) if pid == self.pid => self.code = u8::try_from(code).ok(),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.pid => {
                    self.code = u8::try_from(exit::SIGNAL_BASE + signal as i32).ok();
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => {
                    // Nobody is left. A command whose end we missed has failed as far as anybody knows.
                    self.code.get_or_insert(exit::SYSTEM);
                    return;
                }
            }
        }
    }

    /// Sends a signal to the command alone.
    pub fn signal(&self, signal: Signal) {
        if self.code.is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    /// Sends a signal to the command and to everything it has started. A shell that is told to end
    /// leaves its children alone; they would work on without the lock.
    pub fn signal_all(&self, signal: Signal) {
        self.signal(signal);
        for pid in descendants(&self.strangers).into_iter().filter(|pid| *pid != self.pid) {
            let _ = kill(pid, signal);
        }
    }

    /// Whether the command and everything it has started have ended.
    pub fn is_all_over(&self) -> bool {
        self.code.is_some() && descendants(&self.strangers).is_empty()
    }
}

/// Asks the kernel first: looking through all processes takes longer, and there is hardly ever one.
fn strangers() -> Vec<Pid> {
    match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        Err(Errno::ECHILD) => Vec::new(),
        _ => descendants(&[]),
    }
}

fn not_started(program: &OsString, error: &io::Error) -> Failure {
    let what = format!("{}: {error}", program.display());
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            "CommandNotFound",
            exit::NOT_FOUND,
            format!("command {what}"),
            "check its name and PATH; the lock was released",
        ),
        _ => Failure::new(
            "CommandNotExecutable",
            exit::NOT_EXECUTABLE,
            format!("command {what}"),
            "check that it may be executed; the lock was released",
        ),
    }
}

/// What only Linux can do. Elsewhere a command survives a killed `stanchion run`, and its orphans survive a
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
