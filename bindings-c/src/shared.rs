//! Clients that stay with the process, for hosts that forget everything of their own at the end of each request.

use std::ffi::c_char;
use std::fmt::Write;

use stanchion::blocking;

use crate::arguments;
use crate::boundary;
use crate::client::{Client, stanchion_client, stanchion_connect_options};
use crate::error::{Failure, stanchion_error};
use crate::handle;
use crate::records::{self, needed, put};

/// So many stay; the one that was opened first goes for the next.
const MOST_KEPT: usize = 64;

/// Opens a store as stanchion_connect, or gives a client again that this process opened so with the same `url` and options.
/// The library keeps it when its handles are freed: for hosts such as PHP-FPM, whose requests forget everything.
/// Each call gives a handle of its own, to be freed as ever. A memory: store without a name, and one with a clock,
/// is a new one each time.
///
/// Errors: as stanchion_connect. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_connect_shared(
    url: *const c_char,
    url_len: usize,
    options: *const stanchion_connect_options,
    out: *mut stanchion_client,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the client")?;
        // SAFETY: the caller passes texts and structs as the header says.
        let (url, options) = unsafe { (arguments::option("url", url, url_len)?, records::read(options)?) };
        // SAFETY: as above.
        let key = unsafe { key(url, &options) }?;
        let client = match key.as_deref().and_then(handle::shared) {
            Some(client) => client?,
            // SAFETY: as above.
            None => unsafe { open(url, &options, key) }?,
        };
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, client) };
        Ok(0)
    })
}

/// Frees every handle of this process, as the functions of their kinds do, those of other threads, too. Clients that are
/// shared stay open. For the beginning of a request in hosts such as PHP-FPM, if the one before could not free its own.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_free_all() {
    boundary::value((), handle::free_all);
}

/// # Safety
/// The texts are as their lengths say.
unsafe fn open(
    url: Option<&str>,
    options: &stanchion_connect_options,
    key: Option<String>,
) -> Result<stanchion_client, Failure> {
    let builder = match url {
        Some(url) => blocking::Client::builder(url),
        None => blocking::Client::from_env(),
    };
    // SAFETY: as the caller promises.
    let client = Client(unsafe { options.apply(builder) }?.open_blocking()?);
    match key {
        Some(key) => handle::share(key, client, MOST_KEPT),
        None => handle::insert(client),
    }
}

/// What clients have in common that can stand for each other; none for those that cannot.
///
/// # Safety
/// The texts are as their lengths say.
unsafe fn key(url: Option<&str>, options: &stanchion_connect_options) -> Result<Option<String>, Failure> {
    let named = match url {
        Some(url) => url.to_owned(),
        None => std::env::var("STANCHION_URL").unwrap_or_default(),
    };
    if options.clock != 0 || named == "memory:" {
        return Ok(None);
    }
    let mut key = format!("{named:?} {} {}", options.timeout_ms, options.foreign_share);
    let texts = [
        options.lock_prefix,
        options.queue_prefix,
        options.label,
        options.tls_ca,
        options.tls_cert,
        options.tls_key,
    ];
    for one in texts {
        // SAFETY: as the caller promises.
        let text = unsafe { arguments::option("option", one.data, one.len) }?;
        let _ = write!(key, " {text:?}");
    }
    Ok(Some(key))
}
