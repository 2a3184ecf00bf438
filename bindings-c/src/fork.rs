//! Forks: the table of handles is held still while the process is copied, so that no child inherits its lock from
//! a thread that it does not have.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::handle::{Held, hold};

static INSTALLED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Registers the handlers, once. Called before the table is used for the first time.
pub(crate) fn install() {
    if INSTALLED.load(Ordering::Acquire) || INSTALLED.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: the handlers are functions of this library without arguments; they never unwind.
    let failed = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    if failed != 0 {
        // Out of memory. The next call tries again.
        INSTALLED.store(false, Ordering::Release);
    }
}

extern "C" fn before() {
    // Nobody who has the lock of the table waits for anything, so this does not wait long.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _ = HELD.try_with(|held| held.replace(Some(hold())));
    }));
}

extern "C" fn after() {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _ = HELD.try_with(RefCell::take);
    }));
}
