//! Node's own event loop, which polls our sockets: no call has to cross to another thread and back.
//!
//! The functions of libuv are those of the program that loads us, looked up when they are needed: other hosts of
//! Node's interface have none, or none that we may use, and go without ([`UvLoop::of`] is `None`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};

use napi::sys;
use stanchion::internals::Host;

use crate::bridge::{self, Bell, contained, locked, ring};

/// From uv.h.
const UV_POLL: c_int = 8;
const UV_READABLE: c_int = 1;
const UV_WRITABLE: c_int = 2;

type Loop = *mut sys::uv_loop_s;
/// A `uv_poll_t`, in memory of ours.
type Handle = *mut c_void;

/// What we need of libuv.
struct Uv {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    poll_init: unsafe extern "C" fn(Loop, Handle, c_int) -> c_int,
    poll_start: unsafe extern "C" fn(Handle, c_int, unsafe extern "C" fn(Handle, c_int, c_int)) -> c_int,
    close: unsafe extern "C" fn(Handle, unsafe extern "C" fn(Handle)),
    unref: unsafe extern "C" fn(Handle),
    set_data: unsafe extern "C" fn(Handle, *mut c_void),
    get_data: unsafe extern "C" fn(Handle) -> *mut c_void,
}

fn uv() -> Option<&'static Uv> {
    static UV: OnceLock<Option<Uv>> = OnceLock::new();
    UV.get_or_init(Uv::find).as_ref()
}

impl Uv {
    fn find() -> Option<Self> {
        // SAFETY: the types are those of uv.h, the same in every version 1.
        unsafe {
            Some(Self {
                handle_size: function(c"uv_handle_size")?,
                poll_init: function(c"uv_poll_init")?,
                poll_start: function(c"uv_poll_start")?,
                close: function(c"uv_close")?,
                unref: function(c"uv_unref")?,
                set_data: function(c"uv_handle_set_data")?,
                get_data: function(c"uv_handle_get_data")?,
            })
        }
    }
}

/// A function of the program.
///
/// # Safety
///
/// `F` is its type.
unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: a name with its end; the caller vouches for the type, and a function pointer is a pointer here.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}

/// The event loop of one thread of JavaScript, as our sockets are watched by it.
pub(crate) struct UvLoop {
    uv: &'static Uv,
    shared_loop: LoopPointer,
    /// The number of the bridge.
    bridge: usize,
    bell: Arc<Bell>,
    watched: Mutex<HashMap<u64, HandlePointer>>,
}

#[derive(Clone, Copy)]
struct LoopPointer(Loop);
#[derive(Clone, Copy)]
struct HandlePointer(Handle);

// SAFETY: they are used on the loop's own thread only.
unsafe impl Send for LoopPointer {}
// SAFETY: as above.
unsafe impl Sync for LoopPointer {}
// SAFETY: as above.
unsafe impl Send for HandlePointer {}

/// What a handle knows of us.
struct Watched {
    bridge: usize,
    number: u64,
    _memory: Vec<u64>,
}

thread_local! {
    /// Handles of this thread's loop that are not closed yet.
    static OPEN: Cell<usize> = const { Cell::new(0) };
    /// Who waits for the last one to be closed: the environment ends then.
    static ENDS: RefCell<Vec<sys::napi_async_cleanup_hook_handle>> = const { RefCell::new(Vec::new()) };
}

impl UvLoop {
    /// The loop of this environment, if it lets us watch sockets.
    pub(crate) fn of(env: sys::napi_env, bridge: usize, bell: Arc<Bell>) -> Option<Arc<Self>> {
        let uv = uv()?;
        let mut found = ptr::null_mut();
        // SAFETY: the environment is the caller's.
        let status = unsafe { sys::napi_get_uv_event_loop(env, &mut found) };
        if status != sys::Status::napi_ok || found.is_null() {
            return None;
        }
        // SAFETY: the environment is the caller's; the hook needs no data.
        let hooked =
            unsafe { sys::napi_add_async_cleanup_hook(env, Some(ends), ptr::null_mut(), ptr::null_mut()) };
        (hooked == sys::Status::napi_ok).then(|| {
            Arc::new(Self { uv, shared_loop: LoopPointer(found), bridge, bell, watched: Mutex::default() })
        })
    }

