//! The event loop of a host program (Node's, asyncio's) as the executor of our calls: it polls our sockets and tasks on
//! its own thread, so that a call crosses to no other thread and back.
//!
//! The host calls [`HostLoop::turn`] whenever a socket is ready or [`Host::wake`] was called. All that the tasks of one
//! turn send goes out in one write.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::mem;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, Stream};
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::base::contained::contained;
use crate::base::wake::locked;

/// What the host's event loop does for us.
pub trait Host: Send + Sync {
    /// Begins to watch a socket for reads, under a number; on the loop's thread. False if it cannot.
    fn watch(&self, socket: RawFd, number: u64) -> bool;
    /// Whether to watch it for writes, too; on the loop's thread.
    fn watch_writes(&self, number: u64, yes: bool);
    /// Ends that, before the socket is closed; on the loop's thread.
    fn unwatch(&self, number: u64);
    /// Has [`HostLoop::turn`] called soon; from any thread.
    fn wake(&self);
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The tasks that one event loop works on, on its thread.
pub struct HostLoop {
    id: u64,
    host: Arc<dyn Host>,
    tasks: Mutex<FuturesUnordered<Spawned>>,
    /// Spawned since the tasks were polled last.
    fresh: Mutex<VecDeque<Spawned>>,
    sockets: Mutex<Vec<(u64, Weak<Interest>)>>,
    alarm: Arc<Alarm>,
}

/// Who waits for a socket.
#[derive(Default)]
struct Interest {
    /// The loop has seen that there is something to read, and it was not all read yet.
    readable: AtomicBool,
    /// It is read to its end, or until an error comes.
    failed: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

/// Wakes the loop, unless it is in its turn: then it goes on by itself.
struct Alarm {
    host: Arc<dyn Host>,
    state: AtomicU8,
}

/// States of an alarm.
const QUIET: u8 = 0;
const RUNG: u8 = 1;
const IN_TURN: u8 = 2;
/// In its turn, and something became ready meanwhile.
const GOES_ON: u8 = 3;

/// So many new tasks begin before those that are ready go on.
const FRESH: usize = 64;
/// A turn that has taken longer goes on in the next one: what else the host has to do comes in between.
const TURN_MOST: Duration = Duration::from_millis(1);

/// So many times at most whoever catches up lets the others go first: one that is to read a socket may not want to.
const CATCH_UP_MOST: usize = 200;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The loop in whose turn this thread is.
    static CURRENT: RefCell<Option<Arc<HostLoop>>> = const { RefCell::new(None) };
    /// When that turn began.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A task whose panics end nothing else, and that leaves the rest of a long turn to the host. It begins in any case, since
/// tasks begin in their order.
struct Spawned {
    has_begun: bool,
    /// `None` once it has ended.
    task: Option<Task>,
}

impl Future for Spawned {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if mem::replace(&mut self.has_begun, true) && Turn::is_long() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(task) = &mut self.task else { return Poll::Ready(()) };
        let polled = contained("event loop", || task.as_mut().poll(context));
        if polled != Some(Poll::Pending) {
            contained("event loop", || self.task = None);
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let next = |state| match state {
            QUIET => Some(RUNG),
            IN_TURN => Some(GOES_ON),
            _ => None,
        };
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(QUIET) {
            self.host.wake();
        }
    }
}

impl HostLoop {
    /// For the calling thread, whose event loop `host` is.
    pub fn new(host: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            alarm: Arc::new(Alarm { host: Arc::clone(&host), state: AtomicU8::new(QUIET) }),
            host,
            tasks: Mutex::default(),
            fresh: Mutex::default(),
            sockets: Mutex::default(),
        })
    }

