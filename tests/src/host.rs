//! An event loop as Node and asyncio have one, made of poll(2): the async face can be driven by it.

use std::collections::HashMap;
use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stanchion::internals::{Host, HostLoop};

/// One for each thread.
struct PollLoop {
    watched: Mutex<HashMap<u64, (RawFd, PollFlags)>>,
    bell: UnixStream,
    listener: UnixStream,
}

thread_local! {
    static LOOP: (Arc<HostLoop>, Arc<PollLoop>) = {
        let host = Arc::new(PollLoop::new());
        (HostLoop::new(Arc::clone(&host) as Arc<dyn Host>), host)
    };
}

impl PollLoop {
    fn new() -> Self {
        let (bell, listener) = UnixStream::pair().expect("a pair of sockets");
        for socket in [&bell, &listener] {
            socket.set_nonblocking(true).expect("a socket that does not block");
        }
        Self { watched: Mutex::default(), bell, listener }
    }

    /// Waits until a socket is ready or the bell rings; which sockets are, for reads and for writes.
    fn wait(&self) -> Vec<(u64, bool, bool)> {
        let watched: Vec<_> =
            self.watched.lock().expect("a list").iter().map(|(number, what)| (*number, *what)).collect();
        let mut files = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        files.extend(watched.iter().map(|(_, (file, flags))| {
            // SAFETY: whoever closes it takes it off the list first, on this very thread.
            PollFd::new(unsafe { BorrowedFd::borrow_raw(*file) }, *flags)
        }));
        // A signal, too, is a reason to look.
        let _ = poll(&mut files, PollTimeout::NONE);
        let mut bytes = [0; 64];
        while matches!((&self.listener).read(&mut bytes), Ok(count) if count == bytes.len()) {}
        let found = files[1..].iter().map(|file| file.revents().unwrap_or(PollFlags::empty()));
        watched
            .iter()
            .zip(found)
            .map(|((number, _), found)| {
                let failed = found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL);
                let reads = failed || found.contains(PollFlags::POLLIN);
                (*number, reads, failed || found.contains(PollFlags::POLLOUT))
            })
            .collect()
    }
}

impl Host for PollLoop {
    fn watch(&self, socket: RawFd, number: u64) -> bool {
        self.watched.lock().expect("a list").insert(number, (socket, PollFlags::POLLIN));
        true
    }

    fn watch_writes(&self, number: u64, yes: bool) {
        if let Some((_, flags)) = self.watched.lock().expect("a list").get_mut(&number) {
            flags.set(PollFlags::POLLOUT, yes);
        }
    }

    fn unwatch(&self, number: u64) {
        self.watched.lock().expect("a list").remove(&number);
    }

    fn wake(&self) {
        // A full socket rings already.
        let _ = (&self.bell).write(&[1]);
    }
}

/// How many sockets the loop of the calling thread watches.
pub fn watched() -> usize {
    LOOP.with(|(_, host)| host.watched.lock().expect("a list").len())
}

/// Runs a future as a host's event loop would, on the calling thread; timers are those of the runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    LOOP.with(|(turns, host)| {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(result) = turns.turn_for(future.as_mut()) {
                return result;
            }
            for (socket, reads, writes) in host.wait() {
                turns.ready(socket, reads, writes);
            }
        }
    })
}
