//! From futures of the core to promises.
//!
//! The calls are worked on by the event loop's own thread ([`host_loop`](crate::host_loop)), or else by a thread of
//! ours. Neither calls JavaScript one by one: results are put down, and the event loop collects many at once, in one call
//! of the facade, which settles the promises.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::future::{AbortHandle, abortable};
use napi::bindgen_prelude::{Array, FromNapiValue, Function, JsValue, ToNapiValue};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, ValueType, sys};
use napi_derive::napi;
use nohash_hasher::IntMap;
use stanchion::Error;
use stanchion::internals::HostLoop;
use tokio::sync::Notify;

use crate::convert::converted;
use crate::error::{Failure, invalid};
use crate::host_loop::UvLoop;
use crate::lease;
use crate::runtime::{no_thread, runtime};

/// Rings in the event loop; by itself it does not keep the process alive.
pub(crate) type Bell = ThreadsafeFunction<(), (), (), Status, false, true>;

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
    /// What is left at the end of a thread whose environment did not say that it ends stays: its loop may be gone.
    static BRIDGES: RefCell<ManuallyDrop<Vec<Option<Rc<Inner>>>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
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

struct Inner {
    shared: Arc<Shared>,
    /// What works on the calls, if the event loop does.
    host: Option<Arc<HostLoop>>,
    uv: Option<Arc<UvLoop>>,
    /// Rings, once something calls for it.
    ringer: OnceCell<tokio::task::AbortHandle>,
    /// Calls of this turn of the event loop, which are started together.
    fresh: RefCell<Vec<Work>>,
    /// The calls that are waited for, with what ends them.
    waiting: RefCell<IntMap<u32, AbortHandle>>,
    /// Collects, in JavaScript.
    deliver: Deliver,
}

/// A function of the facade, and its environment.
struct Deliver {
    env: sys::napi_env,
    function: sys::napi_ref,
}

impl Inner {
    /// Gives up on all calls. No turn may come any more, and one could end before all that was given up is dropped.
    fn abandon(&self) {
        // What is dropped may leave something to be done.
        let _context = runtime().ok().map(|runtime| runtime.enter());
        self.fresh.take();
        self.waiting.take().into_values().for_each(|call| call.abort());
        let notes = locked(&self.shared.notes).take();
        drop(notes);
        if let Some(host) = &self.host {
            host.end();
        }
    }

    /// As [`Inner::work`]; true also if there is something to be collected. That comes in a turn of its own.
    fn turn(&self) -> bool {
        self.work() || self.shared.has_notes()
    }

    /// The event loop works on the calls for a turn. True if there is more to do.
    fn work(&self) -> bool {
        let Some(turns) = &self.host else { return false };
        // Timers are those of the runtime.
        let Ok(runtime) = runtime() else { return false };
        let _context = runtime.enter();
        turns.turn()
    }
}

impl Deliver {
    /// Has the facade collect, from the event loop.
    fn call(&self) {
        let mut scope = ptr::null_mut();
        // SAFETY: on the thread of the environment, which has not ended: then there is no bridge any more.
        unsafe {
            if sys::napi_open_handle_scope(self.env, &mut scope) != sys::Status::napi_ok {
                return;
            }
            let (mut function, mut this) = (ptr::null_mut(), ptr::null_mut());
            sys::napi_get_reference_value(self.env, self.function, &mut function);
            sys::napi_get_global(self.env, &mut this);
            let none = ptr::null_mut();
            let called =
                sys::napi_make_callback(self.env, none, this, function, 0, ptr::null(), ptr::null_mut());
            if called == sys::Status::napi_pending_exception {
                let mut thrown = ptr::null_mut();
                sys::napi_get_and_clear_last_exception(self.env, &mut thrown);
                sys::napi_fatal_exception(self.env, thrown);
            }
            sys::napi_close_handle_scope(self.env, scope);
        }
    }
}

/// A socket of a bridge is ready: on the event loop's thread, outside JavaScript.
pub(crate) fn polled(bridge: usize, socket: u64, failed: bool, reads: bool, writes: bool) {
    let inner = BRIDGES.with_borrow(|bridges| bridges.get(bridge).cloned().flatten());
    let Some(inner) = inner else { return };
    if let Some(host) = &inner.host {
        match failed {
            true => host.failed(socket),
            false => host.ready(socket, reads, writes),
        }
    }
    if inner.turn() {
        inner.deliver.call();
    }
}

/// Has the facade collect soon; from any thread.
pub(crate) fn ring(bell: &Bell) {
    // Once the loop has ended there is nobody to call.
    let _ = bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
}

struct Shared {
    /// `None` once nobody collects any more.
    notes: Mutex<Option<VecDeque<(u32, Note)>>>,
    /// There are notes to be collected.
    call: Notify,
    bell: Arc<Bell>,
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
        // A turn is followed by a look.
        if was_empty && !HostLoop::is_in_turn() {
            self.call.notify_one();
        }
    }

    fn has_notes(&self) -> bool {
        locked(&self.notes).as_ref().is_some_and(|notes| !notes.is_empty())
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
            ring(&self.bell);
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
        let (run, handle) = abortable(async move {
            let note = match caught.await {
                Ok(Ok(result)) => Note::Done(value(result)),
                Ok(Err(error)) => Note::Failed(Failure::from(&error)),
                Err(panic) => Note::Failed(Failure::panicked(&*panic)),
            };
            shared.put(call, note);
        });
        self.0.waiting.borrow_mut().insert(call, handle);
        self.0.fresh.borrow_mut().push(Box::pin(async {
            let _ended = run.await;
        }));
        Ok(())
    }

    pub(crate) fn messenger(&self, call: u32) -> Messenger {
        Messenger { call, shared: Arc::clone(&self.0.shared) }
    }
}

