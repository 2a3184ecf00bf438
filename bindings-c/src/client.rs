//! Clients.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::blocking;

use crate::arguments::{self, NONE, optional_flag, optional_span, span, stanchion_text};
use crate::boundary;
use crate::clock::{Clock, stanchion_clock};
use crate::error::{Failure, stanchion_error};
use crate::handle::{self, Kind};
use crate::records::{self, Record, needed, put};

/// An opened store. 0 is none. One for each process is enough; all threads may share it. After a fork the child may go
/// on using it: it connects anew there (not with a memory: store, which stays the parent's).
pub type stanchion_client = i64;

pub(crate) struct Client(pub(crate) blocking::Client);

impl Kind for Client {
    const NAME: &'static str = "client";
}

/// How to open a store. Texts with NULL are not given. What is given wins over the same parameter in the URL.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_connect_options {
    /// sizeof, set by stanchion_connect_options_init.
    pub struct_size: usize,
    /// Put before a lock's name to make its key (default "Lock:").
    pub lock_prefix: stanchion_text,
    /// Put before a queue's name to make its key (default "Queue:").
    pub queue_prefix: stanchion_text,
    /// Shown to others as the holder, and as who claimed a task (default: none; at most 256 bytes).
    pub label: stanchion_text,
    /// PEM file with the certificate authorities to trust instead of the system's.
    pub tls_ca: stanchion_text,
    /// PEM file with the client's certificate chain; goes with tls_key.
    pub tls_cert: stanchion_text,
    /// PEM file with the client's key.
    pub tls_key: stanchion_text,
    /// How long a call may take, beyond any wait for a lock or a task. -1: 5000.
    pub timeout_ms: i64,
    /// A clock that a test moves, for memory: stores. 0: the system's.
    pub clock: stanchion_clock,
    /// 1: after some hand-offs in a row leave a lock free for a moment, for polling lockers of other programs (Redis only).
    /// -1: 0.
    pub foreign_share: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_connect_options {
    const NAME: &'static str = "stanchion_connect_options";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        lock_prefix: stanchion_text::NONE,
        queue_prefix: stanchion_text::NONE,
        label: stanchion_text::NONE,
        tls_ca: stanchion_text::NONE,
        tls_cert: stanchion_text::NONE,
        tls_key: stanchion_text::NONE,
        timeout_ms: NONE,
        clock: 0,
        foreign_share: -1,
    };
}

/// Makes all options the default. `struct_size` is sizeof *options. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_connect_options_init(
    options: *mut stanchion_connect_options,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(options, struct_size) });
}

impl stanchion_connect_options {
    /// # Safety
    /// The texts are as their lengths say.
    pub(crate) unsafe fn apply(
        &self,
        mut builder: stanchion::ClientBuilder,
    ) -> Result<stanchion::ClientBuilder, Failure> {
        // SAFETY: as the caller promises.
        let text = |what: &str, text: stanchion_text| unsafe { arguments::option(what, text.data, text.len) };
        if let Some(prefix) = text("lock_prefix", self.lock_prefix)? {
            builder = builder.lock_prefix(prefix);
        }
        if let Some(prefix) = text("queue_prefix", self.queue_prefix)? {
            builder = builder.queue_prefix(prefix);
        }
        if let Some(label) = text("label", self.label)? {
            builder = builder.label(label);
        }
        if let Some(file) = text("tls_ca", self.tls_ca)? {
            builder = builder.tls_ca(file);
        }
        match (text("tls_cert", self.tls_cert)?, text("tls_key", self.tls_key)?) {
            (Some(cert), Some(key)) => builder = builder.tls_client(cert, key),
            (None, None) => {}
            _ => return Err(Failure::invalid("tls_cert and tls_key belong together")),
        }
        if let Some(timeout) = optional_span("timeout_ms", self.timeout_ms)? {
            builder = builder.timeout(timeout);
        }
        if let Some(share) = optional_flag("foreign_share", self.foreign_share)? {
            builder = builder.foreign_share(share);
        }
        if self.clock != 0 {
            builder = builder.clock(&handle::get::<Clock>(self.clock)?.0);
        }
        Ok(builder)
    }
}

/// Opens a store: "redis://", "redis+unix://", "redis-sentinel://", "redis-cluster://", "redis-quorum://", with TLS
/// "rediss://" and so on, "sqlite:PATH" or "memory:". A `url` of NULL is that of the environment variable STANCHION_URL. `options` may be NULL.
/// Connects once, and checks the server's version.
///
/// Errors: INVALID_ARGUMENT for a bad URL or option; STORE_UNAVAILABLE, DENIED, UNSUPPORTED or CORRUPT if the store cannot
/// be used. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_connect(
    url: *const c_char,
    url_len: usize,
    options: *const stanchion_connect_options,
    out: *mut stanchion_client,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the client")?;
        // SAFETY: the caller passes texts and structs as the header says.
        let builder = unsafe {
            let builder = match arguments::option("url", url, url_len)? {
                Some(url) => blocking::Client::builder(url),
                None => blocking::Client::from_env(),
            };
            records::read(options)?.apply(builder)?
        };
        let client = handle::insert(Client(builder.open_blocking()?))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, client) };
        Ok(0)
    })
}

/// Frees the handle. Leases, claims and workers go on until they are freed themselves: stanchion_client_close ends them. 0 and freed handles are harmless.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_client_free(client: stanchion_client) {
    boundary::value((), || drop(handle::take::<Client>(client)));
}

/// Releases every lease of this client that is still held; `count` gets how many, and may be NULL. For shutdown.
/// The handles of the leases still have to be freed.
///
/// Errors: the first one other than a lost lease; the others are released nevertheless. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_release_all(
    client: stanchion_client,
    count: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let released = handle::get::<Client>(client)?.0.release_all()?;
        // SAFETY: the caller passes NULL or a place for a count.
        unsafe { put(count, released) };
        Ok(0)
    })
}

/// Closes the client: calls of other threads that wait end with STANCHION_ERR_CLOSED, and so does every later one; leases are
/// released, and claims put back, uncounted. When this returns, its threads have ended and its connections are closed.
/// `count` (may be NULL) gets how many leases were released. Stop workers before. The handles are to be freed as ever.
/// A client of stanchion_connect_shared is closed for all that have it; the next call of that opens another one.
///
/// Errors: the first one of a release other than a lost lease; the client is closed nevertheless. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_close(
    client: stanchion_client,
    count: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let client = handle::get::<Client>(client)?;
        handle::unshare(&client);
        let released = client.0.close()?;
        // SAFETY: the caller passes NULL or a place for a count.
        unsafe { put(count, released) };
        Ok(0)
    })
}

/// Waits up to `time_ms` for what this client does in the background, such as releasing leases that were freed; `done`
/// (may be NULL) gets 1 if nothing is left, otherwise 0. For a program that is about to exit. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_linger(
    client: stanchion_client,
    time_ms: i64,
    done: *mut i32,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let client = handle::get::<Client>(client)?;
        let nothing_left = client.0.linger(span("time_ms", time_ms)?);
        // SAFETY: the caller passes NULL or a place for a number.
        unsafe { put(done, nothing_left.into()) };
        Ok(0)
    })
}
