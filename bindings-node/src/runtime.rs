//! The tokio runtime: our own, so that no other addon's settings concern it, and none is there before it is used.

use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: OnceLock<Runtime> = OnceLock::new();
/// Held while the runtime is made.
static MAKING: Mutex<()> = Mutex::new(());

/// The process's runtime, made on first use. It is never dropped: it ends with the process.
pub(crate) fn runtime() -> std::io::Result<&'static Handle> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle());
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if RUNTIME.get().is_none() {
        let made = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stanchion-node")
            .enable_all()
            .build()?;
        return Ok(RUNTIME.get_or_init(|| made).handle());
    }
    RUNTIME.get().map(Runtime::handle).ok_or_else(|| std::io::Error::other("there is no runtime"))
}
