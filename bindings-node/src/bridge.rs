//! From futures of the core to promises.
//!
//! Threads of ours never call JavaScript one by one: they put a result down and ring. The event loop then collects
//! many results at once, in one call of the facade, which settles the promises.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use napi::bindgen_prelude::{Array, FromNapiValue, Function, ToNapiValue};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, ValueType, sys};
use napi_derive::napi;
use nohash_hasher::IntMap;
use stanchion::Error;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::convert::converted;
use crate::error::{Failure, invalid};
use crate::lease;
use crate::runtime::{no_thread, runtime};

/// Rings in the event loop; by itself it does not keep the process alive.
type Bell = ThreadsafeFunction<(), (), (), Status, false, true>;

/// Makes the JavaScript value of a result, on the loop's thread.
type Value = Box<dyn FnOnce(sys::napi_env) -> napi::Result<sys::napi_value> + Send>;

/// A call, with what puts down its result.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What came of a call.
enum Note {
    Done(Value),
    Failed(Failure),
    /// Something happened; the call goes on.
    News(Value),
}

/// So many are collected at once at most: what else the event loop has to do comes in between.
const AT_ONCE: usize = 256;

/// How the facade tells them apart.
const DONE: u32 = 0;
const FAILED: u32 = 1;
const NEWS: u32 = 2;

thread_local! {
    /// The bridges of this thread, which are of one event loop. A number is passed sooner than an object.
    static BRIDGES: RefCell<Vec<Option<Rc<Inner>>>> = const { RefCell::new(Vec::new()) };
}

/// What one event loop waits for. The facade opens one for each thread of JavaScript, and has its number.
pub struct Bridge(Rc<Inner>);

converted!(Bridge, ValueType::Number);

impl FromNapiValue for Bridge {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller vouches for both.
        let number = unsafe { u32::from_napi_value(env, value)? };
        let found = BRIDGES.with_borrow(|bridges| bridges.get(number as usize).cloned().flatten());
        found.map(Self).ok_or_else(|| invalid("there is no such bridge"))
    }
}

/// The calls that are waited for; those that were started, with what ends them.
type Waiting = Mutex<IntMap<u32, Option<AbortHandle>>>;

struct Inner {
    shared: Arc<Shared>,
    /// Rings, once something calls for it.
    ringer: OnceCell<AbortHandle>,
    /// Calls of this turn of the event loop, which are started together.
    fresh: RefCell<Vec<(u32, Work)>>,
    waiting: Arc<Waiting>,
}

impl Inner {
    fn abandon(&self) {
        self.fresh.take();
        let waiting = mem::take(&mut *locked(&self.waiting));
        waiting.into_values().flatten().for_each(|task| task.abort());
        let notes = locked(&self.shared.notes).take();
        drop(notes);
    }
}

struct Shared {
    /// `None` once nobody collects any more.
    notes: Mutex<Option<VecDeque<(u32, Note)>>>,
    /// There are notes to be collected.
    call: Notify,
    bell: Bell,
}

impl Shared {
    fn put(&self, call: u32, note: Note) {
        let mut notes = locked(&self.notes);
        let Some(list) = &mut *notes else {
            drop(notes);
            // And with it released.
            return drop(note);
        };
        let was_empty = list.is_empty();
        list.push_back((call, note));
        drop(notes);
        if was_empty {
            self.call.notify_one();
        }
    }

    /// Some of what there is, and whether there is more.
    fn some(&self) -> (bool, Vec<(u32, Note)>) {
        let mut notes = locked(&self.notes);
        let Some(list) = &mut *notes else { return (false, Vec::new()) };
        let count = list.len().min(AT_ONCE);
        let some = list.drain(..count).collect();
        (!list.is_empty(), some)
    }

    /// Rings as a task of its own: it comes after those that are ready to put down a result, too, and so the loop
    /// wakes up once for all of them.
    async fn ring(self: Arc<Self>) {
        loop {
            self.call.notified().await;
            // Once the loop has ended there is nobody to hear it.
            let _ = self.bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}

/// Tells the facade of what happens while a call goes on.
#[derive(Clone)]
pub(crate) struct Messenger {
    call: u32,
    shared: Arc<Shared>,
}

impl Messenger {
    pub(crate) fn tell<T: ToNapiValue + Send + 'static>(&self, news: T) {
        self.shared.put(self.call, Note::News(value(news)));
    }
}

impl Bridge {
    /// Has a future of the core started at the next `flush`. The facade gets the result with this number.
    pub(crate) fn start<T: ToNapiValue + Send + 'static>(
        &self,
        call: u32,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> napi::Result<()> {
        let shared = Arc::clone(&self.0.shared);
        let mut work = Box::pin(work);
        let caught =
            poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
                Err(panic) => Poll::Ready(Err(panic)),
            });
        let run = async move {
            let note = match caught.await {
                Ok(Ok(result)) => Note::Done(value(result)),
                Ok(Err(error)) => Note::Failed(Failure::from(&error)),
                Err(panic) => Note::Failed(Failure::panicked(&*panic)),
            };
            shared.put(call, note);
        };
        locked(&self.0.waiting).insert(call, None);
        self.0.fresh.borrow_mut().push((call, Box::pin(run)));
        Ok(())
    }

    pub(crate) fn messenger(&self, call: u32) -> Messenger {
        Messenger { call, shared: Arc::clone(&self.0.shared) }
    }
}

