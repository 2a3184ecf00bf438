//! Forks: noticing them, and holding them back while SQLite is in use.
//!
//! A child process inherits memory but no threads, and SQLite in it would believe in file locks that the
//! kernel gave only to the parent. So before a fork a handler closes the gate, waits until nobody is
//! inside, and has every connection closed; parent and child open the gate again and reconnect lazily.
//! Nothing is registered or allocated before the first use.
#![allow(unsafe_code, reason = "registering fork handlers is a C interface; no other file has unsafe code")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Whether the handlers were registered. Inherited by children, as the handlers are.
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The process whose handlers ran last; another one's id here means a fork that bypassed them.
static HOME: AtomicU32 = AtomicU32::new(0);
/// How many forks lie between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Which of a line of forked processes this is. Two moments in one process have the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    forks: u64,
    process: u32,
}

/// The present generation; costs two loads and `getpid`.
pub(crate) fn generation() -> Generation {
    install();
    Generation { forks: FORKS.load(Ordering::Relaxed), process: std::process::id() }
}

/// Registers the fork handlers, once. Called by everything that must notice a fork.
pub(crate) fn install() {
    if INSTALLED.load(Ordering::Acquire) {
        return;
    }
    // A thread that comes second goes on at once: if this process is forked before the first one is done,
    // the child finds another process's id in HOME, and is refused rather than harmed.
    HOME.store(std::process::id(), Ordering::Release);
    if INSTALLED.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: the handlers are functions of this library without arguments; they never unwind.
    let failed = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    if failed != 0 {
        // Out of memory. The next call tries again; until then a fork counts as one that bypassed us.
        INSTALLED.store(false, Ordering::Release);
    }
}

thread_local! {
    /// Whether what this thread forks only executes another program.
    static FOR_EXEC: Cell<bool> = const { Cell::new(false) };
}

/// Starts another program with [`Command`](std::process::Command) while the embedded store's files stay open.
///
/// Before a fork they are closed, and the next call opens them again: half a millisecond, and for that long other
/// processes may have to wait. The standard library forks when a command has a `pre_exec`, a user or a group; a
/// child that does nothing but execute its program needs none of this. One that goes on instead is refused
/// ([`ErrorKind::Forked`](crate::ErrorKind::Forked)) where it uses an embedded store.
///
/// ```
/// use std::os::unix::process::CommandExt;
///
/// let mut command = std::process::Command::new("true");
/// // SAFETY: it does nothing.
/// unsafe { command.pre_exec(|| Ok(())) };
/// let mut child = stanchion::fork_for_exec(|| command.spawn())?;
/// assert!(child.wait()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn fork_for_exec<T>(start: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            FOR_EXEC.set(self.0);
        }
    }
    let _before = Before(FOR_EXEC.replace(true));
    start()
}

extern "C" fn prepare() {
    if FOR_EXEC.get() {
        return;
    }
    gate::close();
    // An unwinding panic must not cross into C; a connection that stays open is then the smaller evil.
    let _ = catch_unwind(AssertUnwindSafe(gate::run_closer));
}

extern "C" fn parent() {
    if !FOR_EXEC.get() {
        gate::reopen();
    }
}

extern "C" fn child() {
    // HOME stays the parent's process: this one must not use SQLite.
    if FOR_EXEC.get() {
        return;
    }
    FORKS.fetch_add(1, Ordering::Relaxed);
    if !gate::is_tainted() {
        HOME.store(std::process::id(), Ordering::Release);
    }
    gate::reopen();
}

/// The gate that everything passes which touches SQLite. It is one atomic number: a child could inherit
/// a mutex locked by a thread that it does not have.
pub(crate) mod gate {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::{HOME, install};

    /// Set while a fork is under way; the other bits count who is inside.
    const CLOSED: u64 = 1 << 63;
    /// How often a waiting thread looks again. Statements take microseconds, a fork some milliseconds.
    const NAP: Duration = Duration::from_micros(50);

    static STATE: AtomicU64 = AtomicU64::new(0);
    /// Set in a process whose fork bypassed the handlers, when it forks again: its children are no better.
    static TAINTED: AtomicBool = AtomicBool::new(false);
    /// What closes all connections. Set once, inside the gate, so no fork can interrupt the setting.
    static CLOSER: OnceLock<fn()> = OnceLock::new();

    /// This process is a child whose fork bypassed the handlers; SQLite must not be used in it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Bypassed;

    /// Being inside the gate. Never enter twice on one thread: a fork in between would wait for ever.
    #[derive(Debug)]
    pub(crate) struct Entered(());

