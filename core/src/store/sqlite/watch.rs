//! Sleeping until somebody writes to the file, on systems that tell: inotify(7) on the write-ahead log.
//!
//! It tells of a write before the commit can be seen, and of those of this process, too. So it only wakes whoever
//! looks seldom, and what has changed is still found by looking.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// Hears the bell while its owner sleeps on the file.
#[derive(Debug)]
pub(super) struct Ear(EventFd);

impl Ear {
    pub(super) fn hear(&self) {
        let _ = self.0.write(1);
    }
}

#[derive(Debug)]
pub(super) struct Watch {
    inotify: Inotify,
    ear: Arc<Ear>,
}

impl Watch {
    /// One that is told of nothing yet. `None` if there can be no more: a user may have 128 on most systems.
    pub(super) fn open() -> Option<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let ear = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
        Some(Self { inotify, ear: Arc::new(Ear(ear)) })
    }

    /// What ends its sleep.
    pub(super) fn ear(&self) -> Weak<Ear> {
        Arc::downgrade(&self.ear)
    }

    /// Is told of the next write to a log, once; whether that can be had.
    pub(super) fn watch(&self, log: &Path) -> bool {
        let told = AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_ONESHOT;
        self.inotify.add_watch(log, told).is_ok()
    }

    /// Sleeps for `nap`, or until the log is written to or the bell rings; whether it is written to.
    pub(super) fn sleep(&self, nap: Duration) -> bool {
        let watched = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut both = [watched(self.inotify.as_fd()), watched(self.ear.0.as_fd())];
        // poll(2) would count in whole milliseconds.
        let _ = ppoll(&mut both, Some(nap.into()), None);
        let [is_written, is_rung] = both.map(|fd| fd.any().unwrap_or(false));
        if is_rung {
            let _ = self.ear.0.read();
        }
        is_written && self.inotify.read_events().is_ok()
    }
}