/// Opens a bridge. `ring` is called in the event loop when there is something to collect.
#[napi]
pub fn open_bridge(env: &Env, ring: Function<'_, (), ()>) -> napi::Result<u32> {
    let bell = ring.build_threadsafe_function().weak::<true>().callee_handled::<false>().build()?;
    let inner = Inner {
        shared: Arc::new(Shared { notes: Mutex::new(Some(VecDeque::new())), call: Notify::new(), bell }),
        ringer: OnceCell::new(),
        fresh: RefCell::default(),
        waiting: Arc::default(),
    };
    let number = BRIDGES.with_borrow_mut(|bridges| {
        bridges.push(Some(Rc::new(inner)));
        bridges.len() - 1
    });
    env.add_env_cleanup_hook(number, close)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The environment ends: nobody waits any more.
fn close(number: usize) {
    let inner = BRIDGES.with_borrow_mut(|bridges| bridges.get_mut(number).and_then(Option::take));
    let Some(inner) = inner else { return };
    inner.abandon();
    if let Some(ringer) = inner.ringer.get() {
        ringer.abort();
    }
    lease::forget_all();
}

/// What there is: whether there is more, to be collected later; then for each note its kind, the number of its call, and the
/// value, one after the other.
#[napi(ts_return_type = "unknown[]")]
pub fn collect<'env>(env: &'env Env, bridge: Bridge) -> napi::Result<Array<'env>> {
    let Inner { shared, waiting, .. } = &*bridge.0;
    let (more, notes) = shared.some();
    let mut found = env.create_array(0)?;
    found.insert(more)?;
    for (call, note) in notes {
        let is_waited_for = match note {
            Note::News(_) => locked(waiting).contains_key(&call),
            _ => locked(waiting).remove(&call).is_some(),
        };
        // What nobody waits for any more is dropped, and with it released.
        if !is_waited_for {
            continue;
        }
        let (kind, made) = match note {
            Note::Done(value) => (DONE, value(env.raw())),
            Note::News(value) => (NEWS, value(env.raw())),
            Note::Failed(failure) => (FAILED, value(failure)(env.raw())),
        };
        found.insert(kind)?;
        found.insert(call)?;
        found.insert(made?)?;
    }
    Ok(found)
}

/// Starts the calls that were made since the last time.
#[napi]
pub fn flush(bridge: Bridge) -> napi::Result<()> {
    let runtime = runtime().map_err(no_thread)?;
    let Inner { shared, ringer, waiting, fresh } = &*bridge.0;
    ringer.get_or_init(|| runtime.spawn(Arc::clone(shared).ring()).abort_handle());
    let (fresh, waiting) = (fresh.take(), Arc::clone(waiting));
    // Spawned there, since each spawning from here would wake the thread.
    runtime.spawn(async move {
        for (call, work) in fresh {
            // It may have been given up since.
            if let Some(place) = locked(&waiting).get_mut(&call) {
                *place = Some(tokio::spawn(work).abort_handle());
            }
        }
    });
    Ok(())
}

/// Gives up on a call. What it left behind is cleaned up.
#[napi]
pub fn cancel(bridge: Bridge, call: u32) {
    bridge.0.fresh.borrow_mut().retain(|(fresh, _)| *fresh != call);
    let task = locked(&bridge.0.waiting).remove(&call);
    if let Some(Some(task)) = task {
        task.abort();
    }
}

/// Gives up on all calls: nobody will hear of them. What they were given and left behind is released.
#[napi]
pub fn abandon(bridge: Bridge) {
    bridge.0.abandon();
}

/// Whether the process is to stay alive for what is waited for.
#[napi]
pub fn keep_alive(env: &Env, bridge: Bridge, yes: bool) -> napi::Result<()> {
    let bell = &bridge.0.shared.bell;
    let status = bell.handle.with_read_aborted(|ended| {
        if ended {
            return sys::Status::napi_ok;
        }
        // SAFETY: the function was not released, and this is the thread of its environment.
        unsafe {
            match yes {
                true => sys::napi_ref_threadsafe_function(env.raw(), bell.raw()),
                false => sys::napi_unref_threadsafe_function(env.raw(), bell.raw()),
            }
        }
    });
    napi::check_status!(status)
}

fn value<T: ToNapiValue + Send + 'static>(result: T) -> Value {
    // SAFETY: called with the environment of the loop that collects it.
    Box::new(move |env| unsafe { T::to_napi_value(env, result) })
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
