//! The tokio runtime: our own, so that no other addon's settings concern it, and none is there before it is used.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Handle};

static RUNTIME: OnceLock<Handle> = OnceLock::new();
/// Held while the runtime is made.
static MAKING: Mutex<()> = Mutex::new(());

/// The process's runtime, made on first use. It is never dropped: it ends with the process.
pub(crate) fn runtime() -> io::Result<&'static Handle> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let started = start()?;
    Ok(RUNTIME.get_or_init(|| started))
}

/// One thread. New calls come before everything else (the interval of one): so all calls of one turn of the event
/// loop are made before the connection writes, once for all of them.
fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().global_queue_interval(1).enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("stanchion-node".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}
