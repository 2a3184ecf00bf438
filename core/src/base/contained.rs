//! Runs callbacks of the program (trace subscribers, hooks, wakers) on threads of the library. A panic in one is caught,
//! and the thread goes on: others rely on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use prometheus::IntCounter;

/// Panics that were contained in this process.
static PANICS: LazyLock<Option<IntCounter>> = LazyLock::new(|| {
    let help = "Panics of the program's own code on threads of the library: subscribers, hooks, wakers.";
    IntCounter::new("stanchion_contained_panics_total", help).ok()
});

/// The number of those panics, which every client of the process reports in its metrics.
pub(crate) fn panics() -> Option<IntCounter> {
    PANICS.clone()
}

/// Runs this; `None` if it panicked. The panic is counted and traced; the panic hook has printed where it happened.
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