    /// Has a task polled in the next turn. Its panics end nothing else.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        locked(&self.fresh).push_back(Spawned { has_begun: false, task: Some(Box::pin(task)) });
    }

    /// A socket has failed, which some loops say once only: what is wrong shows when it is read.
    pub fn failed(&self, number: u64) {
        let sockets = locked(&self.sockets);
        let found = sockets.iter().find(|(socket, _)| *socket == number);
        if let Some(interest) = found.and_then(|(_, interest)| interest.upgrade()) {
            interest.failed.store(true, Ordering::Release);
        }
        drop(sockets);
        self.ready(number, true, true);
    }

    /// A socket is ready: whoever waits for it goes on in the next turn, which the caller has to take.
    pub fn ready(&self, number: u64, reads: bool, writes: bool) {
        // So the host is not woken for it.
        let _ = self.alarm.state.compare_exchange(QUIET, RUNG, Ordering::AcqRel, Ordering::Acquire);
        let sockets = locked(&self.sockets);
        let found = sockets.iter().find(|(socket, _)| *socket == number);
        let Some(interest) = found.and_then(|(_, interest)| interest.upgrade()) else { return };
        if reads {
            interest.readable.store(true, Ordering::Release);
            interest.reader.wake();
        }
        if writes {
            interest.writer.wake();
        }
    }

    /// Polls what can go on. True if there is more to do: another turn is to come soon.
    pub fn turn(self: &Arc<Self>) -> bool {
        self.turn_with(|_| {})
    }

    /// As [`HostLoop::turn`]; polls a future, too, of a host that waits for just this one.
    pub fn turn_for<F: Future>(self: &Arc<Self>, mut future: Pin<&mut F>) -> Poll<F::Output> {
        let mut result = Poll::Pending;
        let goes_on = self.turn_with(|context| {
            if result.is_pending() {
                result = future.as_mut().poll(context);
            }
        });
        if goes_on {
            self.host.wake();
        }
        result
    }

    fn turn_with(self: &Arc<Self>, mut also: impl FnMut(&mut Context<'_>)) -> bool {
        let _turn = Turn::begin(self);
        let waker = Waker::from(Arc::clone(&self.alarm));
        let mut context = Context::from_waker(&waker);
        loop {
            self.alarm.state.store(IN_TURN, Ordering::Release);
            also(&mut context);
            self.poll(&mut context);
            let goes_on = self.alarm.state.swap(QUIET, Ordering::AcqRel) == GOES_ON;
            if !goes_on && locked(&self.fresh).is_empty() {
                return false;
            }
            if Turn::is_long() {
                return true;
            }
        }
    }

    fn poll(&self, context: &mut Context<'_>) {
        let mut tasks = match self.tasks.try_lock() {
            Ok(tasks) => tasks,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A turn in a turn.
            Err(TryLockError::WouldBlock) => return,
        };
        let mut fresh = locked(&self.fresh);
        let count = fresh.len().min(FRESH);
        tasks.extend(fresh.drain(..count));
        drop(fresh);
        // Those that are ready when the turn is long ask for the next one.
        while let Poll::Ready(Some(())) = pin!(&mut *tasks).poll_next(context) {}
    }

    /// Drops all tasks, and with them their sockets: the event loop ends.
    pub fn end(&self) {
        let fresh = mem::take(&mut *locked(&self.fresh));
        let tasks = match self.tasks.try_lock() {
            Ok(mut tasks) => mem::take(&mut *tasks),
            Err(TryLockError::Poisoned(poisoned)) => mem::take(&mut *poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => return,
        };
        drop((fresh, tasks));
    }

    /// Whether this thread is in a turn.
    pub fn is_in_turn() -> bool {
        Self::current_id().is_some()
    }

    /// Which loop this thread is in a turn of, if it is in one.
    pub(crate) fn current_id() -> Option<u64> {
        Self::current().map(|current| current.id)
    }

    fn current() -> Option<Arc<Self>> {
        // A thread that ends drops what may ask for it.
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Lets all that has arrived be read before what waits for it goes on: the loop may have stood still.
    pub(crate) async fn catch_up() {
        let Some(current) = Self::current() else { return };
        let sockets: Vec<_> =
            locked(&current.sockets).iter().map(|(_, socket)| Weak::clone(socket)).collect();
        drop(current);
        for socket in sockets.iter().filter_map(Weak::upgrade) {
            socket.readable.store(true, Ordering::Release);
            socket.reader.wake();
        }
        let mut waits = 0..CATCH_UP_MOST;
        poll_fn(|context| {
            let mut open = sockets.iter().filter_map(Weak::upgrade);
            // Whoever reads it may have to wait for the next turn.
            if open.any(|socket| socket.readable.load(Ordering::Acquire)) && waits.next().is_some() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Spawns a task beside the one that is being polled.
    pub(crate) fn spawn_beside(task: impl Future<Output = ()> + Send + 'static) {
        if let Some(current) = Self::current() {
            current.spawn(task);
        }
    }
}

/// This thread is in a turn of a loop; until it ends, also by a panic.
struct Turn<'a> {
    alarm: &'a Alarm,
    outer: (Option<Arc<HostLoop>>, Option<Instant>),
}

impl<'a> Turn<'a> {
    fn begin(of: &'a Arc<HostLoop>) -> Self {
        let outer = (CURRENT.replace(Some(Arc::clone(of))), BEGAN.replace(Some(Instant::now())));
        Self { alarm: &of.alarm, outer }
    }

    fn is_long() -> bool {
        BEGAN.get().is_some_and(|began| began.elapsed() > TURN_MOST)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Only a panic leaves it in its turn.
        let next = |state| matches!(state, IN_TURN | GOES_ON).then_some(QUIET);
        let left = self.alarm.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        let (outer, began) = &mut self.outer;
        CURRENT.set(outer.take());
        BEGAN.set(began.take());
        if left == Ok(GOES_ON) {
            self.alarm.host.wake();
        }
    }
}

/// A socket of either kind.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_nonblocking(true),
            Self::Unix(socket) => socket.set_nonblocking(true),
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).read(buffer),
            Self::Unix(socket) => (&*socket).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).write(bytes),
            Self::Unix(socket) => (&*socket).write(bytes),
        }
    }
}

