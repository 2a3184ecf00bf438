//! Code of the program's that runs on threads of ours: subscribers of the trace, hooks, wakers. If it panics, the thread
//! goes on: others rely on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use prometheus::IntCounter;

/// Panics that were contained in this process.
static PANICS: LazyLock<Option<IntCounter>> = LazyLock::new(|| {
    let help = "Panics of the program's own code on threads of the library: subscribers, hooks, wakers.";
    IntCounter::new("stanchion_contained_panics_total", help).ok()
});

/// The number of those panics, as every client of the process tells it.
pub(crate) fn panics() -> Option<IntCounter> {
    PANICS.clone()
}

/// Runs this; `None` if it panicked. That is counted and said; the panic hook has told where it happened.
pub(crate) fn contained<T>(what: &'static str, run: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    if result.is_none() {
        if let Some(panics) = &*PANICS {
            panics.inc();
        }
        // Whoever listens may be what panicked.
        let say = || tracing::error!(target: "stanchion", what, "a panic was contained");
        let _ = catch_unwind(AssertUnwindSafe(say));
    }
    result
}
