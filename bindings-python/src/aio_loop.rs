//! asyncio's event loop, which polls our sockets: no call has to cross to another thread and back.

use std::io::Write;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::unistd::{Pid, getpid};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use stanchion::internals::Host;

/// What the package has the loop do for us.
pub(crate) struct AioLoop {
    /// Its `Sockets`.
    sockets: Py<PyAny>,
    bell: Arc<UnixStream>,
    process: Pid,
}

impl AioLoop {
    pub(crate) fn new(sockets: Py<PyAny>, bell: Arc<UnixStream>) -> Self {
        Self { sockets, bell, process: getpid() }
    }

    /// What cannot be done with a loop that is closed need not be done.
    fn call(&self, method: &str, arguments: impl for<'py> PyCallArgs<'py>) -> bool {
        // A forked child has a copy of the parent's loop, and must not take anything off it.
        if self.process != getpid() {
            return false;
        }
        Python::try_attach(|py| self.sockets.bind(py).call_method1(method, arguments).is_ok())
            .unwrap_or(false)
    }
}

impl Host for AioLoop {
    fn watch(&self, socket: RawFd, number: u64) -> bool {
        self.call("watch", (socket, number))
    }

    fn watch_writes(&self, number: u64, yes: bool) {
        self.call("watch_writes", (number, yes));
    }

    fn unwatch(&self, number: u64) {
        self.call("unwatch", (number,));
    }

    fn wake(&self) {
        ring(&self.bell);
    }
}

pub(crate) fn ring(mut bell: &UnixStream) {
    // A full socket rings already.
    let _ = bell.write(&[1]);
}
