//! The native half of the Python package: it converts arguments and results, and lets the core do the rest.
//!
//! Private: programs use the pure-Python package over it, which has the documentation.

mod aio_loop;
mod args;
mod bridge;
mod cached;
mod call;
mod claim;
mod client;
mod error;
mod faces;
mod flow;
mod lease;
mod limiter;
mod limits;
mod lock;
mod queue;
mod results;
mod runtime;
mod schedule;
mod task;
mod worker;

use std::ffi::OsString;
use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// For the test that a panic becomes an exception.
#[pyfunction]
#[allow(clippy::panic, reason = "it is there to panic")]
fn _panic(py: Python<'_>) -> PyResult<()> {
    call::call(py, || panic!("on purpose"))
}

/// The same on the runtime of the asyncio face.
#[pyfunction]
#[allow(clippy::panic, reason = "it is there to panic")]
fn _panic_aio(bridge: &Bound<'_, bridge::Bridge>, future: Py<PyAny>) -> PyResult<u64> {
    let panics = || -> Result<(), stanchion::Error> { panic!("on purpose") };
    bridge.get().start(future, async move { panics() })
}

/// The command line; the exit code. It catches signals itself and needs no turn of the interpreter.
#[pyfunction]
fn cli(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    call::call(py, || Ok(stanchion_cli::main(arguments)))
}

/// Fails in any interpreter of this process but the first one that imported the module: exceptions and clients
/// are objects of that one.
fn check_interpreter() -> PyResult<()> {
    static FIRST: AtomicI64 = AtomicI64::new(-1);
    // SAFETY: the module is being initialised, so an interpreter is attached to this thread.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match FIRST.compare_exchange(-1, id, Ordering::SeqCst, Ordering::SeqCst) {
        Err(first) if first != id => {
            Err(PyImportError::new_err("stanchion does not support subinterpreters"))
        }
        _ => Ok(()),
    }
}

#[pymodule(gil_used = false)]
fn _stanchion(module: &Bound<'_, PyModule>) -> PyResult<()> {
    check_interpreter()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_PAYLOAD", stanchion::MAX_PAYLOAD)?;
    module.add_function(wrap_pyfunction!(_panic, module)?)?;
    module.add_function(wrap_pyfunction!(_panic_aio, module)?)?;
    module.add_function(wrap_pyfunction!(cli, module)?)?;
    module.add_function(wrap_pyfunction!(client::connect, module)?)?;
    module.add_function(wrap_pyfunction!(client::connect_aio, module)?)?;
    module.add_class::<bridge::Bridge>()?;
    module.add_class::<client::Clock>()?;
    module.add_class::<client::Settings>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<client::AioClient>()?;
    module.add_class::<lock::LockOptions>()?;
    module.add_class::<lock::Lock>()?;
    module.add_class::<lock::AioLock>()?;
    module.add_class::<limiter::Limiter>()?;
    module.add_class::<limiter::AioLimiter>()?;
    module.add_class::<cached::CachedOptions>()?;
    module.add_class::<cached::Ticket>()?;
    module.add_class::<cached::AioTicket>()?;
    module.add_class::<lease::Lease>()?;
    module.add_class::<lease::AioLease>()?;
    module.add_class::<task::Task>()?;
    module.add_class::<task::ClaimOptions>()?;
    module.add_class::<task::DeadTasks>()?;
    module.add_class::<limits::QueueConfig>()?;
    module.add_class::<flow::Node>()?;
    module.add_class::<schedule::Schedule>()?;
    module.add_class::<queue::Queue>()?;
    module.add_class::<queue::AioQueue>()?;
    module.add_class::<queue::Queues>()?;
    module.add_class::<queue::AioQueues>()?;
    module.add_class::<claim::Claim>()?;
    module.add_class::<claim::AioClaim>()?;
    module.add_class::<claim::Verdict>()?;
    module.add_class::<worker::Worker>()?;
    module.add_class::<worker::AioWorker>()?;
    Ok(())
}
