//! asyncio's event loop, which polls our sockets: no call has to cross to another thread and back.

use std::io::Write;
use std::mem;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use nix::unistd::{Pid, getpid};
use stanchion::internals::Host;

use crate::bridge::locked;

/// What the loop is to do with a socket: a method of the package's `_Driver`, the socket's number, and its file or a flag.
pub(crate) type Wish = (&'static str, u64, RawFd);

/// What the package has the loop do for us, once a turn is over. No code of Python's runs inside a turn: where the
/// interpreter goes down, a thread of Python's ends as soon as it asks for the GIL, and if it does that with frames of ours
/// below it, the whole process aborts.
pub(crate) struct AioLoop {
    wishes: Mutex<Vec<Wish>>,
    bell: Arc<UnixStream>,
    process: Pid,
}

impl AioLoop {
    pub(crate) fn new(bell: Arc<UnixStream>) -> Self {
        Self { wishes: Mutex::default(), bell, process: getpid() }
    }

    /// What came together since the last look.
    pub(crate) fn wishes(&self) -> Vec<Wish> {
        mem::take(&mut *locked(&self.wishes))
    }

    fn wish(&self, wish: Wish) -> bool {
        // A forked child has a copy of the parent's loop, and must not take anything off it.
        let is_ours = self.process == getpid();
        if is_ours {
            locked(&self.wishes).push(wish);
        }
        is_ours
    }
}

impl Host for AioLoop {
    fn watch(&self, socket: RawFd, number: u64) -> bool {
        self.wish(("watch", number, socket))
    }

    fn watch_writes(&self, number: u64, yes: bool) {
        self.wish(("watch_writes", number, yes.into()));
    }

    fn unwatch(&self, number: u64) {
        self.wish(("unwatch", number, 0));
    }

    fn wake(&self) {
        ring(&self.bell);
    }
}

pub(crate) fn ring(mut bell: &UnixStream) {
    // A full socket rings already.
    let _ = bell.write(&[1]);
}