/// A connected socket that the current loop watches.
pub(crate) struct HostStream {
    socket: Socket,
    number: u64,
    home: Arc<dyn Host>,
    interest: Arc<Interest>,
    watches_writes: bool,
}

impl HostStream {
    /// In a turn of the loop that is to watch it.
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking()?;
        let number = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let interest = Arc::<Interest>::default();
        let current = HostLoop::current().filter(|current| current.host.watch(socket.fd(), number));
        let current = current.ok_or_else(|| io::Error::other("the event loop cannot watch the socket"))?;
        let mut sockets = locked(&current.sockets);
        sockets.retain(|(_, interest)| interest.strong_count() > 0);
        sockets.push((number, Arc::downgrade(&interest)));
        drop(sockets);
        let home = Arc::clone(&current.host);
        Ok(Self { socket, number, home, interest, watches_writes: false })
    }

    fn watch_writes(&mut self, yes: bool) {
        if self.watches_writes != yes {
            self.watches_writes = yes;
            self.home.watch_writes(self.number, yes);
        }
    }
}

impl AsyncRead for HostStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Before the look: what comes after it is not missed.
        self.interest.reader.register(context.waker());
        if !self.interest.readable.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let room = buffer.initialize_unfilled();
        let size = room.len();
        let result = uninterrupted(|| self.socket.read(room));
        // The loop says again that there is more.
        let more =
            self.interest.failed.load(Ordering::Acquire) || matches!(result, Ok(count) if count == size);
        self.interest.readable.store(more, Ordering::Release);
        match result {
            Ok(count) => {
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for HostStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = uninterrupted(|| self.socket.write(bytes));
        let is_full = matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        if is_full {
            self.interest.writer.register(context.waker());
        }
        self.watch_writes(is_full);
        if is_full { Poll::Pending } else { Poll::Ready(result) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        self.home.unwatch(self.number);
    }
}

fn uninterrupted<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
