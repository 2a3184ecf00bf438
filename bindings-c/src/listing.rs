//! Names of locks and queues.

use crate::arguments::stanchion_text;
use crate::boundary;
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error};
use crate::handle::{self, Kind};
use crate::records::{needed, put};

/// A list of names. 0 is none.
pub type stanchion_names = i64;

struct Names(Vec<String>);

impl Kind for Names {
    const NAME: &'static str = "list of names";
}

/// # Safety
/// The places are as the header says.
unsafe fn give(
    (names, next): (Vec<String>, Option<u64>),
    out: *mut stanchion_names,
    next_page: *mut u64,
) -> Result<i32, Failure> {
    let names = handle::insert(Names(names))?;
    // SAFETY: as the caller promises.
    unsafe {
        put(out, names);
        put(next_page, next.unwrap_or(0));
    }
    Ok(0)
}

/// Names of locks that are held now, in no order; a name may be in two pages. `page` is 0 first, then what the last page
/// gave in `next_page`, which is 0 after the last one. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_locks(
    client: stanchion_client,
    page: u64,
    out: *mut stanchion_names,
    next_page: *mut u64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the names")?;
        needed(next_page, "the next page")?;
        let found = handle::get::<Client>(client)?.0.locks((page != 0).then_some(page))?;
        // SAFETY: the caller passes places as the header says.
        unsafe { give((found.names, found.next), out, next_page) }
    })
}

/// Names of queues that have tasks or settings, or had some in the last 7 days; pages as in stanchion_client_locks. Any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_queues(
    client: stanchion_client,
    page: u64,
    out: *mut stanchion_names,
    next_page: *mut u64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the names")?;
        needed(next_page, "the next page")?;
        let found = handle::get::<Client>(client)?.0.queue_names((page != 0).then_some(page))?;
        // SAFETY: the caller passes places as the header says.
        unsafe { give((found.names, found.next), out, next_page) }
    })
}

/// How many names are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_names_len(names: stanchion_names) -> usize {
    boundary::value(0, || handle::get::<Names>(names).map_or(0, |names| names.0.len()))
}

/// One of the names, which lives as long as the handle of the list. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_names_at(
    names: stanchion_names,
    index: usize,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the name")?;
        let names = handle::get::<Names>(names)?;
        let name = names.0.get(index).ok_or_else(|| beyond(index, names.0.len()))?;
        // SAFETY: the caller passes a place for a text.
        unsafe { put(out, stanchion_text::of(name)) };
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_names_free(names: stanchion_names) {
    boundary::value((), || drop(handle::take::<Names>(names)));
}

/// What is wrong with an index.
pub(crate) fn beyond(index: usize, len: usize) -> Failure {
    Failure::invalid(format!("index {index} is beyond the end of a list of {len}"))
}
