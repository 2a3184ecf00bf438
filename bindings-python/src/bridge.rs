//! From futures of the core to futures of asyncio.
//!
//! The calls are worked on by the event loop's own thread, in turns that it gives us ([`AioLoop`]), or else by a thread of
//! ours. What another thread puts down it announces by a bell, a socket that the event loop listens to. Nothing here gives
//! out results: a turn hands them back, many at a time, with what the loop is to do for our sockets.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io::Read;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::future::{AbortHandle, abortable};
use nix::unistd::{Pid, getpid};
use pyo3::prelude::*;
use stanchion::Error;
use stanchion::internals::{Host, HostLoop};

use crate::aio_loop::{AioLoop, Wish, ring};
use crate::error::{panicked, raise};
use crate::results::IntoPython;
use crate::runtime::runtime;

/// So many results are given out in a turn of the loop: what else it has to do comes in between.
const AT_ONCE: usize = 256;

/// Makes the Python object of a result, on the loop's thread.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// What a turn leaves to do: wishes, and futures that get a result (true) or an exception.
type Work = (Vec<Wish>, Vec<(Py<PyAny>, bool, Py<PyAny>)>);

/// What one event loop waits for.
#[pyclass(frozen, weakref)]
pub(crate) struct Bridge {
    shared: Arc<Shared>,
    /// What works on the calls, if the event loop does.
    host: Option<(Arc<HostLoop>, Arc<AioLoop>)>,
    listener: UnixStream,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next: AtomicU64,
    process: Pid,
}

struct Waiting {
    future: Py<PyAny>,
    call: AbortHandle,
}

struct Shared {
    done: Mutex<VecDeque<(u64, Outcome)>>,
    bell: Arc<UnixStream>,
}

impl Shared {
    fn finish(&self, id: u64, outcome: Outcome) {
        let mut done = locked(&self.done);
        let was_empty = done.is_empty();
        done.push_back((id, outcome));
        drop(done);
        // A turn is followed by a look.
        if was_empty && !HostLoop::is_in_turn() {
            ring(&self.bell);
        }
    }

    /// Some of what there is. Rings again if that is not all.
    fn some(&self) -> Vec<(u64, Outcome)> {
        let mut done = locked(&self.done);
        let count = done.len().min(AT_ONCE);
        let some = done.drain(..count).collect();
        let is_all = done.is_empty();
        drop(done);
        if !is_all {
            ring(&self.bell);
        }
        some
    }
}

impl Bridge {
    /// Starts a future of the core in the next turn; the asyncio future gets its result. Answers a number to cancel it with.
    pub(crate) fn start<T: IntoPython + Send + 'static>(
        &self,
        future: Py<PyAny>,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PyResult<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        let mut work = Box::pin(work);
        let caught =
            poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
                Err(panic) => Poll::Ready(Err(panic)),
            });
        let (run, call) = abortable(async move {
            let outcome: Outcome = match caught.await {
                Ok(Ok(value)) => Box::new(move |py| value.into_python(py)),
                Ok(Err(error)) => Box::new(move |py| Err(raise(py, &error))),
                Err(panic) => Box::new(move |py| Err(panicked(py, &*panic))),
            };
            shared.finish(id, outcome);
        });
        let run = async {
            let _ended = run.await;
        };
        // Timers are the runtime's in any case.
        let runtime = runtime()?;
        locked(&self.waiting).insert(id, Waiting { future, call });
        match &self.host {
            Some((host, _)) => host.spawn(run),
            None => drop(runtime.spawn(run)),
        }
        Ok(id)
    }

    fn work(&self) {
        let (Some((host, _)), Ok(runtime)) = (&self.host, runtime()) else { return };
        let _context = runtime.enter();
        if host.turn() {
            ring(&self.shared.bell);
        }
    }

    fn wishes(&self) -> Vec<Wish> {
        self.host.as_ref().map(|(_, aio)| aio.wishes()).unwrap_or_default()
    }
}

#[pymethods]
impl Bridge {
    /// For a loop that works on the calls itself, or for one that only listens.
    #[new]
    fn new(works: bool) -> PyResult<Self> {
        let (bell, listener) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        listener.set_nonblocking(true)?;
        let bell = Arc::new(bell);
        let host = works.then(|| {
            let aio = Arc::new(AioLoop::new(Arc::clone(&bell)));
            (HostLoop::new(Arc::clone(&aio) as Arc<dyn Host>), aio)
        });
        Ok(Self {
            shared: Arc::new(Shared { done: Mutex::default(), bell }),
            host,
            listener,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            process: getpid(),
        })
    }

    /// What the loop listens to.
    fn fileno(&self) -> i32 {
        self.listener.as_raw_fd()
    }

    /// The bell was rung.
    fn collect(&self, py: Python<'_>) -> PyResult<Work> {
        let mut bytes = [0; 64];
        while matches!((&self.listener).read(&mut bytes), Ok(count) if count == bytes.len()) {}
        self.turn(py)
    }

    /// A socket is ready, for writes or for reads.
    fn ready(&self, py: Python<'_>, socket: u64, writes: bool) -> PyResult<Work> {
        if let Some((host, _)) = &self.host {
            host.ready(socket, !writes, writes);
        }
        self.turn(py)
    }

    /// Works on the calls. Results are given to their futures by whoever called this.
    fn turn(&self, py: Python<'_>) -> PyResult<Work> {
        self.work();
        let mut results = Vec::new();
        for (id, outcome) in self.shared.some() {
            // What nobody waits for any more is dropped, and with it released.
            let Some(Waiting { future, .. }) = locked(&self.waiting).remove(&id) else { continue };
            if future.call_method0(py, "done")?.is_truthy(py)? {
                continue;
            }
            results.push(match outcome(py) {
                Ok(value) => (future, true, value),
                Err(error) => (future, false, error.into_value(py).into_any()),
            });
        }
        Ok((self.wishes(), results))
    }

    /// Gives up on a call. What it left behind is cleaned up.
    fn cancel(&self, id: u64) -> Vec<Wish> {
        let waiting = locked(&self.waiting).remove(&id);
        if let Some(Waiting { call, .. }) = waiting {
            call.abort();
            self.work();
            if !locked(&self.shared.done).is_empty() {
                ring(&self.shared.bell);
            }
        }
        self.wishes()
    }

    /// The loop is closed: gives up on all calls. Their futures hold the loop and all that waits for them, so that nothing of it
    /// would go away by itself.
    fn close(&self) -> Vec<Wish> {
        let waiting = mem::take(&mut *locked(&self.waiting));
        let inherited = self.process != getpid();
        if !inherited {
            waiting.values().for_each(|one| one.call.abort());
        }
        if let Some((host, _)) = &self.host {
            // In a forked child they are the parent's, and what they hold may have been inherited locked.
            if inherited { mem::forget(Arc::clone(host)) } else { host.end() }
        }
        let done = mem::take(&mut *locked(&self.shared.done));
        drop((waiting, done));
        self.wishes()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Its event loop is gone, and has nothing left to do.
        let _wishes = self.close();
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
