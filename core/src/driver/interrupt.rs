//! The interrupt check: a callback of the host language that runs while one of its threads waits, for its signal
//! handlers.

use std::cell::{Cell, RefCell};
use std::mem;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};

use crate::base::error::{Error, ErrorKind};
use crate::base::fork::{Generation, generation};
use crate::base::sigmask::spawn_quietly;
use crate::session::channel::INTERRUPT_CHECK;

/// The host's callback, on its own thread; it may end the wait.
type Turn = fn() -> ControlFlow<()>;

thread_local! {
    static AROUND: Cell<Option<Turn>> = const { Cell::new(None) };
    static HELPER: RefCell<Option<Helper>> = const { RefCell::new(None) };
}

/// Runs `call`; while a blocking call in it waits, for another holder, a task, or the store, `interrupt` runs
/// at least every 50 ms on this thread and may end the wait: the call then fails with `Cancelled`, and what
/// it left behind is cleaned up. For hosts that have to run signal handlers.
///
/// If the store stops answering after quick replies, the first turn comes after 100 ms. A reply that has begun to
/// arrive is read to its end first.
///
/// ```
/// # fn main() -> Result<(), stanchion::Error> {
/// use std::ops::ControlFlow;
/// use stanchion::{ErrorKind, LockOptions, blocking};
///
/// let lock = blocking::Client::open("memory:")?.lock("report");
/// let lease = lock.acquire(LockOptions::new())?;
/// let give_up = || ControlFlow::Break(());
/// let second = blocking::with_interrupt_check(give_up, || lock.acquire(LockOptions::new()));
/// assert_eq!(second.unwrap_err().kind(), ErrorKind::Cancelled);
/// # Ok(())
/// # }
/// ```
pub fn with_interrupt_check<T>(interrupt: fn() -> ControlFlow<()>, call: impl FnOnce() -> T) -> T {
    struct Restore(Option<Turn>);
    impl Drop for Restore {
        fn drop(&mut self) {
            AROUND.set(self.0);
        }
    }
    let _restore = Restore(AROUND.replace(Some(interrupt)));
    call()
}

/// The interrupt check of the [`with_interrupt_check`] that this runs in.
pub(crate) fn around() -> Option<Turn> {
    AROUND.get()
}

/// Runs something that is not a machine, with the callback of [`with_interrupt_check`] if there is one.
pub(crate) fn attend_call<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let Some(mut turn) = around() else { return run() };
    match attend(&mut turn, run) {
        ControlFlow::Continue(Ok(result)) => result,
        ControlFlow::Continue(Err(problem)) => Err(Error::new(ErrorKind::Internal, problem.message())),
        ControlFlow::Break(()) => Err(Error::new(ErrorKind::Cancelled, "the call was interrupted")),
    }
}

/// Why something was not run to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unattended {
    NoThread,
    CutShort,
}

impl Unattended {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::NoThread => "no thread could be started",
            Self::CutShort => "the request was cut short",
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread that makes requests for one thread of the host, so that each costs no new one.
struct Helper {
    generation: Generation,
    /// Emptied by `drop` only.
    jobs: Option<Sender<Job>>,
}

impl Helper {
    fn start() -> Option<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let run = move || inbox.into_iter().for_each(|job| job());
        spawn_quietly("stanchion-call", run).ok()?;
        Some(Self { generation: generation(), jobs: Some(jobs) })
    }

    fn is_inherited(&self) -> bool {
        self.generation != generation()
    }

    /// Whether there is still somebody to do it.
    fn does(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

/// A helper of the parent process does not run in a forked child, and its channel may be inherited locked: to drop that, also
/// at the end of the thread, could wait for ever.
impl Drop for Helper {
    fn drop(&mut self) {
        if self.is_inherited() {
            mem::forget(self.jobs.take());
        }
    }
}

/// Runs something that cannot be interrupted while the host gets its turns: on another thread, since the
/// client crate cannot go on reading on a connection after a read that timed out.
pub(crate) fn attend<T: Send + 'static>(
    interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    run: impl FnOnce() -> T + Send + 'static,
) -> ControlFlow<(), Result<T, Unattended>> {
    let (send, receive) = mpsc::channel();
    let job = Box::new(move || {
        // Nobody listens any more if the host ended the wait.
        let _ = send.send(run());
    });
    // An interrupt check may make calls of its own, so the helper is not in its place meanwhile.
    let helper = HELPER.try_with(RefCell::take).ok().flatten().filter(|helper| !helper.is_inherited());
    let Some(helper) = helper.or_else(Helper::start) else {
        return ControlFlow::Continue(Err(Unattended::NoThread));
    };
    if !helper.does(job) {
        return ControlFlow::Continue(Err(Unattended::CutShort));
    }
    loop {
        match receive.recv_timeout(INTERRUPT_CHECK) {
            Ok(result) => {
                let _ = HELPER.try_with(|place| place.replace(Some(helper)));
                return ControlFlow::Continue(Ok(result));
            }
            // Dropped while at work, the helper ends after it.
            Err(RecvTimeoutError::Timeout) => {
                if interrupt().is_break() {
                    return ControlFlow::Break(());
                }
            }
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Continue(Err(Unattended::CutShort)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::base::fork::testing::in_child;

    fn go_on() -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn attended<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        match attend(&mut go_on, run) {
            ControlFlow::Continue(Ok(value)) => value,
            _ => panic!("not attended"),
        }
    }

    #[test]
    fn calls_share_a_helper_but_not_the_callers_thread() {
        let first = attended(|| std::thread::current().id());
        assert_ne!(first, std::thread::current().id());
        assert_eq!(first, attended(|| std::thread::current().id()));
    }

    #[test]
    fn an_interrupted_call_is_left_behind() {
        let begin = Instant::now();
        let ended = attend(&mut || ControlFlow::Break(()), || std::thread::sleep(Duration::from_secs(2)));
        assert!(ended.is_break() && begin.elapsed() < Duration::from_secs(1));
        assert_eq!(attended(|| 7), 7);
    }

    #[test]
    fn a_panic_is_told_and_the_next_call_works() {
        let ended = attend::<()>(&mut go_on, || panic!("on purpose"));
        assert!(matches!(ended, ControlFlow::Continue(Err(Unattended::CutShort))));
        assert_eq!(attended(|| 7), 7);
    }

    #[test]
    fn a_forked_child_starts_its_own_helper() {
        assert_eq!(attended(|| 1), 1);
        assert!(in_child(|| attended(|| 2) == 2));
        assert_eq!(attended(|| 3), 3);
    }

    /// Its thread may have been at the channel when the process forked, and does not exist in the child.
    #[test]
    fn a_forked_child_does_not_touch_its_parents_channel() {
        let (jobs, inbox) = mpsc::channel();
        let helper = Helper { generation: generation(), jobs: Some(jobs) };
        let (mut helper, inbox) = (Some(helper), &inbox);
        assert!(in_child(move || {
            drop(helper.take());
            matches!(inbox.try_recv(), Err(mpsc::TryRecvError::Empty))
        }));
    }

    #[test]
    fn the_turn_around_ends_with_the_call() {
        assert!(around().is_none());
        with_interrupt_check(go_on, || assert!(around().is_some()));
        assert!(around().is_none());
    }
}