    /// Ends all of that: the environment ends. On the loop's thread.
    pub(crate) fn unwatch_all(&self) {
        let numbers: Vec<_> = locked(&self.watched).keys().copied().collect();
        numbers.into_iter().for_each(|number| self.unwatch(number));
    }

    fn start(&self, handle: Handle, writes: bool) -> bool {
        let events = if writes { UV_READABLE | UV_WRITABLE } else { UV_READABLE };
        // SAFETY: an open handle of the loop of this thread.
        unsafe { (self.uv.poll_start)(handle, events, polled) == 0 }
    }
}

impl Host for UvLoop {
    fn watch(&self, socket: RawFd, number: u64) -> bool {
        // SAFETY: no pointer is passed.
        let size = unsafe { (self.uv.handle_size)(UV_POLL) };
        let mut memory = vec![0_u64; size.div_ceil(size_of::<u64>())];
        let handle: Handle = memory.as_mut_ptr().cast();
        // SAFETY: as much memory as libuv asks for, on the thread of the loop; it stays until the handle is closed.
        unsafe {
            if (self.uv.poll_init)(self.shared_loop.0, handle, socket) != 0 {
                return false;
            }
            (self.uv.unref)(handle);
            let watched = Box::new(Watched { bridge: self.bridge, number, _memory: memory });
            (self.uv.set_data)(handle, Box::into_raw(watched).cast());
        }
        OPEN.set(OPEN.get() + 1);
        locked(&self.watched).insert(number, HandlePointer(handle));
        let watches = self.start(handle, false);
        if !watches {
            self.unwatch(number);
        }
        watches
    }

    fn watch_writes(&self, number: u64, yes: bool) {
        let handle = locked(&self.watched).get(&number).copied();
        if let Some(handle) = handle {
            self.start(handle.0, yes);
        }
    }

    fn unwatch(&self, number: u64) {
        let handle = locked(&self.watched).remove(&number);
        if let Some(handle) = handle {
            // SAFETY: an open handle of the loop of this thread, closed once.
            unsafe { (self.uv.close)(handle.0, closed) };
        }
    }

    fn wake(&self) {
        ring(&self.bell);
    }
}

unsafe extern "C" fn polled(handle: Handle, status: c_int, events: c_int) {
    let Some(uv) = uv() else { return };
    // SAFETY: ours, since the handle is not closed.
    let (bridge, number) = unsafe {
        let watched = &*(uv.get_data)(handle).cast::<Watched>();
        (watched.bridge, watched.number)
    };
    let (reads, writes) = (events & UV_READABLE != 0, events & UV_WRITABLE != 0);
    contained(|| bridge::polled(bridge, number, status < 0, reads, writes));
}

unsafe extern "C" fn closed(handle: Handle) {
    let Some(uv) = uv() else { return };
    // SAFETY: made by `watch`; libuv does not use it any more.
    drop(unsafe { Box::from_raw((uv.get_data)(handle).cast::<Watched>()) });
    OPEN.set(OPEN.get().saturating_sub(1));
    if OPEN.get() == 0 {
        ENDS.take().into_iter().for_each(ended);
    }
}

/// The environment ends: it waits until all handles are closed. The bridge closes them.
unsafe extern "C" fn ends(hook: sys::napi_async_cleanup_hook_handle, _: *mut c_void) {
    match OPEN.get() {
        0 => ended(hook),
        _ => ENDS.with_borrow_mut(|ends| ends.push(hook)),
    }
}

fn ended(hook: sys::napi_async_cleanup_hook_handle) {
    // SAFETY: given to `ends`, and removed once.
    unsafe { sys::napi_remove_async_cleanup_hook(hook) };
}