    /// Waits while a fork is under way, then enters.
    pub(crate) fn enter() -> Result<Entered, Bypassed> {
        install();
        if HOME.load(Ordering::Acquire) != std::process::id() {
            return Err(Bypassed);
        }
        loop {
            let state = STATE.load(Ordering::Relaxed);
            if state & CLOSED != 0 {
                thread::sleep(NAP);
            } else if STATE
                .compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(Entered(()));
            }
        }
    }

    impl Drop for Entered {
        fn drop(&mut self) {
            STATE.fetch_sub(1, Ordering::Release);
        }
    }

    impl Entered {
        /// Sets what is to be called before each fork, when nobody is inside.
        pub(crate) fn before_fork(&self, closer: fn()) {
            CLOSER.get_or_init(|| closer);
        }
    }

    /// Closes the gate and waits until nobody is inside. Forks of several threads take turns.
    pub(super) fn close() {
        if HOME.load(Ordering::Acquire) != std::process::id() {
            // Nobody can be inside, and whoever was so at the fork will never leave here.
            TAINTED.store(true, Ordering::Release);
            return;
        }
        while STATE.fetch_or(CLOSED, Ordering::Acquire) & CLOSED != 0 {
            thread::sleep(NAP);
        }
        while STATE.load(Ordering::Acquire) != CLOSED {
            thread::sleep(NAP);
        }
    }

    /// Calls the closer, unless the connections are another process's to close.
    pub(super) fn run_closer() {
        if !is_tainted()
            && let Some(closer) = CLOSER.get()
        {
            closer();
        }
    }

    /// Whether a fork in this process's line bypassed the handlers.
    pub(super) fn is_tainted() -> bool {
        TAINTED.load(Ordering::Acquire)
    }

    /// Opens the gate again, in the parent or in the child.
    pub(super) fn reopen() {
        STATE.store(0, Ordering::Release);
    }
}

/// Forks for tests.
#[cfg(test)]
pub(crate) mod testing {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;

    /// A child that hangs is killed after this many seconds, and counts as failed.
    const CHILD_SECONDS: u32 = 60;

    /// Runs `body` in a forked child, and returns its result.
    pub(crate) fn in_child(body: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child never returns into the test harness, whose other threads it lacks.
        answer(unsafe { libc::fork() }, body)
    }

    /// True in a process that runs this test only; elsewhere runs such a process. What a raw clone copies
    /// may include a lock that another thread of the test harness holds.
    pub(crate) fn alone(test: &str) -> bool {
        const MARK: &str = "STANCHION_TEST_ALONE";
        if std::env::var_os(MARK).is_some() {
            return true;
        }
        let program = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new(program);
        let output = command.args([test, "--exact", "--test-threads=1"]).env(MARK, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        false
    }

    /// The same in a child that is made behind the C library's back.
    pub(crate) fn in_bypassing_child(body: impl FnOnce() -> bool) -> bool {
        // SAFETY: as above; without shared memory this is a bare fork.
        let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        answer(i32::try_from(pid).unwrap(), body)
    }

    fn answer(pid: i32, body: impl FnOnce() -> bool) -> bool {
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            // SAFETY: only sets a timer.
            unsafe { libc::alarm(CHILD_SECONDS) };
            let yes = catch_unwind(AssertUnwindSafe(body)).unwrap_or(false);
            // SAFETY: ends the process at once, without the handlers of the test harness.
            unsafe { libc::_exit(i32::from(!yes)) }
        }
        let pid = Pid::from_raw(pid);
        waitpid(pid, None).unwrap() == WaitStatus::Exited(pid, 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::testing::{alone, in_bypassing_child, in_child};
    use super::*;

    #[test]
    fn the_generation_changes_in_a_child_only() {
        let before = generation();
        assert!(in_child(|| generation() != before && generation() == generation()));
        assert!(!in_child(|| generation() == before));
        assert_eq!(generation(), before);
    }

    #[test]
    fn the_gate_is_open_in_the_child_and_again_in_the_parent() {
        drop(gate::enter().unwrap());
        assert!(in_child(|| gate::enter().is_ok()));
        drop(gate::enter().unwrap());
    }

    #[test]
    fn a_grandchild_has_a_generation_of_its_own() {
        let mine = generation();
        assert!(in_child(|| {
            let childs = generation();
            in_child(|| generation() != childs && generation() != mine && gate::enter().is_ok())
        }));
    }

    #[test]
    fn a_fork_waits_for_whoever_is_inside() {
        static LEFT: AtomicBool = AtomicBool::new(false);
        let entered = gate::enter().unwrap();
        let inside = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            LEFT.store(true, Ordering::SeqCst);
            drop(entered);
        });
        assert!(in_child(|| LEFT.load(Ordering::SeqCst)));
        inside.join().unwrap();
    }

    #[test]
    fn forks_of_several_threads_take_turns() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        assert!(in_child(|| gate::enter().is_ok()));
                        drop(gate::enter().unwrap());
                    }
                });
            }
        });
    }

    #[test]
    fn a_fork_that_bypasses_the_handlers_is_noticed_by_all_descendants() {
        if !alone("base::fork::tests::a_fork_that_bypasses_the_handlers_is_noticed_by_all_descendants") {
            return;
        }
        let before = generation();
        assert!(in_bypassing_child(|| generation() != before && gate::enter().is_err()));
        assert!(in_bypassing_child(|| in_child(|| gate::enter().is_err())));
    }
}
