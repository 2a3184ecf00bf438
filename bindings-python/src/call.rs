//! The one way from Python into a blocking call of the core.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use stanchion::Error;
use stanchion::blocking::with_interrupt_check;

use crate::error::{panicked, raise};

thread_local! {
    /// What a signal handler raised while a call was waiting.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs a call of the core without the GIL. Signal handlers run meanwhile, and what they raise ends the call.
pub(crate) fn call<T: Send>(py: Python<'_>, run: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let result = py.detach(|| {
        catch_unwind(AssertUnwindSafe(
            || if runs_handlers() { with_interrupt_check(turn, run) } else { run() },
        ))
    });
    if let Some(raised) = RAISED.with_borrow_mut(Option::take) {
        return Err(raised);
    }
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(raise(py, &error)),
        Err(panic) => Err(panicked(py, &*panic)),
    }
}

/// Lets Python run its signal handlers.
#[allow(clippy::redundant_closure_for_method_calls, reason = "the method itself is not general enough")]
pub(crate) fn turn() -> ControlFlow<()> {
    if !runs_handlers() {
        return ControlFlow::Continue(());
    }
    in_python(|py| py.check_signals())
}

/// Runs something of Python's while a call waits; what it raises ends the call.
pub(crate) fn in_python(run: impl FnOnce(Python<'_>) -> PyResult<()>) -> ControlFlow<()> {
    match Python::try_attach(run) {
        Some(Ok(())) => ControlFlow::Continue(()),
        Some(Err(raised)) => {
            RAISED.with_borrow_mut(|place| place.replace(raised));
            ControlFlow::Break(())
        }
        // The interpreter is going down.
        None => ControlFlow::Break(()),
    }
}

/// Python runs signal handlers on its main thread only; other threads need no turns.
fn runs_handlers() -> bool {
    #[cfg(target_os = "linux")]
    return nix::unistd::gettid() == nix::unistd::getpid();
    #[cfg(not(target_os = "linux"))]
    return true;
}