/// Opens a bridge. `deliver` is called in the event loop when there is something to collect; `hosted`, that loop works on
/// the calls if it lets us.
#[napi]
pub fn open_bridge(env: &Env, deliver: Function<'_, (), ()>, hosted: bool) -> napi::Result<u32> {
    let bell =
        Arc::new(deliver.build_threadsafe_function().weak::<true>().callee_handled::<false>().build()?);
    let mut function = ptr::null_mut();
    // SAFETY: both are of this call.
    napi::check_status!(unsafe { sys::napi_create_reference(env.raw(), deliver.raw(), 1, &mut function) })?;
    let number = BRIDGES.with_borrow(|bridges| bridges.len());
    let uv = hosted.then(|| UvLoop::of(env.raw(), number, Arc::clone(&bell))).flatten();
    let host = uv.clone().map(|uv| HostLoop::new(uv));
    let inner = Inner {
        shared: Arc::new(Shared { notes: Mutex::new(Some(VecDeque::new())), call: Notify::new(), bell }),
        host,
        uv,
        ringer: OnceCell::new(),
        fresh: RefCell::default(),
        waiting: RefCell::default(),
        deliver: Deliver { env: env.raw(), function },
    };
    BRIDGES.with_borrow_mut(|bridges| bridges.push(Some(Rc::new(inner))));
    env.add_env_cleanup_hook(number, close)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The environment ends: nobody waits any more.
fn close(number: usize) {
    contained(|| {
        let inner = BRIDGES.with_borrow_mut(|bridges| bridges.get_mut(number).and_then(Option::take));
        let Some(inner) = inner else { return };
        silence(&inner.shared.bell);
        inner.abandon();
        if let Some(uv) = &inner.uv {
            uv.unwatch_all();
        }
        if let Some(ringer) = inner.ringer.get() {
            ringer.abort();
        }
        lease::forget_all();
    });
}

/// Releases a bell before its environment does. Else the last of those that ring it, on another thread, could release it
/// while Node takes it away.
fn silence(bell: &Bell) {
    bell.handle.with_write_aborted(|mut ended| {
        if !mem::replace(&mut *ended, true) {
            // SAFETY: it was not released, and from now on nobody uses it.
            unsafe {
                sys::napi_release_threadsafe_function(bell.raw(), sys::ThreadsafeFunctionReleaseMode::abort)
            };
        }
    });
}

/// Runs what the event loop calls, which no panic may leave.
pub(crate) fn contained(run: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(run));
}

/// What there is: whether there is more, to be collected later; then for each note its kind, the number of its call, and the
/// value, one after the other.
#[napi(catch_unwind, ts_return_type = "unknown[]")]
pub fn collect<'env>(env: &'env Env, bridge: Bridge) -> napi::Result<Array<'env>> {
    let Inner { shared, waiting, .. } = &*bridge.0;
    let goes_on = bridge.0.work();
    let (more, notes) = shared.some();
    let mut found = env.create_array(0)?;
    found.insert(more || goes_on)?;
    for (call, note) in notes {
        let is_waited_for = match note {
            Note::News(_) => waiting.borrow().contains_key(&call),
            _ => waiting.borrow_mut().remove(&call).is_some(),
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
        // One that cannot be had in JavaScript must not take the others along.
        let (kind, made) = match made {
            Ok(made) => (kind, made),
            Err(error) => (FAILED, value(unconverted(env, &error))(env.raw())?),
        };
        found.insert(kind)?;
        found.insert(call)?;
        found.insert(made)?;
    }
    Ok(found)
}

/// A defect, or a lack of memory.
fn unconverted(env: &Env, error: &napi::Error) -> Failure {
    let mut thrown = ptr::null_mut();
    // SAFETY: on the thread of the environment. Nothing can be made while an exception waits to be thrown.
    unsafe { sys::napi_get_and_clear_last_exception(env.raw(), &mut thrown) };
    Failure::internal(&format!("a result could not be converted: {error}"))
}

/// Starts the calls that were made since the last time. True if some have ended already.
#[napi(catch_unwind)]
pub fn flush(bridge: Bridge) -> napi::Result<bool> {
    let runtime = runtime().map_err(no_thread)?;
    let Inner { shared, host, ringer, fresh, .. } = &*bridge.0;
    ringer.get_or_init(|| runtime.spawn(Arc::clone(shared).ring()).abort_handle());
    let fresh = fresh.take();
    match host {
        Some(host) => {
            fresh.into_iter().for_each(|work| host.spawn(work));
            Ok(bridge.0.turn())
        }
        None => {
            // Spawned there, since each spawning from here would wake the thread.
            runtime.spawn(async move {
                for work in fresh {
                    tokio::spawn(work);
                }
            });
            Ok(false)
        }
    }
}

/// Gives up on a call. What it left behind is cleaned up. True if another has ended meanwhile.
#[napi(catch_unwind)]
pub fn cancel(bridge: Bridge, call: u32) -> bool {
    let call = bridge.0.waiting.borrow_mut().remove(&call);
    let Some(call) = call else { return false };
    call.abort();
    bridge.0.turn()
}

/// Gives up on all calls: nobody will hear of them. What they were given and left behind is released.
#[napi(catch_unwind)]
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
